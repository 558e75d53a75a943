//! Wide area networks between the uplink and the clients: delay, jitter, loss and rate, for each
//! group of clients and each direction.
//!
//! | part | what it does |
//! |---|---|
//! | [`path`] | what a path does to packets, as plain data |
//! | [`loss`] | which packets are lost: none, each by itself, or in bursts |
//! | [`emulator`] | the queue: packets and the times they leave at; no clock, no devices |
//! | [`relay`] | a process that runs the emulator between two TUN devices |
//! | [`netem`] | the same paths for the kernel's own emulator, where it has one |
//! | [`report`] | how many packets it lost and dropped, and how late it was |
//!
//! Paper 000 emulated with a kernel module of its own (5.1: as Dummynet, on the client machines, both
//! ways), paper 004 with netem (5.1: only towards the clients).

pub mod emulator;
pub mod loss;
pub mod netem;
pub mod packet;
pub mod path;
pub mod relay;
pub mod report;
