//! What drives the queue: everything that has a lock, a socket, a clock or the kernel in it.

pub mod device;
pub(crate) mod discovery;
pub(crate) mod job_handle;
pub(crate) mod link;
mod network;
mod socket;
pub(crate) mod transport;
