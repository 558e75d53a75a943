//! A client that asks for piece after piece, and others that ask for one thing each.

use super::*;

const PIECE: u64 = 1_000;
const QUANTUM: u64 = 1_500;
/// The other clients, in turn.
const USERS: usize = 20;
const BURST: u64 = 128 << 10;

/// A client that always waits for so many pieces, each of that length, or for an endless download.
#[derive(Clone, Copy)]
enum Beside {
    Pieces(usize, u64),
    Download,
}

/// Requests with Bounded Pareto lengths, and the time until the next of each: Poisson arrivals at a
/// load of the server.
pub(super) fn requests(load: f64, number: usize, seed: u64) -> Vec<(u64, u64)> {
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

/// The mean response time of 100 users behind one address, beside 20 with an address each, at a
/// load of 0.9, over four draws. They are told apart as so many clients.
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

/// An address has one share. Standing back costs the users behind it little more than that, and
/// being told apart gives it back.
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

/// So an address that stands back is not a queue in the order of arrival for those behind it.
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
