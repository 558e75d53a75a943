//! Turns the records of a run into the points of a line, as the figures of papers 000, 001, 003 and 004
//! draw them. Times are in seconds.

use std::collections::{BTreeMap, HashMap};

use shortline_load::record::{RequestRecord, Turn};

use shortline_plot::Points;

/// The seconds of arrivals in one point over time (000, Fig. 8: 1 s).
const BIN_S: f64 = 1.0;
/// Points per factor of 10 in size. 003's Fig. 5 has some 13, with bins of a factor 1.2.
const BINS_PER_DECADE: f64 = 6.0;
/// The number of groups by size, with equally many requests each (003, Fig. 5: 200).
const PERCENTILE_GROUPS: usize = 200;
/// The points of a line over time that is not averaged.
const STEPS_MAX: usize = 400;

/// Mean response time by the second of the arrival.
pub fn over_time(records: &[RequestRecord]) -> Points {
    mean_over_time(records, |record| Some(record.response_time_s))
}

/// Mean time to the response's head by the second of the arrival, of the requests that got one.
pub fn first_byte_over_time(records: &[RequestRecord]) -> Points {
    mean_over_time(records, |record| record.first_byte_s)
}

/// Mean response time by size, in bins of equal factors.
pub fn by_size(records: &[RequestRecord]) -> Points {
    let bin = |record: &RequestRecord| (record.size.max(1) as f64).log10() * BINS_PER_DECADE;
    means_by(
        records,
        |record| bin(record).floor(),
        |bin| 10f64.powf((bin + 0.5) / BINS_PER_DECADE),
        |record| Some(record.response_time_s),
    )
}

/// Mean response time by percentile of size (003, Fig. 5, right).
pub fn by_percentile(records: &[RequestRecord]) -> Points {
    percentile_groups(records, mean)
}

/// Variance of response times by percentile of size (003, Fig. 6), in square seconds.
pub fn variance_by_percentile(records: &[RequestRecord]) -> Points {
    percentile_groups(records, variance)
}

/// The complementary distribution of response times, in at most a few hundred points.
pub fn complementary(records: &[RequestRecord]) -> Points {
    complementary_of(
        records
            .iter()
            .map(|record| record.response_time_s)
            .collect(),
    )
}

/// The complementary distribution of any values, in at most a few hundred points.
pub fn complementary_of(mut values: Vec<f64>) -> Points {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    if count == 0 {
        return Points::new();
    }
    // Dense in the tail, where points are few and matter.
    let mut ranks: Vec<usize> = (0..=200)
        .map(|step| count - (count as f64).powf(f64::from(step) / 200.0) as usize)
        .collect();
    ranks.sort_unstable();
    ranks.dedup();
    let point = |rank: usize| {
        let value = values.get(rank)?;
        Some((*value, (count - rank) as f64 / count as f64))
    };
    ranks.into_iter().filter_map(point).collect()
}

/// Requests under way, at some hundred moments. With a connection for each request these are the
/// connections as the clients see them (000, Fig. 6).
pub fn under_way(records: &[RequestRecord]) -> Points {
    let sorted = |mut times: Vec<f64>| {
        times.sort_unstable_by(f64::total_cmp);
        times
    };
    let begins = sorted(records.iter().map(|record| record.at_s).collect());
    let over = |record: &RequestRecord| record.at_s + record.response_time_s;
    let ends = sorted(records.iter().map(over).collect());
    let Some(last_s) = begins.last() else {
        return Points::new();
    };
    let until = |times: &[f64], at_s: f64| times.partition_point(|time| *time <= at_s);
    let point = |step: usize| {
        let at_s = last_s * step as f64 / STEPS_MAX as f64;
        (at_s, (until(&begins, at_s) - until(&ends, at_s)) as f64)
    };
    (0..=STEPS_MAX).map(point).collect()
}

