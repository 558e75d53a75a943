//! Admission by examples: which requests start, which wait, and what is learnt.

#![allow(clippy::unwrap_used)]
mod bounds;
mod debts;
mod oldest;
mod places;
mod steps;
mod tenants;

use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;

fn gate(order: Order, capacity: &str) -> Admission {
    Admission::new(AdmissionConfig {
        order,
        capacity: capacity.parse().unwrap(),
        queue_max: 3,
        ..as_in_002()
    })
}

/// A configuration with the estimates and the order of 002.
fn as_in_002() -> AdmissionConfig {
    AdmissionConfig {
        estimator: crate::Estimator::MovingAverage,
        oldest_share: OldestShare::NONE,
        ..AdmissionConfig::default()
    }
}

/// A type whose requests are known to take `service_ms`.
fn taught(gate: &mut Admission, name: &str, service_ms: u64) -> TypeId {
    let request_type = gate.type_of(name);
    for _ in 0..2 {
        let id = gate.arrive(0, request_type).unwrap();
        let start_ns = gate.now_ns;
        assert_eq!(gate.admit_next(start_ns), Some(id));
        gate.finish(start_ns + service_ms * MS, id, Outcome::Completed);
    }
    request_type
}

#[test]
fn admits_up_to_the_capacity_and_always_when_nothing_runs() {
    let mut gate = gate(Order::Fifo, "50ms");
    let long = taught(&mut gate, "long", 80);
    let short = taught(&mut gate, "short", 20);
    let first = gate.arrive(0, long).unwrap();
    assert_eq!(gate.admit_next(0), Some(first));
    assert_eq!(gate.load_ns(), 80 * MS);
    let second = gate.arrive(0, short).unwrap();
    assert_eq!(gate.admit_next(0), None);
    gate.finish(0, first, Outcome::Completed);
    assert_eq!(gate.admit_next(0), Some(second));
    let third = gate.arrive(0, short).unwrap();
    assert_eq!(gate.admit_next(0), Some(third));
    let _fourth = gate.arrive(0, short).unwrap();
    assert_eq!(gate.admit_next(0), None);
    gate.finish(0, second, Outcome::Failed);
    gate.finish(0, third, Outcome::Failed);
    assert_eq!(gate.load_ns(), 0);
}

#[test]
fn the_shortest_goes_first_and_of_one_type_the_earliest() {
    let mut gate = gate(Order::Sjf, "1ns");
    let long = taught(&mut gate, "long", 80);
    let short = taught(&mut gate, "short", 20);
    let running = gate.arrive(0, short).unwrap();
    gate.admit_next(0).unwrap();
    let a = gate.arrive(0, long).unwrap();
    let b = gate.arrive(0, short).unwrap();
    let c = gate.arrive(0, short).unwrap();
    gate.finish(0, running, Outcome::Failed);
    for expected in [b, c, a] {
        assert_eq!(gate.admit_next(0), Some(expected));
        gate.finish(0, expected, Outcome::Failed);
    }
}

#[test]
fn in_order_of_arrival_even_within_one_instant() {
    let mut gate = gate(Order::Fifo, "1ns");
    let long = taught(&mut gate, "long", 80);
    let short = taught(&mut gate, "short", 20);
    let running = gate.arrive(0, short).unwrap();
    gate.admit_next(0).unwrap();
    let a = gate.arrive(0, long).unwrap();
    let b = gate.arrive(0, long).unwrap();
    let c = gate.arrive(0, short).unwrap();
    gate.finish(0, running, Outcome::Failed);
    for expected in [a, b, c] {
        assert_eq!(gate.admit_next(0), Some(expected));
        gate.finish(0, expected, Outcome::Failed);
    }
}

#[test]
fn a_full_queue_refuses_and_a_withdrawal_makes_room() {
    let mut gate = gate(Order::Sjf, "1ns");
    let kind = gate.type_of("a");
    gate.arrive(0, kind).unwrap();
    gate.admit_next(0).unwrap();
    let waiting: Vec<_> = (0..3).map(|_| gate.arrive(0, kind).unwrap()).collect();
    let refusal = gate.arrive(0, kind).unwrap_err();
    assert_eq!(refusal, Refusal::QueueFull { limit: 3 });
    assert!(gate.withdraw(0, waiting[1]));
    assert!(!gate.withdraw(0, waiting[1]));
    let late = gate.arrive(0, kind).unwrap();
    gate.finish(
        0,
        RequestId {
            slot: 0,
            sequence: 0,
        },
        Outcome::Failed,
    );
    assert_eq!(gate.admit_next(0), Some(waiting[0]));
    gate.finish(0, waiting[0], Outcome::Failed);
    assert_eq!(gate.admit_next(0), Some(waiting[2]));
    gate.finish(0, waiting[2], Outcome::Failed);
    assert_eq!(gate.admit_next(0), Some(late));
}

