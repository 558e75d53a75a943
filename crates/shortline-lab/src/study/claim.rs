//! The claims of a paper's figure or table, in a form that can be compared with our own figures: a ratio
//! of two servers at a point, and its least or greatest value.
//!
//! If a claim names no servers, `standing` says which ones stand for SRPT and for FAIR.
#![deny(clippy::disallowed_methods)]

mod measure;

use serde::Deserialize;

use super::figures::{Figures, RunFigures, SeedFigures};
use super::shop::check::Check as ShopCheck;
use super::standing::{FAIR, OURS};
use super::verdict::{Compared, OWN_AIM, Verdict, Want};
use crate::study::stats::Spread;

pub use measure::Measure;

/// A figure or table of a paper.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The paper and the number.
    pub name: String,
    /// What it claims, in words.
    pub claim: String,
    /// The claim in numbers.
    pub checks: Vec<Check>,
    /// The claims in numbers about experiments with the bookstore.
    pub shop_checks: Vec<ShopCheck>,
    /// What it draws.
    pub shows: Vec<Plot>,
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

/// One claim in numbers.
#[derive(Clone, Debug)]
pub struct Check {
    /// What is compared.
    pub measure: Measure,
    /// The first server. `None`: the one that stands for SRPT.
    pub of: Option<String>,
    /// The second server. `None`: the one that stands for FAIR.
    pub over: Option<String>,
    /// The points, by the beginning of their labels.
    pub at: String,
    /// Whose requests count.
    pub clients: Clients,
    /// How the points are combined.
    pub across: Across,
    /// The expected value.
    pub want: Want,
    /// What the paper found, in its words.
    pub paper: String,
}

/// Whose requests are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clients {
    /// All clients'.
    All,
    /// Those of a group of clients.
    Group(String),
    /// The figure of one group over that of another.
    GroupOver(String, String),
}

/// How the figures of several points are compared with a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Across {
    /// One by one.
    Each,
    /// Their mean.
    Average,
    /// The highest.
    Highest,
    /// The highest over the lowest.
    HighestOverLowest,
}

impl Check {
    /// Whether it is a paper's claim.
    pub fn is_papers(&self) -> bool {
        self.paper != OWN_AIM
    }

    /// The claim beside our results.
    pub fn compare(&self, figures: &Figures) -> Compared {
        let points = figures.points.iter();
        let points = points.filter(|point| point.label.starts_with(&self.at));
        let mut names = None;
        let mut ours = Vec::new();
        for point in points {
            let reached = point.seeds.iter().filter(|seed| seed.is_load_reached());
            let values = reached.filter_map(|seed| {
                let (of, over) = self.pair(seed)?;
                names.get_or_insert((of.server.clone(), over.server.clone()));
                self.value(of, over)
            });
            if let Some(spread) = Spread::of(values) {
                ours.push((point.label.clone(), spread.median));
            }
        }
        let ours = self.across.together(ours);
        let good = ours
            .iter()
            .filter(|(_, value)| self.want.is_met(*value))
            .count();
        let verdict = Verdict::of(good, ours.len());
        Compared {
            what: self.describe(names),
            ours,
            verdict,
        }
    }

    fn value(&self, of: &RunFigures, over: &RunFigures) -> Option<f64> {
        let in_group = |group| self.measure.value_in(group, of, over);
        match &self.clients {
            Clients::All => self.measure.value(of, over),
            Clients::Group(group) => in_group(group),
            Clients::GroupOver(group, other) => Some(in_group(group)? / in_group(other)?),
        }
    }

    fn describe(&self, names: Option<(String, String)>) -> String {
        let (of, over) = names.unwrap_or_else(|| {
            let name = |name: Option<&str>, general: &str| name.unwrap_or(general).to_owned();
            let (of, over) = (self.of.as_deref(), self.over.as_deref());
            (name(of, "SRPT"), name(over, "FAIR"))
        });
        let at = match self.at.as_str() {
            "" => String::new(),
            at => format!(", at {at}"),
        };
        let clients = match &self.clients {
            Clients::All => String::new(),
            Clients::Group(group) => format!(", {group}"),
            Clients::GroupOver(group, other) => format!(", {group} over {other}"),
        };
        match self.measure {
            Measure::OverOptimum
            | Measure::SynDrops
            | Measure::LateStarts
            | Measure::FirstSynDrop
            | Measure::QueueBack
            | Measure::UsedAgain => {
                format!("{}, {of}{clients}{at}", self.measure.describe())
            }
            _ => format!(
                "{}, {of} against {over}{clients}{at}",
                self.measure.describe()
            ),
        }
    }

    fn pair<'a>(&self, seed: &'a SeedFigures) -> Option<(&'a RunFigures, &'a RunFigures)> {
        let of = run(seed, self.of.as_deref(), &OURS)?;
        let over = run(seed, self.over.as_deref(), &FAIR)?;
        (of.server != over.server).then_some((of, over))
    }
}

fn run<'a>(seed: &'a SeedFigures, named: Option<&str>, usual: &[&str]) -> Option<&'a RunFigures> {
    let names = named.as_ref().map_or(usual, std::slice::from_ref);
    let find = |name: &&str| seed.runs.iter().find(|run| run.server == *name);
    names.iter().find_map(find)
}

impl Across {
    fn together(self, ours: Vec<(String, f64)>) -> Vec<(String, f64)> {
        let values = || ours.iter().map(|(_, value)| *value);
        let one = |name: &str, value| vec![(name.to_owned(), value)];
        match self {
            _ if ours.is_empty() => ours,
            Self::Each => ours,
            Self::Average => one("average", values().sum::<f64>() / ours.len() as f64),
            Self::Highest => one("highest", values().fold(f64::MIN, f64::max)),
            Self::HighestOverLowest => {
                let highest = values().fold(f64::MIN, f64::max);
                let lowest = values().fold(f64::MAX, f64::min);
                one("highest over lowest", highest / lowest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_held_against_a_claim_one_by_one_or_together() {
        let ours = || vec![("a".to_owned(), 1.0), ("b".to_owned(), 3.0)];
        let values = |across: Across| -> Vec<f64> {
            let together = across.together(ours()).into_iter();
            together.map(|(_, value)| value).collect()
        };
        assert_eq!(values(Across::Each), [1.0, 3.0]);
        assert_eq!(values(Across::Average), [2.0]);
        assert_eq!(values(Across::Highest), [3.0]);
        assert_eq!(values(Across::HighestOverLowest), [3.0]);
        assert_eq!(Across::Highest.together(Vec::new()), []);
    }
}
