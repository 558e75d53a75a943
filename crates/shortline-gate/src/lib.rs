//! Admission in front of a database or an application server: a later release.
//!
//! What comes here: an HTTP, PostgreSQL and MySQL relay that learns each request type's
//! service time, admits as much work as the backend does well, and lets the rest wait in
//! the order of `shortline-sched`: shortest job first, with aging.
#![forbid(unsafe_code)]

pub mod classify;
