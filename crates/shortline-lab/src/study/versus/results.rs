//! What `versus` measured, and the ratios that follow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{OURS, Row};
use crate::study::stats::Spread;

/// The file with all measurements.
pub const RESULTS: &str = "versus.json";

/// All measurements, as kept in `versus.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// What each server says that it is.
    pub versions: BTreeMap<String, String>,
    /// In the order they were made.
    pub measured: Vec<Measured>,
    /// In the order they were made.
    pub latencies: Vec<Latency>,
}

/// The work of a server in a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The row.
    pub row: String,
    /// The server.
    pub server: String,
    /// The round, from 1.
    pub round: u64,
    /// Requests that were answered.
    pub requests: u64,
    /// How long it had load, in seconds.
    pub wall_s: f64,
    /// The server's processor time, in seconds.
    pub cpu_s: f64,
}

/// How long clients of a server waited at a given rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// The row.
    pub row: String,
    /// The server.
    pub server: String,
    /// Requests a second.
    pub per_s: f64,
    /// The median, in seconds.
    pub p50_s: f64,
    /// The 99th percentile, in seconds.
    pub p99_s: f64,
}

/// What a row came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Requests per second of processor time in the median, by server; ours first, then the best.
    pub servers: Vec<(String, f64)>,
    /// Ours over the best of the others, round by round.
    pub ratio: Spread,
}

impl Results {
    /// What a row came to; `None` if ours or all others are missing.
    pub fn outcome(&self, row: &Row) -> Option<Outcome> {
        let mut works = self.works(row);
        let ours = works.remove(OURS.to_string().as_str())?;
        let median = |works: &[f64]| Spread::of(works.iter().copied()).map(|spread| spread.median);
        let mut others: Vec<(&str, f64)> = works
            .iter()
            .filter_map(|(server, works)| Some((*server, median(works)?)))
            .collect();
        others.sort_by(|a, b| b.1.total_cmp(&a.1));
        let ratio = self.ratio_to(row, others.first()?.0)?;
        let servers = [(OURS.to_string(), median(&ours)?)].into_iter();
        let others = others
            .into_iter()
            .map(|(server, work)| (server.to_owned(), work));
        Some(Outcome {
            servers: servers.chain(others).collect(),
            ratio,
        })
    }

    /// Our work over that of another server, round by round; `None` if one of them is missing.
    pub fn ratio_to(&self, row: &Row, other: &str) -> Option<Spread> {
        let works = self.works(row);
        let (ours, other) = (works.get(OURS.to_string().as_str())?, works.get(other)?);
        Spread::of(ours.iter().zip(other).map(|(ours, other)| ours / other))
    }

    /// Requests per second of processor time in each round, by server.
    fn works(&self, row: &Row) -> BTreeMap<&str, Vec<f64>> {
        let mut works: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for measured in self.of(row) {
            let work = measured.requests as f64 / measured.cpu_s;
            works.entry(&measured.server).or_default().push(work);
        }
        works
    }

    /// Half of what the slowest server of a row did in the median, in requests a second.
    pub fn half_of_the_slowest(&self, row: &Row) -> Option<f64> {
        let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for measured in self.of(row) {
            let rate = measured.requests as f64 / measured.wall_s;
            rates.entry(&measured.server).or_default().push(rate);
        }
        let medians = rates
            .values()
            .filter_map(|rates| Spread::of(rates.iter().copied()));
        let slowest = medians.map(|spread| spread.median).reduce(f64::min)?;
        Some(slowest / 2.0)
    }

    fn of(&self, row: &Row) -> impl Iterator<Item = &Measured> {
        let name = row.name;
        self.measured
            .iter()
            .filter(move |measured| measured.row == name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn results(works: &[(&str, [u64; 3])]) -> Results {
        let mut results = Results::default();
        for (server, requests) in works {
            for (round, requests) in (1..).zip(requests) {
                results.measured.push(Measured {
                    row: "1 KB".into(),
                    server: (*server).into(),
                    round,
                    requests: *requests,
                    wall_s: 2.0,
                    cpu_s: 1.0,
                });
            }
        }
        results.measured.push(Measured {
            row: "10 KB".into(),
            server: "nginx".into(),
            round: 1,
            requests: 1,
            wall_s: 2.0,
            cpu_s: 1.0,
        });
        results
    }

    #[test]
    fn ours_is_compared_with_the_best_of_the_others_round_by_round() {
        let row = Row::named("1 KB").unwrap();
        let all = [
            ("auto", [90, 100, 240]),
            ("nginx", [50, 50, 50]),
            ("h2o", [100, 100, 120]),
        ];
        let outcome = results(&all).outcome(&row).unwrap();
        let names: Vec<&str> = outcome
            .servers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["auto", "h2o", "nginx"]);
        let ratio = outcome.ratio;
        assert_eq!((ratio.low, ratio.median, ratio.high), (0.9, 1.0, 2.0));
        assert_eq!(results(&all[..1]).outcome(&row), None);
        assert_eq!(results(&all[1..]).outcome(&row), None);
    }

    #[test]
    fn latency_is_taken_at_half_of_what_the_slowest_does() {
        let row = Row::named("1 KB").unwrap();
        let all = [("auto", [400, 400, 400]), ("nginx", [100, 300, 100])];
        assert_eq!(results(&all).half_of_the_slowest(&row), Some(25.0));
        assert_eq!(Results::default().half_of_the_slowest(&row), None);
    }
}
