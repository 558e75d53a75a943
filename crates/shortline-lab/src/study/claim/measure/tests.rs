//! Measures of made-up runs: what did not come to pass, what nobody lacked, whose requests count.

#![allow(clippy::unwrap_used)]
use shortline_load::record::{Failure, RequestRecord};
use shortline_load::summary::Summary;

use super::*;
use crate::study::by_size::BySize;
use crate::study::figures::InstrumentFigures;
use crate::study::groups::GroupFigures;

/// A run of 400 requests, ten a second, each size once, the larger half twice as slow.
fn run(server: &str, pace: f64, failed: usize) -> RunFigures {
    let record = |i: u32| {
        let time_s = pace * if i < 200 { 1.0 } else { 2.0 };
        RequestRecord::finished(f64::from(i) / 10.0, "/a", u64::from(i) + 1, time_s)
    };
    let mut records: Vec<RequestRecord> = (0..400).map(record).collect();
    for record in records.iter_mut().take(failed) {
        record.failure = Some(Failure::Reset);
    }
    RunFigures {
        server: server.into(),
        congestion_control: "cubic".into(),
        summary: Summary::of(&records, None, false).unwrap(),
        over_optimum: None,
        largest_over_optimum: None,
        biggest_mean_s: 0.0,
        mean_in_time_s: None,
        connections_max: 0,
        seen: None,
        stretch: None,
        per_request_bytes: None,
        wire_bytes: 0,
        overload_wire_bytes: 0,
        overload_over_off: None,
        drops: 0,
        network: None,
        course: None,
        by_size: BySize::of(&records, None),
        groups: Vec::new(),
        failed: Vec::new(),
    }
}

fn value(measure: Measure, of: &RunFigures, over: &RunFigures, requests: &Requests) -> Option<f64> {
    measure.value(&Sides {
        of,
        over: Some(over),
        requests,
        number: None,
        want: Want::AtLeast(1.0),
    })
}

#[test]
fn what_did_not_come_to_pass_is_judged_if_the_run_was_long_enough() {
    let seen = |first_syn_drop_s| InstrumentFigures {
        connections_max: 40.0,
        syn_queue_max: 0.0,
        accept_queue_max: 0.0,
        syn_drops: 0.0,
        first_syn_drop_s,
        lasted_s: 130.0,
        server_cpu_s: 0.0,
        generator_cpu_s: 0.0,
    };
    let mut of = run("nginx", 1.0, 0);
    let first = |of: &RunFigures, want| {
        Measure::FirstSynDrop.value(&Sides {
            of,
            over: None,
            requests: &Requests::All,
            number: None,
            want,
        })
    };
    assert_eq!(first(&of, Want::Near(70.0, 0.3)), None);
    of.seen = Some(seen(None));
    // By 91 s it should have dropped one, and it had 130 s. Of half an hour it says nothing.
    assert_eq!(first(&of, Want::Near(70.0, 0.3)), Some(130.0));
    assert_eq!(first(&of, Want::AtLeast(1600.0)), None);
    of.seen = Some(seen(Some(50.0)));
    assert_eq!(first(&of, Want::AtLeast(1600.0)), Some(50.0));
}

#[test]
fn none_incomplete_of_both_is_the_same_number() {
    let incomplete = |failed, others| {
        let (of, over) = (run("srpt", 1.0, failed), run("nginx", 1.0, others));
        value(Measure::IncompleteRatio, &of, &over, &Requests::All)
    };
    assert_eq!(incomplete(0, 0), Some(1.0));
    assert_eq!(incomplete(3, 0), Some(3.0));
    assert_eq!(incomplete(3, 12), Some(0.25));
    let (of, over) = (run("srpt", 1.0, 4), run("nginx", 1.0, 0));
    let percent = value(Measure::IncompletePercent, &of, &over, &Requests::All);
    assert_eq!(percent, Some(1.0));
}

#[test]
fn requests_are_those_of_a_size_or_of_a_group() {
    let (mut of, over) = (run("srpt", 0.1, 0), run("nginx", 0.4, 0));
    let gain = |requests: &Requests| value(Measure::MeanGain, &of, &over, requests).unwrap();
    assert!((gain(&Requests::All) - 4.0).abs() < 1e-9);
    assert!((gain(&Requests::Percentiles(0.0, 50.0)) - 4.0).abs() < 1e-9);
    assert!((gain(&Requests::Bytes(1.0, 100.0)) - 4.0).abs() < 1e-9);
    let buckets = |measure| value(measure, &of, &over, &Requests::All);
    assert_eq!(buckets(Measure::BucketsGaining), Some(100.0));
    assert!((buckets(Measure::BucketGainLeast).unwrap() - 4.0).abs() < 1e-9);
    // A run without groups is that of one group alone.
    of.groups = vec![GroupFigures {
        name: "far".into(),
        requests: 400,
        finished: 400,
        mean_finished_s: Some(0.3),
    }];
    let far = Requests::Group("far".into());
    let gain = value(Measure::FinishedGain, &of, &over, &far).unwrap();
    assert!((gain - 2.0).abs() < 1e-9);
    let near = Requests::Group("near".into());
    assert_eq!(value(Measure::FinishedGain, &of, &over, &near), None);
}
