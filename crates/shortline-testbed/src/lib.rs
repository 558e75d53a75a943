//! Test beds: where servers and clients run as processes, the networks between them, and what is
//! measured meanwhile. A bed knows no paper, no experiment and no report.
//!
//! | part | what it is |
//! |---|---|
//! | [`testbed`] | one run: its id, its janitor, its folders, the program it starts |
//! | [`janitor`] | undoes what a run makes, also when the run is killed |
//! | [`bed`] | namespaces with an uplink that can be saturated, and their environment |
//! | [`wan`] | emulated networks between the uplink and the clients |
//! | [`guest`] | a Linux kernel that runs as a process, in real or virtual time |
//! | [`process`], [`command`], [`proc_fs`] | processes, small tools, and what `/proc` says of them |
//! | [`server`] | the servers: ours, and others |
//! | [`generator`] | the load generator, as one process or several |
//! | [`attacker`], [`idle_client`] | other clients: one that attacks, one that idles |
//! | [`instruments`] | what happens inside the server's machine over time |
//!
//! The janitor undoes whatever a run makes (processes, namespaces, a sysctl, scratch files). It is a
//! process of its own and outlives even a killed run.
#![forbid(unsafe_code)]

pub mod attacker;
pub mod bed;
pub mod command;
mod error;
pub mod generator;
pub mod guest;
pub mod idle_client;
pub mod instruments;
pub mod janitor;
mod place;
pub mod proc_fs;
pub mod process;
pub mod server;
pub mod testbed;
mod tls;
pub mod wan;

pub use error::TestbedError;
pub use place::{Place, two_processors};
pub use testbed::Testbed;
