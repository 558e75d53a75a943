//! Experiments and their reports: how this project measures itself beside nginx and Apache.
//!
//! | layer | what it is |
//! |---|---|
//! | `study` | a study as data and arithmetic: points, plans, kept results, figures, claims |
//! | `papers` | the studies of the catalogue, and the figures of the papers that they reproduce |
//! | `report` | text, pages and drawings of kept results |
//! | `run` | runs experiments in a test bed, and reports on a folder of results |
//!
//! A layer uses only those above it in this table. A run starts servers as processes, one after another, each in a
//! fresh bed (`shortline-testbed`), and loads all of them with the same files and arrivals. The load generator is a
//! process too, so every server is treated alike. Measurements are kept unchanged. Tables, plots and pages are
//! computed from the kept files alone, so a later report says the same.
#![forbid(unsafe_code)]

mod error;
mod papers;
mod report;
pub mod run;
mod study;

pub use error::LabError;
pub use report::compare::{Comparison, compare};
pub use report::results_page;
pub use run::{Report, RunOptions, list, pass::report, run, show};
pub use study::environment::Environment;
