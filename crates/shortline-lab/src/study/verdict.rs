//! The expected value of a figure, and the verdict on a claim.
//!
//! A value stands to what is wanted of it in one of three ways ([`Meets`]). Several points make the verdict of a check
//! ([`Verdict::of`]), several checks that of a clause, several clauses that of a figure ([`Verdict::together`]).
#![deny(clippy::disallowed_methods)]

use std::fmt;

use serde::Deserialize;

/// Replaces the paper's words for our own aims.
pub(crate) const OWN_AIM: &str = "our own aim";
/// A value as near as this to a threshold, as a share of it, needs several seeds.
const NEAR: f64 = 0.3;

/// The expected value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// From the first to the second.
    Between(f64, f64),
    /// About the first: it may differ by the second, as a share of it.
    Near(f64, f64),
}

/// The side on which a value is better than what a range asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
    /// Neither is.
    Neither,
}

/// How a value stands to what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meets {
    /// As wanted.
    Yes,
    /// Outside a range, on its better side.
    Beyond,
    /// Not as wanted.
    No,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All of it is as claimed.
    Holds,
    /// It holds, and something is beyond what the paper has, on the better side.
    Exceeds,
    /// Some of it is as claimed.
    Partly,
    /// None of it is.
    DoesNot,
    /// It could not be compared: not run, not measured, or the run was too short or too light for it.
    Open,
}

impl Want {
    /// How a value stands to it.
    pub fn meets(self, value: f64, better: Better) -> Meets {
        let (low, high) = self.range();
        match better {
            _ if (low..=high).contains(&value) => Meets::Yes,
            Better::More if value > high && low.is_finite() => Meets::Beyond,
            Better::Less if value < low && high.is_finite() => Meets::Beyond,
            _ => Meets::No,
        }
    }

    /// The least and the greatest value. A side that is open is infinite.
    fn range(self) -> (f64, f64) {
        match self {
            Self::AtLeast(least) => (least, f64::INFINITY),
            Self::AtMost(most) => (f64::NEG_INFINITY, most),
            Self::Between(least, most) => (least, most),
            Self::Near(value, within) => (value * (1.0 - within), value * (1.0 + within)),
        }
    }

    /// The thresholds: the sides that are not open.
    fn thresholds(self) -> impl Iterator<Item = f64> {
        let (low, high) = self.range();
        [low, high].into_iter().filter(|side| side.is_finite())
    }

    /// The greatest threshold. What had not come to pass by then does not come to pass as wanted.
    pub fn last_threshold(self) -> f64 {
        self.thresholds().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Whether a value is so near to a threshold that chance may have put it on its side.
    pub fn is_close(self, value: f64) -> bool {
        self.thresholds()
            .any(|side| side != 0.0 && (value / side - 1.0).abs() <= NEAR)
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |value: f64| (value * 1000.0).round() / 1000.0;
        match self {
            Self::AtLeast(least) => write!(f, "{} at least", short(*least)),
            Self::AtMost(most) => write!(f, "{} at most", short(*most)),
            Self::Between(low, high) => write!(f, "{} to {}", short(*low), short(*high)),
            Self::Near(value, within) => {
                write!(f, "{} ± {:.0} %", short(*value), 100.0 * within)
            }
        }
    }
}

impl Verdict {
    /// Every verdict, best first.
    pub const ALL: [Self; 5] = [
        Self::Holds,
        Self::Exceeds,
        Self::Partly,
        Self::DoesNot,
        Self::Open,
    ];

    /// The verdict on a check: how the values of its points stand to it, and how many points have none. One point that
    /// is not as wanted, or has no value, keeps it from holding.
    pub fn of(points: &[Meets], missing: usize) -> Self {
        let count = |of: Meets| points.iter().filter(|meets| **meets == of).count();
        let bad = count(Meets::No);
        match points.len() {
            0 => Self::Open,
            all if bad == all => Self::DoesNot,
            _ if bad + missing > 0 => Self::Partly,
            _ if count(Meets::Beyond) > 0 => Self::Exceeds,
            _ => Self::Holds,
        }
    }

    /// The verdict on several claims together. They hold if all of them hold, so one that could not be compared prevents
    /// it. If none was compared, the verdict is that nothing was measured.
    pub fn together(verdicts: &[Self]) -> Self {
        let all = |of: &[Self]| verdicts.iter().all(|verdict| of.contains(verdict));
        if all(&[Self::Open]) {
            Self::Open
        } else if all(&[Self::Holds]) {
            Self::Holds
        } else if all(&[Self::Holds, Self::Exceeds]) {
            Self::Exceeds
        } else if all(&[Self::DoesNot, Self::Open]) {
            Self::DoesNot
        } else {
            Self::Partly
        }
    }

    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Exceeds => "exceeds",
            Self::Partly => "holds partly",
            Self::DoesNot => "does not hold",
            Self::Open => "not measured",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_two_sides() {
        use Meets::{Beyond, No, Yes};
        let range = Want::Between(4.0, 8.0);
        let of = |better| [3.0, 4.0, 8.0, 36.0].map(|value| range.meets(value, better));
        assert_eq!(of(Better::More), [No, Yes, Yes, Beyond]);
        assert_eq!(of(Better::Less), [Beyond, Yes, Yes, No]);
        assert_eq!(of(Better::Neither), [No, Yes, Yes, No]);
        let about = Want::Near(2.0, 0.1);
        assert_eq!(
            [1.7, 1.81, 2.19, 2.3].map(|value| about.meets(value, Better::Neither)),
            [No, Yes, Yes, No]
        );
        assert_eq!(Want::AtLeast(4.0).meets(36.0, Better::More), Yes);
        assert_eq!(Want::AtMost(4.0).meets(0.0, Better::Less), Yes);
        assert_eq!(Want::AtMost(4.0).meets(5.0, Better::More), No);
        assert_eq!(Want::AtLeast(4.0).meets(3.0, Better::Less), No);
    }

    #[test]
    fn a_value_is_close_to_either_side() {
        let range = Want::Between(4.0, 8.0);
        let close = [2.7, 2.9, 5.3, 6.0, 10.3, 10.5].map(|value| range.is_close(value));
        assert_eq!(close, [false, true, false, true, true, false]);
        assert!(!Want::AtMost(0.0).is_close(0.0));
        assert_eq!(range.last_threshold(), 8.0);
    }

    #[test]
    fn points_make_a_verdict() {
        use Meets::{Beyond, No, Yes};
        let of = Verdict::of;
        assert_eq!(of(&[Yes, Yes], 0), Verdict::Holds);
        assert_eq!(of(&[Yes, Beyond], 0), Verdict::Exceeds);
        assert_eq!(of(&[Yes, Yes], 1), Verdict::Partly);
        assert_eq!(of(&[No, Beyond], 0), Verdict::Partly);
        assert_eq!(of(&[No, No], 1), Verdict::DoesNot);
        assert_eq!(of(&[], 3), Verdict::Open);
    }

    #[test]
    fn claims_hold_together_if_all_hold() {
        use Verdict::{DoesNot, Exceeds, Holds, Open, Partly};
        let together = Verdict::together;
        assert_eq!(together(&[Holds, Holds]), Holds);
        assert_eq!(together(&[Holds, Exceeds]), Exceeds);
        assert_eq!(together(&[Holds, DoesNot]), Partly);
        assert_eq!(together(&[Exceeds, Open]), Partly);
        assert_eq!(together(&[Partly, DoesNot]), Partly);
        assert_eq!(together(&[DoesNot, Open]), DoesNot);
        assert_eq!(together(&[Open, Open]), Open);
        assert_eq!(together(&[]), Open);
    }
}
