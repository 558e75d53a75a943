//! `calibrate` with the same models of a backend: it ends with the best fixed capacity, or one as
//! good.

use shortline_sched::admission::{CalibrationStage, CalibrationView, Capacity, CapacityState};

use crate::plant::Plant;
use crate::server::{self, Server};

/// No search lasts longer, in seconds: fifty trials of four times their length.
const SEARCH_S_MAX: f64 = 1500.0;
const SECONDS: f64 = 60.0;

fn view(server: &Server) -> CalibrationView {
    match server.capacity_state() {
        CapacityState::Calibrate(view) => view,
        other => panic!("{other:?}"),
    }
}

#[test]
fn calibrate_ends_with_what_the_best_fixed_capacity_does() {
    for seed in 1..9 {
        let plant = &Plant::phases(seed)[0];
        let mut server = Server::new(plant, Capacity::Calibrate, seed);
        let mut now_s = 0.0;
        while view(&server).stage != CalibrationStage::Over {
            now_s += 1.0;
            assert!(now_s < SEARCH_S_MAX, "seed {seed}: {:?}", view(&server));
            server.run(now_s);
        }
        let before = server.work_done();
        server.run(now_s + SECONDS);
        let done = (server.work_done() - before) / SECONDS;
        let share = done / server::best_fixed(plant).work_rate;
        let found = view(&server);
        println!("seed {seed}: {share:.3} after {now_s} s, {found:?}");
        assert!(share >= 0.93, "seed {seed}: {share}, {found:?}, {plant:?}");
    }
}
