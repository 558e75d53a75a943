//! Who comes to the shop.
//!
//! - So many browsers in a closed loop, as in 002 (4.4), with a tenth of its times.
//! - Sessions of an open loop whose rate alternates below and above what the database can do, which is
//!   taken from the closed runs without a gate before. There sessions are short against a phase, that
//!   the load may follow their rate: about ten pages.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_bookstore::Locking;
use shortline_bookstore::browser::{Arrivals, CutExponential, Phase, Times};

use super::visit::failed;
use crate::LabError;

/// 002's times are multiplied by this in the closed loop.
const CLOSED_FACTOR: f64 = 0.1;
/// The same of the thinking time in the open loop.
const OPEN_FACTOR: f64 = 0.05;
/// How long sessions of the open loop think, all in all.
const OPEN_SESSION: CutExponential = CutExponential::new(3, 12);
/// The shares of capacity, and how long each lasts.
const SHARES: [f64; 2] = [1.3, 0.6];
const PHASE: Duration = Duration::from_secs(10);
/// More sessions at once than this are not begun, and counted.
const SESSIONS_MAX: usize = 5_000;
/// How long the last may take.
const DRAIN_MAX: Duration = Duration::from_secs(120);

/// The visitors of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// So many, in a closed loop.
    Browsers(usize),
    /// Sessions that begin by themselves, at 1.3 and 0.6 of capacity in turn.
    Alternating,
}

impl Load {
    /// Whether every interaction counts, from the first to the last of the drained shop; else only those
    /// after a warm-up and before the end.
    pub fn counts_all(self) -> bool {
        self == Self::Alternating
    }

    /// Who comes when, and how long they think; `peak_per_s` is how many interactions a second the
    /// database can do.
    ///
    /// # Errors
    /// If that is wanted and not known.
    pub fn arrivals(
        self,
        locking: Locking,
        peak_per_s: Option<f64>,
    ) -> Result<(Arrivals, Times), LabError> {
        let times = match locking {
            Locking::Application => Times::APPLICATION_LOCKING,
            Locking::Database => Times::DATABASE_LOCKING,
        };
        match self {
            Self::Browsers(browsers) => {
                Ok((Arrivals::Closed { browsers }, times.scaled(CLOSED_FACTOR)))
            }
            Self::Alternating => {
                let peak_per_s = peak_per_s.ok_or_else(|| {
                    failed(
                        "the open loop",
                        &"wants a closed run without a gate (door none)",
                    )
                })?;
                let times = Times {
                    think: times.think.scaled(OPEN_FACTOR),
                    session: OPEN_SESSION,
                };
                Ok((alternating(times, peak_per_s), times))
            }
        }
    }
}

fn alternating(times: Times, peak_per_s: f64) -> Arrivals {
    // The first page, and one after each thinking time that ends before the session does.
    let pages = 1.0 + times.session.cut_mean_s() / times.think.cut_mean_s();
    let phase = |share| Phase {
        lasts: PHASE,
        sessions_per_s: share * peak_per_s / pages,
    };
    Arrivals::Open {
        phases: SHARES.map(phase).into(),
        sessions_max: SESSIONS_MAX,
        drain_max: DRAIN_MAX,
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Browsers(browsers) => write!(f, "{browsers}-browsers"),
            Self::Alternating => f.write_str("alternating"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_open_loop_offers_its_shares_of_the_peak() {
        let load = Load::Alternating;
        assert!(load.arrivals(Locking::Application, None).is_err());
        let (arrivals, times) = load.arrivals(Locking::Application, Some(1000.0)).unwrap();
        let Arrivals::Open { phases, .. } = arrivals else {
            panic!("{arrivals:?}");
        };
        let pages = 1.0 + times.session.cut_mean_s() / times.think.cut_mean_s();
        assert!((9.0..10.0).contains(&pages), "{pages}");
        assert!((phases[0].sessions_per_s * pages - 1300.0).abs() < 1e-6);
        assert!((phases[1].sessions_per_s * pages - 600.0).abs() < 1e-6);
    }
}
