//! What an operator chooses for admission, each with its default.

use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use super::oldest::OldestShare;
use super::runaways::Runaway;
use crate::Aging;
use crate::Estimator;
use crate::units::{Span, UnitError, excerpt};

/// How requests are admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionConfig {
    /// Who goes first of those that wait.
    pub order: Order,
    /// With [`Order::Sjf`]: the share of the work that goes to whoever has waited longest.
    pub oldest_share: OldestShare,
    /// How much may run at once.
    pub capacity: Capacity,
    /// The most requests that run at once, paused ones too: what each of them holds there is only so much of,
    /// such as connections. Neither a dry run nor an escape goes beyond.
    pub running_max: Option<NonZeroUsize>,
    /// How service times are estimated.
    pub estimator: Estimator,
    /// The most requests that wait at once. None may where it is 0.
    pub queue_max: usize,
    /// The most requests that run at once of those that never wait ([`super::NewRequest::never_waits`]);
    /// further ones wait like any other.
    pub unqueued_max: usize,
    /// The most types told apart, beside the one for all others.
    pub types_max: usize,
    /// The service time of a type before any request of any type has ended, in nanoseconds.
    pub service_ns_prior: u64,
    /// A request is refused on arrival if it is expected to wait longer than this, in
    /// nanoseconds; `None` sheds nothing.
    pub shed_wait_ns: Option<NonZeroU64>,
    /// If nothing starts or ends for so long, in nanoseconds, while requests wait, the next one
    /// starts whatever the load: what runs may wait for a lock that only a request in the queue
    /// makes its session give back. `None` never does so.
    pub stall_ns: Option<NonZeroU64>,
    /// How long [`Capacity::Calibrate`] tries each capacity at least, in nanoseconds.
    pub trial_ns: NonZeroU64,
    /// The longest that a request is held back for what its client owes, in nanoseconds.
    pub debt_wait_ns_max: u64,
    /// What becomes of requests far beyond what their type takes; `None`: nothing beyond their cost.
    pub runaway: Option<Runaway>,
    /// Everything starts at once; what would have waited is only counted.
    pub dry_run: bool,
    /// Estimates that were kept from before stay as they are (002, 5.1: unstable under high load); of
    /// other types they are learnt.
    pub estimates_fixed: bool,
}

impl Default for AdmissionConfig {
    /// Shortest job first, a tenth for the oldest, at a capacity without limit, 10,000 waiters, 16 that never
    /// wait, 1000 types, 10 ms for the first request, an escape after 10 s, trials of 5 s, a minute for debts.
    fn default() -> Self {
        Self {
            order: Order::Sjf,
            oldest_share: OldestShare::default(),
            capacity: Capacity::Off,
            running_max: None,
            estimator: Estimator::default(),
            queue_max: 10_000,
            unqueued_max: 16,
            types_max: 1000,
            service_ns_prior: 10_000_000,
            shed_wait_ns: None,
            stall_ns: NonZeroU64::new(10_000_000_000),
            trial_ns: NonZeroU64::MIN.saturating_add(4_999_999_999),
            debt_wait_ns_max: 60_000_000_000,
            runaway: None,
            dry_run: false,
            estimates_fixed: false,
        }
    }
}

/// Who goes first of those that wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// In order of arrival (002 3.1).
    Fifo,
    /// Shortest estimate first (002 3.2).
    Sjf,
    /// Shortest estimate first as long as that makes nobody wait for longer than so many times
    /// its own expected service (002 3.2).
    SjfAging(Aging),
    /// In order of arrival, each type as if it had come earlier by its boost (module `boosts`).
    Boost,
    /// The least expected work to an end first, by the type's distribution ([`crate::Spread::gittins`]).
    Gittins,
}

impl Order {
    /// Whether whoever has waited longest has a share of the work. The others leave nobody without service
    /// by themselves.
    pub fn has_oldest_share(self) -> bool {
        matches!(self, Order::Sjf | Order::Gittins)
    }

    /// Whether types that nobody has seen go before the others.
    pub(super) fn tries_newcomers(self) -> bool {
        matches!(self, Order::Sjf | Order::Gittins | Order::Boost)
    }
}

/// How much may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Everything: nobody waits.
    Off,
    /// A sum of estimates, in nanoseconds of service.
    Fixed(NonZeroU64),
    /// What lets the backend do most, found while it works.
    Auto,
    /// What lets the backend do most, searched for once by trials of the load that runs.
    Calibrate,
}

/// A text that is no capacity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("capacity `{value}`: {problem}; write it like 500ms, 20s, auto, calibrate or off")]
pub struct CapacityError {
    value: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("must be above 0, for nothing would ever be admitted")]
    Zero,
    #[error("{0}")]
    NoSpan(UnitError),
}

impl Capacity {
    /// A fixed capacity.
    ///
    /// # Errors
    /// [`CapacityError`] if it is 0.
    pub fn fixed(span: Span) -> Result<Self, CapacityError> {
        let capacity_ns = u64::try_from(span.duration().as_nanos()).unwrap_or(u64::MAX);
        NonZeroU64::new(capacity_ns)
            .map(Self::Fixed)
            .ok_or_else(|| CapacityError {
                value: span.to_string(),
                problem: Problem::Zero,
            })
    }
}

impl FromStr for Capacity {
    type Err = CapacityError;

    fn from_str(text: &str) -> Result<Self, CapacityError> {
        match text {
            "off" => return Ok(Self::Off),
            "auto" => return Ok(Self::Auto),
            "calibrate" => return Ok(Self::Calibrate),
            _ => {}
        }
        let span: Span = text.parse().map_err(|error| CapacityError {
            value: excerpt(text),
            problem: Problem::NoSpan(error),
        })?;
        Self::fixed(span)
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Capacity::Off => f.pad("off"),
            Capacity::Auto => f.pad("auto"),
            Capacity::Calibrate => f.pad("calibrate"),
            Capacity::Fixed(capacity_ns) => {
                let duration = std::time::Duration::from_nanos(capacity_ns.get());
                Span::from_duration(duration).fmt(f)
            }
        }
    }
}

/// The most types, with room for them in an index of 32 bits.
pub(super) fn types_held(types_max: usize) -> NonZeroUsize {
    NonZeroUsize::MIN.saturating_add(types_max.min(u32::MAX as usize - 1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_capacity_is_a_time_or_auto_or_off() {
        assert_eq!("off".parse(), Ok(Capacity::Off));
        assert_eq!("auto".parse(), Ok(Capacity::Auto));
        let fixed: Capacity = "20s".parse().unwrap();
        let twenty_s = NonZeroU64::new(20_000_000_000).unwrap();
        assert_eq!(fixed, Capacity::Fixed(twenty_s));
        for text in ["20s", "auto", "calibrate", "off"] {
            assert_eq!(text.parse::<Capacity>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused_in_one_line_that_says_what_would_be_right() {
        for text in ["0s", "0ns", "", "20", "-1s", "much"] {
            let refusal = text.parse::<Capacity>().unwrap_err().to_string();
            assert!(refusal.starts_with("capacity `"), "{refusal}");
            assert!(refusal.contains("20s, auto, calibrate or off"), "{refusal}");
            assert_eq!(refusal.lines().count(), 1);
        }
    }
}
