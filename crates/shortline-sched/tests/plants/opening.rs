//! Opening up, on models of a backend that are always overloaded: a limit that costs work is raised soon, and
//! one that the backend needs never is.

use std::num::NonZeroU64;

use shortline_sched::admission::{OpenUp, OpeningStage};

use crate::plant::{Plant, Throughput};
use crate::server::{self, Server, fixed};

/// Far above what any of these backends can use.
const CEILING: OpenUp = OpenUp::To(NonZeroU64::new(1_000_000_000_000).expect("above 0"));

/// Requests of one length, on so many servers.
fn plant(throughput: Throughput) -> Plant {
    Plant {
        throughput,
        speed: 1.0,
        service_s: vec![0.01, 0.04],
        shares: vec![0.8, 0.2],
        variation: 0.5,
    }
}

/// Work done per second from `from_s` until `to_s`.
fn work_rate(server: &mut Server, from_s: f64, to_s: f64) -> f64 {
    server.run(from_s);
    let before = server.work_done();
    server.run(to_s);
    (server.work_done() - before) / (to_s - from_s)
}

#[test]
fn a_fixed_capacity_that_halves_the_work_is_opened_up_within_minutes() {
    let flat = Throughput::Flat { servers: 8.0 };
    let knee = Throughput::Knee {
        servers: 8.0,
        knee: 12.0,
        fall: 0.05,
    };
    for (seed, curve) in [flat, knee, flat, knee].into_iter().enumerate() {
        let plant = plant(curve);
        let best = server::best_fixed(&plant);
        let mut capacity_s = best.capacity_s;
        let mut alone = best.work_rate;
        while alone > 0.5 * best.work_rate {
            capacity_s *= 0.8;
            let mut closed = Server::new(&plant, fixed(capacity_s), 1);
            alone = work_rate(&mut closed, 5.0, 25.0);
        }
        let mut opens = Server::that_opens_up(&plant, fixed(capacity_s), CEILING, seed as u64);
        let done = work_rate(&mut opens, 180.0, 240.0);
        let view = opens.opening();
        println!(
            "{curve:?}: {alone:.2} of {:.2}, then {done:.2}, {view:?}",
            best.work_rate
        );
        assert!(view.openings >= 1, "{view:?}");
        assert!(
            done >= 0.85 * best.work_rate,
            "{done} of {}",
            best.work_rate
        );
    }
}

/// A capacity that the backend needs, for so many seconds: it is never opened up, and the trials cost little.
fn check_that_it_stays_closed(seeds: std::ops::Range<u64>, seconds: f64) {
    for seed in seeds {
        let plant = &Plant::phases(seed)[0];
        let best = server::best_fixed(plant);
        let run = |open_up| {
            let mut server = Server::that_opens_up(plant, fixed(best.capacity_s), open_up, seed);
            let done = work_rate(&mut server, 0.0, seconds);
            (server, done)
        };
        let (opens, done) = run(CEILING);
        let view = opens.opening();
        let share = done / run(OpenUp::Off).1;
        println!("seed {seed}: {share:.3}, {view:?}, {:?}", plant.throughput);
        assert_eq!(view.openings, 0, "seed {seed}: {view:?}, {plant:?}");
        assert!(view.trials > 0 && view.trials < 12, "{view:?}");
        assert!(share >= 0.97, "seed {seed}: {share}");
    }
}

#[test]
fn a_capacity_that_the_backend_needs_is_never_opened_up_and_the_trials_cost_little() {
    check_that_it_stays_closed(1..5, 600.0);
}

/// Some minutes.
#[test]
#[ignore = "hours of virtual time: `make test-long`"]
fn a_capacity_that_the_backend_needs_is_never_opened_up_in_hours() {
    check_that_it_stays_closed(1..25, 3600.0);
}

#[test]
fn what_was_opened_up_closes_when_the_backend_needs_the_capacity_again() {
    let wide = plant(Throughput::Flat { servers: 8.0 });
    let narrow = plant(Throughput::Knee {
        servers: 1.0,
        knee: 1.0,
        fall: 0.5,
    });
    let mut server = Server::that_opens_up(&wide, fixed(0.05), CEILING, 1);
    server.run(300.0);
    assert_eq!(server.opening().stage, OpeningStage::Open);
    let raised = fixed(server.capacity_s());
    let [low, high] = [fixed(0.05), raised]
        .map(|capacity| work_rate(&mut Server::new(&narrow, capacity, 1), 10.0, 60.0));
    println!("{low:.2} at the capacity, {high:.2} at the raised one");
    assert!(high < 0.9 * low);
    server.set_plant(&narrow);
    server.run(1500.0);
    let view = server.opening();
    assert!(view.closings >= 1, "{view:?}");
    assert_eq!(view.stage, OpeningStage::Closed, "{view:?}");
}

#[test]
fn auto_is_not_disturbed_where_it_is_right() {
    for seed in 1..4 {
        let plant = &Plant::phases(seed)[0];
        let mut auto = Server::that_opens_up(
            plant,
            "auto".parse().expect("a mode"),
            OpenUp::OwnOnly,
            seed,
        );
        let mut alone =
            Server::that_opens_up(plant, "auto".parse().expect("a mode"), OpenUp::Off, seed);
        let share = work_rate(&mut auto, 60.0, 900.0) / work_rate(&mut alone, 60.0, 900.0);
        println!("seed {seed}: {share:.3}, {:?}", auto.opening());
        assert!(share >= 0.95, "seed {seed}: {share}");
    }
}
