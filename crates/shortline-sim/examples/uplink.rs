//! Shows the uplink's controller at work on a link in virtual time: a line every tenth of a
//! second with the rate, the queue and the state.
//!
//!     cargo run -p shortline-sim --example uplink -- start|steps|fast|cross|cross10|w1|lab|wan|wan-w1|loss|route [SEED]

use shortline_sched::uplink::{Controller, UplinkConfig};
use shortline_sim::uplink::{Cross, Demand, Path, Plan, run};

fn main() {
    let name = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "steps".to_owned());
    let seed = std::env::args().nth(2).map_or(Ok(1), |seed| seed.parse());
    let (Some(plan), Ok(seed)) = (plan(&name), seed) else {
        eprintln!(
            "uplink: no scene called {name:?}; there are start, steps, fast, cross, cross10, w1, lab, wan, wan-w1, loss and route"
        );
        std::process::exit(2);
    };
    let plan = Plan { seed, ..plan };
    let mut controller = Controller::new(UplinkConfig::default());
    let mut delays_ms = Vec::new();
    let trace = run(&plan, |observation| {
        let decision = controller.observe(observation);
        delays_ms.push(controller.delay_ns().map_or(f64::NAN, |ns| ns as f64 / 1e6));
        decision
    });
    println!(
        "seconds link_mbit paced_mbit estimate_mbit confidence queue_ms seen_ms smoothed_ms ours_mbit cross_mbit state limit"
    );
    for (samples, delays_ms) in trace.samples().chunks(10).zip(delays_ms.chunks(10)) {
        let last = samples[samples.len() - 1];
        let mean = |of: &dyn Fn(&shortline_sim::uplink::Sample) -> f64| {
            samples.iter().map(of).sum::<f64>() / samples.len() as f64
        };
        println!(
            "{:6.1} {:7.2} {:9.2} {:7.2} {:4.2} {:6.1} {:6.1} {:6.1} {:7.2} {:7.2} {} {:?}",
            last.at_s,
            last.link_bps / 1e6,
            last.paced_bps.unwrap_or(f64::NAN) / 1e6,
            last.estimate_bps.unwrap_or(f64::NAN) / 1e6,
            last.confidence,
            mean(&|sample| sample.queue_ms),
            last.seen_delay_ms.unwrap_or(f64::NAN),
            delays_ms[delays_ms.len() - 1],
            mean(&|sample| sample.ours_bps) / 1e6,
            mean(&|sample| sample.cross_bps) / 1e6,
            last.state,
            last.limited_by,
        );
    }
}

fn plan(name: &str) -> Option<Plan> {
    let mut plan = Plan::new(10e6, 20.0, 1);
    match name {
        "start" => {}
        "steps" => plan.rates = vec![(0.0, 10e6), (6.0, 5e6), (12.0, 20e6)],
        "cross" => plan.cross = vec![Cross::download(5.0, 12.0, 30.0)],
        "cross10" => {
            plan.cross = (0..10)
                .map(|k| Cross::download(5.0, 12.0, 20.0 + f64::from(k) * 5.0))
                .collect()
        }
        "w1" => plan.demand = responses(1.4, 0.6),
        "lab" => {
            plan.demand = responses(1.4, 0.6);
            plan.paths = vec![near()];
        }
        "fast" => {
            plan.seconds = 9.0;
            plan.rates = vec![(0.0, 100e6), (3.0, 50e6), (6.0, 200e6)];
            plan.demand = responses(1.6, 1.6);
            plan.paths = vec![near()];
        }
        "loss" => plan.loss = 0.03,
        "route" => plan.rtt_rise = Some((8.0, 40.0)),
        "wan" | "wan-w1" => {
            if name == "wan-w1" {
                plan.demand = responses(1.4, 0.6);
            }
            plan.paths = (1..=10)
                .map(|k| Path {
                    rtt_ms: 20.0 * f64::from(k),
                    ..Path::default()
                })
                .collect();
        }
        _ => return None,
    }
    Some(plan)
}

/// A client a millisecond away.
fn near() -> Path {
    Path {
        rtt_ms: 1.0,
        noise_ms: 0.05,
        ..Path::default()
    }
}

/// Responses whose load alternates every five seconds.
fn responses(high: f64, low: f64) -> Demand {
    Demand::Responses {
        high,
        low,
        period_s: 5.0,
    }
}
