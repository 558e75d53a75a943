//! The emulator in virtual time.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use proptest::prelude::*;
use shortline_sched::units::{Rate, Span};

use super::*;
use crate::wan::loss::Loss;

const MS: u64 = 1_000_000;

fn way(delay_ms: u64, jitter_ms: u64) -> Way {
    Way {
        jitter: Span::from_duration(Duration::from_millis(jitter_ms)),
        ..Way::of(
            Span::from_duration(Duration::from_millis(delay_ms)),
            Loss::None,
        )
    }
}

/// Everything that leaves, however late.
fn drain<P>(emulator: &mut Emulator<P>) -> Vec<Due<P>> {
    std::iter::from_fn(|| emulator.take_due(u64::MAX)).collect()
}

/// Offers packets of 1500 bytes at these times to one lane.
fn offer_all(emulator: &mut Emulator<usize>, times_ns: impl Iterator<Item = u64>) -> Vec<Fate> {
    let times = times_ns.enumerate();
    times
        .map(|(number, at_ns)| emulator.offer(at_ns, 0, 1, 1500, number))
        .collect()
}

#[test]
fn each_packet_takes_the_delay_of_its_own_lane() {
    let mut emulator = Emulator::new(&[way(50, 0), way(350, 0)], 10, 1);
    emulator.offer(MS, 1, 1, 40, "far");
    emulator.offer(2 * MS, 0, 1, 40, "near");
    assert_eq!(emulator.next_due_ns(), Some(52 * MS));
    assert_eq!(emulator.take_due(52 * MS - 1), None);
    let near = emulator.take_due(52 * MS).unwrap();
    assert_eq!((near.lane, near.at_ns, near.packet), (0, 52 * MS, "near"));
    assert_eq!(emulator.take_due(u64::MAX).unwrap().at_ns, 351 * MS);
    assert_eq!(emulator.next_due_ns(), None);
}

#[test]
fn a_direct_lane_passes_at_once_and_in_order() {
    let mut emulator = Emulator::new(&[Way::direct()], 10, 1);
    offer_all(&mut emulator, [5, 5, 5].into_iter());
    let left = drain(&mut emulator);
    assert!(left.iter().all(|due| due.at_ns == 5));
    assert_eq!(
        left.iter().map(|due| due.packet).collect::<Vec<_>>(),
        [0, 1, 2]
    );
}

#[test]
fn jitter_is_even_around_the_delay() {
    let lane = Way {
        reorder: true,
        ..way(100, 20)
    };
    let mut emulator = Emulator::new(&[lane], 20_000, 3);
    offer_all(&mut emulator, std::iter::repeat_n(0, 10_000));
    let delays: Vec<u64> = drain(&mut emulator).iter().map(|due| due.at_ns).collect();
    assert!(
        delays
            .iter()
            .all(|delay| (80 * MS..=120 * MS).contains(delay))
    );
    let mean_ms = delays.iter().sum::<u64>() as f64 / delays.len() as f64 / MS as f64;
    // The mean of so many has a standard deviation of 20 / sqrt(3 * 10,000) = 0.12 ms.
    assert!((mean_ms - 100.0).abs() < 0.5, "{mean_ms}");
    let near_the_ends = delays
        .iter()
        .filter(|delay| **delay < 84 * MS || **delay > 116 * MS);
    let share = near_the_ends.count() as f64 / delays.len() as f64;
    assert!((share - 0.2).abs() < 0.02, "{share}");
}

#[test]
fn jitter_changes_the_order_only_where_it_may() {
    for reorder in [false, true] {
        let lane = Way {
            reorder,
            ..way(50, 40)
        };
        let mut emulator = Emulator::new(&[lane], 1000, 3);
        offer_all(&mut emulator, (0..1000).map(|number| number * MS / 10));
        let order: Vec<usize> = drain(&mut emulator).iter().map(|due| due.packet).collect();
        assert_eq!(order.is_sorted(), !reorder);
    }
}

#[test]
fn a_flow_does_not_wait_for_another() {
    let mut emulator = Emulator::new(&[way(50, 40)], 1000, 3);
    for flow in 0..1000 {
        emulator.offer(0, 0, flow, 1500, flow);
    }
    let left = drain(&mut emulator);
    assert!(!left.iter().map(|due| due.packet).is_sorted());
}

