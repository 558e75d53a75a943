//! No request starves: types that were never seen, types of which one request took long, and the
//! longest requests in a lasting overload. Fixed capacities, in virtual time.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::admission::{Admission, AdmissionConfig, Order};

use crate::backend::{Backend, Ended, Job};
use crate::plant::Throughput;

const TWO: Throughput = Throughput::Flat { servers: 2.0 };

fn gate(capacity: &str) -> Admission {
    Admission::new(AdmissionConfig {
        capacity: capacity.parse().expect("a capacity"),
        ..AdmissionConfig::default()
    })
}

fn job(name: &str, work_s: f64, client: usize) -> Job {
    Job {
        name: name.to_owned(),
        work_s,
        client,
    }
}

/// Clients that send the next request when the last one has ended, until `until_s`; ends of other
/// requests go to `other`.
fn closed_loop(backend: &mut Backend, until_s: f64, mut other: impl FnMut(&mut Backend, Ended)) {
    while let Some(ended) = backend.next_end(until_s) {
        if ended.job.client > 0 {
            let now_s = backend.now_s();
            backend.send(now_s, ended.job.clone());
        }
        other(backend, ended);
    }
}

fn reports(backend: &mut Backend, clients: usize, work_s: f64) {
    for client in 1..=clients {
        backend.send(0.0, job("report", work_s, client));
    }
}

#[test]
fn a_type_never_seen_starts_with_the_next_end() {
    let mut backend = Backend::new(gate("400ms"), TWO);
    reports(&mut backend, 12, 0.1);
    let mut last_end_s = 0.0;
    closed_loop(&mut backend, 5.05, |_, ended| last_end_s = ended.end_s);
    backend.send(5.05, job("select 1", 0.001, 0));
    let (mut first_end_s, mut selected) = (None, None);
    closed_loop(&mut backend, 8.0, |_, ended| match ended.job.client {
        0 => selected = Some(ended),
        _ => {
            first_end_s.get_or_insert(ended.end_s);
        }
    });
    let selected = selected.expect("it has ended");
    let next_end_s: f64 = first_end_s.expect("reports end");
    assert!(last_end_s > 4.0);
    assert!(
        selected.start_s <= next_end_s + 1e-6,
        "{selected:?}, {next_end_s}"
    );
}

/// What a release brings: a hundred reports are there, and a statement comes that nobody has seen. Its time is
/// at most three times its time alone and one report's, which is as long as one takes behind the gate.
#[test]
fn the_first_of_a_new_type_behind_a_hundred_reports_waits_for_one_of_them() {
    for order in [Order::Sjf, Order::Gittins, Order::Boost] {
        for capacity in ["400ms", "2s", "auto"] {
            for at_s in [20.0, 20.3, 20.77] {
                let config = AdmissionConfig {
                    order,
                    capacity: capacity.parse().expect("a capacity"),
                    ..AdmissionConfig::default()
                };
                let mut backend = Backend::new(Admission::new(config), TWO);
                reports(&mut backend, 100, 1.0);
                let mut report_s: f64 = 0.0;
                closed_loop(&mut backend, at_s, |_, ended| {
                    report_s = report_s.max(ended.end_s - ended.start_s);
                });
                backend.send(at_s, job("select 1", 0.01, 0));
                let mut selected = None;
                closed_loop(&mut backend, at_s + 60.0, |_, ended| {
                    report_s = report_s.max(ended.end_s - ended.start_s);
                    if ended.job.client == 0 {
                        selected = Some(ended);
                    }
                });
                let selected = selected.expect("it has ended");
                let took_s = selected.end_s - selected.arrival_s;
                println!("{order:?}, {capacity}, {at_s}: {took_s:.3} s, a report {report_s:.3} s");
                assert!(
                    took_s <= 3.0 * 0.01 + report_s,
                    "{order:?}, {capacity}, {at_s}: {took_s}"
                );
            }
        }
    }
}

