//! The networks between the uplink and the clients: a namespace that forwards, and an emulator in it,
//! the kernel's netem if there is one, else our [`relay`].
//!
//! ```text
//! [ server ]  uplink  ==>  [ router ]  slw  ==>  slt  [ clients ]
//!  10.91.0.1               10.91.0.2  10.92.255.254    10.92.G.1 for group G
//! ```
//! `slw` and `slt` are the two TUN devices of the relay, or a veth pair with netem on the router's
//! end of it (towards the clients) and on the uplink's far end (towards the server).

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::netns::Namespace;
use super::setup::{ClientGroup, GROUPS_MAX, Setup};
use crate::process::Process;
use crate::testbed::Testbed;
use crate::wan::netem::{self, Client};
use crate::wan::packet::Network;
use crate::wan::path::Way;
use crate::wan::relay::{BEFORE_OTHERS, GroupPath, RelayConfig};
use crate::wan::report::{EmulatorKind, GroupReport, WanReport};
use crate::{TestbedError, command, proc_fs};

/// The router's address towards the clients.
const ROUTER: &str = "10.92.255.254";
/// The network of all clients, for the server's route.
pub const CLIENTS: &str = "10.92.0.0/16";
/// How long the relay may take to make its devices, and to write its report.
const RELAY_MAX: Duration = Duration::from_secs(10);
/// Packets that a TUN device holds for the relay, which may be 100 ms late at 100 Mbit/s.
const DEVICE_PACKETS: &str = "1000";

/// The address of the clients of group number `group`.
///
/// # Panics
/// If there are more groups than [`GROUPS_MAX`].
pub fn client_address(group: usize) -> Ipv4Addr {
    assert!(group < GROUPS_MAX, "invariant: a setup is checked first");
    Ipv4Addr::new(10, 92, group as u8, 1)
}

/// The namespace between the uplink and the clients.
#[derive(Debug)]
pub struct Router {
    emulator: Emulator,
    groups: Vec<ClientGroup>,
    /// The devices towards the server and towards the clients, and the clients' own.
    devices: [String; 3],
    namespace: Namespace,
}

#[derive(Debug)]
enum Emulator {
    Relay(Process),
    Netem,
    /// The emulation has ended and has reported.
    Ended,
}

