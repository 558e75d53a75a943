//! The approximation against the simulator, the steady state and what it cannot do.
#![allow(clippy::unwrap_used)]
use std::num::NonZeroU32;

use shortline_sched::Policy;

use super::*;
use crate::Simulation;
use crate::arrivals::{Gaps, Generated, LoadProfile};
use crate::results::PolicyResult;

/// Paper 000, Table I, W1 to W10; spans in seconds.
const TABLE: [&str; 10] = [
    "25,25,0.2,1.2",
    "10,10,0.2,1.2",
    "50,50,0.2,1.6",
    "25,25,0.4,1.4",
    "10,10,0.4,1.4",
    "40,40,0.1,1.7",
    "63,6,0.4,5",
    "63,10,0.45,3",
    "20,3,0.735,2",
    "13.3,2,0.735,2",
];
/// A link of 10 Mbit/s.
const BYTES_PER_S: f64 = 1.25e6;

/// Bounded Pareto with alpha 1.1 as in paper 000, 6.3: responses of 900 B to 2 MB.
fn web_sizes() -> Distribution {
    "bp:900,2e6,1.1".parse().unwrap()
}

fn phases(row: &str) -> Phases {
    row.parse().unwrap()
}

fn queue(row: &str) -> Alternating {
    Alternating::new(web_sizes(), phases(row).stretched(BYTES_PER_S)).unwrap()
}

/// What the simulator finds in 4000 seconds.
fn simulated(row: &str, policies: Vec<Policy>) -> Vec<PolicyResult> {
    let arrivals = Generated {
        gaps: Gaps::new(1.0).unwrap(),
        full_load_jobs_per_s: BYTES_PER_S / web_sizes().mean(),
        sizes: web_sizes(),
        profile: LoadProfile::alternating(phases(row)),
        preloaded: 0,
        end_s: 4000.0,
    };
    let simulation = Simulation::new(policies, (8.0 * BYTES_PER_S) as u64);
    let jobs = |replication| Ok(arrivals.jobs(simulation.seed, replication).map(Ok));
    simulation.run(NonZeroU32::MIN, jobs).unwrap()
}

/// How far it is off for all ten schedules is in `docs/lab/simulate.md`; these four are the shortest
/// periods, where it is worst.
#[test]
fn the_simulator_finds_about_the_same() {
    for row in [TABLE[1], TABLE[4], TABLE[8], TABLE[9]] {
        let forms = [Form::Srpt, Form::Fair];
        let found = simulated(row, forms.map(Form::policy).to_vec());
        for (form, found) in forms.into_iter().zip(found) {
            let expected = queue(row).solve(form).unwrap();
            let sojourn = expected.sojourn_mean / (found.sojourn_mean * BYTES_PER_S);
            assert!((0.95..1.2).contains(&sojourn), "{row} {form}: {sojourn}");
            let slowdown = expected.slowdown_mean / found.slowdown_mean;
            assert!((0.95..1.2).contains(&slowdown), "{row} {form}: {slowdown}");
        }
    }
}

#[test]
fn a_load_that_does_not_change_gives_the_steady_state() {
    for text in [
        "exp:0.004",
        "bp:0.00072,1.6,1.1",
        "uniform:0.001,0.003",
        "det:0.002",
    ] {
        let sizes: Distribution = text.parse().unwrap();
        let steady = crate::model::Queue::new(sizes.clone(), 0.7).unwrap();
        let alternating = Alternating::new(sizes, phases("25,10,0.7,0.7")).unwrap();
        for policy in [Form::Srpt, Form::Fair] {
            let (known, found) = (
                steady.solve(policy).unwrap(),
                alternating.solve(policy).unwrap(),
            );
            let ratio = found.sojourn_mean / known.sojourn_mean;
            assert!((0.98..1.02).contains(&ratio), "{text} {policy}: {ratio}");
            let ratio = found.slowdown_mean / known.slowdown_mean;
            assert!((0.98..1.02).contains(&ratio), "{text} {policy}: {ratio}");
        }
    }
}

/// Paper 000, 6.3 and 5.2.1: SRPT is far better on the mean and treats the largest jobs about
/// alike.
#[test]
fn the_largest_jobs_fare_about_alike() {
    for row in TABLE {
        let [srpt, fair] = [Form::Srpt, Form::Fair].map(|policy| queue(row).solve(policy).unwrap());
        assert!(srpt.sojourn_mean * 2.5 < fair.sojourn_mean, "{row}");
        let largest = srpt.slowdown_largest / fair.slowdown_largest;
        assert!((0.7..1.3).contains(&largest), "{row}: {largest}");
    }
}

#[test]
fn what_has_no_answer_is_told_in_one_line() {
    let told = queue(TABLE[0]).solve(Form::Las).unwrap_err().to_string();
    assert!(told.contains("`las` under alternating load"), "{told}");
    let endless = "bp:1,inf,0.9".parse().unwrap();
    let told = Alternating::new(endless, phases(TABLE[0]))
        .unwrap_err()
        .to_string();
    assert!(told.contains("mean is infinite"), "{told}");
}
