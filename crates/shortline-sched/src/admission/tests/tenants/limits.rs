//! Limits of tenants, and passing over, by examples.

use super::*;

/// A gate with capacity for one request, at which one of tenant `a` runs.
fn busy(limits: [TenantLimits; 3]) -> (Bench, RequestId) {
    let mut bench = Bench::new("60ms", limits);
    let id = ask(&mut bench, 0, "60");
    assert_eq!(bench.gate.admit_next(0), Some(id));
    (bench, id)
}

fn ask(bench: &mut Bench, tenant: usize, size: &str) -> RequestId {
    let request = request(bench, tenant, size);
    bench.gate.take_in(0, request).unwrap()
}

fn request(bench: &mut Bench, tenant: usize, size: &str) -> NewRequest {
    NewRequest {
        tenant: bench.tenants[tenant],
        ..NewRequest::new(bench.gate.type_of(size))
    }
}

#[test]
fn a_tenant_at_a_limit_of_its_own_is_passed_over() {
    let one = TenantLimits {
        running_max: NonZeroUsize::new(1),
        ..TenantLimits::default()
    };
    let half = TenantLimits {
        capacity_max: Some("50%".parse().unwrap()),
        ..TenantLimits::default()
    };
    for limits in [one, half] {
        let none = TenantLimits::default();
        let mut bench = Bench::new("60ms", [limits, none, none]);
        let first = ask(&mut bench, 0, "20");
        assert_eq!(bench.gate.admit_next(0), Some(first));
        let second = ask(&mut bench, 0, "20");
        assert_eq!(bench.gate.admit_next(0), None);
        let other = ask(&mut bench, 1, "20");
        assert_eq!(bench.gate.admit_next(0), Some(other));
        assert_eq!(bench.gate.admit_next(0), None);
        bench.gate.finish(20 * MS, first, Outcome::Completed);
        assert_eq!(bench.gate.admit_next(20 * MS), Some(second));
    }
}

#[test]
fn what_is_open_and_idle_has_a_place_and_no_share() {
    let two = TenantLimits {
        running_max: NonZeroUsize::new(2),
        ..TenantLimits::default()
    };
    let (mut bench, open) = busy([two, TenantLimits::default(), TenantLimits::default()]);
    bench.gate.pause(MS, open);
    let next = ask(&mut bench, 0, "60");
    assert_eq!(bench.gate.admit_next(MS), Some(next));
    let third = ask(&mut bench, 0, "1");
    assert_eq!(bench.gate.admit_next(MS), None, "it holds two places");
    let view = &bench.gate.view().tenants[1];
    assert_eq!((view.running, view.active, view.waiting), (2, 1, 1));
    assert_eq!(view.served_ns, MS);
    bench.gate.finish(1000 * MS, open, Outcome::Completed);
    assert_eq!(bench.gate.view().tenants[1].served_ns, MS);
    assert!(bench.gate.is_waiting(third));
}

#[test]
fn a_tenant_waits_within_its_limit_and_leaves_places_to_others() {
    let few = TenantLimits {
        waiting_max: Some(2),
        ..TenantLimits::default()
    };
    let (mut bench, _) = busy([few, TenantLimits::default(), TenantLimits::default()]);
    for _ in 0..2 {
        ask(&mut bench, 0, "60");
    }
    let third = request(&mut bench, 0, "60");
    let refusal = bench.gate.take_in(0, third).unwrap_err();
    assert_eq!(refusal, Refusal::TenantWaiting { limit: 2 });
    assert!(refusal.to_string().contains("waiting-max"), "{refusal}");
    let flood = request(&mut bench, 1, "60");
    let mut taken = 0;
    let refusal = loop {
        match bench.gate.take_in(0, flood) {
            Ok(_) => taken += 1,
            Err(refusal) => break refusal,
        }
    };
    let shared = Refusal::TenantShare {
        waiting: taken,
        free: taken,
    };
    assert_eq!((refusal, taken), (shared, 4999));
    let third = request(&mut bench, 2, "60");
    assert!(bench.gate.take_in(0, third).is_ok());
    assert_eq!(bench.gate.view().tenants[2].refused, 1);
}

