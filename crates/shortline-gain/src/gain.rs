//! Puts the past through the link under each order.
//!
//! The orders are independent, so each has a thread, and reads the kept responses for itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use shortline_sched::units::Rate;
use shortline_sim::{Arrival, FluidLink, SimError};

use crate::busy::Busy;
use crate::live::Live;
use crate::past::{HourSum, Past, S_PER_HOUR};
use crate::waits::{Collected, SERVERS, Server, Waits};
use crate::{GainError, JOBS_MAX};

/// The upper ends of the classes of size, in bytes of body; the last has none.
pub(crate) const CLASSES: [(&str, u64); 5] = [
    ("to 10 KB", 10_000),
    ("10 to 100 KB", 100_000),
    ("100 KB to 1 MB", 1_000_000),
    ("1 to 10 MB", 10_000_000),
    ("above 10 MB", u64::MAX),
];
const NS_PER_S: u64 = 1_000_000_000;
/// An hour is full if the link is for this share of it, a minute.
pub const FULL_SHARE: f64 = 1.0 / 60.0;

/// What each order would have given.
#[derive(Clone, Debug, Serialize)]
pub struct Gain {
    /// The logs' names.
    pub logs: Vec<String>,
    /// The first second, since 1970.
    pub from_unix_s: u32,
    /// The last.
    pub to_unix_s: u32,
    /// How many responses.
    pub responses: u64,
    /// Their bodies' bytes.
    pub bytes: u64,
    /// The bytes that the link carries for them.
    pub wire_bytes: u64,
    /// What did not become a response, a line each.
    pub notes: Vec<String>,
    /// The link's rate.
    pub rate_bps: u64,
    /// Where it is from.
    pub rate_from: Basis,
    /// The hour with most bytes, in seconds since 1970.
    pub busiest_unix_s: u32,
    /// The hours that have a response, in order.
    pub hours: Vec<Hour>,
    /// The responses that began in an hour in which the link was full for a minute in sum ([`FULL_SHARE`] of what a shorter
    /// log covers); `None` if there is no such hour.
    pub full: Option<Group>,
    /// All of them.
    pub all: Group,
    /// The busiest minute once more, if that was wanted ([`Past::replay`]).
    pub live: Option<Live>,
}

/// Where the link's rate is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Whoever asked said it.
    Stated,
    /// The busiest hour would just fill it.
    BusiestHour,
}

/// An hour.
#[derive(Clone, Debug, Serialize)]
pub struct Hour {
    /// Its beginning, in seconds since 1970.
    pub begin_unix_s: u32,
    /// How many responses began in it.
    pub responses: u64,
    /// Their bytes over what the link carries in the hour, or in the part of it that the logs cover.
    pub load: f64,
    /// The seconds in which the link had something to send all the time.
    pub full_s: u32,
    /// Whether these are so many that visitors notice.
    pub is_full: bool,
    /// The mean response time under each of [`SERVERS`], in seconds.
    pub mean_s: [f64; 3],
}

/// The waits of some responses.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// The classes of size that have any.
    pub classes: Vec<Class>,
    /// How many there are.
    pub responses: u64,
    /// Under each of [`SERVERS`].
    pub waits: [Waits; 3],
}

/// The waits of the responses of some sizes.
#[derive(Clone, Debug, Serialize)]
pub struct Class {
    /// Which sizes.
    pub name: &'static str,
    /// How many.
    pub responses: u64,
    /// Under each of [`SERVERS`].
    pub waits: [Waits; 3],
}

/// What a response is counted by.
#[derive(Clone, Copy, Debug)]
struct Job {
    hour: u32,
    class: usize,
}

/// What one order made of it.
#[derive(Default)]
struct Outcome {
    full: [Collected; CLASSES.len()],
    rest: [Collected; CLASSES.len()],
    /// Number and sum of seconds by hour.
    hours: HashMap<u32, (u64, f64)>,
}

