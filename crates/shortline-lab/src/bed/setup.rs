//! The environment of a run, as plain data: the clients' networks, how they use connections, when
//! they give up, the length of packets, and how the server's system is set.
//!
//! | name | what it is |
//! |---|---|
//! | `today` | a local network and today's system: what the bed is unless told otherwise |
//! | `a` to `j` | 000, Table II: the baseline and one factor each, `j` all that is realistic |
//! | `delays` | 000, 5.1 (B): five groups of clients from 0 to 150 ms, at once |
//! | `wans` | 004, Table 2: six groups of clients, at once, on what they receive |
//!
//! Loss and delay of 000 apply to both ways (its module changed `ip_rcv` and `ip_output` of the
//! client machines): an RTT is halved, a loss rate is each way's. It names only the ends of its
//! five delays; those between are taken evenly.
//!
//! `a` to `j` and `delays` have the system of 000; [`Setup::as_today`] makes the same with today's.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_sched::units::{Rate, Span};
use thiserror::Error;

use crate::wan::loss::Loss;
use crate::wan::path::{PathError, Way};

/// The Ethernet's.
const PACKET_BYTES: u32 = 1500;
/// The least that IPv4 hosts must take (RFC 791).
const PACKET_BYTES_MIN: u32 = 576 - 40;
/// What follows a name where the system is today's.
const TODAY: &str = "-today";
/// More groups than an experiment has; each has a network of 254 addresses in the bed.
pub const GROUPS_MAX: usize = 200;

/// The environment of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Its name, as in the table above.
    pub name: String,
    /// The clients, by the networks they are in.
    pub groups: Vec<ClientGroup>,
    /// The longest packet, IP head included (the MTU).
    pub packet_bytes: u32,
    /// How many requests a connection serves; without it a few connections serve all (HTTP/2).
    pub requests_per_connection: Option<u32>,
    /// When users give up and try again, if they do.
    pub abort: Option<Abort>,
    /// The server's system.
    pub system: System,
    /// Where the uplink is narrow.
    #[serde(default, skip_serializing_if = "Bottleneck::is_server")]
    pub bottleneck: Bottleneck,
}

/// Where the uplink is narrow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bottleneck {
    /// At the server's own interface, behind the FIFO that the bed has.
    #[default]
    Server,
    /// One hop away, behind a FIFO that holds what the link carries in so much time.
    Hop {
        /// How long its last packet waits when it is full.
        queue: Span,
    },
}

impl Bottleneck {
    fn is_server(&self) -> bool {
        *self == Self::Server
    }
}

/// Clients in one network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientGroup {
    /// Its name in results.
    pub name: String,
    /// How many of the requests are theirs, as a share of all groups' sum.
    pub share: f64,
    /// From the uplink to them.
    pub down: Way,
    /// And back.
    pub up: Way,
}

/// Users who press reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abort {
    /// How long they wait for a response.
    pub after: Span,
    /// How often they try again before they go.
    pub retries: u32,
}

/// How the server's system is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// Connections that may wait for `accept` (000's ACK queue), whatever the server asks for.
    pub accept_queue: u32,
    /// Connections that may wait for the handshake's end.
    pub syn_queue: u32,
    /// Whether a full queue of those is answered with cookies.
    pub syn_cookies: bool,
    /// Requests that Apache serves at once; without it, as many as it does well.
    pub workers: Option<u32>,
    /// How long TCP waits for the answer to a SYN or SYN-ACK.
    pub initial_rto: Span,
    /// How TCP finds its rate, on the clients' machines too.
    #[serde(default, skip_serializing_if = "CongestionControl::is_cubic")]
    pub congestion_control: CongestionControl,
}

/// How TCP finds its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// As in the papers and on most servers (RFC 9438).
    #[default]
    Cubic,
    /// By a model of the path (draft-ietf-ccwg-bbr; Linux has its first version).
    Bbr,
}

impl CongestionControl {
    fn is_cubic(&self) -> bool {
        *self == Self::Cubic
    }

