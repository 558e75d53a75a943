//! When requests arrive in an open system (paper 000, 2.3): as many as a load asks for, Poisson
//! inside a phase.
//!
//! Load is the bandwidth asked for over the uplink's. It counts what the link carries for a
//! response, not body bytes. The papers replay a log and scale the times between its requests to
//! the load they want, by the bytes that are in it; [`reschedule`] does that with a trace. For when
//! no log is at hand, [`arrivals`] draws one: files until the link carries as much for them as the
//! load asks for in all that time, then as many times. So the load is that of the bytes that were
//! drawn, to a small file, whatever chance made of the largest. Given their number, a Poisson
//! process's arrivals are uniform in the integral of its rate, and ordered: exponential gaps over
//! their sum.
//!
//! [`stream_arrivals`] has no end to scale to. There a phase of load rho has rho * rate / (8 * mean
//! wire bytes) arrivals a second ([`SiteFiles::mean_wire_bytes`]).

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::units::Rate;

use super::{LoadSchedule, SiteFile, SiteFiles};
use crate::trace::Request;

/// The most files that are left out at the end of what a load asks for.
const LEFT_OUT_MAX: usize = 100;

/// The requests of `schedule` for `length`, each for a file of `site` by its popularity, so many
/// that the link's bytes are those of the load. `wire_bytes` is what the link carries for a body of
/// so many bytes (`WireModel` of `shortline-sim`).
pub fn arrivals(
    schedule: impl Into<LoadSchedule>,
    rate: Rate,
    wire_bytes: impl Fn(u64) -> u64,
    length: Duration,
    seed: u64,
    site: &SiteFiles,
) -> Vec<Request> {
    let phases: Vec<(f64, f64, f64)> = schedule.into().until(length.as_secs_f64()).collect();
    // How long the link takes for all of it.
    let busy_s: f64 = phases
        .iter()
        .map(|(begin, end, load)| (end - begin) * load)
        .sum();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let files = files_of(busy_s * rate.bps() as f64 / 8.0, wire_bytes, site, &mut rng);
    let mut passed = 0.0;
    let mut gaps: Vec<f64> = Vec::with_capacity(files.len());
    for _ in &files {
        passed -= libm::log(1.0 - rng.random::<f64>());
        gaps.push(passed);
    }
    let all = passed - libm::log(1.0 - rng.random::<f64>());
    let mut phases = phases.into_iter();
    let mut phase = phases.next();
    // What was passed before the phase, in seconds of the link.
    let mut before_s = 0.0;
    let requests = files.into_iter().zip(gaps).map_while(|(file, gap)| {
        let at_busy_s = gap / all * busy_s;
        loop {
            let (begin_s, end_s, load) = phase?;
            let inside_s = (end_s - begin_s) * load;
            if at_busy_s < before_s + inside_s {
                let at_s = begin_s + (at_busy_s - before_s) / load;
                return Some(Request {
                    at_ns: (at_s * 1e9) as u64,
                    path: file.path.clone(),
                    bytes: file.bytes,
                });
            }
            before_s += inside_s;
            phase = phases.next();
        }
    });
    requests.collect()
}

/// Files by their popularity, until the link carries that many bytes for them. At the end those are
/// left out that would be too much, so that a large one does not take the load with it.
fn files_of<'a>(
    wanted_bytes: f64,
    wire_bytes: impl Fn(u64) -> u64,
    site: &'a SiteFiles,
    rng: &mut ChaCha8Rng,
) -> Vec<&'a SiteFile> {
    let mut picker = site.picker(rng);
    let (mut files, mut carried, mut left_out) = (Vec::new(), 0.0, 0);
    while carried < wanted_bytes && left_out < LEFT_OUT_MAX {
        let file = &site.files()[picker.next(rng)];
        let bytes = wire_bytes(file.bytes).max(1) as f64;
        if carried + bytes > wanted_bytes {
            left_out += 1;
            continue;
        }
        carried += bytes;
        files.push(file);
    }
    files
}

