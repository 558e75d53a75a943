//! What the policies and aging guarantee, on a single server in virtual time.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Incoming, Step, config, incoming_jobs, serve};
use proptest::prelude::*;
use shortline_sched::{Aging, Policy, ProcessorSharing, SchedulerConfig};

#[test]
fn srpt_ends_a_known_schedule_as_worked_out_by_hand() {
    let jobs = [(0, 15), (0, 10), (10, 10), (20, 10)];
    let mut ended_ns = serve(config(Policy::Srpt), &jobs, |_| {});
    ended_ns.sort();
    assert_eq!(ended_ns, [10, 20, 30, 45]);
}

#[test]
fn policies_order_one_example_each_in_its_way() {
    // A large job, then a small one, then one of the size that remains of the first.
    let jobs = [(0, 10), (1, 2), (2, 8)];
    let ended_ns = |policy| serve(config(policy), &jobs, |_| {});
    assert_eq!(ended_ns(Policy::Fifo), [10, 12, 20]);
    assert_eq!(ended_ns(Policy::Sjf), [10, 12, 20]);
    assert_eq!(ended_ns(Policy::Psjf), [20, 3, 11]);
    assert_eq!(ended_ns(Policy::Srpt), [20, 3, 11]);
    assert_eq!(ended_ns(Policy::Las), [20, 5, 18]);
}

#[test]
fn fair_gives_each_a_quantum_in_turn() {
    let mut order = Vec::new();
    serve(config(Policy::Fair), &[(0, 2), (0, 2), (1, 1)], |step| {
        order.push(step.scheduler.job(step.served).unwrap().arrival_ns);
    });
    // The third arrives before the first, which has just been served, waits again.
    assert_eq!(order, [0, 0, 0, 1, 0]);
}

