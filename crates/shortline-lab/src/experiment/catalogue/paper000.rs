//! Paper 000, Schroeder and Harchol-Balter, "Web servers under overload: how scheduling can
//! help" (ACM TOIT 6(1), 2006): Figs. 6 to 16, Tables I and II, sections 6.1 and 6.2. Fig. 8 is
//! `w1`. The paper ran 30 minutes each; here a few periods.
//!
//! FAIR is nginx and not Apache 1.3, over a FIFO of 100 packets as there.

mod table_one;

use std::time::Duration;

use shortline_sched::units::Span;

use super::{Experiment, environment, figure, uplink};
use crate::bed::setup::Abort;
use crate::experiment::claim::Measure::{
    BytesRatio, ConnectionsRatio, FinishedGain, FirstByteGain, FirstSynDrop, IncompleteRatio,
    LargestRatio, MeanGainInTime, SynDrops,
};
use crate::experiment::claim::Plot::{
    BySize, Complementary, Connections, Drops, FirstByte, Mean, OverTime, Stretch,
};
use crate::experiment::claim::{Check, Figure, Plot, Want};
use crate::experiment::point::{Arrivals, Files, Point, Setup};

use table_one::{table_one, table_one_realistic};

const BOTH: [&str; 2] = ["srpt", "nginx"];
/// With the paper's own way of ordering.
const WITH_BANDS: [&str; 3] = ["srpt", "kernel-bands", "nginx"];
/// Two periods of W1.
const SECONDS: u64 = 100;
/// One period of W1, where a range of values takes several.
const SECONDS_OF_RANGE: u64 = 50;

pub fn all() -> Vec<Experiment> {
    vec![
        baseline(),
        persistent(),
        rtt(Files::WorldCup),
        loss(Files::WorldCup),
        rtt_and_loss(Files::WorldCup),
        keep_alive(Files::WorldCup),
        initial_rto(Files::WorldCup),
        cookies(),
        abort(Files::WorldCup),
        packet_length(Files::WorldCup),
        realistic(Files::WorldCup),
        five_delays(),
        table_one(Files::WorldCup),
        table_one_realistic(),
        syn_queue(),
        long_requests(),
        rtt(Files::Nasa),
        loss(Files::Nasa),
        rtt_and_loss(Files::Nasa),
        keep_alive(Files::Nasa),
        initial_rto(Files::Nasa),
        abort(Files::Nasa),
        packet_length(Files::Nasa),
        realistic(Files::Nasa),
        table_one(Files::Nasa),
    ]
}

/// A point with the paper's system: queues of 512, no cookies, 350 workers where a server has
/// such.
fn as_then(label: impl Into<String>, arrivals: Arrivals, seconds: u64) -> Point {
    Point::new(label, arrivals, seconds).with(|setup| setup.environment = environment("a"))
}

fn span_s(seconds: f64) -> Span {
    Span::from_duration(Duration::from_secs_f64(seconds))
}

/// The baseline with queues as then and as they are today.
fn baseline() -> Experiment {
    let then = as_then("then", Arrivals::table_one("w1"), SECONDS);
    let today = Point {
        label: "today".into(),
        ..then.clone()
    };
    let today = today.with(|setup| setup.environment = setup.environment.clone().as_today());
    uplink(
        "000-baseline",
        "",
        &["srpt", "kernel-bands", "nginx", "apache"],
        vec![then, today],
        vec![figure(
            "000 Table II A",
            "W1 in the baseline, with queues of 512 as in the paper and with today's: 1.1 s to 138 ms, no SYN dropped",
            &[OverTime, Complementary, Connections],
            vec![
                Check::new(FinishedGain, Want::AtLeast(8.0), "8 (1.1 s to 138 ms)"),
                Check::new(SynDrops, Want::AtMost(0.0), "0"),
                Check::new(SynDrops, Want::AtMost(0.0), "0").of("nginx", "srpt"),
            ],
        )],
    )
}

