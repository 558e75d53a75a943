//! A study as data and arithmetic: what is to be run and claimed, what was kept of it, and what that comes
//! to. Nothing here starts a process or draws.
//!
//! | part | what it is |
//! |---|---|
//! | [`file`] | the TOML file of a study: keys, errors with their line |
//! | [`design`] | an experiment: its figures, and what it runs |
//! | [`point`], [`course`], [`environment`], [`plan`] | what runs over an uplink are, and what was asked for |
//! | [`kept`], [`figures`], [`course_figures`], [`groups`] | what is kept of runs, and its figures |
//! | [`lines`], [`stats`], [`standing`] | records as lines; medians; who stands for whom |
//! | [`claim`], [`verdict`], [`kept_claims`] | a claim in numbers, and what became of it |
//! | [`ran`], [`conditions`] | an experiment of a pass, and how it was run |
//! | [`shop`], [`adversary`] | the same for the bookstore and for one client that attacks |

pub mod adversary;
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
pub mod plan;
pub mod point;
pub mod ran;
pub mod shop;
pub mod standing;
pub mod stats;
pub mod verdict;

pub use error::KeptError;
pub use file::StudyError;
