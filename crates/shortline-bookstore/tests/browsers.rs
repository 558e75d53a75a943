//! Emulated browsers in a real shop: both loops, all mixes. Nothing fails, and purchases are in the
//! tables.
#![allow(clippy::unwrap_used)]

mod bench;

use std::time::Duration;

use bench::{Bench, SCALE, for_each_database};
use shortline_bookstore::browser::{
    self, Arrival, Arrivals, Crowd, Mix, Options, Phase, Summary, Times,
};
use shortline_bookstore::{Interaction, Locking};

#[test]
fn a_closed_loop_fails_nowhere_and_what_was_bought_is_there() {
    for_each_database(async |kind| {
        for (locking, mix) in [
            (Locking::Application, Mix::Ordering),
            (Locking::Database, Mix::Shopping),
        ] {
            let Some(bench) = Bench::open(kind, locking).await else {
                return;
            };
            let before = bench.number("SELECT COUNT(*) FROM orders").await;
            let results = browser::run(Options {
                arrivals: Arrivals::Closed { browsers: 12 },
                ..options(&bench, mix)
            })
            .await;
            let bought = bench.number("SELECT COUNT(*) FROM orders").await - before;
            let summary = Summary::of(&results.records, Duration::ZERO, Duration::from_secs(60));
            let all = summary.all.unwrap();
            let unfinished = summary.failures.get("unfinished").copied().unwrap_or(0);
            assert_eq!(all.failed, unfinished, "{:?}", summary.failures);
            assert!(all.count > 50, "{}", all.count);
            let confirmed = summary.types.get(&Interaction::BuyConfirm);
            let confirmed = confirmed.map_or(0, |of| (of.count - of.failed - of.unfinished) as i64);
            // A purchase that was cut off at the end may have gone through.
            assert!(
                (confirmed..=confirmed + 12).contains(&bought),
                "{confirmed}, {bought}"
            );
        }
    });
}

#[test]
fn an_open_loop_is_drained_and_repeats() {
    for_each_database(async |kind| {
        let Some(bench) = Bench::open(kind, Locking::Application).await else {
            return;
        };
        let run = async || {
            browser::run(Options {
                arrivals: open(Arrival::Session, [6.0, 2.0]),
                pictures: true,
                ..options(&bench, Mix::Browsing)
            })
            .await
        };
        let (one, other) = (run().await, run().await);
        assert!(one.records.iter().all(|record| record.failure.is_none()));
        assert_eq!(one.turned_away, 0);
        assert!(one.sessions > 0);
        assert_eq!(one.sessions, other.sessions);
        // Each session makes the same number of clicks, whatever became of them.
        assert_eq!(one.records.len(), other.records.len());
    });
}

#[test]
fn clicks_of_an_open_loop_come_by_themselves_and_visitors_stay() {
    for_each_database(async |kind| {
        let Some(bench) = Bench::open(kind, Locking::Application).await else {
            return;
        };
        let results = browser::run(Options {
            arrivals: open(Arrival::Click, [60.0, 20.0]),
            ..options(&bench, Mix::Shopping)
        })
        .await;
        let failed = results.records.iter().find(|one| one.failure.is_some());
        assert!(failed.is_none(), "{failed:?}");
        assert_eq!(results.turned_away, 0);
        // 40 per second in the mean for 3 s. How many visitors that takes depends on how fast the shop answers.
        let (clicks, visitors) = (results.records.len(), results.sessions as usize);
        assert!((70..190).contains(&clicks), "{clicks}");
        assert!(visitors < clicks, "{visitors} of {clicks}");
    });
}

#[test]
fn a_crowd_is_gone_before_the_first_arrival() {
    for_each_database(async |kind| {
        let Some(bench) = Bench::open(kind, Locking::Application).await else {
            return;
        };
        let lasts = Duration::from_secs(1);
        let crowded = |rates_per_s| {
            let mut arrivals = open(Arrival::Click, rates_per_s);
            if let Arrivals::Open { crowd, .. } = &mut arrivals {
                *crowd = Crowd { browsers: 5, lasts };
            }
            arrivals
        };
        let run = async |rates_per_s| {
            let results = browser::run(Options {
                arrivals: crowded(rates_per_s),
                ..options(&bench, Mix::Shopping)
            })
            .await;
            let failed = results.records.iter().find(|one| one.failure.is_some());
            assert!(failed.is_none(), "{failed:?}");
            let is_crowd = |at_s: &f64| *at_s < lasts.as_secs_f64();
            let begun = results.records.iter().map(|record| record.at_s);
            let (crowd, others): (Vec<f64>, Vec<f64>) = begun.partition(is_crowd);
            (crowd.len(), others.len())
        };
        let (crowd, others) = run([0.0, 0.0]).await;
        assert!(crowd > 5, "{crowd}");
        assert_eq!(others, 0);
        let (_, others) = run([60.0, 20.0]).await;
        assert!((40..130).contains(&others), "{others}");
    });
}

fn open(each: Arrival, rates_per_s: [f64; 2]) -> Arrivals {
    Arrivals::Open {
        crowd: Crowd::default(),
        each,
        phases: rates_per_s
            .map(|per_s| Phase {
                lasts: Duration::from_millis(500),
                per_s,
            })
            .into(),
        // More than there are arrivals: on a busy machine each may need a visitor of its own.
        sessions_max: 1000,
        drain_max: Duration::from_secs(60),
    }
}

fn options(bench: &Bench, mix: Mix) -> Options {
    Options {
        shop: bench.shop,
        arrivals: Arrivals::Closed { browsers: 1 },
        mix,
        mix_later: None,
        times: Times::APPLICATION_LOCKING.scaled(0.005),
        scale: SCALE,
        pictures: false,
        patience: Duration::from_secs(30),
        lasts: Duration::from_secs(3),
        seed: 1,
    }
}