fn persistent() -> Experiment {
    let point = |load: f64, label| as_then(label, Arrivals::steady(load), SECONDS).at(load);
    uplink(
        "000-persistent",
        "load",
        &["srpt", "nginx", "apache"],
        vec![point(1.2, "load-1.2"), point(1.4, "load-1.4")],
        vec![
            figure(
                "000 Fig. 6",
                "at a load of 1.2 FAIR reaches 350 connections in 50 s and drops SYNs from 70 s, SRPT has 50 after 200 s; the bytes are the same",
                &[Connections, Drops],
                vec![
                    Check::new(SynDrops, Want::AtMost(0.0), "0 until half an hour").at("load-1.2"),
                    Check::new(FirstSynDrop, Want::AtMost(100.0), "about 70 s")
                        .of("apache", "srpt")
                        .at("load-1.2"),
                    Check::new(FirstSynDrop, Want::AtMost(100.0), "about 70 s")
                        .of("nginx", "srpt")
                        .at("load-1.2"),
                    Check::new(ConnectionsRatio, Want::AtMost(0.25), "0.14 (50 to 350)")
                        .at("load-1.2"),
                    Check::new(BytesRatio, Want::AtLeast(0.98), "1").at("load-1.2"),
                ],
            ),
            figure(
                "000 Fig. 7",
                "at 1.2 FAIR's mean response time is 5 s after 40 s and grows, SRPT's hardly grows; so with the first byte",
                &[OverTime, FirstByte],
                vec![
                    Check::new(
                        MeanGainInTime,
                        Want::AtLeast(8.0),
                        "about an order of magnitude",
                    )
                    .at("load-1.2"),
                    Check::new(
                        FirstByteGain,
                        Want::AtLeast(8.0),
                        "nearly an order of magnitude",
                    )
                    .at("load-1.2"),
                ],
            ),
            figure(
                "000 sec. 4, load 1.4",
                "at 1.4 FAIR drops SYNs after 18 s, SRPT not for nearly half an hour",
                &[OverTime, Connections],
                vec![
                    Check::new(
                        MeanGainInTime,
                        Want::AtLeast(8.0),
                        "more dramatic than at 1.2",
                    )
                    .at("load-1.4"),
                ],
            ),
        ],
    )
}

