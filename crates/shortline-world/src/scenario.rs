//! What a seed draws: a link, a network, a disk, clients and their requests.
//!
//! Half of the worlds have what a plain server has: files, and backends of HTTP/1.1. The others have some of what a site
//! may have besides ([`Features`]).

mod ask;

use std::fmt;

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use shortline_link::{LinkConfig, LinkMode};
use shortline_sched::units::Rate;
use shortline_sched::{Policy, Urgency};
use shortline_web::proxy_header::Version;

use crate::network::Path;

pub use ask::{Answer, Ask, BOMB_BYTES, Behind, Host, KeptKind, What};

const MS: u64 = 1_000_000;
/// Of the generator: what clients of HTTP/3 are drawn from.
const HTTP3_STREAM: u64 = 3;

/// Sizes of the site's files, in bytes. The last ones are not kept in memory.
pub const FILES: [u64; 9] = [0, 1, 511, 1448, 9_000, 30_000, 65_536, 100_000, 150_000];
/// Files up to this size are kept in memory.
pub const KEPT_BYTES_MAX: u64 = 65_536;
/// The file that is cut short while it is sent, if one is.
pub const CUT_FILE: usize = 8;
/// Sizes of the site's texts, which are compressed on the fly, in bytes.
pub const TEXTS: [u64; 3] = [2_000, 40_000, 130_000];
/// The text that is cut short, if one is.
pub const CUT_TEXT: usize = 2;
/// The longest body of a request, in bytes.
pub const UPLOAD_BYTES_MAX: usize = 100_000;
/// Files of the second site: the first of [`FILES`].
pub const FILES_OF_SECOND: usize = 6;

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
    /// When the content of responses that are kept changes, and they are purged.
    pub purge_ns: Option<u64>,
}

/// What a world has besides files and backends of HTTP/1.1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features {
    /// Backends that speak HTTP/2, or are said to.
    pub http2: bool,
    /// Backends that speak FastCGI.
    pub fastcgi: bool,
    /// Responses that are kept.
    pub kept: bool,
    /// Texts, and clients that take them compressed.
    pub texts: bool,
    /// A second site.
    pub sites: bool,
    /// Clients behind a proxy that announces them.
    pub announced: bool,
}

impl Scenario {
    /// Whether a backend resets connections of HTTP/2, on which several requests are.
    pub fn ends_connections(&self) -> bool {
        let mut asks = self.clients.iter().flat_map(|client| &client.asks);
        asks.any(|ask| ask.what.ends_connection())
    }

    /// How many requests are for backends.
    pub fn relayed(&self) -> usize {
        let asks = self.clients.iter().flat_map(|client| &client.asks);
        asks.filter(|ask| ask.what.is_relayed()).count()
    }
}

impl Features {
    fn draw(random: &mut ChaCha8Rng) -> Self {
        if random.random_bool(0.5) {
            return Self::default();
        }
        let mut has = || random.random_bool(0.4);
        Self {
            http2: has(),
            fastcgi: has(),
            kept: has(),
            texts: has(),
            sites: has(),
            announced: has(),
        }
    }
}

/// How a client's connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// It is the client's own.
    No,
    /// A proxy's, which says who the client is.
    By(Version),
    /// A proxy's that says something else.
    Wrongly,
    /// A proxy's that stops in the middle of saying it.
    Halfway,
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

/// The version of HTTP that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

/// One client.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// When it comes, in nanoseconds.
    pub begins_ns: u64,
    /// The last byte of its address.
    pub address: u8,
    /// What it speaks.
    pub speaks: Speaks,
    /// The path to it.
    pub path: Path,
    /// How it behaves.
    pub manner: Manner,
    /// What it asks for: one after another or, but in HTTP/1.1, all at once.
    pub asks: Vec<Ask>,
    /// HTTP/1.1: it sends all requests before it reads.
    pub pipelines: bool,
    /// But for HTTP/1.1: the window of a stream.
    pub stream_window_bytes: u32,
    /// Who says what its address is.
    pub announced: Announced,
}

impl ClientPlan {
    /// Whether the server cannot know whose the connection is.
    pub fn is_nobodys(&self) -> bool {
        matches!(self.announced, Announced::Wrongly | Announced::Halfway)
    }
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
    /// After this many bytes it resets the connection, or the stream if there are several.
    Resets(u64),
    /// After this many bytes its network is gone.
    Vanishes(u64),
    /// After this many bytes it ends its sending direction, or in HTTP/3 says goodbye (GOAWAY).
    HalfCloses(u64),
    /// It sends bytes that are not a request.
    Babbles,
}

