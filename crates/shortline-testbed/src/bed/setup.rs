//! The environment of a run, as plain data: the clients' networks, how they use connections, when
//! they give up, the length of packets, and the settings of the server's system.
//!
//! [`Setup::today`] is the default: a local network and today's system.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_sched::units::{Rate, Span};
use thiserror::Error;

use crate::wan::loss::Loss;
use crate::wan::path::{PathError, Way};

/// The MTU of Ethernet.
const PACKET_BYTES: u32 = 1500;
/// The smallest MTU that IPv4 hosts must accept (RFC 791).
const PACKET_BYTES_MIN: u32 = 576 - 40;
/// The most groups. Each has a network of 254 addresses in the bed.
pub const GROUPS_MAX: usize = 200;

/// The environment of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Its name.
    pub name: String,
    /// The clients, by network.
    pub groups: Vec<ClientGroup>,
    /// The longest packet, IP head included (the MTU).
    pub packet_bytes: u32,
    /// How many requests a connection serves. `None`: a few connections serve all (HTTP/2).
    pub requests_per_connection: Option<u32>,
    /// When users give up and try again. `None`: never.
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
    /// One hop away, behind a FIFO that holds what the link carries in some time.
    Hop {
        /// How long the last packet of a full FIFO waits.
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
    /// The weight of their requests: the share is this weight over the sum of all groups'.
    pub share: f64,
    /// From the uplink to them.
    pub down: Way,
    /// From them to the uplink.
    pub up: Way,
}

/// Users who press reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abort {
    /// How long they wait for a response.
    pub after: Span,
    /// How often they try again before they leave.
    pub retries: u32,
}

/// The settings of the server's system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// Connections that may wait for `accept` (the accept queue), whatever the server asks for.
    pub accept_queue: u32,
    /// Connections that may wait for the handshake's end.
    pub syn_queue: u32,
    /// Whether the system answers with cookies when that queue is full.
    pub syn_cookies: bool,
    /// Requests that Apache serves at once. `None`: as many as suit it.
    pub workers: Option<u32>,
    /// TCP's first timeout of a SYN or SYN-ACK.
    pub initial_rto: Span,
    /// How the clients' timeouts of a SYN grow.
    #[serde(default, skip_serializing_if = "SynTimeouts::are_doubled")]
    pub syn_timeouts: SynTimeouts,
    /// The congestion control, on the clients' machines too.
    #[serde(default, skip_serializing_if = "CongestionControl::is_cubic")]
    pub congestion_control: CongestionControl,
}

/// Congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// The default on most servers (RFC 9438).
    #[default]
    Cubic,
    /// BBR models the path (draft-ietf-ccwg-bbr; Linux has its first version).
    Bbr,
}

impl CongestionControl {
    fn is_cubic(&self) -> bool {
        *self == Self::Cubic
    }

    /// The kernel's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

/// How timeouts of a SYN grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SynTimeouts {
    /// Each is twice the one before (RFC 6298), as in the papers' systems.
    #[default]
    Doubled,
    /// The first four after the first are as long as that, as Linux does by itself since 6.5.
    Linear,
}

impl SynTimeouts {
    fn are_doubled(&self) -> bool {
        *self == Self::Doubled
    }

    /// How many are linear.
    pub fn linear(self) -> u8 {
        match self {
            Self::Doubled => 0,
            Self::Linear => 4,
        }
    }
}

/// Why a setup is invalid.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SetupError {
    /// One of its paths is wrong.
    #[error("group `{group}`: {problem}")]
    Path {
        /// The group.
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
    /// The defaults of Linux and servers today: long queues, cookies, a first timeout of one second. But timeouts of a SYN double,
    /// which all beds can do.
    pub fn today() -> Self {
        Self {
            accept_queue: 65_535,
            syn_queue: 65_535,
            syn_cookies: true,
            workers: None,
            initial_rto: ms(1000),
            syn_timeouts: SynTimeouts::Doubled,
            congestion_control: CongestionControl::Cubic,
        }
    }
}

impl ClientGroup {
    /// Clients right behind the uplink, without a network between.
    pub fn local() -> Self {
        Self::symmetric("local", ms(0), 0.0)
    }

    /// Clients whose packets take half the `rtt` each way, and are lost with probability `loss` each
    /// way.
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

    /// Whether there is nothing to emulate.
    pub fn is_local(&self) -> bool {
        self.down.is_direct() && self.up.is_direct()
    }
}

impl Setup {
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

    /// All clients in one network.
    pub fn with_network(mut self, rtt: Span, loss: f64) -> Self {
        self.groups = vec![ClientGroup::symmetric("all", rtt, loss)];
        self
    }

    /// The same with an uplink that is narrow one hop away, behind a FIFO of that time.
    pub fn with_hop(mut self, queue: Span) -> Self {
        self.bottleneck = Bottleneck::Hop { queue };
        self
    }

    /// Whether there is anything to emulate between the uplink and the clients.
    pub fn has_wan(&self) -> bool {
        !self.groups.iter().all(ClientGroup::is_local)
    }

    /// Checks the setup.
    ///
    /// # Errors
    /// The first wrong value, and its place.
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
}

impl fmt::Display for Setup {
    /// Its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
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
