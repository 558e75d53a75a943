//! How a link is configured, and what contradicts itself.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use shortline_sched::units::Rate;
use shortline_sched::uplink::UplinkConfig;
use shortline_sched::{Policy, Urgency};
use thiserror::Error;

use crate::bands::qdisc::QdiscError;
use crate::driver::device::DeviceError;

/// How the kernel's queue is kept short, so that responses wait where they can be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkMode {
    /// As `off` while no queue is seen, `paced` by the rate once it is found out, `slots` where
    /// nothing can be.
    Auto,
    /// Grants follow the uplink's known rate.
    Paced,
    /// At most N quanta hold unacknowledged bytes; the rate need not be known.
    Slots,
    /// At most N blocks are being written to sockets, as in paper 001: for the lab.
    Writers,
    /// The kernel's qdisc orders packets, by a priority that follows the response's size.
    Bands,
    /// No scheduling: a plain server.
    Off,
}

impl fmt::Display for LinkMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Auto => "auto",
            Self::Paced => "paced",
            Self::Slots => "slots",
            Self::Writers => "writers",
            Self::Bands => "bands",
            Self::Off => "off",
        })
    }
}

impl FromStr for LinkMode {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        match text.to_ascii_lowercase().as_str() {
            "auto" => Ok(Self::Auto),
            "paced" => Ok(Self::Paced),
            "slots" => Ok(Self::Slots),
            "off" => Ok(Self::Off),
            "writers" => Ok(Self::Writers),
            "bands" => Ok(Self::Bands),
            _ => Err(LinkError::UnknownMode(text.to_owned())),
        }
    }
}

/// Everything a [`crate::Link`] is told.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// How the kernel's queue is kept short.
    pub mode: LinkMode,
    /// The uplink's rate, IP bytes and [`Self::packet_header_bytes`] per packet; `paced` needs it.
    pub rate: Option<Rate>,
    /// What a rate that is found out never falls below, mode `auto`.
    pub rate_min: Rate,
    /// The order of the responses.
    pub policy: Policy,
    /// What waiting adds to the order.
    pub urgency: Urgency,
    /// Responses that may hold unacknowledged bytes in the kernel, mode `slots`; writers, mode
    /// `writers`.
    pub slots_max: usize,
    /// Whether control packets (SYN-ACKs, what precedes the first response) have a band of their own
    /// above all others, mode `bands`; else they wait with the largest responses.
    pub control_band: bool,
    /// Payload bytes of one grant; `None`: three segments when paced at 20 Mbit/s and above and
    /// one below (a quantum is the time a small response waits behind a large one), 14480 in slots, 8192 in bands, 32 KiB for a writer.
    pub quantum_bytes: Option<u32>,
    /// Jobs that may wait at once; one more is refused.
    pub jobs_max: usize,
    /// With policy `shares`: payload bytes that a client may get in a row before what it asks for beyond
    /// waits behind those who ask for less. 0: never.
    pub burst_bytes: u64,
    /// Whether clients on the loopback interface are scheduled too.
    pub schedule_loopback: bool,
    /// The uplink's interface; `None`: the one that owns the address clients connect to, in mode
    /// `bands` the only one with bands.
    pub device: Option<String>,
    /// What RATE counts per packet beside its IP bytes: 14 for Ethernet.
    pub packet_header_bytes: u32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            mode: LinkMode::Slots,
            rate: None,
            rate_min: Rate::from_bps(UplinkConfig::default().rate_bps_min),
            policy: Policy::Shares,
            urgency: Urgency::None,
            slots_max: 2,
            control_band: true,
            quantum_bytes: None,
            jobs_max: 100_000,
            burst_bytes: 128 << 10,
            schedule_loopback: false,
            device: None,
            packet_header_bytes: 14,
        }
    }
}

/// What is wrong with a link's configuration.
#[derive(Debug, Error)]
pub enum LinkError {
    /// `paced` without a rate.
    #[error("link mode 'paced' needs the uplink's rate: give --uplink RATE, such as 10mbit")]
    PacedWithoutRate,
    /// `bands` with a policy that has none.
    #[error(
        "link mode 'bands' has no bands for policy `{0}`: use bands, quickfix, srrt, stert, fcf or \
         swift"
    )]
    PolicyWithoutBands(String),
    /// Not a link mode.
    #[error("unknown link mode '{0}': use auto, paced, slots, bands or off")]
    UnknownMode(String),
    /// A limit of nothing.
    #[error("{0} is 0: at least 1 is needed")]
    Zero(&'static str),
    /// The device's queues cannot be used.
    #[error(transparent)]
    Qdisc(#[from] QdiscError),
    /// The process may not choose the bands.
    #[error(
        "the bands of device '{device}' need SO_PRIORITY {priority}, which is not permitted: run as \
         root, or give the program CAP_NET_ADMIN"
    )]
    PriorityNotPermitted {
        /// The interface.
        device: String,
        /// The highest priority.
        priority: u32,
    },
    /// A socket takes no priority.
    #[error("SO_PRIORITY: {0}")]
    Priority(std::io::Error),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The alarm cannot be made.
    #[error("no timer for the pacer: {0}")]
    Timer(std::io::Error),
}

impl LinkConfig {
    /// Whether the parts fit together.
    pub fn check(&self) -> Result<(), LinkError> {
        if self.mode == LinkMode::Paced && self.rate.is_none() {
            return Err(LinkError::PacedWithoutRate);
        }
        for (name, value) in [
            ("slots", self.slots_max),
            ("jobs_max", self.jobs_max),
            (
                "quantum",
                self.quantum_bytes.map_or(1, |bytes| bytes as usize),
            ),
        ] {
            if value == 0 {
                return Err(LinkError::Zero(name));
            }
        }
        Ok(())
    }
}
