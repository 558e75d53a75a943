//! No more requests run than `running_max`.

use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::super::*;

fn gate(running_max: usize, order: Order, dry_run: bool) -> Admission {
    Admission::new(AdmissionConfig {
        order,
        running_max: NonZeroUsize::new(running_max),
        dry_run,
        ..AdmissionConfig::default()
    })
}

#[test]
fn a_paused_request_keeps_its_place_and_time_alone_gives_none() {
    let mut gate = gate(1, Order::Sjf, false);
    let kind = gate.type_of("a");
    let first = gate.arrive(0, kind).unwrap();
    assert_eq!(gate.admit_next(0), Some(first));
    let second = gate.arrive(0, kind).unwrap();
    assert_eq!(gate.admit_next(0), None);
    gate.pause(1, first);
    assert_eq!(gate.admit_next(1), None);
    // The escape is for locks. It does not exceed `running_max`.
    assert_eq!(gate.admit_next(3_600_000_000_000), None);
    // A driver that were told a time would ask again at once, for ever.
    assert_eq!(gate.next_change_ns(), None);
    gate.set_running_max(NonZeroUsize::new(2));
    assert!(gate.next_change_ns().is_some());
    gate.set_running_max(NonZeroUsize::new(1));
    gate.finish(3_600_000_000_001, first, Outcome::Completed);
    assert_eq!(gate.admit_next(3_600_000_000_001), Some(second));
}

#[test]
fn time_alone_gives_no_place_to_tenants_that_have_none() {
    let mut gate = gate(9, Order::Sjf, false);
    let limits = TenantLimits {
        running_max: NonZeroUsize::new(1),
        ..TenantLimits::default()
    };
    gate.set_tenants([("shop", limits)], TenantLimits::default());
    let (kind, tenant) = (gate.type_of("a"), gate.tenant_of("shop"));
    let request = NewRequest {
        request_type: kind,
        client: None,
        tenant,
        never_waits: false,
        runaway: None,
    };
    let first = gate.take_in(0, request).unwrap();
    assert_eq!(gate.admit_next(0), Some(first));
    let second = gate.take_in(0, request).unwrap();
    assert_eq!(gate.admit_next(3_600_000_000_000), None);
    assert_eq!(gate.next_change_ns(), None);
    gate.finish(3_600_000_000_001, first, Outcome::Completed);
    assert!(gate.next_change_ns().is_some());
    assert_eq!(gate.admit_next(3_600_000_000_001), Some(second));
}

#[test]
fn nothing_starts_in_a_pause_and_nobody_loses_his_place() {
    let mut gate = gate(1, Order::Fifo, true);
    let kind = gate.type_of("a");
    gate.set_paused(0, true);
    let ids: Vec<_> = (0..3).map(|_| gate.arrive(0, kind).unwrap()).collect();
    // Neither a dry run nor an escape goes beyond.
    assert_eq!(gate.admit_next(3_600_000_000_000), None);
    assert_eq!(gate.next_change_ns(), None);
    gate.set_paused(3_600_000_000_000, false);
    assert!(
        gate.next_change_ns()
            .is_some_and(|at_ns| at_ns > 3_600_000_000_000)
    );
    for id in ids {
        assert_eq!(gate.admit_next(3_600_000_000_000), Some(id));
        gate.finish(3_600_000_000_000, id, Outcome::Completed);
    }
}

proptest! {
    #[test]
    fn never_more_run_than_may_and_never_fewer_than_can(
        running_max in 1_usize..5,
        order in prop::sample::select(vec![Order::Fifo, Order::Sjf]),
        dry_run: bool,
        steps in prop::collection::vec((0..4_u8, 0..8_usize), 0..200),
    ) {
        let mut gate = gate(running_max, order, dry_run);
        let mut running = Vec::new();
        let mut now_ns = 0;
        for (step, which) in steps {
            now_ns += 1_000_000;
            let kind = gate.type_of(["short", "long", "other"][which % 3]);
            match step {
                0 | 1 => {
                    gate.arrive(now_ns, kind).ok();
                }
                2 if !running.is_empty() => {
                    let id = running.remove(which % running.len());
                    gate.finish(now_ns, id, Outcome::Completed);
                }
                _ if !running.is_empty() => {
                    let id: RequestId = running[which % running.len()];
                    gate.pause(now_ns, id);
                }
                _ => {}
            }
            while let Some(id) = gate.admit_next(now_ns) {
                running.push(id);
            }
            prop_assert!(running.len() <= running_max);
            prop_assert!(running.len() == running_max || gate.waiting() == 0);
        }
    }
}
