//! The environments of the papers, by name: networks, habits and systems.
//!
//! | name | what it is |
//! |---|---|
//! | `today` | a local network and today's system |
//! | `a` to `j` | 000, Table II: the baseline, then one factor each; `j` combines the realistic ones |
//! | `delays` | 000, 5.1 (B): five groups of clients from 0 to 150 ms at the same time |
//! | `wans` | 004, Table 2: six groups of clients at the same time, emulated only towards the clients |
//!
//! Loss and delay of 000 apply to both directions, because its module changed `ip_rcv` and `ip_output`
//! of the client machines. So an RTT is halved, and a loss rate applies to each direction. 000 names only
//! the shortest and the longest of its five delays; those between are evenly spaced.
//!
//! `a` to `j` and `delays` have the system of 000. With the suffix `-today` a name means the same with
//! today's system.

use std::str::FromStr;
use std::time::Duration;

use shortline_sched::units::Span;
use shortline_testbed::bed::Setup;
use shortline_testbed::bed::setup::{Abort, ClientGroup, CongestionControl, SynTimeouts, System};
use shortline_testbed::wan::loss::Loss;
use shortline_testbed::wan::path::Way;
use thiserror::Error;

/// All names.
const NAMES: [&str; 13] = [
    "today", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "delays", "wans",
];
/// The suffix of a name with today's system.
const TODAY: &str = "-today";

/// An environment, parsed from its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment(pub Setup);

/// No environment has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("setup `{0}`: want one of {names}, or one of these with -today behind it", names = NAMES.join(", "))]
pub struct UnknownEnvironment(String);

impl FromStr for Environment {
    type Err = UnknownEnvironment;

    fn from_str(name: &str) -> Result<Self, UnknownEnvironment> {
        let setup = match name.strip_suffix(TODAY) {
            None => of_paper(name),
            Some(then) => of_paper(then).map(as_today),
        };
        setup
            .map(Self)
            .ok_or_else(|| UnknownEnvironment(name.into()))
    }
}

/// The same environment with today's system, and with `-today` in its name.
fn as_today(mut setup: Setup) -> Setup {
    setup.system = System::today();
    if setup.name != "today" {
        setup.name += TODAY;
    }
    setup
}

/// The environment of that name, with its paper's system.
fn of_paper(name: &str) -> Option<Setup> {
    let base = baseline(name);
    let abort = |after_s: u64, retries: u32| {
        Some(Abort {
            after: ms(1000 * after_s),
            retries,
        })
    };
    let system = base.system;
    Some(match name {
        "today" => Setup::today(),
        "a" => base,
        "b" => base.with_network(ms(100), 0.0),
        "c" => base.with_network(ms(0), 0.05),
        "d" => base.with_network(ms(100), 0.05),
        "e" => Setup {
            requests_per_connection: Some(5),
            ..base
        },
        "f" => Setup {
            system: System {
                initial_rto: ms(500),
                ..system
            },
            ..base
        },
        // The value that differs from the baseline. The table's own column has cookies off.
        "g" => Setup {
            system: System {
                syn_cookies: true,
                ..system
            },
            ..base
        },
        "h" => Setup {
            abort: abort(10, 3),
            ..base
        },
        "i" => Setup {
            packet_bytes: 536,
            ..base
        },
        "j" => Setup {
            requests_per_connection: Some(5),
            abort: abort(7, 3),
            ..base.with_network(ms(100), 0.05)
        },
        "delays" => Setup {
            groups: five_delays(),
            ..base
        },
        "wans" => Setup {
            name: name.into(),
            groups: six_wans(),
            ..Setup::today()
        },
        _ => return None,
    })
}

/// 000, Table II, the baseline.
fn baseline(name: &str) -> Setup {
    Setup {
        name: name.into(),
        system: system_of_000(),
        ..Setup::today()
    }
}

/// 000, 2.5 and Table II (A).
fn system_of_000() -> System {
    System {
        accept_queue: 512,
        syn_queue: 512,
        syn_cookies: false,
        workers: Some(350),
        initial_rto: ms(3000),
        syn_timeouts: SynTimeouts::Doubled,
        congestion_control: CongestionControl::Cubic,
    }
}

fn five_delays() -> Vec<ClientGroup> {
    let rtt = |step: u32| Span::from_duration(Duration::from_micros(37_500) * step);
    let group = |step| ClientGroup::symmetric(format!("rtt {}", rtt(step)), rtt(step), 0.0);
    (0..5).map(group).collect()
}

fn six_wans() -> Vec<ClientGroup> {
    let table = [
        (50, 10, 0.005),
        (100, 20, 0.01),
        (150, 30, 0.015),
        (200, 40, 0.02),
        (250, 40, 0.025),
        (350, 50, 0.03),
    ];
    let wans = (1..).zip(table);
    wans.map(|(number, (delay_ms, jitter_ms, loss))| received(number, delay_ms, jitter_ms, loss))
        .collect()
}

/// One of 004's networks, which affects only what the clients receive.
fn received(number: usize, delay_ms: u64, jitter_ms: u64, loss: f64) -> ClientGroup {
    ClientGroup {
        name: format!("wan{number}"),
        share: 1.0,
        down: Way {
            jitter: ms(jitter_ms),
            ..Way::of(ms(delay_ms), Loss::Uniform { probability: loss })
        },
        up: Way::direct(),
    }
}

fn ms(milliseconds: u64) -> Span {
    Span::from_duration(Duration::from_millis(milliseconds))
}

#[cfg(test)]
mod tests;
