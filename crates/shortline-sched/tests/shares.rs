//! What `shares` promises: nobody ends later than under fair sharing among clients, and pieces gain nothing.
//!
//! The reference is fair sharing itself, computed event by event: every client that has a request is
//! served at once, in proportion to its weight, and inside a client the shortest remaining first. The
//! scheduler serves quanta on one server. Both have the same arrivals.
#![allow(clippy::unwrap_used)]

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
        // Of each client the one that has the least left.
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

/// When each ends with the scheduler in front of one server. Those that come during a quantum are told
/// at its end, which is their arrival then.
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

    /// The theorem, beside clients that do whatever they please, and whether or not some stand back.
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

    /// Of clients with many requests at once all have ended when fair sharing would have ended all.
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

    /// Who asks for a file in pieces has the last of them when he would have had the file.
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
    // Both have more than anybody waits for; the third asks for little again and again.
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

/// Random calls, as a link makes them with clients that stall, vanish and lie: nothing is lost.
mod calls {
    use super::*;

    #[derive(Clone, Debug)]
    enum Call {
        Submit { client: Option<u128>, work: u64 },
        Serve { work: u64, then: Then },
        Suspend(usize),
        Resume(usize),
        Revise(usize, u64),
        Remove(usize),
    }

    #[derive(Clone, Copy, Debug)]
    enum Then {
        Resume,
        Suspend,
        Remove,
    }

    fn call() -> impl Strategy<Value = Call> {
        let client = prop::option::of(0..6u128);
        let work = prop_oneof![9 => 0..5000u64, 1 => Just(u64::MAX)];
        let then =
            prop_oneof![3 => Just(Then::Resume), 1 => Just(Then::Suspend), 2 => Just(Then::Remove)];
        prop_oneof![
            4 => (client, work).prop_map(|(client, work)| Call::Submit { client, work }),
            4 => (0..9000u64, then).prop_map(|(work, then)| Call::Serve { work, then }),
            1 => (0..40usize).prop_map(Call::Suspend),
            2 => (0..40usize).prop_map(Call::Resume),
            1 => (0..40usize, 0..9000u64).prop_map(|(which, work)| Call::Revise(which, work)),
            1 => (0..40usize).prop_map(Call::Remove),
        ]
    }

    proptest! {
        #[test]
        fn each_that_waits_is_served_in_the_end(calls in prop::collection::vec(call(), 0..300)) {
            let mut scheduler = Scheduler::new(SchedulerConfig::new(Policy::Shares, 40));
            let mut held: Vec<JobId> = Vec::new();
            for call in calls {
                let named = |which: usize| held.get(which % held.len().max(1)).copied();
                match call {
                    Call::Submit { client, work } => {
                        let client = client.map(|name| Client { name, weight: NonZeroU32::MIN });
                        held.extend(scheduler.submit(JobSpec { work, client, ..JobSpec::default() }));
                    }
                    Call::Serve { work, then } => {
                        let waiting = scheduler.waiting();
                        if let Some(id) = scheduler.take(0) {
                            prop_assert_eq!(scheduler.waiting(), waiting - 1);
                            scheduler.record(id, work);
                            match then {
                                Then::Resume => scheduler.resume(id),
                                Then::Suspend => scheduler.suspend(id),
                                Then::Remove => {
                                    scheduler.remove(id);
                                    held.retain(|other| *other != id);
                                }
                            }
                        } else {
                            prop_assert_eq!(waiting, 0);
                        }
                    }
                    Call::Suspend(which) => named(which).into_iter().for_each(|id| scheduler.suspend(id)),
                    Call::Resume(which) => named(which).into_iter().for_each(|id| scheduler.resume(id)),
                    Call::Revise(which, work) => {
                        named(which).into_iter().for_each(|id| scheduler.revise(id, work, work));
                    }
                    Call::Remove(which) => {
                        if let Some(id) = named(which) {
                            prop_assert!(scheduler.remove(id).is_some());
                            held.retain(|other| *other != id);
                        }
                    }
                }
                prop_assert_eq!(scheduler.len(), held.len());
                let waiting = held.iter().filter(|&&id| scheduler.is_waiting(id)).count();
                prop_assert_eq!(scheduler.waiting(), waiting);
                prop_assert_eq!(scheduler.peek(0).is_some(), waiting > 0);
            }
            held.iter().for_each(|&id| scheduler.resume(id));
            for left in (0..held.len()).rev() {
                let id = scheduler.take(0).unwrap();
                scheduler.remove(id);
                prop_assert_eq!(scheduler.len(), left);
            }
        }
    }
}

