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
    /// Requests that were answered; of long bodies, as many as the bytes that came are.
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
    /// The other server that did most requests per second of time.
    pub fastest: String,
    /// Ours over that, round by round.
    pub speed: Spread,
}

/// A figure of each server, in each round.
type ByServer<'a> = BTreeMap<&'a str, Vec<f64>>;

impl Results {
    /// What a row came to; `None` if ours or all others are missing.
    pub fn outcome(&self, row: &Row) -> Option<Outcome> {
        let (works, speeds) = (self.works(row), self.speeds(row));
        let servers = medians(&works).into_iter();
        let (ours, others): (Vec<_>, Vec<_>) = servers.partition(|(server, _)| is_ours(server));
        let mut by_speed = medians(&speeds).into_iter();
        let (fastest, _) = by_speed.find(|(server, _)| !is_ours(server))?;
        let owned = |(server, work): (&str, f64)| (server.to_owned(), work);
        Some(Outcome {
            ratio: ratio(&works, others.first()?.0)?,
            speed: ratio(&speeds, fastest)?,
            fastest: fastest.to_owned(),
            servers: ours.into_iter().chain(others).map(owned).collect(),
        })
    }

    /// Our work over that of another server, round by round; `None` if one of them is missing.
    pub fn ratio_to(&self, row: &Row, other: &str) -> Option<Spread> {
        ratio(&self.works(row), other)
    }

    /// Half of what the slowest server of a row did in the median, in requests a second.
    pub fn half_of_the_slowest(&self, row: &Row) -> Option<f64> {
        let (_, slowest) = *medians(&self.speeds(row)).last()?;
        Some(slowest / 2.0)
    }

    /// Requests per second of processor time.
    fn works(&self, row: &Row) -> ByServer<'_> {
        self.by_server(row, |measured| measured.cpu_s)
    }

    /// Requests per second.
    fn speeds(&self, row: &Row) -> ByServer<'_> {
        self.by_server(row, |measured| measured.wall_s)
    }

    fn by_server(&self, row: &Row, seconds: impl Fn(&Measured) -> f64) -> ByServer<'_> {
        let mut all = ByServer::new();
        for measured in self.of(row) {
            let figure = measured.requests as f64 / seconds(measured);
            all.entry(&measured.server).or_default().push(figure);
        }
        all
    }

    fn of(&self, row: &Row) -> impl Iterator<Item = &Measured> {
        let name = row.name;
        self.measured
            .iter()
            .filter(move |measured| measured.row == name)
    }
}

fn is_ours(server: &str) -> bool {
    server == OURS.to_string()
}

/// The median of each server, the highest first.
fn medians<'a>(all: &ByServer<'a>) -> Vec<(&'a str, f64)> {
    let median = |figures: &[f64]| Some(Spread::of(figures.iter().copied())?.median);
    let mut medians: Vec<_> = all
        .iter()
        .filter_map(|(server, figures)| Some((*server, median(figures)?)))
        .collect();
    medians.sort_by(|a, b| b.1.total_cmp(&a.1));
    medians
}

/// Ours over another server's, round by round.
fn ratio(all: &ByServer<'_>, other: &str) -> Option<Spread> {
    let (ours, other) = (all.get(OURS.to_string().as_str())?, all.get(other)?);
    Spread::of(ours.iter().zip(other).map(|(ours, other)| ours / other))
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
        assert_eq!((outcome.fastest.as_str(), outcome.speed), ("h2o", ratio));
        assert_eq!(results(&all[..1]).outcome(&row), None);
        assert_eq!(results(&all[1..]).outcome(&row), None);
    }

    #[test]
    fn the_fastest_need_not_do_most_work() {
        let row = Row::named("1 KB").unwrap();
        let mut results = results(&[("auto", [100; 3]), ("nginx", [80; 3]), ("h2o", [50; 3])]);
        let of_h2o = results
            .measured
            .iter_mut()
            .filter(|measured| measured.server == "h2o");
        of_h2o.for_each(|measured| measured.wall_s = 0.5);
        let outcome = results.outcome(&row).unwrap();
        assert_eq!(
            (outcome.servers[1].0.as_str(), outcome.ratio.median),
            ("nginx", 1.25)
        );
        assert_eq!(
            (outcome.fastest.as_str(), outcome.speed.median),
            ("h2o", 0.5)
        );
    }

    #[test]
    fn latency_is_taken_at_half_of_what_the_slowest_does() {
        let row = Row::named("1 KB").unwrap();
        let all = [("auto", [400, 400, 400]), ("nginx", [100, 300, 100])];
        assert_eq!(results(&all).half_of_the_slowest(&row), Some(25.0));
        assert_eq!(Results::default().half_of_the_slowest(&row), None);
    }
}
