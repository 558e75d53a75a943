//! What an experiment over a saturated uplink does: its variants, and the plan of one run
//! as it is kept with the results.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_load::workload::Schedule;
use shortline_sched::Policy;
use shortline_sched::units::Rate;

use crate::LabError;
use crate::server::{OursMode, Server, Speech};

/// The uplink's rate unless a variant or `--rate` says otherwise: the 10 Mbit/s of the
/// papers' test bed.
const RATE_BPS: u64 = 10_000_000;

/// One way to run the overload.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// How long arrivals last, in seconds.
    pub seconds: u64,
    /// The servers, in turn.
    pub servers: &'static [Server],
    pub(super) rate_bps: u64,
    pub(super) requests_per_connection: Option<u32>,
    /// What the link carries for a request beside its body and the heads of its packets,
    /// as measured before: so that a load of 1.2 is one whatever the protocol costs.
    pub(super) per_request_bytes: u64,
    pub(super) speech: Speech,
    /// On loopback, without an uplink that the kernel limits: ours alone.
    pub(super) loopback: bool,
}

const OURS_SRPT: Server = Server::Ours(OursMode::Paced(Policy::Srpt));
const OURS_FAIR: Server = Server::Ours(OursMode::Paced(Policy::Fair));
const OURS_SLOTS: Server = Server::Ours(OursMode::Slots(Policy::Srpt));
const OURS_OFF: Server = Server::Ours(OursMode::Off);

pub(super) const W1: Variant = Variant {
    seconds: 100,
    servers: &[
        OURS_SRPT,
        OURS_FAIR,
        OURS_OFF,
        Server::Nginx,
        Server::Apache,
    ],
    rate_bps: RATE_BPS,
    requests_per_connection: Some(1),
    per_request_bytes: 460,
    speech: Speech {
        tls: false,
        http2: false,
    },
    loopback: false,
};

pub(super) const W1_K5: Variant = Variant {
    requests_per_connection: Some(5),
    per_request_bytes: 300,
    ..W1
};

pub(super) const W1_TLS: Variant = Variant {
    speech: Speech {
        tls: true,
        http2: false,
    },
    per_request_bytes: 1950,
    ..W1
};

pub(super) const W1_H2: Variant = Variant {
    speech: Speech {
        tls: false,
        http2: true,
    },
    per_request_bytes: 570,
    ..W1
};

pub(super) const W1_H2_SHARED: Variant = Variant {
    requests_per_connection: None,
    per_request_bytes: 100,
    ..W1_H2
};

pub(super) const W1_H2_TLS: Variant = Variant {
    speech: Speech {
        tls: true,
        http2: true,
    },
    per_request_bytes: 2100,
    ..W1
};

pub(super) const W1_100MBIT: Variant = Variant {
    seconds: 50,
    rate_bps: 100_000_000,
    ..W1
};

pub(super) const W1_SLOTS: Variant = Variant {
    servers: &[OURS_SLOTS, OURS_OFF, Server::Nginx],
    ..W1
};

pub(super) const DEMO: Variant = Variant {
    seconds: 30,
    servers: &[OURS_FAIR, OURS_SRPT],
    loopback: true,
    ..W1
};

/// The demo's overload is milder at its low end and stronger at its high end than W1, so
/// that 30 s show it twice.
const DEMO_SCHEDULE: Schedule = Schedule {
    name: "demo",
    low_s: 5.0,
    high_s: 10.0,
    low_load: 0.4,
    high_load: 1.4,
};

impl Variant {
    pub(super) fn needs_root(&self) -> bool {
        !self.loopback
    }

    /// Low load and overload in turn.
    pub(super) fn schedule(&self) -> Schedule {
        if self.loopback {
            DEMO_SCHEDULE
        } else {
            Schedule::by_name("w1").expect("invariant: Table I has w1")
        }
    }

    fn takes(&self, server: Server) -> bool {
        !self.loopback || matches!(server, Server::Ours(OursMode::Paced(_)))
    }
}

