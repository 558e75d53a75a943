//! A claim in numbers about runs over an uplink: a figure of two servers at a point, or of one.
//!
//! A check is compared for two systems: ours beside today's FAIR, and the paper's own (the kernel's bands, beside
//! Apache), as far as the study runs it. If it names no servers, [`standing`](crate::study::standing) says which ones
//! stand for SRPT and for FAIR.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::judged::{Judge, Judged, Measured, System, Value};
use super::measure::{Measure, Sides};
use crate::study::figures::{Figures, PointFigures, RunFigures, SeedFigures};
use crate::study::standing::{self, FAIR, OURS};
use crate::study::verdict::{Better, OWN_AIM, Want};

/// One claim in numbers.
#[derive(Clone, Debug)]
pub struct LinkCheck {
    /// What is compared.
    pub measure: Measure,
    /// The first server. `None`: the one that stands for SRPT.
    pub of: Option<String>,
    /// The second server. `None`: the one that stands for FAIR, or the first one at another point.
    pub over: Option<String>,
    /// The points, by the beginning of their labels.
    pub at: String,
    /// Their labels.
    pub points: Vec<String>,
    /// The point at which the second server's run is taken. `None`: the same.
    pub over_at: Option<String>,
    /// Whose requests count.
    pub requests: Requests,
    /// The second or the number of connections that the measure needs.
    pub number: Option<f64>,
    /// How the points are combined.
    pub across: Across,
    /// The expected value.
    pub want: Want,
    /// The better side of a range.
    pub better: Better,
    /// The study's servers.
    pub servers: Vec<String>,
    /// What the paper found, in its words.
    pub paper: String,
}

/// Which requests are compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Requests {
    /// All.
    All,
    /// Those of a group of clients.
    Group(String),
    /// The figure of one group over that of another.
    GroupOver(String, String),
    /// Those between two percentiles of size.
    Percentiles(f64, f64),
    /// Those for files of these sizes, the second border not included.
    Bytes(f64, f64),
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
    /// The lowest.
    Lowest,
    /// The highest over the lowest.
    HighestOverLowest,
    /// Per cent of them that are above zero.
    ShareAboveZero,
}

/// Two servers that are compared.
#[derive(Clone, Debug, PartialEq)]
struct Pair {
    system: System,
    of: String,
    over: String,
}

impl LinkCheck {
    /// Whether it is a paper's claim.
    pub fn is_papers(&self) -> bool {
        self.paper != OWN_AIM
    }

    /// The check beside the results of runs, for each system that the study runs.
    pub fn judge(&self, figures: &Figures) -> Vec<Judged> {
        let seeds = figures.points.iter().flat_map(|point| &point.seeds);
        let runs = seeds.flat_map(|seed| &seed.runs);
        let ran: BTreeSet<&str> = runs.map(|run| run.server.as_str()).collect();
        let pairs = self.pairs(&ran).into_iter();
        pairs
            .map(|pair| {
                let measured = self.measure(&pair, figures);
                self.judged(pair, measured)
            })
            .collect()
    }

    /// The check beside kept values, by what they are of.
    pub fn judge_kept(&self, kept: &BTreeMap<String, Measured>) -> Vec<Judged> {
        let pairs = self.pairs(&BTreeSet::new()).into_iter();
        pairs
            .map(|pair| {
                let measured = kept.get(&self.describe(&pair)).cloned().unwrap_or_default();
                self.judged(pair, measured)
            })
            .collect()
    }

    fn judged(&self, pair: Pair, measured: Measured) -> Judged {
        let judge = Judge {
            want: self.want,
            better: self.better,
            points: match self.across {
                Across::Each => self.points.len(),
                _ => 1,
            },
        };
        let (verdict, is_doubtful, is_split) = judge.verdict(&measured);
        Judged {
            what: self.describe(&pair),
            paper: self.paper.clone(),
            wanted: self.want.to_string(),
            system: pair.system,
            measured,
            verdict,
            is_doubtful,
            is_split,
        }
    }

    /// The servers of each system. Ours is there always, the paper's own if the study runs it.
    fn pairs(&self, ran: &BTreeSet<&str>) -> Vec<Pair> {
        let all = &self.servers;
        let first = |names: &[&str], general: &str| {
            let is_run = |name: &&&str| ran.is_empty() || ran.contains(**name);
            let planned = names
                .iter()
                .filter(|name| all.iter().any(|server| server == *name));
            let found = planned.clone().find(is_run);
            let found = found.or_else(|| names.iter().find(|name| ran.contains(**name)));
            found
                .or(planned.clone().next())
                .map_or(general.to_owned(), ToString::to_string)
        };
        let of = self.of.clone().unwrap_or_else(|| first(&OURS, "SRPT"));
        let over = match (&self.over, &self.over_at) {
            (Some(over), _) => over.clone(),
            (None, Some(_)) => of.clone(),
            (None, None) => first(&FAIR, "FAIR"),
        };
        let own = standing::papers_own(&of, all).zip(standing::papers_own(&over, all));
        let is_same = |(own_of, own_over): &(String, String)| {
            *own_of == of && (self.measure.is_of_one() || *own_over == over)
        };
        let system = match &own {
            Some(own) if is_same(own) => System::Both,
            _ => System::Ours,
        };
        let is_one = |(own_of, own_over): &(String, String)| {
            own_of == own_over && self.over_at.is_none() && !self.measure.is_of_one()
        };
        let papers = own
            .filter(|own| !is_same(own) && !is_one(own))
            .map(|(of, over)| Pair {
                system: System::Papers,
                of,
                over,
            });
        let ours = Pair { system, of, over };
        [Some(ours), papers].into_iter().flatten().collect()
    }