#[test]
fn a_pause_is_no_service_and_gives_the_load_back() {
    let mut gate = gate(Order::Sjf, "1s");
    let kind = taught(&mut gate, "a", 20);
    let start_ns = gate.now_ns;
    let id = gate.arrive(start_ns, kind).unwrap();
    gate.admit_next(start_ns).unwrap();
    gate.pause(start_ns + 5 * MS, id);
    assert_eq!((gate.load_ns(), gate.view().active), (0, 0));
    gate.resume(start_ns + 500 * MS, id);
    assert_eq!(gate.load_ns(), 20 * MS);
    gate.finish(start_ns + 505 * MS, id, Outcome::Completed);
    assert_eq!(gate.load_ns(), 0);
    // The mean of 20, 20 and 10.
    assert_eq!(gate.view().types[1].estimate_ns, 50 * MS / 3);
}

#[test]
fn a_clock_that_jumps_backwards_stands_still() {
    let mut gate = gate(Order::Sjf, "1s");
    let kind = gate.type_of("a");
    let id = gate.arrive(100 * MS, kind).unwrap();
    assert_eq!(gate.admit_next(50 * MS), Some(id));
    gate.finish(10 * MS, id, Outcome::Completed);
    assert_eq!(gate.view().types[1].estimate_ns, 1);
}

#[test]
fn a_failure_teaches_only_that_it_takes_longer() {
    let mut gate = gate(Order::Sjf, "1s");
    let kind = taught(&mut gate, "a", 20);
    for (after_ms, expected_ms) in [(1, 20), (50, 30)] {
        let start_ns = gate.now_ns;
        let id = gate.arrive(start_ns, kind).unwrap();
        gate.admit_next(start_ns).unwrap();
        gate.finish(start_ns + after_ms * MS, id, Outcome::Failed);
        assert_eq!(gate.view().types[1].estimate_ns, expected_ms * MS);
    }
}

#[test]
fn names_beyond_a_table_in_use_share_one_type() {
    let mut gate = Admission::new(AdmissionConfig {
        types_max: 2,
        ..AdmissionConfig::default()
    });
    let [a, b] = ["a", "b"].map(|name| gate.type_of(name));
    for used in [a, b] {
        gate.arrive(0, used).unwrap();
    }
    let c = gate.type_of("c");
    assert!(a != b && c != a && c != b);
    let long = "\u{e4}".repeat(300);
    assert_eq!((gate.type_of("d"), gate.type_of(&long)), (c, c));
    assert_eq!(gate.view().types.len(), 3);
}

#[test]
fn what_nothing_is_known_of_takes_as_long_as_the_others_and_as_it_has_taken_so_far() {
    let mut gate = gate(Order::Sjf, "100ms");
    taught(&mut gate, "known", 30);
    let unknown = gate.type_of("unknown");
    let start_ns = gate.now_ns;
    gate.arrive(start_ns, unknown).unwrap();
    gate.admit_next(start_ns).unwrap();
    assert_eq!(gate.load_ns(), 30 * MS);
    // The first still runs after 60 ms: another takes at least as long.
    let later_ns = start_ns + 60 * MS;
    gate.arrive(later_ns, unknown).unwrap();
    gate.admit_next(later_ns).unwrap();
    assert_eq!(gate.load_ns(), 90 * MS);
    gate.arrive(later_ns, unknown).unwrap();
    assert_eq!(gate.admit_next(later_ns), None);
}

#[test]
fn what_is_learnt_of_a_type_moves_those_that_wait() {
    let mut gate = gate(Order::Sjf, "1ns");
    let a = taught(&mut gate, "a", 10);
    let b = taught(&mut gate, "b", 20);
    let start_ns = gate.now_ns;
    let running = gate.arrive(start_ns, a).unwrap();
    gate.admit_next(start_ns).unwrap();
    let waits_a = gate.arrive(start_ns, a).unwrap();
    let waits_b = gate.arrive(start_ns, b).unwrap();
    // From now on type a takes (10 + 10 + 90) / 3 ms.
    let end_ns = start_ns + 90 * MS;
    gate.finish(end_ns, running, Outcome::Completed);
    assert_eq!(gate.admit_next(end_ns), Some(waits_b));
    gate.finish(end_ns, waits_b, Outcome::Failed);
    assert_eq!(gate.admit_next(end_ns), Some(waits_a));
}