/// How many requests of twelve clients of a known type end in a minute, beside a flood of unseen
/// names, each of a long request, or without the flood.
fn known_ended(capacity: &str, types_max: usize, is_flooded: bool) -> u32 {
    let config = AdmissionConfig {
        capacity: capacity.parse().expect("a capacity"),
        types_max,
        ..AdmissionConfig::default()
    };
    let mut backend = Backend::new(Admission::new(config), TWO);
    for client in 1..=12 {
        backend.send(0.0, job("web", 0.01, client));
    }
    closed_loop(&mut backend, 5.0, |_, _| {});
    for count in 0..if is_flooded { 3000 } else { 0 } {
        let at_s = 5.0 + 0.02 * f64::from(count);
        backend.send(at_s, job(&format!("new {count}"), 0.5, 0));
    }
    let mut known = 0;
    closed_loop(&mut backend, 65.0, |_, ended| {
        known += u32::from(ended.job.client > 0)
    });
    known
}

#[test]
fn a_flood_of_new_names_takes_a_bounded_share_from_the_known_ones() {
    for (capacity, types_max) in [("40ms", 1000), ("400ms", 1000), ("40ms", 100), ("1ns", 100)] {
        let quiet = known_ended(capacity, types_max, false);
        let flooded = known_ended(capacity, types_max, true);
        println!("capacity {capacity}, {types_max} types: {flooded} of {quiet}");
        assert!(
            3 * flooded >= quiet,
            "{capacity}, {types_max}: {flooded} of {quiet}"
        );
    }
}

#[test]
fn one_long_transaction_does_not_spoil_its_type() {
    // Before anything else of its type, and after some of them.
    for before in [0, 1, 2, 5, 100] {
        let mut backend = Backend::new(gate("400ms"), TWO);
        for count in 0..before {
            backend.send(0.1 * f64::from(count), job("web", 0.005, 0));
        }
        backend.send(0.1 * f64::from(before), job("web", 15.5, 0));
        closed_loop(&mut backend, 40.0, |_, _| {});
        for client in 1..=8 {
            backend.send(40.0, job("report", 0.2, client));
        }
        closed_loop(&mut backend, 50.0, |_, _| {});
        for client in 9..=28 {
            backend.send(50.0, job("web", 0.005, client));
        }
        let mut ended = vec![0; 29];
        closed_loop(&mut backend, 55.0, |_, done| ended[done.job.client] += 1);
        let served = ended[9..].iter().filter(|&&count| count > 0).count();
        println!(
            "{before} before: {served} of 20 were served, {} requests",
            ended[9..].iter().sum::<i32>()
        );
        assert_eq!(served, 20, "{before} before: {ended:?}");
    }
}

#[test]
fn a_type_that_was_slow_for_a_while_is_tried_again() {
    // A lock that lasted: every one of the last requests of the type took ten seconds.
    let mut backend = Backend::new(gate("400ms"), TWO);
    for count in 0..80 {
        backend.send(0.0, job("web", 10.0, 0));
        let _ = count;
    }
    while backend.next_end(2000.0).is_some() {}
    for client in 1..=8 {
        backend.send(2000.0, job("report", 0.2, client));
    }
    closed_loop(&mut backend, 2010.0, |_, _| {});
    for client in 9..=28 {
        backend.send(2010.0, job("web", 0.005, client));
    }
    let mut web = 0;
    closed_loop(&mut backend, 2040.0, |_, done| {
        web += usize::from(done.job.client > 8)
    });
    println!("{web} in half a minute");
    assert!(web > 1000, "{web}");
}