/// What was asked for, kept as `plan.json` with the results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The experiment.
    pub experiment: String,
    /// The uplink's rate.
    pub rate: Rate,
    /// How long arrivals last, in seconds.
    pub seconds: u64,
    /// A run each.
    pub seeds: Vec<u64>,
    /// The servers' names, in the order they ran.
    pub servers: Vec<String>,
    /// What each server says it is.
    pub versions: Vec<String>,
    /// The kernel of the machine.
    pub kernel: String,
    /// Congestion control at both ends.
    pub congestion_control: String,
    /// How many requests a connection serves; without it a few are shared by all.
    pub requests_per_connection: Option<u32>,
    /// Whether over TLS.
    pub tls: bool,
    /// Whether over HTTP/2.
    pub http2: bool,
    /// When overload begins and ends, in seconds after the start.
    pub overloads_s: Vec<(f64, f64)>,
}

impl Plan {
    /// The plan of a variant with what the command line changes.
    ///
    /// # Errors
    /// A server that the variant cannot run.
    pub fn new(
        experiment: &'static str,
        variant: &Variant,
        seconds: Option<u64>,
        seeds: Option<u64>,
        servers: Vec<Server>,
        rate: Option<Rate>,
    ) -> Result<Self, LabError> {
        let servers = if servers.is_empty() {
            variant.servers.to_vec()
        } else {
            servers
        };
        if let Some(server) = servers.iter().find(|server| !variant.takes(**server)) {
            return Err(LabError::ServerNotInExperiment {
                experiment,
                server: server.to_string(),
                allowed: "ours by policy: srpt, fair, fifo, sjf, psjf, las".into(),
            });
        }
        let seconds = seconds.unwrap_or(variant.seconds);
        Ok(Self {
            experiment: experiment.into(),
            rate: rate.unwrap_or(Rate::from_bps(variant.rate_bps)),
            seconds,
            seeds: (1..=seeds.unwrap_or(1)).collect(),
            servers: servers.iter().map(ToString::to_string).collect(),
            versions: Vec::new(),
            kernel: String::new(),
            congestion_control: String::new(),
            requests_per_connection: variant.requests_per_connection,
            tls: variant.speech.tls,
            http2: variant.speech.http2,
            overloads_s: overloads_s(&variant.schedule(), seconds as f64),
        })
    }

    /// How long arrivals last.
    pub fn length(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// The plan kept in `folder`.
    ///
    /// # Errors
    /// If there is none or it cannot be read.
    pub fn read(folder: &Path) -> Result<Self, LabError> {
        read_json(&folder.join("plan.json"))
    }

    /// Keeps the plan in `folder`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), LabError> {
        write_json(&folder.join("plan.json"), self)
    }
}

/// When the overloads of `schedule` begin and end within the first `seconds`.
fn overloads_s(schedule: &Schedule, seconds: f64) -> Vec<(f64, f64)> {
    let period_s = schedule.low_s + schedule.high_s;
    let overload = |period: f64| {
        let begin_s = period * period_s + schedule.low_s;
        (begin_s, seconds.min(begin_s + schedule.high_s))
    };
    let all = (0..).map(|period| overload(f64::from(period)));
    all.take_while(|(begin_s, _)| *begin_s < seconds).collect()
}

/// Reads a kept JSON file.
///
/// # Errors
/// With the file's name.
pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, LabError> {
    let text = std::fs::read_to_string(path).map_err(LabError::file(path))?;
    serde_json::from_str(&text).map_err(LabError::kept(path))
}

/// Writes a JSON file to keep.
///
/// # Errors
/// With the file's name.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), LabError> {
    let text = serde_json::to_string_pretty(value).map_err(LabError::kept(path))?;
    std::fs::write(path, text + "\n").map_err(LabError::file(path))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn overloads_are_the_second_halves_of_w1() {
        let schedule = W1.schedule();
        assert_eq!(overloads_s(&schedule, 100.0), [(25.0, 50.0), (75.0, 100.0)]);
        assert_eq!(overloads_s(&schedule, 30.0), [(25.0, 30.0)]);
        assert_eq!(overloads_s(&schedule, 20.0), []);
    }

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan::new("w1", &W1, Some(7), Some(2), Vec::new(), None).unwrap();
        plan.write(folder.path()).unwrap();
        let read = Plan::read(folder.path()).unwrap();
        assert_eq!((read.seconds, read.seeds), (7, vec![1, 2]));
        assert_eq!(read.servers, ["srpt", "fair", "off", "nginx", "apache"]);
        assert_eq!(read.rate, Rate::from_bps(10_000_000));
    }
}
