//! A study as data and arithmetic: what to run and to claim, the kept results, and their figures. Nothing
//! here starts a process or draws.
//!
//! | part | what it is |
//! |---|---|
//! | [`file`] | the TOML file of a study: keys, errors with their line |
//! | [`design`] | an experiment: its figures, and what it runs |
//! | [`point`], [`course`], [`environment`], [`plan`] | the runs over an uplink, and the plan of a folder |
//! | [`kept`], [`figures`], [`course_figures`], [`by_size`], [`groups`] | the kept results of runs, and their figures |
//! | [`offered`] | the load that requests offer, known before the first run |
//! | [`lines`], [`stats`], [`standing`] | records as lines; medians; which servers stand for SRPT and FAIR |
//! | [`claim`], [`verdict`], [`kept_claims`] | a claim in numbers, and its verdict |
//! | [`ran`], [`conditions`] | an experiment of a pass, and the conditions of its runs |
//! | [`shop`], [`application`], [`adversary`] | the same for the bookstore, for a web application and for one client that attacks |

pub mod adversary;
pub mod application;
pub mod by_size;
pub mod claim;
pub mod conditions;
pub mod course;
pub mod course_figures;
pub mod design;
pub mod environment;
mod error;
pub mod figures;
pub mod file;
pub mod groups;
pub mod kept;
pub mod kept_claims;
pub mod lines;
pub mod offered;
pub mod plan;
pub mod point;
pub mod ran;
pub mod shop;
pub mod standing;
pub mod stats;
pub mod verdict;
pub mod versus;

pub use error::KeptError;
pub use file::StudyError;
