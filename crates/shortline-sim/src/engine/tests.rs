//! The engine by examples and properties.

#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use shortline_sched::ProcessorSharing;

use super::*;

fn servers(policy: Policy, capacity: &Capacity) -> Servers {
    Servers::new(SchedulerConfig::new(policy, 1000), 10.0, capacity)
}

fn capacity(servers: f64, caps: &[f64]) -> Capacity {
    let class = |&cap: &f64| Class { cap, path: None };
    Capacity {
        servers,
        classes: caps.iter().map(class).collect(),
        dispatcher: None,
    }
}

/// When each job ends; jobs are (arrival, work, class).
fn ends(policy: Policy, capacity: &Capacity, jobs: &[(u64, u64, usize)]) -> Vec<f64> {
    let mut servers = servers(policy, capacity);
    let mut ends = vec![f64::NAN; jobs.len()];
    let mut run = |servers: &mut Servers, until_ns| {
        while let Some(slot) = servers.run_until(until_ns) {
            ends[slot as usize] = servers.now_ns();
        }
    };
    for (slot, &(at_ns, work_ns, class)) in (0u32..).zip(jobs) {
        run(&mut servers, at_ns as f64);
        servers.submit(&Work {
            client: None,
            slot,
            class,
            work_ns: work_ns as f64,
            estimate_ns: work_ns,
        });
    }
    run(&mut servers, f64::INFINITY);
    ends
}

fn on_one(policy: Policy, jobs: &[(u64, u64)]) -> Vec<f64> {
    let jobs: Vec<_> = jobs.iter().map(|&(at, work)| (at, work, 0)).collect();
    ends(policy, &Capacity::one(), &jobs)
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
}

#[test]
fn known_schedules_end_as_worked_out_by_hand() {
    let jobs = [(0, 15), (0, 10), (10, 10), (20, 10)];
    assert_eq!(on_one(Policy::Srpt, &jobs), [45.0, 10.0, 20.0, 30.0]);
    assert_eq!(on_one(Policy::Fsp, &jobs), [25.0, 10.0, 35.0, 45.0]);
}

#[test]
fn of_those_that_arrive_at_one_instant_the_shortest_is_taken() {
    let idle = [(0, 15), (0, 10), (0, 12)];
    assert_eq!(on_one(Policy::Sjf, &idle), [37.0, 10.0, 22.0]);
    // The server becomes idle just then.
    let just_idle = [(0, 5), (5, 20), (5, 3)];
    assert_eq!(on_one(Policy::Sjf, &just_idle), [5.0, 28.0, 8.0]);
    assert_eq!(on_one(Policy::Fifo, &just_idle), [5.0, 25.0, 28.0]);
}

#[test]
fn least_attained_service_shares_and_catches_up() {
    // The second has caught up with the first's 4 at 8; then they share: 6 left of the first,
    // 2 of the second, which ends 4 later; the first has 4 left.
    close(&on_one(Policy::Las, &[(0, 10), (4, 6)]), &[16.0, 12.0]);
    // The third catches up with the second's 2 at 8; they share until it ends at 10.
    close(
        &on_one(Policy::Las, &[(0, 10), (4, 4), (6, 3)]),
        &[17.0, 11.0, 10.0],
    );
    close(&on_one(Policy::Las, &[(0, 10), (0, 10)]), &[20.0, 20.0]);
}

#[test]
fn more_servers_serve_more_jobs_but_none_faster() {
    let two = capacity(2.0, &[1.0]);
    let jobs = [(0, 10, 0), (0, 10, 0), (0, 10, 0)];
    close(&ends(Policy::Fair, &two, &jobs), &[15.0, 15.0, 15.0]);
    close(&ends(Policy::Las, &two, &jobs), &[15.0, 15.0, 15.0]);
    close(&ends(Policy::Srpt, &two, &jobs), &[10.0, 10.0, 20.0]);
    for policy in [Policy::Fair, Policy::Las, Policy::Srpt, Policy::Fifo] {
        close(&ends(policy, &two, &[(0, 10, 0)]), &[10.0]);
    }
    // The second newest goes on beside the newest.
    close(
        &ends(Policy::Las, &two, &[(0, 10, 0), (2, 10, 0), (4, 2, 0)]),
        &[12.0, 12.0, 6.0],
    );
}

#[test]
fn slow_clients_leave_the_rest_to_others() {
    let slow_and_fast = capacity(1.0, &[0.25, 1.0]);
    let jobs = [(0, 10, 0), (0, 30, 1)];
    for policy in [Policy::Fair, Policy::Las, Policy::Srpt, Policy::Psjf] {
        close(&ends(policy, &slow_and_fast, &jobs), &[40.0, 40.0]);
    }
    // Alone, the slow one still takes four times as long.
    for policy in [Policy::Fair, Policy::Las, Policy::Srpt, Policy::Fifo] {
        close(&ends(policy, &slow_and_fast, &[(0, 10, 0)]), &[40.0]);
    }
    // Two fast ones share what the slow one leaves: 0.375 each.
    close(
        &ends(
            Policy::Fair,
            &slow_and_fast,
            &[(0, 10, 0), (0, 15, 1), (0, 15, 1)],
        ),
        &[40.0, 40.0, 40.0],
    );
}

#[test]
fn who_leaves_early_frees_the_servers() {
    for policy in Policy::ALL {
        let mut servers = servers(policy, &Capacity::one());
        for slot in 0..2 {
            servers.submit(&Work {
                client: None,
                slot,
                class: 0,
                work_ns: 10.0,
                estimate_ns: 10,
            });
        }
        assert_eq!(servers.run_until(5.0), None);
        servers.cancel(0);
        assert_eq!(servers.run_until(100.0), Some(1), "{policy}");
        assert!(servers.now_ns() <= 15.0, "{policy}");
        assert_eq!(servers.run_until(100.0), None);
    }
}

