//! The promise of `shares`: no client ends later than under fair sharing among clients, and pieces
//! gain nothing.
//!
//! The reference is fair sharing itself, computed event by event: every client that has a request
//! is served at once, in proportion to its weight, and inside a client the shortest remaining
//! first. The scheduler serves quanta on one server. Both have the same arrivals.
#![allow(clippy::unwrap_used)]

mod calls;
mod early;
mod standing_back;

use std::num::NonZeroU32;

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::{Client, JobId, JobSpec, Policy, Scheduler, SchedulerConfig};

#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: u64,
    client: usize,
    work: u64,
}

/// When each ends under fair sharing among clients.
fn fair_sharing(arrivals: &[Arrival], weights: &[u32]) -> Vec<f64> {
    let mut ends = vec![f64::NAN; arrivals.len()];
    let mut left: Vec<f64> = arrivals.iter().map(|each| each.work as f64).collect();
    let (mut now, mut next) = (0.0, 0);
    let mut present: Vec<usize> = Vec::new();
    while next < arrivals.len() || !present.is_empty() {
        // Of each client, the request with the least left.
        let mut served: Vec<usize> = Vec::new();
        for client in 0..weights.len() {
            let own = present
                .iter()
                .filter(|&&job| arrivals[job].client == client);
            served.extend(own.min_by(|&&a, &&b| left[a].total_cmp(&left[b]).then(a.cmp(&b))));
        }
        let total: f64 = served
            .iter()
            .map(|&job| f64::from(weights[arrivals[job].client]))
            .sum();
        let speed = |job: usize| f64::from(weights[arrivals[job].client]) / total;
        let first = served
            .iter()
            .map(|&job| left[job] / speed(job))
            .fold(f64::INFINITY, f64::min);
        let arrives = arrivals
            .get(next)
            .map_or(f64::INFINITY, |each| each.at as f64);
        let until = arrives.min(now + first);
        for &job in &served {
            left[job] -= (until - now) * speed(job);
        }
        now = until;
        present.retain(|&job| {
            let stays = left[job] > 1e-6;
            if !stays {
                ends[job] = now;
            }
            stays
        });
        while arrivals.get(next).is_some_and(|each| each.at as f64 <= now) {
            present.push(next);
            next += 1;
        }
    }
    ends
}

/// When each request ends with the scheduler in front of one server. Requests that come during a
/// quantum are submitted at its end, which then is their arrival.
fn scheduled(policy: Policy, arrivals: &mut [Arrival], weights: &[u32], quantum: u64) -> Vec<u64> {
    let config = SchedulerConfig::new(policy, 100_000);
    scheduled_as(config, arrivals, weights, quantum)
}

fn scheduled_as(
    config: SchedulerConfig,
    arrivals: &mut [Arrival],
    weights: &[u32],
    quantum: u64,
) -> Vec<u64> {
    let mut scheduler = Scheduler::new(config);
    let mut ends = vec![0; arrivals.len()];
    let mut ids: Vec<(JobId, usize)> = Vec::new();
    let (mut now, mut next) = (0, 0);
    loop {
        while arrivals.get(next).is_some_and(|each| each.at <= now) {
            arrivals[next].at = now;
            let Arrival { at, client, work } = arrivals[next];
            let spec = JobSpec {
                arrival_ns: at,
                work,
                service_ns_expected: work,
                client: Some(Client {
                    name: client as u128,
                    weight: NonZeroU32::new(weights[client]).unwrap(),
                }),
                ..JobSpec::default()
            };
            ids.push((scheduler.submit(spec).unwrap(), next));
            next += 1;
        }
        let Some(id) = scheduler.take(now) else {
            let Some(arrival) = arrivals.get(next) else {
                return ends;
            };
            now = arrival.at;
            continue;
        };
        let work = quantum.min(scheduler.job(id).unwrap().remaining());
        now += work;
        scheduler.record(id, work);
        if scheduler.job(id).unwrap().remaining() == 0 {
            scheduler.remove(id);
            let place = ids.iter().position(|&(held, _)| held == id).unwrap();
            ends[ids.swap_remove(place).1] = now;
        } else {
            scheduler.resume(id);
        }
    }
}

/// The reference rounds, and positions are cut off at 2^-32.
const ROUNDING: f64 = 0.01;

fn arrivals(clients: usize, most: usize) -> impl Strategy<Value = Vec<Arrival>> {
    let work = prop_oneof![4 => 1..30u64, 2 => 30..300u64, 1 => 300..2000u64];
    let arrival = (0..3000u64, 0..clients, work);
    prop::collection::vec(arrival, 1..most).prop_map(|drawn| {
        let arrive = |(at, client, work)| Arrival { at, client, work };
        let mut arrivals: Vec<Arrival> = drawn.into_iter().map(arrive).collect();
        arrivals.sort_by_key(|each| each.at);
        arrivals
    })
}

