//! What the kernel's TCP has dropped and retransmitted since the namespace was made. It comes from
//! `/proc/net/netstat` and `/proc/net/snmp`: a line of names, then one of values.
//!
//! | here | TcpExt or Tcp | counts a packet that was dropped because |
//! |---|---|---|
//! | `listen_drops` | ListenDrops | of any reason in a listening socket, every dropped SYN included |
//! | `accept_drops` | ListenOverflows | the accept queue was full: a SYN, or the ACK of a SYN-ACK |
//! | `syn_queue_full` | TCPReqQFullDrop | the SYN queue was full, and no cookies |
//! | `syn_cookies` | TCPReqQFullDoCookies | (answered with a cookie instead of dropped) |

use std::fs;
use std::io;

/// Totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Packets to listening sockets that were dropped.
    pub listen_drops: u64,
    /// Those dropped because the accept queue was full.
    pub accept_drops: u64,
    /// Those dropped because the SYN queue was full.
    pub syn_queue_full: u64,
    /// SYNs answered with a cookie because the SYN queue was full.
    pub syn_cookies: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// The counters of this thread's namespace.
///
/// # Errors
/// If `/proc` is not there.
pub fn read() -> io::Result<TcpCounters> {
    let netstat = fs::read_to_string("/proc/thread-self/net/netstat")?;
    let snmp = fs::read_to_string("/proc/thread-self/net/snmp")?;
    Ok(parse(&netstat, &snmp))
}

fn parse(netstat: &str, snmp: &str) -> TcpCounters {
    let extended = Group::find(netstat, "TcpExt:");
    let plain = Group::find(snmp, "Tcp:");
    TcpCounters {
        listen_drops: extended.value("ListenDrops"),
        accept_drops: extended.value("ListenOverflows"),
        syn_queue_full: extended.value("TCPReqQFullDrop"),
        syn_cookies: extended.value("TCPReqQFullDoCookies"),
        retransmitted: plain.value("RetransSegs"),
        timeouts: extended.value("TCPTimeouts"),
    }
}

/// Two lines with the same first word: names and values.
struct Group<'a> {
    names: &'a str,
    values: &'a str,
}

impl<'a> Group<'a> {
    fn find(text: &'a str, group: &str) -> Self {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
        Self {
            names: lines.next().unwrap_or_default(),
            values: lines.next().unwrap_or_default(),
        }
    }

    /// The counter, 0 if this kernel does not have it.
    fn value(&self, name: &str) -> u64 {
        let names = self.names.split_whitespace();
        let mut pairs = names.zip(self.values.split_whitespace());
        let found = pairs.find(|(candidate, _)| *candidate == name);
        found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn values_are_found_under_their_names() {
        let netstat = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts\n\
             TcpExt: 1 20 30 4\nIpExt: ListenDrops\nIpExt: 99\n";
        let snmp = "Tcp: RtoMin RetransSegs\nTcp: 200 7\n";
        let want = TcpCounters {
            listen_drops: 30,
            accept_drops: 20,
            retransmitted: 7,
            timeouts: 4,
            ..TcpCounters::default()
        };
        assert_eq!(parse(netstat, snmp), want);
    }

    #[test]
    fn this_kernel_has_them() {
        let text = fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
        for name in [
            "ListenDrops",
            "ListenOverflows",
            "TCPReqQFullDrop",
            "TCPTimeouts",
        ] {
            assert!(text.contains(name), "{name}");
        }
        assert!(read().is_ok());
    }
}
