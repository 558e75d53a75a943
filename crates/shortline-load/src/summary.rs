//! The results of a run: response times, slowdowns, size classes, failures, lateness.
//!
//! - Means, variance, C² (variance over squared mean) and percentiles (nearest rank) of response
//!   times are over **all** requests. A failed request counts with the time until it failed (003,
//!   appendix: SURGE had left them out, which hides starvation). The mean of the finished ones
//!   alone stands beside it (000, 4; 002, 4.5), for each class of sizes too.
//! - Incomplete requests are those that did not finish in any of their tries (000, 5.1 H and J: of
//!   all, and of the largest 1 %).
//! - Slowdown is response time over the time alone in the system, of finished requests. Alone is
//!   the wire time at the link's rate if that is given. Else it is measured: for a size, the least
//!   response time of any finished request of that size or larger (no request can be alone faster
//!   than a larger one was). That is an upper bound, which is loose for the largest sizes, where
//!   few requests were ever alone.
//! - A run is **void** if more than one start in a hundred was over 5 ms late (then the generator,
//!   not the server, was the bottleneck) or if it was interrupted. The worst lateness and the
//!   number of late starts are always reported. A single stall of a shared machine is no reason to
//!   throw a run away, but it should be seen.

mod slowdown;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;
use shortline_table::bytes;

use crate::record::RequestRecord;
pub use slowdown::KnownLink;
use slowdown::slowdowns;

/// A start later than this is late, in seconds.
pub const LATE_S: f64 = 0.005;
/// The share of late starts that makes a run void.
pub const LATE_SHARE_MAX: f64 = 0.01;

/// The exit code of a command whose run is void.
pub const VOID_EXIT_CODE: u8 = 3;

/// Upper bounds of the size classes, in bytes; the last class has none.
const CLASS_BOUNDS: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// The summary of a run. `Display` prints it as a table.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Requests made.
    pub requests: usize,
    /// Requests whose whole response came as it should.
    pub finished: usize,
    /// The share that did not finish in any try.
    pub incomplete_share: f64,
    /// Failed requests by kind.
    pub failures: BTreeMap<String, usize>,
    /// Body bytes received by last tries.
    pub received_bytes: u64,
    /// From the first intended start to the last end, in seconds.
    pub duration_s: f64,
    /// Response times of all requests, in seconds.
    pub response_time: Distribution,
    /// Mean response time of the finished ones, in seconds; `None` if none finished.
    pub response_time_mean_finished_s: Option<f64>,
    /// Time to the head of the response, in seconds, where one came.
    pub first_byte: Option<Distribution>,
    /// Response time over the time alone, of the finished ones.
    pub slowdown: Option<Distribution>,
    /// The rate that slowdowns refer to, in bits per second; `None` if measured.
    pub slowdown_rate_bps: Option<u64>,
    /// The requests by expected size, classes without any left out.
    pub classes: Vec<SizeClass>,
    /// The largest 1 % of the requests (at least one).
    pub largest: SizeClass,
    /// How late requests started, in seconds.
    pub lateness: Distribution,
    /// Starts more than [`LATE_S`] late.
    pub late_starts: usize,
    /// Why the run does not count; `None` if it does.
    pub void: Option<String>,
}

