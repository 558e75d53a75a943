//! When requests arrive: phases of low load and of overload in turn (paper 000, 2.3 and
//! Table I), Poisson inside a phase, the low phase first.
//!
//! Load is the bandwidth asked for over the uplink's, counted in what the link carries for
//! a response, not in body bytes: a phase of load rho has rho * rate / (8 * mean wire
//! bytes) arrivals a second. The paper instead replays a log and scales the times between
//! its requests to the load it wants; Poisson arrivals are this project's departure, the
//! log being no part of it. The paper alternates for 30 minutes; how long is an argument.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::units::Rate;
use thiserror::Error;

use super::{SiteFile, SiteFiles};
use crate::trace::Request;

/// Load over time: `low_s` seconds at `low_load`, then `high_s` at `high_load`, again and
/// again. Alternating overload has equal halves, intermittent overload short spikes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Its name in Table I, in lower case.
    pub name: &'static str,
    /// How long the low phase lasts, in seconds.
    pub low_s: f64,
    /// How long the overload lasts, in seconds.
    pub high_s: f64,
    /// Load in the low phase, 1 being the whole uplink.
    pub low_load: f64,
    /// Load in the overload.
    pub high_load: f64,
}

/// A name that Table I does not have.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("workload `{name}`: want one of w1 to w10 (Table I of paper 000)")]
pub struct UnknownSchedule {
    name: String,
}

impl Schedule {
    /// Table I of paper 000. W7 to W10 are intermittent, the others alternate.
    pub const TABLE: [Self; 10] = [
        Self::new("w1", 25.0, 25.0, 0.2, 1.2),
        Self::new("w2", 10.0, 10.0, 0.2, 1.2),
        Self::new("w3", 50.0, 50.0, 0.2, 1.6),
        Self::new("w4", 25.0, 25.0, 0.4, 1.4),
        Self::new("w5", 10.0, 10.0, 0.4, 1.4),
        Self::new("w6", 40.0, 40.0, 0.1, 1.7),
        Self::new("w7", 63.0, 6.0, 0.4, 5.0),
        Self::new("w8", 63.0, 10.0, 0.45, 3.0),
        Self::new("w9", 20.0, 3.0, 0.735, 2.0),
        Self::new("w10", 13.3, 2.0, 0.735, 2.0),
    ];

    const fn new(
        name: &'static str,
        low_s: f64,
        high_s: f64,
        low_load: f64,
        high_load: f64,
    ) -> Self {
        Self {
            name,
            low_s,
            high_s,
            low_load,
            high_load,
        }
    }

    /// The workload of this name, `w1` to `w10` in either case.
    ///
    /// # Errors
    /// [`UnknownSchedule`] for any other name.
    pub fn by_name(name: &str) -> Result<Self, UnknownSchedule> {
        let found = Self::TABLE
            .into_iter()
            .find(|schedule| schedule.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| UnknownSchedule { name: name.into() })
    }

    /// The load averaged over a whole period.
    pub fn mean_load(&self) -> f64 {
        (self.low_s * self.low_load + self.high_s * self.high_load) / (self.low_s + self.high_s)
    }

    /// Ends and loads of the phases from the start to `end_s`, the last one cut there.
    fn phases(self, end_s: f64) -> impl Iterator<Item = (f64, f64, f64)> {
        let period = [(self.low_s, self.low_load), (self.high_s, self.high_load)];
        let mut begin = 0.0;
        period.into_iter().cycle().map_while(move |(length, load)| {
            let phase = (begin < end_s).then(|| (begin, end_s.min(begin + length), load));
            begin += length;
            phase
        })
    }
}

/// The requests of `schedule` for `length`: each for a file of `site` picked uniformly.
/// `wire_bytes` says what the link carries for a body of so many bytes (`WireModel` of
/// `shortline-sim`).
pub fn arrivals(
    schedule: &Schedule,
    rate: Rate,
    wire_bytes: impl Fn(u64) -> u64,
    length: Duration,
    seed: u64,
    site: &SiteFiles,
) -> Vec<Request> {
    stream_arrivals(schedule, rate, wire_bytes, length, seed, site)
        .map(|(at_ns, file)| Request {
            at_ns,
            path: file.path.clone(),
            bytes: file.bytes,
        })
        .collect()
}

