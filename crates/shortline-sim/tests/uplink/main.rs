//! The uplink's controller on random links in virtual time.
//!
//! Each test draws links, measures one figure on each, and asserts how many of a thousand links may
//! miss the target. Both numbers stand beside it; those far from zero are what is left to do
//! (docs/uplink.md). `SHORTLINE_LINKS=n` draws n links for each instead; the ignored test draws a
//! hundred.

mod faults;
mod links;

use std::cell::Cell;

use links::{Draw, auto, downloads, is_paced, off, short_queue_ms};
use shortline_sched::uplink::State;
use shortline_sim::uplink::{Demand, Path, Plan, Trace};

thread_local! {
    /// The fewest links, in the tests that this thread runs.
    static LINKS_MIN: Cell<u64> = const { Cell::new(0) };
}

#[test]
#[ignore = "a hundred links for each figure: `make test-long`"]
fn a_hundred_links_each() {
    LINKS_MIN.set(100);
    the_first_confident_estimate_comes_within_three_seconds_and_is_right();
    a_paced_link_carries_what_an_unpaced_one_does();
    the_queue_is_short_once_the_rate_is_known();
    a_link_that_halves_has_a_short_queue_again_within_two_seconds();
    a_link_that_quadruples_is_used_within_five_seconds();
    far_clients_leave_the_link_full_in_overload();
    others_get_their_fair_share();
    beside_others_we_get_what_a_plain_server_gets();
    when_the_others_have_gone_the_queue_is_ours_again_within_five_seconds();
    without_a_bottleneck_nothing_is_held_back();
}