/// The names of a figure in the body of the paper and in its appendix, and of an experiment
/// for it.
struct Names {
    id: [&'static str; 2],
    figure: [&'static str; 2],
}

impl Names {
    fn of(&self, files: Files) -> (&'static str, &'static str) {
        let place = usize::from(files == Files::Nasa);
        (self.id[place], self.figure[place])
    }
}

/// One of the rows of Table II over W1: its points, and one figure with a claim.
fn row(
    names: &Names,
    files: Files,
    axis: &'static str,
    values: &[(f64, &str)],
    change: impl Fn(&mut Setup, f64),
    claim: &'static str,
    checks: Vec<Check>,
) -> Experiment {
    let (id, name) = names.of(files);
    let point = |(value, label): &(f64, &str)| {
        as_then(*label, Arrivals::table_one("w1"), SECONDS_OF_RANGE)
            .at(*value)
            .of(files)
            .with(|setup| change(setup, *value))
    };
    let points = values.iter().map(point).collect();
    uplink(
        id,
        axis,
        &BOTH,
        points,
        vec![figure(name, claim, ROW_SHOWS, checks)],
    )
}

const ROW_SHOWS: &[Plot] = &[Mean, OverTime];

/// All clients in one network.
fn through(setup: &mut Setup, rtt_ms: f64, loss_percent: f64) {
    let environment = setup.environment.clone();
    let rtt = Span::from_duration(Duration::from_secs_f64(rtt_ms / 1e3));
    setup.environment = environment.with_network(rtt, loss_percent / 100.0);
}

fn rtt(files: Files) -> Experiment {
    row(
        &Names {
            id: ["000-rtt", "000-nasa-rtt"],
            figure: ["000 Fig. 9, Table II B", "000 Fig. 13 B"],
        },
        files,
        "round trip time (ms)",
        &[
            (0.0, "rtt-0"),
            (50.0, "rtt-50"),
            (100.0, "rtt-100"),
            (150.0, "rtt-150"),
        ],
        |setup, rtt_ms| {
            if rtt_ms > 0.0 {
                through(setup, rtt_ms, 0.0);
            }
        },
        "W1 with round trips of 0 to 150 ms: at least 2.5 times shorter at each",
        vec![Check::new(FinishedGain, Want::AtLeast(2.5), "2.5 at least")],
    )
}

fn loss(files: Files) -> Experiment {
    row(
        &Names {
            id: ["000-loss", "000-nasa-loss"],
            figure: ["000 Fig. 9, Table II C", "000 Fig. 13 C"],
        },
        files,
        "loss (%)",
        &[
            (0.0, "loss-0"),
            (5.0, "loss-05"),
            (10.0, "loss-10"),
            (15.0, "loss-15"),
        ],
        |setup, loss_percent| {
            if loss_percent > 0.0 {
                through(setup, 0.0, loss_percent);
            }
        },
        "W1 with 0 to 15 % loss: 1.9 s to 930 ms at 5 %, 6 s to 4 s at 15 %",
        vec![
            Check::new(FinishedGain, Want::AtLeast(2.0), "2 (1.9 s to 930 ms)").at("loss-05"),
            Check::new(FinishedGain, Want::AtLeast(1.5), "1.5 (6 s to 4 s)").at("loss-15"),
        ],
    )
}

fn rtt_and_loss(files: Files) -> Experiment {
    row(
        &Names {
            id: ["000-rtt-loss", "000-nasa-rtt-loss"],
            figure: ["000 Fig. 9, Table II D", "000 Fig. 13 D"],
        },
        files,
        "round trip time (ms), with 5 % loss",
        &[(50.0, "rtt-50"), (100.0, "rtt-100"), (150.0, "rtt-150")],
        |setup, rtt_ms| through(setup, rtt_ms, 5.0),
        "W1 with 100 ms and 5 % loss: 2.5 s to 1.2 s, 2 times shorter",
        vec![Check::new(FinishedGain, Want::AtLeast(2.0), "2 (2.5 s to 1.2 s)").at("rtt-100")],
    )
}

fn keep_alive(files: Files) -> Experiment {
    row(
        &Names {
            id: ["000-keepalive", "000-nasa-keepalive"],
            figure: ["000 Fig. 10, Table II E", "000 Fig. 14 E"],
        },
        files,
        "requests per connection",
        &[(1.0, "k-01"), (2.0, "k-02"), (5.0, "k-05"), (10.0, "k-10")],
        |setup, requests| {
            setup.environment.requests_per_connection = Some(requests as u32);
            // A handshake and its end are 250 bytes of the 460.
            setup.per_request_bytes = 210 + (250.0 / requests) as u64;
        },
        "W1 with up to 10 requests per connection: FAIR halves at 5, SRPT is still 3 times shorter",
        vec![Check::new(FinishedGain, Want::AtLeast(3.0), "3 at least")],
    )
}

fn initial_rto(files: Files) -> Experiment {
    row(
        &Names {
            id: ["000-rto", "000-nasa-rto"],
            figure: ["000 Fig. 10, Table II F", "000 Fig. 14 F"],
        },
        files,
        "initial timeout (ms)",
        &[
            (500.0, "rto-0500"),
            (1000.0, "rto-1000"),
            (3000.0, "rto-3000"),
        ],
        |setup, rto_ms| setup.environment.system.initial_rto = span_s(rto_ms / 1e3),
        "W1 with initial timeouts of 0.5 to 3 s: FAIR falls from 1.1 s to 0.65 s, SRPT is 4 times shorter at each",
        vec![Check::new(FinishedGain, Want::AtLeast(4.0), "4 at least")],
    )
}

fn cookies() -> Experiment {
    row(
        &Names {
            id: ["000-cookies", ""],
            figure: ["000 Table II G", ""],
        },
        Files::WorldCup,
        "SYN cookies",
        &[(0.0, "cookies-off"), (1.0, "cookies-on")],
        |setup, on| setup.environment.system.syn_cookies = on > 0.0,
        "W1 with SYN cookies: no difference to either, as no SYN is dropped",
        vec![Check::new(
            FinishedGain,
            Want::AtLeast(8.0),
            "8, as without",
        )],
    )
}

fn abort(files: Files) -> Experiment {
    row(
        &Names {
            id: ["000-abort", "000-nasa-abort"],
            figure: ["000 Fig. 10, Table II H", "000 Fig. 14 H"],
        },
        files,
        "patience (s), then up to 6 tries more",
        &[
            (3.0, "abort-03"),
            (7.0, "abort-07"),
            (10.0, "abort-10"),
            (15.0, "abort-15"),
        ],
        |setup, abort_after_s| {
            setup.environment.abort = Some(Abort {
                after: span_s(abort_after_s),
                retries: 6,
            });
        },
        "W1 with users who give up after 3 to 15 s: at least 8 times shorter, up to 7 times fewer incomplete",
        vec![
            Check::new(FinishedGain, Want::AtLeast(8.0), "8 at least"),
            Check::new(IncompleteRatio, Want::AtMost(1.0), "never more than FAIR"),
        ],
    )
}

fn packet_length(files: Files) -> Experiment {
    row(
        &Names {
            id: ["000-packets", "000-nasa-packets"],
            figure: ["000 Fig. 10, Table II I", "000 Fig. 14 I"],
        },
        files,
        "largest packet (bytes)",
        &[
            (536.0, "packet-0536"),
            (1000.0, "packet-1000"),
            (1500.0, "packet-1500"),
        ],
        |setup, bytes| setup.environment.packet_bytes = bytes as u32,
        "W1 with packets of 536 to 1500 bytes: 1.6 s to 260 ms at 536, at least 6 times shorter",
        vec![Check::new(FinishedGain, Want::AtLeast(6.0), "6 at least")],
    )
}

/// Row J of Table II.
fn make_realistic(setup: &mut Setup) {
    setup.environment = environment("j");
    setup.per_request_bytes = 260;
}

fn realistic(files: Files) -> Experiment {
    let names = Names {
        id: ["000-realistic", "000-nasa-realistic"],
        figure: ["000 Fig. 11, Table II J", "000 Fig. 15"],
    };
    let (id, name) = names.of(files);
    let point = as_then("w1", Arrivals::table_one("w1"), SECONDS)
        .of(files)
        .with(make_realistic);
    uplink(
        id,
        "",
        &BOTH,
        vec![point],
        vec![figure(
            name,
            "W1 with 100 ms, 5 % loss, 5 requests per connection and users who give up: 1.48 s to 764 ms, largest 1 % 2.23 s to 2.28 s, 0.2 % incomplete in both",
            &[OverTime, Complementary, BySize],
            vec![
                Check::new(FinishedGain, Want::AtLeast(1.9), "1.94 (1.48 s to 764 ms)"),
                Check::new(LargestRatio, Want::AtMost(1.1), "1.02 (2.23 s to 2.28 s)"),
                Check::new(IncompleteRatio, Want::AtMost(1.0), "1 (0.2 % each)"),
            ],
        )],
    )
}

fn five_delays() -> Experiment {
    let point = as_then("w1", Arrivals::table_one("w1"), SECONDS)
        .with(|setup| setup.environment = environment("delays"));
    uplink(
        "000-delays",
        "",
        &BOTH,
        vec![point],
        vec![figure(
            "000 sec. 5.1 B, five delays",
            "W1 with five delays of 0 to 150 ms at once: each client fares as if all had its own, 2.5 times shorter at least",
            &[OverTime, Complementary],
            vec![Check::new(FinishedGain, Want::AtLeast(2.5), "2.5 at least")],
        )],
    )
}

fn syn_queue() -> Experiment {
    let point = |label, connections: f64| {
        as_then(label, Arrivals::table_one("w4"), SECONDS)
            .at(connections)
            .with(|setup| {
                setup.environment.system.syn_queue = connections as u32;
                setup.environment.system.accept_queue = connections as u32;
            })
    };
    uplink(
        "000-why",
        "SYN and accept queue (connections)",
        &BOTH,
        vec![point("queue-00512", 512.0), point("queue-16384", 16384.0)],
        vec![figure(
            "000 sec. 6.1",
            "W4 without SYN drops: FAIR gains less than 5 %, so most of SRPT's gain is in the order of service",
            &[Mean, OverTime],
            vec![
                Check::new(FinishedGain, Want::AtLeast(2.0), "most of the gain stays")
                    .at("queue-16384"),
            ],
        )],
    )
}

fn long_requests() -> Experiment {
    let figures: Vec<Figure> = vec![figure(
        "000 sec. 6.2",
        "long requests finish at about the same time under both: FAIR has so many connections that they get next to nothing in the overload",
        &[BySize, Connections, Stretch],
        vec![
            Check::new(LargestRatio, Want::AtMost(1.1), "about 1"),
            Check::new(ConnectionsRatio, Want::AtMost(0.25), "0.25 (200 to 50)"),
        ],
    )];
    let point = as_then("w1", Arrivals::table_one("w1"), SECONDS);
    uplink("000-long", "", &BOTH, vec![point], figures)
}
