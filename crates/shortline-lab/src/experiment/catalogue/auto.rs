//! The uplink that finds itself: W1 where nobody says the rate, with the narrow link on the server's own
//! interface and one hop away, where nothing local tells of it; and a steady overload where the link's
//! rate changes, or another server sends through it.

use shortline_sched::units::{Rate, Span};

use super::{Experiment, figure, uplink};
use crate::bed::setup::{ClientGroup, CongestionControl};
use crate::experiment::claim::Plot::{BySize, Complementary, FirstByte, OverTime};
use crate::experiment::claim::{Check, Measure, Plot, Want};
use crate::experiment::course::{Course, Neighbour, Step};
use crate::experiment::point::{Arrivals, Point, Setup};

const SHOWS: &[Plot] = &[
    OverTime,
    FirstByte,
    Plot::Queue,
    Plot::Rate,
    Complementary,
    BySize,
];
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

/// What both halves of a shared link show.
const CHANGES: &[Plot] = &[Plot::Rate, Plot::Queue, OverTime, FirstByte];

pub fn all() -> Vec<Experiment> {
    vec![
        changing(
            "auto-steps",
            "a steady overload whose link, one hop away, goes from 10 to 5 to 20 Mbit/s",
            // What is left of the slower thirds is enough for the fast one.
            overload(1.6).with(|setup| setup.course = steps()),
            vec![
                Check::own_aim(Measure::QueueBack, Want::AtMost(2.0)).of("auto", PLAIN),
                Check::own_aim(Measure::UsedAgain, Want::AtMost(5.0)).of("auto", PLAIN),
                delivers(),
            ],
        ),
        changing(
            "auto-cross",
            "a steady overload and one download from another server through the same queue for a third of \
             the time",
            overload(1.2).with(|setup| setup.course = downloads(1)),
            beside_downloads(),
        ),
        changing(
            "auto-cross10",
            "a steady overload and ten downloads from another server through the same queue for a third of \
             the time",
            overload(1.2).with(|setup| setup.course = downloads(10)),
            beside_downloads(),
        ),
        changing(
            "auto-two",
            "two servers behind one uplink, each with six tenths of what it carries",
            overload(0.6).with(|setup| setup.course.neighbour = Some(Neighbour::Twin)),
            vec![
                Check::own_aim(Measure::FinishedGain, Want::AtLeast(1.0)).of("auto", PLAIN),
                Check::own_aim(Measure::NeighbourGain, Want::AtLeast(1.0)).of("auto", PLAIN),
            ],
        ),
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
            "auto-w1-bbr",
            "W1 under BBR where ours finds out the rate, which its own interface states",
            w1(100).with(bbr),
            over_optimum(AT_HOME),
        ),
        auto(
            "auto-hop-bbr",
            "W1 under BBR where the uplink is narrow one hop away, behind a FIFO of 100 ms",
            w1(100).with(hop).with(bbr),
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
    let figures = vec![figure("", about, SHOWS, vec![aim, delivers()])];
    uplink(id, "", &SERVERS, vec![point], figures)
}

fn changing(id: &'static str, about: &'static str, point: Point, aims: Vec<Check>) -> Experiment {
    let figures = vec![figure("", about, CHANGES, aims)];
    uplink(id, "", &["auto", PLAIN, "nginx"], vec![point], figures)
}

/// Others get their share, and scheduling comes back when they have gone.
fn beside_downloads() -> Vec<Check> {
    vec![
        Check::own_aim(Measure::NeighbourBytes, Want::AtLeast(0.8)).of("auto", PLAIN),
        Check::own_aim(Measure::QueueBack, Want::AtMost(5.0)).of("auto", PLAIN),
        delivers(),
    ]
}

fn delivers() -> Check {
    Check::own_aim(Measure::BytesRatio, Want::AtLeast(0.97)).of("auto", PLAIN)
}

fn overload(load: f64) -> Point {
    Point::new("steady", Arrivals::steady(load), 60)
        .with(|setup| setup.drain_s = DRAIN_S)
        .with(hop)
}

fn steps() -> Course {
    let step = |at, factor| Step { at, factor };
    Course {
        steps: vec![step(1.0 / 3.0, 0.5), step(2.0 / 3.0, 2.0)],
        neighbour: None,
    }
}

fn downloads(number: u32) -> Course {
    Course {
        steps: Vec::new(),
        neighbour: Some(Neighbour::Downloads {
            number,
            from: 1.0 / 3.0,
            to: 2.0 / 3.0,
        }),
    }
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

fn bbr(setup: &mut Setup) {
    setup.environment.system.congestion_control = CongestionControl::Bbr;
}

fn far_clients(setup: &mut Setup) {
    let groups = ROUND_TRIPS_MS.map(|rtt_ms| {
        let rtt = Span::from_duration(std::time::Duration::from_millis(rtt_ms));
        ClientGroup::symmetric(format!("rtt {rtt}"), rtt, 0.0)
    });
    setup.environment.groups = groups.to_vec();
}