/// The starvation stretch (004, 5.3.3) of each request: its response time over that of the same request
/// under FAIR. `None` if the two runs did not make the same requests.
///
/// Two closed loops of a seed make the same requests of each user, as far as the user came in both.
/// Those count that FAIR finished, and their order is that of `records`. One that did not finish in
/// `records` counts with its time so far.
pub fn stretch<'a>(
    records: &'a [RequestRecord],
    fair: &[RequestRecord],
) -> Option<Vec<(&'a RequestRecord, f64)>> {
    let same = |(record, fair): (&RequestRecord, &RequestRecord)| {
        record.path == fair.path && (record.at_s - fair.at_s).abs() < 1e-5
    };
    let ratio = |(record, fair): (&'a RequestRecord, &RequestRecord)| {
        // Records have whole microseconds, so the least time is taken as half of one.
        (
            record,
            record.response_time_s / fair.response_time_s.max(5e-7),
        )
    };
    if let Some(pairs) = pairs_by_turn(records, fair) {
        return Some(pairs.into_iter().map(ratio).collect());
    }
    if records.len() != fair.len() || !records.iter().zip(fair).all(same) {
        return None;
    }
    Some(records.iter().zip(fair).map(ratio).collect())
}

/// The requests of closed loops that both runs made, by user and number. `None` if they have no numbers,
/// or have none in common.
fn pairs_by_turn<'a, 'b>(
    records: &'a [RequestRecord],
    fair: &'b [RequestRecord],
) -> Option<Vec<(&'a RequestRecord, &'b RequestRecord)>> {
    let finished = fair.iter().filter(|record| record.ok());
    let by_turn: HashMap<(Turn, &str), &RequestRecord> = finished
        .filter_map(|record| Some(((record.turn?, record.path.as_str()), record)))
        .collect();
    let pairs = records.iter().filter_map(|record| {
        let fair = by_turn.get(&(record.turn?, record.path.as_str()))?;
        Some((record, *fair))
    });
    let pairs: Vec<_> = pairs.collect();
    (!pairs.is_empty()).then_some(pairs)
}

fn mean_over_time(
    records: &[RequestRecord],
    value: impl Fn(&RequestRecord) -> Option<f64>,
) -> Points {
    means_by(
        records,
        |record| (record.at_s / BIN_S).floor(),
        |bin| (bin + 0.5) * BIN_S,
        value,
    )
}

/// The means of records with the same `bin`, each drawn at the place `at`.
fn means_by(
    records: &[RequestRecord],
    bin: impl Fn(&RequestRecord) -> f64,
    at: impl Fn(f64) -> f64,
    value: impl Fn(&RequestRecord) -> Option<f64>,
) -> Points {
    let mut bins: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for record in records {
        let Some(value) = value(record) else {
            continue;
        };
        let (sum, count) = bins.entry(bin(record) as i64).or_default();
        *sum += value;
        *count += 1.0;
    }
    let mean = |(bin, (sum, count)): (i64, (f64, f64))| (at(bin as f64), sum / count);
    bins.into_iter().map(mean).collect()
}

