//! A share of the admitted work goes to the request that has waited longest, the *oldest*. So shortest first
//! starves no type.
//!
//! It applies to [`super::Order::Sjf`] and `Order::Gittins`. Each request that is admitted before
//! the oldest earns a credit. The oldest pays from it when its turn comes:
//!
//! ```text
//! admitted before the oldest:  credit += share * estimate
//! the oldest goes as such if   credit >= (1 - share) * min(its estimate, capacity)
//!                     then     credit -= (1 - share) * its estimate, and more if it takes more
//! ```
//!
//! It starts as soon as the load is below the capacity, and counts as at most half of the capacity. So the
//! backend need not become empty for it. When the queue is empty, the credit is reset to 0. At most the
//! capacity must be saved up, so a type whose estimate is far too long is soon tried again. If that request
//! takes less than a tenth of the estimate, the estimate is forgotten ([`super::types`]).
//!
//! **Theorem.** A request's *cost* is its estimate, or what it takes if that is more. Let `W` be the sum of
//! the costs of a request and of all requests that wait or run when it arrives. Let `e` be the largest
//! estimate, and `d` the amount by which it exceeds the capacity. Then the request is admitted before more
//! work than
//!
//! ```text
//! (W + d) / share + e
//! ```
//!
//! in estimates has been admitted since it arrived. So if work is admitted at a rate `r`, it waits no longer
//! than that over `r`, however long the overload lasts.
//!
//! *Proof.* Suppose it still waits. Let `S` be the work admitted before the oldest since it arrived, `O` that
//! of the oldest by credit, and `D` that of the oldest in its turn by rank. Let `x` be the amount charged
//! since then beyond estimates. The oldest is always one of those present at the arrival. So
//! `O + x + D + h <= W`, where `h` is the estimate of the present oldest. Credit is earned only while it does
//! not cover the oldest, so it is now below `(1 - share) h + share e`. It began at `-(1 - share) d` or more,
//! without what is charged later: `share S - (1 - share) (O + x + d) <= (1 - share) h + share e`. Hence
//! `share (S + O + D) <= O + x + D + h + d + share e <= W + d + share e`. (`tests/oldest.rs` checks it.)
//!
//! Paper 002's SJF (3.2) has no such share (`--oldest-share 0`), and starves: none of 104 best sellers ended
//! in an overload. The share's cost in the mean is in docs/gate.md. Homa keeps 5 % of its grants for the
//! oldest message (Montazeri et al., SIGCOMM 2018, 5.1). This is the same for work that is not preempted, so
//! credit is earned first. Aging by deadlines (002, 3.2) becomes FIFO in a lasting overload, because all
//! requests are overdue then.

use std::fmt;
use std::str::FromStr;

use crate::units::excerpt;

/// The share of the admitted work that goes to the request that has waited longest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OldestShare(f64);

/// The largest share. Beyond half, the order is hardly shortest first any more.
const SHARE_MAX: f64 = 0.5;

/// A text that is not a share for the oldest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("oldest share `{0}`: must be a percentage from 0 to 50%, such as 10%")]
pub struct OldestShareError(String);

impl Default for OldestShare {
    /// A tenth.
    fn default() -> Self {
        Self(0.1)
    }
}

impl OldestShare {
    /// No share: shortest first, which may starve long requests.
    pub const NONE: Self = Self(0.0);

    fn is_none(self) -> bool {
        self.0 <= 0.0
    }
}

impl FromStr for OldestShare {
    type Err = OldestShareError;

    fn from_str(text: &str) -> Result<Self, OldestShareError> {
        let percent = match text.strip_suffix('%') {
            Some(number) => number.trim().parse::<f64>().ok(),
            None => (text == "0").then_some(0.0),
        };
        let share = percent.map(|percent| percent / 100.0);
        share
            .filter(|share| (0.0..=SHARE_MAX).contains(share))
            .map(Self)
            .ok_or_else(|| OldestShareError(excerpt(text)))
    }
}

impl fmt::Display for OldestShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ten digits hide the rounding error of the division by 100.
        let percent = (self.0 * 1e12).round() / 1e10;
        f.pad(&format!("{percent}%"))
    }
}

/// The credit of the oldest request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Oldest {
    share: OldestShare,
    /// In nanoseconds of load.
    credit_ns: f64,
}

impl Oldest {
    pub(super) fn new(share: OldestShare) -> Self {
        Self {
            share,
            credit_ns: 0.0,
        }
    }

    /// Whether the credit covers an oldest request of this estimate.
    pub(super) fn covers(self, load_ns: u64, capacity_ns: Option<u64>) -> bool {
        let needed_ns = capacity_ns.map_or(load_ns, |capacity_ns| load_ns.min(capacity_ns));
        !self.share.is_none() && self.credit_ns >= self.price_ns(needed_ns)
    }

    /// Another request was admitted before the oldest.
    pub(super) fn earn(&mut self, load_ns: u64) {
        self.credit_ns += self.share.0 * load_ns as f64;
    }

    /// The oldest was admitted by credit, or took this much more than its estimate.
    pub(super) fn spend(&mut self, load_ns: u64) {
        self.credit_ns -= self.price_ns(load_ns);
    }

    /// The queue is empty.
    pub(super) fn clear(&mut self) {
        self.credit_ns = 0.0;
    }

    fn price_ns(self, load_ns: u64) -> f64 {
        (1.0 - self.share.0) * load_ns as f64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_share_is_a_percentage_up_to_a_half() {
        for (text, share) in [
            ("10%", 0.1),
            ("0%", 0.0),
            ("0", 0.0),
            ("2.5%", 0.025),
            ("50%", 0.5),
        ] {
            assert_eq!(text.parse(), Ok(OldestShare(share)), "{text}");
        }
        for text in ["10%", "2.5%", "7%", "0%"] {
            assert_eq!(text.parse::<OldestShare>().unwrap().to_string(), text);
        }
        for text in ["", "10", "-1%", "51%", "nan%", "%", "ten"] {
            let refusal = text.parse::<OldestShare>().unwrap_err().to_string();
            assert!(
                refusal.contains("from 0 to 50%") && refusal.lines().count() == 1,
                "{refusal}"
            );
        }
    }

    #[test]
    fn a_tenth_is_earned_by_nine_times_its_work() {
        let mut oldest = Oldest::new(OldestShare::default());
        for _ in 0..9 {
            assert!(!oldest.covers(100, None));
            oldest.earn(100);
        }
        assert!(oldest.covers(100, None));
        oldest.spend(100);
        assert!(!oldest.covers(100, None));
        // More than the capacity need not be saved up.
        oldest.earn(900);
        assert!(oldest.covers(1000, Some(100)));
    }

    #[test]
    fn without_a_share_nothing_is_covered() {
        let mut none = Oldest::new(OldestShare::NONE);
        none.earn(1_000_000);
        assert!(!none.covers(1, None) && !none.covers(0, None));
    }
}
