//! The queue before the uplink: the FIFO that the papers' FAIR had, or one of those that are made
//! against long queues today, which serve every flow in turn.

use std::fmt;
use std::str::FromStr;

/// A queue that gives every flow its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairQueue {
    /// A queue a flow, each kept short by CoDel (RFC 8290).
    FqCodel,
    /// A queue a flow, paced.
    Fq,
    /// The same as `fq_codel` with isolation of hosts and a rate of its own.
    Cake,
    /// The same where each client has its turn and, inside it, each of its flows: `dual-dsthost`.
    CakeHosts,
}

impl FairQueue {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::FqCodel, Self::Fq, Self::Cake, Self::CakeHosts];

    /// The kernel's name, with what it is told if that is not the usual.
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
