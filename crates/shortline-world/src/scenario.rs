//! What a seed draws: a link, a network, a disk, clients and their requests.

use std::fmt;

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use shortline_link::{LinkConfig, LinkMode};
use shortline_sched::units::Rate;
use shortline_sched::{Policy, Urgency};

use crate::network::Path;

const MS: u64 = 1_000_000;

/// Sizes of the site's files, in bytes. The last ones are not kept in memory.
pub const FILES: [u64; 9] = [0, 1, 511, 1448, 9_000, 30_000, 65_536, 100_000, 150_000];
/// Files up to this size are kept in memory.
pub const KEPT_BYTES_MAX: u64 = 65_536;
/// The file that is cut short while it is sent, if one is.
pub const CUT_FILE: usize = 8;

/// Everything that a seed draws.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The link.
    pub link: LinkConfig,
    /// The uplink's rate.
    pub uplink_bps: u64,
    /// The most bytes that wait for the uplink.
    pub uplink_queue_bytes: u64,
    /// The disk.
    pub disk: DiskPlan,
    /// The path between the server and its backends.
    pub backend_path: Path,
    /// The most connections to a backend.
    pub backend_connections_max: usize,
    /// The clients.
    pub clients: Vec<ClientPlan>,
    /// When the settings are exchanged, in nanoseconds.
    pub reload_ns: Option<u64>,
    /// When the uplink's rate changes, and the new rate.
    pub change: Option<(u64, u64)>,
    /// When [`CUT_FILE`] is cut short.
    pub cut_ns: Option<u64>,
    /// When the server is told to finish.
    pub drain_ns: Option<u64>,
}

/// The properties of the disk.
#[derive(Clone, Copy, Debug)]
pub struct DiskPlan {
    /// The share of reads whose bytes are not in memory.
    pub misses: f64,
    /// The share of disk reads that fail.
    pub failures: f64,
    /// The longest time for a read, in nanoseconds.
    pub wait_ns_max: u64,
}

impl DiskPlan {
    /// A disk that has everything in memory.
    pub const SOUND: Self = Self {
        misses: 0.0,
        failures: 0.0,
        wait_ns_max: MS,
    };
}

/// One client.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// When it comes, in nanoseconds.
    pub begins_ns: u64,
    /// The last byte of its address.
    pub address: u8,
    /// Whether it speaks HTTP/2.
    pub http2: bool,
    /// The path to it.
    pub path: Path,
    /// How it behaves.
    pub manner: Manner,
    /// What it asks for: one after another or, in HTTP/2, all at once.
    pub asks: Vec<Ask>,
    /// HTTP/1.1: it sends all requests before it reads.
    pub pipelines: bool,
    /// HTTP/2: the window of a stream.
    pub stream_window_bytes: u32,
}

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It reads what it is sent at once.
    Honest,
    /// It reads this many bytes, then pauses.
    Slow {
        /// Bytes at a time.
        bytes: usize,
        /// Nanoseconds between them.
        pause_ns: u64,
    },
    /// After this many bytes it reads no more.
    Stalls(u64),
    /// After this many bytes it closes.
    Leaves(u64),
    /// After this many bytes it resets the connection, or in HTTP/2 the stream.
    Resets(u64),
    /// After this many bytes its network is gone.
    Vanishes(u64),
    /// After this many bytes it ends its sending direction.
    HalfCloses(u64),
    /// It sends bytes that are not a request.
    Babbles,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Its number in the run.
    pub number: u64,
    /// What it asks for.
    pub what: What,
    /// How long the client waits before it asks, in nanoseconds.
    pub think_ns: u64,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A file, whole.
    File(usize),
    /// A file's head.
    Head(usize),
    /// The bytes `first..=last` of a file.
    Range(usize, u64, u64),
    /// A path that does not exist.
    Nothing,
    /// A response from a backend.
    Relayed {
        /// Bytes of its body.
        bytes: u64,
        /// How the backend answers.
        answer: Answer,
        /// Bytes of the request's body.
        upload_bytes: u64,
    },
}

/// How a backend answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With a length.
    Length,
    /// In chunks.
    Chunks,
    /// Delimited by closing the connection.
    Close,
    /// With a length or in chunks, broken off halfway.
    BreaksOff {
        /// In chunks.
        chunks: bool,
        /// With a reset.
        resets: bool,
    },
    /// After a long silence.
    Late,
    /// Never.
    Never,
}

