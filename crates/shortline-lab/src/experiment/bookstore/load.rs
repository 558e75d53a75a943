//! Who comes to the shop.
//!
//! - One visitor who does not think, so that interactions take what they take alone.
//! - So many browsers in a closed loop, as in 002 (4.4); in some runs the database loses half of its
//!   processor, or the mix changes, when half of the time is over.
//! - Sessions of an open loop whose rate alternates above and below what the database can do, which is
//!   taken from the closed runs before. There sessions are short against a phase, that the load may
//!   follow their rate: about ten pages.
//!
//! 002's times are all multiplied by one factor ([`Pace`]), so that 100 browsers or less saturate a
//! database of today. More would do so with longer times, but each of their connections costs
//! PostgreSQL a process and the plans of all statements before it is as fast as in the long run.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_bookstore::Locking;
use shortline_bookstore::browser::{Arrivals, CutExponential, Mix, Phase, Times};

use super::visit::failed;
use crate::LabError;

/// How long a visitor of the closed loop waits for a page; 002 has a limit and does not say which.
const PATIENCE: Duration = Duration::from_secs(10);
/// In the open loop nobody gives up before this.
const OPEN_PATIENCE: Duration = Duration::from_secs(120);
/// Thinking times of the open loop over those of the closed one.
const OPEN_THINK: f64 = 0.5;
/// How many thinking times a session of the open loop has, in the mean and at most.
const OPEN_SESSION: (f64, f64) = (9.0, 36.0);
/// The shares of capacity, and how long each lasts: what the database does so many interactions in.
const SHARES: [f64; 2] = [1.3, 0.6];
const PHASE_INTERACTIONS: f64 = 2_000.0;
/// The share of the warm-up that is above capacity.
const WARM_UP_ABOVE: f64 = 0.4;
/// Before anything counts, visitors come for so long, and so much longer for each browser.
const WARM_UP: Duration = Duration::from_secs(5);
const WARM_UP_PER_BROWSER: Duration = Duration::from_millis(100);
/// As many connections as so many browsers need are warm soon in the open loop.
const OPEN_BROWSERS: u32 = 150;
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
    /// How long visitors come before anything counts: a connection is slow until it has prepared and
    /// planned what is asked of it, and each browser may need one.
    pub fn warm_up(self) -> Duration {
        let browsers = match self {
            Self::Alone => 0,
            Self::Browsers(browsers) | Self::SlowsDown(browsers) | Self::ChangesMix(browsers) => {
                u32::try_from(browsers).unwrap_or(u32::MAX)
            }
            Self::Alternating => OPEN_BROWSERS,
        };
        WARM_UP + WARM_UP_PER_BROWSER * browsers
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
    /// second the database can do, `seconds` how long is counted.
    ///
    /// # Errors
    /// If that is wanted and not known.
    pub fn visitors(
        self,
        pace: Pace,
        capacity_per_s: Option<f64>,
        seconds: u64,
    ) -> Result<Visitors, LabError> {
        let times = pace.times();
        let closed = |browsers, times| Visitors {
            arrivals: Arrivals::Closed { browsers },
            times,
            patience: PATIENCE,
            phase_s: None,
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
                    arrivals: alternating(times, capacity_per_s, self.warm_up(), seconds),
                    times,
                    patience: OPEN_PATIENCE,
                    phase_s: Some(PHASE_INTERACTIONS / capacity_per_s),
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
    /// How long a phase of the open loop is, in seconds.
    pub phase_s: Option<f64>,
}

/// The warm-up begins with an overload, that all connections are made and warm, and ends below capacity,
/// that nobody waits when counting begins.
fn alternating(times: Times, capacity_per_s: f64, warm_up: Duration, seconds: u64) -> Arrivals {
    // The first page, and one after each thinking time that ends before the session does.
    let pages = 1.0 + times.session.cut_mean_s() / times.think.cut_mean_s();
    let phase = |share, lasts| Phase {
        lasts,
        sessions_per_s: share * capacity_per_s / pages,
    };
    let [above, below] = SHARES;
    let mut phases = vec![
        phase(above, warm_up.mul_f64(WARM_UP_ABOVE)),
        phase(below, warm_up.mul_f64(1.0 - WARM_UP_ABOVE)),
    ];
    let lasts = Duration::from_secs_f64(PHASE_INTERACTIONS / capacity_per_s);
    let count = (seconds as f64 / lasts.as_secs_f64()).ceil() as usize;
    let shares = SHARES.into_iter().cycle().take(count);
    phases.extend(shares.map(|share| phase(share, lasts)));
    Arrivals::Open {
        phases,
        sessions_max: SESSIONS_MAX,
        drain_max: DRAIN_MAX,
    }
}

/// When an open loop with phases of that length is above capacity between `begin_s` and `end_s`, in
/// seconds.
pub fn overloads_s(phase_s: f64, begin_s: f64, end_s: f64) -> Vec<(f64, f64)> {
    let cycle_s = phase_s * SHARES.len() as f64;
    let begins = (0u32..).map(|round| begin_s + f64::from(round) * cycle_s);
    let before_end = begins.take_while(|begin| *begin < end_s);
    before_end
        .map(|begin| (begin, (begin + phase_s).min(end_s)))
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
        assert!(load.visitors(pace, None, 5).is_err());
        let visitors = load.visitors(pace, Some(1000.0), 5).unwrap();
        let Arrivals::Open { phases, .. } = visitors.arrivals else {
            panic!("{:?}", visitors.arrivals);
        };
        let times = visitors.times;
        let pages = 1.0 + times.session.cut_mean_s() / times.think.cut_mean_s();
        assert!((9.5..10.0).contains(&pages), "{pages}");
        let offered: Vec<f64> = phases
            .iter()
            .map(|phase| (phase.sessions_per_s * pages).round())
            .collect();
        assert_eq!(offered, [1300.0, 600.0, 1300.0, 600.0, 1300.0]);
        assert_eq!(phases[0].lasts + phases[1].lasts, load.warm_up());
        assert_eq!(visitors.phase_s, Some(2.0));
        assert_eq!(overloads_s(10.0, 5.0, 30.0), [(5.0, 15.0), (25.0, 30.0)]);
    }

    #[test]
    fn only_some_loads_change() {
        assert!(Load::SlowsDown(5).changes() && Load::ChangesMix(5).later_mix().is_some());
        assert_eq!(Load::SlowsDown(5).later_mix(), None);
        assert_eq!(Load::SlowsDown(5).browsers(), None);
        assert_eq!(Load::Browsers(5).browsers(), Some(5));
        assert_eq!(Load::Browsers(100).warm_up(), Duration::from_secs(15));
    }
}
