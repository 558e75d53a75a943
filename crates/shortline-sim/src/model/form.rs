//! The closed forms: the mean delay of a job of size x, its time in the system less x.
//!
//! With lambda the arrival rate, rho(x) = lambda times the integral of t dF(t) up to x, m2(x)
//! that of t², F'(x) the share above x:
//!
//! | policy | mean delay of a job of size x | source |
//! |---|---|---|
//! | `fifo` | lambda E\[S²\] / (2 (1 - rho)) | Pollaczek, Khinchin |
//! | `fair` | x rho / (1 - rho) | Kleinrock 1967 |
//! | `sjf` | lambda E\[S²\] / (2 (1 - rho(x-)) (1 - rho(x))) | Phipps 1956 |
//! | `psjf` | lambda m2(x) / (2 (1 - rho(x-)) (1 - rho(x))) + x rho(x-) / (1 - rho(x-)) | priorities that preempt and resume |
//! | `srpt` | lambda (m2(x) + x² F'(x)) / (2 (1 - rho(x-)) (1 - rho(x))) + the integral of rho(t) / (1 - rho(t)) up to x | Schrage, Miller 1966; paper 001, 6.1 |
//! | `las` | lambda (m2(x) + x² F'(x)) / (2 (1 - r)²) + x r / (1 - r), r = rho(x) + lambda x F'(x) | Schrage 1967 |
//!
//! The papers have continuous sizes. Where many jobs have one size x, rho(x-) leaves those out:
//! equal jobs go in the order of arrival, so later ones of the same size do not delay.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use shortline_sched::Policy;
use shortline_sched::units::excerpt;

use super::ModelError;
use super::queue::Queue;
use super::residence::Residence;

/// A policy whose mean times have a closed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// First come, first served.
    Fifo,
    /// Processor sharing.
    Fair,
    /// Shortest job first, not preempting.
    Sjf,
    /// Shortest job first, preempting.
    Psjf,
    /// Shortest remaining processing time.
    Srpt,
    /// Least attained service.
    Las,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Srpt,
        Self::Psjf,
        Self::Sjf,
        Self::Las,
        Self::Fair,
        Self::Fifo,
    ];

    /// Their names, for messages.
    pub fn names() -> String {
        Self::ALL.map(|form| form.policy().name()).join(", ")
    }

    /// The policy whose form it is.
    pub const fn policy(self) -> Policy {
        match self {
            Self::Fifo => Policy::Fifo,
            Self::Fair => Policy::Fair,
            Self::Sjf => Policy::Sjf,
            Self::Psjf => Policy::Psjf,
            Self::Srpt => Policy::Srpt,
            Self::Las => Policy::Las,
        }
    }

    /// The form of a policy; `None` if none is known.
    pub fn of(policy: Policy) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.policy() == policy)
    }

    /// Whether the mean is finite only if the second moment of the sizes is.
    pub const fn needs_second_moment(self) -> bool {
        matches!(self, Self::Fifo | Self::Sjf)
    }

    /// The mean delay of a job as its size goes to 0.
    pub(super) fn delay_least(self, queue: &Queue) -> f64 {
        match self {
            Self::Fifo => queue.backlog() / (1.0 - queue.load()),
            Self::Sjf => queue.backlog(),
            Self::Fair | Self::Psjf | Self::Srpt | Self::Las => 0.0,
        }
    }

    /// The slowdown of ever larger jobs, in the limit.
    pub(super) fn slowdown_at_infinity(self, queue: &Queue) -> f64 {
        match self {
            Self::Fifo | Self::Sjf => 1.0,
            Self::Fair | Self::Psjf | Self::Srpt | Self::Las => 1.0 / (1.0 - queue.load()),
        }
    }

    /// The mean delay of a job of this size.
    pub(super) fn delay(self, queue: &Queue, residence: &Residence<'_>, size: f64) -> f64 {
        let rate = queue.arrival_rate();
        let second = |size| queue.sizes().partial_moment(2, size);
        // The jobs above `size` still contribute: each is one of that size, once.
        let cut = || size * size * queue.sizes().share_above(size);
        let ahead = || {
            let load = rate * queue.sizes().partial_moment(1, size);
            (1.0 - queue.load_below(size)) * (1.0 - load)
        };
        match self {
            Self::Fifo => self.delay_least(queue),
            Self::Fair => size * queue.load() / (1.0 - queue.load()),
            Self::Sjf => queue.backlog() / ahead(),
            Self::Psjf => {
                let below = queue.load_below(size);
                0.5 * rate * second(size) / ahead() + size * below / (1.0 - below)
            }
            Self::Srpt => 0.5 * rate * (second(size) + cut()) / ahead() + residence.delay(size),
            Self::Las => {
                let cut_load = size * queue.sizes().share_above(size);
                let load = rate * (queue.sizes().partial_moment(1, size) + cut_load);
                let wait = 0.5 * rate * (second(size) + cut()) / (1.0 - load);
                (wait + size * load) / (1.0 - load)
            }
        }
    }
}

/// By any of the policy's names.
impl FromStr for Form {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, ModelError> {
        let policy = name.parse().ok();
        policy.and_then(Self::of).ok_or_else(|| ModelError::NoForm {
            policy: excerpt(name),
        })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.policy().name())
    }
}

impl Serialize for Form {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
