//! What the policies and aging guarantee, on a single server in virtual time.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Incoming, Step, config, incoming_jobs, serve, serve_by_events};
use proptest::prelude::*;
use shortline_sched::{Aging, Growing, Policy, ProcessorSharing, SchedulerConfig, Urgency};

/// The known schedule: arrivals and sizes.
const KNOWN: [Incoming; 4] = [(0, 15), (0, 10), (10, 10), (20, 10)];

#[test]
fn srpt_ends_a_known_schedule_as_worked_out_by_hand() {
    let ended_ns = serve(config(Policy::Srpt), &KNOWN, |_| {});
    assert_eq!(ended_ns, [45, 10, 20, 30]);
    assert_eq!(serve_by_events(Policy::Srpt, &KNOWN), ended_ns);
}

#[test]
fn fsp_ends_a_known_schedule_as_worked_out_by_hand() {
    // The first and the third would end together under processor sharing.
    let ended_ns = serve(config(Policy::Fsp), &KNOWN, |_| {});
    assert_eq!(ended_ns, [25, 10, 35, 45]);
    assert_eq!(serve_by_events(Policy::Fsp, &KNOWN), ended_ns);
}

#[test]
fn bands_serve_the_smallest_band_and_share_it() {
    let ended_ns =
        |text: &str, jobs: &[Incoming]| serve(config(text.parse().unwrap()), jobs, |_| {});
    let jobs = [(0, 9), (0, 3), (0, 3)];
    // The small ones take turns; the large one joins a band of remaining sizes, not of totals.
    assert_eq!(ended_ns("bands:4B", &jobs), [15, 5, 6]);
    assert_eq!(ended_ns("quickfix:4B", &jobs), [15, 5, 6]);
    let late = [(0, 9), (6, 3)];
    // At 6 there remain 3 of the first, for which `bands` holds it small and `quickfix` not.
    assert_eq!(ended_ns("bands:4B", &late), [11, 12]);
    assert_eq!(ended_ns("quickfix:4B", &late), [12, 9]);
}