    fn measure(&self, pair: &Pair, figures: &Figures) -> Measured {
        let mut by_point: Vec<(&str, Vec<(u64, f64)>)> = Vec::new();
        for label in &self.points {
            let found = figures.points.iter().find(|point| point.label == *label);
            let seeds = found.map_or(&[][..], |point| &point.seeds);
            let reached = seeds.iter().filter(|seed| seed.is_load_reached());
            let values = reached.filter_map(|seed| {
                let over = self.over_of(pair, seed, &figures.points);
                let of = run(seed, &pair.of)?;
                // A void run is judged by how late its requests were started alone.
                let is_void = |run: &RunFigures| run.summary.void.is_some();
                if self.measure != Measure::LateStarts && (is_void(of) || over.is_some_and(is_void))
                {
                    return None;
                }
                let sides = Sides {
                    of,
                    over,
                    requests: &self.requests,
                    number: self.number,
                    want: self.want,
                };
                Some((seed.seed, self.measure.value(&sides)?))
            });
            by_point.push((label, values.collect()));
        }
        let missing = by_point
            .iter()
            .filter(|(_, values)| values.is_empty())
            .count();
        let values = match self.across {
            Across::Each => {
                let value = |(label, values): &(&str, Vec<(u64, f64)>)| {
                    let values: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
                    Value::of(label, &values)
                };
                by_point.iter().filter_map(value).collect()
            }
            across => across.together(&by_point).into_iter().collect(),
        };
        Measured {
            values,
            missing,
            note: None,
        }
    }

    /// The run that the first one is compared with. A server is not compared with itself at the same point.
    fn over_of<'a>(
        &self,
        pair: &Pair,
        seed: &'a SeedFigures,
        points: &'a [PointFigures],
    ) -> Option<&'a RunFigures> {
        let Some(over_at) = &self.over_at else {
            return run(seed, &pair.over).filter(|_| pair.over != pair.of);
        };
        let point = points.iter().find(|point| point.label == *over_at)?;
        let other = point.seeds.iter().find(|other| other.seed == seed.seed)?;
        run(other, &pair.over)
    }

    fn describe(&self, pair: &Pair) -> String {
        let Pair { of, over, .. } = pair;
        let at = match self.at.as_str() {
            "" => String::new(),
            at => format!(", at {at}"),
        };
        let over_at = (self.over_at.as_ref()).map_or(String::new(), |label| format!(" at {label}"));
        let requests = match &self.requests {
            Requests::All => String::new(),
            Requests::Group(group) => format!(", {group}"),
            Requests::GroupOver(group, other) => format!(", {group} over {other}"),
            Requests::Percentiles(from, to) => format!(", sizes from {from} to {to} %"),
            Requests::Bytes(from, to) => format!(", files of {from} to {to} bytes"),
        };
        let number = match (self.measure.number_key(), self.number) {
            (Some("second"), Some(number)) => format!(", after {number} s"),
            (Some(_), Some(number)) => format!(", {number}"),
            _ => String::new(),
        };
        let across = match self.across {
            Across::ShareAboveZero => ", per cent of the points with any",
            Across::Lowest => ", the lowest",
            Across::Highest => ", the highest",
            Across::Average => ", on average",
            Across::HighestOverLowest => ", the highest over the lowest",
            Across::Each => "",
        };
        let what = self.measure.describe();
        match self.measure.is_of_one() {
            true => format!("{what}, {of}{number}{requests}{at}{across}"),
            false => format!("{what}, {of} against {over}{over_at}{requests}{at}{across}"),
        }
    }
}

fn run<'a>(seed: &'a SeedFigures, server: &str) -> Option<&'a RunFigures> {
    seed.runs.iter().find(|run| run.server == server)
}

impl Across {
    /// The points together, seed by seed. `None` if there is no value.
    fn together(self, by_point: &[(&str, Vec<(u64, f64)>)]) -> Option<Value> {
        let mut by_seed: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (seed, value) in by_point.iter().flat_map(|(_, values)| values) {
            by_seed.entry(*seed).or_default().push(*value);
        }
        let most = by_seed.values().map(Vec::len).max()?;
        // A seed that lacks points would not be of the same.
        let whole = by_seed.values().filter(|values| values.len() == most);
        let values: Vec<f64> = whole.map(|values| self.of_seed(values)).collect();
        Value::of(self.word(), &values)
    }

