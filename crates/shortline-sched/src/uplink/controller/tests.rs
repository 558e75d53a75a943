//! What the controller does with single observations and with any sequence of them.

use super::*;
use crate::uplink::LocalQueue;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn quiet(now_ns: u64) -> Observation {
    Observation {
        now_ns,
        sent_wire_bytes: 12_500,
        delivered_wire_bytes: 12_500,
        shared_delay_ns: Some(0),
        rtt_ns: Some(20 * MS),
        paths: 4,
        lost_wire_bytes: 0,
        limited_by: Limit::Network,
        local: None,
    }
}

/// `count` observations, 10 ms apart, of 10 Mbit/s through a queue of 60 ms.
fn queued(controller: &mut Controller, from_ns: u64, count: u64) -> Decision {
    for k in 0..count {
        let observation = Observation {
            shared_delay_ns: Some(60 * MS),
            ..quiet(from_ns + k * 10 * MS)
        };
        controller.observe(&observation);
    }
    controller.decision()
}

#[test]
fn nothing_is_held_back_until_a_queue_has_been_measured() {
    let mut controller = Controller::new(UplinkConfig::default());
    for k in 0..400 {
        let decision = controller.observe(&quiet(k * 10 * MS));
        assert_eq!(
            decision.pacing_rate_bps,
            Some(UplinkConfig::default().rate_bps_max)
        );
    }
    assert_eq!(controller.decision().state, State::Open);
}

#[test]
fn a_queue_gives_an_estimate_of_what_goes_through_it() {
    let mut controller = Controller::new(UplinkConfig::default());
    let decision = queued(&mut controller, 0, 25);
    let estimate = decision.estimate_bps.expect("a queue stood for 250 ms") as f64;
    assert!((estimate / 10e6 - 1.0).abs() < 0.05, "{decision:?}");
    assert!(
        decision.pacing_rate_bps.expect("it is paced") < 9_000_000,
        "{decision:?}"
    );
}

#[test]
fn a_queue_that_stands_whatever_we_send_is_left_to_the_others() {
    let mut controller = Controller::new(UplinkConfig::default());
    for k in 0..300 {
        let paced = controller
            .decision()
            .pacing_rate_bps
            .unwrap_or(u64::MAX)
            .min(10_000_000);
        let bytes = paced / 800;
        controller.observe(&Observation {
            sent_wire_bytes: bytes,
            delivered_wire_bytes: bytes,
            shared_delay_ns: Some(60 * MS),
            limited_by: Limit::Pacing,
            ..quiet(k * 10 * MS)
        });
    }
    let decision = controller.decision();
    assert_eq!(decision.state, State::Yielding);
}

/// Round trips that vary by themselves, as those of radio do, look like a queue that comes and goes whatever is sent.
#[test]
fn round_trips_that_vary_by_themselves_do_not_throttle_us() {
    let demand_bps = 10_000_000;
    for delay_ms_max in [20, 60, 100] {
        let mut controller = Controller::new(UplinkConfig::default());
        let (mut random, mut sent_bytes) = (1_u64, 0);
        let observations = 60 * 100;
        for k in 0..observations {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let paced_bps = controller.decision().pacing_rate_bps.unwrap_or(u64::MAX);
            let bytes = paced_bps.min(demand_bps) / 800;
            sent_bytes += bytes;
            controller.observe(&Observation {
                sent_wire_bytes: bytes,
                delivered_wire_bytes: bytes,
                shared_delay_ns: Some((random >> 33) % (delay_ms_max * MS)),
                rtt_ns: Some(200 * MS),
                limited_by: Limit::Pacing,
                ..quiet(k * 10 * MS)
            });
        }
        let share = sent_bytes as f64 / (observations * demand_bps / 800) as f64;
        assert!(
            share > 0.8,
            "up to {delay_ms_max} ms: {share:.2} of what was asked for"
        );
    }
}

/// A busy machine does not let the link look for 60 ms now and then.
#[test]
fn pauses_keep_nobody_from_yielding_nor_from_trying_again() {
    let config = UplinkConfig {
        gap_ns_max: 50 * MS,
        ..UplinkConfig::default()
    };
    let mut controller = Controller::new(config.clone());
    let (mut now_ns, mut yielded_ns) = (0, None);
    for k in 0..1000 {
        now_ns += if k % 50 == 49 { 60 * MS } else { 10 * MS };
        let decision = controller.decision();
        let bytes = decision.pacing_rate_bps.unwrap_or(0).min(10_000_000) / 800;
        controller.observe(&Observation {
            sent_wire_bytes: bytes,
            delivered_wire_bytes: bytes,
            shared_delay_ns: Some(60 * MS),
            limited_by: Limit::Pacing,
            ..quiet(now_ns)
        });
        let decision = controller.decision();
        if decision.state != State::Yielding {
            continue;
        }
        let since_ns = *yielded_ns.get_or_insert(now_ns);
        if decision.pacing_rate_bps < Some(config.rate_bps_max) {
            assert!(now_ns - since_ns <= 4000 * MS, "a trial");
            return;
        }
    }
    panic!("neither yields nor tries: {:?}", controller.decision());
}

