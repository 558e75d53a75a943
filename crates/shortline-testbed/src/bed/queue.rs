//! The queue before the uplink: the FIFO of the papers' FAIR, or a queue of today that serves every
//! flow in turn and keeps its queues short.

use std::fmt;
use std::str::FromStr;

/// A queue that gives every flow its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairQueue {
    /// One queue for each flow, kept short by CoDel (RFC 8290).
    FqCodel,
    /// One queue for each flow, paced.
    Fq,
    /// As `fq_codel`, with isolation of hosts and a rate of its own.
    Cake,
    /// As `cake`, with turns for clients and, inside these, for each client's flows: `dual-dsthost`.
    CakeHosts,
}

impl FairQueue {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::FqCodel, Self::Fq, Self::Cake, Self::CakeHosts];

    /// The kernel's name, followed by the options if they are not the defaults.
    pub fn name(self) -> &'static str {
        match self {
            Self::FqCodel => "fq_codel",
            Self::Fq => "fq",
            Self::Cake => "cake",
            Self::CakeHosts => "cake-hosts",
        }
    }
}

impl fmt::Display for FairQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for FairQueue {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let found = Self::ALL.into_iter().find(|queue| queue.name() == name);
        found.ok_or(())
    }
}
