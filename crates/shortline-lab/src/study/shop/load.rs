//! The loads: who comes to the shop.
//!
//! - One visitor who does not think. This gives the times of interactions alone.
//! - A number of browsers in a closed loop, as in 002 (4.4). In some runs the database loses half of its
//!   processor half way, or the mix changes.
//! - Clicks or sessions of an open loop. Their rate alternates above and below what the database can do,
//!   which closed runs before have measured. Sessions have about ten pages. They must be short compared
//!   with a phase, so that the load follows their rate. All sessions begin at home, so short ones make
//!   another mix than long ones, and this mix has its own closed runs.
//!
//! An order can gain more by clicks than by sessions, because each visitor waits for one page at a time.
//! Let a mean page be work `w`, a page of the longest type work `W`, and a session have `n` pages. First
//! come, first served, a backlog `E` of work is in `E/(n w)` sessions, because all types wait alike. With
//! SJF those at the longest type wait, and it is in `E/(W + (n - 1) w)` sessions. By Little's law the mean
//! times have the same ratio. So SJF gains at most a factor of `(W/w + n - 1)/n`. This is `W/w` by clicks
//! (`n = 1`), and hardly above 1 with 002's own sessions of 128 pages.
//!
//! One factor scales all of 002's times ([`Pace`]), so that 100 browsers or fewer saturate a database of
//! today. With longer times it would take more browsers. But each of their connections costs PostgreSQL a
//! process, and the plans of all statements before it reaches its full speed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_bookstore::Locking;
use shortline_bookstore::browser::{Arrival, Arrivals, Crowd, CutExponential, Mix, Phase, Times};

use super::ShopNameError;

/// How long a visitor of the closed loop waits for a page. 002 has a limit, but does not give it.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same in the open loop.
const OPEN_PATIENCE: Duration = Duration::from_secs(120);
/// Thinking times of the open loop, relative to those of the closed loop.
const OPEN_THINK: f64 = 0.5;
/// The thinking times of a session of the open loop: the mean and the maximum.
const OPEN_SESSION: (f64, f64) = (9.0, 36.0);
/// The arrivals of the phases as shares of the capacity, in turn. After one above capacity come two below it, so the
/// queue also empties on a machine that has become a fifth slower since its capacity was measured. With one, at 0.95 of
/// that on average, it would grow to the end of the run.
const SHARES: [f64; 3] = [1.3, 0.6, 0.6];
/// The warm-up, before anything counts, and its addition for each browser.
const WARM_UP: Duration = Duration::from_secs(5);
const WARM_UP_PER_BROWSER: Duration = Duration::from_millis(200);
/// The warm-up of the open loop, however many visitors come.
const OPEN_WARM_UP: Duration = Duration::from_secs(60);
/// How long there is a crowd at its beginning, with one visitor for each connection that is used from then on.
const OPEN_CROWD: Duration = Duration::from_secs(35);
/// The shares that alternate after it, in phases as long as the later ones.
const OPEN_WARM_UP_SHARES: [f64; 2] = [0.3, 1.3];
/// The share in the rest of the warm-up, in which the queue must empty.
const OPEN_LAST: f64 = 0.6;
/// The most browsers of a step. Each is a task and a connection.
const BROWSERS_MAX: usize = 10_000;
/// The most sessions at once. Further ones are not begun, but counted.
const SESSIONS_MAX: usize = 5_000;
/// How long the last visitors may take.
const DRAIN_MAX: Duration = Duration::from_secs(120);
/// The mix in the second half of a run whose mix changes. It has five times as many of the most
/// expensive interactions.
const LATER_MIX: Mix = Mix::Ordering;
/// The database's share of its processor in the second half of a run in which it slows down.
pub const SLOWED: f64 = 0.5;

/// The visitors of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// One visitor, who does not think.
    Alone,
    /// Browsers in a closed loop.
    Browsers(usize),
    /// The same, and the database loses half of its processor half way.
    SlowsDown(usize),
    /// The same, and the mix changes half way.
    ChangesMix(usize),
    /// Browsers in a closed loop, with the short sessions of [`Self::Alternating`].
    ShortSessions(usize),
    /// Sessions of an open loop, at 1.3 and 0.6 of capacity in turn.
    Alternating,
    /// Clicks of an open loop, likewise.
    AlternatingClicks,
}