/// Leaves each of the first `single` clients one request.
fn keep_one_each(arrivals: &mut Vec<Arrival>, single: usize) {
    let mut seen = vec![false; single];
    arrivals
        .retain(|each| each.client >= single || !std::mem::replace(&mut seen[each.client], true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// The theorem, beside clients that do anything, and whether or not some stand back.
    #[test]
    fn a_client_of_one_request_ends_no_later_than_under_fair_sharing(
        mut arrivals in arrivals(9, 60),
        weights in prop::collection::vec(1..5u32, 9),
        quantum in 1..40u64,
        burst in prop_oneof![1 => Just(0), 1 => 1..1000u64],
    ) {
        keep_one_each(&mut arrivals, 6);
        let config = SchedulerConfig { burst, ..SchedulerConfig::new(Policy::Shares, 100_000) };
        let ours = scheduled_as(config, &mut arrivals, &weights, quantum);
        let fair = fair_sharing(&arrivals, &weights);
        for ((arrival, fair), ours) in arrivals.iter().zip(&fair).zip(&ours) {
            let in_time = *ours as f64 <= fair + ROUNDING;
            prop_assert!(arrival.client >= 6 || in_time, "{ours} after {fair}");
        }
    }

    /// If a client has many requests at once, all have ended when fair sharing would have ended
    /// all.
    #[test]
    fn what_a_client_asks_for_ends_no_later_as_a_whole(
        mut arrivals in arrivals(5, 60),
        weights in prop::collection::vec(1..5u32, 5),
        quantum in 1..40u64,
    ) {
        let ours = scheduled(Policy::Shares, &mut arrivals, &weights, quantum);
        let fair = fair_sharing(&arrivals, &weights);
        for (last, &end) in fair.iter().enumerate() {
            let of_client = |place: &usize| {
                arrivals[*place].client == arrivals[last].client && (arrivals[*place].at as f64) < end
            };
            let own: Vec<usize> = (0..arrivals.len()).filter(of_client).collect();
            if own.iter().all(|&place| fair[place] <= end) {
                let latest = own.iter().map(|&place| ours[place]).max().unwrap();
                prop_assert!(latest as f64 <= end + ROUNDING, "{latest} after {end}");
            }
        }
    }

    /// A client that asks for a file in pieces has the last piece when it would have had the file.
    #[test]
    fn pieces_gain_nothing(
        mut others in arrivals(40, 40),
        at in 0..2000u64,
        pieces in prop::collection::vec(1..40u64, 1..60),
    ) {
        keep_one_each(&mut others, 40);
        let weights = [1; 41];
        let mut whole = others.clone();
        let place = whole.partition_point(|each| each.at <= at);
        whole.insert(place, Arrival { at, client: 40, work: pieces.iter().sum() });
        let mut split = others;
        split.splice(place..place, pieces.iter().map(|&work| Arrival { at, client: 40, work }));
        let ends_whole = scheduled(Policy::Shares, &mut whole, &weights, 1);
        let ends_split = scheduled(Policy::Shares, &mut split, &weights, 1);
        let last = *ends_split[place..place + pieces.len()].iter().max().unwrap();
        prop_assert!(last + 1 >= ends_whole[place], "{last} before {}", ends_whole[place]);
    }
}

#[test]
fn one_client_alone_is_served_as_under_srpt() {
    let mut arrivals: Vec<Arrival> = [(0, 90), (3, 10), (5, 40), (20, 4), (30, 60)]
        .map(|(at, work)| Arrival {
            at,
            client: 0,
            work,
        })
        .to_vec();
    let mut order = |policy| scheduled(policy, &mut arrivals, &[1], 1);
    assert_eq!(order(Policy::Shares), order(Policy::Srpt));
}

#[test]
fn a_weight_of_two_is_a_share_of_two() {
    // Both have more than any other waits for; the third asks for little again and again.
    let mut scheduler = Scheduler::new(SchedulerConfig::new(Policy::Shares, 10));
    let mut done = [0_i64; 2];
    let jobs = [1, 2].map(|weight| {
        let client = Client {
            name: weight.into(),
            weight: NonZeroU32::new(weight).unwrap(),
        };
        let spec = |work| JobSpec {
            work,
            client: Some(client),
            ..JobSpec::default()
        };
        (scheduler.submit(spec(10)).unwrap(), spec(10))
    });
    let mut jobs = jobs.to_vec();
    for _ in 0..3000 {
        let id = scheduler.take(0).unwrap();
        let which = jobs.iter().position(|(held, _)| *held == id).unwrap();
        scheduler.record(id, 10);
        scheduler.remove(id);
        done[which] += 10;
        jobs[which].0 = scheduler.submit(jobs[which].1).unwrap();
    }
    assert!((done[1] - 2 * done[0]).abs() <= 30, "{done:?}");
}

fn spec(name: u128, work: u64) -> JobSpec {
    JobSpec {
        work,
        client: Some(Client {
            name,
            weight: NonZeroU32::MIN,
        }),
        ..JobSpec::default()
    }
}

#[test]
fn who_cannot_be_served_is_owed_nothing() {
    let mut scheduler = Scheduler::new(SchedulerConfig::new(Policy::Shares, 10));
    let stalled = scheduler.submit(spec(1, 10_000)).unwrap();
    scheduler.suspend(stalled);
    let large = scheduler.submit(spec(2, 50_000)).unwrap();
    for _ in 0..30 {
        assert_eq!(scheduler.take(0), Some(large));
        scheduler.record(large, 1000);
        scheduler.resume(large);
    }
    // It begins where the others are: both have the same now.
    scheduler.resume(stalled);
    let third = scheduler.submit(spec(3, 9_000)).unwrap();
    assert_eq!(scheduler.peek(0), Some(third));
}

#[test]
fn what_an_aborted_request_had_is_not_owed() {
    let mut scheduler = Scheduler::new(SchedulerConfig::new(Policy::Shares, 10));
    let _other = scheduler.submit(spec(2, 1_000_000)).unwrap();
    for _ in 0..100 {
        let id = scheduler.submit(spec(1, 5_000)).unwrap();
        assert_eq!(scheduler.take(0), Some(id));
        scheduler.remove(id);
    }
    let id = scheduler.submit(spec(1, 5_000)).unwrap();
    assert_eq!(scheduler.peek(0), Some(id));
}
