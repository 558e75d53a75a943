//! The network: connections of two byte streams each, and datagrams ([`datagrams`]), over one uplink that all of the server's
//! connections share.
//!
//! A stream behaves like TCP. Segments may be lost (and are resent after a timeout), reordered, or
//! never arrive. There are acknowledgements, a congestion window that doubles every round trip and
//! halves at a loss, a receive window that closes while nobody reads, a send buffer with a mark of
//! unsent bytes (`TCP_NOTSENT_LOWAT`), half-closes and resets. Departures: a resent segment takes
//! no place on the uplink, every segment is acknowledged by itself, and closing with unread bytes
//! resets the peer at once.

mod datagrams;
mod halves;
mod pipe;

use std::sync::Arc;

use parking_lot::Mutex;

use crate::world::World;

pub use datagrams::{Datagrams, UdpSocket};
pub use halves::{End, reset_by_backend, server_halves};
use pipe::Pipe;

/// Ethernet, IP and TCP headers of a packet.
const PACKET_HEADER_BYTES: u64 = 66;

/// The properties of a path through the network.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The one-way delay, in nanoseconds.
    pub delay_ns: u64,
    /// The most added to the delay. It is drawn for each segment, so that segments can overtake
    /// each other.
    pub jitter_ns: u64,
    /// The share of segments lost towards the client.
    pub loss: f64,
    /// The unread bytes that the client's socket holds.
    pub window_bytes: u32,
    /// The unacknowledged bytes that the server's socket holds.
    pub buffer_bytes: u32,
    /// The share of writes of which the server's socket takes only a part.
    pub short_writes: f64,
}

impl Path {
    /// How long the client takes all that the server's socket can hold: it gets a window in each
    /// round trip.
    pub fn backlog_ns(&self) -> u64 {
        let windows = self.buffer_bytes.div_ceil(self.window_bytes);
        u64::from(windows) * (2 * self.delay_ns + self.jitter_ns)
    }
}

/// The bottleneck that all of the server's connections share: a FIFO queue.
pub struct Uplink(Mutex<Line>);

struct Line {
    rate_bps: u64,
    queue_bytes_max: u64,
    free_ns: u64,
    sent_bytes: u64,
}

impl Uplink {
    /// An uplink with this rate. A segment that finds this many bytes queued is dropped.
    pub fn new(rate_bps: u64, queue_bytes_max: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Line {
            rate_bps,
            queue_bytes_max,
            free_ns: 0,
            sent_bytes: 0,
        })))
    }

    /// Changes the rate for segments that come from now on.
    pub fn set_rate(&self, rate_bps: u64) {
        self.0.lock().rate_bps = rate_bps;
    }

    /// The wire bytes that have passed so far.
    pub fn sent_bytes(&self) -> u64 {
        self.0.lock().sent_bytes
    }

    /// When a packet of so many bytes that arrives now has left. `None`: the queue is full.
    fn depart(&self, now_ns: u64, wire_bytes: u64) -> Option<u64> {
        let mut line = self.0.lock();
        let ns = |bytes: u64, rate_bps: u64| bytes * 8_000_000_000 / rate_bps;
        let begins_ns = line.free_ns.max(now_ns);
        if begins_ns - now_ns > ns(line.queue_bytes_max, line.rate_bps) {
            return None;
        }
        line.free_ns = begins_ns + ns(wire_bytes, line.rate_bps);
        line.sent_bytes += wire_bytes;
        Some(line.free_ns)
    }
}

/// One connection: the server's end and the other.
pub struct Connection {
    /// Its number, for the trace.
    pub number: u64,
    world: Arc<World>,
    /// Towards the server.
    pub up: Arc<Pipe>,
    /// From the server.
    pub down: Arc<Pipe>,
}