proptest! {
    /// Schrage 1968: nothing has a smaller mean sojourn than SRPT.
    #[test]
    fn srpt_has_the_smallest_mean_sojourn(jobs in incoming_jobs()) {
        let total_ns = |policy| total_sojourn_ns(&jobs, &serve(config(policy), &jobs, |_| {}));
        let optimum_ns = total_ns(Policy::Srpt);
        for policy in Policy::ALL {
            prop_assert!(optimum_ns <= total_ns(policy), "{policy}");
        }
        // Each time of exact processor sharing is rounded by half a nanosecond at most.
        let shared_ns = total_sojourn_ns(&jobs, &shared(&jobs));
        prop_assert!(optimum_ns <= shared_ns + jobs.len() as u64);
    }

    /// Every job ends, gets just its work, and the server idles only when nobody is
    /// there, with and without aging.
    #[test]
    fn no_job_is_lost_and_work_is_conserved(jobs in incoming_jobs(), aged: bool) {
        for policy in Policy::ALL {
            let aging = aged.then(|| Aging::new(1.5).unwrap());
            let mut busy_ns = Vec::new();
            let ended_ns = serve(SchedulerConfig { aging, ..config(policy) }, &jobs, |step| {
                busy_ns.push(step.now_ns);
            });
            prop_assert_eq!(&busy_ns, &busy_times_ns(&jobs), "{}", policy);
            for (&(arrival_ns, size), ended_ns) in jobs.iter().zip(ended_ns) {
                prop_assert!(ended_ns >= arrival_ns + size, "{policy}");
            }
        }
    }

    #[test]
    fn fifo_ends_in_the_order_of_arrival(jobs in incoming_jobs()) {
        let ended_ns = serve(config(Policy::Fifo), &jobs, |_| {});
        prop_assert!(ended_ns.is_sorted());
    }

    #[test]
    fn sjf_never_preempts(jobs in incoming_jobs()) {
        let mut unfinished = None;
        serve(config(Policy::Sjf), &jobs, |step| {
            let job = step.scheduler.job(step.served).unwrap();
            if let Some(unfinished) = unfinished {
                assert_eq!(unfinished, step.served);
            }
            unfinished = (job.remaining() > 1).then_some(step.served);
        });
    }

    /// Whenever somebody is overdue, the overdue job of the earliest deadline is served.
    #[test]
    fn overdue_jobs_go_by_earliest_deadline(jobs in incoming_jobs(), factor in 0.5..20.0f64) {
        for policy in Policy::ALL {
            serve(aged(policy, factor), &jobs, |step| {
                let earliest_ns = deadlines_ns(step).min().unwrap();
                if earliest_ns <= step.now_ns {
                    let served = step.scheduler.job(step.served).unwrap();
                    assert_eq!(served.deadline_ns, Some(earliest_ns), "{policy}");
                }
            });
        }
    }

    /// From its deadline on, a job waits only for jobs of earlier deadlines. So one that
    /// is overdue alone (what the bound asks is feasible then) waits X times its service
    /// and not longer.
    #[test]
    fn aging_bounds_the_wait(jobs in incoming_jobs(), factor in 0.5..20.0f64) {
        for policy in Policy::ALL {
            let ended_ns = serve(aged(policy, factor), &jobs, |_| {});
            let deadline_ns = |&(arrival_ns, size): &Incoming| {
                arrival_ns + (factor * size as f64).round() as u64
            };
            for (job, &ended) in jobs.iter().zip(&ended_ns) {
                let due_ns = deadline_ns(job);
                let ahead_ns: u64 = jobs
                    .iter()
                    .zip(&ended_ns)
                    .filter(|&(other, &other_ended)| {
                        deadline_ns(other) <= due_ns && other_ended > due_ns
                    })
                    .map(|(&(_, size), _)| size)
                    .sum();
                prop_assert!(ended <= due_ns + ahead_ns, "{policy}: {job:?} ended {ended}");
            }
        }
    }

    #[test]
    fn aging_so_long_that_nobody_is_overdue_changes_nothing(jobs in incoming_jobs()) {
        for policy in Policy::ALL {
            let plain_ns = serve(config(policy), &jobs, |_| {});
            prop_assert_eq!(serve(aged(policy, 1e6), &jobs, |_| {}), plain_ns);
        }
    }
}

fn aged(policy: Policy, factor: f64) -> SchedulerConfig {
    SchedulerConfig {
        aging: Some(Aging::new(factor).unwrap()),
        ..config(policy)
    }
}

fn deadlines_ns(step: &Step<'_>) -> impl Iterator<Item = u64> {
    step.scheduler.jobs().filter_map(|(_, job)| job.deadline_ns)
}

fn total_sojourn_ns(jobs: &[Incoming], ended_ns: &[u64]) -> u64 {
    jobs.iter()
        .zip(ended_ns)
        .map(|((arrival_ns, _), ended_ns)| ended_ns - arrival_ns)
        .sum()
}

/// When each job ends under exact processor sharing.
fn shared(jobs: &[Incoming]) -> Vec<u64> {
    let mut server = ProcessorSharing::new();
    let mut ended_ns = vec![0; jobs.len()];
    for (job, &(arrival_ns, size)) in jobs.iter().enumerate() {
        while let Some(departure) = server.depart_until(arrival_ns) {
            ended_ns[departure.job] = departure.at_ns;
        }
        server.submit(job, size);
    }
    while let Some(departure) = server.depart_until(u64::MAX) {
        ended_ns[departure.job] = departure.at_ns;
    }
    ended_ns
}

/// The units of time in which a server that never idles with work at hand is busy.
fn busy_times_ns(jobs: &[Incoming]) -> Vec<u64> {
    let mut busy_ns = Vec::new();
    let mut free_ns = 0;
    for &(arrival_ns, size) in jobs {
        let start_ns = arrival_ns.max(free_ns);
        free_ns = start_ns + size;
        busy_ns.extend(start_ns..free_ns);
    }
    busy_ns
}
