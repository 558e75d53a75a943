//! Simulated means beside closed forms.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::arrivals::{Gaps, Generated, LoadProfile};
use crate::dist::Distribution;
use crate::model::{Form, Queue};

/// A byte takes a microsecond.
const RATE_BPS: u64 = 8_000_000;

fn replications(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

fn poisson(sizes: &str, load: f64, servers: u32) -> Generated {
    let sizes: Distribution = sizes.parse().unwrap();
    Generated {
        gaps: Gaps::new(1.0).unwrap(),
        full_load_jobs_per_s: Generated::jobs_per_s(&sizes, RATE_BPS, servers, 0).unwrap(),
        sizes,
        profile: LoadProfile::steady(load).unwrap(),
        preloaded: 0,
        end_s: f64::INFINITY,
    }
}

fn counted(policies: &[Policy], jobs: u64) -> Simulation {
    Simulation {
        warmup_jobs: jobs / 10,
        jobs: Some(jobs),
        ..Simulation::new(policies.to_vec(), RATE_BPS)
    }
}

fn results(simulation: &Simulation, arrivals: &Generated, count: u32) -> Vec<PolicyResult> {
    let jobs = |replication| Ok(arrivals.jobs(simulation.seed, replication).map(Ok));
    simulation.run(replications(count), jobs).unwrap()
}

fn of_jobs(simulation: &Simulation, jobs: &[(u64, f64)]) -> Result<Vec<PolicyResult>, SimError> {
    let arrivals = |_| Ok(jobs.iter().map(|&(at_ns, bytes)| Ok(Job { at_ns, bytes })));
    simulation.run(replications(1), arrivals)
}

/// Holds the simulator against every form's means: the exact one is in the interval of 99 %, and
/// within a share of itself. All are printed before any may fail.
fn agrees_with_closed_forms(sizes: &str, load: f64, jobs: u64, seed: u64, within: f64) {
    let simulation = Simulation {
        seed,
        ..counted(&Form::ALL.map(Form::policy), jobs)
    };
    let queue = Queue::new(sizes.parse().unwrap(), load).unwrap();
    let found = results(&simulation, &poisson(sizes, load, 1), 2);
    let mut disagree = Vec::new();
    for (result, form) in found.iter().zip(Form::ALL) {
        let exact = queue.solve(form).unwrap();
        let checks = [
            (
                "sojourn",
                result.sojourn_mean * 1e6,
                result.sojourn_mean_half_width.unwrap() * 1e6,
                exact.sojourn_mean,
            ),
            (
                "slowdown",
                result.slowdown_mean,
                result.slowdown_mean_half_width.unwrap(),
                exact.slowdown_mean,
            ),
        ];
        for (what, mean, half_width, exact) in checks {
            // No simulation has the tiny jobs that make a mean infinite.
            if exact.is_infinite() {
                continue;
            }
            let off = mean / exact - 1.0;
            let told = format!(
                "{sizes}, load {load}, {form}: {what} {mean:.4} +- {half_width:.4} for \
                 {exact:.4}, {:+.2} %",
                100.0 * off
            );
            println!("{told}");
            if (mean - exact).abs() > half_width || off.abs() >= within {
                disagree.push(told);
            }
        }
    }
    assert!(disagree.is_empty(), "{disagree:#?}");
}

#[test]
fn means_agree_with_closed_forms_at_half_load() {
    agrees_with_closed_forms("exp:1000", 0.5, 200_000, 1, 0.01);
    agrees_with_closed_forms("bp:300,30000,1.5", 0.5, 200_000, 1, 0.02);
}

/// The shares of jobs that take longer than t fall as `C e^(-g t)`, so the quantiles of two policies differ by the logarithm
/// of their constants' ratio over g (Yu and Scully 2024; [`crate::model::Tail`]).
#[test]
fn boost_has_the_tail_constant_of_theory() {
    // For exponential sizes the ratio is 0.722.
    for sizes in ["exp:1000", "bp:300,10000,1.5"] {
        let simulation = counted(&[Policy::Fifo, Policy::Boost, Policy::Srpt], 400_000);
        let found = results(&simulation, &poisson(sizes, 0.8, 1), 2);
        let [fifo, boost, srpt] = &found[..] else {
            unreachable!("three policies");
        };
        let queue = Queue::new(sizes.parse().unwrap(), 0.8).unwrap();
        let tail = queue.tail().unwrap();
        let earlier = (tail.fifo / tail.boost).ln();
        for (fifo_s, boost_s) in [
            (fifo.sojourn_p99, boost.sojourn_p99),
            (fifo.sojourn_p999, boost.sojourn_p999),
        ] {
            // A byte takes a microsecond.
            let found = 1e6 * (fifo_s - boost_s) * tail.decay_rate;
            println!("{sizes}: {found:.3} over the decay rate earlier, {earlier:.3} by theory");
            assert!((found - earlier).abs() < 0.16, "{found} for {earlier}");
        }
        assert!(boost.sojourn_mean < fifo.sojourn_mean && srpt.sojourn_mean < boost.sojourn_mean);
        assert!(srpt.sojourn_p999 > boost.sojourn_p999);
    }
}

/// With errors of estimates of a factor of e^1.5, knowing how large they are is worth something.
#[test]
fn gittins_has_a_smaller_mean_than_srpt_that_believes_its_estimates() {
    let simulation = Simulation {
        estimate_sigma: 1.5,
        ..counted(&[Policy::Srpt, Policy::Gittins, Policy::Fifo], 200_000)
    };
    let found = results(&simulation, &poisson("bp:300,300000,1.3", 0.8, 1), 1);
    let means: Vec<f64> = found.iter().map(|result| result.sojourn_mean).collect();
    println!("{means:?}");
    assert!(means[1] < means[0] && means[1] < means[2], "{means:?}");
}

#[test]
fn known_schedule_gives_known_results() {
    let jobs = [
        (0, 15_000.0),
        (0, 10_000.0),
        (10_000_000, 10_000.0),
        (20_000_000, 10_000.0),
    ];
    let simulation = Simulation {
        stretch: true,
        ..Simulation::new(vec![Policy::Srpt, Policy::Fsp], RATE_BPS)
    };
    let [srpt, fsp] = &of_jobs(&simulation, &jobs).unwrap()[..] else {
        unreachable!("two policies");
    };
    assert_eq!(srpt.sojourn_mean, 0.01875);
    assert_eq!(srpt.slowdown_mean, 1.5);
    // 25, 10, 25 and 25 ms.
    assert_eq!(fsp.sojourn_mean, 0.02125);
    // FSP lets nobody wait longer than processor sharing does.
    assert_eq!(fsp.stretch.unwrap().share_above_one, 0.0);
    assert!(srpt.stretch.unwrap().largest_job > 1.0);
}

#[test]
fn littles_law_holds() {
    let simulation = counted(&[Policy::Srpt, Policy::Fair, Policy::Las], 100_000);
    for result in results(&simulation, &poisson("exp:1000", 0.7, 1), 2) {
        // Jobs a second times mean seconds, up to what the warm-up and the end make of it.
        let expected = 700.0 * result.sojourn_mean;
        assert!(
            (result.number_mean / expected - 1.0).abs() < 0.03,
            "{}",
            result.policy
        );
    }
}

/// M/M/K: C(K, a) / (K mu - lambda) + 1 / mu, by Erlang's formula.
#[test]
fn several_servers_agree_with_erlang() {
    let (servers, load) = (4u32, 0.8);
    let offered = f64::from(servers) * load;
    let mut blocking = 1.0;
    for k in 1..=servers {
        blocking = offered * blocking / (f64::from(k) + offered * blocking);
    }
    let waiting = blocking / (1.0 - load * (1.0 - blocking));
    let exact = 1.0 + waiting / (f64::from(servers) * (1.0 - load));
    let simulation = Simulation {
        servers: NonZeroU32::new(servers).unwrap(),
        ..counted(&[Policy::Fifo, Policy::Las, Policy::Fair], 200_000)
    };
    for result in results(&simulation, &poisson("exp:1000", load, servers), 2) {
        // Exponential sizes: no order that does not look at them changes the mean.
        let (mean, half_width) = (
            result.sojourn_mean * 1e3,
            result.sojourn_mean_half_width.unwrap() * 1e3,
        );
        assert!(
            (mean - exact).abs() <= half_width.max(0.01),
            "{}: {mean} {exact}",
            result.policy
        );
    }
}

#[test]
fn the_number_of_cores_changes_nothing() {
    let simulation = counted(&[Policy::Srpt, Policy::Fair], 1000);
    let arrivals = poisson("bp:300,30000,1.5", 0.6, 1);
    let twice: Vec<_> = (0..2).map(|_| results(&simulation, &arrivals, 5)).collect();
    assert_eq!(twice[0], twice[1]);
    assert_eq!(twice[0][0].requests, 5000);
}

#[test]
fn users_who_give_up_ask_again() {
    // Of two of 10 ms the second does not begin before it is given up at 6 ms, and again at 12,
    // when the first has been over for 2 ms: at the third try it has begun at 12 and fails at 18.
    let simulation = Simulation {
        impatience: Some(Impatience {
            after: Duration::from_millis(6),
            retries: 2,
        }),
        ..Simulation::new(vec![Policy::Fifo], RATE_BPS)
    };
    let result = &of_jobs(&simulation, &[(0, 10_000.0)]).unwrap()[0];
    assert_eq!((result.failed, result.aborts), (1, 3));
    assert_eq!(result.sojourn_mean, 0.018);
    let result = &of_jobs(&simulation, &[(0, 5_000.0), (0, 5_000.0)]).unwrap()[0];
    // The second is given up at 6 ms with 1 ms of service, and done anew until 11.
    assert_eq!((result.failed, result.aborts), (0, 1));
    assert_eq!(result.sojourn_max, 0.011);
}

#[test]
fn delays_setup_and_slow_clients_count_in_time_alone() {
    let simulation = Simulation {
        start_delay: Duration::from_millis(30),
        setup: Duration::from_millis(2),
        clients: vec!["2mbit/30ms".parse().unwrap()],
        ..Simulation::new(vec![Policy::Srpt, Policy::Srrt, Policy::Fair], RATE_BPS)
    };
    for result in of_jobs(&simulation, &[(5, 10_000.0)]).unwrap() {
        // A quarter of the server's speed, for 12 ms of work.
        assert!((result.sojourn_mean - 0.078).abs() < 1e-12);
        assert_eq!(result.slowdown_mean, 1.0);
    }
}

#[test]
fn wrong_estimates_cost_srpt_something() {
    let arrivals = poisson("bp:300,30000,1.5", 0.8, 1);
    let exact = counted(&[Policy::Srpt], 50_000);
    let estimated = Simulation {
        estimate_sigma: 1.5,
        ..exact.clone()
    };
    let mean = |simulation| results(simulation, &arrivals, 1)[0].sojourn_mean;
    assert!(mean(&estimated) > 1.1 * mean(&exact));
}

#[test]
fn fair_recovers_more_slowly_from_an_overload_than_srpt() {
    let overloads: Phases = "2,2,0.3,1.4".parse().unwrap();
    let arrivals = Generated {
        profile: LoadProfile::alternating(overloads),
        end_s: 200.0,
        ..poisson("bp:300,30000,1.5", 0.5, 1)
    };
    let simulation = Simulation {
        overloads: Some(overloads),
        ..Simulation::new(vec![Policy::Srpt, Policy::Fair], RATE_BPS)
    };
    let found = results(&simulation, &arrivals, 1);
    let of = |index: usize| found[index].recovery.clone().unwrap();
    assert_eq!(of(0).overloads, 49);
    assert!(of(0).seconds_mean < of(1).seconds_mean);
    assert!(of(0).jobs_at_end_mean < of(1).jobs_at_end_mean);
}

#[test]
fn what_cannot_be_simulated_is_told_in_one_line() {
    let told = |simulation: &Simulation, jobs: &[(u64, f64)]| {
        let error = of_jobs(simulation, jobs).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    let simulation = Simulation::new(vec![Policy::Srpt], RATE_BPS);
    assert!(told(&simulation, &[]).starts_with("no arrivals"));
    assert!(told(&simulation, &[(5, 1.0), (4, 1.0)]).starts_with("arrival 2 at 4 ns"));
    assert!(told(&simulation, &[(0, -1.0)]).contains("size -1"));
    assert!(told(&simulation, &[(0, f64::NAN)]).contains("size NaN"));
    let full = Simulation {
        jobs_in_system_max: 2,
        ..simulation.clone()
    };
    assert!(told(&full, &[(0, 9.0); 3]).starts_with("arrival 3: more than 2 jobs"));
    let warm = Simulation {
        warmup_jobs: 3,
        ..simulation.clone()
    };
    assert!(told(&warm, &[(0, 9.0); 3]).starts_with("warm-up of 3 jobs"));
    let twins = Simulation {
        servers: NonZeroU32::new(2).unwrap(),
        ..Simulation::new(vec![Policy::Srpt, Policy::Fsp], RATE_BPS)
    };
    assert!(told(&twins, &[(0, 9.0)]).starts_with("policy `fsp` with 2 servers"));
    let blind = Simulation {
        estimate_sigma: f64::NAN,
        ..simulation
    };
    assert!(told(&blind, &[(0, 9.0)]).contains("sigma NaN"));
    let swift = Simulation::new(vec![Policy::Swift], RATE_BPS);
    assert!(told(&swift, &[(0, 9.0)]).contains("policy `swift`"));
}

/// What the simulator is held to, with as many jobs as leave a mean a standard error of 0.5 %
/// by the theory of heavy traffic, 2 load^2 (1 + C^2) / (1 - load)^2 / jobs; twice as many at
/// loads where that costs little.
///
///     cargo test --release -p shortline-sim -- --ignored --nocapture
#[test]
#[ignore = "takes minutes in a release build"]
fn means_agree_with_closed_forms_at_every_load() {
    for sizes in ["exp:1000", "bp:300,10000,1.5"] {
        // Jobs of each of two replications.
        for (load, jobs) in [
            (0.5, 2_000_000),
            (0.7, 4_000_000),
            (0.9, 12_000_000),
            (0.95, 35_000_000),
        ] {
            agrees_with_closed_forms(sizes, load, jobs, 1, 0.01);
        }
    }
}

#[test]
fn a_greedy_client_takes_turns_until_the_last_arrival_and_is_not_counted() {
    // Its two responses of 4 ms each come first in, first out, again and again, with one of 3 ms
    // that arrives at 9 ms: behind the second that was asked for at 4 ms and the one at 8, at 16.
    let greedy = |arrivals: &[(u64, f64)]| {
        let simulation = Simulation {
            greedy: Some("2*4KB".parse().unwrap()),
            ..Simulation::new(vec![Policy::Fifo], RATE_BPS)
        };
        of_jobs(&simulation, arrivals).unwrap().remove(0)
    };
    let result = greedy(&[(9_000_000, 3000.0), (30_000_000, 1000.0)]);
    assert_eq!(result.requests, 2);
    assert_eq!(result.sojourn_max, 0.010);
    // It asks for nothing after the last arrival.
    assert!((result.sojourn_mean - 0.0055).abs() < 1e-12, "{result:?}");
}

#[test]
fn one_who_asks_for_pieces_stops_others_under_srpt_and_not_under_shares() {
    let arrivals = poisson("bp:300,1e6,1.1", 0.6, 1);
    let mean = |greedy: &str| {
        let simulation = Simulation {
            users: vec!["20".parse().unwrap()],
            greedy: Some(greedy.parse().unwrap()),
            burst_bytes: 64 << 10,
            ..counted(&[Policy::Srpt, Policy::Shares], 5_000)
        };
        let found = results(&simulation, &arrivals, 1);
        [found[0].sojourn_mean, found[1].sojourn_mean]
    };
    let ([srpt, shares], [srpt_pieces, shares_pieces]) = (mean("1*1TB"), mean("8*1KB"));
    assert!(srpt_pieces > 100.0 * srpt, "{srpt_pieces} {srpt}");
    assert!(shares_pieces < 1.25 * shares, "{shares_pieces} {shares}");
}

#[test]
fn users_who_share_an_address_share_its_part() {
    let arrivals = poisson("bp:300,1e6,1.1", 0.9, 1);
    let means = |users: &[&str]| {
        let simulation = Simulation {
            users: users.iter().map(|group| group.parse().unwrap()).collect(),
            burst_bytes: 64 << 10,
            ..counted(&[Policy::Shares, Policy::Srpt], 20_000)
        };
        results(&simulation, &arrivals, 2)
    };
    let (apart, together) = (means(&["20", "100"]), means(&["20", "100/1"]));
    let requests = |result: &PolicyResult| -> Vec<u64> {
        result.by_users.iter().map(|users| users.requests).collect()
    };
    assert_eq!(requests(&apart[0]), requests(&together[0]));
    assert_eq!(requests(&apart[0]).iter().sum::<u64>(), 40_000);
    assert_eq!(apart[1].by_users, together[1].by_users);
    let [alone, behind] = [0, 1].map(|group| {
        let mean = |results: &[PolicyResult]| results[0].by_users[group].sojourn_mean;
        mean(&together) / mean(&apart)
    });
    assert!(alone < 0.9 && behind > 1.1, "{alone} {behind}");
}

/// Ten servers under SRPT, exponential sizes, load 0.8: the ten runs of the authors' own simulator
/// (github.com/isaacg1/dispatch-sim, data/revised-exp.txt), in mean service times of one server.
#[test]
fn guardrails_give_what_their_authors_found() {
    for (rule, plain, guarded) in [
        (Rule::LeastWork, 1.146, 1.147),
        (Rule::FewestJobs, 1.185, 1.179),
        (Rule::RoundRobin, 1.677, 1.416),
    ] {
        for (guardrails, published) in [(None, plain), (Some((1.0, 0.8)), guarded)] {
            let simulation = Simulation {
                servers: NonZeroU32::new(10).unwrap(),
                dispatch: Some(Dispatch { rule, guardrails }),
                ..counted(&[Policy::Srpt], 200_000)
            };
            let found = results(&simulation, &poisson("exp:1000", 0.8, 10), 2);
            let mean = found[0].sojourn_mean * 1e3;
            println!("{rule}, {guardrails:?}: {mean:.4} for {published}");
            assert!((mean / published - 1.0).abs() < 0.015, "{rule}: {mean}");
        }
    }
}
