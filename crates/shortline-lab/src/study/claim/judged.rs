//! A check beside our own values: what was measured, how it is judged, and what a reader must know of it.

use serde::{Deserialize, Serialize};

use crate::study::stats::Spread;
use crate::study::verdict::{Better, Verdict, Want};

/// Fewer seeds than this do not decide what is near a threshold.
pub const SEEDS_WANTED: usize = 3;

/// A value at a point: the median over the seeds, and their range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Value {
    /// The point's label, or how points were combined.
    pub at: String,
    /// The median over the seeds, which is judged.
    pub median: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// How many seeds.
    pub seeds: usize,
}

/// A value as it is kept: label, median, least, greatest, seeds.
type Row = (String, f64, f64, f64, usize);

impl From<Row> for Value {
    fn from((at, median, low, high, seeds): Row) -> Self {
        Self {
            at,
            median,
            low,
            high,
            seeds,
        }
    }
}

impl From<Value> for Row {
    fn from(value: Value) -> Self {
        let [median, low, high] = [value.median, value.low, value.high].map(kept_digits);
        (value.at, median, low, high, value.seeds)
    }
}

/// A number with nine digits: what is written is read again the same.
fn kept_digits(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

impl Value {
    /// The values of the seeds at a point. `None` if there are none.
    pub fn of(at: &str, by_seed: &[f64]) -> Option<Self> {
        let Spread { median, low, high } = Spread::of(by_seed.iter().copied())?;
        Some(Self {
            at: at.into(),
            median,
            low,
            high,
            seeds: by_seed.len(),
        })
    }
}

/// What was measured for a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The value at each point, or of them together.
    pub values: Vec<Value>,
    /// How many points have none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: usize,
    /// What stands beside the values, for example types none of which finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The servers that a comparison is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Ours, beside today's FAIR.
    Ours,
    /// The paper's own: the kernel's bands, beside Apache.
    Papers,
    /// The same servers are both, for example 001's writers.
    Both,
}

impl System {
    /// Whether a comparison of `self` counts for the verdict on `other`.
    pub fn counts_for(self, other: Self) -> bool {
        self == other || self == Self::Both
    }
}

/// A check beside our values.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What is compared, in words.
    pub what: String,
    /// What the paper found, in its words.
    pub paper: String,
    /// What is wanted, in words.
    pub wanted: String,
    /// Whose comparison it is.
    pub system: System,
    /// Our values.
    pub measured: Measured,
    /// The verdict.
    pub verdict: Verdict,
    /// Some value is near a threshold and has too few seeds.
    pub is_doubtful: bool,
    /// The seeds of some value are on both sides of a threshold.
    pub is_split: bool,
}

/// How a check judges values.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    /// What it wants.
    pub want: Want,
    /// The better side of a range.
    pub better: Better,
    /// How many points must have a value.
    pub points: usize,
}

impl Judge {
    /// The verdict on values, and whether they are doubtful or split.
    pub fn verdict(self, measured: &Measured) -> (Verdict, bool, bool) {
        let meets = |value: f64| self.want.meets(value, self.better);
        let values = &measured.values;
        let points: Vec<_> = values.iter().map(|value| meets(value.median)).collect();
        let missing = self.points.saturating_sub(values.len());
        let is_doubtful = values
            .iter()
            .any(|value| value.seeds < SEEDS_WANTED && self.want.is_close(value.median));
        let is_split = values
            .iter()
            .any(|value| meets(value.low) != meets(value.high));
        let verdict = Verdict::of(&points, measured.missing.max(missing));
        (verdict, is_doubtful, is_split)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn judged(values: &[&[f64]], points: usize) -> (Verdict, bool, bool) {
        let judge = Judge {
            want: Want::Between(4.0, 8.0),
            better: Better::More,
            points,
        };
        let values = values.iter().filter_map(|by_seed| Value::of("p", by_seed));
        judge.verdict(&Measured {
            values: values.collect(),
            ..Measured::default()
        })
    }

    #[test]
    fn one_seed_near_a_threshold_is_doubtful_and_seeds_on_both_sides_are_split() {
        assert_eq!(judged(&[&[20.0]], 1), (Verdict::Exceeds, false, false));
        assert_eq!(judged(&[&[9.0]], 1), (Verdict::Exceeds, true, false));
        let three = [4.5, 3.5, 4.2];
        assert_eq!(judged(&[&three], 1), (Verdict::Holds, false, true));
        assert_eq!(judged(&[&[20.0]], 2), (Verdict::Partly, false, false));
        assert_eq!(judged(&[], 2), (Verdict::Open, false, false));
    }

    #[test]
    fn a_value_is_kept_as_a_row() {
        let thirds = serde_json::to_string(&Value::of("w1", &[2.0 / 3.0]).unwrap()).unwrap();
        assert_eq!(thirds, r#"["w1",0.666666667,0.666666667,0.666666667,1]"#);
        let value = Value::of("load-0.8", &[3.0, 1.0, 2.0]).unwrap();
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(text, r#"["load-0.8",2.0,1.0,3.0,3]"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(Value::of("load-0.8", &[]), None);
    }
}
