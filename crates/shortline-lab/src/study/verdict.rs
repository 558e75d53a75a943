//! What a figure should be, and what became of a claim that says so.
#![deny(clippy::disallowed_methods)]

use serde::{Deserialize, Serialize};

/// What stands for the paper's words where no paper says it.
pub(crate) const OWN_AIM: &str = "our own aim";

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want {
    /// No smaller.
    AtLeast(f64),
    /// No larger.
    AtMost(f64),
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// At every point.
    Holds,
    /// At some points.
    Partly,
    /// At none.
    DoesNot,
    /// It could not be compared: what it takes was not run or not measured.
    Open,
}

/// A claim beside our own figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What is compared, in words.
    pub what: String,
    /// Ours at each point: its label, the median over the seeds.
    pub ours: Vec<(String, f64)>,
    /// What became of it.
    pub verdict: Verdict,
}

impl Want {
    /// Whether a figure is what it should be.
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

    /// Of a claim that is met at so many of all points.
    pub fn of(good: usize, all: usize) -> Self {
        match (good, all) {
            (_, 0) => Self::Open,
            (good, all) if good == all => Self::Holds,
            (0, _) => Self::DoesNot,
            _ => Self::Partly,
        }
    }

    /// What became of several claims together: all must hold for them to hold, so that what
    /// could not be compared keeps them from it; if none was compared, nothing is known.
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
