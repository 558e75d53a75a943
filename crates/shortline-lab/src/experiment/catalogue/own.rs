//! Our own experiments: W1 over each protocol, at 100 Mbit/s and without a rate given, the
//! demo, and what a server costs where nothing is scarce. `w1` is also what most of paper
//! 000 is about: its Fig. 8, and row A of its Table II.

use shortline_sched::units::Rate;

use super::{Experiment, Kind, figure, uplink};
use crate::experiment::adversary::Surface;
use crate::experiment::claim::Plot::{
    BySize, Complementary, Connections, FirstByte, OverTime, Stretch,
};
use crate::experiment::claim::{Across, Check, Figure, Measure, Plot, Want};
use crate::experiment::point::{Arrivals, Point, Setup};
use crate::server::Speech;

const SERVERS: [&str; 5] = ["srpt", "fair", "off", "nginx", "apache"];
/// An orphan that nginx left takes so long: whoever waits is to see all that comes.
const DRAIN_S: u64 = 120;
const W1_SHOWS: &[Plot] = &[
    OverTime,
    FirstByte,
    Complementary,
    BySize,
    Stretch,
    Connections,
];

pub fn all() -> Vec<Experiment> {
    let w1 = |seconds| {
        Point::new("w1", Arrivals::table_one("w1"), seconds).with(|setup| setup.drain_s = DRAIN_S)
    };
    let variant = |id, about, servers: &[&'static str], point: Point, most| {
        let optimum =
            Check::own_aim(Measure::OverOptimum, Want::AtMost(most)).of(servers[0], servers[1]);
        uplink(
            id,
            "",
            servers,
            vec![point],
            vec![own(about, vec![optimum])],
        )
    };
    vec![
        demo(),
        fig8(w1(100)),
        variant(
            "w1-k5",
            "W1 with 5 requests per connection",
            &SERVERS,
            w1(100).with(|setup| {
                setup.environment.requests_per_connection = Some(5);
                setup.per_request_bytes = 300;
            }),
            1.2,
        ),
        variant(
            "w1-tls",
            "W1 over TLS 1.3",
            &SERVERS,
            w1(100).with(|setup| speak(setup, true, false)),
            1.2,
        ),
        variant(
            "w1-h2",
            "W1 over HTTP/2 by prior knowledge",
            &SERVERS,
            w1(100).with(|setup| speak(setup, false, true)),
            1.2,
        ),
        variant(
            "w1-h2-shared",
            "W1 over 6 HTTP/2 connections that all requests share",
            &SERVERS,
            w1(100).with(|setup| {
                speak(setup, false, true);
                setup.environment.requests_per_connection = None;
                setup.per_request_bytes = 100;
            }),
            1.2,
        ),
        variant(
            "w1-h2-tls",
            "W1 over HTTP/2 over TLS 1.3",
            &SERVERS,
            w1(100).with(|setup| speak(setup, true, true)),
            1.2,
        ),
        variant(
            "w1-100mbit",
            "W1 at 100 Mbit/s",
            &SERVERS,
            Point {
                rate: Rate::from_bps(100_000_000),
                ..w1(50)
            },
            1.2,
        ),
        variant(
            "w1-slots",
            "W1 where ours is not told the rate",
            &["slots", "off", "nginx"],
            w1(100),
            1.8,
        ),
        aging(),
        generators(),
        adversary(
            "adversary",
            "one client that attacks by many connections or small ranges beside honest users: what it gets and what they wait",
            Surface::Plain,
        ),
        adversary("adversary-tls", "the same over TLS", Surface::Tls),
        adversary(
            "adversary-route",
            "the same through a route to a backend",
            Surface::Route,
        ),
        Experiment {
            id: "throughput",
            figures: vec![own(
                "no root: requests and bytes per second of server processor time",
                Vec::new(),
            )],
            kind: Kind::Throughput,
        },
        Experiment {
            id: "memory",
            figures: vec![own(
                "no root: resident memory with 10,000 idle connections",
                Vec::new(),
            )],
            kind: Kind::Memory,
        },
    ]
}

fn adversary(id: &'static str, about: &'static str, surface: Surface) -> Experiment {
    Experiment {
        id,
        figures: vec![own(about, Vec::new())],
        kind: Kind::Adversary(surface),
    }
}

fn own(about: &'static str, checks: Vec<Check>) -> Figure {
    figure("", about, W1_SHOWS, checks)
}

