//! What the kernel says of the connections that were just sending (`TCP_INFO`), summed up.
//!
//! Bounded work: at each look at most [`SAMPLES_MAX`] connections are asked, one system call each,
//! however many there are: those asked before whose bytes are still under way, and those that had a
//! grant since the last look. What further ones did is taken to be as what these did: the sums are
//! scaled to all that was sent (a ratio estimate over the last [`RATIO_LOOKS`] looks or so). A
//! connection that is over is kept until its last byte has arrived, 500 ms at most.
//!
//! A round trip is believed where no delayed acknowledgement can be in it (40 ms with Linux, 200 with
//! others): of the handshake, or where more than a segment was acknowledged since the last look; and
//! where it is so short that neither it nor a queue can be in it, as responses of one segment would else
//! tell nothing at all. It is as old as the last acknowledgement: a response that has waited for its first
//! grant since the handshake tells of the queue that there was then.

use std::net::IpAddr;
use std::sync::Arc;

use super::paths::Paths;
use crate::sys::TcpInfo;
use crate::transport::Transport;

/// Connections asked at one look: 32 system calls of half a microsecond in 10 ms.
pub const SAMPLES_MAX: usize = 32;
/// Paths whose smallest round trip is kept.
const PATHS_MAX: usize = 8192;
/// Connections kept to be asked.
const WATCHED_MAX: usize = 256;
/// Looks for which a connection with bytes under way is asked again.
const LOOKS_MAX: u8 = 50;
/// Looks over which the share of the sampled bytes is taken.
const RATIO_LOOKS: f64 = 50.0;
/// A delay is good for so long: many round trips of a near path, a part of one of a far one.
const DELAY_AGE_NS_MAX: u64 = 100_000_000;
/// Within less than this nothing waited, be the acknowledgement delayed or not: without an estimate
/// the controller takes more for a queue.
const SHORT_NS: u64 = 8_000_000;
/// The share of the paths whose delay is smaller than the one taken for all: what delays one client
/// delays it alone, what delays nearly all is shared.
const DELAY_QUANTILE: f64 = 0.25;

/// The connections to ask at the next look.
#[derive(Default)]
pub struct Recent(Vec<Arc<Transport>>);

impl Recent {
    /// The connection was given a grant.
    pub fn note(&mut self, transport: &Arc<Transport>) {
        if self.0.len() < SAMPLES_MAX && transport.set_recent() {
            self.0.push(Arc::clone(transport));
        }
    }

    /// Takes the list, which begins anew.
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    fn watched(self) -> impl Iterator<Item = Watched> {
        self.0.into_iter().map(|transport| {
            transport.clear_recent();
            Watched {
                transport,
                looks: LOOKS_MAX,
            }
        })
    }
}

/// The counters of a connection when it was asked last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    bytes: Bytes,
    /// The last look's number.
    look: u64,
}

/// Payload bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    sent: u64,
    resent: u64,
    acked: u64,
}

impl Counted {
    /// When the connection was asked before: 0 where it never was.
    fn begin(&mut self, look: u64) -> u64 {
        std::mem::replace(&mut self.look, look)
    }

    /// What happened since; the counters are now what `info` says.
    fn advance(&mut self, info: &TcpInfo) -> Bytes {
        let now = Bytes {
            sent: info.sent_bytes,
            resent: info.resent_bytes,
            acked: info.acked_bytes,
        };
        let before = std::mem::replace(&mut self.bytes, now);
        Bytes {
            sent: now.sent.saturating_sub(before.sent),
            resent: now.resent.saturating_sub(before.resent),
            acked: now.acked.saturating_sub(before.acked),
        }
    }
}

/// What a look saw, scaled to all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Wire bytes that arrived since the last look.
    pub delivered_bytes: u64,
    /// Wire bytes that were sent again.
    pub lost_bytes: u64,
    /// The delay that the paths share, in nanoseconds.
    pub shared_delay_ns: Option<u64>,
    /// The paths behind it.
    pub paths: u32,
    /// The median round trip of the connections asked, in nanoseconds.
    pub rtt_ns: Option<u64>,
    /// Connections asked whose bytes have not all arrived.
    pub under_way: usize,
}

struct Watched {
    transport: Arc<Transport>,
    looks: u8,
}

/// Asks, and sums up.
pub struct Sampler {
    paths: Paths,
    delays: Delays,
    looks: u64,
    watched: Vec<Watched>,
    /// Of the last looks: wire bytes in all, and payload bytes of the connections asked.
    wire_bytes_lately: f64,
    sampled_bytes_lately: f64,
}

