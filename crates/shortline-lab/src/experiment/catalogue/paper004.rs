//! Paper 004, a thesis on scheduling by shortest remaining response time (SRRT) through
//! heterogeneous WANs: Tables 3 to 7 and Figs. 12 to 17, and the starvation of 5.3.3.
//!
//! SURGE's user equivalents, evenly behind the six WANs of its Table 2, at 10 and at 100
//! Mbit/s. Its improvement of p per cent is a mean 1/(1 - p/100) times shorter.
//!
//! The paper's 120 users saturated 10 Mbit/s and its 960 users 100; ours ask for less, so there
//! are 3.3 and 4.2 times as many (docs/workloads.md).

use shortline_sched::units::Rate;

use super::{Experiment, environment, figure, uplink};
use crate::experiment::claim::Measure::{FinishedGain, LargestStretch, StarvedPercent};
use crate::experiment::claim::Plot::{Mean, Stretch};
use crate::experiment::claim::{Across, Check, Want};
use crate::experiment::point::{Arrivals, Files, Point};

const SERVERS: [&str; 4] = ["srrt", "srpt", "stert", "nginx"];
/// The paper ran 15 minutes.
const SECONDS: u64 = 60;

pub fn all() -> Vec<Experiment> {
    vec![at_10_mbit(), at_100_mbit()]
}

fn points(rate_bps: u64, users: &[u32]) -> Vec<Point> {
    let point = |users: &u32| {
        Point {
            rate: Rate::from_bps(rate_bps),
            ..Point::new(
                format!("users-{users:04}"),
                Arrivals::Users(*users),
                SECONDS,
            )
        }
        .at(f64::from(*users))
        .of(Files::Surge004)
        .with(|setup| setup.environment = environment("wans"))
    };
    users.iter().map(point).collect()
}

/// Improvements in per cent and in words: SRRT on SRPT, SRRT on PS, SRPT on PS.
fn gains(
    across: Across,
    srrt_srpt: (f64, &'static str),
    srrt_ps: (f64, &'static str),
    srpt_ps: (f64, &'static str),
) -> Vec<Check> {
    let gain = |(percent, paper): (f64, &'static str), of, over| {
        Check::new(
            FinishedGain,
            Want::AtLeast(1.0 / (1.0 - percent / 100.0)),
            paper,
        )
        .of(of, over)
        .across(across)
    };
    vec![
        gain(srrt_srpt, "srrt", "srpt"),
        gain(srrt_ps, "srrt", "nginx"),
        gain(srpt_ps, "srpt", "nginx"),
    ]
}

fn at_10_mbit() -> Experiment {
    let average = || {
        gains(
            Across::Average,
            (7.5, "7.5 % on average"),
            (13.6, "13.6 % on average"),
            (6.8, "6.8 % on average"),
        )
    };
    let most = gains(
        Across::Highest,
        (13.2, "13.2 % at most"),
        (24.2, "24.2 % at most"),
        (13.7, "13.7 % at most"),
    );
    uplink(
        "004-10mbit",
        "user equivalents",
        &SERVERS,
        points(10_000_000, &[60, 180, 300, 420, 540, 660, 900, 1200]),
        vec![
            figure(
                "004 Fig. 12, 10 Mbit/s",
                "through six WANs SRRT is shorter than SRPT and both than PS, most after the link saturates at 120 users",
                &[Mean],
                average(),
            ),
            figure(
                "004 Table 3, 10 Mbit/s",
                "SRRT improves on SRPT by 7.5 % on average (13.2 % at most), on PS by 13.6 % (24.2 %)",
                &[Mean],
                average(),
            ),
            figure(
                "004 Fig. 13",
                "each of the six WANs shows the same order: SRRT, SRPT, PS",
                &[Mean],
                Vec::new(),
            ),
            figure(
                "004 Table 4",
                "by WAN SRRT improves on SRPT by 6.3 to 8.2 % and on PS by 12.6 to 13.9 % on average",
                &[Mean],
                Vec::new(),
            ),
            figure(
                "004 Table 5",
                "by WAN SRRT improves on SRPT by 12 to 15.9 % and on PS by 23.8 to 28.4 % at most",
                &[Mean],
                most,
            ),
            figure(
                "004 Fig. 15",
                "the better the WAN the more SRRT and SRPT improve on PS",
                &[Mean],
                Vec::new(),
            ),
            figure(
                "004 Fig. 17, 10 Mbit/s",
                "STERT improves on SRPT and PS, SRRT on STERT",
                &[Mean],
                vec![Check::new(FinishedGain, Want::AtLeast(1.0), "shorter").of("srrt", "stert")],
            ),
            figure(
                "004 sec. 5.3.3, 10 Mbit/s",
                "under SRPT 2.6 % of the requests starve, the largest 2.4 times",
                &[Stretch],
                vec![
                    Check::new(StarvedPercent, Want::AtMost(2.6), "2.6 %").of("srpt", "nginx"),
                    Check::new(LargestStretch, Want::AtMost(2.4), "2.4").of("srpt", "nginx"),
                ],
            ),
        ],
    )
}

fn at_100_mbit() -> Experiment {
    let average = || {
        gains(
            Across::Average,
            (7.4, "7.4 % on average"),
            (7.1, "7.1 % on average"),
            (2.6, "2.6 % on average"),
        )
    };
    let most = gains(
        Across::Highest,
        (11.6, "11.6 % at most"),
        (16.2, "16.2 % at most"),
        (5.8, "5.8 % at most"),
    );
    uplink(
        "004-100mbit",
        "user equivalents",
        &SERVERS,
        points(100_000_000, &[250, 1250, 2500, 3250, 3750, 4250, 5000]),
        vec![
            figure(
                "004 Fig. 12, 100 Mbit/s",
                "through six WANs the order is the same at 100 Mbit/s, from 780 users on",
                &[Mean],
                average(),
            ),
            figure(
                "004 Table 3, 100 Mbit/s",
                "SRRT improves on SRPT by 7.4 % on average (11.6 % at most), on PS by 7.1 % (16.2 %)",
                &[Mean],
                average(),
            ),
            figure(
                "004 Fig. 14",
                "each of the six WANs shows the same order: SRRT, SRPT, PS",
                &[Mean],
                Vec::new(),
            ),
            figure(
                "004 Table 6",
                "by WAN SRRT improves on SRPT by 3.8 to 5.2 % and on PS by 5.9 to 9.6 % on average",
                &[Mean],
                Vec::new(),
            ),
            figure(
                "004 Table 7",
                "by WAN SRRT improves on SRPT by 9.1 to 16.6 % and on PS by 12.4 to 25.8 % at most",
                &[Mean],
                most,
            ),
            figure(
                "004 Fig. 16",
                "the better the WAN the more SRRT and SRPT improve on PS",
                &[Mean],
                Vec::new(),
            ),
            figure(
                "004 Fig. 17, 100 Mbit/s",
                "STERT improves on SRPT and PS, SRRT on STERT",
                &[Mean],
                vec![Check::new(FinishedGain, Want::AtLeast(1.0), "shorter").of("srrt", "stert")],
            ),
            figure(
                "004 sec. 5.3.3, 100 Mbit/s",
                "under SRPT 2.3 % of the requests starve, the largest 2.1 times",
                &[Stretch],
                vec![
                    Check::new(StarvedPercent, Want::AtMost(2.3), "2.3 %").of("srpt", "nginx"),
                    Check::new(LargestStretch, Want::AtMost(2.1), "2.1").of("srpt", "nginx"),
                ],
            ),
        ],
    )
}
