//! Aging against a single server that takes exactly as long as expected.

use std::collections::BTreeMap;

use super::*;
use crate::Aging;

const SIZES: [u64; 6] = [1, 2, 5, 10, 40, 100];

/// A waiting request: its name, its arrival, and its service.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    id: RequestId,
    arrival_ns: u64,
    service_ns: u64,
}

/// The outcome of all requests.
#[derive(Default)]
struct History {
    /// Wait and service of each, in the order of their start.
    waits: Vec<(u64, u64)>,
}

/// Serves requests one at a time. `observe` sees the waiters at each start, and the one that starts.
fn serve(
    order: Order,
    incoming: &[(u64, usize)],
    mut observe: impl FnMut(u64, &[Waiter], Waiter),
) -> History {
    let mut gate = Admission::new(AdmissionConfig {
        order,
        capacity: "1ns".parse().unwrap(),
        stall_ns: None,
        ..as_in_002()
    });
    let kept = Kept {
        capacity_ns: None,
        estimates: SIZES
            .iter()
            .map(|&service_ns| KeptEstimate {
                name: service_ns.to_string(),
                service_ns,
                requests: 8,
                spread: None,
            })
            .collect(),
    };
    gate.restore(&kept);
    let mut waiting: BTreeMap<RequestId, Waiter> = BTreeMap::new();
    let mut history = History::default();
    let mut incoming = incoming.iter().peekable();
    let mut now_ns = 0;
    while incoming.peek().is_some() || !waiting.is_empty() {
        if waiting.is_empty()
            && let Some(&&(arrival_ns, _)) = incoming.peek()
        {
            now_ns = now_ns.max(arrival_ns);
        }
        arrive(&mut gate, &mut incoming, &mut waiting, now_ns);
        let all: Vec<_> = waiting.values().copied().collect();
        let id = gate.admit_next(now_ns).unwrap();
        let started = waiting.remove(&id).unwrap();
        observe(now_ns, &all, started);
        let wait_ns = now_ns - started.arrival_ns;
        history.waits.push((wait_ns, started.service_ns));
        now_ns += started.service_ns;
        arrive(&mut gate, &mut incoming, &mut waiting, now_ns);
        gate.finish(now_ns, id, Outcome::Completed);
    }
    history
}

/// Takes in all requests that have arrived by now.
fn arrive<'a>(
    gate: &mut Admission,
    incoming: &mut std::iter::Peekable<impl Iterator<Item = &'a (u64, usize)>>,
    waiting: &mut BTreeMap<RequestId, Waiter>,
    now_ns: u64,
) {
    while let Some((arrival_ns, size)) = incoming.next_if(|&&(at_ns, _)| at_ns <= now_ns).copied() {
        let kind = gate.type_of(&SIZES[size].to_string());
        let id = gate.arrive(arrival_ns, kind).unwrap();
        let service_ns = SIZES[size];
        let waiter = Waiter {
            id,
            arrival_ns,
            service_ns,
        };
        waiting.insert(id, waiter);
    }
}

fn deadline_ns(waiter: &Waiter, factor: u64) -> u64 {
    waiter.arrival_ns + factor * waiter.service_ns
}

/// The first waiter that starts after its deadline, if all start in the order of their deadlines and
/// the first of them at `start_ns`.
fn first_late(waiters: &[Waiter], mut start_ns: u64, factor: u64) -> Option<Waiter> {
    let mut waiters = waiters.to_vec();
    waiters.sort_by_key(|waiter| (deadline_ns(waiter, factor), waiter.id));
    waiters.into_iter().find(|waiter| {
        let late = start_ns > deadline_ns(waiter, factor);
        start_ns += waiter.service_ns;
        late
    })
}

