//! Test beds, experiments, reports with plots.
#![forbid(unsafe_code)]
