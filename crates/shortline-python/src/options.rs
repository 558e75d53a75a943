//! The settings of a simulation, by the names of `simulate`'s arguments.
//!
//! Texts are read by the parsers of `shortline sim`'s flags.

use std::fmt::Display;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use pyo3::prelude::*;
use shortline_scenario::Source;
use shortline_sched::units::{Rate, Size};
use shortline_sched::{Aging, Growing, Policy, Urgency};
use shortline_sim::{Backend, Dispatch, Greedy, Impatience, Simulation};

use crate::refused;

/// The arguments of `simulate` beside the source, as its dict has them. Times are in seconds.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    policies: String,
    rate: RateGiven,
    seed: u64,
    servers: u32,
    dispatch: Option<String>,
    guardrails: Option<f64>,
    aging: Option<f64>,
    growing: Option<f64>,
    clients: Vec<String>,
    users: Vec<String>,
    greedy: Option<String>,
    burst: u64,
    quantum: u64,
    backend_capacity: Option<String>,
    backend_thrash: Option<String>,
    start_delay: f64,
    setup: f64,
    estimate_sigma: f64,
    abort_after: Option<f64>,
    retries: u32,
    stretch: bool,
    confidence: f64,
    jobs_in_system_max: usize,
    pub warmup: Option<u64>,
    replications: Option<u32>,
}

/// A rate in bits per second, or as text.
#[derive(FromPyObject)]
pub enum RateGiven {
    Text(String),
    Bps(f64),
}

impl RateGiven {
    /// The rate, which is whole bits per second.
    pub fn rate(&self) -> PyResult<Rate> {
        match self {
            Self::Text(text) => text.parse().map_err(refused),
            Self::Bps(bps) if *bps >= 1.0 && *bps <= 1e15 => Ok(Rate::from_bps(bps.round() as u64)),
            Self::Bps(bps) => Err(refused(format!(
                "rate {bps}: want bits per second from 1 to 1e15, or text such as \"10mbit\""
            ))),
        }
    }
}

impl Options {
    /// How many replications, if that was said.
    pub fn replications(&self) -> PyResult<Option<NonZeroU32>> {
        let count = |count| at_least_one("replications", count);
        self.replications.map(count).transpose()
    }

    /// The simulation of what comes from `source`.
    pub fn simulation(&self, source: &Source, load: Option<f64>) -> PyResult<Simulation> {
        let abort_after = self.abort_after.map(|after_s| {
            Ok::<_, PyErr>(Impatience {
                after: duration("abort_after", after_s)?,
                retries: self.retries,
            })
        });
        Ok(Simulation {
            urgency: self.urgency()?,
            servers: at_least_one("servers", self.servers)?,
            dispatch: self.dispatch(load)?,
            backend: self.backend()?,
            clients: all("clients", &self.clients)?,
            users: all("users", &self.users)?,
            greedy: self.greedy(source)?,
            burst_bytes: self.burst,
            start_delay: duration("start_delay", self.start_delay)?,
            setup: duration("setup", self.setup)?,
            estimate_sigma: self.estimate_sigma,
            impatience: abort_after.transpose()?,
            quantum_bytes: self.quantum,
            stretch: self.stretch,
            jobs_in_system_max: self.jobs_in_system_max,
            confidence: self.confidence,
            seed: self.seed,
            ..Simulation::new(self.policies()?, self.rate.rate()?.bps())
        })
    }

    fn policies(&self) -> PyResult<Vec<Policy>> {
        let policies = Policy::list(&self.policies).map_err(refused)?;
        for (place, policy) in policies.iter().enumerate() {
            if policies[..place].contains(policy) {
                return Err(refused(format!("policies: {policy} twice; want each once")));
            }
        }
        Ok(policies)
    }

    fn urgency(&self) -> PyResult<Urgency> {
        match (self.aging, self.growing) {
            (None, None) => Ok(Urgency::None),
            (Some(aging), None) => Ok(Urgency::Aging(Aging::new(aging).map_err(refused)?)),
            (None, Some(growing)) => Ok(Urgency::Growing(Growing::new(growing).map_err(refused)?)),
            (Some(_), Some(_)) => Err(refused("aging and growing: want one of them")),
        }
    }

    fn dispatch(&self, load: Option<f64>) -> PyResult<Option<Dispatch>> {
        let Some(rule) = &self.dispatch else {
            return match self.guardrails {
                Some(_) => Err(refused(
                    "guardrails: want dispatch, such as \"least-work\", beside it",
                )),
                None => Ok(None),
            };
        };
        let guardrails = match (self.guardrails, load) {
            (Some(_), None) => Err(refused("guardrails: want a steady load, Steady(...)")),
            (guardrails, load) => Ok(guardrails.zip(load)),
        };
        Ok(Some(Dispatch {
            rule: read("dispatch", rule)?,
            guardrails: guardrails?,
        }))
    }

    fn backend(&self) -> PyResult<Option<Backend>> {
        match (&self.backend_capacity, &self.backend_thrash) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(refused(
                "backend_thrash: want backend_capacity beside it, a time, \"auto\" or \"off\"",
            )),
            (Some(capacity), thrash) => Ok(Some(Backend {
                capacity: read("backend_capacity", capacity)?,
                thrash: thrash
                    .as_ref()
                    .map(|thrash| read("backend_thrash", thrash))
                    .transpose()?,
            })),
        }
    }

    fn greedy(&self, source: &Source) -> PyResult<Option<Greedy>> {
        let Some(text) = &self.greedy else {
            return Ok(None);
        };
        let greedy: Greedy = read("greedy", text)?;
        Ok(Some(Greedy {
            size: Size::from_bytes(source.bytes_on_the_link(greedy.size.bytes())),
            ..greedy
        }))
    }
}

fn read<T: FromStr<Err: Display>>(argument: &str, text: &str) -> PyResult<T> {
    text.parse()
        .map_err(|error| refused(format!("{argument}: {error}")))
}

fn all<T: FromStr<Err: Display>>(argument: &str, texts: &[String]) -> PyResult<Vec<T>> {
    texts.iter().map(|text| read(argument, text)).collect()
}

fn duration(argument: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| duration.as_secs() < 1_000_000_000)
        .ok_or_else(|| {
            refused(format!(
                "{argument} {seconds}: want seconds, at least 0 and below 1e9"
            ))
        })
}

fn at_least_one(argument: &str, count: u32) -> PyResult<NonZeroU32> {
    NonZeroU32::new(count).ok_or_else(|| refused(format!("{argument} 0: want at least 1")))
}
