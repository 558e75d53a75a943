//! Link mode `bands`: the kernel's qdisc orders packets, and each connection's `SO_PRIORITY` says
//! in which of its bands they wait. In the other modes that order anything SYN-ACKs alone have one.
//!
//! Source: papers 003 3.3 and 000 3.2 (bands of the remaining size), 003 7 (the quick fix: small
//! and large by the total size), 004 3.2 (bands of the remaining response time, in milliseconds).
//! The other policies that go by a time have the bands of 004 for theirs: `stert` for the response
//! time in all, `fcf` for the time at the connection's rate, `swift` for the link's time and a round
//! trip. Their estimates are the policies' own ([`shortline_sched::Scheduler::response_ns`]).
//! The first band of the device is for control packets alone (003 3.3.2): SYN-ACKs, which go by the
//! listener's priority, and what a connection sends before its first response. The others are for
//! responses, the smallest first. A value that equals a cutoff belongs to the band below it.
//!
//! The kernel looks at a socket's priority when it makes a packet, so that a change counts for all
//! that the socket holds unsent: little, for the mark of unsent bytes is small. A connection with
//! several responses (HTTP/2) takes the band of the most urgent that waits or is being sent.
//!
//! Departure: 004's last band ends at 1000 s; here everything above the last cutoff is one band.
//!
//! | part | what it does |
//! |---|---|
//! | `map` | which band a response has; no I/O |
//! | `setup` | what is asked of the kernel once, at the start |
//! | [`qdisc`] | the kernel's qdiscs: read, installed, removed; and the rate that one states, for mode `auto` |
//!
//! The queue's side of the mode is a few lines where grants are made (`queue/banded`).

mod map;
pub mod qdisc;
mod setup;
#[cfg(test)]
pub mod testing;

pub(crate) use map::{BandMap, JobsBands};
pub(crate) use setup::control_priority;
