//! Who comes to the shop.
//!
//! - One visitor who does not think, so that interactions take what they take alone.
//! - So many browsers in a closed loop, as in 002 (4.4); in some runs the database loses half of its
//!   processor, or the mix changes, when half of the time is over.
//! - Sessions of an open loop whose rate alternates above and below what the database can do, which is
//!   taken from the closed runs before. There sessions are short against a phase, that the load may
//!   follow their rate: about ten pages.
//!
//! 002's times are all multiplied by one factor ([`Pace`]), about the time that an interaction costs the
//! database of today over what it cost 002's (60 s / 941): so the same number of browsers makes the
//! same load, and as many of them are in the database at once.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_bookstore::Locking;
use shortline_bookstore::browser::{Arrivals, CutExponential, Mix, Phase, Times};

use super::visit::failed;
use crate::LabError;

/// How long a visitor waits for a page, before it is scaled; 002 has a limit and does not say which.
const PATIENCE: Duration = Duration::from_secs(60);
/// In the open loop every interaction counts and nobody gives up before this.
const OPEN_PATIENCE: Duration = Duration::from_secs(120);
/// Thinking times of the open loop over those of the closed one.
const OPEN_THINK: f64 = 0.5;
/// How many thinking times a session of the open loop has, in the mean and at most.
const OPEN_SESSION: (f64, f64) = (9.0, 36.0);
/// The shares of capacity, and how long each lasts.
const SHARES: [f64; 2] = [1.3, 0.6];
const PHASE: Duration = Duration::from_secs(10);
/// More sessions at once than this are not begun, and counted.
const SESSIONS_MAX: usize = 5_000;
/// How long the last may take.
const DRAIN_MAX: Duration = Duration::from_secs(120);
/// What visitors are after in the second half of a run whose mix changes: five times as often what
/// costs most.
const LATER_MIX: Mix = Mix::Ordering;
/// The share of its processor that the database has in the second half of a run in which it slows down.
pub const SLOWED: f64 = 0.5;

/// The visitors of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// One, who does not think.
    Alone,
    /// So many, in a closed loop.
    Browsers(usize),
    /// So many, while the database loses half of its processor.
    SlowsDown(usize),
    /// So many, who are after something else in the second half.
    ChangesMix(usize),
    /// Sessions that begin by themselves, at 1.3 and 0.6 of capacity in turn.
    Alternating,
}

impl Load {
    /// Whether every interaction counts, from the first to the last of the drained shop; else only those
    /// after a warm-up and before the end.
    pub fn counts_all(self) -> bool {
        self == Self::Alternating
    }

    /// How many browsers there are in the closed loop, all else being the same.
    pub fn browsers(self) -> Option<usize> {
        match self {
            Self::Browsers(browsers) => Some(browsers),
            _ => None,
        }
    }

    /// Whether something changes half way.
    pub fn changes(self) -> bool {
        matches!(self, Self::SlowsDown(_) | Self::ChangesMix(_))
    }

    /// What visitors are after in the second half.
    pub fn later_mix(self) -> Option<Mix> {
        matches!(self, Self::ChangesMix(_)).then_some(LATER_MIX)
    }

    /// Who comes when, and how long they think and wait; `capacity_per_s` is how many interactions a
    /// second the database can do.
    ///
    /// # Errors
    /// If that is wanted and not known.
    pub fn visitors(self, pace: Pace, capacity_per_s: Option<f64>) -> Result<Visitors, LabError> {
        let times = pace.times();
        let closed = |browsers, times| Visitors {
            arrivals: Arrivals::Closed { browsers },
            times,
            patience: PATIENCE.mul_f64(pace.factor),
        };
        Ok(match self {
            Self::Alone => {
                let think = CutExponential::new(0, 0);
                closed(1, Times { think, ..times })
            }
            Self::Browsers(browsers) | Self::SlowsDown(browsers) | Self::ChangesMix(browsers) => {
                closed(browsers, times)
            }
            Self::Alternating => {
                let capacity_per_s = capacity_per_s
                    .ok_or_else(|| failed("the open loop", &"wants a closed run before it"))?;
                let think = times.think.scaled(OPEN_THINK);
                let session = CutExponential {
                    mean: think.mean.mul_f64(OPEN_SESSION.0),
                    max: think.mean.mul_f64(OPEN_SESSION.1),
                };
                let times = Times { think, session };
                Visitors {
                    arrivals: alternating(times, capacity_per_s),
                    times,
                    patience: OPEN_PATIENCE,
                }
            }
        })
    }
}