    fn of_seed(self, values: &[f64]) -> f64 {
        let highest = values.iter().copied().fold(f64::MIN, f64::max);
        let lowest = values.iter().copied().fold(f64::MAX, f64::min);
        let count = values.len() as f64;
        match self {
            Self::Each | Self::Average => values.iter().sum::<f64>() / count,
            Self::Highest => highest,
            Self::Lowest => lowest,
            Self::HighestOverLowest => highest / lowest,
            Self::ShareAboveZero => {
                let above = values.iter().filter(|value| **value > 0.0).count();
                100.0 * above as f64 / count
            }
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Each | Self::Average => "average",
            Self::Highest => "highest",
            Self::Lowest => "lowest",
            Self::HighestOverLowest => "highest over lowest",
            Self::ShareAboveZero => "share above zero",
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn check(of: Option<&str>, over: Option<&str>, servers: &[&str]) -> LinkCheck {
        LinkCheck {
            measure: Measure::FinishedGain,
            of: of.map(Into::into),
            over: over.map(Into::into),
            at: String::new(),
            points: vec!["w1".into()],
            over_at: None,
            requests: Requests::All,
            number: None,
            across: Across::Each,
            want: Want::AtLeast(4.0),
            better: Better::More,
            servers: servers.iter().map(ToString::to_string).collect(),
            paper: "4".into(),
        }
    }

    fn pairs(check: &LinkCheck) -> Vec<(System, String)> {
        let pairs = check.pairs(&BTreeSet::new()).into_iter();
        pairs
            .map(|pair| (pair.system, format!("{}/{}", pair.of, pair.over)))
            .collect()
    }

    #[test]
    fn a_check_is_for_ours_and_for_the_papers_own() {
        let all = ["srpt", "kernel-bands", "nginx", "apache"];
        let both = [
            (System::Ours, "srpt/nginx".to_owned()),
            (System::Papers, "kernel-bands/apache".to_owned()),
        ];
        assert_eq!(pairs(&check(None, None, &all)), both);
        assert_eq!(pairs(&check(Some("srpt"), Some("nginx"), &all)), both);
        let beside_bands = check(Some("srpt"), Some("kernel-bands"), &all);
        assert_eq!(
            pairs(&beside_bands),
            [(System::Ours, "srpt/kernel-bands".to_owned())]
        );
        let ours_alone = [(System::Ours, "srpt/nginx".to_owned())];
        assert_eq!(pairs(&check(None, None, &["srpt", "nginx"])), ours_alone);
        let writers = ["writers-srpt", "writers-fair"];
        assert_eq!(
            pairs(&check(Some(writers[0]), Some(writers[1]), &writers)),
            [(System::Both, "writers-srpt/writers-fair".to_owned())]
        );
        let itself = LinkCheck {
            over_at: Some("w2".into()),
            ..check(Some("nginx"), None, &all)
        };
        assert_eq!(
            pairs(&itself),
            [
                (System::Ours, "nginx/nginx".to_owned()),
                (System::Papers, "apache/apache".to_owned())
            ]
        );
    }

    #[test]
    fn kept_values_are_found_by_what_they_are_of() {
        let check = check(None, None, &["srpt", "nginx"]);
        let what = "mean response time of finished requests, times shorter, srpt against nginx";
        let measured = Measured {
            values: vec![Value::of("w1", &[43.5]).unwrap()],
            ..Measured::default()
        };
        let judged = check.judge_kept(&[(what.to_owned(), measured)].into());
        assert_eq!((judged.len(), judged[0].what.as_str()), (1, what));
        assert_eq!(judged[0].verdict, crate::study::verdict::Verdict::Holds);
        let judged = check.judge_kept(&BTreeMap::new());
        assert_eq!(judged[0].verdict, crate::study::verdict::Verdict::Open);
    }

    #[test]
    fn points_are_taken_together_seed_by_seed() {
        let points = [
            ("a", vec![(1, 1.0), (2, 3.0)]),
            ("b", vec![(1, 3.0), (2, 0.0)]),
        ];
        let of = |across: Across| {
            across
                .together(&points)
                .map(|value| (value.low, value.high))
        };
        assert_eq!(of(Across::Average), Some((1.5, 2.0)));
        assert_eq!(of(Across::Highest), Some((3.0, 3.0)));
        assert_eq!(of(Across::Lowest), Some((0.0, 1.0)));
        assert_eq!(of(Across::ShareAboveZero), Some((50.0, 100.0)));
        assert_eq!(Across::Highest.together(&[]), None);
        let with_less = [("a", vec![(1, 1.0), (2, 9.0)]), ("b", vec![(1, 3.0)])];
        assert_eq!(Across::Highest.together(&with_less).unwrap().median, 3.0);
    }
}
