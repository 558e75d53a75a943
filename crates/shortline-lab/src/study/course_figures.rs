//! How soon a run adapted to the changes of its course, from the instruments' samples.
//!
//! - After the link got slower, or the neighbour's downloads ended: until the queue was short again. It is
//!   short when for a second nine samples in ten have less than 10 ms, or less than six packets if these
//!   take longer (as in the simulator's tests of the controller).
//! - After the link got faster: until it carried 95 % of its rate for a second.
//!
//! If that did not happen before the next change (or the last arrival), the time until then counts.
#![deny(clippy::disallowed_methods)]

use serde::Serialize;
use shortline_load::RequestRecord;

use super::course::Neighbour;
use super::point::Point;
use crate::study::stats::mean;
use shortline_testbed::instruments::sample::Samples;

/// A longer wait before the link, in seconds, is a queue, unless it has few bytes.
const SHORT_S: f64 = 0.010;
/// This few bytes before the link are no queue, however long they wait.
const SHORT_BYTES: f64 = 6.0 * 1514.0;
/// The share of samples that must find the queue short.
const SHORT_SHARE: f64 = 0.9;
/// The share of its rate that a used link carries.
const USED_SHARE: f64 = 0.95;
/// How long either must last, in seconds.
const HOLDS_S: f64 = 1.0;

/// The times to adapt, the longest of several changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CourseFigures {
    /// Until the queue was short again, in seconds. `None` without such a change.
    pub queue_back_s: Option<f64>,
    /// Until the link was used again, in seconds.
    pub used_again_s: Option<f64>,
    /// Body bytes that the neighbour's clients received.
    pub neighbour_bytes: Option<u64>,
    /// The mean response time of a twin's finished requests, in seconds.
    pub neighbour_mean_s: Option<f64>,
}

/// The figures of a run. `None` if the point has no course.
pub fn of(
    point: &Point,
    seen: Option<&Samples>,
    neighbour: Option<&[RequestRecord]>,
) -> Option<CourseFigures> {
    let course = &point.setup.course;
    if course.is_empty() {
        return None;
    }
    let seen = seen.and_then(Course::of).unwrap_or_default();
    let changes = seen.changes(point);
    let slowest = |kind: Change, share: f64, good: &dyn Fn(usize) -> f64| {
        let waits = changes.windows(2).filter(|pair| pair[0].1 == kind);
        let waits = waits.map(|pair| seen.until(pair[0].0, pair[1].0, share, good));
        waits.reduce(f64::max)
    };
    let is_short = |at: usize| f64::from(u8::from(seen.looks[at].is_short()));
    let used = |at: usize| seen.used_since(at);
    Some(CourseFigures {
        queue_back_s: slowest(Change::Slower, SHORT_SHARE, &is_short),
        used_again_s: slowest(Change::Faster, USED_SHARE, &used),
        neighbour_bytes: neighbour.map(|all| all.iter().map(|record| record.received).sum()),
        neighbour_mean_s: neighbour
            .filter(|_| course.neighbour == Some(Neighbour::Twin))
            .and_then(mean_finished_s),
    })
}

fn mean_finished_s(records: &[RequestRecord]) -> Option<f64> {
    let finished = records.iter().filter(|record| record.ok());
    mean(finished.map(|record| record.response_time_s))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// Less of the link is ours than before: the queue should get short again.
    Slower,
    /// More of the link is ours: it should get used.
    Faster,
    /// The last arrival.
    End,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    at_s: f64,
    rate_bps: f64,
    queue_bytes: f64,
    sent_bytes: f64,
}

impl Look {
    fn is_short(&self) -> bool {
        let short_bytes = SHORT_BYTES.max(SHORT_S * self.rate_bps / 8.0);
        self.queue_bytes <= short_bytes
    }
}

#[derive(Debug, Default)]
struct Course {
    looks: Vec<Look>,
}

impl Course {
    fn of(samples: &Samples) -> Option<Self> {
        let times = samples
            .column("at_s")?
            .zip(samples.column("link_rate_bps")?);
        let queue = samples
            .column("queue_bytes")?
            .zip(samples.column("queue_sent_bytes")?);
        let looks = times
            .zip(queue)
            .map(|((at_s, rate_bps), (queue_bytes, sent_bytes))| Look {
                at_s,
                rate_bps,
                queue_bytes,
                sent_bytes,
            });
        Some(Self {
            looks: looks.collect(),
        })
    }

