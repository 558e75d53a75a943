//! The figures of a run by the size of the file and by the second of arrival, which claims are about.
//!
//! Buckets are those of 003's Figs. 5 and 6: 200 groups of equally many requests, by size. Two runs of an open loop have
//! the same requests, so that their buckets can be compared one by one.
#![deny(clippy::disallowed_methods)]

use std::collections::BTreeMap;

use serde::Serialize;
use shortline_load::record::RequestRecord;
use shortline_testbed::instruments::sample::Samples;

use super::lines;

/// Bins of sizes for each factor of 10, so that powers of ten are borders.
const BINS_PER_DECADE: f64 = 6.0;
/// Records have whole microseconds: a lower variance cannot be told from none, in square seconds.
const VARIANCE_MIN: f64 = 1e-12;

/// A group of requests of about the same size. Failed ones count with the time until they failed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bucket {
    /// Their mean response time, in seconds.
    pub mean_s: f64,
    /// The variance of these times, in square seconds.
    pub variance_s2: f64,
}

/// The requests whose size is between two borders.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizeBin {
    /// The lower border, in bytes.
    pub from_bytes: f64,
    /// How many requests.
    pub count: u64,
    /// The sum of their response times, in seconds.
    pub sum_s: f64,
}

/// The requests that arrived in a second and finished before the last arrival (000, 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Arrived {
    /// How many.
    pub count: u64,
    /// The sum of their response times, in seconds.
    pub sum_s: f64,
}

/// The figures by size and by second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BySize {
    /// By percentile of size, from the smallest.
    pub buckets: Vec<Bucket>,
    /// By size.
    pub bins: Vec<SizeBin>,
    /// By the second of arrival.
    pub seconds: Vec<Arrived>,
    /// The server's connections, second by second from the instruments' first sample. Empty on loopback.
    pub connections: Vec<f64>,
}

impl BySize {
    /// The figures of a run's records and samples.
    pub fn of(records: &[RequestRecord], samples: Option<&Samples>) -> Self {
        let means = lines::by_percentile(records).into_iter();
        let variances = lines::variance_by_percentile(records).into_iter();
        let bucket = |((_, mean_s), (_, variance_s2))| Bucket {
            mean_s,
            variance_s2,
        };
        Self {
            buckets: means.zip(variances).map(bucket).collect(),
            bins: bins(records),
            seconds: seconds(records),
            connections: samples.and_then(connections).unwrap_or_default(),
        }
    }

    /// The mean response time of the requests between two percentiles of size, in seconds.
    pub fn mean_between(&self, percentiles: (f64, f64)) -> Option<f64> {
        mean_of(&self.between(percentiles))
    }

    /// The mean response time of the requests for files of these sizes, the second border not included, in seconds.
    pub fn mean_of_sizes(&self, bytes: (f64, f64)) -> Option<f64> {
        let bins = self.bins.iter();
        // A border is a power of ten, which the logarithm may miss by a hair.
        let inside =
            |bin: &&SizeBin| bin.from_bytes >= bytes.0 * 0.999 && bin.from_bytes < bytes.1 * 0.999;
        let (count, sum_s) = bins.filter(inside).fold((0, 0.0), |(count, sum_s), bin| {
            (count + bin.count, sum_s + bin.sum_s)
        });
        (count > 0).then(|| sum_s / count as f64)
    }

    /// How many times shorter the mean of each bucket is than the other's.
    pub fn gains(&self, over: &Self, percentiles: (f64, f64)) -> Vec<f64> {
        let gain = |(own, other): (&Bucket, &Bucket)| {
            (own.mean_s > 0.0).then(|| other.mean_s / own.mean_s)
        };
        self.joined(over, percentiles)
            .into_iter()
            .filter_map(gain)
            .collect()
    }

    /// How many times smaller the variance of each bucket is than the other's.
    pub fn variance_gains(&self, over: &Self, percentiles: (f64, f64)) -> Vec<f64> {
        let gain = |(own, other): (&Bucket, &Bucket)| {
            other.variance_s2.max(VARIANCE_MIN) / own.variance_s2.max(VARIANCE_MIN)
        };
        self.joined(over, percentiles)
            .into_iter()
            .map(gain)
            .collect()
    }

    /// The mean response time of what arrived in ten seconds around this one, in seconds.
    pub fn mean_around(&self, second: f64) -> Option<f64> {
        let from = (second - 5.0).max(0.0) as usize;
        let arrived = self.seconds.get(from..(second + 5.0) as usize)?;
        mean_arrived(arrived)
    }

    /// The mean response time of what arrived in the third quarter over that of the first quarter.
    pub fn growth(&self) -> Option<f64> {
        let quarter = self.seconds.len() / 4;
        let first = mean_arrived(&self.seconds[..quarter])?;
        Some(mean_arrived(&self.seconds[2 * quarter..3 * quarter])? / first)
    }

    /// The server's connections in that second.
    pub fn connections_at(&self, second: f64) -> Option<f64> {
        self.connections.get(second as usize).copied()
    }

    /// The first second in which the server had so many connections, and how many seconds were looked at.
    pub fn connections_reach(&self, number: f64) -> (Option<f64>, f64) {
        let first = self.connections.iter().position(|now| *now >= number);
        (
            first.map(|second| second as f64),
            self.connections.len() as f64,
        )
    }

    fn between(&self, (from, to): (f64, f64)) -> Vec<&Bucket> {
        let all = self.buckets.len() as f64;
        let percentile = |place: usize| 100.0 * place as f64 / all;
        let buckets = self.buckets.iter().enumerate();
        buckets
            .filter(|(place, _)| percentile(*place) >= from && percentile(place + 1) <= to)
            .map(|(_, bucket)| bucket)
            .collect()
    }