    /// As the kernel calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

/// A setup that cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SetupError {
    /// No setup has that name.
    #[error("setup `{0}`: want one of {names}, or one of these with -today behind it", names = Setup::NAMES.join(", "))]
    Unknown(String),
    /// One of its paths is wrong.
    #[error("group `{group}`: {problem}")]
    Path {
        /// Which group's.
        group: String,
        /// What is wrong.
        problem: PathError,
    },
    /// A value out of its range.
    #[error("{what} is {value}: want {low} to {high}")]
    OutOfRange {
        /// Which value.
        what: &'static str,
        /// What it is.
        value: f64,
        /// The least.
        low: f64,
        /// The most.
        high: f64,
    },
}

impl System {
    /// What Linux and servers do today: long queues, cookies, a second.
    pub fn today() -> Self {
        Self {
            accept_queue: 65_535,
            syn_queue: 65_535,
            syn_cookies: true,
            workers: None,
            initial_rto: ms(1000),
            congestion_control: CongestionControl::Cubic,
        }
    }

    /// 000, 2.5 and Table II (A).
    pub fn paper_000() -> Self {
        Self {
            accept_queue: 512,
            syn_queue: 512,
            syn_cookies: false,
            workers: Some(350),
            initial_rto: ms(3000),
            congestion_control: CongestionControl::Cubic,
        }
    }
}

impl ClientGroup {
    /// Clients beside the uplink: no network between.
    pub fn local() -> Self {
        Self::symmetric("local", ms(0), 0.0)
    }

    /// Clients whose packets take half the `rtt` each way and are lost each way with probability
    /// `loss`.
    pub fn symmetric(name: impl Into<String>, rtt: Span, loss: f64) -> Self {
        let way = Way::of(
            Span::from_duration(rtt.duration() / 2),
            if loss == 0.0 {
                Loss::None
            } else {
                Loss::Uniform { probability: loss }
            },
        );
        Self {
            name: name.into(),
            share: 1.0,
            down: way.clone(),
            up: way,
        }
    }

    /// Clients behind a link of that rate, both ways (001, 4.2).
    pub fn behind(name: impl Into<String>, rate: Rate) -> Self {
        let way = Way {
            rate: Some(rate),
            ..Way::direct()
        };
        Self {
            name: name.into(),
            share: 1.0,
            down: way.clone(),
            up: way,
        }
    }

    /// One of 004's: all of it on what the clients receive.
    fn received(number: usize, delay_ms: u64, jitter_ms: u64, loss: f64) -> Self {
        Self {
            name: format!("wan{number}"),
            share: 1.0,
            down: Way {
                jitter: ms(jitter_ms),
                ..Way::of(ms(delay_ms), Loss::Uniform { probability: loss })
            },
            up: Way::direct(),
        }
    }

    /// Whether there is nothing to emulate.
    pub fn is_local(&self) -> bool {
        self.down.is_direct() && self.up.is_direct()
    }
}

impl Setup {
    /// All names.
    pub const NAMES: [&str; 13] = [
        "today", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "delays", "wans",
    ];

    /// A local network, one request a connection, today's system.
    pub fn today() -> Self {
        Self {
            name: "today".into(),
            groups: vec![ClientGroup::local()],
            packet_bytes: PACKET_BYTES,
            requests_per_connection: Some(1),
            abort: None,
            system: System::today(),
            bottleneck: Bottleneck::Server,
        }
    }

    /// The same environment with today's system, `-today` added to its name.
    pub fn as_today(mut self) -> Self {
        self.system = System::today();
        if self.name != "today" {
            self.name += TODAY;
        }
        self
    }

    /// All clients in one network.
    pub fn with_network(mut self, rtt: Span, loss: f64) -> Self {
        self.groups = vec![ClientGroup::symmetric("all", rtt, loss)];
        self
    }

    /// The same with an uplink that is narrow one hop away, behind a FIFO of so much time.
    pub fn with_hop(mut self, queue: Span) -> Self {
        self.bottleneck = Bottleneck::Hop { queue };
        self
    }