/// The same as [`arrivals`], one at a time: when it comes, in nanoseconds, and for which file.
pub fn stream_arrivals<'a, W: Fn(u64) -> u64>(
    schedule: &Schedule,
    rate: Rate,
    wire_bytes: W,
    length: Duration,
    seed: u64,
    site: &'a SiteFiles,
) -> impl Iterator<Item = (u64, &'a SiteFile)> + use<'a, W> {
    let files = site.files();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let full_load_per_s = rate.bps() as f64 / 8.0 / mean_wire_bytes(files, wire_bytes);
    let mut phases = schedule.phases(length.as_secs_f64());
    let mut phase = phases.next();
    let mut at_s = 0.0;
    std::iter::from_fn(move || {
        while let Some((_, end_s, load)) = phase {
            at_s -= libm::log(1.0 - rng.random::<f64>()) / (load * full_load_per_s);
            if at_s < end_s {
                return Some(((at_s * 1e9) as u64, pick(files, &mut rng)));
            }
            // A Poisson process has no memory: each phase starts afresh at its border.
            at_s = end_s;
            phase = phases.next();
        }
        None
    })
}

fn mean_wire_bytes(files: &[SiteFile], wire_bytes: impl Fn(u64) -> u64) -> f64 {
    let total: u64 = files.iter().map(|file| wire_bytes(file.bytes)).sum();
    total as f64 / files.len() as f64
}

fn pick<'a>(files: &'a [SiteFile], rng: &mut ChaCha8Rng) -> &'a SiteFile {
    let count = u32::try_from(files.len()).expect("invariant: a site has at most FILES_MAX files");
    // By u32: picking by usize would differ between 32- and 64-bit machines.
    &files[rng.random_range(0..count) as usize]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::workload::world_cup_like;

    const RATE_BPS: u64 = 10_000_000;

    /// A link that carries 555 bytes beside each body.
    fn wire_bytes(body_bytes: u64) -> u64 {
        body_bytes + 555
    }

    fn made(schedule: &Schedule, seconds: u64, seed: u64) -> Vec<Request> {
        let site = world_cup_like(2_000).unwrap();
        arrivals(
            schedule,
            Rate::from_bps(RATE_BPS),
            wire_bytes,
            Duration::from_secs(seconds),
            seed,
            &site,
        )
    }

    #[test]
    fn table_i_has_the_papers_mean_loads() {
        let want = [0.7, 0.7, 0.9, 0.9, 0.9, 0.9, 0.8, 0.8, 0.9, 0.9];
        for (schedule, mean) in Schedule::TABLE.iter().zip(want) {
            // The paper rounds to one place.
            assert!((schedule.mean_load() - mean).abs() < 0.051, "{schedule:?}");
        }
    }

    #[test]
    fn names_are_found_in_either_case() {
        assert_eq!(Schedule::by_name("W10").unwrap().low_s, 13.3);
        assert_eq!(
            Schedule::by_name("w11").unwrap_err().to_string(),
            "workload `w11`: want one of w1 to w10 (Table I of paper 000)"
        );
    }

    #[test]
    fn phases_alternate_low_first_and_are_cut_at_the_end() {
        let w1 = Schedule::by_name("w1").unwrap();
        let phases: Vec<_> = w1.phases(60.0).collect();
        assert_eq!(
            phases,
            [(0.0, 25.0, 0.2), (25.0, 50.0, 1.2), (50.0, 60.0, 0.2)]
        );
    }

    /// The number of arrivals of a phase is Poisson: within five deviations of its mean.
    #[test]
    fn each_phase_has_its_load() {
        let site = world_cup_like(2_000).unwrap();
        let mean = mean_wire_bytes(site.files(), wire_bytes);
        let w1 = Schedule::by_name("w1").unwrap();
        let requests = made(&w1, 200, 7);
        assert!(requests.is_sorted_by_key(|request| request.at_ns));
        for (begin_s, end_s, load) in w1.phases(200.0) {
            let inside =
                |request: &&Request| (begin_s..end_s).contains(&(request.at_ns as f64 / 1e9));
            let count = requests.iter().filter(inside).count() as f64;
            let expected = load * RATE_BPS as f64 / 8.0 / mean * (end_s - begin_s);
            assert!(
                (count - expected).abs() < 5.0 * expected.sqrt(),
                "from {begin_s} s: {count} arrivals, expected {expected}"
            );
        }
    }

    /// Times between Poisson arrivals vary as much as their mean: C² = 1.
    #[test]
    fn gaps_are_exponential() {
        let steady = Schedule::new("steady", 400.0, 400.0, 1.0, 1.0);
        let requests = made(&steady, 400, 3);
        let gaps: Vec<f64> = requests
            .windows(2)
            .map(|pair| (pair[1].at_ns - pair[0].at_ns) as f64)
            .collect();
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        let c2 = variance / mean.powi(2);
        assert!((c2 - 1.0).abs() < 0.03, "C² {c2}");
    }

    #[test]
    fn a_seed_gives_the_same_requests_everywhere() {
        let w1 = Schedule::by_name("w1").unwrap();
        let one = made(&w1, 10, 1);
        assert_eq!(one, made(&w1, 10, 1));
        assert_ne!(one, made(&w1, 10, 2));
        assert_eq!((one[0].at_ns, one[0].bytes), (11_442_790, 35_629));
    }
}
