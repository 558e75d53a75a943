//! Bad input and bad luck: no collapse of the rate, no stall.

use crate::links::{Draw, auto, faulty, off};
use crate::{assert_target, share_of_off};
use shortline_sched::uplink::{LocalQueue, Observation};
use shortline_sim::uplink::{Plan, Trace};

/// What we get with a fault from 5 s on, as a share of what a plain server gets.
fn with_fault(seed: u64, fault: impl FnMut(&mut Observation)) -> f64 {
    let plan = Draw::new(seed).link(15.0);
    let got = |trace: &Trace| trace.mean(5.0, 15.0, |sample| sample.ours_bps);
    got(&faulty(&plan, fault)) / got(&off(&plan))
}

const S: u64 = 1_000_000_000;

#[test]
fn a_clock_that_jumps_costs_nothing() {
    assert_target("clock forwards", 10, 0.95, 0, |seed| {
        with_fault(seed, |told| told.now_ns += told.now_ns / (2 * S) * 3600 * S)
    });
    assert_target("clock backwards", 10, 0.95, 0, |seed| {
        with_fault(seed, |told| {
            told.now_ns = told.now_ns % (4 * S) + 1000 * S - told.now_ns / (4 * S) * 100 * S
        })
    });
}

#[test]
fn one_client_with_spikes_is_not_the_uplink() {
    assert_target("spikes", 10, 0.95, 0, |seed| {
        let mut plan = Draw::new(seed).link(15.0);
        let path = plan.paths[0];
        plan.paths.resize(plan.paths.len().max(4), path);
        plan.paths[0].spike_ms = 300.0;
        plan.paths[0].noise_ms = 20.0;
        share_of_off(&plan, 5.0, 15.0)
    });
}

#[test]
fn clients_that_acknowledge_falsely_or_never_stall_nobody() {
    assert_target("false acknowledgements", 10, 0.9, 50, |seed| {
        with_fault(seed, |told| {
            told.delivered_wire_bytes = told.delivered_wire_bytes * 3 + 10_000
        })
    });
    assert_target("a third never acknowledged", 10, 0.8, 0, |seed| {
        with_fault(seed, |told| {
            told.delivered_wire_bytes = told.delivered_wire_bytes * 2 / 3
        })
    });
    assert_target("nothing ever acknowledged", 10, 0.9, 50, |seed| {
        with_fault(seed, |told| told.delivered_wire_bytes = 0)
    });
}

#[test]
fn missing_fields_and_a_vanishing_interface_stall_nobody() {
    assert_target("no round-trip time", 10, 0.95, 0, |seed| {
        with_fault(seed, |told| told.rtt_ns = None)
    });
    assert_target("nothing known later", 10, 0.95, 0, |seed| {
        with_fault(seed, |told| {
            if told.now_ns > 6 * S {
                (told.rtt_ns, told.shared_delay_ns, told.paths) = (None, None, 0);
            }
        })
    });
    assert_target("interface vanishes", 10, 0.95, 0, |seed| {
        with_fault(seed, |told| {
            let local = LocalQueue {
                backlog_bytes: 0,
                rate_bps: Some(1_000_000_000),
            };
            told.local = (told.now_ns < 8 * S).then_some(local);
        })
    });
}

#[test]
fn loss_without_congestion_is_not_a_lower_rate() {
    for (loss, target) in [(0.01, 0.95), (0.05, 0.9)] {
        assert_target(&format!("loss {loss}"), 10, target, 0, |seed| {
            let plan = Plan {
                loss,
                ..Draw::new(seed).link(20.0)
            };
            share_of_off(&plan, 0.0, 20.0)
        });
    }
}

#[test]
fn a_longer_route_is_not_a_queue_for_long() {
    // Until the smallest round-trip times have been forgotten the link is not scheduled all of the
    // time, and the trials meanwhile cost something.
    assert_target("longer route", 10, 0.9, 0, |seed| {
        let plan = Plan {
            rtt_rise: Some((6.0, 30.0)),
            ..Draw::new(seed).link(20.0)
        };
        share_of_off(&plan, 6.0, 20.0)
    });
}

#[test]
fn every_run_of_the_same_link_is_the_same() {
    let plan = Draw::new(1).link(5.0);
    assert_eq!(auto(&plan), auto(&plan));
}
