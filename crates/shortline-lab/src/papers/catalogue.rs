//! Every experiment: our own and those of the four papers, each a file in `studies`.
//!
//! One experiment may reproduce several figures of a paper, which draw and claim different things from
//! the same runs. `w1` also stands for most of paper 000: its Fig. 8, and row A of its Table II.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::LazyLock;

use thiserror::Error;

use crate::study::StudyError;
use crate::study::design::Experiment;
use crate::study::file::{self, Traces};

/// No experiment of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unknown experiment `{0}`: `shortline lab list` names them all; a study of your own is named by its file, such as mine.toml"
)]
pub struct UnknownExperiment(pub String);

/// The file of a study.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// The study's name.
    pub id: &'static str,
    /// Its path from this crate's folder.
    pub path: &'static str,
    /// The whole text.
    pub text: &'static str,
}

/// Includes files of `studies` in this program.
macro_rules! files {
    ($($folder:literal: $($id:literal)+;)+) => {
        &[$($(File {
            id: $id,
            path: concat!("studies/", $folder, "/", $id, ".toml"),
            text: include_str!(concat!("../../studies/", $folder, "/", $id, ".toml")),
        },)+)+]
    };
}

/// Every file, our own first.
#[rustfmt::skip]
pub const FILES: &[File] = files! {
    "own":
        "demo" "demo-nginx" "w1" "w1-k5" "w1-tls" "w1-h2" "w1-h2-shared" "w1-h2-tls" "w1-100mbit" "w1-1gbit" "w1-10gbit"
        "w1-slots" "w1-through" "aging" "generators" "adversary" "adversary-tls" "adversary-route" "throughput"
        "versus" "memory" "memory-100k" "gate-pool" "gate-http";
    "auto":
        "auto-steps" "auto-cross" "auto-cross10" "auto-two" "auto-w1" "auto-w1-100mbit"
        "auto-hop" "auto-hop-100mbit" "auto-w1-bbr" "auto-hop-bbr" "auto-wan";
    "paper-000":
        "000-baseline" "000-persistent" "000-rtt" "000-loss" "000-rtt-loss" "000-keepalive"
        "000-rto" "000-cookies" "000-abort" "000-packets" "000-realistic" "000-delays"
        "000-table1" "000-table1-realistic" "000-why" "000-long" "000-nasa-rtt" "000-nasa-loss"
        "000-nasa-rtt-loss" "000-nasa-keepalive" "000-nasa-rto" "000-nasa-abort"
        "000-nasa-packets" "000-nasa-realistic" "000-nasa-table1";
    "paper-001":
        "001-load" "001-writers";
    "paper-002":
        "002-estimates" "002-application" "002-database" "002-capacity" "002-open";
    "paper-003":
        "003-load" "003-quickfix" "003-surge" "003-surge-quickfix" "003-control-band";
    "paper-004":
        "004-10mbit" "004-100mbit";
};

static ALL: LazyLock<Vec<Experiment>> = LazyLock::new(|| {
    let read = |file: &File| file.parse().expect("invariant: a test reads every file");
    FILES.iter().map(read).collect()
});

/// Every experiment, our own first.
pub fn all() -> &'static [Experiment] {
    &ALL
}

/// The file of a study, for a person to copy. `None` if no study has that name.
pub fn text_of(id: &str) -> Option<&'static str> {
    let file = FILES.iter().find(|file| file.id == id);
    file.map(|file| file.text)
}

impl Experiment {
    /// The experiment of that name.
    ///
    /// # Errors
    /// If there is no such experiment.
    pub fn by_id(id: &str) -> Result<Self, UnknownExperiment> {
        let found = all().iter().find(|experiment| experiment.id == id);
        let found = found.ok_or_else(|| UnknownExperiment(id.into()));
        found.cloned()
    }
}

impl File {
    fn parse(&self) -> Result<Experiment, StudyError> {
        file::parse(Path::new(self.path), self.id, self.text, Traces::AsWritten)
    }
}
