//! A result: its claim, its figure with a unit, its target, and whether the target is met.

use std::fmt;

use serde::Deserialize;
use toml::value::Datetime;

/// One result: a claim, the figure beside its target, and how it was measured.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Its name, for links and for the README.
    pub id: String,
    /// The headline it belongs to.
    pub headline: String,
    /// What was measured.
    pub claim: String,
    /// The figure, which is the median of several runs.
    pub value: f64,
    /// The unit of the figure.
    #[serde(default)]
    pub unit: Unit,
    /// The lowest and the highest of several runs.
    pub range: Option<[f64; 2]>,
    /// The target, if more is worse.
    pub at_most: Option<f64>,
    /// The target, if less is worse.
    pub at_least: Option<f64>,
    /// Where it was measured.
    pub bed: Bed,
    /// How many runs, and of what.
    pub runs: String,
    /// The day it was measured or put on record.
    pub date: Datetime,
    /// The commit that put it on record.
    pub commit: String,
    /// The command that measures it again.
    pub command: String,
    /// Further notes for the reader.
    pub note: Option<String>,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Unit {
    /// A ratio or a number.
    #[default]
    #[serde(rename = "")]
    None,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Millions of bytes.
    #[serde(rename = "MB")]
    Megabytes,
    /// Per cent.
    #[serde(rename = "%")]
    Percent,
    /// Millions a minute.
    #[serde(rename = "million/min")]
    MillionsAMinute,
}

/// Where a result was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bed {
    /// Namespaces of this kernel.
    Native,
    /// A kernel in virtual time.
    Virtual,
    /// The loopback interface.
    Loopback,
    /// The simulator.
    Simulated,
    /// A private database server.
    Database,
    /// A benchmark inside one process.
    Bench,
}

/// Whether a target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Met by every run.
    Met,
    /// Met by the median, but not by every run.
    MetInTheMedian,
    /// Not met by the median.
    Missed,
}

impl Outcome {
    /// The figure with its unit.
    pub fn figure(&self) -> String {
        self.unit.of(self.value)
    }

    /// The lowest to the highest run, if there were several.
    pub fn range_text(&self) -> Option<String> {
        let [low, high] = self.range?;
        Some(format!("{low} to {}", self.unit.of(high)))
    }

    /// The target in words, if there is one.
    pub fn target_text(&self) -> Option<String> {
        let at_most = self
            .at_most
            .map(|most| format!("at most {}", self.unit.of(most)));
        at_most.or_else(|| {
            self.at_least
                .map(|least| format!("at least {}", self.unit.of(least)))
        })
    }

    /// Whether the target is met, if there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        let value = self.of_target(self.value)?;
        let [low, high] = self.range.unwrap_or([self.value; 2]);
        let worst = self.of_target(low)?.max(self.of_target(high)?);
        Some(match (value <= 1.0, worst <= 1.0) {
            (true, true) => Verdict::Met,
            (true, false) => Verdict::MetInTheMedian,
            (false, _) => Verdict::Missed,
        })
    }

    /// A figure as a share of the target. Above 1 the target is missed.
    pub fn of_target(&self, figure: f64) -> Option<f64> {
        let at_most = self.at_most.map(|most| figure / most);
        at_most.or_else(|| self.at_least.map(|least| least / figure))
    }
}

impl Unit {
    fn of(self, figure: f64) -> String {
        let name = match self {
            Self::None => return figure.to_string(),
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
            Self::Megabytes => "MB",
            Self::Percent => "%",
            Self::MillionsAMinute => "million/min",
        };
        format!("{figure} {name}")
    }
}

impl fmt::Display for Bed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Virtual => "virtual",
            Self::Loopback => "loopback",
            Self::Simulated => "simulated",
            Self::Database => "database",
            Self::Bench => "bench",
        })
    }
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::MetInTheMedian => "met in the median",
            Self::Missed => "**missed**",
        }
    }
}
