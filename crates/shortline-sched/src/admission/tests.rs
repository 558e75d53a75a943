#![allow(clippy::unwrap_used)]
use super::*;

const MS: u64 = 1_000_000;

fn gate(order: Order, capacity: &str) -> Admission {
    Admission::new(AdmissionConfig {
        order,
        capacity: capacity.parse().unwrap(),
        queue_max: 3,
        ..AdmissionConfig::default()
    })
}

/// A type whose requests are known to take that long.
fn taught(gate: &mut Admission, name: &str, service_ms: u64) -> TypeId {
    let request_type = gate.type_of(name);
    let id = gate.arrive(0, request_type).unwrap();
    let start_ns = gate.now_ns;
    assert_eq!(gate.admit_next(start_ns), Some(id));
    gate.finish(start_ns + service_ms * MS, id, Outcome::Completed);
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
    // The mean of 20 and 10.
    assert_eq!(gate.view().types[1].estimate_ns, 15 * MS);
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
    for (after_ms, expected_ms) in [(1, 20), (40, 30)] {
        let start_ns = gate.now_ns;
        let id = gate.arrive(start_ns, kind).unwrap();
        gate.admit_next(start_ns).unwrap();
        gate.finish(start_ns + after_ms * MS, id, Outcome::Failed);
        assert_eq!(gate.view().types[1].estimate_ns, expected_ms * MS);
    }
}

#[test]
fn names_beyond_the_table_share_one_type() {
    let mut gate = Admission::new(AdmissionConfig {
        types_max: 2,
        ..AdmissionConfig::default()
    });
    let a = gate.type_of("a");
    assert_eq!(gate.type_of("a"), a);
    let b = gate.type_of("b");
    let c = gate.type_of("c");
    assert!(a != b && c != a && c != b);
    assert_eq!(gate.type_of("d"), c);
    assert_eq!(gate.view().types.len(), 3);
    let long = "ä".repeat(300);
    assert_eq!(gate.type_of(&long), c);
}
