//! The seconds in which a link is full: it has something to send all the time, in whatever order.
//!
//! Work waits in one line: with arrivals a_i of work w_i the link is busy from max(a_i, e_{i-1}) to e_i = that + w_i. Every order
//! that is never idle while work is there has the same busy times.

use std::collections::BTreeMap;

const NS_PER_S: u64 = 1_000_000_000;
const S_PER_HOUR: u64 = 3600;
/// A second with less is not full.
const FULL_NS: u64 = NS_PER_S - NS_PER_S / 1000;

/// Counts full seconds by hour.
#[derive(Debug, Default)]
pub struct Busy {
    drained_ns: u64,
    /// The second that is counted, since 1970, and how long the link was busy in it.
    second: u64,
    busy_ns: u64,
    full_s: BTreeMap<u32, u32>,
}

impl Busy {
    /// Work that comes at a time since 1970, in the order of time.
    pub fn add(&mut self, unix_ns: u64, work_ns: u64) {
        let from = self.drained_ns.max(unix_ns);
        self.drained_ns = from.saturating_add(work_ns);
        let (first, last) = (from / NS_PER_S, self.drained_ns / NS_PER_S);
        if first != self.second {
            self.end_second();
            self.second = first;
        }
        if first == last {
            self.busy_ns += self.drained_ns - from;
            return;
        }
        self.busy_ns += (first + 1) * NS_PER_S - from;
        self.end_second();
        self.add_full(first + 1, last);
        self.second = last;
        self.busy_ns = self.drained_ns - last * NS_PER_S;
    }

    /// The number of full seconds of each hour since 1970 that has one.
    pub fn full_s(mut self) -> BTreeMap<u32, u32> {
        self.end_second();
        self.full_s
    }

    fn end_second(&mut self) {
        if self.busy_ns >= FULL_NS {
            self.add_full(self.second, self.second + 1);
        }
        self.busy_ns = 0;
    }

    /// Seconds that are full from the one to the other, which is not.
    fn add_full(&mut self, from: u64, to: u64) {
        let mut begin = from;
        while begin < to {
            let hour = begin / S_PER_HOUR;
            let end = to.min((hour + 1) * S_PER_HOUR);
            *self.full_s.entry(hour as u32).or_default() += (end - begin) as u32;
            begin = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_second_is_full_if_there_is_work_all_the_time() {
        let mut busy = Busy::default();
        // From 0.5 s to 2.5 s: the second second.
        busy.add(NS_PER_S / 2, NS_PER_S);
        busy.add(NS_PER_S, NS_PER_S);
        // The whole of hour 1 but its first second, and two minutes of hour 2.
        busy.add(3_601 * NS_PER_S, 3_719 * NS_PER_S);
        assert_eq!(
            busy.full_s().into_iter().collect::<Vec<_>>(),
            [(0, 1), (1, 3_599), (2, 120)]
        );
    }

    proptest! {
        /// As whoever looks at each second by itself.
        #[test]
        fn full_seconds_are_those_without_a_gap(
            jobs in prop::collection::vec((0..3_000_000_000u64, 1..4_000_000_000u64), 1..30)
        ) {
            let mut busy = Busy::default();
            let (mut at, mut end) = (0, 0);
            let mut busy_ns = vec![0u64; 300];
            for (gap, work) in jobs {
                at += gap;
                busy.add(at, work);
                let from = at.max(end);
                end = from + work;
                for (second, sum) in busy_ns.iter_mut().enumerate() {
                    let (begin, over) = (second as u64 * NS_PER_S, (second as u64 + 1) * NS_PER_S);
                    *sum += end.min(over).saturating_sub(from.max(begin));
                }
            }
            let want = busy_ns.iter().filter(|sum| **sum >= FULL_NS).count() as u32;
            prop_assert_eq!(busy.full_s().values().sum::<u32>(), want);
        }
    }
}