#[test]
fn a_standstill_lets_one_in_after_a_while() {
    let stall_ns = NonZeroU64::new(1000);
    let mut gate = Admission::new(AdmissionConfig {
        capacity: "1ns".parse().unwrap(),
        stall_ns,
        ..AdmissionConfig::default()
    });
    let kind = gate.type_of("a");
    gate.arrive(0, kind).unwrap();
    gate.admit_next(0).unwrap();
    assert_eq!(gate.next_change_ns(), None);
    let ids: Vec<_> = [500, 700].map(|ns| gate.arrive(ns, kind).unwrap()).into();
    assert_eq!(gate.next_change_ns(), Some(1500));
    assert_eq!(gate.admit_next(1499), None);
    assert_eq!(gate.admit_next(1500), Some(ids[0]));
    assert_eq!(gate.admit_next(1500), None);
    assert_eq!(gate.next_change_ns(), Some(2500));
    assert_eq!(gate.admit_next(2500), Some(ids[1]));
    assert_eq!(gate.view().totals.escaped, 2);
}

#[test]
fn sheds_only_what_would_wait_too_long_and_only_if_told_to() {
    let mut gate = Admission::new(AdmissionConfig {
        capacity: "1ns".parse().unwrap(),
        shed_wait_ns: NonZeroU64::new(50 * MS),
        ..AdmissionConfig::default()
    });
    let long = taught(&mut gate, "long", 40);
    let short = taught(&mut gate, "short", 2);
    let start_ns = gate.now_ns;
    for _ in 0..3 {
        gate.arrive(start_ns, long).unwrap();
        gate.admit_next(start_ns);
    }
    let refusal = gate.arrive(start_ns, long).unwrap_err();
    let expected = Refusal::Shed {
        wait_ns_expected: 80 * MS,
        limit_ns: 50 * MS,
    };
    assert_eq!(refusal, expected);
    // Long requests do not go before a short one.
    gate.arrive(start_ns, short).unwrap();
    let totals = gate.view().totals;
    assert_eq!((totals.refused_shed, totals.refused_full), (1, 0));
}

#[test]
fn a_dry_run_lets_everyone_in_and_counts() {
    let mut gate = Admission::new(AdmissionConfig {
        capacity: "15ms".parse().unwrap(),
        queue_max: 0,
        dry_run: true,
        ..AdmissionConfig::default()
    });
    let kind = gate.type_of("a");
    for _ in 0..5 {
        let id = gate.arrive(0, kind).unwrap();
        assert_eq!(gate.admit_next(0), Some(id));
    }
    let view = gate.view();
    assert_eq!(
        (view.waiting, view.running, view.totals.would_wait),
        (0, 5, 4)
    );
    assert_eq!(view.types[1].would_wait, 4);
}

#[test]
fn a_dry_run_of_auto_counts_nobody_as_waiting_whose_capacity_it_does_not_know() {
    let mut gate = Admission::new(AdmissionConfig {
        capacity: Capacity::Auto,
        dry_run: true,
        ..AdmissionConfig::default()
    });
    let kind = gate.type_of("a");
    // Forty run at a time, each as fast as alone.
    for round in 0..1000 {
        let now_ns = round * 10 * MS;
        for _ in 0..40 {
            let id = gate.arrive(now_ns, kind).unwrap();
            assert_eq!(gate.admit_next(now_ns), Some(id));
            gate.finish(now_ns + 10 * MS, id, Outcome::Completed);
        }
    }
    let view = gate.view();
    assert_eq!((view.totals.would_wait, view.capacity_ns), (0, None));
    let CapacityState::Auto(auto) = view.capacity_state else {
        panic!("{view:?}");
    };
    assert_eq!(auto.reason, AutoReason::NotKnown);
    assert_eq!(gate.kept().capacity_ns, None);
}

#[test]
fn no_queue_still_admits_what_fits() {
    let mut gate = Admission::new(AdmissionConfig {
        capacity: "25ms".parse().unwrap(),
        queue_max: 0,
        ..AdmissionConfig::default()
    });
    let kind = gate.type_of("a");
    for _ in 0..2 {
        gate.arrive(0, kind).unwrap();
        gate.admit_next(0).unwrap();
    }
    assert!(gate.arrive(0, kind).is_err());
}