fn incoming() -> impl Strategy<Value = Vec<(u64, usize)>> {
    let gap_ns = prop_oneof![2 => 0..3u64, 1 => 0..120u64];
    prop::collection::vec((gap_ns, 0..SIZES.len()), 1..80).prop_map(|gaps| {
        let mut at_ns = 0;
        gaps.into_iter()
            .map(|(gap_ns, size)| {
                at_ns += gap_ns;
                (at_ns, size)
            })
            .collect()
    })
}

proptest! {
    /// Overdue requests go first, the earliest first. Otherwise a promotion leaves the requests it
    /// passes an order in which all start within X times their service.
    #[test]
    fn no_promotion_pushes_anyone_beyond_his_bound(incoming in incoming(), factor in 1..8u64) {
        let order = Order::SjfAging(Aging::new(factor as f64).unwrap());
        serve(order, &incoming, |now_ns, waiting, started| {
            let is_overdue = |w: &&Waiter| deadline_ns(w, factor) <= now_ns;
            let overdue = waiting.iter().filter(is_overdue).min_by_key(|w| w.id);
            if let Some(overdue) = overdue {
                assert_eq!(overdue.id, started.id);
                return;
            }
            let key = |w: &Waiter| (deadline_ns(w, factor), w.id);
            let passed: Vec<_> = waiting
                .iter()
                .filter(|w| key(w) < key(&started))
                .copied()
                .collect();
            if let Some(late) = first_late(&passed, now_ns + started.service_ns, factor) {
                panic!("{started:?} at {now_ns} makes {late:?} late");
            }
        });
    }

    /// Requests that all arrive at the beginning keep their bounds if any order keeps them.
    #[test]
    fn whoever_can_be_in_time_is(sizes in prop::collection::vec(0..SIZES.len(), 1..40), factor in 1..60u64) {
        let incoming: Vec<_> = sizes.iter().map(|&size| (0, size)).collect();
        let waiters: Vec<_> = (0..)
            .zip(&sizes)
            .map(|(sequence, &size)| Waiter {
                id: RequestId { sequence, slot: 0 },
                arrival_ns: 0,
                service_ns: SIZES[size],
            })
            .collect();
        prop_assume!(first_late(&waiters, 0, factor).is_none());
        let order = Order::SjfAging(Aging::new(factor as f64).unwrap());
        let history = serve(order, &incoming, |_, _, _| {});
        for (wait_ns, service_ns) in history.waits {
            prop_assert!(wait_ns <= factor * service_ns, "{wait_ns} for {service_ns}");
        }
    }
}

/// Overload and recovery, repeated: 1.5 times the work that the server can do, then a pause.
fn waves() -> Vec<(u64, usize)> {
    let mut at_ns = 0;
    let mut state = 7u64;
    (0..4000)
        .map(|count| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let size = [0, 0, 0, 1, 1, 2, 2, 3, 4, 5][(state >> 33) as usize % 10];
            at_ns += 11 + if count % 100 == 99 { 1400 } else { 0 };
            (at_ns, size)
        })
        .collect()
}

#[test]
fn the_factor_leads_from_fifo_to_sjf() {
    let mean_wait = |order| {
        let waits = serve(order, &waves(), |_, _, _| {}).waits;
        waits
            .iter()
            .map(|&(wait_ns, _)| wait_ns as f64)
            .sum::<f64>()
            / waits.len() as f64
    };
    let aging = |factor: f64| Order::SjfAging(Aging::new(factor).unwrap());
    let orders = [
        Order::Fifo,
        aging(0.01),
        aging(1.0),
        aging(3.0),
        aging(5.0),
        aging(20.0),
        aging(1e6),
        Order::Sjf,
    ];
    let means: Vec<_> = orders.into_iter().map(mean_wait).collect();
    println!("mean waits, fifo, X = .01, 1, 3, 5, 20, 1e6, sjf: {means:.0?}");
    for pair in means.windows(2) {
        assert!(pair[1] <= pair[0] * 1.02, "{means:?}");
    }
    assert!(means[1] > 0.9 * means[0], "{means:?}");
    assert_eq!(means[6], means[7]);
}
