//! The settings of admission, with their defaults.

use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use serde::Deserialize;

use super::oldest::OldestShare;
use crate::Aging;
use crate::Estimator;
use crate::units::{Span, UnitError, excerpt};

/// How requests are admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionConfig {
    /// The order of waiting requests.
    pub order: Order,
    /// The share of the work that goes to the request that has waited longest. Only [`Order::Sjf`] and
    /// `Order::Gittins` use it.
    pub oldest_share: OldestShare,
    /// How much may run at once.
    pub capacity: Capacity,
    /// How far the limit may be raised above the capacity, where that does more work.
    pub open_up: OpenUp,
    /// The most requests that run at once, paused ones included. It is for a scarce resource that each
    /// request holds, such as a connection. A dry run and an escape keep it, too.
    pub running_max: Option<NonZeroUsize>,
    /// How service times are estimated.
    pub estimator: Estimator,
    /// The most requests that wait at once. With 0 none may wait.
    pub queue_max: usize,
    /// The most requests that run at once of those that never wait ([`super::NewRequest::never_waits`]).
    /// Further ones wait like any other.
    pub unqueued_max: usize,
    /// The most types with an entry of their own, beside the shared one.
    pub types_max: usize,
    /// The service time of a type before any request of any type has ended, in nanoseconds.
    pub service_ns_prior: u64,
    /// A request is refused on arrival if its expected wait is longer than this, in nanoseconds. `None`
    /// sheds nothing.
    pub shed_wait_ns: Option<NonZeroU64>,
    /// If requests wait and nothing starts or ends for this long, in nanoseconds, the next one starts
    /// whatever the load. A running request may wait for a lock whose holder has its next request in the
    /// queue. `None`: no such escape.
    pub stall_ns: Option<NonZeroU64>,
    /// How long [`Capacity::Calibrate`] tries each capacity at least, in nanoseconds.
    pub trial_ns: NonZeroU64,
    /// The longest that a request is held back for its client's debt, in nanoseconds.
    pub debt_wait_ns_max: u64,
    /// What is done about requests that take far longer than their type. `None`: they only count as what
    /// they use.
    pub runaway: Option<Runaway>,
    /// Everything starts at once. Requests that would have waited are only counted.
    pub dry_run: bool,
    /// Restored estimates stay as they are (002, 5.1: unstable under high load). Those of other types are
    /// learnt.
    pub estimates_fixed: bool,
}

impl Default for AdmissionConfig {
    /// Shortest job first with a tenth for the oldest, no capacity limit, 10,000 waiters, 16 requests that
    /// never wait, 1000 types, 10 ms for the first request. An escape after 10 s, trials of 5 s, and at most
    /// a minute for debts.
    fn default() -> Self {
        Self {
            order: Order::Sjf,
            oldest_share: OldestShare::default(),
            capacity: Capacity::Off,
            open_up: OpenUp::OwnOnly,
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

/// The order of waiting requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// In order of arrival (002 3.1).
    Fifo,
    /// Shortest estimate first (002 3.2).
    Sjf,
    /// Shortest estimate first, as long as no request waits longer than this many times its own
    /// expected service because of it (002 3.2).
    SjfAging(Aging),
    /// In order of arrival, with each type's arrivals moved earlier by its boost (module `boosts`).
    Boost,
    /// Smallest Gittins rank first, by the type's distribution ([`crate::Spread::gittins`]).
    Gittins,
}

impl Order {
    /// Whether the request that has waited longest gets a share of the work. The other orders starve no
    /// request by themselves.
    pub fn has_oldest_share(self) -> bool {
        matches!(self, Order::Sjf | Order::Gittins)
    }

    /// Whether types of which little is known go before the others.
    pub(super) fn tries_newcomers(self) -> bool {
        matches!(self, Order::Sjf | Order::Gittins | Order::Boost)
    }
}

/// How much may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Everything: no request waits for capacity.
    Off,
    /// A sum of estimates, in nanoseconds of service.
    Fixed(NonZeroU64),
    /// The capacity at which the backend does most work, found while it works.
    Auto,
    /// The capacity at which the backend does most work, found once by trials under the running load.
    Calibrate,
}

/// How far the limit may be raised above the capacity, where that does more work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenUp {
    /// Only a capacity that the gate has found itself, and that as far as more is done.
    #[default]
    OwnOnly,
    /// Never.
    Off,
    /// A fixed capacity, too, and either up to this one, in nanoseconds of service.
    To(NonZeroU64),
}

/// A text that says not how far a limit may be raised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a limit to open up to `{value}`: {problem}; write it like 500ms, 20s or off")]
pub struct OpenUpError {
    value: String,
    problem: Problem,
}