#[test]
fn the_queue_is_not_longer_than_may_be_whoever_blocks_it() {
    for order in [Order::Fifo, Order::SjfAging("1".parse().unwrap())] {
        let mut gate = gate(order, "100ms");
        let long = taught(&mut gate, "long", 90);
        let short = taught(&mut gate, "short", 5);
        let start_ns = gate.now_ns;
        gate.arrive(start_ns, short).unwrap();
        gate.admit_next(start_ns).unwrap();
        gate.arrive(start_ns, long).unwrap();
        gate.admit_next(start_ns).unwrap();
        // The first of these does not fit. Those behind it would.
        gate.arrive(start_ns, long).unwrap();
        for _ in 0..2 {
            gate.arrive(start_ns, short).unwrap();
        }
        assert!(gate.arrive(start_ns, short).is_err());
        assert_eq!(gate.waiting(), 3);
    }
}

#[test]
fn a_full_table_forgets_what_is_not_used_and_keeps_what_is() {
    let mut gate = Admission::new(AdmissionConfig {
        types_max: 4,
        ..AdmissionConfig::default()
    });
    let used = gate.type_of("used");
    let inside = gate.type_of("inside");
    gate.arrive(0, inside).unwrap();
    let forgotten = gate.type_of("once");
    for count in 0..1000 {
        gate.type_of(&format!("name {count}"));
        assert_eq!(gate.type_of("used"), used);
    }
    assert_eq!(gate.view().types.len(), 5);
    let names: Vec<_> = gate.view().types.iter().map(|t| t.name.clone()).collect();
    assert!(names.contains(&"used".to_owned()) && names.contains(&"inside".to_owned()));
    assert_ne!(gate.type_of("once"), forgotten);
    // The id of a forgotten type names the shared type, not the one in its place.
    gate.arrive(0, forgotten).unwrap();
    assert_eq!(gate.view().types[0].waiting, 1);
}

#[test]
fn what_was_learnt_is_kept_over_a_restart() {
    let mut gate = gate(Order::Sjf, "1s");
    taught(&mut gate, "a", 40);
    taught(&mut gate, "b", 10);
    let text = serde_json::to_string(&gate.kept()).unwrap();
    let kept: Kept = serde_json::from_str(&text).unwrap();
    let mut next = Admission::new(AdmissionConfig::default());
    next.restore(&kept);
    let estimates: Vec<_> = next.view().types[1..]
        .iter()
        .map(|kind| (kind.name.clone(), kind.estimate_ns))
        .collect();
    assert_eq!(estimates, [("a".into(), 40 * MS), ("b".into(), 10 * MS)]);
    let mut auto = Admission::new(AdmissionConfig {
        capacity: Capacity::Auto,
        ..AdmissionConfig::default()
    });
    auto.restore(&kept);
    assert_eq!(auto.view().capacity_ns, Some(999_999_999));
    assert_eq!(auto.kept().estimates, kept.estimates);
}

/// It was the first to be forgotten, as if nobody had ever asked for it.
#[test]
fn what_is_restored_outlives_names_that_come_once() {
    let mut before = gate(Order::Sjf, "1s");
    taught(&mut before, "a", 40);
    let mut gate = Admission::new(AdmissionConfig {
        types_max: 2,
        ..AdmissionConfig::default()
    });
    gate.restore(&before.kept());
    for name in ["once", "again"] {
        gate.type_of(name);
    }
    assert!(gate.view().types.iter().any(|kind| kind.name == "a"));
}

#[test]
fn estimates_that_are_fixed_stay_and_others_are_learnt() {
    let mut before = gate(Order::Sjf, "1s");
    taught(&mut before, "a", 40);
    let mut fixed = Admission::new(AdmissionConfig {
        estimates_fixed: true,
        ..AdmissionConfig::default()
    });
    fixed.restore(&before.kept());
    taught(&mut fixed, "a", 90);
    taught(&mut fixed, "b", 10);
    let types = fixed.view().types;
    let estimate_ns = |name: &str| {
        types
            .iter()
            .find(|kind| kind.name == name)
            .unwrap()
            .estimate_ns
    };
    assert_eq!((estimate_ns("a"), estimate_ns("b")), (40 * MS, 10 * MS));
}
