//! Slowdown: response time over the time alone in the system, of requests that finished.
//! [`crate::summary`] defines the time alone.

use std::collections::BTreeMap;

use shortline_sched::units::Rate;

use crate::record::RequestRecord;

/// The shortest time that counts, in seconds, so that slowdowns stay finite.
const TIME_S_MIN: f64 = 1e-6;

/// The link's rate and costs, for the slowdown.
#[derive(Clone, Copy)]
pub struct KnownLink<'a> {
    /// Its rate.
    pub rate: Rate,
    /// The wire bytes for a body of so many bytes.
    pub wire_bytes: &'a dyn Fn(u64) -> u64,
}

/// The slowdown of each record, of those that finished.
pub(super) fn slowdowns(
    records: &[RequestRecord],
    link: Option<KnownLink<'_>>,
) -> Vec<Option<f64>> {
    let alone_s: Box<dyn Fn(u64) -> f64 + '_> = match link {
        Some(KnownLink { rate, wire_bytes }) => {
            Box::new(move |size| wire_bytes(size) as f64 * 8.0 / rate.bps() as f64)
        }
        None => {
            let least = LeastTimes::of(records);
            Box::new(move |size| least.at_or_above(size))
        }
    };
    let slowdown = |r: &RequestRecord| r.response_time_s / alone_s(r.size).max(TIME_S_MIN);
    records
        .iter()
        .map(|r| r.ok().then(|| slowdown(r)))
        .collect()
}

/// The least response time of finished requests of a size or larger.
struct LeastTimes {
    /// By size; a time never above the next one.
    by_size: BTreeMap<u64, f64>,
}

impl LeastTimes {
    fn of(records: &[RequestRecord]) -> Self {
        let mut by_size: BTreeMap<u64, f64> = BTreeMap::new();
        for record in records.iter().filter(|record| record.ok()) {
            let least = by_size.entry(record.size).or_insert(f64::INFINITY);
            *least = least.min(record.response_time_s);
        }
        let mut least = f64::INFINITY;
        for time in by_size.values_mut().rev() {
            least = least.min(*time);
            *time = least;
        }
        Self { by_size }
    }

    fn at_or_above(&self, size: u64) -> f64 {
        self.by_size
            .range(size..)
            .next()
            .map_or(0.0, |(_, time)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(size: u64, response_time_s: f64) -> RequestRecord {
        RequestRecord::finished(0.0, "/a", size, response_time_s)
    }

    #[test]
    fn without_a_rate_the_least_time_of_that_size_or_larger_is_alone() {
        let records = [
            record(10, 4.0),
            record(20, 2.0),
            record(30, 8.0),
            record(30, 5.0),
        ];
        let got = slowdowns(&records, None);
        assert_eq!(got, [Some(2.0), Some(1.0), Some(1.6), Some(1.0)]);
    }
}
