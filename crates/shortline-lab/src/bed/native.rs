//! The native bed: two network namespaces joined by a veth pair, and on the server's end
//! an uplink of a given rate with a FIFO of 100 packets before it, as on a leased line.
//!
//! ```text
//! [ server namespace ]  veth, HTB at the rate + pfifo 100  ==>  veth  [ client namespace ]
//!                       10.91.0.1                               10.91.0.2
//! ```
//! Segmentation offload is off: the rate and the FIFO are to see the packets that a wire
//! would see (`gso_max_segs 1`, which `ip` can set, so that ethtool is not needed; a veth
//! does no GRO unless told to). A packet counts as its IP bytes and 14 of Ethernet, with
//! HTB as with the device counters. Congestion control is cubic at both ends, as in the
//! papers and on most servers; a namespace can only choose what the initial namespace
//! allows, so that is widened for the run and put back by the janitor.
//!
//! A bed is made afresh for every server: no connection in TIME_WAIT and no path metric
//! (slow start threshold) of the last one is there to help or hinder the next.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use shortline_sched::units::Rate;

use super::Place;
use super::netns::Namespace;
use crate::command;
use crate::lab::Lab;
use crate::{LabError, proc_fs};

/// The congestion control at both ends.
pub const CONGESTION_CONTROL: &str = "cubic";
/// The server's address.
pub const SERVER_ADDRESS: &str = "10.91.0.1";
const CLIENT_ADDRESS: &str = "10.91.0.2";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Parameters of both namespaces.
const BOTH: [(&str, &str); 1] = [("net.ipv4.tcp_congestion_control", CONGESTION_CONTROL)];

/// So that a burst of connections waits in the server's own queues: their lengths are the
/// servers' choice (`backlog`, ListenBacklog), not the kernel's.
const SERVER: [(&str, &str); 2] = [
    ("net.core.somaxconn", "65535"),
    ("net.ipv4.tcp_max_syn_backlog", "65535"),
];

/// Without these the generator runs out of ports and starts requests seconds late.
const CLIENT: [(&str, &str); 3] = [
    ("net.ipv4.ip_local_port_range", "1024 65535"),
    ("net.ipv4.tcp_tw_reuse", "1"),
    ("net.ipv4.tcp_max_tw_buckets", "64"),
];

/// What the uplink is like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BedConfig {
    /// Its rate, in IP bytes and 14 a packet.
    pub rate: Rate,
    /// How many packets wait before it; one more is dropped.
    pub queue_packets: u32,
}

/// What the uplink has carried since the bed was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes sent, 14 a packet included.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets that the full FIFO dropped.
    pub drops: u64,
    /// Packets in the FIFO now.
    pub backlog_packets: u64,
}

/// Two namespaces and the uplink between them, gone when dropped.
#[derive(Debug)]
pub struct NativeBed {
    server: Namespace,
    client: Namespace,
    device: String,
}

impl NativeBed {
    /// Makes the bed.
    ///
    /// # Errors
    /// If `ip` or `tc` is missing or fails, or the kernel lacks HTB, veth or cubic.
    pub fn make(lab: &Lab, config: &BedConfig) -> Result<Self, LabError> {
        command::find("ip", "iproute2")?;
        command::find("tc", "iproute2")?;
        allow_congestion_control(lab)?;
        let namespace = |end: &str| {
            let name = format!("shortline-{}-{end}", lab.run_id());
            Namespace::make(lab.janitor(), name)
        };
        let bed = Self {
            server: namespace("server")?,
            client: namespace("client")?,
            device: format!("slu{}", lab.run_id()),
        };
        bed.join(&format!("slc{}", lab.run_id()))?;
        bed.limit(config)?;
        Ok(bed)
    }

    /// Where servers run.
    pub fn server_place(&self) -> Place {
        self.server.place()
    }

    /// Where the generator runs.
    pub fn client_place(&self) -> Place {
        self.client.place()
    }

    /// The uplink's device in the server's namespace.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The uplink's counters; `pid` is any process in the server's namespace.
    ///
    /// # Errors
    /// If `tc` fails or the process has ended.
    pub fn counters(&self, pid: i32) -> Result<Counters, LabError> {
        let (bytes, packets) = proc_fs::device_sent(pid, &self.device).unwrap_or_default();
        let arguments = ["-s", "-j", "qdisc", "show", "dev", &self.device];
        let text = self.server.tc(&arguments)?;
        let (drops, backlog_packets) = parse_fifo(&text).ok_or_else(|| LabError::Command {
            command: format!("tc {}", arguments.join(" ")),
            problem: "printed no pfifo".into(),
        })?;
        Ok(Counters {
            bytes,
            packets,
            drops,
            backlog_packets,
        })
    }

