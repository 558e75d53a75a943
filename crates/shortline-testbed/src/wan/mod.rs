//! Wide area networks between the uplink and the clients: delay, jitter, loss and rate, for each
//! group of clients and each way.
//!
//! | part | what it does |
//! |---|---|
//! | [`path`] | what a path does to packets, as plain data |
//! | [`loss`] | which packets are lost: none, each by itself, or in bursts |
//! | [`emulator`] | the queue: packets and the times they leave at; no clock, no devices |
//! | [`relay`] | a process that runs the emulator between two TUN devices |
//! | [`netem`] | the same paths for the kernel's own emulator, where it has one |
//! | [`report`] | what it lost, what it dropped, and how late it was |
//!
//! The papers emulated with a module of their own (000, 5.1: Dummynet's behaviour, on the client
//! machines, both ways) and with netem (004, 5.1: on what the clients receive).

pub mod emulator;
pub mod loss;
pub mod netem;
pub mod packet;
pub mod path;
pub mod relay;
pub mod report;