impl Connection {
    /// A connection over `path`. Its bytes from the server pass `uplink`, if there is one.
    pub fn open(
        world: &Arc<World>,
        number: u64,
        path: Path,
        uplink: Option<Arc<Uplink>>,
    ) -> Arc<Self> {
        let up = Path {
            loss: 0.0,
            window_bytes: 256 << 10,
            buffer_bytes: 256 << 10,
            short_writes: 0.0,
            ..path
        };
        let name = |side| format!("c{number}{side}");
        Arc::new(Self {
            number,
            world: Arc::clone(world),
            up: Pipe::new(world, name('>'), up, None),
            down: Pipe::new(world, name('<'), path, uplink),
        })
    }

    /// Lets nothing pass any more in either direction. Nobody is told.
    pub fn vanish(&self) {
        self.world.note(format_args!("c{} vanishes", self.number));
        self.up.vanish();
        self.down.vanish();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::content::{Checked, piece};
    use crate::world::runtime;

    /// Runs what `live` makes in a world of its own.
    fn in_world<F: Future<Output = ()> + Send + 'static>(
        seed: u64,
        live: impl FnOnce(Arc<World>) -> F,
    ) {
        let (runtime, rest) = runtime();
        runtime.block_on(async {
            let world = World::new(ChaCha8Rng::seed_from_u64(seed), rest, false);
            let living = tokio::spawn(live(Arc::clone(&world)));
            world.drive(|| living.is_finished().then_some(())).await;
            living.await.expect("it does not panic");
        });
    }

    fn path(random: &mut ChaCha8Rng) -> Path {
        Path {
            delay_ns: random.random_range(1..30_000_000),
            jitter_ns: random.random_range(0..10_000_000),
            loss: random.random_range(0.0..0.2),
            window_bytes: random.random_range(1..40_000),
            buffer_bytes: random.random_range(1..40_000),
            short_writes: random.random_range(0.0..0.5),
        }
    }

    #[test]
    fn bytes_arrive_whole_in_order_and_once_whatever_the_way_is_like() {
        for seed in 0..60 {
            in_world(seed, |world| async move {
                let bytes = world.draw(|random| random.random_range(0..60_000));
                let way = world.draw(path);
                let uplink = Uplink::new(5_000_000, 20_000);
                let connection = Connection::open(&world, 0, way, Some(uplink));
                let (mut server, mut client) =
                    (End::of_backend(&connection), End::of_client(&connection));
                tokio::spawn(async move {
                    // The reader sees what is wrong.
                    let _ = server.write_all(&piece(seed, 0, bytes)).await;
                });
                let mut read = Vec::new();
                let ended = client.read_to_end(&mut read).await;
                let mut checked = Checked::new(seed, 0, bytes as u64);
                assert!(ended.is_ok() && checked.take(&read).is_ok(), "seed {seed}");
                assert_eq!(checked.missing(), 0, "seed {seed}");
            });
        }
    }

    #[test]
    fn a_reset_ends_what_is_read_and_what_is_written() {
        in_world(1, |world| async move {
            let way = world.draw(path);
            let connection = Connection::open(&world, 0, way, None);
            let (server, mut client) = (End::of_backend(&connection), End::of_client(&connection));
            server.reset();
            let read = client.read(&mut [0; 8]).await;
            let error = read.expect_err("it was reset");
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        });
    }

    #[test]
    fn an_uplink_passes_its_rate_and_drops_what_does_not_fit() {
        let uplink = Uplink::new(8_000_000, 2_000);
        // One byte per microsecond.
        assert_eq!(uplink.depart(0, 1000), Some(1_000_000));
        assert_eq!(uplink.depart(0, 1000), Some(2_000_000));
        assert_eq!(uplink.depart(0, 1000), Some(3_000_000));
        assert_eq!(uplink.depart(0, 1000), None, "3,000 bytes are before it");
        assert_eq!(uplink.depart(10_000_000, 1000), Some(11_000_000));
        assert_eq!(uplink.sent_bytes(), 4_000);
    }
}