impl Sampler {
    /// A sampler that knows no path yet.
    pub fn new() -> Self {
        Self {
            paths: Paths::new(PATHS_MAX),
            delays: Delays::default(),
            looks: 0,
            watched: Vec::new(),
            wire_bytes_lately: 0.0,
            sampled_bytes_lately: 0.0,
        }
    }

    /// Asks the connections in `recent` and those with bytes under way. Since the last look
    /// `wire_bytes` were sent in all.
    pub fn look(&mut self, recent: Recent, wire_bytes: u64, now_ns: u64) -> Seen {
        self.looks += 1;
        let mut asked = Asked::default();
        let before = std::mem::take(&mut self.watched);
        for connection in before.into_iter().chain(recent.watched()) {
            if asked.connections < SAMPLES_MAX {
                self.ask(connection, &mut asked, now_ns);
            } else if self.watched.len() < WATCHED_MAX {
                self.watched.push(connection);
            }
        }
        let shared = (!asked.rtts_ns.is_empty()).then(|| self.delays.shared(now_ns));
        Seen {
            shared_delay_ns: shared.and_then(|(delay_ns, _)| delay_ns),
            paths: shared.map_or(0, |(_, paths)| paths),
            ..self.summed(asked, wire_bytes)
        }
    }

    fn ask(&mut self, watched: Watched, asked: &mut Asked, now_ns: u64) {
        let Watched { transport, looks } = watched;
        let asked_at = transport.count(|counted| counted.begin(self.looks));
        if asked_at == self.looks {
            return;
        }
        asked.connections += 1;
        let Ok(info) = transport.ask() else {
            return;
        };
        let since = transport.count(|counted| counted.advance(&info));
        asked.add(since);
        let of_handshake = asked_at == 0 && info.acked_bytes == 0;
        if info.rtt_us > 0 {
            let delay_ns = self.delay_ns(transport.client(), &info, now_ns);
            if tells(&info, of_handshake, since.acked, delay_ns) {
                let seen_ns = now_ns.saturating_sub(age_ns(&info));
                self.delays.add(transport.client(), delay_ns, seen_ns);
                asked.rtts_ns.push(u64::from(info.rtt_us) * 1000);
            }
        }
        if info.acked_bytes < info.sent_bytes.saturating_sub(info.resent_bytes) {
            asked.under_way += 1;
            if looks > 1 && self.watched.len() < WATCHED_MAX {
                let looks = looks - 1;
                self.watched.push(Watched { transport, looks });
            }
        }
    }

    fn delay_ns(&mut self, client: IpAddr, info: &TcpInfo, now_ns: u64) -> u64 {
        let rtt_ns = u64::from(info.rtt_us) * 1000;
        let rtt_ns_min = u64::from(info.rtt_us_min) * 1000;
        self.paths.delay_ns(client, rtt_ns, rtt_ns_min, now_ns)
    }

    fn summed(&mut self, mut asked: Asked, wire_bytes: u64) -> Seen {
        let kept = 1.0 - 1.0 / RATIO_LOOKS;
        self.wire_bytes_lately = self.wire_bytes_lately * kept + wire_bytes as f64;
        self.sampled_bytes_lately = self.sampled_bytes_lately * kept + asked.bytes.sent as f64;
        let scale = if self.sampled_bytes_lately > 0.0 {
            (self.wire_bytes_lately / self.sampled_bytes_lately).max(1.0)
        } else {
            1.0
        };
        asked.rtts_ns.sort_unstable();
        let rtt_ns = asked.rtts_ns.get(asked.rtts_ns.len() / 2).copied();
        let delivered_bytes = (asked.bytes.acked as f64 * scale) as u64;
        let lost_bytes = (asked.bytes.resent as f64 * scale) as u64;
        Seen {
            delivered_bytes,
            lost_bytes,
            under_way: asked.under_way,
            rtt_ns,
            ..Seen::default()
        }
    }
}

/// Whether the round trip, with so much delay in it, tells of the queue that there is now.
fn tells(info: &TcpInfo, of_handshake: bool, acked_bytes: u64, delay_ns: u64) -> bool {
    let at_once = acked_bytes > u64::from(info.segment_bytes);
    age_ns(info) <= DELAY_AGE_NS_MAX && (of_handshake || at_once || delay_ns < SHORT_NS)
}

fn age_ns(info: &TcpInfo) -> u64 {
    u64::from(info.ack_age_ms) * 1_000_000
}

/// The sums of one look, in payload bytes.
#[derive(Default)]
struct Asked {
    connections: usize,
    under_way: usize,
    bytes: Bytes,
    rtts_ns: Vec<u64>,
}

