//! A share of the work that is admitted goes to whoever has waited longest, so that shortest first
//! leaves no type without service.
//!
//! Under [`super::Order::Sjf`] each request that is admitted although another has waited longer earns the
//! longest waiter a credit, of which it pays when its turn comes:
//!
//! ```text
//! admitted before the oldest:  credit += share * estimate
//! the oldest goes as such if   credit >= (1 - share) * min(its estimate, capacity)
//!                     then     credit -= (1 - share) * its estimate, and more if it takes more
//! ```
//!
//! It starts as soon as the load is below the capacity, and counts as half of that at most, so that the
//! backend need not become empty for it. The credit is 0 where nobody waits. A type whose
//! estimate is far too long is soon tried again, for no more than the capacity is saved up; if it then
//! takes less than a tenth, what was known is forgotten ([`super::types`]).
//!
//! **Theorem.** A request's *cost* is its estimate, or what it takes if that is more. Let `W` be the costs of
//! all that wait or run when a request comes and its own, `e` the largest estimate, and `d` by how much the
//! largest exceeds the capacity. Then it has been admitted before more work than
//!
//! ```text
//! (W + d) / share + e
//! ```
//!
//! in estimates has been admitted since it came. So where work is admitted at a rate `r`, it waits no longer
//! than that over `r`, however long the overload lasts. *Proof.* Say it still waits. Let `S` be the work
//! admitted before the oldest since then, `O` that of the oldest by credit, `D` that of the oldest in its
//! turn by rank, and `x` what was charged since then beyond estimates. The oldest is always one of
//! those that were there, so that `O + x + D + h <= W`, where `h` is the estimate of the one that is the oldest
//! now. Credit is earned only while it covers nobody, so that it ends up below `(1 - share) h + share e`, and
//! it began at `-(1 - share) d` or more, what is charged later left out:
//! `share S - (1 - share) (O + x + d) <= (1 - share) h + share e`. Then
//! `share (S + O + D) <= O + x + D + h + d + share e <= W + d + share e`. (`tests/oldest.rs` holds it.)
//!
//! Paper 002's SJF (3.2) has no such share (`--oldest-share 0`), and starves: none of 104 best sellers ended in an overload.
//! What the share costs in the mean is in docs/gate.md. Homa keeps 5 % of its grants for the oldest message
//! (Montazeri et al., SIGCOMM 2018, 5.1); this is the same for work that is not preempted, so that
//! credit is earned first. Aging by deadlines (002, 3.2) becomes FIFO in a lasting overload, for then
//! all are overdue.

use std::fmt;
use std::str::FromStr;

use crate::units::excerpt;

/// The share of the admitted work that goes to whoever has waited longest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OldestShare(f64);

/// No larger share: half of the work in order of arrival is hardly shortest first any more.
const SHARE_MAX: f64 = 0.5;

/// A text that is no such share.
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
    /// Nothing: the shortest first, whoever starves.
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
        // Ten digits hide what a division by 100 leaves.
        let percent = (self.0 * 1e12).round() / 1e10;
        f.pad(&format!("{percent}%"))
    }
}

/// What whoever has waited longest has earned.
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

    /// Whether the credit covers a request of that estimate.
    pub(super) fn covers(self, load_ns: u64, capacity_ns: Option<u64>) -> bool {
        let needed_ns = capacity_ns.map_or(load_ns, |capacity_ns| load_ns.min(capacity_ns));
        !self.share.is_none() && self.credit_ns >= self.price_ns(needed_ns)
    }

    /// Another was admitted before the oldest.
    pub(super) fn earn(&mut self, load_ns: u64) {
        self.credit_ns += self.share.0 * load_ns as f64;
    }

    /// The oldest was admitted as such, or took so much more than its estimate.
    pub(super) fn spend(&mut self, load_ns: u64) {
        self.credit_ns -= self.price_ns(load_ns);
    }

    /// Nobody waits.
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
