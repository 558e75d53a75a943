//! Workloads, traces, the open-loop generator and its result records.
#![forbid(unsafe_code)]
