//! The expected value of a figure, and the verdict on a claim.
#![deny(clippy::disallowed_methods)]

use serde::{Deserialize, Serialize};

/// Replaces the paper's words for our own aims.
pub(crate) const OWN_AIM: &str = "our own aim";

/// The expected value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds at every point.
    Holds,
    /// It holds at some points.
    Partly,
    /// It holds at no point.
    DoesNot,
    /// It could not be compared, because something was not run or not measured.
    Open,
}

/// A claim beside our own figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What is compared, in words.
    pub what: String,
    /// Ours at each point: its label, the median over the seeds.
    pub ours: Vec<(String, f64)>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Want {
    /// Whether a figure is as expected.
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

impl Verdict {
    /// Every verdict, best first.
    pub const ALL: [Self; 4] = [Self::Holds, Self::Partly, Self::DoesNot, Self::Open];

    /// The verdict on a claim that is met at this many of all points.
    pub fn of(good: usize, all: usize) -> Self {
        match (good, all) {
            (_, 0) => Self::Open,
            (good, all) if good == all => Self::Holds,
            (0, _) => Self::DoesNot,
            _ => Self::Partly,
        }
    }

    /// The verdict on several claims together. They hold if all of them hold, so one that could not be
    /// compared prevents it. If none was compared, the verdict is that nothing was measured.
    pub fn together(verdicts: &[Self]) -> Self {
        let all = |of: Self| verdicts.iter().all(|verdict| *verdict == of);
        let fails = |verdict: &Self| matches!(verdict, Self::DoesNot | Self::Open);
        if all(Self::Open) {
            Self::Open
        } else if all(Self::Holds) {
            Self::Holds
        } else if verdicts.iter().all(fails) {
            Self::DoesNot
        } else {
            Self::Partly
        }
    }

    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
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
    fn claims_hold_together_if_all_hold() {
        use Verdict::{DoesNot, Holds, Open, Partly};
        let together = Verdict::together;
        assert_eq!(together(&[Holds, Holds]), Holds);
        assert_eq!(together(&[Holds, DoesNot]), Partly);
        assert_eq!(together(&[Holds, Open]), Partly);
        assert_eq!(together(&[Partly, DoesNot]), Partly);
        assert_eq!(together(&[DoesNot, Open]), DoesNot);
        assert_eq!(together(&[Open, Open]), Open);
        assert_eq!(together(&[]), Open);
    }
}