impl Past {
    /// What each order would have given at this rate; without one at the rate that the busiest hour would just fill.
    ///
    /// # Errors
    /// A rate at which the link never catches up, or a temporary file that cannot be read.
    pub fn gain(&self, rate: Option<Rate>) -> Result<Gain, GainError> {
        let rate_from = rate.map_or(Basis::BusiestHour, |_| Basis::Stated);
        let busiest = self.busiest_rate();
        let rate = rate.unwrap_or(busiest);
        let full_s = self.full_seconds(rate)?;
        let full = self.full_hours(&full_s);
        let outcome = |server: Server| {
            self.outcome(server, rate, &full)
                .map_err(|error| match error {
                    GainError::Simulation(SimError::TooManyJobs { .. }) => {
                        GainError::TooSlow { rate, busiest }
                    }
                    other => other,
                })
        };
        let outcomes = std::thread::scope(|scope| {
            let running = SERVERS.map(|server| {
                let outcome = &outcome;
                scope.spawn(move || outcome(server))
            });
            running.map(|thread| {
                thread
                    .join()
                    .expect("invariant: the simulation does not panic")
            })
        });
        let [fifo, fair, shortline] = outcomes;
        let outcomes = [fifo?, fair?, shortline?];
        let mut all = outcomes.each_ref().map(|outcome| outcome.rest.clone());
        for (all, outcome) in all.iter_mut().zip(&outcomes) {
            for (all, full) in all.iter_mut().zip(&outcome.full) {
                all.merge(full);
            }
        }
        Ok(Gain {
            logs: self
                .names
                .iter()
                .map(|name| name.display().to_string())
                .collect(),
            from_unix_s: self.from_unix_s,
            to_unix_s: self.to_unix_s,
            responses: self.responses(),
            bytes: self.bytes,
            wire_bytes: self.hours.values().map(|hour| hour.wire_bytes).sum(),
            notes: self.notes.clone(),
            rate_bps: rate.bps(),
            rate_from,
            busiest_unix_s: self.busiest_hour().0.saturating_mul(S_PER_HOUR),
            hours: self.told_hours(rate, &full_s, &full, &outcomes),
            full: (!full.is_empty())
                .then(|| group(outcomes.each_ref().map(|outcome| &outcome.full))),
            all: group(all.each_ref()),
            live: None,
        })
    }

    /// The full seconds of each hour that has one.
    fn full_seconds(&self, rate: Rate) -> Result<BTreeMap<u32, u32>, GainError> {
        let mut busy = Busy::default();
        for sent in self.kept.in_order() {
            let sent = sent.map_err(GainError::kept)?;
            let wire_bits = u128::from(self.wire.wire_bytes(sent.bytes)) * 8;
            let work_ns = wire_bits * u128::from(NS_PER_S) / u128::from(rate.bps());
            busy.add(sent.unix_ns, u64::try_from(work_ns).unwrap_or(u64::MAX));
        }
        Ok(busy.full_s())
    }

    /// The hours in which the link was full so long that visitors notice.
    fn full_hours(&self, full_s: &BTreeMap<u32, u32>) -> BTreeSet<u32> {
        let is_full =
            |hour: &u32, full_s: u32| f64::from(full_s) >= FULL_SHARE * self.covered_s(*hour);
        let full = full_s
            .iter()
            .filter(|(hour, full_s)| is_full(hour, **full_s));
        full.map(|(hour, _)| *hour).collect()
    }

    fn outcome(
        &self,
        server: Server,
        rate: Rate,
        full: &BTreeSet<u32>,
    ) -> Result<Outcome, GainError> {
        let mut link = FluidLink::new(rate.bps(), server.policy(), server.burst_bytes(), JOBS_MAX)?;
        let mut outcome = Outcome::default();
        let mut ended = |job: Job, sojourn_ns: u64| outcome.add(job, sojourn_ns as f64 / 1e9, full);
        // Times begin with the first, because the engine is exact to the nanosecond for a hundred days.
        let begin_ns = u64::from(self.from_unix_s) * NS_PER_S;
        for sent in self.kept.in_order() {
            let sent = sent.map_err(GainError::kept)?;
            let job = Job {
                hour: (sent.unix_ns / NS_PER_S) as u32 / S_PER_HOUR,
                class: class_of(sent.bytes),
            };
            let arrival = Arrival {
                at_ns: sent.unix_ns - begin_ns,
                bytes: self.wire.wire_bytes(sent.bytes),
            };
            link.arrive(arrival, job, &mut ended)?;
        }
        link.drain(&mut ended);
        Ok(outcome)
    }

    fn told_hours(
        &self,
        rate: Rate,
        full_s: &BTreeMap<u32, u32>,
        full: &BTreeSet<u32>,
        outcomes: &[Outcome; 3],
    ) -> Vec<Hour> {
        let of_hour = |(hour, sum): (&u32, &HourSum)| Hour {
            begin_unix_s: hour.saturating_mul(S_PER_HOUR),
            responses: sum.responses,
            load: sum.wire_bytes as f64 * 8.0 / rate.bps() as f64 / self.covered_s(*hour),
            full_s: full_s.get(hour).copied().unwrap_or(0),
            is_full: full.contains(hour),
            mean_s: outcomes.each_ref().map(|outcome| {
                let (count, sum_s) = outcome.hours.get(hour).copied().unwrap_or((0, 0.0));
                sum_s / count.max(1) as f64
            }),
        };
        self.hours.iter().map(of_hour).collect()
    }
}

