//! The native bed: two network namespaces joined by a veth pair, and on the server's end
//! an uplink of a given rate with a FIFO of 100 packets before it, as on a leased line.
//!
//! ```text
//! [ server namespace ]  veth, HTB at the rate + pfifo_fast 100  ==>  veth  [ client namespace ]
//!                       10.91.0.1                               10.91.0.2
//! ```
//! If the setup has networks to emulate, a third namespace between them does that (`router`), and the
//! clients of each group have an address of their own. The setup can also make the uplink narrow one
//! hop away instead of at the server's end (`hop`).
//!
//! Behind the uplink's shaper is a wire (`wire`), on which each packet takes its length over the rate.
//! A kernel without netem has none, which is noted with the results.
//!
//! Segmentation offload is off, so that the rate and the FIFO see the packets that a wire would see.
//! `gso_max_segs 1` does it, which `ip` can set without ethtool; a veth does no GRO by default. HTB and
//! the device counters both count a packet as its IP bytes and 14 of Ethernet. Congestion control is
//! cubic at both ends, as in the papers and on most servers, unless the setup says BBR. A namespace can
//! only choose what the initial namespace allows. The run widens that, and the janitor puts it back.
//!
//! The FIFO is the kernel's own default. It lets packets of a socket with a priority pass the others.
//! Shortline's SYN-ACKs have one; the other servers set none.
//!
//! Every server gets a new bed. So no connection in TIME_WAIT and no path metric (slow start threshold)
//! of one server helps or hinders the next.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use shortline_sched::units::{Rate, Span};

use super::hop::{self, Hop};
use super::netns::Namespace;
use super::parameters::{
    INITIAL_RTO, SYN_LINEAR_TIMEOUTS, clients_of, has_parameter, initial_rto_ms, notes_on,
    server_parameters, sets_initial_rto, sets_syn_timeouts, syn_backoff, with_congestion_control,
};
use super::queue::{FairQueue, parse_fifo};
use super::router::{CLIENTS, Router, client_address};
use super::setup::{Bottleneck, Setup};
use super::wire::{Clock, Wire, burst_bytes};
use crate::command;
use crate::instruments::Subject;
use crate::place::Place;
use crate::testbed::Testbed;
use crate::wan::report::WanReport;
use crate::{TestbedError, proc_fs};

/// The server's address.
pub const SERVER_ADDRESS: &str = "10.91.0.1";
pub(super) const FAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 2);

/// The kernel parameter of congestion control, set in every namespace.
const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

/// What is noted of a kernel without netem.
const NO_WIRE: &str = "no netem or ifb here: after a pause the uplink's first packet is there at \
                       once, so that low loads may beat the optimum";

/// Without these the generator runs out of ports and starts requests seconds late.
const CLIENT: [(&str, &str); 3] = [
    ("net.ipv4.ip_local_port_range", "1024 65535"),
    ("net.ipv4.tcp_tw_reuse", "1"),
    ("net.ipv4.tcp_max_tw_buckets", "64"),
];

/// The uplink and everything around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BedConfig {
    /// Its rate, in IP bytes and 14 a packet.
    pub rate: Rate,
    /// How many packets wait before it. One more is dropped.
    pub queue_packets: u32,
    /// The clients' networks and the server's system.
    pub setup: Setup,
    /// The seed of the networks' loss and jitter.
    pub seed: u64,
    /// Whether a second server sends through the same link, which must be one hop away.
    #[serde(default)]
    pub neighbour: bool,
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

/// The namespaces and the uplink between them. Dropping it removes them.
#[derive(Debug)]
pub struct NativeBed {
    router: Option<Router>,
    hop: Option<Hop>,
    wire: Option<Wire>,
    server: Namespace,
    neighbour: Option<Namespace>,
    client: Namespace,
    device: String,
    rate_bps: Arc<AtomicU64>,
    clients: Vec<(Ipv4Addr, f64)>,
    notes: Vec<String>,
}