/// A client that asks for piece after piece, and others that ask for one thing each.
mod standing_back {
    use super::*;

    const PIECE: u64 = 1_000;
    const QUANTUM: u64 = 1_500;
    /// Clients that the others are, in turn.
    const USERS: usize = 20;
    const BURST: u64 = 128 << 10;

    /// One that always waits for so many pieces, each of that length, or for a download without an end.
    #[derive(Clone, Copy)]
    enum Beside {
        Pieces(usize, u64),
        Download,
    }

    /// Requests whose lengths are Bounded Pareto, with the time until the next of each: Poisson arrivals
    /// at a load of the server.
    fn requests(load: f64, number: usize, seed: u64) -> Vec<(u64, u64)> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut share = || random.random_range(f64::MIN_POSITIVE..1.0);
        let (low, high, a) = (300.0_f64, 1e6_f64, 1.1);
        let mut length =
            || (low * (1.0 - share() * (1.0 - (low / high).powf(a))).powf(-1.0 / a)) as u64;
        let lengths: Vec<u64> = (0..number).map(|_| length()).collect();
        let mean = lengths.iter().sum::<u64>() as f64 / lengths.len() as f64;
        let mut gap = || (-share().ln() * mean / load) as u64;
        lengths.into_iter().map(|length| (length, gap())).collect()
    }

    /// The mean response time, per unit of work, of requests that come at a load of 0.6.
    fn mean_of_others(policy: Policy, burst: u64, beside: Beside) -> f64 {
        let requests = requests(0.6, 20_000, 1);
        let mut scheduler = Scheduler::new(SchedulerConfig {
            burst,
            ..SchedulerConfig::new(policy, 100_000)
        });
        let (at_once, of) = match beside {
            Beside::Pieces(at_once, of) => (at_once, of),
            Beside::Download => (1, u64::MAX / 4),
        };
        let submitted = |_| scheduler.submit(spec(0, of)).unwrap();
        let mut greedy: Vec<JobId> = (0..at_once).map(submitted).collect();
        let (mut now, mut arrives, mut next, mut total) = (0, 0, 0, 0);
        while next < requests.len() || scheduler.len() > at_once {
            while next < requests.len() && arrives <= now {
                let job = JobSpec {
                    arrival_ns: arrives,
                    ..spec(1 + (next % USERS) as u128, requests[next].0)
                };
                scheduler.submit(job).unwrap();
                arrives += requests[next].1;
                next += 1;
            }
            let id = scheduler.take(now).unwrap();
            let work = QUANTUM.min(scheduler.job(id).unwrap().remaining());
            now += work;
            scheduler.record(id, work);
            if scheduler.job(id).unwrap().remaining() > 0 {
                scheduler.resume(id);
                continue;
            }
            let ended = scheduler.remove(id).unwrap();
            if let Some(place) = greedy.iter().position(|&held| held == id) {
                greedy[place] = scheduler.submit(spec(0, of)).unwrap();
            } else {
                total += now - ended.arrival_ns;
            }
        }
        total as f64 / requests.len() as f64
    }

    /// The mean response time of 100 users behind one address, beside 20 with an address each, at a load
    /// of 0.9, over four draws. They are told apart as so many clients.
    fn mean_behind_one_address(policy: Policy, burst: u64, told_apart: usize) -> f64 {
        let mean = |seed| mean_of_a_draw(policy, burst, told_apart, seed);
        (1..=4).map(mean).sum::<f64>() / 4.0
    }

    fn mean_of_a_draw(policy: Policy, burst: u64, told_apart: usize, seed: u64) -> f64 {
        let alone = 20;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut arrivals = Vec::new();
        let mut at = 0;
        for (work, gap) in requests(0.9, 15_000, seed) {
            let user = random.random_range(0..100 + alone);
            let behind = || alone + user % told_apart;
            let client = if user < alone { user } else { behind() };
            arrivals.push(Arrival { at, client, work });
            at += gap;
        }
        let came: Vec<u64> = arrivals.iter().map(|each| each.at).collect();
        let config = SchedulerConfig {
            burst,
            ..SchedulerConfig::new(policy, 100_000)
        };
        let weights = vec![1; alone + told_apart];
        let ends = scheduled_as(config, &mut arrivals, &weights, QUANTUM);
        let behind = || (0..came.len()).filter(|&place| arrivals[place].client >= alone);
        let total: u64 = behind().map(|place| ends[place] - came[place]).sum();
        total as f64 / behind().count() as f64
    }

    /// An address has one share. To stand back costs users behind it little beside that, and to be told
    /// apart gives it back.
    #[test]
    fn users_behind_one_address_are_held_to_their_share_and_told_apart_to_theirs() {
        let mean = |burst, told_apart| mean_behind_one_address(Policy::Shares, burst, told_apart);
        let srpt = mean_behind_one_address(Policy::Srpt, 0, 1);
        let share = mean(0, 1);
        let backwards = mean(BURST, 1);
        assert!(backwards <= 1.4 * share, "{backwards} of {share}");
        let apart = mean(BURST, 16);
        assert!(apart <= 1.5 * srpt, "{apart} of {srpt}, {share} as one");
    }

    #[test]
    fn pieces_cost_the_others_little_more_than_a_download() {
        let download = mean_of_others(Policy::Shares, BURST, Beside::Download);
        for (at_once, of, most) in [
            (1, PIECE, 1.25),
            (8, PIECE, 1.25),
            (64, PIECE, 1.25),
            (1000, PIECE, 1.25),
            (1, 16 * PIECE, 1.3),
            (64, 16 * PIECE, 1.3),
            (1000, 16 * PIECE, 1.1),
        ] {
            let pieces = Beside::Pieces(at_once, of);
            let mean = mean_of_others(Policy::Shares, BURST, pieces);
            assert!(
                mean <= most * download,
                "{at_once} of {of}: {mean} beside {download}"
            );
        }
    }

    #[test]
    fn a_download_costs_them_what_it_does_under_srpt() {
        let srpt = mean_of_others(Policy::Srpt, 0, Beside::Download);
        let shares = mean_of_others(Policy::Shares, BURST, Beside::Download);
        assert!(shares <= 1.25 * srpt, "{shares} beside {srpt}");
    }

    /// So an address that stands back is no queue in the order of arrival for those behind it.
    #[test]
    fn a_short_request_is_served_in_the_turn_of_a_long_one_of_the_same_client() {
        let config = SchedulerConfig {
            burst: BURST,
            ..SchedulerConfig::new(Policy::Shares, 1000)
        };
        let mut scheduler = Scheduler::new(config);
        let of_all = scheduler.submit(spec(1, 10 * BURST)).unwrap();
        let long = scheduler.submit(spec(0, BURST)).unwrap();
        for piece in 0..30 {
            let short = scheduler.submit(spec(0, BURST / 8)).unwrap();
            assert_eq!(scheduler.take(0), Some(short), "{piece}");
            scheduler.record(short, BURST / 8);
            scheduler.remove(short);
        }
        assert_eq!(scheduler.peek(0), Some(long));
        let other = scheduler.submit(spec(2, BURST)).unwrap();
        assert_eq!(scheduler.peek(0), Some(other));
        assert!(scheduler.is_waiting(of_all));
    }

    /// What it gets while three others at a time ask for 30,000 each, all of them new.
    fn got_in_an_overload(burst: u64) -> u64 {
        let mut scheduler = Scheduler::new(SchedulerConfig {
            burst,
            ..SchedulerConfig::new(Policy::Shares, 1000)
        });
        let mut greedy = scheduler.submit(spec(0, PIECE)).unwrap();
        let mut clients = 1..;
        let mut comes = |scheduler: &mut Scheduler| {
            let name = clients.next().unwrap();
            scheduler.submit(spec(name, 30_000)).unwrap();
        };
        (0..3).for_each(|_| comes(&mut scheduler));
        let mut got = 0;
        for _ in 0..20_000 {
            let id = scheduler.take(0).unwrap();
            scheduler.record(id, PIECE);
            if scheduler.job(id).unwrap().remaining() > 0 {
                scheduler.resume(id);
                continue;
            }
            scheduler.remove(id);
            if id == greedy {
                got += PIECE;
                greedy = scheduler.submit(spec(0, PIECE)).unwrap();
            } else {
                comes(&mut scheduler);
            }
        }
        got
    }

    #[test]
    fn who_stands_back_has_two_thirds_of_its_share_in_a_lasting_overload() {
        let (got, else_had) = (got_in_an_overload(BURST), got_in_an_overload(0));
        assert!(
            got >= else_had * 6 / 10 && got < else_had,
            "{got} of {else_had}"
        );
    }
}
