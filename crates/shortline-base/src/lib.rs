//! What every room needs of the machine: the clock, an alarm, sockets, the disk, and threads that
//! may block. Each has two implementations: the kernel, and a simulated [`world`] that a thread may
//! live in.
//!
//! It also has what every room does alike: accepting connections and knowing the open ones, asking
//! the kernel, and keeping a log readable.
//!
//! This room knows no protocol and no order.

pub mod accept;
pub mod alarm;
pub mod clock;
pub mod disk;
pub mod netlink;
pub mod pipe;
pub mod port;
pub mod roster;
pub mod socket;
mod sys;
pub mod throttle;
pub mod world;

pub use sys::TcpInfo;
