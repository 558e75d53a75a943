//! A gate before a web application beside others that hold requests back: what is run.
//!
//! The application is a model, so that every door meets the same one, and so that neither the machine nor a
//! runtime decides. It shares so many servers among all requests inside, as a processor or a database does,
//! and beyond a knee each further request costs a share of the throughput:
//!
//! ```text
//! work per second = min(inside, servers) / (1 + fall * max(inside - knee, 0))
//! ```
//!
//! Requests come in an open loop, Poisson, at 1.3 and 0.6 times what the application can do, in turns. Which
//! come when, and the work of each, depends on the seed alone. All are drained, and each is counted.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use shortline_load::trace::Request;
use thiserror::Error;

/// The loads in turns.
pub const LOADS: [f64; 2] = [1.3, 0.6];
/// The most connections of `haproxy-N`.
const HAPROXY_MAX: u32 = 10_000;
/// The length of a response's body, in bytes.
pub const BODY: &str = "done\n";

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// What is before the application, in turn.
    pub doors: Vec<Door>,
    /// The application.
    pub model: Model,
    /// How long each load lasts.
    pub phase: Duration,
    /// How long requests come.
    pub length: Duration,
}

/// The application.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Requests that are served at once without slowing each other down.
    pub servers: f64,
    /// More inside than this cost throughput.
    pub knee: f64,
    /// The share that each costs.
    pub fall: f64,
    /// The types of requests.
    pub types: Vec<RequestType>,
}

/// A type of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestType {
    /// Its path.
    pub path: String,
    /// The mean work of one, in seconds.
    pub service_s: f64,
    /// Its share of the requests, by weight.
    pub share: f64,
}

/// What is before the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Door {
    /// Nothing.
    Direct,
    /// `shortline gate http` in the order of arrival.
    Fifo,
    /// `shortline gate http` as it is by default.
    Shortline,
    /// HAProxy, whose server has so many requests at once. The others queue.
    Haproxy(u32),
    /// Envoy with its adaptive concurrency.
    Envoy,
    /// Netflix' gradient, in the application, as that library is used.
    Gradient,
}

/// No such door.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "door `{0}`: want direct, fifo, shortline, envoy, gradient, or haproxy-N with N of 1 to {HAPROXY_MAX}"
)]
pub struct DoorError(String);

impl Design {
    /// The requests of a seed.
    pub fn requests(&self, seed: u64) -> Vec<Request> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let full_per_s = self.model.servers / self.model.mean_s();
        let (end_s, phase_s) = (self.length.as_secs_f64(), self.phase.as_secs_f64());
        let mut requests = Vec::new();
        let mut at_s = 0.0;
        loop {
            let load = LOADS[(at_s / phase_s) as usize % LOADS.len()];
            at_s -= (1.0 - rng.random::<f64>()).ln() / (load * full_per_s);
            if at_s >= end_s {
                return requests;
            }
            let kind = self.model.draw(&mut rng);
            let work_s = kind.service_s * rng.random_range(0.5..1.5);
            requests.push(Request {
                at_ns: (at_s * 1e9) as u64,
                path: format!("{}?us={:.0}", kind.path, work_s * 1e6),
                bytes: BODY.len() as u64,
            });
        }
    }

    /// How long one seed takes, in words.
    pub fn length(&self) -> String {
        let minutes = self.length.as_secs_f64() * self.doors.len() as f64 / 60.0;
        format!(
            "{} doors, about {minutes:.0} minutes and their draining for each seed",
            self.doors.len()
        )
    }
}

impl Model {
    /// Work per second with so many inside, in seconds.
    pub fn work_rate(&self, inside: usize) -> f64 {
        let inside = inside as f64;
        inside.min(self.servers) / (1.0 + self.fall * (inside - self.knee).max(0.0))
    }

    /// The mean work of a request, in seconds.
    pub fn mean_s(&self) -> f64 {
        let shares: f64 = self.types.iter().map(|kind| kind.share).sum();
        let work = self.types.iter().map(|kind| kind.share * kind.service_s);
        work.sum::<f64>() / shares
    }