    fn join(&self, peer: &str) -> Result<(), LabError> {
        let device = self.device.as_str();
        let whole_packets = ["mtu", "1500", "gso_max_segs", "1", "netns"];
        let add = ["link", "add", "name", device];
        let veth = ["type", "veth", "peer", "name", peer];
        let pair = [
            &add[..],
            &whole_packets,
            &[self.server.name()],
            &veth,
            &whole_packets,
            &[self.client.name()],
        ];
        command::run("ip", &pair.concat())?;
        let ends = [
            (&self.server, device, SERVER_ADDRESS, &SERVER[..]),
            (&self.client, peer, CLIENT_ADDRESS, &CLIENT[..]),
        ];
        for (namespace, device, address, parameters) in ends {
            for (parameter, value) in BOTH.iter().chain(parameters) {
                namespace.set(parameter, value)?;
            }
            namespace.ip(&["address", "add", &format!("{address}/30"), "dev", device])?;
            namespace.ip(&["link", "set", "dev", device, "up"])?;
        }
        Ok(())
    }

    fn limit(&self, config: &BedConfig) -> Result<(), LabError> {
        let device = self.device.as_str();
        let rate = format!("{}bit", config.rate.bps());
        let burst = format!("{}b", burst_bytes(config.rate));
        let limit = config.queue_packets.to_string();
        let qdisc = ["qdisc", "add", "dev", device];
        let root = [
            &qdisc[..],
            &["root", "handle", "1:", "htb", "default", "10"],
        ];
        self.server.tc(&root.concat())?;
        let class = [
            "class", "add", "dev", device, "parent", "1:", "classid", "1:10",
        ];
        let htb = ["htb", "rate", &rate, "burst", &burst, "cburst", &burst];
        self.server
            .tc(&[&class[..], &htb, &["quantum", "1514"]].concat())?;
        let leaf = ["parent", "1:10", "handle", "10:", "pfifo", "limit", &limit];
        self.server.tc(&[&qdisc[..], &leaf].concat())?;
        Ok(())
    }
}

/// How far HTB may run ahead: one packet, or what 1.28 ms carry (the same at 10 Mbit/s). A real
/// line loses nothing to a late timer; with 0.2 ms at 100 Mbit/s, HTB left 2 to 3 % of the rate
/// unused although packets waited, on a machine whose processors were busy.
fn burst_bytes(rate: Rate) -> u64 {
    const PACKET_BYTES: u64 = 1600;
    PACKET_BYTES.max(rate.bps() / 8 * 128 / 100_000)
}

fn allow_congestion_control(lab: &Lab) -> Result<(), LabError> {
    let path = Path::new(ALLOWED);
    let allowed = fs::read_to_string(path).map_err(LabError::file(path))?;
    let allowed = allowed.trim();
    if allowed
        .split_whitespace()
        .any(|name| name == CONGESTION_CONTROL)
    {
        return Ok(());
    }
    lab.janitor().watch_setting(path, allowed)?;
    fs::write(path, format!("{CONGESTION_CONTROL} {allowed}")).map_err(LabError::file(path))
}

/// Drops and backlog of the FIFO in what `tc -s -j qdisc show` printed.
fn parse_fifo(text: &str) -> Option<(u64, u64)> {
    let qdiscs: serde_json::Value = serde_json::from_str(text).ok()?;
    let fifo = qdiscs
        .as_array()?
        .iter()
        .find(|qdisc| qdisc["kind"] == "pfifo")?;
    Some((fifo["drops"].as_u64()?, fifo["qlen"].as_u64()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_fifo_is_found_behind_the_htb() {
        let text = r#"[{"kind":"htb","handle":"1:","root":true,"drops":9,"qlen":9},
            {"kind":"pfifo","parent":"1:10","bytes":3,"drops":4,"backlog":1514,"qlen":1}]"#;
        assert_eq!(parse_fifo(text), Some((4, 1)));
        assert_eq!(parse_fifo("[]"), None);
    }

    #[test]
    fn a_burst_is_a_packet_at_least() {
        assert_eq!(burst_bytes(Rate::from_bps(10_000_000)), 1600);
        assert_eq!(burst_bytes(Rate::from_bps(100_000_000)), 16_000);
    }
}