/// Groups of equally many requests, from the smallest to the largest. Each group is one point.
fn percentile_groups(records: &[RequestRecord], value: impl Fn(&[f64]) -> f64) -> Points {
    let mut sorted: Vec<&RequestRecord> = records.iter().collect();
    sorted.sort_by_key(|record| record.size);
    let groups = PERCENTILE_GROUPS.min(sorted.len());
    let point = |group: usize| {
        let members = group * sorted.len() / groups..(group + 1) * sorted.len() / groups;
        let times: Vec<f64> = sorted[members]
            .iter()
            .map(|record| record.response_time_s)
            .collect();
        (100.0 * (group as f64 + 0.5) / groups as f64, value(&times))
    };
    (0..groups).map(point).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean).powi(2));
    squares.sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use shortline_load::record::Failure;

    use super::*;

    fn record(at_s: f64, size: u64, response_time_s: f64) -> RequestRecord {
        RequestRecord::finished(at_s, "/a", size, response_time_s)
    }

    #[test]
    fn records_of_a_second_make_a_point() {
        let mut records = [
            record(0.1, 1, 1.0),
            record(0.9, 1, 3.0),
            record(2.5, 1, 5.0),
        ];
        assert_eq!(over_time(&records), [(0.5, 2.0), (2.5, 5.0)]);
        records[1].first_byte_s = Some(0.5);
        assert_eq!(first_byte_over_time(&records), [(0.5, 0.5)]);
    }

    #[test]
    fn the_complementary_distribution_falls_from_one() {
        let records: Vec<_> = (1..=1000).map(|i| record(0.0, 1, f64::from(i))).collect();
        let points = complementary(&records);
        assert_eq!(points.first(), Some(&(1.0, 1.0)));
        assert_eq!(points.last(), Some(&(1000.0, 0.001)));
        assert!(points.windows(2).all(|pair| pair[0].1 > pair[1].1));
        assert_eq!(complementary(&[]), []);
    }

    #[test]
    fn groups_by_percentile_have_equally_many_requests() {
        let records: Vec<_> = (0..400u32)
            .rev()
            .map(|i| record(0.0, i.into(), f64::from(i)))
            .collect();
        let points = by_percentile(&records);
        assert_eq!(points.len(), 200);
        assert_eq!((points[0], points[199]), ((0.25, 0.5), (99.75, 398.5)));
        assert!(
            variance_by_percentile(&records)
                .iter()
                .all(|(_, variance)| *variance == 0.25)
        );
    }

    #[test]
    fn under_way_is_what_began_and_has_not_ended() {
        let records = [
            record(0.0, 1, 1.0),
            record(0.5, 1, 9.0),
            record(4.0, 1, 1.0),
        ];
        let points = under_way(&records);
        let at = |step: usize| points[step].1;
        assert_eq!((at(0), at(60), at(200), at(400)), (1.0, 2.0, 1.0, 2.0));
    }

    /// A closed loop makes its requests at times that depend on the server, and makes more of them
    /// where that is faster.
    #[test]
    fn stretch_joins_closed_loops_by_user_and_number() {
        let of = |user, request, at_s, response_time_s| RequestRecord {
            turn: Some(Turn { user, request }),
            ..record(at_s, 1, response_time_s)
        };
        let unfinished = |record| RequestRecord {
            failure: Some(Failure::Unfinished),
            ..record
        };
        let ours = [
            of(7, 0, 0.5, 1.0),
            of(3, 0, 0.6, 6.0),
            of(7, 1, 2.0, 1.0),
            unfinished(of(3, 1, 9.0, 8.0)),
        ];
        let fair = [of(7, 0, 0.5, 4.0), of(3, 0, 0.6, 3.0), of(3, 1, 5.0, 2.0)];
        let ratios = |ours: &[RequestRecord], fair: &[RequestRecord]| -> Option<Vec<f64>> {
            let all = stretch(ours, fair)?;
            Some(all.iter().map(|(_, ratio)| *ratio).collect())
        };
        assert_eq!(ratios(&ours, &fair), Some(vec![0.25, 2.0, 4.0]));
        // What FAIR did not finish has no time to compare with.
        let fair = [unfinished(of(7, 0, 0.5, 4.0)), of(3, 0, 0.6, 3.0)];
        assert_eq!(ratios(&ours, &fair), Some(vec![2.0]));
        assert_eq!(ratios(&ours, &[of(1, 0, 0.5, 4.0)]), None);
    }

    #[test]
    fn stretch_joins_request_by_request() {
        let (ours, fair) = (
            [record(0.0, 1, 1.0), record(1.0, 9, 4.0)],
            [record(0.0, 1, 4.0), record(1.0, 9, 2.0)],
        );
        let ratios: Vec<f64> = stretch(&ours, &fair)
            .unwrap()
            .iter()
            .map(|(_, ratio)| *ratio)
            .collect();
        assert_eq!(ratios, [0.25, 2.0]);
        assert!(stretch(&ours, &fair[..1]).is_none());
        assert!(stretch(&ours, &[fair[1].clone(), fair[0].clone()]).is_none());
    }
}
