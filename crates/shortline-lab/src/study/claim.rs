//! The claims of a paper's figure or table: its prose clause by clause, and each clause in numbers that can be compared
//! with our own.
//!
//! A clause without a check cannot be written ([`file`](super::file) refuses it). Our own aims stand beside the clauses
//! and do not count.
#![deny(clippy::disallowed_methods)]

mod judged;
mod link;
mod measure;

use serde::Deserialize;

use super::figures::Figures;
use super::kept_claims::KeptClaims;
use super::shop::Outcome;
use super::shop::check::Check as ShopCheck;
use super::verdict::Verdict;

pub use judged::{Judge, Judged, Measured, System, Value};
pub use link::{Across, LinkCheck, Requests};
pub use measure::Measure;

/// A figure or table of a paper.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The paper and the number.
    pub name: String,
    /// What it claims, in words: its clauses together.
    pub claim: String,
    /// The clauses, each with its checks. None in a study of our own aims.
    pub clauses: Vec<Clause>,
    /// Our own aims.
    pub aims: Vec<Check>,
    /// What it draws.
    pub shows: Vec<Plot>,
}

/// A part of a claim's prose.
#[derive(Clone, Debug)]
pub struct Clause {
    /// The prose.
    pub says: String,
    /// The same in numbers. At least one.
    pub checks: Vec<Check>,
}

/// One claim in numbers.
#[derive(Clone, Debug)]
pub enum Check {
    /// About runs over an uplink.
    Link(LinkCheck),
    /// About runs with the bookstore.
    Shop(ShopCheck),
}

/// The results of an experiment, which checks are compared with.
#[derive(Clone, Copy)]
pub enum Runs<'a> {
    /// Runs over an uplink.
    Link(&'a Figures),
    /// Runs with the bookstore.
    Shop(&'a [Outcome]),
    /// The kept values of runs that are elsewhere.
    Kept(&'a KeptClaims),
}

/// A figure beside our results.
#[derive(Clone, Debug, Default)]
pub struct JudgedFigure {
    /// Clause by clause.
    pub clauses: Vec<JudgedClause>,
    /// Our own aims.
    pub aims: Vec<Judged>,
}

/// A clause beside our results.
#[derive(Clone, Debug)]
pub struct JudgedClause {
    /// The prose.
    pub says: String,
    /// Its checks, for each system.
    pub checks: Vec<Judged>,
}

impl Figure {
    /// The figure beside results.
    pub fn judge(&self, runs: Runs<'_>) -> JudgedFigure {
        let all = |checks: &[Check]| checks.iter().flat_map(|check| check.judge(runs)).collect();
        let clause = |clause: &Clause| JudgedClause {
            says: clause.says.clone(),
            checks: all(&clause.checks),
        };
        JudgedFigure {
            clauses: self.clauses.iter().map(clause).collect(),
            aims: all(&self.aims),
        }
    }
}

impl Check {
    fn judge(&self, runs: Runs<'_>) -> Vec<Judged> {
        match (self, runs) {
            (Self::Link(check), Runs::Link(figures)) => check.judge(figures),
            (Self::Link(check), Runs::Kept(kept)) => check.judge_kept(&kept.values),
            (Self::Shop(check), Runs::Shop(all)) => vec![check.judge(all)],
            (Self::Shop(check), Runs::Kept(kept)) => vec![check.judge_kept(&kept.values)],
            (Self::Link(_), Runs::Shop(_)) | (Self::Shop(_), Runs::Link(_)) => Vec::new(),
        }
    }
}

impl JudgedFigure {
    /// The verdict on a system: of its clauses together. Nothing was measured of a figure of our own aims.
    pub fn verdict(&self, system: System) -> Verdict {
        let clauses = self.clauses.iter().map(|clause| clause.verdict(system));
        Verdict::together(&clauses.collect::<Vec<_>>())
    }

    /// Names the folder of the results in each comparison.
    pub fn name(&mut self, folder: &str) {
        let clauses = self
            .clauses
            .iter_mut()
            .flat_map(|clause| &mut clause.checks);
        for check in clauses.chain(&mut self.aims) {
            check.what += &format!(" ({folder})");
        }
    }

    /// Adds the same figure beside other results.
    pub fn add(&mut self, other: Self) {
        let known = self.clauses.len();
        for (place, clause) in other.clauses.into_iter().enumerate() {
            match self.clauses.get_mut(place).filter(|_| place < known) {
                Some(own) => own.checks.extend(clause.checks),
                None => self.clauses.push(clause),
            }
        }
        self.aims.extend(other.aims);
    }

    /// All comparisons, those of the clauses first.
    pub fn all(&self) -> impl Iterator<Item = &Judged> {
        let clauses = self.clauses.iter().flat_map(|clause| &clause.checks);
        clauses.chain(&self.aims)
    }
}

impl JudgedClause {
    /// The verdict on a system: of its checks together.
    pub fn verdict(&self, system: System) -> Verdict {
        let of_system = self
            .checks
            .iter()
            .filter(|check| check.system.counts_for(system));
        let verdicts: Vec<Verdict> = of_system.map(|check| check.verdict).collect();
        Verdict::together(&verdicts)
    }
}

/// What a figure draws. The lines of the first five have a value for each point of the experiment, and
/// the sixth one for each group of clients. The others are drawn for each point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plot {
    /// Mean response time.
    Mean,
    /// Mean slowdown.
    Slowdown,
    /// Requests finished per second.
    Requests,
    /// Bytes of finished requests.
    Bytes,
    /// Mean response time of finished requests, a plot for each group of clients.
    MeanByGroup,
    /// How many times shorter that is than FAIR's, over all points, by group of clients.
    GainByGroup,
    /// Response time by the second of arrival.
    OverTime,
    /// Time to first byte by the second of arrival.
    FirstByte,
    /// Share of requests that take longer.
    Complementary,
    /// Mean response time by size.
    BySize,
    /// Mean response time by percentile of size.
    ByPercentile,
    /// Variance by percentile of size.
    Variance,
    /// Starvation stretch against FAIR.
    Stretch,
    /// Connections over time.
    Connections,
    /// How long a packet waits before the narrow link, over time.
    Queue,
    /// The rate that our server found, beside the link's, over time.
    Rate,
    /// The total of SYNs dropped, over time.
    Drops,
}