/// Requests of `schedule` as they come, one at a time: its time, in nanoseconds, and its file. The
/// load is that of the mean over the site.
pub fn stream_arrivals<'a, S: Into<LoadSchedule>, W: Fn(u64) -> u64>(
    schedule: S,
    rate: Rate,
    wire_bytes: W,
    length: Duration,
    seed: u64,
    site: &'a SiteFiles,
) -> impl Iterator<Item = (u64, &'a SiteFile)> + use<'a, S, W> {
    let full_load_per_s = rate.bps() as f64 / 8.0 / site.mean_wire_bytes(wire_bytes);
    arrivals_at(schedule, full_load_per_s, length, seed, site)
}

/// The same as [`stream_arrivals`] for a link that `full_load_per_s` requests a second load fully, as measured with
/// [`super::critical_rate`].
pub fn arrivals_at<'a, S: Into<LoadSchedule>>(
    schedule: S,
    full_load_per_s: f64,
    length: Duration,
    seed: u64,
    site: &'a SiteFiles,
) -> impl Iterator<Item = (u64, &'a SiteFile)> + use<'a, S> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut picker = site.picker(&mut rng);
    let mut phases = schedule.into().until(length.as_secs_f64());
    let mut phase = phases.next();
    let mut at_s = 0.0;
    std::iter::from_fn(move || {
        while let Some((_, end_s, load)) = phase {
            at_s -= libm::log(1.0 - rng.random::<f64>()) / (load * full_load_per_s);
            if at_s < end_s {
                let file = &site.files()[picker.next(&mut rng)];
                return Some(((at_s * 1e9) as u64, file));
            }
            // A Poisson process has no memory, so each phase starts afresh at its border.
            at_s = end_s;
            phase = phases.next();
        }
        None
    })
}