impl Load {
    /// How long visitors come before anything counts. A connection is slow until it has prepared and
    /// planned its statements, and each browser may need one.
    pub fn warm_up(self) -> Duration {
        let browsers = match self {
            Self::Alone => 0,
            Self::Browsers(browsers)
            | Self::SlowsDown(browsers)
            | Self::ChangesMix(browsers)
            | Self::ShortSessions(browsers) => u32::try_from(browsers).unwrap_or(u32::MAX),
            Self::Alternating | Self::AlternatingClicks => return OPEN_WARM_UP,
        };
        WARM_UP + WARM_UP_PER_BROWSER * browsers
    }

    /// How long a visitor waits for a page. Nobody has any use for what takes longer.
    pub fn patience(self) -> Duration {
        if self.is_open() {
            OPEN_PATIENCE
        } else {
            PATIENCE
        }
    }

    /// Whether it is an open loop.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Alternating | Self::AlternatingClicks)
    }

    /// Whether the throughput with `self` is the capacity for `open`: it is the closed loop with the same
    /// mix.
    pub fn measures_capacity_for(self, open: Self) -> bool {
        match open {
            Self::Alternating => matches!(self, Self::ShortSessions(_)),
            _ => matches!(self, Self::Browsers(_)),
        }
    }

    /// The number of browsers, if this is a plain closed loop.
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

    /// The mix of the second half, if it changes.
    pub fn later_mix(self) -> Option<Mix> {
        matches!(self, Self::ChangesMix(_)).then_some(LATER_MIX)
    }

    /// The visitors of the load. `capacity_per_s` is the number of interactions that the database can do
    /// in a second, `seconds` the counted time.
    ///
    /// `None` if the capacity is needed and unknown.
    pub fn visitors(
        self,
        pace: Pace,
        capacity_per_s: Option<f64>,
        seconds: u64,
    ) -> Option<Visitors> {
        let times = pace.times();
        let closed = |browsers, times| Visitors {
            arrivals: Arrivals::Closed { browsers },
            times,
            phase_s: None,
        };
        Some(match self {
            Self::Alone => {
                let think = CutExponential::new(0, 0);
                closed(1, Times { think, ..times })
            }
            Self::Browsers(browsers) | Self::SlowsDown(browsers) | Self::ChangesMix(browsers) => {
                closed(browsers, times)
            }
            Self::ShortSessions(browsers) => closed(browsers, short_sessions(times)),
            Self::Alternating | Self::AlternatingClicks => {
                let capacity_per_s = capacity_per_s?;
                let (each, times, clicks) = match self {
                    Self::AlternatingClicks => (Arrival::Click, times, 1.0),
                    _ => {
                        let times = short_sessions(times);
                        (Arrival::Session, times, times.clicks_mean())
                    }
                };
                let phase =
                    Duration::from_secs_f64(f64::from(pace.phase_interactions) / capacity_per_s);
                Visitors {
                    arrivals: Arrivals::Open {
                        crowd: pace.crowd(),
                        each,
                        phases: alternating(capacity_per_s / clicks, phase, seconds),
                        sessions_max: SESSIONS_MAX,
                        drain_max: DRAIN_MAX,
                    },
                    times,
                    phase_s: Some(phase.as_secs_f64()),
                }
            }
        })
    }
}

/// The times of sessions that are short compared with a phase.
fn short_sessions(times: Times) -> Times {
    let think = times.think.scaled(OPEN_THINK);
    let session = CutExponential {
        mean: think.mean.mul_f64(OPEN_SESSION.0),
        max: think.mean.mul_f64(OPEN_SESSION.1),
    };
    Times { think, session }
}

