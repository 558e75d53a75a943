//! Workloads, traces, the generator (open and closed loop) and its result records.
//!
//! [`trace`] (a file) or [`workload`] (made from the papers' numbers) says what arrives.
//! [`generator`] makes the requests, [`record`] keeps what became of each, and [`summary`] sums
//! them up. This crate knows HTTP and time, never which server it loads.
#![forbid(unsafe_code)]

pub mod generator;
pub mod input;
pub mod record;
pub mod summary;
pub mod trace;
pub mod workload;

pub use generator::{LoadError, LoadOptions, LoadReport, Protocol, Target, Trust, Work, run};
pub use record::{Failure, RequestRecord, Turn};
pub use summary::Summary;
