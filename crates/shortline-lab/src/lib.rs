//! Test beds, experiments and their reports: how this project measures itself beside
//! nginx and Apache.
//!
//! An experiment ([`experiment::all`]) starts servers as processes, one after another,
//! each in a fresh bed ([`bed`]), and loads all of them with the same files and arrivals.
//! The load generator is a process too, so every server is treated alike. What was
//! measured is kept as it came; tables, plots and the page are computed from the kept files
//! alone, so [`report`] gives the same again later.
//!
//! Whatever an experiment makes (processes, namespaces, a sysctl, scratch files) is
//! undone by the [`janitor`], a process of its own that outlives even a killed lab.
#![forbid(unsafe_code)]

pub mod attacker;
pub mod bed;
mod command;
mod error;
pub mod experiment;
pub mod guest;
mod idle_client;
pub mod instruments;
pub mod janitor;
mod lab;
mod load;
mod plot;
mod points;
mod proc_fs;
mod process;
mod report;
pub mod results_page;
mod server;
mod stats;
mod tls;
pub mod wan;

pub use bed::BedKind;
pub use error::LabError;
pub use experiment::{Report, RunOptions, list, report, run, show};
pub use guest::kernel::build as build_kernel;
pub use lab::Lab;
pub use server::{OursMode, Server};
