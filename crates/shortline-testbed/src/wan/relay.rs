//! The emulator's process, for kernels without netem: a packet from one TUN device leaves by the other
//! when its path lets it.
//!
//! ```text
//! router namespace                                    client namespace
//!   uplink ==> forwarding ==> [TUN] -> emulator -> [TUN] ==> the clients' sockets
//! ```
//! The lab starts it in the router's namespace (`shortline lab wan CONFIG`, hidden), where it makes both
//! devices. The lab then moves the clients' device to their namespace. The devices end with this
//! process, and the janitor ends the process with the run.
//!
//! One thread waits for packets and for the next due time (ppoll, nanoseconds), with precise timers. If
//! the machine permits, it runs with priority over servers and generator ([`BEFORE_OTHERS`]). At SIGTERM
//! it writes its [`WanReport`] to standard output and ends. A packet that waits in a device while the
//! thread is busy is late too, but only lateness after it was read can be measured.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Instant;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::emulator::{Emulator, PACKETS_MAX};
use super::packet::{Head, Network};
use super::path::Way;
use super::report::{EmulatorKind, GroupReport, LatenessMeter, WanReport};
use crate::TestbedError;

/// The longest packet: the devices have Ethernet's MTU.
const PACKET_BYTES_MAX: usize = 2048;
/// The most packets read from a device before due packets are sent: about 0.1 ms of work.
const BATCH_PACKETS: usize = 32;
/// Buffers kept for reuse.
const SPARE_MAX: usize = 4096;
/// Runs a program with real-time priority (chrt(1), `SCHED_FIFO`).
pub const BEFORE_OTHERS: [&str; 3] = ["chrt", "--fifo", "10"];

/// The relay's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelayConfig {
    /// The device to make towards the server.
    pub server_device: String,
    /// The device to make towards the clients.
    pub client_device: String,
    /// The clients' paths.
    pub groups: Vec<GroupPath>,
    /// The seed of loss and jitter.
    pub seed: u64,
}

/// The path of one group of clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupPath {
    /// Its name in the report.
    pub name: String,
    /// Its clients' addresses.
    pub network: Network,
    /// Towards the clients.
    pub down: Way,
    /// Towards the server.
    pub up: Way,
}

/// Runs the process from start to end. Returns its report, as JSON.
///
/// # Errors
/// If the configuration cannot be read, or a device cannot be made or fails.
pub fn run(config_file: &Path) -> Result<String, TestbedError> {
    let text = fs::read_to_string(config_file).map_err(TestbedError::file(config_file))?;
    let config: RelayConfig =
        serde_json::from_str(&text).map_err(TestbedError::content(config_file))?;
    for group in &config.groups {
        for way in [&group.down, &group.up] {
            way.check().map_err(TestbedError::content(config_file))?;
        }
    }
    let failed = |error: io::Error| TestbedError::Command {
        command: "lab wan".into(),
        problem: error.to_string(),
    };
    let stop = stop_signals().map_err(failed)?;
    let mut relay = Relay::open(config).map_err(failed)?;
    relay.until(&stop).map_err(failed)?;
    serde_json::to_string(&relay.report()).map_err(TestbedError::content(config_file))
}

/// Blocks SIGTERM and SIGINT and returns a descriptor from which they are read.
fn stop_signals() -> io::Result<SignalFd> {
    let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT].into_iter().collect();
    signals.thread_block()?;
    Ok(SignalFd::new(&signals)?)
}

/// The two directions, as the number of the device that a packet comes from.
const DOWN: usize = 0;
const UP: usize = 1;

/// A buffer, and the length of the packet in it.
struct Packet {
    buffer: Box<[u8; PACKET_BYTES_MAX]>,
    length: usize,
}

