//! The queues that the flags of `shortline model` describe.

use std::str::FromStr;

use serde::{Serialize, Serializer};
use shortline_load::workload::{FILES_DEFAULT, Schedule, world_cup_like};
use shortline_sched::units::Rate;
use shortline_sim::dist::Distribution;
use shortline_sim::model::{Alternating, Analysis, Form, ModelError, Phases, Queue};
use shortline_sim::wire::WireModel;

use crate::error::CommandError;

/// Sizes and traffic of a queue.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Setting {
    pub dist: Distribution,
    /// The mean load.
    pub load: f64,
    #[serde(flatten, serialize_with = "schedule")]
    pub alternating: Option<(Phases, Rate)>,
}

/// A queue that can be solved.
pub(super) enum SomeQueue {
    Steady(Queue),
    Alternating(Alternating),
}

/// `LOW_S,HIGH_S,LOW_LOAD,HIGH_LOAD`, spans in seconds.
#[derive(Clone, Debug)]
pub(super) struct PhasesFlag(pub Phases);

/// Text that is no schedule of loads.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{text}`: want four numbers, the seconds of low and of high load and the two loads, such as \
     25,25,0.2,1.2"
)]
pub(super) struct PhasesFlagError {
    text: String,
}

impl Setting {
    pub(super) fn steady(dist: &Distribution, load: f64) -> Self {
        Self {
            dist: dist.clone(),
            load,
            alternating: None,
        }
    }

    pub(super) fn alternating(dist: &Distribution, phases: Phases, rate: Rate) -> Self {
        let work = phases.low_span * phases.low_load + phases.high_span * phases.high_load;
        Self {
            dist: dist.clone(),
            load: work / (phases.low_span + phases.high_span),
            alternating: Some((phases, rate)),
        }
    }

    pub(super) fn queue(&self) -> Result<SomeQueue, CommandError> {
        let dist = self.dist.clone();
        let queue = match self.alternating {
            None => Queue::new(dist, self.load).map(SomeQueue::Steady),
            Some((phases, rate)) => {
                // Sizes are bytes, so times are counted in bytes that the link carries.
                let phases = Phases {
                    low_span: phases.low_span * bytes_per_s(rate),
                    high_span: phases.high_span * bytes_per_s(rate),
                    ..phases
                };
                Alternating::new(dist, phases).map(SomeQueue::Alternating)
            }
        };
        queue.map_err(CommandError::usage)
    }

    /// What the results have in common, for people.
    pub(super) fn heading(&self) -> String {
        match self.alternating {
            None => format!("{}, load {}", self.dist, self.load),
            Some((phases, rate)) => format!(
                "{}, load {} for {} s and {} for {} s at {rate}, mean service time {:.4} ms",
                self.dist,
                phases.low_load,
                phases.low_span,
                phases.high_load,
                phases.high_span,
                1e3 * self.dist.mean() / bytes_per_s(rate),
            ),
        }
    }
}

impl SomeQueue {
    pub(super) fn solve(&self, policy: Form) -> Result<Analysis, CommandError> {
        let solved: Result<Analysis, ModelError> = match self {
            Self::Steady(queue) => queue.solve(policy),
            Self::Alternating(queue) => queue.solve(policy),
        };
        solved.map_err(CommandError::usage)
    }
}

impl FromStr for PhasesFlag {
    type Err = PhasesFlagError;

    fn from_str(text: &str) -> Result<Self, PhasesFlagError> {
        let refused = || PhasesFlagError { text: text.into() };
        let numbers: Result<Vec<f64>, _> = text.split(',').map(str::parse).collect();
        match numbers.map_err(|_| refused())?[..] {
            [low_span, high_span, low_load, high_load] => Ok(Self(Phases {
                low_span,
                high_span,
                low_load,
                high_load,
            })),
            _ => Err(refused()),
        }
    }
}

/// Spans in seconds.
pub(super) fn phases(schedule: &Schedule) -> Phases {
    Phases {
        low_span: schedule.low_s,
        high_span: schedule.high_s,
        low_load: schedule.low_load,
        high_load: schedule.high_load,
    }
}

/// What the link carries for the responses of a World Cup-like site, as in `shortline sim`.
pub(super) fn world_cup_responses() -> Result<Distribution, CommandError> {
    let site = world_cup_like(FILES_DEFAULT).map_err(CommandError::failure)?;
    let files = site.files().iter();
    let wire = WireModel::default();
    let bytes = files.map(|file| wire.wire_bytes(file.bytes) as f64);
    Distribution::empirical(bytes).map_err(CommandError::failure)
}

pub(super) fn bytes_per_s(rate: Rate) -> f64 {
    rate.bps() as f64 / 8.0
}

fn schedule<S: Serializer>(
    alternating: &Option<(Phases, Rate)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Schedule {
        low_s: f64,
        high_s: f64,
        low_load: f64,
        high_load: f64,
        rate: Rate,
    }
    let schedule = alternating.map(|(phases, rate)| Schedule {
        low_s: phases.low_span,
        high_s: phases.high_span,
        low_load: phases.low_load,
        high_load: phases.high_load,
        rate,
    });
    schedule.serialize(serializer)
}
