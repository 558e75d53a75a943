//! The uplink that finds itself: W1 where nobody says the rate, with the narrow link on the server's own
//! interface and one hop away, where nothing local tells of it.

use shortline_sched::units::{Rate, Span};

use super::{Experiment, figure, uplink};
use crate::bed::setup::ClientGroup;
use crate::experiment::claim::Plot::{BySize, Complementary, FirstByte, OverTime};
use crate::experiment::claim::{Check, Measure, Plot, Want};
use crate::experiment::point::{Arrivals, Point, Setup};

const SHOWS: &[Plot] = &[OverTime, FirstByte, Plot::Queue, Complementary, BySize];
const SERVERS: [&str; 4] = ["auto", "srpt", "off", "nginx"];
/// What holds nothing back, and so has the bytes that the link can carry.
const PLAIN: &str = "off";
/// An orphan that nginx left takes so long: whoever waits is to see all that comes.
const DRAIN_S: u64 = 120;
/// Of the optimum at most, where the interface states the rate, and where it has to be found.
const AT_HOME: f64 = 1.15;
const AWAY: f64 = 1.35;
const FAST: Rate = Rate::from_bps(100_000_000);
/// Round trips of clients that share the narrow link, in milliseconds.
const ROUND_TRIPS_MS: [u64; 5] = [20, 50, 100, 150, 200];

pub fn all() -> Vec<Experiment> {
    vec![
        auto(
            "auto-w1",
            "W1 where ours finds out the rate, which its own interface states",
            w1(100),
            over_optimum(AT_HOME),
        ),
        auto(
            "auto-w1-100mbit",
            "W1 at 100 Mbit/s where ours finds out the rate, which its own interface states",
            w1(50).at_rate(FAST),
            over_optimum(AT_HOME),
        ),
        auto(
            "auto-hop",
            "W1 where the uplink is narrow one hop away, behind a FIFO of 100 ms, and nothing tells of it",
            w1(100).with(hop),
            over_optimum(AWAY),
        ),
        auto(
            "auto-hop-100mbit",
            "W1 at 100 Mbit/s, narrow one hop away behind a FIFO of 100 ms",
            w1(50).with(hop).at_rate(FAST),
            over_optimum(AWAY),
        ),
        auto(
            "auto-wan",
            "W1, narrow one hop away behind a FIFO of 100 ms, with clients 20 to 200 ms away",
            w1(100).with(hop).with(far_clients),
            Check::own_aim(Measure::FinishedGain, Want::AtLeast(3.0)).of("auto", "nginx"),
        ),
    ]
}

fn auto(id: &'static str, about: &'static str, point: Point, aim: Check) -> Experiment {
    let bytes = Check::own_aim(Measure::BytesRatio, Want::AtLeast(0.97)).of("auto", PLAIN);
    let figures = vec![figure("", about, SHOWS, vec![aim, bytes])];
    uplink(id, "", &SERVERS, vec![point], figures)
}

fn over_optimum(most: f64) -> Check {
    Check::own_aim(Measure::OverOptimum, Want::AtMost(most)).of("auto", "nginx")
}

fn w1(seconds: u64) -> Point {
    Point::new("w1", Arrivals::table_one("w1"), seconds).with(|setup| setup.drain_s = DRAIN_S)
}

fn hop(setup: &mut Setup) {
    let queue = Span::from_duration(std::time::Duration::from_millis(100));
    setup.environment = setup.environment.clone().with_hop(queue);
}

fn far_clients(setup: &mut Setup) {
    let groups = ROUND_TRIPS_MS.map(|rtt_ms| {
        let rtt = Span::from_duration(std::time::Duration::from_millis(rtt_ms));
        ClientGroup::symmetric(format!("rtt {rtt}"), rtt, 0.0)
    });
    setup.environment.groups = groups.to_vec();
}
