//! The uplink: who may hand how many bytes to the kernel, and when.
//!
//! Whatever waits in a socket buffer or a qdisc can no longer be reordered. So a response (a
//! job) gets **grants** of one quantum each, in the policy's order, and only as fast as the
//! uplink drains them:
//!
//! | mode | when the next grant is due | module |
//! |---|---|---|
//! | `paced` | when the modelled queue of the uplink is almost empty | `regulator/paced` |
//! | `slots` | when less than N quanta are unacknowledged | `regulator/slots` |
//! | `writers` | when one of N has written its block to a socket (001; for the lab) | `regulator/writers` |
//! | `bands` | at once; the kernel's qdisc orders the packets | `bands`, [`qdisc`] |
//! | `off` | at once | |
//! | `auto` | as in `off`, `paced` or `slots`, by what is found out of the uplink | `discovery` |
//!
//! A job whose connection cannot send is passed over and not charged.
//! This room knows sockets and interfaces, but neither HTTP nor files.

mod audit;
mod bands;
mod client;
mod config;
mod connections;
mod driver;
mod queue;
mod regulator;
mod snapshot;

pub use audit::Fault;
pub use bands::qdisc;
pub use client::{client_at, user_at};
pub use config::{LinkConfig, LinkError, LinkMode};
pub use driver::device;
pub use driver::discovery::Discovered;
pub use driver::job_handle::{Grant, JobHandle};
pub use driver::link::Link;
pub use driver::transport::{Transport, TransportHandle};
pub use queue::Length;
pub use snapshot::{LinkSnapshot, SIZE_CLASSES, SizeClass};