/// Arrivals at a rate of `load` for two minutes, of a web type, a larger one and a few best
/// sellers; then none. Returns the mean sojourn of all, the longest of the first type, and how many
/// best sellers had ended when the load ended.
fn overload(load: f64, oldest_share: &str) -> (f64, f64, usize, usize) {
    const KINDS: [(&str, f64, f64); 4] = [
        ("home", 0.002, 0.60),
        ("search", 0.010, 0.30),
        ("order", 0.030, 0.08),
        ("best sellers", 0.400, 0.02),
    ];
    const SECONDS: f64 = 120.0;
    let mut backend = Backend::new(
        Admission::new(AdmissionConfig {
            capacity: "1s".parse().expect("a capacity"),
            oldest_share: oldest_share.parse().expect("a share"),
            queue_max: 1_000_000,
            ..AdmissionConfig::default()
        }),
        TWO,
    );
    let mean_s: f64 = KINDS.iter().map(|(_, work_s, share)| work_s * share).sum();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut at_s = 0.0;
    while at_s < SECONDS {
        at_s -= (1.0 - rng.random_range(0.0..1.0f64)).ln() * mean_s / (2.0 * load);
        let mut left = rng.random_range(0.0..1.0);
        let kind = KINDS.iter().find(|(_, _, share)| {
            left -= share;
            left < 0.0
        });
        let &(name, work_s, _) = kind.unwrap_or(&KINDS[0]);
        backend.send(at_s, job(name, work_s, 0));
    }
    let (mut sum_s, mut count, mut home_s, mut sellers, mut sellers_in_time) =
        (0.0, 0, 0.0f64, 0, 0);
    while let Some(ended) = backend.next_end(10_000.0) {
        let sojourn_s = ended.end_s - ended.arrival_s;
        sum_s += sojourn_s;
        count += 1;
        if ended.job.name == "home" {
            home_s = home_s.max(sojourn_s);
        }
        if ended.job.name == "best sellers" {
            sellers += 1;
            sellers_in_time += usize::from(ended.end_s < SECONDS);
        }
    }
    (sum_s / f64::from(count), home_s, sellers_in_time, sellers)
}

#[test]
fn a_lasting_overload_leaves_no_type_without_service() {
    // What is shorter than the best sellers is already more than the backend does. A tenth of what two
    // processors do in two minutes are sixty of them.
    let (_, _, in_time, _) = overload(3.0, "10%");
    assert!(in_time >= 30, "{in_time}");
    let (_, _, in_time, _) = overload(3.0, "0");
    assert!(in_time < 5, "shortest first alone starves them: {in_time}");
}

/// Figures of docs/gate.md.
#[test]
#[ignore = "a table: `make test-long`"]
fn what_the_oldest_share_costs() {
    println!(
        "load  share   mean     longest of the shortest type   best sellers done when the load ended"
    );
    for load in [0.9, 1.1, 1.3, 2.0, 3.0] {
        let without = overload(load, "0").0;
        for share in ["0", "2%", "5%", "10%", "20%"] {
            let (mean_s, home_s, in_time, sellers) = overload(load, share);
            println!(
                "{load:.1}   {share:>4}   {mean_s:7.3} s ({:.2} times)   {home_s:7.3} s   {in_time} of {sellers}",
                mean_s / without
            );
            assert!(mean_s.is_finite() && sellers > 0);
        }
    }
}

/// Eight clients that each ask for a fraction of a millisecond again and again, like everybody's
/// first benchmark. More may be done with more inside, so that each look for a smaller capacity has
/// a cost.
#[test]
fn a_few_clients_with_short_requests_are_not_held_back() {
    let all_at_once = Throughput::Flat { servers: 8.0 };
    let mut backend = Backend::new(gate("auto"), all_at_once);
    for client in 1..=8 {
        backend.send(0.0, job("select", 0.0004 + 1e-6 * client as f64, client));
    }
    let mut ended = vec![0_u32; 400];
    closed_loop(&mut backend, 20.0, |_, each| {
        ended[(each.end_s / 0.05) as usize % 400] += 1;
    });
    // Eight at a time, 0.4 ms each.
    let most = 0.05 / 0.000_41 * 8.0;
    let least = ended.iter().copied().min().map_or(0.0, f64::from);
    assert!(least > 0.95 * most, "{least} of {most} in the worst 50 ms");
}
