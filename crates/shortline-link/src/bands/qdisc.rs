//! The kernel's own priority queues: which bands a device has, how a socket chooses one, and how
//! they are installed and removed, over netlink (rtnetlink(7), tc(8)).
//!
//! Source: papers 003 3.2 and 000 3.1 order packets with the 16-band `prio` qdisc. Where the
//! kernel lacks it, HTB classes that borrow everything from one parent are served strictly by their
//! `prio` (8 of them), `pfifo_fast` has three strict bands (the quick fix of 003 7), and `fq` three
//! weighted ones.
//!
//! Departures: under HTB each band keeps 8 kbit/s whatever is above it, since a class needs a rate of its own
//! (0.08 % of 10 Mbit/s). `fq` has weights and no strict order; with 16384 to 128 to 1 it comes near enough.
//!
//! | part | what it does |
//! |---|---|
//! | [`bands`] | reads the bands of a device, highest first, with what `SO_PRIORITY` means each |
//! | [`install()`], [`remove()`] | put a qdisc with bands at a device's root, and what was there back |
//! | [`shaper_of`] | the rate that the kernel states for a device |
//! | `options` | the kernel's structures, as bytes |
//! | `tree` | all qdiscs and classes of a device |

pub mod bands;
mod install;
mod options;
mod remembered;
mod shaper;
mod tree;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

pub use bands::{Band, DeviceBands, Traffic};
pub use install::{Installation, Installed, install, remove};
pub use shaper::{Shaper, shaper_of};

/// A qdisc that has bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Up to 16 strict bands.
    Prio,
    /// Up to 8 strict classes below one that has the link's rate.
    Htb,
    /// Three strict bands.
    PfifoFast,
    /// Three weighted bands, fair inside each (Linux 6.7).
    Fq,
}

impl Kind {
    /// All, the best first.
    pub const ALL: [Kind; 4] = [Kind::Prio, Kind::Htb, Kind::PfifoFast, Kind::Fq];

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prio => "prio",
            Self::Htb => "htb",
            Self::PfifoFast => "pfifo_fast",
            Self::Fq => "fq",
        }
    }

    /// The fewest and the most bands.
    pub fn bands_range(self) -> (usize, usize) {
        match self {
            Self::Prio => (2, 16),
            Self::Htb => (2, 8),
            Self::PfifoFast | Self::Fq => (3, 3),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == text);
        kind.ok_or_else(|| format!("unknown qdisc '{text}': use prio, htb, pfifo_fast or fq"))
    }
}

/// Why a device's queues cannot be read or changed.
#[derive(Debug, Error)]
pub enum QdiscError {
    /// No such interface in this network namespace.
    #[error("device '{0}' does not exist: `ip link` lists the names")]
    NoDevice(String),
    /// The root qdisc orders nothing.
    #[error(
        "device '{device}' has no priority bands (its qdisc is {kind}): install them with \
         `shortline uplink install --dev {device} --rate RATE`"
    )]
    NoBands {
        /// The interface.
        device: String,
        /// Its qdisc.
        kind: String,
    },
    /// No device at all has bands.
    #[error(
        "no device has priority bands: install them with \
         `shortline uplink install --dev DEVICE --rate RATE`"
    )]
    NoDeviceHasBands,
    /// More than one has.
    #[error("devices {0} have priority bands: say which with --uplink-device")]
    Ambiguous(String),
    /// Fewer bands than wanted.
    #[error(
        "device '{device}' has {has} bands, one of them for control packets, and {needed} bands of \
         sizes need {}: use fewer cutoffs, or install more bands", .needed + 1
    )]
    TooFewBands {
        /// The interface.
        device: String,
        /// Bands of its qdisc.
        has: usize,
        /// Bands of the policy.
        needed: usize,
    },
    /// Somebody configured the qdisc that is there.
    #[error(
        "device '{device}' has a {kind} qdisc that somebody configured: --replace takes its place \
         and `uplink remove` puts it back"
    )]
    Configured {
        /// The interface.
        device: String,
        /// Its qdisc.
        kind: String,
    },
    /// Bands of ours are there already.
    #[error(
        "device '{0}' has bands that were installed before: `shortline uplink remove` them first"
    )]
    InstalledBefore(String),
    /// What is there could not be put back.
    #[error(
        "device '{0}' has filters or classes that could not be put back later: remove them with \
         `tc qdisc del dev {0} root` first"
    )]
    NotRestorable(String),
    /// Nothing of ours is there.
    #[error("device '{0}' has nothing that `shortline uplink install` made")]
    NotInstalled(String),
    /// The qdisc was exchanged since.
    #[error(
        "device '{device}' has a {kind} qdisc that `shortline uplink install` did not make: it stays \
         (`tc qdisc del dev {device} root` removes it)"
    )]
    Foreign {
        /// The interface.
        device: String,
        /// Its qdisc.
        kind: String,
    },
    /// The kernel has none of the kinds asked for.
    #[error(
        "the kernel has no {0} qdisc: load its module (`modprobe sch_{0}`) or choose another --kind"
    )]
    NoKind(String),
    /// `htb` without a rate.
    #[error("htb needs the uplink's rate: add --rate RATE, such as 10mbit")]
    NoRate,
    /// A number of bands that the kind cannot have.
    #[error("{kind} has from {least} to {most} bands: {asked} is out of range")]
    BandsOutOfRange {
        /// The qdisc.
        kind: Kind,
        /// Its fewest bands.
        least: usize,
        /// Its most bands.
        most: usize,
        /// What was asked for.
        asked: usize,
    },
    /// The process may not.
    #[error("{0}: not permitted: run as root, or give the program CAP_NET_ADMIN")]
    NotPermitted(String),
    /// The file that remembers what was there.
    #[error("{path}: {problem}")]
    Memory {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Anything else the kernel said.
    #[error("{doing}: {source}")]
    Kernel {
        /// What was tried.
        doing: String,
        /// What the kernel said.
        source: std::io::Error,
    },
}

impl QdiscError {
    /// An answer of the kernel's while `doing` something.
    pub(crate) fn kernel(doing: impl Into<String>, source: std::io::Error) -> Self {
        let doing = doing.into();
        if source.raw_os_error() == Some(libc::EPERM) {
            return Self::NotPermitted(doing);
        }
        Self::Kernel { doing, source }
    }

    /// Whether what was asked for can never work, whatever the machine is like.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoRate | Self::BandsOutOfRange { .. })
    }
}