impl Answer {
    /// Its name in a target.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Chunks => "chunks",
            Self::Close => "close",
            Self::BreaksOff {
                chunks: false,
                resets: false,
            } => "ends-early",
            Self::BreaksOff {
                chunks: true,
                resets: false,
            } => "ends-early-in-chunks",
            Self::BreaksOff {
                chunks: false,
                resets: true,
            } => "resets",
            Self::BreaksOff {
                chunks: true,
                resets: true,
            } => "resets-in-chunks",
            Self::Late => "late",
            Self::Never => "never",
        }
    }
}

impl What {
    /// The request's target.
    pub fn target(self, number: u64) -> String {
        match self {
            Self::File(file) | Self::Head(file) | Self::Range(file, ..) => {
                format!("/f{file}?{number}")
            }
            Self::Nothing => format!("/nothing?{number}"),
            Self::Relayed { bytes, answer, .. } => {
                format!("/app/{bytes}/{}?{number}", answer.name())
            }
        }
    }

    /// Whether the response cannot be complete.
    pub fn breaks(self) -> bool {
        match self {
            Self::Relayed { bytes, answer, .. } => match answer {
                Answer::Never => true,
                // If the head says that the body is empty, nothing is missing.
                Answer::BreaksOff { chunks, .. } => chunks || bytes > 0,
                _ => false,
            },
            _ => false,
        }
    }
}

impl Scenario {
    /// Draws a scenario.
    pub fn draw(random: &mut ChaCha8Rng) -> Self {
        let uplink_bps = *[1_000_000, 5_000_000, 20_000_000, 100_000_000]
            .choose(random)
            .expect("there are some");
        let link = link(random, uplink_bps);
        let clients = random.random_range(1..=8);
        let mut number = 0;
        let slow = random.random_range(0..=2) == 0;
        let lossy = random.random_range(0..=2) == 0;
        let sound = random.random_bool(0.5);
        let mut clients: Vec<_> = (0..clients)
            .map(|_| client(random, &mut number, (slow, lossy, sound)))
            .collect();
        if random.random_bool(0.08) {
            let newcomers = random.random_range(20..60);
            clients.extend((0..newcomers).map(|_| newcomer(random, &mut number)));
        }
        let some = |random: &mut ChaCha8Rng, share: f64| {
            let at_ns = random.random_range(5 * MS..400 * MS);
            random.random_bool(share).then_some(at_ns)
        };
        Self {
            link,
            uplink_bps,
            uplink_queue_bytes: random.random_range(20_000..400_000),
            disk: DiskPlan {
                misses: *[0.0, 0.1, 0.7].choose(random).expect("there are some"),
                failures: *[0.0, 0.0, 0.0, 0.1].choose(random).expect("there are some"),
                wait_ns_max: random.random_range(MS..30 * MS),
            },
            backend_path: Path {
                delay_ns: random.random_range(20_000..2 * MS),
                jitter_ns: 0,
                loss: 0.0,
                window_bytes: 64 << 10,
                buffer_bytes: 64 << 10,
                short_writes: 0.1,
            },
            // With two, requests often wait for one.
            backend_connections_max: *[2, 2, 6].choose(random).expect("there are some"),
            clients,
            reload_ns: some(random, 0.2),
            change: some(random, 0.2)
                .map(|at_ns| (at_ns, random.random_range(1_000_000..50_000_000))),
            cut_ns: some(random, 0.15),
            drain_ns: some(random, 0.1),
        }
    }
}

fn link(random: &mut ChaCha8Rng, uplink_bps: u64) -> LinkConfig {
    let mode = *[
        LinkMode::Paced,
        LinkMode::Paced,
        LinkMode::Slots,
        LinkMode::Off,
        LinkMode::Auto,
        LinkMode::Writers,
    ]
    .choose(random)
    .expect("there are some");
    let policies = [
        Policy::Srpt,
        Policy::Srpt,
        Policy::Shares,
        Policy::Fair,
        Policy::Fifo,
        Policy::Las,
        Policy::Fsp,
    ];
    LinkConfig {
        mode,
        rate: (mode == LinkMode::Paced).then(|| Rate::from_bps(uplink_bps)),
        policy: *policies.choose(random).expect("there are some"),
        urgency: Urgency::None,
        slots_max: random.random_range(1..=4),
        quantum_bytes: random
            .random_bool(0.3)
            .then(|| random.random_range(1..=5) * 1448),
        jobs_max: if random.random_bool(0.1) { 4 } else { 10_000 },
        ..LinkConfig::default()
    }
}