/// The demo's overload is milder at its low end and stronger at its high end than W1, so
/// that 30 s show it twice.
fn demo() -> Experiment {
    let arrivals = Arrivals::Phases {
        low_s: 5.0,
        high_s: 10.0,
        low_load: 0.4,
        high_load: 1.4,
    };
    let point = Point::new("demo", arrivals, 30).with(|setup| setup.loopback = true);
    uplink(
        "demo",
        "",
        &["fair", "srpt"],
        vec![point],
        vec![own(
            "no root: an overload on loopback, fair and srpt beside the optimum",
            Vec::new(),
        )],
    )
}

fn fig8(point: Point) -> Experiment {
    let checks = vec![
        Check::new(
            Measure::FinishedGain,
            Want::AtLeast(8.0),
            "8 (1.1 s to 138 ms)",
        ),
        Check::new(Measure::MeanGain, Want::AtLeast(8.0), "8 (nothing failed)"),
        Check::new(
            Measure::LargestRatio,
            Want::AtMost(1.1),
            "0.97 (2.9 s to 2.8 s)",
        ),
        Check::new(
            Measure::BiggestRatio,
            Want::AtMost(1.1),
            "1.09 (17.8 s to 19.4 s)",
        ),
        Check::new(
            Measure::BytesRatio,
            Want::AtLeast(0.98),
            "1: no loss of throughput",
        ),
        Check::own_aim(Measure::OverOptimum, Want::AtMost(1.1)),
    ];
    uplink(
        "w1",
        "",
        &SERVERS,
        vec![point],
        vec![figure(
            "000 Fig. 8",
            "in the overload W1 (setup A) the mean falls from 1.1 s to 138 ms, while the largest 1 % take 2.8 s instead of 2.9 s",
            W1_SHOWS,
            checks,
        )],
    )
}

/// Table 3.2 of paper 002 bounds how far a job may be passed over; on a link that stays
/// overloaded no bound can hold for all, so what is asked is what the largest gain and the
/// mean loses.
fn aging() -> Experiment {
    let shows = &[OverTime, BySize, Complementary, Stretch];
    let checks = vec![
        Check::new(
            Measure::LargestRatio,
            Want::AtMost(1.0),
            "002 3.2: aging bounds their wait",
        )
        .of("srpt-aging-20", "srpt"),
        Check::new(
            Measure::MeanGain,
            Want::AtLeast(1.0),
            "002 3.2: little is lost",
        )
        .of("srpt-aging-20", "nginx"),
    ];
    uplink(
        "aging",
        "",
        &[
            "srpt",
            "srpt-aging-5",
            "srpt-aging-20",
            "srpt-aging-100",
            "nginx",
        ],
        vec![Point::new("load-1.2", Arrivals::steady(1.2), 60)],
        vec![figure(
            "aging",
            "under a persistent load of 1.2, what aging gives to the largest requests and takes from the mean",
            shows,
            checks,
        )],
    )
}

/// 000, 2.5 had several client machines, so that none of them was the bottleneck. Here one process
/// and two that share the same arrivals must come to the same: `srpt` to 5 %, nginx, whose losses are
/// another matter in every run, to a quarter.
fn generators() -> Experiment {
    let point = |processes: u32| {
        Point::new(
            format!("processes-{processes}"),
            Arrivals::table_one("w1"),
            50,
        )
        .at(processes.into())
        .with(|setup| setup.generators = processes)
    };
    let same = |server, other, most| {
        Check::own_aim(Measure::OverOptimum, Want::AtMost(most))
            .of(server, other)
            .across(Across::HighestOverLowest)
    };
    let in_time =
        |server, other| Check::own_aim(Measure::LateStarts, Want::AtMost(0.0)).of(server, other);
    uplink(
        "generators",
        "processes of the generator",
        &["srpt", "nginx"],
        vec![point(1), point(2)],
        vec![figure(
            "",
            "the generator is not what limits: no start is late, and two processes with half of W1's requests each come to the same as one",
            &[Plot::Mean],
            vec![
                same("srpt", "nginx", 1.05),
                same("nginx", "srpt", 1.25),
                in_time("srpt", "nginx"),
                in_time("nginx", "srpt"),
            ],
        )],
    )
}

fn speak(setup: &mut Setup, tls: bool, http2: bool) {
    setup.speech = Speech { tls, http2 };
    setup.per_request_bytes = match (tls, http2) {
        (false, false) => setup.per_request_bytes,
        (true, false) => 1950,
        (false, true) => 570,
        (true, true) => 2100,
    };
}