/// Measures a figure on each of `count` links, prints the distribution, and asserts that at most
/// `misses` of a thousand are worse than `target`.
fn assert_target(name: &str, count: u64, target: f64, misses: usize, figure: impl Fn(u64) -> f64) {
    let count = std::env::var("SHORTLINE_LINKS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(count.max(LINKS_MIN.get()));
    let mut figures: Vec<(f64, u64)> = (0..count).map(|seed| (figure(seed), seed)).collect();
    figures.sort_by(|a, b| a.0.total_cmp(&b.0));
    let missed = figures
        .iter()
        .filter(|(figure, _)| *figure < target)
        .count();
    let at = |share: f64| figures[((figures.len() - 1) as f64 * share) as usize].0;
    println!(
        "{name}: target {target}, missed {missed} of {count}; least {:.3}, 1 % {:.3}, 5 % {:.3}, median {:.3}; worst seeds {:?}",
        at(0.0),
        at(0.01),
        at(0.05),
        at(0.5),
        figures
            .iter()
            .take(4)
            .map(|(figure, seed)| (*seed, (figure * 1000.0).round() / 1000.0))
            .collect::<Vec<_>>()
    );
    assert!(
        missed * 1000 <= misses * figures.len(),
        "{name}: {missed} of {} links",
        figures.len()
    );
}

/// What we got, as a share of what a plain server gets.
fn share_of_off(plan: &Plan, from_s: f64, to_s: f64) -> f64 {
    let got = |trace: &Trace| trace.mean(from_s, to_s, |sample| sample.ours_bps);
    got(&auto(plan)) / got(&off(plan))
}

#[test]
fn the_first_confident_estimate_comes_within_three_seconds_and_is_right() {
    // 1 where it comes in time and is right to 5 %.
    assert_target("first estimate", 40, 1.0, 50, |seed| {
        let plan = Draw::new(seed).link(3.0);
        let trace = auto(&plan);
        let first = trace
            .samples()
            .iter()
            .find(|sample| sample.state == State::Confident);
        let error = first
            .and_then(|sample| sample.estimate_bps)
            .map(|bps| (bps / plan.rates[0].1 - 1.0).abs());
        match error {
            None => -1.0,
            Some(error) => {
                if error <= 0.05 {
                    1.0
                } else {
                    1.0 - error
                }
            }
        }
    });
}

#[test]
fn a_paced_link_carries_what_an_unpaced_one_does() {
    assert_target("bytes", 20, 0.97, 0, |seed| {
        share_of_off(&Draw::new(seed).link(20.0), 0.0, 20.0)
    });
}

#[test]
fn the_queue_is_short_once_the_rate_is_known() {
    // The share of the last ten seconds with a short queue.
    assert_target("queue", 20, 0.9, 20, |seed| {
        let plan = Draw::new(seed).link(15.0);
        let short_ms = short_queue_ms(plan.rates[0].1);
        auto(&plan).mean(5.0, 15.0, |sample| {
            f64::from(u8::from(sample.queue_ms <= short_ms))
        })
    });
}

fn steps(seed: u64) -> Plan {
    let mut plan = Draw::new(seed).link(24.0);
    let bps = plan.rates[0].1;
    plan.rates = vec![(0.0, bps), (8.0, bps / 2.0), (16.0, bps * 2.0)];
    plan
}

#[test]
fn a_link_that_halves_has_a_short_queue_again_within_two_seconds() {
    // Seconds that are left of the two when a tenth of a second has passed with a short queue.
    assert_target("step down", 20, 0.0, 20, |seed| {
        let plan = steps(seed);
        let trace = auto(&plan);
        let short_ms = short_queue_ms(plan.rates[1].1);
        let back = (0..40)
            .map(|k| 8.2 + 0.1 * f64::from(k))
            .find(|from_s| trace.mean(*from_s, from_s + 0.1, |sample| sample.queue_ms) <= short_ms);
        back.map_or(-9.0, |from_s| 10.0 - from_s - 0.1)
    });
}

#[test]
fn a_link_that_quadruples_is_used_within_five_seconds() {
    // Seconds that are left of the five when half a second was used to 95 %.
    assert_target("step up", 20, 0.0, 20, |seed| {
        let trace = auto(&steps(seed));
        let used = |from_s: f64| {
            trace.mean(from_s, from_s + 0.5, |sample| {
                sample.ours_bps / sample.link_bps
            })
        };
        let back = (0..70)
            .map(|k| 16.0 + 0.1 * f64::from(k))
            .find(|from_s| used(*from_s) >= 0.95);
        back.map_or(-9.0, |from_s| 21.0 - from_s - 0.5)
    });
}

/// A hundred megabits over a round trip of a millisecond, where a queue of three milliseconds is
/// longer than the responses themselves take.
#[test]
fn a_fast_link_keeps_a_queue_of_a_millisecond() {
    let mut plan = Plan::new(100e6, 9.0, 1);
    plan.rates = vec![(0.0, 100e6), (3.0, 50e6), (6.0, 200e6)];
    plan.demand = Demand::Responses {
        high: 1.6,
        low: 1.6,
        period_s: 10.0,
    };
    plan.paths = vec![Path {
        rtt_ms: 1.0,
        noise_ms: 0.05,
        ..Path::default()
    }];
    let trace = auto(&plan);
    for (from_s, to_s) in [(1.5, 3.0), (4.5, 6.0), (7.5, 9.0)] {
        let queue_ms = trace.mean(from_s, to_s, |sample| sample.queue_ms);
        let used = trace.mean(from_s, to_s, |sample| sample.ours_bps / sample.link_bps);
        assert!(
            queue_ms <= 1.5 && used >= 0.98,
            "{from_s} s: {queue_ms} ms, {used}"
        );
    }
}

/// Clients 20 to 200 ms away: the queue and the deliveries show late, and at different times.
#[test]
fn far_clients_leave_the_link_full_in_overload() {
    assert_target("far clients", 20, 0.93, 20, |seed| {
        let mut plan = Plan::new(10e6, 20.0, seed);
        plan.demand = Demand::Responses {
            high: 1.4,
            low: 0.6,
            period_s: 5.0,
        };
        plan.paths = (1..=10)
            .map(|tenth| Path {
                rtt_ms: 20.0 * f64::from(tenth),
                ..Path::default()
            })
            .collect();
        let trace = auto(&plan);
        let used = |from_s, to_s| trace.mean(from_s, to_s, |sample| sample.ours_bps / 10e6);
        (used(2.0, 5.0) + used(12.0, 15.0)) / 2.0
    });
}

fn crossed(seed: u64, count: usize) -> Plan {
    let mut draw = Draw::new(seed);
    let mut plan = draw.link(20.0);
    plan.cross = downloads(&mut draw, count);
    plan
}

#[test]
fn others_get_their_fair_share() {
    for count in [1, 10] {
        // What they get beside us, as a share of what they get beside a plain server.
        assert_target(&format!("fair share of {count}"), 10, 0.8, 20, |seed| {
            let plan = crossed(seed, count);
            let got = |trace: &Trace| trace.mean(6.0, 14.0, |sample| sample.cross_bps);
            got(&auto(&plan)) / got(&off(&plan))
        });
    }
}

#[test]
fn beside_others_we_get_what_a_plain_server_gets() {
    for count in [1, 10] {
        assert_target(&format!("bytes beside {count}"), 10, 0.8, 20, |seed| {
            share_of_off(&crossed(seed, count), 0.0, 20.0)
        });
    }
}

#[test]
fn when_the_others_have_gone_the_queue_is_ours_again_within_five_seconds() {
    for count in [1, 10] {
        // Seconds that are left of the five when it is paced with a short queue.
        assert_target(&format!("return after {count}"), 10, 0.0, 20, |seed| {
            let plan = crossed(seed, count);
            let short_ms = short_queue_ms(plan.rates[0].1);
            let back = auto(&plan).first(14.0, |sample| {
                is_paced(sample.state) && sample.queue_ms <= short_ms
            });
            back.map_or(-9.0, |at_s| 19.0 - at_s)
        });
    }
}

#[test]
fn without_a_bottleneck_nothing_is_held_back() {
    assert_target("no bottleneck", 10, 0.95, 0, |seed| {
        let mut draw = Draw::new(seed);
        let mut plan = draw.link(8.0);
        plan.rates = vec![(0.0, 40e9)];
        plan.demand = shortline_sim::uplink::Demand::Backlogged { flows: 8 };
        share_of_off(&plan, 0.0, 8.0)
    });
}
