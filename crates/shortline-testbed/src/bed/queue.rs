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

/// Drops and backlog of the FIFO, or of all bands together, in what `tc -s -j qdisc show` printed.
pub(super) fn parse_fifo(text: &str) -> Option<(u64, u64)> {
    let qdiscs: serde_json::Value = serde_json::from_str(text).ok()?;
    let fifo = qdiscs
        .as_array()?
        .iter()
        .find(|qdisc| qdisc["kind"] == "pfifo_fast" || qdisc["kind"] == "bfifo")
        .or_else(|| {
            qdiscs
                .as_array()?
                .iter()
                .find(|qdisc| qdisc["root"] == true)
        })?;
    Some((fifo["drops"].as_u64()?, fifo["qlen"].as_u64()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_fifo_is_found_behind_the_htb() {
        let text = r#"[{"kind":"htb","handle":"1:","root":true,"drops":9,"qlen":9},
            {"kind":"pfifo_fast","parent":"1:10","bytes":3,"drops":4,"backlog":1514,"qlen":1}]"#;
        assert_eq!(parse_fifo(text), Some((4, 1)));
        let bands = r#"[{"kind":"htb","handle":"1:","root":true,"drops":9,"qlen":2}]"#;
        assert_eq!(parse_fifo(bands), Some((9, 2)));
        assert_eq!(parse_fifo("[]"), None);
    }
}