#[test]
fn a_stated_local_rate_is_taken_as_it_is() {
    let mut controller = Controller::new(UplinkConfig::default());
    let local = Some(LocalQueue {
        backlog_bytes: 20_000,
        rate_bps: Some(10_000_000),
    });
    for k in 0..10 {
        controller.observe(&Observation {
            local,
            shared_delay_ns: Some(16 * MS),
            ..quiet(k * 10 * MS)
        });
    }
    let decision = controller.decision();
    assert_eq!(
        (decision.state, decision.pacing_rate_bps),
        (State::Local, Some(10_000_000))
    );
    let decision = controller.observe(&quiet(100 * MS));
    assert_eq!(
        decision.state,
        State::Starting,
        "the interface has vanished"
    );
}

/// Acknowledgements that are a little late make the kernel send again (RACK's probes) where nothing is lost.
#[test]
fn what_is_lost_while_our_own_interface_has_the_queue_holds_nothing_back() {
    let mut controller = Controller::new(UplinkConfig::default());
    for k in 0..3000 {
        let decision = controller.observe(&Observation {
            local: Some(LocalQueue {
                backlog_bytes: if k % 50 == 0 { 20_000 } else { 1_514 },
                rate_bps: Some(10_000_000),
            }),
            lost_wire_bytes: 500,
            limited_by: Limit::Pacing,
            ..quiet(k * 10 * MS)
        });
        // The first observation only begins an interval.
        if k > 0 {
            assert_eq!(decision.pacing_rate_bps, Some(10_000_000), "{k}");
        }
    }
}

#[test]
fn without_any_delay_the_link_uses_slots_and_comes_back_when_there_is_one() {
    let mut controller = Controller::new(UplinkConfig::default());
    for k in 0..300 {
        controller.observe(&Observation {
            shared_delay_ns: None,
            rtt_ns: None,
            ..quiet(k * 10 * MS)
        });
    }
    assert_eq!(controller.decision().state, State::Blind);
    assert_eq!(controller.decision().pacing_rate_bps, None);
    assert_ne!(controller.observe(&quiet(3010 * MS)).state, State::Blind);
}

#[test]
fn an_estimate_outlives_a_clock_that_jumps() {
    let mut controller = Controller::new(UplinkConfig::default());
    let before = queued(&mut controller, 0, 25).estimate_bps;
    for now_ns in [3_600_000 * MS, 6 * MS, 6 * MS, u64::MAX, 0] {
        let after = controller.observe(&quiet(now_ns));
        assert_eq!(after.estimate_bps, before);
    }
}

prop_compose! {
    fn any_observation()(
        step in prop_oneof![0u64..30, Just(2000), Just(u64::MAX / 2)],
        back in proptest::bool::weighted(0.02),
        sent in prop_oneof![0u64..100_000, Just(u64::MAX)],
        delivered in prop_oneof![0u64..100_000, Just(u64::MAX)],
        delay in proptest::option::of(prop_oneof![0u64..200 * MS, Just(u64::MAX)]),
        rtt in proptest::option::of(prop_oneof![0u64..400 * MS, Just(u64::MAX)]),
        paths in 0u32..10,
        lost in prop_oneof![0u64..10_000, Just(u64::MAX)],
        limit in 0usize..3,
        local in proptest::option::of((0u64..100_000, proptest::option::of(prop_oneof![Just(0u64), 1u64..2_000_000_000]))),
    ) -> (u64, bool, Observation) {
        let limited_by = [Limit::Pacing, Limit::Application, Limit::Network][limit];
        let local = local.map(|(backlog_bytes, rate_bps)| LocalQueue { backlog_bytes, rate_bps });
        (step, back, Observation {
            now_ns: 0, sent_wire_bytes: sent, delivered_wire_bytes: delivered, shared_delay_ns: delay,
            rtt_ns: rtt, paths, lost_wire_bytes: lost, limited_by, local,
        })
    }
}

proptest! {
    /// Whatever is observed, the rate stays inside the limits and the confidence a share.
    #[test]
    fn any_sequence_stays_inside_the_limits(sequence in proptest::collection::vec(any_observation(), 1..400)) {
        let config = UplinkConfig::default();
        let mut controller = Controller::new(config.clone());
        let mut now_ns = 0u64;
        for (step, back, observation) in sequence {
            now_ns = if back { now_ns / 2 } else { now_ns.wrapping_add(step.saturating_mul(MS)) };
            let decision = controller.observe(&Observation { now_ns, ..observation });
            if let Some(rate) = decision.pacing_rate_bps {
                prop_assert!((config.rate_bps_min..=config.rate_bps_max).contains(&rate), "{decision:?}");
            }
            prop_assert!((0.0..=1.0).contains(&decision.confidence), "{decision:?}");
        }
    }
}