/// A device, the address by which it recognises clients, and the way of each network.
type Side<'a> = (&'a str, Client, Vec<(Network, &'a Way)>);

impl Router {
    /// Makes the namespace, which forwards nothing yet.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn namespace(testbed: &Testbed) -> Result<Namespace, TestbedError> {
        let name = format!("shortline-{}-router", testbed.run_id());
        let namespace = Namespace::make(testbed.janitor(), name)?;
        namespace.set("net.ipv4.ip_forward", "1")?;
        namespace.set("net.ipv4.conf.all.rp_filter", "0")?;
        Ok(namespace)
    }

    /// Connects `uplink_end`, the far end of the uplink, which exists and is up, with the clients'
    /// namespace.
    ///
    /// # Errors
    /// If `ip` or `tc` fails or the relay does not start.
    pub fn start(
        testbed: &Testbed,
        namespace: Namespace,
        uplink_end: String,
        clients: &Namespace,
        setup: &Setup,
        seed: u64,
    ) -> Result<Self, TestbedError> {
        let near = format!("slw{}", testbed.run_id());
        let far = format!("slt{}", testbed.run_id());
        let mut router = Self {
            emulator: Emulator::Netem,
            groups: setup.groups.clone(),
            devices: [uplink_end, near, far],
            namespace,
        };
        let has_netem = router.has_netem();
        if has_netem {
            router.join_by_veth(clients, setup)?;
        } else {
            router.emulator = Emulator::Relay(router.start_relay(testbed, seed)?);
            let [_, near, far] = &router.devices;
            router
                .namespace
                .ip(&["link", "set", "dev", far, "netns", clients.name()])?;
            for (namespace, device) in [(&router.namespace, near), (clients, far)] {
                let mtu = setup.packet_bytes.to_string();
                let length = ["mtu", mtu.as_str(), "txqueuelen", DEVICE_PACKETS];
                namespace.ip(&[&["link", "set", "dev", device][..], &length].concat())?;
            }
        }
        router.address(clients)?;
        if has_netem {
            router.emulate_by_netem()?;
        }
        Ok(router)
    }

    /// The namespace itself.
    pub fn own(&self) -> &Namespace {
        &self.namespace
    }

    /// Ends the emulation and returns its report. `None` the second time.
    ///
    /// # Errors
    /// If the relay ended badly or the counters cannot be read.
    pub fn report(&mut self, clients: &Namespace) -> Result<Option<WanReport>, TestbedError> {
        match std::mem::replace(&mut self.emulator, Emulator::Ended) {
            Emulator::Ended => Ok(None),
            Emulator::Netem => self.netem_report().map(Some),
            Emulator::Relay(relay) => {
                let [_, near, far] = &self.devices;
                let drops = |namespace: &Namespace, device| namespace.send_drops(device);
                let device_drops = drops(&self.namespace, near)? + drops(clients, far)?;
                let text = relay.stop("wan", RELAY_MAX)?;
                let report: WanReport = serde_json::from_str(&text)
                    .map_err(TestbedError::content(Path::new("wan.log")))?;
                Ok(Some(WanReport {
                    device_drops,
                    ..report
                }))
            }
        }
    }

    /// Checks for netem by adding one and removing it.
    fn has_netem(&self) -> bool {
        let tc = |verb| {
            self.namespace
                .tc(&["qdisc", verb, "dev", "lo", "root", "netem"])
        };
        tc("add").is_ok() && tc("delete").is_ok()
    }

    fn start_relay(&self, testbed: &Testbed, seed: u64) -> Result<Process, TestbedError> {
        let [_, near, far] = &self.devices;
        let groups = self.groups.iter().enumerate();
        let config = RelayConfig {
            server_device: near.clone(),
            client_device: far.clone(),
            groups: groups
                .map(|(number, group)| GroupPath {
                    name: group.name.clone(),
                    network: network_of(number),
                    down: group.down.clone(),
                    up: group.up.clone(),
                })
                .collect(),
            seed,
        };
        let file = testbed.scratch().join("wan.json");
        let text = serde_json::to_string(&config).map_err(TestbedError::content(&file))?;
        fs::write(&file, text).map_err(TestbedError::file(&file))?;
        let (program, mut arguments) = before_others(testbed.program());
        arguments.extend(["lab".into(), "wan".into(), file.display().to_string()]);
        let place = self.namespace.place();
        let mut relay = Process::start(testbed, &place, &program, &arguments, &testbed.log("wan"))?;
        let deadline = Instant::now() + RELAY_MAX;
        let there = |pid, device: &str| proc_fs::device_sent(pid, device).is_some();
        while !(there(relay.pid(), near) && there(relay.pid(), far)) {
            if relay.ended().is_some() || Instant::now() > deadline {
                return Err(TestbedError::Command {
                    command: "lab wan".into(),
                    problem: format!("made no devices: {}", relay.last_words()),
                });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(relay)
    }

    fn join_by_veth(&self, clients: &Namespace, setup: &Setup) -> Result<(), TestbedError> {
        let [_, near, far] = &self.devices;
        let mtu = setup.packet_bytes.to_string();
        let whole_packets = ["mtu", &mtu, "gso_max_segs", "1", "netns"];
        let pair = [
            &["link", "add", "name", near.as_str()][..],
            &whole_packets,
            &[self.namespace.name()],
            &["type", "veth", "peer", "name", far.as_str()],
            &whole_packets,
            &[clients.name()],
        ];
        command::run("ip", &pair.concat()).map(drop)
    }

    fn address(&self, clients: &Namespace) -> Result<(), TestbedError> {
        let [_, near, far] = &self.devices;
        let add = |namespace: &Namespace, address: String, device: &str| {
            namespace.ip(&["address", "add", &address, "dev", device])
        };
        add(&self.namespace, format!("{ROUTER}/16"), near)?;
        for group in 0..self.groups.len() {
            add(clients, format!("{}/16", client_address(group)), far)?;
        }
        self.namespace.ip(&["link", "set", "dev", near, "up"])?;
        clients.ip(&["link", "set", "dev", far, "up"])?;
        let first = client_address(0).to_string();
        let route = ["route", "add", "default", "via", ROUTER, "dev", far];
        clients.ip(&[&route[..], &["src", &first]].concat())?;
        Ok(())
    }

    fn emulate_by_netem(&self) -> Result<(), TestbedError> {
        for (device, client, ways) in self.netem_sides() {
            for arguments in netem::commands(device, client, &ways) {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                self.namespace.tc(&arguments)?;
            }
        }
        Ok(())
    }

    fn netem_report(&self) -> Result<WanReport, TestbedError> {
        let mut counts = Vec::new();
        for (device, _, ways) in self.netem_sides() {
            let arguments = ["-s", "-j", "qdisc", "show", "dev", device];
            let text = self.namespace.tc(&arguments)?;
            let of_side = netem::counts(&text, ways.len());
            counts.push(of_side.ok_or_else(|| TestbedError::Command {
                command: format!("tc {}", arguments.join(" ")),
                problem: "printed too few netems".into(),
            })?);
        }
        let (down, up) = (&counts[0], &counts[1]);
        let lanes = self.groups.iter().zip(down.iter().zip(up));
        Ok(WanReport {
            emulator: EmulatorKind::Netem,
            lateness: None,
            groups: lanes
                .map(|(group, (down, up))| GroupReport {
                    name: group.name.clone(),
                    down: *down,
                    up: *up,
                })
                .collect(),
            device_drops: 0,
            strays: 0,
            cpu_s: 0.0,
        })
    }

    /// The side towards the clients, then that towards the server.
    fn netem_sides(&self) -> [Side<'_>; 2] {
        let [uplink_end, near, _] = &self.devices;
        let ways = |way: fn(&ClientGroup) -> &Way| {
            let groups = self.groups.iter().enumerate();
            groups
                .map(|(number, group)| (network_of(number), way(group)))
                .collect()
        };
        [
            (near, Client::Destination, ways(|group| &group.down)),
            (uplink_end, Client::Source, ways(|group| &group.up)),
        ]
    }
}

/// The command that runs `program` with priority over others, or without if this is not permitted.
fn before_others(program: &Path) -> (PathBuf, Vec<String>) {
    let [chrt, options @ ..] = BEFORE_OTHERS;
    if command::run(chrt, &[&options[..], &["true"]].concat()).is_err() {
        return (program.into(), Vec::new());
    }
    let mut arguments: Vec<String> = options.map(str::to_owned).into();
    arguments.push(program.display().to_string());
    (chrt.into(), arguments)
}

fn network_of(group: usize) -> Network {
    let [a, b, c, _] = client_address(group).octets();
    Network {
        first: Ipv4Addr::new(a, b, c, 0),
        prefix_bits: 24,
    }
}
