//! The narrow link one hop away from the server: a namespace that forwards between the server, whose
//! own interface has no rate limit, and the clients (or the networks before them). A second server, the
//! neighbour, may send through the same link from a machine of its own.
//!
//! ```text
//! [ server ]  slu  ==>  slh  [ hop ]  slo, HTB at the rate + FIFO of some time  ==>  slc  [ clients or router ]
//! 10.91.0.1       10.91.0.2         10.91.0.5                                  10.91.0.6
//! [ neighbour ]  slw  ==>  slm
//! 10.91.0.9           10.91.0.10
//! ```
//! This is how a modem or a provider's shaper limits the rate: nothing on the server's machine shows it.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::netns::Namespace;
use super::router::CLIENTS;
use crate::testbed::Testbed;
use crate::{TestbedError, command, proc_fs};

/// The hop's address towards the server.
pub const NEAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 2);
/// The hop's address towards the clients.
const OUT_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 5);
/// The address at the other end of the narrow link.
pub const BEYOND_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 6);
/// The neighbour's address.
pub const NEIGHBOUR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 9);
/// The hop's address towards the neighbour.
const NEIGHBOUR_NEAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 10);
/// The servers' network, for routes back to it.
const SERVER_NETWORK: &str = "10.91.0.0/28";

/// The namespace with the narrow link.
#[derive(Debug)]
pub struct Hop {
    /// The namespace itself.
    pub namespace: Namespace,
    /// The device whose rate is limited.
    pub device: String,
    /// The device towards the server.
    pub near_device: String,
    neighbour_devices: [String; 2],
    counters: File,
}

/// A namespace has a few devices, with a line each.
const COUNTERS_BYTES_MAX: usize = 8192;

impl Hop {
    /// Makes the namespace, which has no devices yet.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn make(testbed: &Testbed) -> Result<Self, TestbedError> {
        let id = testbed.run_id();
        let namespace = Namespace::make(testbed.janitor(), format!("shortline-{id}-hop"))?;
        namespace.set("net.ipv4.ip_forward", "1")?;
        namespace.set("net.ipv4.conf.all.rp_filter", "0")?;
        let path = Path::new("/run/netns").join(namespace.name());
        Ok(Self {
            counters: open_counters(&path).map_err(TestbedError::file(&path))?,
            namespace,
            device: format!("slo{id}"),
            near_device: format!("slh{id}"),
            neighbour_devices: [format!("slw{id}"), format!("slm{id}")],
        })
    }

    /// Bytes and packets that have left the narrow link.
    pub fn sent(&self) -> Option<(u64, u64)> {
        let mut text = [0; COUNTERS_BYTES_MAX];
        let length = self.counters.read_at(&mut text, 0).ok()?;
        proc_fs::parse_device_sent(std::str::from_utf8(&text[..length]).ok()?, &self.device)
    }

    /// Joins the neighbour to the hop, and lets it reach the clients.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn join_neighbour(
        &self,
        neighbour: &Namespace,
        packet_bytes: u32,
    ) -> Result<(), TestbedError> {
        let [device, near_device] = self.neighbour_devices.each_ref().map(String::as_str);
        let ends = [
            (neighbour, device, NEIGHBOUR_ADDRESS),
            (&self.namespace, near_device, NEIGHBOUR_NEAR_ADDRESS),
        ];
        join_by_veth(ends, packet_bytes)?;
        let via = NEIGHBOUR_NEAR_ADDRESS.to_string();
        let added = neighbour.ip(&["route", "add", "default", "via", &via]);
        added.map(drop)
    }

    /// Joins the hop to `far`, which gets the device `far_device`, and sets routes in both directions.
    /// `clients_beyond` says whether the clients are behind `far` or in it.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn join(
        &self,
        far: &Namespace,
        far_device: &str,
        packet_bytes: u32,
        clients_beyond: bool,
    ) -> Result<(), TestbedError> {
        let ends = [
            (&self.namespace, self.device.as_str(), OUT_ADDRESS),
            (far, far_device, BEYOND_ADDRESS),
        ];
        join_by_veth(ends, packet_bytes)?;
        let out = OUT_ADDRESS.to_string();
        far.ip(&["route", "add", SERVER_NETWORK, "via", &out])?;
        if clients_beyond {
            let beyond = BEYOND_ADDRESS.to_string();
            self.namespace
                .ip(&["route", "add", CLIENTS, "via", &beyond])?;
        }
        Ok(())
    }
}

/// Opens the counters of a namespace's devices. They can then be read from any namespace.
fn open_counters(namespace: &Path) -> io::Result<File> {
    let namespace = File::open(namespace)?;
    // Only this thread enters the namespace, and it ends.
    let opened = std::thread::spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        File::open("/proc/thread-self/net/dev")
    });
    opened
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the thread that opens them panicked")))
}

/// Joins two namespaces by a veth pair with the addresses of a network of two.
///
/// # Errors
/// If `ip` fails.
pub fn join_by_veth(
    ends: [(&Namespace, &str, Ipv4Addr); 2],
    packet_bytes: u32,
) -> Result<(), TestbedError> {
    let [(near, device, _), (far, far_device, _)] = ends;
    let mtu = packet_bytes.to_string();
    let whole_packets = ["mtu", &mtu, "gso_max_segs", "1", "netns"];
    let pair = [
        &["link", "add", "name", device][..],
        &whole_packets,
        &[near.name()],
        &["type", "veth", "peer", "name", far_device],
        &whole_packets,
        &[far.name()],
    ];
    command::run("ip", &pair.concat())?;
    for (namespace, device, address) in ends {
        namespace.ip(&["address", "add", &format!("{address}/30"), "dev", device])?;
        namespace.ip(&["link", "set", "dev", device, "up"])?;
    }
    Ok(())
}