/// The scale of 002's times, and the speed at which the open loop alternates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Who keeps conflicting interactions apart. 002 has a thinking time for each way.
    pub locking: Locking,
    /// The factor of 002's times.
    pub factor: f64,
    /// The interactions that the database does in a phase of the open loop. At the end of a phase above
    /// capacity about a third as many wait, each with a connection.
    pub phase_interactions: u32,
    /// How many of the shop's connections to its database are used before anything counts in the open loop: all of them,
    /// if each is one of the database. One that is opened later, when there is a queue, is slow at first, so the queue grows and
    /// needs still more of them: a gate did 1,400 interactions a second with 250, and 600 with 1,000.
    ///
    /// In front of a pool it is as many as the pool has. A crowd of thousands would gather its longest interactions
    /// before a gate that does the shortest first: minutes of work that another door does not begin with.
    pub warm_connections: u32,
}

impl Pace {
    fn times(self) -> Times {
        let times = match self.locking {
            Locking::Application => Times::APPLICATION_LOCKING,
            Locking::Database => Times::DATABASE_LOCKING,
        };
        times.scaled(self.factor)
    }

    fn crowd(self) -> Crowd {
        Crowd {
            browsers: self.warm_connections as usize,
            lasts: OPEN_CROWD,
        }
    }
}

/// The visitors of a load.
#[derive(Clone, Debug)]
pub struct Visitors {
    /// When.
    pub arrivals: Arrivals,
    /// How long they think and stay.
    pub times: Times,
    /// How long a phase of the open loop is, in seconds.
    pub phase_s: Option<f64>,
}

/// A warm-up, then phases for `seconds`. `capacity_per_s` counts interactions or sessions, as they arrive.
fn alternating(capacity_per_s: f64, lasts: Duration, seconds: u64) -> Vec<Phase> {
    let phase = |share, lasts| Phase {
        lasts,
        per_s: share * capacity_per_s,
    };
    let count = (seconds as f64 / lasts.as_secs_f64()).ceil() as usize;
    let counted = SHARES.into_iter().cycle().take(count);
    let mut phases: Vec<Phase> = warm_up(lasts)
        .into_iter()
        .map(|(share, lasts)| phase(share, lasts))
        .collect();
    phases.extend(counted.map(|share| phase(share, lasts)));
    phases
}

/// The phases between the crowd and the counted time: shares of capacity and their lengths. `lasts` is
/// the length of a later phase.
fn warm_up(lasts: Duration) -> Vec<(f64, Duration)> {
    let rest = OPEN_WARM_UP - OPEN_CROWD;
    // Leaves time for the crowd to leave, for a queue, and for the queue to empty.
    let lasts = lasts.min(rest / 4);
    let rounds = (rest.as_secs_f64() / lasts.as_secs_f64() / 2.0).ceil() as usize - 1;
    let mut shares = Vec::new();
    for _ in 0..rounds {
        shares.extend(OPEN_WARM_UP_SHARES.map(|share| (share, lasts)));
    }
    let before: Duration = shares.iter().map(|(_, lasts)| *lasts).sum();
    shares.push((OPEN_LAST, rest - before));
    shares
}

/// The times between `begin_s` and `end_s` at which an open loop with phases of that length is above
/// capacity, in seconds.
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
            Self::ShortSessions(browsers) => write!(f, "{browsers}-browsers-short-sessions"),
            Self::Alternating => f.write_str("alternating"),
            Self::AlternatingClicks => f.write_str("alternating-clicks"),
        }
    }
}

impl FromStr for Load {
    type Err = ShopNameError;

