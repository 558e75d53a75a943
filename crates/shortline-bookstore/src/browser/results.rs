//! The summary of a run, for each interaction and for all.
//!
//! - Means are over all interactions; a failed one counts with the time until it failed. There are
//!   also means over the finished ones alone, as 002 counts (4.5).
//! - A 90 % interval is by Student's t. For one run it is over the means of ten batches of
//!   consecutive interactions; for repeated runs, over their figures (002, 4.5).
//! - Throughput counts interactions that ended well between warm-up and end, whenever they began,
//!   per minute of that time. Everything else counts those that began between warm-up and end.
//! - An interaction under way when a closed run ends is unfinished, which is not a failure. It
//!   counts in the mean of all with its time so far, which is less than it would have taken.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_load::{Failure, RequestRecord};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::interaction::Interaction;

/// The number of batches of a run.
const BATCHES: usize = 10;

/// A run, without its warm-up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// All interactions together. `None` if there were none.
    pub all: Option<TypeSummary>,
    /// Each interaction that occurred.
    pub types: BTreeMap<Interaction, TypeSummary>,
    /// Finished interactions per minute.
    pub throughput_per_min: f64,
    /// Failures by kind.
    pub failures: BTreeMap<String, usize>,
}

/// The interactions of one type. Times in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TypeSummary {
    /// How many.
    pub count: usize,
    /// How many of them failed.
    pub failed: usize,
    /// How many were under way when the run ended.
    pub unfinished: usize,
    /// The mean of all interactions.
    pub mean_s: Estimate,
    /// The mean of the finished ones. `None` if none finished.
    pub mean_finished_s: Option<f64>,
    /// The mean time to the page's head, over pages with a head.
    pub first_byte_mean_s: Option<f64>,
    /// The median.
    pub p50_s: f64,
    /// The 90th percentile.
    pub p90_s: f64,
    /// The 99th percentile.
    pub p99_s: f64,
    /// The longest.
    pub max_s: f64,
}

/// A mean and its confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 90 % interval. `None` for a single figure.
    pub half_width_90: Option<f64>,
}

impl Estimate {
    /// From independent figures. `None` if there are none.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let count = figures.len() as f64;
        let mean = mean(figures)?;
        if figures.len() < 2 {
            let half_width_90 = None;
            return Some(Self {
                mean,
                half_width_90,
            });
        }
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
        let half_width_90 = Some(student.inverse_cdf(0.95) * deviation / count.sqrt());
        Some(Self {
            mean,
            half_width_90,
        })
    }
}

impl Summary {
    /// Summarises what began between `warm_up` and `end`, both counted from the start of the run.
    pub fn of(records: &[RequestRecord], warm_up: Duration, end: Duration) -> Self {
        let window = warm_up.as_secs_f64()..end.as_secs_f64();
        let mut counted: Vec<&RequestRecord> = records
            .iter()
            .filter(|record| window.contains(&record.at_s))
            .collect();
        counted.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        let mut by_type: BTreeMap<Interaction, Vec<&RequestRecord>> = BTreeMap::new();
        let mut failures = BTreeMap::new();
        for record in &counted {
            let name = record.path.trim_start_matches('/');
            if let Ok(interaction) = name.parse() {
                by_type.entry(interaction).or_default().push(record);
            }
            if let Some(failure) = record
                .failure
                .filter(|failure| *failure != Failure::Unfinished)
            {
                *failures.entry(failure.to_string()).or_default() += 1;
            }
        }
        let ended_in_time = |record: &&RequestRecord| {
            record.ok() && window.contains(&(record.at_s + record.response_time_s))
        };
        let finished = records.iter().filter(ended_in_time).count();
        let types = by_type
            .into_iter()
            .filter_map(|(interaction, records)| Some((interaction, TypeSummary::of(&records)?)));
        Self {
            all: TypeSummary::of(&counted),
            types: types.collect(),
            throughput_per_min: 60.0 * finished as f64 / (window.end - window.start),
            failures,
        }
    }
}

impl TypeSummary {
    fn of(records: &[&RequestRecord]) -> Option<Self> {
        let times: Vec<f64> = records
            .iter()
            .map(|record| record.response_time_s)
            .collect();
        let batch = times.len().div_ceil(BATCHES).max(1);
        let batches: Vec<f64> = times.chunks(batch).filter_map(mean).collect();
        let finished: Vec<f64> = records
            .iter()
            .filter(|record| record.ok())
            .map(|record| record.response_time_s)
            .collect();
        let first: Vec<f64> = records
            .iter()
            .filter_map(|record| record.first_byte_s)
            .collect();
        let unfinished = records
            .iter()
            .filter(|record| record.failure == Some(Failure::Unfinished))
            .count();
        let mut sorted = times.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        // Nearest rank.
        let percentile = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.max(1) - 1).copied()
        };
        Some(Self {
            count: times.len(),
            failed: times.len() - finished.len() - unfinished,
            unfinished,
            mean_s: Estimate {
                mean: mean(&times)?,
                half_width_90: Estimate::of(&batches)?.half_width_90,
            },
            mean_finished_s: mean(&finished),
            first_byte_mean_s: mean(&first),
            p50_s: percentile(0.5)?,
            p90_s: percentile(0.9)?,
            p99_s: percentile(0.99)?,
            max_s: *sorted.last()?,
        })
    }
}

fn mean(figures: &[f64]) -> Option<f64> {
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn five_runs_have_an_interval_by_students_t() {
        // t of 4 degrees at 95 % is 2.132; the deviation of 1..5 is 1.5811.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.half_width_90.unwrap() - 1.5074).abs() < 0.001);
        assert_eq!(Estimate::of(&[7.0]).unwrap().half_width_90, None);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn what_failed_counts_in_the_mean_but_not_as_throughput() {
        let mut records: Vec<_> = (0..20)
            .map(|n| RequestRecord::finished(f64::from(n), "/home", 10, 1.0))
            .collect();
        records[15].failure = Some(Failure::Timeout);
        records[15].response_time_s = 11.0;
        let summary = Summary::of(&records, Duration::from_secs(10), Duration::from_secs(20));
        let home = &summary.types[&Interaction::Home];
        assert_eq!((home.count, home.failed), (10, 1));
        assert_eq!(home.mean_s.mean, 2.0);
        assert_eq!(home.mean_finished_s, Some(1.0));
        assert_eq!(home.max_s, 11.0);
        // Seconds 9 to 18, except 15, ended in the window.
        assert_eq!(summary.throughput_per_min, 54.0);
        assert_eq!(summary.failures["timeout"], 1);
        records[16].failure = Some(Failure::Unfinished);
        let summary = Summary::of(&records, Duration::from_secs(10), Duration::from_secs(20));
        let home = &summary.types[&Interaction::Home];
        assert_eq!((home.count, home.failed, home.unfinished), (10, 1, 1));
        assert_eq!(summary.failures.len(), 1);
    }

    #[test]
    fn nothing_is_no_mean() {
        let summary = Summary::of(&[], Duration::ZERO, Duration::from_secs(1));
        assert!(summary.all.is_none() && summary.types.is_empty());
    }
}
