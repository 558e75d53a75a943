//! Scheduling policies, ranks, aging and queues: no I/O, no clock.
#![forbid(unsafe_code)]