impl Scenario {
    /// Draws a scenario.
    pub fn draw(random: &mut ChaCha8Rng) -> Self {
        let uplink_bps = *[1_000_000, 5_000_000, 20_000_000, 100_000_000]
            .choose(random)
            .expect("there are some");
        let link = link(random, uplink_bps);
        let features = Features::draw(random);
        let clients = random.random_range(1..=8);
        let mut number = 0;
        let slow = random.random_range(0..=2) == 0;
        let lossy = random.random_range(0..=2) == 0;
        let sound = random.random_bool(0.5);
        let mut own = random.clone();
        own.set_stream(HTTP3_STREAM);
        let mut clients: Vec<_> = (0..clients)
            .map(|_| client(random, &mut number, features, (slow, lossy, sound)))
            .collect();
        if random.random_bool(0.08) {
            let newcomers = random.random_range(20..60);
            clients.extend((0..newcomers).map(|_| newcomer(random, &mut number)));
        }
        clients.extend(http3(&mut own, &mut number, features));
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
            purge_ns: some(random, if features.kept { 0.6 } else { 0.0 }),
        }
    }
}

/// Clients of HTTP/3 that come besides, in a fifth of all worlds. They are drawn from numbers of their own, so that the other worlds stay
/// as they were before there were any.
fn http3(random: &mut ChaCha8Rng, number: &mut u64, features: Features) -> Vec<ClientPlan> {
    if !random.random_bool(0.2) {
        return Vec::new();
    }
    let odd = (
        random.random_bool(0.3),
        random.random_bool(0.5),
        random.random_bool(0.5),
    );
    let clients = random.random_range(1..=4);
    let plans = (0..clients).map(|_| ClientPlan {
        speaks: Speaks::Http3,
        pipelines: false,
        announced: Announced::No,
        ..client(random, number, features, odd)
    });
    plans.collect()
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
    features: Features,
    (slow, lossy, sound): (bool, bool, bool),
) -> ClientPlan {
    let asks = random.random_range(1..=6);
    let far_ns = random.random_range(100_000..if slow { 80 * MS } else { 10 * MS });
    let jitter = [0, 0, far_ns / 4];
    let losses = if lossy { [0.0, 0.01, 0.1] } else { [0.0; 3] };
    ClientPlan {
        begins_ns: random.random_range(0..100 * MS),
        address: random.random_range(1..=5),
        speaks: match random.random_bool(0.4) {
            true => Speaks::Http2,
            false => Speaks::Http1,
        },
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
        asks: (0..asks)
            .map(|_| Ask::draw(random, number, features))
            .collect(),
        pipelines: random.random_bool(0.15),
        stream_window_bytes: *[700, 16_384, 65_535, 1 << 20]
            .choose(random)
            .expect("there are some"),
        announced: if features.announced {
            announced(random)
        } else {
            Announced::No
        },
    }
}

fn announced(random: &mut ChaCha8Rng) -> Announced {
    match random.random_range(0..10) {
        0 => Announced::Wrongly,
        1 => Announced::Halfway,
        2..6 => Announced::By(Version::One),
        _ => Announced::By(Version::Two),
    }
}

/// One of many connections of one address, each with one request.
fn newcomer(random: &mut ChaCha8Rng, number: &mut u64) -> ClientPlan {
    let sound = random.random_bool(0.8);
    let plan = client(random, number, Features::default(), (false, false, sound));
    let file = random.random_range(1..5);
    ClientPlan {
        address: 200,
        speaks: Speaks::Http1,
        asks: vec![Ask::of_file(*number, file)],
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

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speak = |speaks| {
            let clients = self.clients.iter();
            clients.filter(|client| client.speaks == speaks).count()
        };
        let (http2, http3) = (speak(Speaks::Http2), speak(Speaks::Http3));
        let asks: usize = self.clients.iter().map(|client| client.asks.len()).sum();
        let odd = self
            .clients
            .iter()
            .filter(|client| client.manner != Manner::Honest);
        write!(
            formatter,
            "{} {} on {} Mbit/s, {} clients ({http2} of HTTP/2, {http3} of HTTP/3, {} of them odd), {asks} requests, disk \
             misses {}",
            self.link.mode,
            self.link.policy,
            self.uplink_bps / 1_000_000,
            self.clients.len(),
            odd.count(),
            self.disk.misses,
        )?;
        if self.disk.failures > 0.0 {
            write!(formatter, ", failures {}", self.disk.failures)?;
        }
        for (what, at_ns) in [
            ("reload", self.reload_ns),
            ("other rate", self.change.map(|(at_ns, _)| at_ns)),
            ("file cut", self.cut_ns),
            ("drain", self.drain_ns),
            ("purge", self.purge_ns),
        ] {
            if let Some(at_ns) = at_ns {
                write!(formatter, ", {what} at {} ms", at_ns / MS)?;
            }
        }
        Ok(())
    }
}
