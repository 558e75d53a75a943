//! The queues that the flags of `shortline model` describe.

use serde::{Serialize, Serializer};
use shortline_load::workload::{FILES_DEFAULT, world_cup_like};
use shortline_sched::units::Rate;
use shortline_sim::Phases;
use shortline_sim::dist::Distribution;
use shortline_sim::model::{Alternating, Analysis, Form, ModelError, Queue};
use shortline_sim::wire::WireModel;

use shortline_command::CommandError;

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

impl Setting {
    pub(super) fn steady(dist: &Distribution, load: f64) -> Self {
        Self {
            dist: dist.clone(),
            load,
            alternating: None,
        }
    }

    pub(super) fn alternating(dist: &Distribution, phases: Phases, rate: Rate) -> Self {
        Self {
            dist: dist.clone(),
            load: phases.mean_load(),
            alternating: Some((phases, rate)),
        }
    }

    pub(super) fn queue(&self) -> Result<SomeQueue, CommandError> {
        let dist = self.dist.clone();
        let queue = match self.alternating {
            None => Queue::new(dist, self.load).map(SomeQueue::Steady),
            Some((phases, rate)) => {
                // Sizes are bytes, so times are counted in bytes that the link carries.
                let phases = phases.stretched(bytes_per_s(rate));
                Alternating::new(dist, phases).map(SomeQueue::Alternating)
            }
        };
        queue.map_err(CommandError::usage)
    }

    /// What the results have in common, as a heading.
    pub(super) fn heading(&self) -> String {
        match self.alternating {
            None => format!("{}, load {}", self.dist, self.load),
            Some((phases, rate)) => format!(
                "{}, {phases} at {rate}, mean service time {:.4} ms",
                self.dist,
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

/// The bytes the link carries for the responses of a World Cup-like site, as in `shortline sim`.
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
        low_s: phases.low_span(),
        high_s: phases.high_span(),
        low_load: phases.low_load(),
        high_load: phases.high_load(),
        rate,
    });
    schedule.serialize(serializer)
}