#[test]
fn the_rate_is_kept_and_the_queue_before_it_too() {
    let lane = Way {
        rate: Some(Rate::from_bps(1_000_000)),
        queue_packets: 10,
        ..way(20, 0)
    };
    let mut emulator = Emulator::new(&[lane], 1000, 1);
    // 1514 bytes take 12.112 ms. One packet comes every millisecond, for a second.
    let fates = offer_all(&mut emulator, (0..1000).map(|number| number * MS));
    let left = drain(&mut emulator);
    let gaps = left.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns);
    assert!(
        gaps.clone().all(|gap| gap == 12_112_000),
        "{:?}",
        gaps.max()
    );
    assert_eq!(left[0].at_ns, 20 * MS + 12_112_000);
    // What the link can send in this second, and the queue at its end.
    assert_eq!(left.len(), 1000 * MS as usize / 12_112_000 + 10);
    let dropped = fates.iter().filter(|fate| **fate == Fate::Dropped).count();
    assert_eq!(dropped + left.len(), 1000);
    assert_eq!(emulator.counts()[0].dropped, dropped as u64);
}

#[test]
fn beyond_the_limit_of_packets_under_way_is_dropped() {
    let mut emulator = Emulator::new(&[way(50, 0)], 3, 1);
    let fates = offer_all(&mut emulator, std::iter::repeat_n(0, 4));
    assert_eq!(fates[2..], [Fate::UnderWay, Fate::Dropped]);
    emulator.take_due(u64::MAX).unwrap();
    assert_eq!(emulator.offer(0, 0, 1, 1500, 4), Fate::UnderWay);
}

#[test]
fn loss_is_its_lanes_own_and_repeats_with_the_seed() {
    let lossy = Way::of(way(10, 0).delay, Loss::Uniform { probability: 0.05 });
    let fates = |seed| {
        let mut emulator = Emulator::new(&[lossy.clone(), lossy.clone()], 100_000, seed);
        let offer = |number: usize| emulator.offer(0, number % 2, 1, 1500, number);
        (0..40_000).map(offer).collect::<Vec<Fate>>()
    };
    let first = fates(1);
    assert_eq!(first, fates(1));
    assert_ne!(first, fates(2));
    for lane in 0..2 {
        let lost = first
            .iter()
            .skip(lane)
            .step_by(2)
            .filter(|fate| **fate == Fate::Lost);
        // 20,000 draws: 1000 lost, standard deviation 31.
        assert!(lost.count().abs_diff(1000) < 4 * 31);
    }
}

#[test]
fn flows_that_have_left_are_forgotten() {
    let mut flows = Flows::default();
    for flow in 0..100_000 {
        // Each is due 10 later, so at most 10 are under way.
        flows.after_the_last(flow, flow, flow + 10);
    }
    assert!(flows.last_due_ns.len() <= FLOWS_MIN);
}

proptest! {
    #[test]
    fn nothing_is_lost_without_loss_and_flows_keep_their_order(
        jitter_ms in 0..50_u64,
        rate_mbit in proptest::option::of(1..100_u64),
        gaps in proptest::collection::vec((0..5 * MS, 0..4_u64, 20..1500_usize), 1..300),
    ) {
        let lane = Way {
            rate: rate_mbit.map(|mbit| Rate::from_bps(mbit * 1_000_000)),
            queue_packets: 1000,
            ..way(50, jitter_ms)
        };
        let mut emulator = Emulator::new(&[lane], 1000, 9);
        let mut now_ns = 0;
        for (number, (gap_ns, flow, bytes)) in gaps.iter().enumerate() {
            now_ns += gap_ns;
            let fate = emulator.offer(now_ns, 0, *flow, *bytes, (number, *flow, now_ns));
            prop_assert_eq!(fate, Fate::UnderWay);
        }
        let left = drain(&mut emulator);
        prop_assert_eq!(left.len(), gaps.len());
        prop_assert!(left.is_sorted_by_key(|due| due.at_ns));
        for flow in 0..4 {
            let of_flow = left.iter().filter(|due| due.packet.1 == flow);
            prop_assert!(of_flow.map(|due| due.packet.0).is_sorted());
        }
        for due in &left {
            let earliest_ns = due.packet.2 + (50 - jitter_ms) * MS;
            prop_assert!(due.at_ns >= earliest_ns);
        }
    }
}
