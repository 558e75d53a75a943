//! Discrete-event simulator over shortline-sched.
#![forbid(unsafe_code)]