impl NativeBed {
    /// Makes the bed.
    ///
    /// # Errors
    /// If the setup is invalid, `ip` or `tc` is missing or fails, or the kernel lacks HTB, veth, cubic
    /// or, for emulated networks, both netem and TUN.
    pub fn make(testbed: &Testbed, config: &BedConfig) -> Result<Self, TestbedError> {
        let setup = &config.setup;
        setup.check().map_err(TestbedError::refused)?;
        command::find("ip", "iproute2")?;
        command::find("tc", "iproute2")?;
        let namespace = |end: &str| {
            let name = format!("shortline-{}-{end}", testbed.run_id());
            Namespace::make(testbed.janitor(), name)
        };
        let (server, client) = (namespace("server")?, namespace("client")?);
        let router = setup
            .has_wan()
            .then(|| Router::namespace(testbed))
            .transpose()?;
        let hop = match setup.bottleneck {
            Bottleneck::Server => None,
            Bottleneck::Hop { .. } => Some(Hop::make(testbed)?),
        };
        let neighbour = hop.as_ref().filter(|_| config.neighbour);
        let neighbour = neighbour.map(|_| namespace("neighbour")).transpose()?;
        let mut bed = Self {
            neighbour,
            rate_bps: Arc::new(AtomicU64::new(config.rate.bps())),
            device: format!("slu{}", testbed.run_id()),
            router: None,
            wire: None,
            hop,
            clients: clients_of(setup),
            notes: notes_on(setup, has_parameter),
            server,
            client,
        };
        bed.set(testbed, setup)?;
        let far_device = format!("slc{}", testbed.run_id());
        let far = router.as_ref().unwrap_or(&bed.client);
        bed.join(far, &far_device, setup)?;
        let wire_device = format!("sli{}", testbed.run_id());
        let wire = Wire::join(far, &far_device, wire_device, config.rate);
        if wire.is_err() {
            bed.notes.push(NO_WIRE.into());
        }
        bed.wire = wire.ok();
        if let Some(router) = router {
            let router =
                Router::start(testbed, router, far_device, &bed.client, setup, config.seed)?;
            bed.router = Some(router);
        }
        bed.limit(config)?;
        Ok(bed)
    }

    /// Replaces the FIFO before the uplink by priority bands, as `shortline uplink install` does on any
    /// machine. For a server that leaves the order to the kernel.
    ///
    /// # Errors
    /// If that fails.
    pub fn order_in_bands(&self, testbed: &Testbed, rate: Rate) -> Result<(), TestbedError> {
        // `ip netns exec` has mounts of its own, and what `remove` would need is lost with them.
        const SCRIPT: &str = r#"mount -t tmpfs tmpfs /run && exec "$@""#;
        let program = testbed.program().display().to_string();
        let rate = rate.to_string();
        let exec = [
            "netns",
            "exec",
            self.server.name(),
            "sh",
            "-c",
            SCRIPT,
            "sh",
        ];
        let install = [&program, "uplink", "install", "--replace"];
        let on = ["--dev", self.device.as_str(), "--rate", &rate];
        command::run("ip", &[&exec[..], &install, &on].concat()).map(drop)
    }

    /// Replaces the FIFO by a queue that gives every flow its turn: FAIR at its best.
    ///
    /// # Errors
    /// If this kernel has no such queue.
    pub fn serve_flows_in_turn(&self, queue: FairQueue, rate: Rate) -> Result<(), TestbedError> {
        let rate = rate.to_string();
        let on = ["qdisc", "replace", "dev", self.device.as_str()];
        // cake shapes by itself and counts the same bytes, with the frame's 14. The handles are new,
        // because for an existing handle the kernel would only change options.
        let cake = ["root", "handle", "20:", "cake", "bandwidth", &rate, "raw"];
        let of_hosts = [&cake[..], &["dual-dsthost"]].concat();
        let inside = ["parent", "1:10", "handle", "20:", queue.name()];
        let place = match queue {
            FairQueue::Cake => &cake[..],
            FairQueue::CakeHosts => &of_hosts[..],
            FairQueue::FqCodel | FairQueue::Fq => &inside[..],
        };
        let made = self.server.tc(&[&on[..], place].concat());
        made.map(drop).map_err(|error| match error {
            TestbedError::Command { problem, .. } if problem.contains("kind is unknown") => {
                TestbedError::NoQueue(queue.name())
            }
            other => other,
        })
    }

    /// The place where servers run.
    pub fn server_place(&self) -> Place {
        self.server.place()
    }

    /// The place where the second server runs.
    ///
    /// # Errors
    /// If the bed was made without one.
    pub fn neighbour_place(&self) -> Result<Place, TestbedError> {
        let neighbour = self.neighbour.as_ref().map(Namespace::place);
        neighbour.ok_or_else(|| TestbedError::Refused("the bed has no second server".into()))
    }