    /// The changes with their times, in order, and the last arrival.
    fn changes(&self, point: &Point) -> Vec<(f64, Change)> {
        let end_s = point.seconds as f64;
        let mut changes = vec![(end_s, Change::End)];
        if let Some(Neighbour::Downloads { to, .. }) = point.setup.course.neighbour {
            changes.push((end_s * to, Change::Slower));
        }
        for pair in self.looks.windows(2) {
            let change = if pair[1].rate_bps < pair[0].rate_bps {
                Change::Slower
            } else if pair[1].rate_bps > pair[0].rate_bps {
                Change::Faster
            } else {
                continue;
            };
            changes.push((pair[1].at_s, change));
        }
        changes.retain(|(at_s, _)| *at_s <= end_s);
        changes.sort_by(|one, other| one.0.total_cmp(&other.0));
        changes
    }

    /// How long after `from_s` this share of the samples of one second is `good`, `to_s` at the latest.
    fn until(&self, from_s: f64, to_s: f64, share: f64, good: &dyn Fn(usize) -> f64) -> f64 {
        let first = self.looks.partition_point(|look| look.at_s < from_s);
        let end = self.looks.partition_point(|look| look.at_s < to_s);
        for begin in first..end {
            let begin_s = self.looks[begin].at_s;
            let after = self
                .looks
                .partition_point(|look| look.at_s <= begin_s + HOLDS_S);
            // The sample at the very beginning is about the time before it.
            let held = begin + 1..after.min(end);
            let count = held.len() as f64;
            if count > 0.0 && held.map(good).sum::<f64>() >= share * count {
                return begin_s - from_s;
            }
        }
        to_s - from_s
    }

    /// What the link carried since the previous sample, as a share of its rate.
    fn used_since(&self, at: usize) -> f64 {
        let Some(before) = at.checked_sub(1).map(|before| self.looks[before]) else {
            return 0.0;
        };
        let now = self.looks[at];
        let carried_bps = (now.sent_bytes - before.sent_bytes) * 8.0 / (now.at_s - before.at_s);
        carried_bps / now.rate_bps
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::study::course::{Course, Step};
    use crate::study::point::Arrivals;

    /// 30 s in steps of 0.1 s: 8 Mbit/s, 4 from 10 s on, 16 from 20 s on. The queue is long for 1.5 s
    /// after the first change, and half of the link is unused for 3 s after the second.
    fn samples() -> Samples {
        let mut text = "at_s,link_rate_bps,queue_bytes,queue_sent_bytes\n".to_owned();
        let mut sent = 0.0;
        for tick in 0..300 {
            let at_s = f64::from(tick) / 10.0;
            let rate_bps = match tick {
                0..100 => 8e6,
                100..200 => 4e6,
                _ => 16e6,
            };
            let queue = if (100..115).contains(&tick) {
                1e5
            } else {
                100.0
            };
            sent += rate_bps / 80.0 * if (200..230).contains(&tick) { 0.5 } else { 1.0 };
            text += &format!("{at_s},{rate_bps},{queue},{sent}\n");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        std::fs::write(&path, text).unwrap();
        Samples::read(&path).unwrap()
    }

    fn point(course: Course) -> Point {
        Point::new("a", Arrivals::steady(1.5), 30).with(|setup| setup.course = course)
    }

    #[test]
    fn the_times_are_those_until_a_good_second_began() {
        let step = |at, factor| Step { at, factor };
        let stepped = Course {
            steps: vec![step(0.33, 0.5), step(0.66, 2.0)],
            neighbour: None,
        };
        let figures = of(&point(stepped), Some(&samples()), None).unwrap();
        let back_s = figures.queue_back_s.unwrap();
        assert!((1.3..=1.5).contains(&back_s), "{back_s}");
        let used_s = figures.used_again_s.unwrap();
        assert!((2.8..=3.0).contains(&used_s), "{used_s}");
    }

    #[test]
    fn what_never_happens_lasts_until_the_end() {
        let downloads = Neighbour::Downloads {
            number: 1,
            from: 0.2,
            to: 0.5,
        };
        let course = Course {
            steps: Vec::new(),
            neighbour: Some(downloads),
        };
        let mut text = "at_s,link_rate_bps,queue_bytes,queue_sent_bytes\n".to_owned();
        for tick in 0..300 {
            text += &format!("{},8e6,1e5,{tick}\n", f64::from(tick) / 10.0);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        std::fs::write(&path, text).unwrap();
        let got = RequestRecord {
            received: 700,
            ..RequestRecord::finished(1.0, "/bulk", 1000, 2.0)
        };
        let seen = Samples::read(&path).unwrap();
        let figures = of(&point(course), Some(&seen), Some(&[got])).unwrap();
        assert_eq!(figures.queue_back_s, Some(15.0));
        assert_eq!(figures.used_again_s, None);
        assert_eq!(figures.neighbour_bytes, Some(700));
    }

    #[test]
    fn a_point_where_nothing_changes_has_none() {
        assert_eq!(of(&point(Course::default()), None, None), None);
    }
}
