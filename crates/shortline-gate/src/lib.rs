//! Admission in front of a backend (a later release).
#![forbid(unsafe_code)]
