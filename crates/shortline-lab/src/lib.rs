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
mod error;
pub mod experiment;
mod idle_client;
mod plot;
mod points;
mod report;
pub mod results_page;
mod stats;
mod tls;

pub use error::LabError;
pub use experiment::{Report, RunOptions, list, report, run, show};