    fn from_str(name: &str) -> Result<Self, ShopNameError> {
        let of_browsers = || {
            let (browsers, rest) = name.split_once("-browsers")?;
            let browsers = browsers.parse().ok();
            let browsers = browsers.filter(|browsers| (1..=BROWSERS_MAX).contains(browsers))?;
            Some(match rest {
                "" => Self::Browsers(browsers),
                "-slowed" => Self::SlowsDown(browsers),
                "-other-mix" => Self::ChangesMix(browsers),
                "-short-sessions" => Self::ShortSessions(browsers),
                _ => return None,
            })
        };
        match name {
            "alone" => Ok(Self::Alone),
            "alternating" => Ok(Self::Alternating),
            "alternating-clicks" => Ok(Self::AlternatingClicks),
            _ => of_browsers().ok_or_else(|| ShopNameError::Load(name.into())),
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
            phase_interactions: 2000,
            warm_connections: 700,
        };
        let offered = |load: Load| {
            assert!(load.visitors(pace, None, 5).is_none());
            let visitors = load.visitors(pace, Some(1000.0), 5).unwrap();
            assert_eq!(visitors.phase_s, Some(2.0));
            let Arrivals::Open {
                crowd,
                each,
                phases,
                ..
            } = visitors.arrivals
            else {
                panic!("{:?}", visitors.arrivals);
            };
            assert_eq!(crowd.browsers, 700);
            let (warm_up, counted) = phases.split_at(phases.len() - 3);
            let lasts: Duration = warm_up.iter().map(|phase| phase.lasts).sum();
            assert_eq!(crowd.lasts + lasts, load.warm_up());
            let clicks = match each {
                Arrival::Click => 1.0,
                Arrival::Session => visitors.times.clicks_mean(),
            };
            let expected: f64 = warm_up
                .iter()
                .map(|phase| phase.per_s * clicks * phase.lasts.as_secs_f64())
                .sum();
            assert!(expected <= 0.8 * 1000.0 * lasts.as_secs_f64(), "{expected}");
            let rates: Vec<f64> = counted.iter().map(|phase| phase.per_s).collect();
            (each, visitors.times, rates)
        };
        let (each, _, clicks) = offered(Load::AlternatingClicks);
        assert_eq!(each, Arrival::Click);
        assert_eq!(clicks, [1300.0, 600.0, 600.0]);
        let (each, times, sessions) = offered(Load::Alternating);
        assert_eq!(each, Arrival::Session);
        let pages = times.clicks_mean();
        assert!((9.5..10.0).contains(&pages), "{pages}");
        let clicks_again: Vec<f64> = sessions.iter().map(|rate| (rate * pages).round()).collect();
        assert_eq!(clicks_again, clicks);
        assert_eq!(overloads_s(10.0, 5.0, 40.0), [(5.0, 15.0), (35.0, 40.0)]);
    }

    #[test]
    fn the_warm_up_has_queues_and_ends_without() {
        for phase_ms in [1, 350, 2000, 11_200, 60_000] {
            let shares = warm_up(Duration::from_millis(phase_ms));
            let total: Duration = shares.iter().map(|(_, lasts)| *lasts).sum();
            assert_eq!(OPEN_CROWD + total, OPEN_WARM_UP);
            assert!(shares.iter().any(|(share, _)| *share > 1.0));
            let (share, lasts) = shares[shares.len() - 1];
            assert!(share < 1.0 && lasts > Duration::ZERO);
        }
    }

    #[test]
    fn loads_are_read_as_they_are_written() {
        for load in [
            Load::Alone,
            Load::Browsers(90),
            Load::SlowsDown(9),
            Load::ChangesMix(9),
            Load::ShortSessions(9),
            Load::Alternating,
            Load::AlternatingClicks,
        ] {
            assert_eq!(load.to_string().parse::<Load>().unwrap(), load);
        }
        for wrong in [
            "0-browsers",
            "9-browser",
            "9-browsers-slow",
            "-browsers",
            "all",
        ] {
            let error = wrong.parse::<Load>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("unknown load `{wrong}`: want")),
                "{error}"
            );
        }
    }

    #[test]
    fn only_some_loads_change() {
        assert!(Load::SlowsDown(5).changes() && Load::ChangesMix(5).later_mix().is_some());
        assert_eq!(Load::SlowsDown(5).later_mix(), None);
        assert_eq!(Load::SlowsDown(5).browsers(), None);
        assert_eq!(Load::Browsers(5).browsers(), Some(5));
        assert_eq!(Load::Browsers(100).warm_up(), Duration::from_secs(25));
        assert!(Load::ShortSessions(9).measures_capacity_for(Load::Alternating));
        assert!(!Load::Browsers(9).measures_capacity_for(Load::Alternating));
        assert!(Load::Browsers(9).measures_capacity_for(Load::AlternatingClicks));
    }
}
