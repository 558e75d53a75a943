//! Paper 003, Harchol-Balter, Bansal, Schroeder and Agrawal, "Implementation of SRPT
//! scheduling in web servers" (2000): Figs. 3 to 11. A load below 1 that does not change,
//! 10 Mbit/s, no WAN; the World Cup's files, in the appendix SURGE's with open arrivals.

use super::{Experiment, figure, uplink};
use crate::experiment::claim::Measure::{
    BytesRatio, LargestRatio, LargestStretch, MeanGain, SlowdownGain, StarvedPercent, VarianceGain,
};
use crate::experiment::claim::Plot::{ByPercentile, BySize, Mean, Slowdown, Stretch, Variance};
use crate::experiment::claim::{Check, Want};
use crate::experiment::point::{Arrivals, Files, Point};

/// Ours paced, ours as the paper did it, FAIR.
const SERVERS: [&str; 3] = ["srpt", "kernel-bands", "nginx"];
/// The paper ran ten minutes; here each point is long enough for some thousand requests.
const SECONDS: u64 = 60;

pub fn all() -> Vec<Experiment> {
    vec![
        by_load(Files::WorldCup),
        quick_fix(Files::WorldCup),
        by_load(Files::Surge003),
        quick_fix(Files::Surge003),
        control_band(),
    ]
}

/// Ours paced is to be ahead of the paper's own way.
fn ahead_of_bands() -> Check {
    Check::own_aim(MeanGain, Want::AtLeast(1.0)).of("srpt", "kernel-bands")
}

fn point(files: Files, load: f64) -> Point {
    Point::new(format!("load-{load:.2}"), Arrivals::steady(load), SECONDS)
        .at(load)
        .of(files)
}

fn by_load(files: Files) -> Experiment {
    let points = [0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95]
        .map(|load| point(files, load))
        .to_vec();
    let gain = |at| Check::new(MeanGain, Want::AtLeast(3.0), "3 to 8 above 0.5").at(at);
    let slowdown = |at| Check::new(SlowdownGain, Want::AtLeast(4.0), "4 to 16 above 0.5").at(at);
    let starved = Check::new(StarvedPercent, Want::AtMost(0.5), "0.5 %: all others gain");
    if files == Files::Surge003 {
        return uplink(
            "003-surge",
            "load",
            &SERVERS,
            points,
            vec![
                figure(
                    "003 Fig. 8",
                    "with SURGE's files too the mean is a multiple shorter above a load of 0.5",
                    &[Mean],
                    ["load-0.8", "load-0.9"].map(gain).to_vec(),
                ),
                figure(
                    "003 Fig. 9",
                    "with SURGE's files too nearly every size gains at loads of 0.6, 0.8 and 0.9",
                    &[BySize, ByPercentile, Stretch],
                    vec![starved.clone().at("load-0.8")],
                ),
                figure(
                    "003 Fig. 10",
                    "with SURGE's files too the variance falls by orders of magnitude at 0.8",
                    &[Variance],
                    vec![
                        Check::new(VarianceGain, Want::AtLeast(2.0), "as Fig. 6: 8 overall")
                            .at("load-0.80"),
                    ],
                ),
            ],
        );
    }
    uplink(
        "003-load",
        "load",
        &SERVERS,
        points,
        vec![
            figure(
                "003 Fig. 3",
                "above a load of 0.5 the mean response time is 3 to 8 times shorter, at equal throughput",
                &[Mean],
                vec![
                    gain("load-0.6"),
                    gain("load-0.7"),
                    gain("load-0.8"),
                    gain("load-0.9"),
                    Check::new(BytesRatio, Want::AtLeast(0.98), "identical"),
                    ahead_of_bands(),
                ],
            ),
            figure(
                "003 Fig. 4",
                "above a load of 0.5 the mean slowdown is 4 to 16 times smaller",
                &[Slowdown],
                vec![
                    slowdown("load-0.6"),
                    slowdown("load-0.7"),
                    slowdown("load-0.8"),
                    slowdown("load-0.9"),
                ],
            ),
            figure(
                "003 Fig. 5",
                "at 0.8 the small are 10 times faster, 99.5 % gain, and the largest request takes 1.2 times as long",
                &[BySize, ByPercentile, Stretch],
                vec![
                    starved.clone().at("load-0.8"),
                    Check::new(LargestStretch, Want::AtMost(1.2), "1.2").at("load-0.8"),
                    Check::new(LargestRatio, Want::AtMost(1.1), "hardly worse").at("load-0.8"),
                ],
            ),
            figure(
                "003 Fig. 6",
                "at 0.8 the variance is 2 to 4 orders of magnitude smaller for 99.5 % of the sizes, 8 times overall",
                &[Variance],
                vec![Check::new(VarianceGain, Want::AtLeast(8.0), "8").at("load-0.80")],
            ),
        ],
    )
}

fn quick_fix(files: Files) -> Experiment {
    let (id, name, claim) = match files {
        Files::Surge003 => (
            "003-surge-quickfix",
            "003 Fig. 11",
            "with SURGE's files too two bands parted at the median help half of the requests and hurt none",
        ),
        _ => (
            "003-quickfix",
            "003 Fig. 7, the quick fix",
            "two bands parted at the median: at 0.8 the smaller half is 5 times faster, the mean 2.5 times, slowdown 5 times, none hurt",
        ),
    };
    let against = |check: Check| check.of("quickfix", "nginx");
    uplink(
        id,
        "load",
        &["quickfix", "kernel-quickfix", "srpt", "nginx"],
        vec![point(files, 0.8)],
        vec![figure(
            name,
            claim,
            &[BySize, ByPercentile, Stretch],
            vec![
                against(Check::new(MeanGain, Want::AtLeast(2.5), "2.5")),
                against(Check::new(SlowdownGain, Want::AtLeast(5.0), "5")),
                against(Check::new(LargestRatio, Want::AtMost(1.1), "not hurt")),
            ],
        )],
    )
}

/// What the band of the SYN-ACKs has of the gain: it is taken away.
fn control_band() -> Experiment {
    let against = |check: Check, ours| check.of(ours, "nginx");
    uplink(
        "003-control-band",
        "load",
        &["kernel-bands", "kernel-mixed-bands", "nginx"],
        vec![point(Files::WorldCup, 0.8), point(Files::WorldCup, 0.95)],
        vec![figure(
            "003 sec. 3.3.2",
            "bands of remaining size alone are not enough: SYN-ACKs in the same queue as all else keep short requests from doing well",
            &[BySize, ByPercentile],
            vec![
                against(
                    Check::new(MeanGain, Want::AtLeast(3.0), "3 to 8 above 0.5"),
                    "kernel-bands",
                ),
                Check::new(MeanGain, Want::AtLeast(1.5), "much of the gain")
                    .of("kernel-bands", "kernel-mixed-bands"),
            ],
        )],
    )
}