/// By how much 002's times are scaled, and which of its two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Who keeps conflicting interactions apart: 002 has a thinking time for each.
    pub locking: Locking,
    /// The factor.
    pub factor: f64,
}

impl Pace {
    fn times(self) -> Times {
        let times = match self.locking {
            Locking::Application => Times::APPLICATION_LOCKING,
            Locking::Database => Times::DATABASE_LOCKING,
        };
        times.scaled(self.factor)
    }
}

/// Who comes when, how long they think, and how long they wait.
#[derive(Clone, Debug)]
pub struct Visitors {
    /// When.
    pub arrivals: Arrivals,
    /// How long they think and stay.
    pub times: Times,
    /// How long they wait for a page.
    pub patience: Duration,
}

fn alternating(times: Times, capacity_per_s: f64) -> Arrivals {
    // The first page, and one after each thinking time that ends before the session does.
    let pages = 1.0 + times.session.cut_mean_s() / times.think.cut_mean_s();
    let phase = |share| Phase {
        lasts: PHASE,
        sessions_per_s: share * capacity_per_s / pages,
    };
    Arrivals::Open {
        phases: SHARES.map(phase).into(),
        sessions_max: SESSIONS_MAX,
        drain_max: DRAIN_MAX,
    }
}

/// When the open loop is above capacity in `seconds`, in seconds from its begin.
pub fn overloads_s(seconds: u64) -> Vec<(f64, f64)> {
    let phase = PHASE.as_secs_f64();
    let cycle = phase * SHARES.len() as f64;
    let end = seconds as f64;
    let begins = (0u32..).map(|round| f64::from(round) * cycle);
    let before_end = begins.take_while(|begin| *begin < end);
    before_end
        .map(|begin| (begin, (begin + phase).min(end)))
        .collect()
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone => f.write_str("alone"),
            Self::Browsers(browsers) => write!(f, "{browsers}-browsers"),
            Self::SlowsDown(browsers) => write!(f, "{browsers}-browsers-slowed"),
            Self::ChangesMix(browsers) => write!(f, "{browsers}-browsers-other-mix"),
            Self::Alternating => f.write_str("alternating"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_open_loop_offers_its_shares_of_the_capacity() {
        let pace = Pace {
            locking: Locking::Application,
            factor: 0.1,
        };
        let load = Load::Alternating;
        assert!(load.visitors(pace, None).is_err());
        let visitors = load.visitors(pace, Some(1000.0)).unwrap();
        let Arrivals::Open { phases, .. } = visitors.arrivals else {
            panic!("{:?}", visitors.arrivals);
        };
        let times = visitors.times;
        let pages = 1.0 + times.session.cut_mean_s() / times.think.cut_mean_s();
        assert!((9.5..10.0).contains(&pages), "{pages}");
        assert!((phases[0].sessions_per_s * pages - 1300.0).abs() < 1e-6);
        assert!((phases[1].sessions_per_s * pages - 600.0).abs() < 1e-6);
        assert_eq!(overloads_s(25), [(0.0, 10.0), (20.0, 25.0)]);
    }

    #[test]
    fn only_some_loads_change() {
        assert!(Load::SlowsDown(5).changes() && Load::ChangesMix(5).later_mix().is_some());
        assert_eq!(Load::SlowsDown(5).later_mix(), None);
        assert_eq!(Load::SlowsDown(5).browsers(), None);
        assert_eq!(Load::Browsers(5).browsers(), Some(5));
    }
}
