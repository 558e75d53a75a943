//! Workloads, traces, the open-loop generator and its result records.
//!
//! What arrives comes from [`trace`] (a file) or [`workload`] (made from the numbers
//! of paper 000). This crate knows HTTP and time, never which server it loads.
#![forbid(unsafe_code)]

pub mod record;
pub mod summary;
pub mod trace;
pub mod workload;