impl Asked {
    fn add(&mut self, since: Bytes) {
        self.bytes.sent += since.sent;
        self.bytes.resent += since.resent;
        self.bytes.acked += since.acked;
    }
}

/// The delays seen on each path within the last [`DELAY_AGE_NS_MAX`].
#[derive(Default)]
struct Delays(Vec<Delay>);

struct Delay {
    client: IpAddr,
    delay_ns: u64,
    seen_ns: u64,
}

impl Delays {
    fn add(&mut self, client: IpAddr, delay_ns: u64, seen_ns: u64) {
        self.0.push(Delay {
            client,
            delay_ns,
            seen_ns,
        });
    }

    /// The delay that all but [`DELAY_QUANTILE`] of the paths have at least, each path with the smallest
    /// that it showed (the kernel smooths round trips: they rise at once and fall late); and how many
    /// paths there are.
    fn shared(&mut self, now_ns: u64) -> (Option<u64>, u32) {
        self.0
            .retain(|delay| now_ns.saturating_sub(delay.seen_ns) <= DELAY_AGE_NS_MAX);
        self.0.sort_by_key(|delay| (delay.client, delay.delay_ns));
        let mut smallest: Vec<u64> = self
            .0
            .chunk_by(|one, other| one.client == other.client)
            .map(|of_path| of_path[0].delay_ns)
            .collect();
        smallest.sort_unstable();
        let paths = smallest.len();
        let at = (paths as f64 * DELAY_QUANTILE) as usize;
        (smallest.get(at).copied(), paths as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn client(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
    }

    fn shared(of: &[(u8, u64)]) -> (Option<u64>, u32) {
        let mut delays = Delays::default();
        for &(last, delay_ns) in of {
            delays.add(client(last), delay_ns, 0);
        }
        delays.shared(DELAY_AGE_NS_MAX)
    }

    #[test]
    fn one_slow_client_is_not_a_shared_queue() {
        let one_slow = [(1, 900), (1, 800), (1, 950), (2, 3), (3, 5)];
        assert_eq!(shared(&one_slow), (Some(3), 3));
        let all = [(1, 80), (2, 83), (3, 79), (4, 91)];
        assert_eq!(shared(&all), (Some(80), 4));
        assert_eq!(shared(&[]), (None, 0));
    }

    #[test]
    fn a_round_trip_tells_of_now_if_it_is_fresh_and_no_acknowledgement_was_delayed() {
        let info = |ack_age_ms| TcpInfo {
            segment_bytes: 1448,
            ack_age_ms,
            ..TcpInfo::default()
        };
        let long_ns = 40_000_000;
        assert!(tells(&info(0), true, 0, long_ns), "of the handshake");
        assert!(tells(&info(90), false, 2 * 1448, long_ns), "two at once");
        assert!(!tells(&info(0), false, 1448, long_ns), "it may be delayed");
        assert!(tells(&info(0), false, 1448, SHORT_NS - 1), "nothing waited");
        assert!(!tells(&info(101), true, 0, 0), "the queue of long ago");
    }

    #[test]
    fn a_delay_is_forgotten() {
        let mut delays = Delays::default();
        delays.add(client(1), 7, 0);
        delays.add(client(1), 9, DELAY_AGE_NS_MAX);
        assert_eq!(delays.shared(DELAY_AGE_NS_MAX + 1), (Some(9), 1));
    }

    #[test]
    fn what_was_not_asked_is_taken_to_be_as_what_was() {
        let mut sampler = Sampler::new();
        let half = || Asked {
            bytes: Bytes {
                sent: 1000,
                acked: 500,
                resent: 100,
            },
            ..Asked::default()
        };
        let seen = sampler.summed(half(), 2000);
        assert_eq!((seen.delivered_bytes, seen.lost_bytes), (1000, 200));
        let nothing_sent = Asked {
            bytes: Bytes {
                acked: 500,
                ..Bytes::default()
            },
            ..Asked::default()
        };
        assert_eq!(sampler.summed(nothing_sent, 0).delivered_bytes, 1000);
    }

    #[test]
    fn a_connection_is_asked_once_a_look() {
        let mut counted = Counted::default();
        assert_eq!([1, 1, 2].map(|look| counted.begin(look)), [0, 1, 1]);
    }

    #[test]
    fn counters_that_restart_count_nothing() {
        let mut counted = Counted::default();
        let info = |sent_bytes| TcpInfo {
            sent_bytes,
            ..TcpInfo::default()
        };
        assert_eq!(counted.advance(&info(700)).sent, 700);
        assert_eq!(counted.advance(&info(900)).sent, 200);
        assert_eq!(counted.advance(&info(100)).sent, 0);
    }
}
