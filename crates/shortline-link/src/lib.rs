//! The uplink: grants, pacing, slots and the kernel's counters.
#![deny(unsafe_code)]
