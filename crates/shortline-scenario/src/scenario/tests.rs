//! Scenarios of every source: what they count, what they doubt, what they refuse.

#![allow(clippy::unwrap_used)]
use std::io::Write;

use shortline_sched::Policy;
use shortline_sim::arrivals::Gaps;
use shortline_sim::wire::WireModel;

use super::*;
use crate::source::{sizes_of_trace, trace_options};

/// A byte takes a microsecond.
fn simulation() -> Simulation {
    Simulation::new(vec![Policy::Srpt], 8_000_000)
}

fn outcome(source: Source, warmup_jobs: Option<u64>) -> Outcome<()> {
    let scenario = Scenario::new(source, simulation(), warmup_jobs).unwrap();
    scenario.run(None, 1, |_| ()).unwrap()
}

fn steady(load: f64, jobs: u64) -> Source {
    Source::Random(Random {
        sizes: "exp:1000".parse().unwrap(),
        traffic: Traffic::Steady { load, jobs },
        gaps: Gaps::new(1.0).unwrap(),
        preloaded: 0,
    })
}

fn requests(workload: &str, seconds: u32) -> Source {
    Source::Requests(Requests {
        workload: workload.parse().unwrap(),
        seconds,
        wire: WireModel::default(),
    })
}

fn refused(source: Source, simulation: Simulation) -> String {
    Scenario::new(source, simulation, None)
        .unwrap_err()
        .to_string()
}

#[test]
fn given_jobs_all_count_but_for_a_warm_up() {
    let job = |at_ns| Job {
        at_ns,
        bytes: 1000.0,
    };
    let jobs = || Source::Jobs(vec![job(0), job(0), job(5_000_000)]);
    assert_eq!(outcome(jobs(), None).results[0].requests, 3);
    assert_eq!(outcome(jobs(), Some(1)).results[0].requests, 2);
    assert_eq!(jobs().bytes_on_the_link(1000), 1000);
}

#[test]
fn a_trace_counts_the_wire_and_tells_what_it_left_out() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"0,/a,1448\n1,/b,nothing\n2,/c,1448\n")
        .unwrap();
    let wire = WireModel::default();
    let trace = Source::Trace(TraceFile {
        path: file.path().to_owned(),
        options: trace_options(None),
        wire,
    });
    assert_eq!(trace.bytes_on_the_link(1448), 1994);
    let ran = outcome(trace, None);
    assert_eq!(ran.results[0].requests, 2);
    // 1994 bytes of a microsecond each.
    assert!((ran.results[0].sojourn_mean - 1994e-6).abs() < 1e-12);
    let [line] = &ran.left_out[..] else {
        panic!("{:?}", ran.left_out);
    };
    assert!(line.contains("1 line could not be read"), "{line}");
    let (sizes, left_out) = sizes_of_trace(file.path(), &wire).unwrap();
    assert_eq!((sizes.mean(), left_out), (1994.0, ran.left_out));
}

#[test]
fn random_jobs_have_their_usual_length_and_are_doubted_when_it_is_short() {
    let short = outcome(steady(0.99, 1000), None);
    // Four replications.
    assert_eq!(short.results[0].requests, 4000);
    assert!(matches!(short.doubts[..], [Doubt::Load { .. }]));
    assert!(outcome(steady(0.5, 20_000), None).doubts.is_empty());
}

#[test]
fn a_load_over_time_watches_its_overloads() {
    let ran = outcome(requests("w2", 40), None);
    assert!(ran.results[0].recovery.is_some());
    let phases = |workload: &str| crate::phases(&workload.parse().unwrap());
    assert_eq!(phases("w2").unwrap().high_load(), 1.2);
    for workload in ["nasa:w2", "1.4"] {
        let refused = phases(workload).unwrap_err().to_string();
        assert!(refused.contains("want no site and two phases"), "{refused}");
    }
}

#[test]
fn what_cannot_be_simulated_is_refused_before_it_runs() {
    assert!(refused(steady(1.0, 10), simulation()).contains("below 1"));
    let fast = Simulation::new(vec![Policy::Srpt], 10_000_000_000_000);
    let long = refused(requests("w1", 86_400), fast);
    assert!(long.contains("more than 1e10 requests"), "{long}");
    let heavy = Source::Random(Random {
        sizes: "bp:1000,inf,1.5".parse().unwrap(),
        traffic: Traffic::Steady {
            load: 0.5,
            jobs: 10,
        },
        gaps: Gaps::new(1.0).unwrap(),
        preloaded: 0,
    });
    let fifo = Simulation::new(vec![Policy::Fifo], 8_000_000);
    assert!(refused(heavy, fifo).contains("E[S^2] is infinite"));
}