#[test]
fn growing_lets_a_large_job_end_under_a_stream_of_small_ones() {
    // A job of 10, and one of 2 every 2 from then on for ever.
    let mut jobs = vec![(0, 10)];
    jobs.extend((0..100).map(|number| (2 * number, 2)));
    let ended_ns = |urgency| {
        let config = SchedulerConfig {
            urgency,
            ..config(Policy::Srpt)
        };
        serve(config, &jobs, |_| {})[0]
    };
    assert_eq!(ended_ns(Urgency::None), 210);
    // After 3 * (10 - 2) it is as urgent as a new one of 2, and submitted earlier.
    let growing = Urgency::Growing(Growing::new(3.0).unwrap());
    let end_ns = ended_ns(growing);
    assert!((34..=60).contains(&end_ns), "{end_ns}");
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
    /// Schrage 1968: no policy has a smaller mean sojourn than SRPT.
    #[test]
    fn srpt_has_the_smallest_mean_sojourn(jobs in incoming_jobs(), urgency in urgency()) {
        let total_ns = |policy, urgency| {
            let config = SchedulerConfig { urgency, ..config(policy) };
            total_sojourn_ns(&jobs, &serve(config, &jobs, |_| {}))
        };
        let optimum_ns = total_ns(Policy::Srpt, Urgency::None);
        for policy in policies() {
            prop_assert!(optimum_ns <= total_ns(policy, Urgency::None), "{policy}");
            prop_assert!(optimum_ns <= total_ns(policy, urgency), "{policy} {urgency:?}");
        }
        // Each time of exact processor sharing is rounded by half a nanosecond at most.
        let shared_ns = total_sojourn_ns(&jobs, &shared(&jobs));
        prop_assert!(optimum_ns <= shared_ns + jobs.len() as u64);
    }

    /// The same with sizes of any scale, against the policies that events drive exactly.
    #[test]
    fn srpt_has_the_smallest_mean_sojourn_at_any_scale(jobs in large_jobs()) {
        let total_ns = |policy| total_sojourn_ns(&jobs, &serve_by_events(policy, &jobs));
        let optimum_ns = total_ns(Policy::Srpt);
        for policy in [Policy::Fifo, Policy::Sjf, Policy::Psjf, Policy::Fsp] {
            prop_assert!(optimum_ns <= total_ns(policy), "{policy}");
        }
        let shared_ns = total_sojourn_ns(&jobs, &shared(&jobs));
        prop_assert!(optimum_ns <= shared_ns + jobs.len() as u64);
    }

    /// Friedman and Henderson 2003.
    #[test]
    fn fsp_ends_no_job_later_than_processor_sharing(
        small in incoming_jobs(), large in large_jobs()
    ) {
        let ended_ns = serve(config(Policy::Fsp), &small, |_| {});
        for ((job, ended_ns), shared_ns) in small.iter().zip(ended_ns).zip(shared(&small)) {
            prop_assert!(ended_ns <= shared_ns, "{job:?} {ended_ns} {shared_ns}");
        }
        let ended_ns = serve_by_events(Policy::Fsp, &large);
        for ((job, ended_ns), shared_ns) in large.iter().zip(ended_ns).zip(shared(&large)) {
            prop_assert!(ended_ns <= shared_ns + 1, "{job:?} {ended_ns} {shared_ns}");
        }
    }

    /// Every job ends and gets exactly its work, and the server idles only when no job is there,
    /// whatever waiting adds.
    #[test]
    fn no_job_is_lost_and_work_is_conserved(jobs in incoming_jobs(), urgency in urgency()) {
        for policy in policies() {
            let mut busy_ns = Vec::new();
            let ended_ns = serve(SchedulerConfig { urgency, ..config(policy) }, &jobs, |step| {
                busy_ns.push(step.now_ns);
            });
            prop_assert_eq!(&busy_ns, &busy_times_ns(&jobs), "{}", policy);
            for (&(arrival_ns, size), ended_ns) in jobs.iter().zip(ended_ns) {
                prop_assert!(ended_ns >= arrival_ns + size, "{policy}");
            }
        }
    }

    /// With exact sizes the Gittins rank is what remains, so that the schedules are the same.
    #[test]
    fn gittins_of_known_sizes_is_srpt(small in incoming_jobs(), large in large_jobs()) {
        let schedule = |policy| {
            let mut served = Vec::new();
            serve(config(policy), &small, |step| served.push(step.served));
            served
        };
        prop_assert_eq!(schedule(Policy::Gittins), schedule(Policy::Srpt));
        let ended_ns = |policy| serve_by_events(policy, &large);
        prop_assert_eq!(ended_ns(Policy::Gittins), ended_ns(Policy::Srpt));
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

    /// While some job is overdue, the overdue job with the earliest deadline gets one unit of
    /// eight.
    #[test]
    fn overdue_jobs_have_an_eighth_by_earliest_deadline(
        jobs in incoming_jobs(), factor in 0.5..20.0f64
    ) {
        for policy in policies() {
            let mut passed_over = 0;
            serve(aged(policy, factor), &jobs, |step| {
                let earliest_ns = deadlines_ns(step).min().unwrap();
                let served = step.scheduler.job(step.served).unwrap();
                let is_earliest = served.deadline_ns == Some(earliest_ns);
                passed_over = match earliest_ns <= step.now_ns && !is_earliest {
                    true => passed_over + 1,
                    false => 0,
                };
                assert!(passed_over <= 7, "{policy}");
            });
        }
    }

    /// The rest follows the policy: overdue jobs get no more than an eighth of what is done.
    #[test]
    fn overdue_jobs_have_no_more_than_an_eighth(jobs in incoming_jobs()) {
        let mut out_of_order = 0_i64;
        serve(aged(Policy::Srpt, 0.5), &jobs, |step| {
            let served = step.scheduler.job(step.served).unwrap().remaining();
            let least = step.scheduler.jobs().map(|(_, job)| job.remaining()).min();
            out_of_order += if Some(served) == least { -1 } else { 7 };
            out_of_order = out_of_order.max(0);
            assert!(out_of_order <= 7, "{out_of_order}");
        });
    }

    /// From a job's deadline on, one of eight units of work goes to jobs of earlier deadlines, and
    /// then to it.
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
                prop_assert!(ended <= due_ns + 8 * ahead_ns, "{policy}: {job:?} ended {ended}");
            }
        }
    }

    /// Growing so slowly that only ranks count leaves the order, so fast that only arrivals
    /// count makes it that of arrival, save for started jobs of `sjf` and elapsed time.
    #[test]
    fn growing_leads_from_the_policy_to_the_order_of_arrival(jobs in incoming_jobs()) {
        let ended_ns = |policy, factor| {
            let urgency = Urgency::Growing(Growing::new(factor).unwrap());
            serve(SchedulerConfig { urgency, ..config(policy) }, &jobs, |_| {})
        };
        let arrivals_ns = serve(config(Policy::Fifo), &jobs, |_| {});
        for policy in [Policy::Psjf, Policy::Srpt] {
            // Jobs of one rank go by arrival where growing ties, too.
            prop_assert_eq!(ended_ns(policy, 1e6), serve(config(policy), &jobs, |_| {}));
            prop_assert_eq!(ended_ns(policy, 1e-6), arrivals_ns.clone());
        }
        for policy in [Policy::Fair, Policy::Fifo, Policy::Fsp] {
            prop_assert_eq!(ended_ns(policy, 2.0), serve(config(policy), &jobs, |_| {}));
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
        urgency: Urgency::Aging(Aging::new(factor).unwrap()),
        ..config(policy)
    }
}

/// All policies; those with parameters have some that divide the tests' sizes.
fn policies() -> impl Iterator<Item = Policy> {
    let parted = ["bands:3B,8B,15B", "bands:4", "quickfix:9B"];
    let parted = parted.map(|text| text.parse().unwrap());
    Policy::ALL.into_iter().chain(parted)
}

fn urgency() -> impl Strategy<Value = Urgency> {
    prop_oneof![
        Just(Urgency::None),
        (0.2..20.0).prop_map(|factor| Urgency::Aging(Aging::new(factor).unwrap())),
        (0.2..20.0).prop_map(|factor| Urgency::Growing(Growing::new(factor).unwrap())),
    ]
}

/// Jobs whose sizes and arrivals processor sharing does not divide into whole nanoseconds.
fn large_jobs() -> impl Strategy<Value = Vec<Incoming>> {
    prop::collection::vec((0..20_000_000u64, 1..2_000_000u64), 1..60).prop_map(|mut jobs| {
        jobs.sort_by_key(|&(arrival_ns, _)| arrival_ns);
        jobs
    })
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
