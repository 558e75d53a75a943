//! What the kernel says of the connections that were just sending (`TCP_INFO`), summed up.
//!
//! Bounded work: at each look at most [`SAMPLES_MAX`] connections are asked, one system call each,
//! however many there are: in turn those that had a grant and whose bytes have not all arrived, up to
//! [`WATCHED_MAX`] of them. What further ones did is taken to be as what these did: the sums are
//! scaled to all that was sent (a ratio estimate over the last [`RATIO_LOOKS`] looks or so). A
//! connection that is over is kept until its last byte has arrived, 500 ms at most.
//!
//! What a round trip tells, when it is believed, is in `round_trip`; what the paths share in `shared`.

use std::collections::VecDeque;
use std::sync::Arc;

use super::counted::Bytes;
use super::paths::Paths;
use super::shared::Delays;
use crate::connections::ConnectionId;
use crate::driver::socket::Socket;
use crate::queue::SAMPLES_MAX;

/// Paths whose smallest round trip is kept.
const PATHS_MAX: usize = 8192;
/// Connections kept to be asked.
const WATCHED_MAX: usize = 256;
/// A connection with bytes under way is asked for so long after its grant.
const WATCHED_NS_MAX: u64 = 500_000_000;
/// Looks over which the share of the sampled bytes is taken.
const RATIO_LOOKS: f64 = 50.0;

/// Connections that had a grant, each with its socket.
pub type Recent = Vec<(ConnectionId, Arc<Socket>)>;

/// What a look saw, scaled to all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
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
    id: ConnectionId,
    socket: Arc<Socket>,
    since_ns: u64,
}

/// Asks, and sums up.
pub struct Sampler {
    paths: Paths,
    delays: Delays,
    /// Whose turn comes next is in front.
    watched: VecDeque<Watched>,
    /// Those that it watched until now.
    let_go: Vec<ConnectionId>,
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
            watched: VecDeque::new(),
            let_go: Vec::new(),
            wire_bytes_lately: 0.0,
            sampled_bytes_lately: 0.0,
        }
    }

    /// Watches the connections in `recent` too, and asks those whose turn it is. Since the last look
    /// `wire_bytes` were sent in all.
    pub fn look(&mut self, recent: Recent, wire_bytes: u64, now_ns: u64) -> Sample {
        for (id, socket) in recent {
            self.watch(Watched {
                id,
                socket,
                since_ns: now_ns,
            });
        }
        let mut asked = Sums::default();
        for _ in 0..self.watched.len().min(SAMPLES_MAX) {
            if let Some(watched) = self.watched.pop_front() {
                self.ask(watched, &mut asked, now_ns);
            }
        }
        let shared = (!asked.rtts_ns.is_empty()).then(|| self.delays.shared(now_ns));
        Sample {
            shared_delay_ns: shared.and_then(|(delay_ns, _)| delay_ns),
            paths: shared.map_or(0, |(_, paths)| paths),
            ..self.summed(asked, wire_bytes)
        }
    }

    /// Lets go of all connections.
    pub fn rest(&mut self) {
        let watched = self.watched.drain(..);
        self.let_go.extend(watched.map(|watched| watched.id));
    }

    /// The connections that it watches no more, since it was last asked.
    pub fn take_let_go(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.let_go)
    }

    /// Puts the connection last in turn, as far as there is room.
    fn watch(&mut self, watched: Watched) {
        if self.watched.len() < WATCHED_MAX {
            self.watched.push_back(watched);
        } else {
            self.let_go.push(watched.id);
        }
    }

    fn ask(&mut self, watched: Watched, asked: &mut Sums, now_ns: u64) {
        let Ok(info) = watched.socket.ask() else {
            self.let_go.push(watched.id);
            return;
        };
        let client = watched.socket.address;
        let (since, rtt) = watched.socket.count(|counted| {
            let since = counted.advance(&info);
            (since, counted.round_trips.of(&info, since.acked))
        });
        asked.add(since);
        if let Some(rtt) = rtt {
            let rtt_ns = rtt.ns();
            let rtt_ns_min = u64::from(info.rtt_us_min) * 1000;
            let delay_ns = self.paths.delay_ns(client, rtt_ns, rtt_ns_min, now_ns);
            if rtt.tells_of_now(delay_ns) {
                let seen_ns = now_ns.saturating_sub(rtt.age_ns());
                self.delays.add(client, delay_ns, seen_ns);
                asked.rtts_ns.push(rtt_ns);
            }
        }
        let under_way = info.acked_bytes < info.sent_bytes.saturating_sub(info.resent_bytes);
        asked.under_way += usize::from(under_way);
        if under_way && now_ns.saturating_sub(watched.since_ns) < WATCHED_NS_MAX {
            self.watched.push_back(watched);
        } else {
            self.let_go.push(watched.id);
        }
    }

    fn summed(&mut self, mut asked: Sums, wire_bytes: u64) -> Sample {
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
        Sample {
            delivered_bytes,
            lost_bytes,
            under_way: asked.under_way,
            rtt_ns,
            ..Sample::default()
        }
    }
}

/// The sums of one look, in payload bytes.
#[derive(Default)]
struct Sums {
    under_way: usize,
    bytes: Bytes,
    rtts_ns: Vec<u64>,
}

impl Sums {
    fn add(&mut self, since: Bytes) {
        self.bytes.sent += since.sent;
        self.bytes.resent += since.resent;
        self.bytes.acked += since.acked;
    }
}

#[cfg(test)]
mod tests {
    use shortline_base::TcpInfo;

    use super::super::counted::Counted;
    use super::*;

    #[test]
    fn what_was_not_asked_is_taken_to_be_as_what_was() {
        let mut sampler = Sampler::new();
        let half = || Sums {
            bytes: Bytes {
                sent: 1000,
                acked: 500,
                resent: 100,
            },
            ..Sums::default()
        };
        let seen = sampler.summed(half(), 2000);
        assert_eq!((seen.delivered_bytes, seen.lost_bytes), (1000, 200));
        let nothing_sent = Sums {
            bytes: Bytes {
                acked: 500,
                ..Bytes::default()
            },
            ..Sums::default()
        };
        assert_eq!(sampler.summed(nothing_sent, 0).delivered_bytes, 1000);
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