/// A trace with the times between its requests scaled, phase by phase, so that its load is that of
/// `schedule` (003, 4.2.3; 000, 2.3). Where the load is x times the trace's own mean, it runs x
/// times as fast. It ends with the trace, or after `length`. The trace's own load is that of its
/// requests over the time from the first to the last.
pub fn reschedule(
    requests: Vec<Request>,
    schedule: impl Into<LoadSchedule>,
    rate: Rate,
    wire_bytes: impl Fn(u64) -> u64,
    length: Duration,
) -> Vec<Request> {
    let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
        return requests;
    };
    let (begin_ns, span_ns) = (first.at_ns, last.at_ns - first.at_ns);
    let bytes: f64 = requests.iter().map(|r| wire_bytes(r.bytes) as f64).sum();
    // How much of the trace's own time passes in a second at load 1.
    let full_pace = span_ns as f64 / 1e9 * rate.bps() as f64 / 8.0 / bytes;
    let mut phases = schedule.into().until(length.as_secs_f64());
    let mut phase = phases.next();
    // Where the phase begins in the trace, in seconds.
    let mut begun_s = 0.0;
    let mut out = Vec::with_capacity(requests.len());
    'requests: for request in requests {
        let trace_s = (request.at_ns - begin_ns) as f64 / 1e9;
        loop {
            let Some((begin_s, end_s, load)) = phase else {
                break 'requests;
            };
            let pace = load * full_pace;
            let at_s = begin_s + (trace_s - begun_s) / pace;
            // In a trace without any time between its requests all come at once.
            let at_s = if at_s.is_nan() { begin_s } else { at_s };
            if at_s < end_s {
                let at_ns = (at_s * 1e9) as u64;
                out.push(Request { at_ns, ..request });
                break;
            }
            begun_s += (end_s - begin_s) * pace;
            phase = phases.next();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::workload::{Schedule, SurgePreset, nasa_like, world_cup_like};

    const RATE_BPS: u64 = 10_000_000;

    /// A link that carries 555 bytes beside each body.
    fn wire_bytes(body_bytes: u64) -> u64 {
        body_bytes + 555
    }

    fn made_for(site: &SiteFiles, schedule: &str, seconds: u64, seed: u64) -> Vec<Request> {
        arrivals(
            schedule.parse::<LoadSchedule>().unwrap(),
            Rate::from_bps(RATE_BPS),
            wire_bytes,
            Duration::from_secs(seconds),
            seed,
            site,
        )
    }

    fn made(schedule: &str, seconds: u64, seed: u64) -> Vec<Request> {
        made_for(&world_cup_like(2_000).unwrap(), schedule, seconds, seed)
    }

    /// Whatever was drawn: with so heavy a tail the mean of some thousand requests is up to a tenth
    /// off the site's.
    #[test]
    fn the_load_is_that_of_the_bytes_drawn() {
        for site in [world_cup_like(2_000).unwrap(), nasa_like(2_000).unwrap()] {
            for seed in 1..=8 {
                let requests = made_for(&site, "w1", 100, seed);
                let bytes: u64 = requests
                    .iter()
                    .map(|request| wire_bytes(request.bytes))
                    .sum();
                let load = bytes as f64 * 8.0 / RATE_BPS as f64 / 100.0;
                assert!((load - 0.7).abs() < 0.0005, "seed {seed}: {load}");
            }
        }
    }

    /// The number of arrivals of a phase is Poisson: within five deviations of its mean.
    #[test]
    fn each_phase_has_its_load() {
        let popular = SurgePreset::ALL[1].site();
        for site in [world_cup_like(2_000).unwrap(), popular] {
            let requests = made_for(&site, "w1", 200, 7);
            assert!(requests.is_sorted_by_key(|request| request.at_ns));
            let w1 = LoadSchedule::from(&Schedule::TABLE[0]);
            for (begin_s, end_s, load) in w1.until(200.0) {
                let inside =
                    |request: &&Request| (begin_s..end_s).contains(&(request.at_ns as f64 / 1e9));
                let count = requests.iter().filter(inside).count() as f64;
                let expected = requests.len() as f64 * load * (end_s - begin_s) / (0.7 * 200.0);
                assert!(
                    (count - expected).abs() < 5.0 * expected.sqrt(),
                    "from {begin_s} s: {count} arrivals, expected {expected}"
                );
            }
        }
    }

    /// Times between Poisson arrivals vary as much as their mean: C² = 1.
    #[test]
    fn gaps_are_exponential() {
        let requests = made("1", 400, 3);
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
    fn a_phase_without_load_has_no_arrivals() {
        let requests = made("10@0,10@1", 40, 3);
        let at_s = |request: &Request| request.at_ns as f64 / 1e9;
        assert!(requests.iter().all(|request| at_s(request) % 20.0 >= 10.0));
        assert!(requests.iter().any(|request| at_s(request) > 30.0));
    }

    #[test]
    fn a_seed_gives_the_same_requests_everywhere() {
        let one = made("w1", 10, 1);
        assert_eq!(one, made("w1", 10, 1));
        assert_ne!(one, made("w1", 10, 2));
        assert_eq!((one[0].at_ns, one[0].bytes), (5_009_269, 1_236));
    }

    /// Ten requests a second of 1000 wire bytes each, which 0.08 Mbit/s carry at load 1.
    fn steady_trace() -> Vec<Request> {
        let request = |number: u64| Request {
            at_ns: 5_000_000_000 + number * 100_000_000,
            path: "/a".into(),
            bytes: 445,
        };
        (0..=1_000).map(request).collect()
    }

    fn rescheduled(schedule: &str, seconds: u64) -> Vec<u64> {
        let requests = reschedule(
            steady_trace(),
            schedule.parse::<LoadSchedule>().unwrap(),
            Rate::from_bps(80_080),
            wire_bytes,
            Duration::from_secs(seconds),
        );
        requests.iter().map(|request| request.at_ns).collect()
    }

    #[test]
    fn a_trace_is_scaled_to_a_load() {
        let near = |at_ns: u64, want_s: f64| (at_ns as f64 / 1e9 - want_s).abs() < 1e-6;
        let same = rescheduled("1", 1_000);
        assert!(near(same[0], 0.0) && near(same[1], 0.1) && near(same[1_000], 100.0));
        let half = rescheduled("0.5", 1_000);
        assert!(near(half[1], 0.2) && near(half[1_000], 200.0));
        // Ten seconds of load 0.5 take the first 50 requests, the next at load 2 200.
        let alternating = rescheduled("10@0.5,10@2", 1_000);
        assert!(near(alternating[49], 9.8) && near(alternating[52], 10.1));
        let second_low = alternating.iter().filter(|at| **at < 20_000_000_000);
        assert!((249..=251).contains(&second_low.count()));
        assert_eq!(alternating.len(), 1_001);
    }

    #[test]
    fn a_rescheduled_trace_ends_with_the_length() {
        let cut = rescheduled("1", 30);
        assert!((300..=301).contains(&cut.len()), "{}", cut.len());
    }

    #[test]
    fn requests_all_at_once_stay_so() {
        let at_once: Vec<Request> = steady_trace()
            .into_iter()
            .map(|request| Request {
                at_ns: 7,
                ..request
            })
            .collect();
        let schedule = LoadSchedule::from(&Schedule::TABLE[0]);
        let rate = Rate::from_bps(80_000);
        let out = reschedule(at_once, &schedule, rate, wire_bytes, Duration::from_secs(9));
        assert!(out.len() == 1_001 && out.iter().all(|request| request.at_ns == 0));
    }
}