/// Mean, spread and percentiles of a sample; in the unit of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it all")]
pub struct Distribution {
    pub count: usize,
    pub mean: f64,
    pub variance: f64,
    pub c2: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

/// The requests of one class of sizes.
#[derive(Clone, Debug, Serialize)]
pub struct SizeClass {
    /// Its name, such as `1-10 KB`.
    pub name: String,
    /// How many failed.
    pub failed: usize,
    /// The share that failed.
    pub incomplete_share: f64,
    /// Response times of all, in seconds; `count` says how many there are.
    pub response_time: Distribution,
    /// Mean response time of the finished ones, in seconds; `None` if none finished.
    pub response_time_mean_finished_s: Option<f64>,
    /// Mean time to the head of the response, in seconds, where one came.
    pub first_byte_mean_s: Option<f64>,
    /// Mean slowdown of the finished ones.
    pub slowdown_mean: Option<f64>,
}

impl Summary {
    /// Sums up the records of a run; `None` if there are none. `interrupted`: the run ended before
    /// its schedule.
    pub fn of(
        records: &[RequestRecord],
        link: Option<KnownLink<'_>>,
        interrupted: bool,
    ) -> Option<Self> {
        let slowdowns = slowdowns(records, link);
        let all: Vec<usize> = (0..records.len()).collect();
        let lateness = Distribution::of(records.iter().map(|r| r.lag_s))?;
        let late_starts = records.iter().filter(|r| r.lag_s > LATE_S).count();
        let begin_s = records.iter().map(|r| r.at_s).fold(f64::INFINITY, f64::min);
        let end_s = records
            .iter()
            .map(|r| r.at_s + r.response_time_s)
            .fold(0.0, f64::max);
        let finished = records.iter().filter(|r| r.ok());
        let finished_count = finished.clone().count();
        Some(Self {
            requests: records.len(),
            finished: finished_count,
            incomplete_share: 1.0 - finished_count as f64 / records.len() as f64,
            failures: failures(records),
            received_bytes: records.iter().map(|r| r.received).sum(),
            duration_s: end_s - begin_s,
            response_time: Distribution::of(records.iter().map(|r| r.response_time_s))?,
            response_time_mean_finished_s: mean(finished.map(|r| r.response_time_s)),
            first_byte: Distribution::of(records.iter().filter_map(|r| r.first_byte_s)),
            slowdown: Distribution::of(slowdowns.iter().copied().flatten()),
            slowdown_rate_bps: link.map(|link| link.rate.bps()),
            classes: classes(records, &slowdowns),
            largest: largest(records, all, &slowdowns)?,
            lateness,
            late_starts,
            void: void(records.len(), late_starts, interrupted),
        })
    }
}

impl Distribution {
    /// Of a sample in any order; nothing if it is empty.
    pub fn of(sample: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sample: Vec<f64> = sample.into_iter().collect();
        sample.sort_unstable_by(f64::total_cmp);
        let max = *sample.last()?;
        let count = sample.len();
        let mean = sample.iter().sum::<f64>() / count as f64;
        let squares: f64 = sample.iter().map(|value| (value - mean).powi(2)).sum();
        let variance = squares / count as f64;
        let rank =
            |share: f64| sample[((share * count as f64).ceil() as usize).clamp(1, count) - 1];
        Some(Self {
            count,
            mean,
            variance,
            c2: if mean > 0.0 {
                variance / mean.powi(2)
            } else {
                0.0
            },
            p50: rank(0.5),
            p90: rank(0.9),
            p99: rank(0.99),
            p99_9: rank(0.999),
            max,
        })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

fn failures(records: &[RequestRecord]) -> BTreeMap<String, usize> {
    let mut failures = BTreeMap::new();
    for failure in records.iter().filter_map(|record| record.failure) {
        *failures.entry(failure.to_string()).or_default() += 1;
    }
    failures
}

fn void(requests: usize, late_starts: usize, interrupted: bool) -> Option<String> {
    if interrupted {
        return Some("interrupted before the end of the schedule".into());
    }
    let late = late_starts as f64 > LATE_SHARE_MAX * requests as f64;
    late.then(|| {
        format!(
            "{late_starts} of {requests} requests started more than {:.0} ms late: the \
             generator was the bottleneck; want a lower rate, or more processes (--part)",
            LATE_S * 1e3
        )
    })
}

fn classes(records: &[RequestRecord], slowdowns: &[Option<f64>]) -> Vec<SizeClass> {
    let mut members: [Vec<usize>; CLASS_BOUNDS.len() + 1] = Default::default();
    for (index, record) in records.iter().enumerate() {
        members[CLASS_BOUNDS.partition_point(|bound| *bound <= record.size)].push(index);
    }
    let names = ["< 1 KB", "1-10 KB", "10-100 KB", "100 KB-1 MB", ">= 1 MB"];
    names
        .into_iter()
        .zip(members)
        .filter_map(|(name, members)| class(name.into(), records, &members, slowdowns))
        .collect()
}

fn largest(
    records: &[RequestRecord],
    mut members: Vec<usize>,
    slowdowns: &[Option<f64>],
) -> Option<SizeClass> {
    // A stable sort: of equal sizes the earlier request counts as one of the largest first.
    members.sort_by_key(|index| std::cmp::Reverse(records[*index].size));
    members.truncate(records.len().div_ceil(100));
    let least = records[*members.last()?].size;
    let name = format!("largest 1 % (from {})", bytes(least as f64));
    class(name, records, &members, slowdowns)
}

fn class(
    name: String,
    records: &[RequestRecord],
    members: &[usize],
    slowdowns: &[Option<f64>],
) -> Option<SizeClass> {
    let of = || members.iter().map(|index| &records[*index]);
    let failed = of().filter(|record| !record.ok()).count();
    let finished = of().filter(|record| record.ok());
    Some(SizeClass {
        name,
        failed,
        incomplete_share: failed as f64 / members.len() as f64,
        response_time: Distribution::of(of().map(|record| record.response_time_s))?,
        response_time_mean_finished_s: mean(finished.map(|record| record.response_time_s)),
        first_byte_mean_s: mean(of().filter_map(|record| record.first_byte_s)),
        slowdown_mean: mean(members.iter().filter_map(|index| slowdowns[*index])),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::record::Failure;
    use shortline_sched::units::Rate;

    fn record(size: u64, response_time_s: f64, failure: Option<Failure>) -> RequestRecord {
        RequestRecord {
            connect_s: Some(0.0),
            first_byte_s: Some(response_time_s / 2.0),
            failure,
            ..RequestRecord::finished(0.0, "/a", size, response_time_s)
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn no_records_have_no_summary() {
        assert!(Summary::of(&[], None, false).is_none());
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let hundred = Distribution::of((1..=100).map(f64::from)).unwrap();
        assert_eq!((hundred.p50, hundred.p90, hundred.p99), (50.0, 90.0, 99.0));
        assert_eq!(
            (hundred.p99_9, hundred.max, hundred.mean),
            (100.0, 100.0, 50.5)
        );
        let two = Distribution::of([1.0, 3.0]).unwrap();
        assert_eq!((two.variance, two.c2), (1.0, 0.25));
    }

    #[test]
    fn what_failed_counts_with_the_time_until_it_did() {
        let records = [record(10, 1.0, None), record(10, 3.0, Some(Failure::Reset))];
        let summary = Summary::of(&records, None, false).unwrap();
        assert_eq!(summary.response_time.mean, 2.0);
        assert_eq!(summary.response_time_mean_finished_s, Some(1.0));
        assert_eq!(summary.failures, BTreeMap::from([("reset".to_owned(), 1)]));
        assert_eq!(summary.incomplete_share, 0.5);
        // The later one of equal sizes is not among the largest 1 %.
        assert_eq!(summary.largest.incomplete_share, 0.0);
        let class = &summary.classes[0];
        assert_eq!(class.response_time.mean, 2.0);
        assert_eq!(class.response_time_mean_finished_s, Some(1.0));
        assert_eq!(summary.finished, 1);
    }

    #[test]
    fn slowdown_at_a_known_rate_is_over_the_wire_time() {
        let records = [
            record(1_000, 1.0, None),
            record(2_000, 1.0, Some(Failure::Short)),
        ];
        let link = KnownLink {
            rate: Rate::from_bps(8_000),
            wire_bytes: &|body| 2 * body,
        };
        let summary = Summary::of(&records, Some(link), false).unwrap();
        // 2,000 wire bytes at 1,000 a second: 2 s alone.
        let slowdown = summary.slowdown.unwrap();
        assert_eq!((slowdown.count, slowdown.mean), (1, 0.5));
    }

    #[test]
    fn classes_part_at_powers_of_ten_and_leave_out_the_empty() {
        let records = [
            record(999, 1.0, None),
            record(1_000, 2.0, None),
            record(2_000_000, 3.0, None),
        ];
        let summary = Summary::of(&records, None, false).unwrap();
        let classes: Vec<_> = summary
            .classes
            .iter()
            .map(|class| (class.name.as_str(), class.response_time.count))
            .collect();
        assert_eq!(classes, [("< 1 KB", 1), ("1-10 KB", 1), (">= 1 MB", 1)]);
    }

    #[test]
    fn the_largest_percent_is_at_least_one_request() {
        let mut records: Vec<_> = (1..=150u32)
            .map(|n| record(n.into(), n.into(), None))
            .collect();
        records.reverse();
        let summary = Summary::of(&records, None, false).unwrap();
        assert_eq!(summary.largest.response_time.count, 2);
        assert!(close(summary.largest.response_time.mean, 149.5));
        assert_eq!(summary.largest.name, "largest 1 % (from 149 B)");
    }

    #[test]
    fn more_than_one_late_start_in_a_hundred_voids_a_run() {
        let mut records = vec![record(1, 1.0, None); 200];
        for record in records.iter_mut().take(2) {
            record.lag_s = 0.006;
        }
        let summary = Summary::of(&records, None, false).unwrap();
        assert_eq!((summary.late_starts, summary.void), (2, None));
        records[2].lag_s = 0.006;
        let summary = Summary::of(&records, None, false).unwrap();
        assert!(
            summary
                .void
                .unwrap()
                .starts_with("3 of 200 requests started")
        );
        assert!(
            Summary::of(&records, None, true)
                .unwrap()
                .void
                .unwrap()
                .contains("interrupted")
        );
    }
}