    /// The type of which a request has most work.
    pub fn longest(&self) -> &RequestType {
        let longest = self
            .types
            .iter()
            .max_by(|a, b| a.service_s.total_cmp(&b.service_s));
        longest.expect("invariant: a model has a type")
    }

    fn draw(&self, rng: &mut ChaCha8Rng) -> &RequestType {
        let shares: f64 = self.types.iter().map(|kind| kind.share).sum();
        let mut left = rng.random_range(0.0..shares);
        let found = self.types.iter().find(|kind| {
            left -= kind.share;
            left < 0.0
        });
        found.unwrap_or_else(|| self.longest())
    }
}

impl FromStr for Door {
    type Err = DoorError;

    fn from_str(text: &str) -> Result<Self, DoorError> {
        let wrong = || DoorError(text.to_owned());
        Ok(match text {
            "direct" => Self::Direct,
            "fifo" => Self::Fifo,
            "shortline" => Self::Shortline,
            "envoy" => Self::Envoy,
            "gradient" => Self::Gradient,
            _ => {
                let size = text.strip_prefix("haproxy-").ok_or_else(wrong)?;
                let size = size
                    .parse()
                    .ok()
                    .filter(|size| (1..=HAPROXY_MAX).contains(size));
                Self::Haproxy(size.ok_or_else(wrong)?)
            }
        })
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.pad("direct"),
            Self::Fifo => f.pad("fifo"),
            Self::Shortline => f.pad("shortline"),
            Self::Haproxy(size) => f.pad(&format!("haproxy-{size}")),
            Self::Envoy => f.pad("envoy"),
            Self::Gradient => f.pad("gradient"),
        }
    }
}

impl TryFrom<String> for Door {
    type Error = DoorError;

    fn try_from(text: String) -> Result<Self, DoorError> {
        text.parse()
    }
}

impl From<Door> for String {
    fn from(door: Door) -> Self {
        door.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn design() -> Design {
        let kind = |path: &str, service_s, share| RequestType {
            path: path.to_owned(),
            service_s,
            share,
        };
        Design {
            doors: vec![Door::Direct],
            model: Model {
                servers: 4.0,
                knee: 8.0,
                fall: 0.01,
                types: vec![kind("/item", 0.004, 0.9), kind("/report", 0.4, 0.1)],
            },
            phase: Duration::from_secs(10),
            length: Duration::from_secs(2000),
        }
    }

    #[test]
    fn doors_are_called_what_they_are_read_as() {
        for name in [
            "direct",
            "fifo",
            "shortline",
            "haproxy-8",
            "envoy",
            "gradient",
        ] {
            assert_eq!(name.parse::<Door>().unwrap().to_string(), name);
        }
        for wrong in ["", "haproxy", "haproxy-0", "haproxy-x", "nginx"] {
            assert!(wrong.parse::<Door>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn requests_ask_for_1_3_and_0_6_of_what_can_be_done_in_turns() {
        let design = design();
        let requests = design.requests(1);
        assert_eq!(requests, design.requests(1));
        let mut asked_s = [0.0; 2];
        for request in &requests {
            let work_us: f64 = request.path.split_once("us=").unwrap().1.parse().unwrap();
            asked_s[(request.at_ns / 10_000_000_000) as usize % 2] += work_us / 1e6;
        }
        for (asked_s, load) in asked_s.into_iter().zip(LOADS) {
            let measured = asked_s / 1000.0 / design.model.servers;
            assert!(
                (measured / load - 1.0).abs() < 0.05,
                "{measured} for {load}"
            );
        }
    }

    #[test]
    fn the_model_does_less_beyond_its_knee() {
        let model = design().model;
        assert_eq!(model.work_rate(2), 2.0);
        assert_eq!(model.work_rate(8), 4.0);
        assert_eq!(model.work_rate(108), 2.0);
        assert_eq!(model.longest().path, "/report");
    }
}