    /// Whether packets meet anything between the uplink and the clients.
    pub fn has_wan(&self) -> bool {
        !self.groups.iter().all(ClientGroup::is_local)
    }

    /// Refuses what cannot be.
    ///
    /// # Errors
    /// The first value that is wrong, and where.
    pub fn check(&self) -> Result<(), SetupError> {
        within(
            "number of groups",
            self.groups.len() as f64,
            1.0,
            GROUPS_MAX as f64,
        )?;
        let (low, high) = (f64::from(PACKET_BYTES_MIN), f64::from(PACKET_BYTES));
        within("packet_bytes", f64::from(self.packet_bytes), low, high)?;
        within(
            "accept_queue",
            f64::from(self.system.accept_queue),
            1.0,
            65_535.0,
        )?;
        within("syn_queue", f64::from(self.system.syn_queue), 1.0, 65_535.0)?;
        for group in &self.groups {
            within("share", group.share, f64::MIN_POSITIVE, f64::MAX)?;
            for way in [&group.down, &group.up] {
                way.check().map_err(|problem| SetupError::Path {
                    group: group.name.clone(),
                    problem,
                })?;
            }
        }
        Ok(())
    }

    /// 000, Table II, the baseline.
    fn baseline(name: &str) -> Self {
        Self {
            name: name.into(),
            system: System::paper_000(),
            ..Self::today()
        }
    }
}

impl FromStr for Setup {
    type Err = SetupError;

    /// The setup of that name; with `-today` behind it, that with today's system.
    fn from_str(name: &str) -> Result<Self, SetupError> {
        if let Some(then) = name.strip_suffix(TODAY) {
            let unknown = || SetupError::Unknown(name.into());
            let then = Some(then).filter(|then| !then.ends_with(TODAY));
            let then: Self = then
                .and_then(|then| then.parse().ok())
                .ok_or_else(unknown)?;
            return Ok(then.as_today());
        }
        let base = Self::baseline(name);
        let abort = |after_s: u64, retries: u32| {
            Some(Abort {
                after: ms(1000 * after_s),
                retries,
            })
        };
        let system = base.system;
        Ok(match name {
            "today" => Self::today(),
            "a" => base,
            "b" => base.with_network(ms(100), 0.0),
            "c" => base.with_network(ms(0), 0.05),
            "d" => base.with_network(ms(100), 0.05),
            "e" => Self {
                requests_per_connection: Some(5),
                ..base
            },
            "f" => Self {
                system: System {
                    initial_rto: ms(500),
                    ..system
                },
                ..base
            },
            // The value that differs from the baseline; the table's own column has them off.
            "g" => Self {
                system: System {
                    syn_cookies: true,
                    ..system
                },
                ..base
            },
            "h" => Self {
                abort: abort(10, 3),
                ..base
            },
            "i" => Self {
                packet_bytes: 536,
                ..base
            },
            "j" => Self {
                requests_per_connection: Some(5),
                abort: abort(7, 3),
                ..base.with_network(ms(100), 0.05)
            },
            "delays" => Self {
                groups: five_delays(),
                ..base
            },
            "wans" => Self {
                name: name.into(),
                groups: six_wans(),
                ..Self::today()
            },
            _ => return Err(SetupError::Unknown(name.into())),
        })
    }
}

impl fmt::Display for Setup {
    /// Its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
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
    wans.map(|(number, (delay_ms, jitter_ms, loss))| {
        ClientGroup::received(number, delay_ms, jitter_ms, loss)
    })
    .collect()
}

fn within(what: &'static str, value: f64, low: f64, high: f64) -> Result<(), SetupError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(SetupError::OutOfRange {
        what,
        value,
        low,
        high,
    })
}

fn ms(milliseconds: u64) -> Span {
    Span::from_duration(Duration::from_millis(milliseconds))
}

#[cfg(test)]
mod tests;