fn jobs() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0..2_000u64, 1..300u64), 1..60).prop_map(|mut jobs| {
        jobs.sort_by_key(|&(at_ns, _)| at_ns);
        jobs
    })
}

fn classed_jobs() -> impl Strategy<Value = Vec<(u64, u64, usize)>> {
    prop::collection::vec((0..500u64, 1..100u64, 0..3usize), 1..30).prop_map(|mut jobs| {
        jobs.sort_by_key(|&(at_ns, ..)| at_ns);
        jobs
    })
}

/// Least attained service in slices, against which the exact one is held.
fn sliced_las(jobs: &[(u64, u64)]) -> Vec<f64> {
    const SLICE: f64 = 0.01;
    let mut attained = vec![0.0; jobs.len()];
    let mut ends = vec![None; jobs.len()];
    let mut now = 0.0;
    while ends.contains(&None) {
        let next = (0..jobs.len())
            .filter(|&job| jobs[job].0 as f64 <= now + 1e-9 && ends[job].is_none())
            .min_by(|&a, &b| f64::total_cmp(&attained[a], &attained[b]));
        now += SLICE;
        if let Some(job) = next {
            attained[job] += SLICE;
            if attained[job] >= jobs[job].1 as f64 - 1e-6 {
                ends[job] = Some(now);
            }
        }
    }
    ends.into_iter().map(Option::unwrap).collect()
}

/// By how much a job ends later under the policy than under processor sharing, at most.
fn latest_over_sharing(policy: Policy, jobs: &[(u64, u64)]) -> f64 {
    let shared = on_one(Policy::Fair, jobs);
    let ends = on_one(policy, jobs);
    let later = ends.iter().zip(shared).map(|(end, shared)| end - shared);
    later.fold(f64::NEG_INFINITY, f64::max)
}

/// The most by which the engine may end a job too early. A job that ends this soon after an arrival
/// ends before it, and shares nothing with the arriving job.
fn rounded(jobs: &[(u64, u64)]) -> f64 {
    ROUNDING_NS * jobs.len() as f64
}

/// One ends 0.001 ns after another has arrived, and the last ends 1/1260 ns too early by that.
#[test]
fn ends_just_after_an_arrival_make_no_job_late() {
    let jobs = [
        (34, 99),
        (51, 115),
        (82, 105),
        (243, 46),
        (322, 27),
        (322, 27),
        (360, 20),
        (375, 18),
        (427, 12),
        (438, 10),
        (512, 1),
        (521, 2),
        (541, 1),
    ];
    for policy in [Policy::Fsp, Policy::Shares] {
        assert!(
            latest_over_sharing(policy, &jobs) <= rounded(&jobs),
            "{policy}"
        );
    }
}

proptest! {
    #[test]
    fn sharing_agrees_with_virtual_time_in_fixed_point(jobs in jobs()) {
        let mut reference = ProcessorSharing::new();
        let mut expected = vec![0; jobs.len()];
        for (job, &(at_ns, work_ns)) in jobs.iter().enumerate() {
            while let Some(departure) = reference.depart_until(at_ns) {
                expected[departure.job] = departure.at_ns;
            }
            reference.submit(job, work_ns);
        }
        while let Some(departure) = reference.depart_until(u64::MAX) {
            expected[departure.job] = departure.at_ns;
        }
        for (found, expected) in on_one(Policy::Fair, &jobs).iter().zip(expected) {
            prop_assert!((found - expected as f64).abs() <= 0.501, "{} {}", found, expected);
        }
    }

    #[test]
    fn least_attained_service_agrees_with_small_slices(
        jobs in prop::collection::vec((0..60u64, 1..20u64), 1..10)
    ) {
        let mut jobs = jobs;
        jobs.sort_by_key(|&(at_ns, _)| at_ns);
        for (exact, sliced) in on_one(Policy::Las, &jobs).iter().zip(sliced_las(&jobs)) {
            prop_assert!((exact - sliced).abs() < 0.25, "{} {}", exact, sliced);
        }
    }

    /// Friedman and Henderson 2003: no job ends later than under processor sharing.
    #[test]
    fn fsp_ends_no_job_later_than_processor_sharing(jobs in jobs()) {
        let later = latest_over_sharing(Policy::Fsp, &jobs);
        prop_assert!(later <= rounded(&jobs), "{} ns", later);
    }

    /// The same where each job is a client of its own, found in another way: by the work that was done
    /// instead of a twin with a clock.
    #[test]
    fn shares_of_clients_with_one_job_end_none_later_than_processor_sharing(jobs in jobs()) {
        let later = latest_over_sharing(Policy::Shares, &jobs);
        prop_assert!(later <= rounded(&jobs), "{} ns", later);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Under every policy, with all servers and clients: every job ends, and none before it can.
    #[test]
    fn no_job_is_lost_or_too_fast(jobs in classed_jobs(), servers in 1..4u32) {
        let caps = [0.1, 0.5, 1.0];
        let capacity = capacity(f64::from(servers), &caps);
        for policy in Policy::ALL {
            let ends = ends(policy, &capacity, &jobs);
            for (&(at_ns, work_ns, class), end_ns) in jobs.iter().zip(ends) {
                let earliest_ns = at_ns as f64 + work_ns as f64 / caps[class];
                prop_assert!(end_ns > earliest_ns - 1e-6, "{}: {} {}", policy, end_ns, earliest_ns);
            }
        }
    }
}