#[test]
fn what_never_waits_starts_at_once_up_to_its_limit_and_is_charged() {
    let (mut bench, _) = busy([TenantLimits::default(); 3]);
    let at_once = NewRequest {
        never_waits: true,
        ..request(&mut bench, 1, "20")
    };
    let most = AdmissionConfig::default().unqueued_max;
    let ids: Vec<_> = (0..most)
        .map(|_| {
            let id = bench.gate.take_in(0, at_once).unwrap();
            assert_eq!(bench.gate.admit_next(0), Some(id));
            id
        })
        .collect();
    let beyond = bench.gate.take_in(0, at_once).unwrap();
    assert_eq!(bench.gate.admit_next(0), None);
    assert!(bench.gate.is_waiting(beyond));
    assert_eq!(bench.gate.load_ns(), (60 + 20 * most as u64) * MS);
    bench.gate.finish(20 * MS, ids[0], Outcome::Completed);
    assert_eq!(bench.gate.view().tenants[2].served_ns, 20 * MS);
    assert_eq!(bench.gate.view().tenants[2].unqueued, most as u64);
    let again = bench.gate.take_in(20 * MS, at_once).unwrap();
    assert!(bench.gate.withdraw(20 * MS, again));
    let again = bench.gate.take_in(20 * MS, at_once).unwrap();
    assert_eq!(bench.gate.admit_next(20 * MS), Some(again));
}

#[test]
fn connections_of_a_tenant_are_counted_and_limited() {
    let limits = TenantLimits {
        connections_max: NonZeroUsize::new(2),
        ..TenantLimits::default()
    };
    let mut bench = Bench::new("off", [limits; 3]);
    let tenant = bench.tenants[0];
    assert_eq!(bench.gate.connect(tenant), Ok(()));
    assert_eq!(bench.gate.connect(tenant), Ok(()));
    let refusal = bench.gate.connect(tenant).unwrap_err();
    assert_eq!(refusal, Refusal::TenantConnections { limit: 2 });
    assert_eq!(bench.gate.connect(bench.tenants[1]), Ok(()));
    bench.gate.disconnect(tenant);
    assert_eq!(bench.gate.connect(tenant), Ok(()));
    let view = &bench.gate.view().tenants[1];
    assert_eq!((view.connections, view.connections_refused), (2, 1));
}

#[test]
fn the_table_is_bounded_and_forgets_who_owes_nothing() {
    let mut bench = Bench::new("60ms", [TenantLimits::default(); 3]);
    let gate = &mut bench.gate;
    for index in 0..5000 {
        gate.tenant_of(&format!("t{index}"));
    }
    assert!(gate.view().tenants.len() <= 1005);
    let named = gate.tenant_of("a");
    assert_eq!(gate.tenant_name(named), "a");
    let last = gate.tenant_of("t4999");
    assert_eq!(gate.tenant_name(last), "t4999");
    let forgotten = gate.tenant_of("t4998");
    for index in 5000..7000 {
        let tenant = gate.tenant_of(&format!("u{index}"));
        gate.connect(tenant).unwrap();
    }
    assert_eq!(gate.tenant_name(forgotten), DEFAULT_TENANT);
    assert!(gate.view().tenants.len() <= 1005);
    // A tenant without a place shares the first one.
    assert_eq!(gate.tenant_of("one more"), TenantId::default());
}

#[test]
fn who_owes_is_not_forgotten_while_others_wait() {
    let mut bench = Bench::new("60ms", [TenantLimits::default(); 3]);
    let debtor = bench.gate.tenant_of("debtor");
    let kind = bench.gate.type_of("60");
    let of_debtor = NewRequest {
        tenant: debtor,
        ..NewRequest::new(kind)
    };
    let id = bench.gate.take_in(0, of_debtor).unwrap();
    assert_eq!(bench.gate.admit_next(0), Some(id));
    // Others wait from before it is charged for all that it takes.
    for _ in 0..3 {
        ask(&mut bench, 0, "60");
    }
    bench.gate.finish(6000 * MS, id, Outcome::Completed);
    let next = bench.gate.admit_next(6000 * MS).unwrap();
    for index in 0..5000 {
        bench.gate.tenant_of(&format!("t{index}"));
    }
    assert_eq!(bench.gate.tenant_name(debtor), "debtor");
    // Once none waits nobody owes anything.
    bench.gate.finish(6060 * MS, next, Outcome::Completed);
    for now_ns in [6060 * MS, 6120 * MS] {
        let id = bench.gate.admit_next(now_ns).unwrap();
        bench.gate.finish(now_ns + 60 * MS, id, Outcome::Completed);
    }
    assert_eq!(bench.gate.waiting(), 0);
    for index in 0..5000 {
        bench.gate.tenant_of(&format!("u{index}"));
    }
    assert_eq!(bench.gate.tenant_name(debtor), DEFAULT_TENANT);
}