    fn joined<'a>(
        &'a self,
        over: &'a Self,
        percentiles: (f64, f64),
    ) -> Vec<(&'a Bucket, &'a Bucket)> {
        if self.buckets.len() != over.buckets.len() {
            return Vec::new();
        }
        let (own, other) = (self.between(percentiles), over.between(percentiles));
        own.into_iter().zip(other).collect()
    }
}

fn mean_of(buckets: &[&Bucket]) -> Option<f64> {
    let sum_s: f64 = buckets.iter().map(|bucket| bucket.mean_s).sum();
    (!buckets.is_empty()).then(|| sum_s / buckets.len() as f64)
}

fn mean_arrived(arrived: &[Arrived]) -> Option<f64> {
    let count: u64 = arrived.iter().map(|second| second.count).sum();
    let sum_s: f64 = arrived.iter().map(|second| second.sum_s).sum();
    (count > 0).then(|| sum_s / count as f64)
}

fn bins(records: &[RequestRecord]) -> Vec<SizeBin> {
    let mut bins: BTreeMap<i64, (u64, f64)> = BTreeMap::new();
    for record in records {
        let bin = (record.size.max(1) as f64).log10() * BINS_PER_DECADE;
        let (count, sum_s) = bins.entry((bin + 1e-9).floor() as i64).or_default();
        *count += 1;
        *sum_s += record.response_time_s;
    }
    let bin = |(bin, (count, sum_s)): (i64, (u64, f64))| SizeBin {
        from_bytes: 10f64.powf(bin as f64 / BINS_PER_DECADE),
        count,
        sum_s,
    };
    bins.into_iter().map(bin).collect()
}

fn seconds(records: &[RequestRecord]) -> Vec<Arrived> {
    let last_s = records.iter().map(|record| record.at_s).fold(0.0, f64::max);
    let mut seconds = vec![Arrived::default(); last_s as usize + 1];
    for record in records {
        if record.ok() && record.at_s + record.response_time_s <= last_s {
            let second = &mut seconds[record.at_s as usize];
            second.count += 1;
            second.sum_s += record.response_time_s;
        }
    }
    seconds
}

/// The most connections in each second. A second without a sample has as many as the one before.
fn connections(samples: &Samples) -> Option<Vec<f64>> {
    let mut all: Vec<f64> = Vec::new();
    for (at_s, connections) in samples.column("at_s")?.zip(samples.column("connections")?) {
        let second = at_s as usize;
        if second >= all.len() {
            let before = all.last().copied().unwrap_or(0.0);
            all.resize(second, before);
            all.push(connections);
        } else {
            all[second] = all[second].max(connections);
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ALL: (f64, f64) = (0.0, 100.0);

    fn run(time_s: impl Fn(u32) -> f64) -> BySize {
        let record = |i: u32| {
            RequestRecord::finished(f64::from(i) / 10.0, "/a", u64::from(i) + 1, time_s(i))
        };
        BySize::of(&(0..400).map(record).collect::<Vec<_>>(), None)
    }

    #[test]
    fn buckets_are_compared_one_by_one() {
        let own = run(|i| if i < 398 { 0.1 } else { 3.0 });
        let other = run(|_| 1.0);
        let gains = own.gains(&other, ALL);
        assert_eq!(gains.len(), 200);
        assert_eq!(gains.iter().filter(|gain| **gain > 1.0).count(), 199);
        assert_eq!(own.gains(&other, (0.0, 99.0)).len(), 198);
        assert!((own.mean_between((0.0, 50.0)).unwrap() - 0.1).abs() < 1e-12);
        assert!(own.gains(&run(|_| 1.0), (0.0, 0.1)).is_empty());
    }

    #[test]
    fn a_variance_of_nothing_has_a_floor() {
        let own = run(|_| 0.1);
        let other = run(|i| f64::from(i % 2));
        let gains = own.variance_gains(&other, ALL);
        assert!(gains.iter().all(|gain| (gain / 0.25e12 - 1.0).abs() < 1e-6));
    }

    #[test]
    fn sizes_are_told_apart_at_powers_of_ten() {
        let own = run(|i| if i + 1 < 100 { 1.0 } else { 2.0 });
        assert_eq!(own.mean_of_sizes((0.0, 100.0)), Some(1.0));
        assert_eq!(own.mean_of_sizes((100.0, 1e9)), Some(2.0));
        assert_eq!(own.mean_of_sizes((1e6, 1e9)), None);
    }

    #[test]
    fn seconds_count_what_finished_in_time() {
        let own = run(|i| f64::from(i) / 100.0);
        assert_eq!(own.seconds.len(), 40);
        assert_eq!(own.seconds[39].count, 0);
        assert!((own.mean_around(10.0).unwrap() - 0.995).abs() < 1e-9);
        assert_eq!(own.mean_around(60.0), None);
        assert!(own.growth().unwrap() > 3.0);
    }

    #[test]
    fn connections_are_those_of_each_second() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        std::fs::write(&path, "at_s,connections\n0.1,1\n0.9,4\n1.5,2\n3.2,9\n").unwrap();
        let samples = Samples::read(&path).unwrap();
        let own = BySize::of(
            &[RequestRecord::finished(0.0, "/a", 1, 0.1)],
            Some(&samples),
        );
        assert_eq!(own.connections, [4.0, 2.0, 2.0, 9.0]);
        assert_eq!(own.connections_at(3.0), Some(9.0));
        assert_eq!(own.connections_at(4.0), None);
        assert_eq!(own.connections_reach(5.0), (Some(3.0), 4.0));
        assert_eq!(own.connections_reach(10.0), (None, 4.0));
    }
}