impl Packet {
    fn empty() -> Self {
        Self {
            buffer: Box::new([0; PACKET_BYTES_MAX]),
            length: 0,
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

struct Relay {
    devices: [SyncDevice; 2],
    groups: Vec<GroupPath>,
    /// Lanes 2 g + DOWN and 2 g + UP are group g's.
    emulator: Emulator<Packet>,
    spare: Vec<Packet>,
    begin: Instant,
    lateness: LatenessMeter,
    strays: u64,
}

impl Relay {
    fn open(config: RelayConfig) -> io::Result<Self> {
        // If this is refused, timers are 50 us late, and the report will show it.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).ok();
        let device = |name: &String| -> io::Result<SyncDevice> {
            let device = DeviceBuilder::new().name(name).enable(false).build_sync()?;
            rustix::io::ioctl_fionbio(&device, true)?;
            Ok(device)
        };
        let ways = config
            .groups
            .iter()
            .flat_map(|group| [&group.down, &group.up]);
        let ways: Vec<Way> = ways.cloned().collect();
        Ok(Self {
            devices: [
                device(&config.server_device)?,
                device(&config.client_device)?,
            ],
            emulator: Emulator::new(&ways, PACKETS_MAX, config.seed),
            groups: config.groups,
            spare: Vec::new(),
            begin: Instant::now(),
            lateness: LatenessMeter::default(),
            strays: 0,
        })
    }

    fn until(&mut self, stop: &SignalFd) -> io::Result<()> {
        loop {
            self.send_due();
            let wait = self.emulator.next_due_ns().map(|due_ns| {
                let wait_ns = due_ns.saturating_sub(self.now_ns());
                Timespec {
                    tv_sec: (wait_ns / 1_000_000_000) as i64,
                    tv_nsec: (wait_ns % 1_000_000_000) as i64,
                }
            });
            let [server, client] = &self.devices;
            let mut ready = [
                PollFd::new(server, PollFlags::IN),
                PollFd::new(client, PollFlags::IN),
                PollFd::new(stop, PollFlags::IN),
            ];
            match poll(&mut ready, wait.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let [server, client, stop] = ready.map(|descriptor| descriptor.revents());
            // A device has an error when its namespace is gone: the run is over.
            if !stop.is_empty() || (server | client).intersects(PollFlags::ERR | PollFlags::HUP) {
                return Ok(());
            }
            for (way, ready) in [(DOWN, server), (UP, client)] {
                if ready.contains(PollFlags::IN) {
                    self.read_batch(way)?;
                }
            }
        }
    }

    /// Reads at most one batch from a device.
    fn read_batch(&mut self, way: usize) -> io::Result<()> {
        for _ in 0..BATCH_PACKETS {
            let mut packet = self.spare.pop().unwrap_or_else(Packet::empty);
            match rustix::io::read(&self.devices[way], &mut packet.buffer[..]) {
                Ok(bytes) => packet.length = bytes,
                Err(Errno::AGAIN) => {
                    self.keep(packet);
                    break;
                }
                // The device is not up yet.
                Err(Errno::IO) => break,
                Err(error) => return Err(error.into()),
            }
            self.offer(way, packet);
        }
        Ok(())
    }

    fn offer(&mut self, way: usize, packet: Packet) {
        let found = Head::parse(packet.bytes()).and_then(|head| {
            let client = if way == DOWN {
                head.destination
            } else {
                head.source
            };
            Some((self.group_of(client)?, head.flow))
        });
        let Some((group, flow)) = found else {
            self.strays += 1;
            return self.keep(packet);
        };
        let (now_ns, bytes) = (self.now_ns(), packet.length);
        self.emulator
            .offer(now_ns, 2 * group + way, flow, bytes, packet);
    }

    /// Sends the packets that are due.
    fn send_due(&mut self) {
        while let Some(due) = self.emulator.take_due(self.now_ns()) {
            self.lateness.record(self.now_ns() - due.at_ns);
            let towards = 1 - due.lane % 2;
            if rustix::io::write(&self.devices[towards], due.packet.bytes()).is_err() {
                self.strays += 1;
            }
            self.keep(due.packet);
        }
    }

    fn keep(&mut self, packet: Packet) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(packet);
        }
    }

    fn group_of(&self, client: Ipv4Addr) -> Option<usize> {
        self.groups
            .iter()
            .position(|group| group.network.contains(client))
    }

    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    fn report(&self) -> WanReport {
        let counts = self.emulator.counts();
        let groups = self.groups.iter().zip(counts.chunks_exact(2));
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        WanReport {
            emulator: EmulatorKind::Tun,
            lateness: Some(self.lateness.lateness()),
            groups: groups
                .map(|(group, counts)| GroupReport {
                    name: group.name.clone(),
                    down: counts[DOWN],
                    up: counts[UP],
                })
                .collect(),
            // The devices' counters are in two namespaces, so the bed adds them.
            device_drops: 0,
            strays: self.strays,
            cpu_s: cpu.tv_sec as f64 + cpu.tv_nsec as f64 * 1e-9,
        }
    }
}