    /// Changes the rate of the narrow link. Its queue holds as many bytes as before.
    ///
    /// # Errors
    /// If `tc` fails.
    pub fn set_rate(&self, rate: Rate) -> Result<(), TestbedError> {
        self.set_class("change", rate)?;
        if let Some(wire) = &self.wire {
            let far = self.router.as_ref().map_or(&self.client, Router::own);
            wire.set_rate(far, rate)?;
        }
        self.rate_bps.store(rate.bps(), Ordering::Relaxed);
        Ok(())
    }

    /// The place where the generator runs.
    pub fn client_place(&self) -> Place {
        self.client.place()
    }

    /// Gives the clients' namespace `number` further addresses, so that clients can be told apart. For
    /// beds without emulated networks and without a hop.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn add_clients(&self, number: usize) -> Result<Vec<Ipv4Addr>, TestbedError> {
        let via = FAR_ADDRESS.to_string();
        self.server.ip(&["route", "add", CLIENTS, "via", &via])?;
        let addresses = (0..number).map(client_address);
        addresses
            .map(|address| {
                let text = format!("{address}/32");
                self.client.ip(&["address", "add", &text, "dev", "lo"])?;
                Ok(address)
            })
            .collect()
    }

    /// The clients' addresses, and the share of the requests that comes from each. The sum is 1.
    pub fn clients(&self) -> &[(Ipv4Addr, f64)] {
        &self.clients
    }

    /// The generator's `--source`, by which each group makes its share of the requests. Empty for one
    /// group.
    pub fn source_argument(&self) -> Option<String> {
        let sources = self.clients.iter();
        let sources: Vec<String> = sources
            .map(|(address, share)| format!("{address}={share}"))
            .collect();
        (sources.len() > 1).then(|| sources.join(","))
    }

    /// The congestion control at both ends, as the kernel reports it.
    ///
    /// # Errors
    /// If the kernel cannot be asked.
    pub fn congestion_control(&self) -> Result<String, TestbedError> {
        let server = self.server.parameter(CONGESTION_CONTROL)?;
        let client = self.client.parameter(CONGESTION_CONTROL)?;
        Ok(if server == client {
            server
        } else {
            format!("{server} (clients: {client})")
        })
    }

    /// How the clients' timeouts of a SYN grow, in words.
    ///
    /// # Errors
    /// If the kernel cannot be asked.
    pub fn syn_backoff(&self) -> Result<String, TestbedError> {
        syn_backoff(|parameter| self.client.parameter(parameter))
    }

    /// What the setup asks for and this machine cannot do, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Ends the emulation of networks, if there is one, and returns its report.
    ///
    /// # Errors
    /// If the emulation has failed.
    pub fn wan_report(&mut self) -> Result<Option<WanReport>, TestbedError> {
        match &mut self.router {
            Some(router) => router.report(&self.client),
            None => Ok(None),
        }
    }

    /// What the instruments watch.
    pub fn subject(
        &self,
        server_pid: i32,
        generator_pids: Vec<i32>,
        admin_port: Option<u16>,
    ) -> Subject {
        let (narrow, device) = self.narrow();
        Subject {
            namespace: self.server.name().into(),
            queue_namespace: narrow.name().into(),
            device: device.into(),
            rate_bps: Arc::clone(&self.rate_bps),
            server_pid,
            generator_pids,
            admin_port,
        }
    }

    /// Bytes and packets that have left the narrow link. `pid` is any process in the server's namespace.
    pub fn sent(&self, pid: i32) -> Option<(u64, u64)> {
        match &self.hop {
            None => proc_fs::device_sent(pid, &self.device),
            Some(hop) => hop.sent(),
        }
    }

    /// The uplink's counters. `pid` is any process in the server's namespace.
    ///
    /// # Errors
    /// If `tc` fails or the process has ended.
    pub fn counters(&self, pid: i32) -> Result<Counters, TestbedError> {
        let (bytes, packets) = self.sent(pid).unwrap_or_default();
        let (namespace, device) = self.narrow();
        let arguments = ["-s", "-j", "qdisc", "show", "dev", device];
        let text = namespace.tc(&arguments)?;
        let (drops, backlog_packets) = parse_fifo(&text).ok_or_else(|| TestbedError::Command {
            command: format!("tc {}", arguments.join(" ")),
            problem: "printed no FIFO".into(),
        })?;
        Ok(Counters {
            bytes,
            packets,
            drops,
            backlog_packets,
        })
    }

    fn set(&self, testbed: &Testbed, setup: &Setup) -> Result<(), TestbedError> {
        let servers = || std::iter::once(&self.server).chain(&self.neighbour);
        let congestion_control = setup.system.congestion_control.name();
        with_congestion_control(testbed, congestion_control, || {
            let mut namespaces = servers().chain([&self.client]);
            namespaces
                .try_for_each(|namespace| namespace.set(CONGESTION_CONTROL, congestion_control))
        })?;
        for (parameter, value) in CLIENT {
            self.client.set(parameter, value)?;
        }
        for (parameter, value) in server_parameters(setup) {
            for server in servers() {
                server.set(parameter, &value)?;
            }
        }
        if sets_syn_timeouts() {
            let linear = setup.system.syn_timeouts.linear().to_string();
            self.client.set(SYN_LINEAR_TIMEOUTS, &linear)?;
        }
        if sets_initial_rto() {
            // The client's SYN waits as the server's SYN-ACK does.
            let wait_ms = initial_rto_ms(setup).to_string();
            self.server.set(INITIAL_RTO, &wait_ms)?;
            self.client.set(INITIAL_RTO, &wait_ms)?;
        }
        Ok(())
    }

    /// Joins the server to `far`, through the hop if there is one.
    fn join(&self, far: &Namespace, far_device: &str, setup: &Setup) -> Result<(), TestbedError> {
        let server_address = SERVER_ADDRESS.parse().map_err(TestbedError::refused)?;
        let server = (&self.server, self.device.as_str(), server_address);
        let next = match &self.hop {
            None => (far, far_device, FAR_ADDRESS),
            Some(hop) => (&hop.namespace, hop.near_device.as_str(), hop::NEAR_ADDRESS),
        };
        hop::join_by_veth([server, next], setup.packet_bytes)?;
        if let Some(hop) = &self.hop {
            hop.join(far, far_device, setup.packet_bytes, setup.has_wan())?;
            if let Some(neighbour) = &self.neighbour {
                hop.join_neighbour(neighbour, setup.packet_bytes)?;
            }
        }
        let ways = match (&self.hop, setup.has_wan()) {
            (None, false) => return Ok(()),
            (None, true) => CLIENTS,
            (Some(_), _) => "default",
        };
        let via = next.2.to_string();
        self.server
            .ip(&["route", "add", ways, "via", &via])
            .map(drop)
    }

    /// The device whose rate is limited.
    fn narrow(&self) -> (&Namespace, &str) {
        match &self.hop {
            None => (&self.server, &self.device),
            Some(hop) => (&hop.namespace, &hop.device),
        }
    }

    fn limit(&self, config: &BedConfig) -> Result<(), TestbedError> {
        let (namespace, device) = self.narrow();
        let bytes = match config.setup.bottleneck {
            Bottleneck::Server => None,
            Bottleneck::Hop { queue } => Some(bytes_in(config.rate, queue).to_string()),
        };
        let fifo = match &bytes {
            // `pfifo_fast` takes its limit from the device's `txqueuelen`.
            None => vec!["pfifo_fast"],
            Some(bytes) => vec!["bfifo", "limit", bytes.as_str()],
        };
        let packets = config.queue_packets.to_string();
        namespace.ip(&["link", "set", "dev", device, "txqueuelen", &packets])?;
        let qdisc = ["qdisc", "add", "dev", device];
        let root = [
            &qdisc[..],
            &["root", "handle", "1:", "htb", "default", "10"],
        ];
        namespace.tc(&root.concat())?;
        self.set_class("add", config.rate)?;
        let leaf = ["parent", "1:10", "handle", "10:"];
        namespace.tc(&[&qdisc[..], &leaf, &fifo].concat())?;
        Ok(())
    }

    /// The class that all packets of the narrow link pass.
    fn set_class(&self, verb: &str, rate: Rate) -> Result<(), TestbedError> {
        let (namespace, device) = self.narrow();
        let burst = format!("{}b", burst_bytes(rate, Clock::of_kernel()));
        let rate = format!("{}bit", rate.bps());
        let class = [
            "class", verb, "dev", device, "parent", "1:", "classid", "1:10",
        ];
        let htb = ["htb", "rate", &rate, "burst", &burst, "cburst", &burst];
        let set = namespace.tc(&[&class[..], &htb, &["quantum", "1514"]].concat());
        set.map(drop)
    }
}

/// The bytes that a link of that rate carries in that time.
fn bytes_in(rate: Rate, time: Span) -> u64 {
    (rate.bps() as f64 / 8.0 * time.duration().as_secs_f64()) as u64
}