impl Outcome {
    fn add(&mut self, job: Job, wait_s: f64, full: &BTreeSet<u32>) {
        let collected = if full.contains(&job.hour) {
            &mut self.full
        } else {
            &mut self.rest
        };
        collected[job.class].add(wait_s);
        let (count, sum_s) = self.hours.entry(job.hour).or_default();
        *count += 1;
        *sum_s += wait_s;
    }
}

pub(crate) fn class_of(bytes: u64) -> usize {
    CLASSES.partition_point(|(_, end)| *end < bytes)
}

fn group(collected: [&[Collected; CLASSES.len()]; 3]) -> Group {
    let class = |index: usize| Class {
        name: CLASSES[index].0,
        responses: collected[0][index].count(),
        waits: collected.map(|classes| classes[index].waits()),
    };
    let together = collected.map(|classes| {
        let mut all = Collected::default();
        classes.iter().for_each(|class| all.merge(class));
        all
    });
    Group {
        classes: (0..CLASSES.len())
            .map(class)
            .filter(|class| class.responses > 0)
            .collect(),
        responses: together[0].count(),
        waits: together.each_ref().map(Collected::waits),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use shortline_load::trace::LogInput;
    use shortline_sim::wire::WireModel;

    use super::*;

    fn past(lines: &[(u32, u64)]) -> Past {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        for (second, bytes) in lines {
            let (minute, second) = (second / 60, second % 60);
            let (hour, minute) = (minute / 60, minute % 60);
            writeln!(
                log,
                "h - - [21/Nov/2026:{hour:02}:{minute:02}:{second:02} +0000] \"GET /a HTTP/1.1\" 200 {bytes}"
            )
            .unwrap();
        }
        let bare = WireModel {
            per_packet_bytes: 0,
            per_request_bytes: 0,
            ..WireModel::default()
        };
        Past::read(vec![LogInput::open(log.path()).unwrap()], bare, |_| {}).unwrap()
    }

    fn rate(bytes_per_s: u64) -> Option<Rate> {
        Some(Rate::from_bps(8 * bytes_per_s))
    }

    #[test]
    fn waits_are_those_worked_out_by_hand() {
        // A download of 100 s of the link, and a page of 0.1 s ten seconds later; an hour later a page alone.
        let gain = past(&[(10, 10_000), (0, 10_000_000), (3_600, 10_000)])
            .gain(rate(100_000))
            .unwrap();
        assert_eq!((gain.responses, gain.hours.len()), (3, 2));
        assert_eq!((gain.hours[0].full_s, gain.hours[0].is_full), (100, true));
        assert!(!gain.hours[1].is_full);
        let full = gain.full.unwrap();
        assert_eq!(full.responses, 2);
        let means = |class: usize| {
            full.classes[class]
                .waits
                .map(|waits| (waits.mean_s * 1e3).round())
        };
        // FIFO: after the download; fair: twice its time; Shortline: at once.
        assert_eq!(means(0), [90_100.0, 200.0, 100.0]);
        assert_eq!(means(1), [100_000.0, 100_100.0, 100_100.0]);
        assert_eq!(full.classes[1].name, "1 to 10 MB");
        assert_eq!(gain.all.responses, 3);
        assert_eq!(
            gain.hours[1].mean_s.map(|mean| (mean * 1e3).round()),
            [100.0; 3]
        );
        assert_eq!(gain.rate_from, Basis::Stated);
    }

    #[test]
    fn without_a_rate_the_busiest_hour_just_fills_the_link() {
        let past = past(&[(0, 36_000_000), (3_600, 72_000_000), (10_000, 1)]);
        assert_eq!(past.busiest_rate(), Rate::from_bps(160_000));
        let gain = past.gain(None).unwrap();
        assert_eq!(
            (gain.rate_bps, gain.rate_from),
            (160_000, Basis::BusiestHour)
        );
        assert_eq!(
            gain.hours.iter().map(|hour| hour.load).collect::<Vec<_>>()[..2],
            [0.5, 1.0]
        );
        assert_eq!(gain.hours[1].full_s, 3_600);
    }

    #[test]
    fn a_link_that_is_never_full_has_no_such_hour() {
        let gain = past(&[(0, 1_000), (1, 1_000)])
            .gain(rate(1_000_000))
            .unwrap();
        assert!(gain.full.is_none());
        // Of the two seconds that the log covers.
        assert_eq!(gain.hours[0].load, 0.001);
        assert_eq!(gain.all.waits.map(|waits| waits.mean_s), [0.001; 3]);
    }

    #[test]
    fn sizes_have_their_class() {
        assert_eq!(
            [0, 10_000, 10_001, 10_000_001, u64::MAX].map(class_of),
            [0, 0, 1, 4, 4]
        );
    }
}