/// A text that is not a capacity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "capacity `{value}`: {problem}; write it like 500ms (the service times of all that run at once), auto, calibrate or off"
)]
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
    #[error("is no time; a number of connections is pool-size")]
    Count,
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

impl FromStr for OpenUp {
    type Err = OpenUpError;

    fn from_str(text: &str) -> Result<Self, OpenUpError> {
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self::Off);
        }
        let refuse = |problem| OpenUpError {
            value: excerpt(text),
            problem,
        };
        let span: Span = text
            .parse()
            .map_err(|error| refuse(Problem::NoSpan(error)))?;
        let limit_ns = u64::try_from(span.duration().as_nanos()).unwrap_or(u64::MAX);
        let limit_ns = NonZeroU64::new(limit_ns).ok_or_else(|| refuse(Problem::Zero))?;
        Ok(Self::To(limit_ns))
    }
}

impl FromStr for Capacity {
    type Err = CapacityError;

    fn from_str(text: &str) -> Result<Self, CapacityError> {
        match text.to_ascii_lowercase().as_str() {
            "off" => return Ok(Self::Off),
            "auto" => return Ok(Self::Auto),
            "calibrate" => return Ok(Self::Calibrate),
            _ => {}
        }
        let is_count = text.parse::<u64>().is_ok();
        let span: Span = text.parse().map_err(|error| CapacityError {
            value: excerpt(text),
            problem: if is_count {
                Problem::Count
            } else {
                Problem::NoSpan(error)
            },
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

/// The multiple of the 99th percentile beyond which a request is a runaway, if the rule gives none.
const MULTIPLE_DEFAULT: f64 = 20.0;

/// When a request is a runaway, and what is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Runaway {
    /// What is done about it.
    pub action: RunawayAction,
    /// The limit, as a multiple of the 99th percentile of its type.
    pub(super) multiple: f64,
}

/// The multiple is a finite number.
impl Eq for Runaway {}

/// What is done about a runaway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunawayAction {
    /// It is counted. As always, its client pays what it takes.
    Charge,
    /// Its statement is cancelled, and further requests of its name get the type for runaways.
    Cancel,
    /// Further requests of its name get the type for runaways.
    Class,
}

/// A text that is not a rule for runaways.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "runaway `{0}`: must be cancel, class or charge, or with how many times the 99th percentile (2 or more) as cancel:20"
)]
pub struct RunawayError(String);

impl FromStr for Runaway {
    type Err = RunawayError;

    fn from_str(text: &str) -> Result<Self, RunawayError> {
        let (action, multiple) = match text.split_once(':') {
            Some((action, multiple)) => (action, multiple.parse().ok()),
            None => (text, Some(MULTIPLE_DEFAULT)),
        };
        let action = match action {
            "cancel" => Some(RunawayAction::Cancel),
            "charge" => Some(RunawayAction::Charge),
            "class" => Some(RunawayAction::Class),
            _ => None,
        };
        let multiple = multiple.filter(|multiple: &f64| multiple.is_finite() && *multiple >= 2.0);
        match (action, multiple) {
            (Some(action), Some(multiple)) => Ok(Self { action, multiple }),
            _ => Err(RunawayError(excerpt(text))),
        }
    }
}

impl TryFrom<String> for Runaway {
    type Error = RunawayError;

    fn try_from(text: String) -> Result<Self, RunawayError> {
        text.parse()
    }
}

impl fmt::Display for Runaway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            RunawayAction::Cancel => "cancel",
            RunawayAction::Charge => "charge",
            RunawayAction::Class => "class",
        };
        f.pad(&format!("{action}:{}", self.multiple))
    }
}

/// The size of the table of types, with the shared one. It fits an index of 32 bits.
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
    fn a_limit_to_open_up_to_is_a_time_or_off() {
        assert_eq!("off".parse(), Ok(OpenUp::Off));
        let two_s = NonZeroU64::new(2_000_000_000).unwrap();
        assert_eq!("2s".parse(), Ok(OpenUp::To(two_s)));
        for text in ["", "0s", "2", "auto", "-1s"] {
            let refusal = text.parse::<OpenUp>().unwrap_err().to_string();
            assert!(
                refusal.contains("write it like 500ms, 20s or off"),
                "{refusal}"
            );
            assert_eq!(refusal.lines().count(), 1);
        }
    }

    #[test]
    fn nonsense_is_refused_in_one_line_that_says_what_would_be_right() {
        for text in ["0s", "0ns", "", "20", "-1s", "much"] {
            let refusal = text.parse::<Capacity>().unwrap_err().to_string();
            assert!(refusal.starts_with("capacity `"), "{refusal}");
            assert!(refusal.contains("auto, calibrate or off"), "{refusal}");
            assert_eq!(refusal.lines().count(), 1);
        }
    }
}