fn client(
    random: &mut ChaCha8Rng,
    number: &mut u64,
    (slow, lossy, sound): (bool, bool, bool),
) -> ClientPlan {
    let asks = random.random_range(1..=6);
    let far_ns = random.random_range(100_000..if slow { 80 * MS } else { 10 * MS });
    let jitter = [0, 0, far_ns / 4];
    let losses = if lossy { [0.0, 0.01, 0.1] } else { [0.0; 3] };
    ClientPlan {
        begins_ns: random.random_range(0..100 * MS),
        address: random.random_range(1..=5),
        http2: random.random_bool(0.4),
        path: Path {
            delay_ns: far_ns,
            jitter_ns: *jitter.choose(random).expect("there are some"),
            loss: *losses.choose(random).expect("there are some"),
            window_bytes: *[2_000, 16_384, 262_144]
                .choose(random)
                .expect("there are some"),
            buffer_bytes: *[4_000, 65_536, 1 << 20]
                .choose(random)
                .expect("there are some"),
            short_writes: *[0.0, 0.0, 0.3].choose(random).expect("there are some"),
        },
        manner: if sound {
            Manner::Honest
        } else {
            manner(random)
        },
        asks: (0..asks).map(|_| ask(random, number)).collect(),
        pipelines: random.random_bool(0.15),
        stream_window_bytes: *[700, 16_384, 65_535, 1 << 20]
            .choose(random)
            .expect("there are some"),
    }
}

/// One of many connections of one address, each with one request.
fn newcomer(random: &mut ChaCha8Rng, number: &mut u64) -> ClientPlan {
    let sound = random.random_bool(0.8);
    let plan = client(random, number, (false, false, sound));
    let file = random.random_range(1..5);
    ClientPlan {
        address: 200,
        http2: false,
        asks: vec![Ask {
            number: *number,
            what: What::File(file),
            think_ns: 0,
        }],
        ..plan
    }
}

fn manner(random: &mut ChaCha8Rng) -> Manner {
    let after = random.random_range(0..150_000);
    match random.random_range(0..12) {
        0..4 => Manner::Honest,
        4 | 5 => Manner::Slow {
            bytes: random.random_range(100..20_000),
            pause_ns: random.random_range(MS..40 * MS),
        },
        6 => Manner::Stalls(after),
        7 => Manner::Leaves(after),
        8 => Manner::Resets(after),
        9 => Manner::Vanishes(after),
        10 => Manner::HalfCloses(after),
        _ => Manner::Babbles,
    }
}

fn ask(random: &mut ChaCha8Rng, number: &mut u64) -> Ask {
    *number += 1;
    let file = random.random_range(0..FILES.len());
    let what = match random.random_range(0..20) {
        0..9 => What::File(file),
        9 => What::Head(file),
        10 | 11 if FILES[file] > 1 => {
            let first = random.random_range(0..FILES[file] - 1);
            What::Range(file, first, random.random_range(first..FILES[file]))
        }
        12 => What::Nothing,
        _ => relayed(random),
    };
    Ask {
        number: *number,
        what,
        think_ns: match random.random_range(0..4) {
            0 => random.random_range(0..1500 * MS),
            _ => random.random_range(0..5 * MS),
        },
    }
}

fn relayed(random: &mut ChaCha8Rng) -> What {
    let answer = match random.random_range(0..16) {
        0..5 => Answer::Length,
        5..10 => Answer::Chunks,
        10 | 11 => Answer::Close,
        12 => Answer::BreaksOff {
            chunks: false,
            resets: random.random_bool(0.5),
        },
        13 => Answer::BreaksOff {
            chunks: true,
            resets: random.random_bool(0.5),
        },
        14 => Answer::Late,
        _ => Answer::Never,
    };
    What::Relayed {
        bytes: *[0, 1, 1000, 20_000, 120_000]
            .choose(random)
            .expect("there are some"),
        answer,
        upload_bytes: match random.random_range(0..4) {
            0 => random.random_range(1..100_000),
            _ => 0,
        },
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let http2 = self.clients.iter().filter(|client| client.http2).count();
        let asks: usize = self.clients.iter().map(|client| client.asks.len()).sum();
        let odd = self
            .clients
            .iter()
            .filter(|client| client.manner != Manner::Honest);
        write!(
            formatter,
            "{} {} on {} Mbit/s, {} clients ({http2} of HTTP/2, {} of them odd), {asks} requests, disk \
             misses {}",
            self.link.mode,
            self.link.policy,
            self.uplink_bps / 1_000_000,
            self.clients.len(),
            odd.count(),
            self.disk.misses,
        )?;
        for (what, at_ns) in [
            ("reload", self.reload_ns),
            ("other rate", self.change.map(|(at_ns, _)| at_ns)),
            ("file cut", self.cut_ns),
            ("drain", self.drain_ns),
        ] {
            if let Some(at_ns) = at_ns {
                write!(formatter, ", {what} at {} ms", at_ns / MS)?;
            }
        }
        Ok(())
    }
}
