//! Datagrams between the server's UDP port and its clients, and what quinn needs of a machine besides: timers and tasks.
//!
//! On its way to a client a datagram passes the uplink that all connections share. It may be lost, by the path or because the uplink's
//! queue is full, or be overtaken. So QUIC's own recovery is at work, where the streams of [`super::pipe`] have a simulated one.
//! Departures: on the way to the server nothing is lost, and no router marks datagrams (ECN).

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncTimer, AsyncUdpSocket, Endpoint, EndpointConfig, Runtime, UdpPoller};
use rand::Rng;

use super::{Path, Uplink};
use crate::world::World;

/// Ethernet, IPv4 and UDP headers.
const DATAGRAM_HEADER_BYTES: u64 = 42;
/// The most that a datagram carries.
const DATAGRAM_BYTES_MAX: usize = 1472;
/// How long a socket takes nothing once it has refused a datagram.
const FULL_NS: u64 = 1_000_000;

/// All sockets of a world.
pub struct Datagrams {
    world: Arc<World>,
    uplink: Arc<Uplink>,
    server: SocketAddr,
    sockets: Mutex<HashMap<SocketAddr, Known>>,
}

/// What is known of a socket.
struct Known {
    socket: Weak<UdpSocket>,
    /// Datagrams that were lost on the way to it, without one in between that was not.
    lost_in_row: u32,
    lost_in_row_max: u32,
}

impl Datagrams {
    /// Nobody has a socket yet. The server will be at `server`.
    pub fn new(world: &Arc<World>, uplink: Arc<Uplink>, server: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            uplink,
            server,
            sockets: Mutex::default(),
        })
    }

    /// An endpoint at that address, and its socket. Of a client: with the path to it.
    ///
    /// # Panics
    /// A simulated socket has no address.
    pub fn endpoint(
        self: &Arc<Self>,
        address: SocketAddr,
        path: Option<Path>,
    ) -> (Endpoint, Arc<UdpSocket>) {
        let socket = Arc::new(UdpSocket {
            all: Arc::clone(self),
            address,
            path,
            state: Mutex::default(),
        });
        let known = Known {
            socket: Arc::downgrade(&socket),
            lost_in_row: 0,
            lost_in_row_max: 0,
        };
        self.sockets.lock().insert(address, known);
        let mut config = EndpointConfig::default();
        config.rng_seed(Some(self.world.draw(|random| random.random())));
        let runtime = Arc::new(InWorld {
            world: Arc::clone(&self.world),
            began: Instant::now(),
        });
        let quic = Arc::clone(&socket) as Arc<dyn AsyncUdpSocket>;
        let endpoint = Endpoint::new_with_abstract_socket(config, None, quic, runtime)
            .expect("a simulated socket has an address");
        (endpoint, socket)
    }

    /// The most datagrams in a row that were lost on the way to an address.
    pub fn lost_in_row_max(&self, address: SocketAddr) -> u32 {
        let sockets = self.sockets.lock();
        sockets
            .get(&address)
            .map_or(0, |known| known.lost_in_row_max)
    }

    fn at(&self, address: SocketAddr) -> Option<Arc<UdpSocket>> {
        self.sockets.lock().get(&address)?.socket.upgrade()
    }

    /// How long a datagram travels from the server to a client. `None`: it is lost.
    fn travel(&self, to: SocketAddr, path: &Path, bytes: usize) -> Option<u64> {
        let now_ns = self.world.now_ns();
        let lost = self.world.chance(path.loss);
        let departs_ns = self
            .uplink
            .depart(now_ns, bytes as u64 + DATAGRAM_HEADER_BYTES);
        let mut sockets = self.sockets.lock();
        let known = sockets.get_mut(&to)?;
        match departs_ns {
            Some(departs_ns) if !lost => {
                known.lost_in_row = 0;
                Some(departs_ns - now_ns + path.delay_ns)
            }
            _ => {
                known.lost_in_row += 1;
                known.lost_in_row_max = known.lost_in_row_max.max(known.lost_in_row);
                None
            }
        }
    }
}

/// One socket.
pub struct UdpSocket {
    all: Arc<Datagrams>,
    address: SocketAddr,
    path: Option<Path>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    received: VecDeque<(SocketAddr, Vec<u8>)>,
    reader: Option<Waker>,
    /// Takes nothing until then.
    full_until_ns: u64,
    vanished: bool,
}

impl UdpSocket {
    /// Lets nothing pass any more in either direction. Nobody is told.
    pub fn vanish(&self) {
        self.all
            .world
            .note(format_args!("{} vanishes", self.address));
        self.state.lock().vanished = true;
    }

    /// Sends bytes that are not QUIC's.
    pub fn send(&self, bytes: &[u8]) {
        let to = self.all.server;
        let path = self.path.expect("invariant: clients have a path");
        self.pass(to, &path, bytes);
    }

    /// Passes a datagram on between a client and the server.
    fn pass(&self, to: SocketAddr, path: &Path, bytes: &[u8]) {
        let world = &self.all.world;
        let Some(socket) = self.all.at(to) else {
            return;
        };
        let travels_ns = match self.path {
            Some(_) => Some(path.delay_ns),
            None => self.all.travel(to, path, bytes.len()),
        };
        let Some(travels_ns) = travels_ns else {
            return world.note(format_args!("{to} loses {} bytes", bytes.len()));
        };
        let jitter_ns = match path.jitter_ns {
            0 => 0,
            most => world.draw(|random| random.random_range(0..most)),
        };
        let (from, bytes) = (self.address, bytes.to_vec());
        world.after(travels_ns + jitter_ns, move || socket.arrived(from, bytes));
    }

    fn arrived(&self, from: SocketAddr, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        if state.vanished {
            return;
        }
        let world = &self.all.world;
        world.note(format_args!(
            "{} gets {} bytes of {from}",
            self.address,
            bytes.len()
        ));
        state.received.push_back((from, bytes));
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }
}

impl AsyncUdpSocket for UdpSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Room(self))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let world = &self.all.world;
        let now_ns = world.now_ns();
        let to = transmit.destination;
        let path = match self.path {
            Some(path) => Some(path),
            None => self.all.at(to).and_then(|socket| socket.path),
        };
        let Some(path) = path else {
            return Ok(());
        };
        {
            let mut state = self.state.lock();
            if state.vanished || transmit.contents.len() > DATAGRAM_BYTES_MAX {
                return Ok(());
            }
            let is_full = now_ns < state.full_until_ns;
            if !is_full && self.path.is_none() && world.chance(path.short_writes / 10.0) {
                state.full_until_ns = now_ns + FULL_NS;
            }
            if now_ns < state.full_until_ns {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        self.pass(to, &path, transmit.contents);
        Ok(())
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        told: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.state.lock();
        let mut count = 0;
        for (buffer, told) in buffers.iter_mut().zip(told) {
            let Some((from, bytes)) = state.received.pop_front() else {
                break;
            };
            let length = bytes.len().min(buffer.len());
            buffer[..length].copy_from_slice(&bytes[..length]);
            *told = RecvMeta {
                addr: from,
                len: length,
                stride: length,
                ecn: None,
                dst_ip: Some(self.address.ip()),
            };
            count += 1;
        }
        if count > 0 {
            return Poll::Ready(Ok(count));
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UdpSocket({})", self.address)
    }
}

/// Waits until a socket takes datagrams.
#[derive(Debug)]
struct Room(Arc<UdpSocket>);

impl UdpPoller for Room {
    fn poll_writable(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let world = &self.0.all.world;
        let left_ns = self.0.state.lock().full_until_ns;
        let left_ns = left_ns.saturating_sub(world.now_ns());
        if left_ns == 0 {
            return Poll::Ready(Ok(()));
        }
        let waker = context.waker().clone();
        world.after(left_ns, move || waker.wake());
        Poll::Pending
    }
}

/// The runtime that quinn runs in.
struct InWorld {
    world: Arc<World>,
    /// When the world began, on the clock that quinn uses. It is only added to.
    began: Instant,
}

impl Runtime for InWorld {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(Timer {
            world: Arc::clone(&self.world),
            began: self.began,
            at_ns: at.saturating_duration_since(self.began).as_nanos() as u64,
            state: Arc::default(),
        })
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        tokio::spawn(future);
    }

    fn wrap_udp_socket(&self, _: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn now(&self) -> Instant {
        self.began + Duration::from_nanos(self.world.now_ns())
    }
}

impl fmt::Debug for InWorld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InWorld")
    }
}

/// A timer of quinn's.
struct Timer {
    world: Arc<World>,
    began: Instant,
    at_ns: u64,
    state: Arc<Mutex<Waits>>,
}

#[derive(Default)]
struct Waits {
    /// The next event that will wake it.
    event_ns: Option<u64>,
    waker: Option<Waker>,
}

impl AsyncTimer for Timer {
    fn reset(mut self: Pin<&mut Self>, at: Instant) {
        self.at_ns = at.saturating_duration_since(self.began).as_nanos() as u64;
    }

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let now_ns = self.world.now_ns();
        if now_ns >= self.at_ns {
            return Poll::Ready(());
        }
        let mut waits = self.state.lock();
        waits.waker = Some(context.waker().clone());
        if waits.event_ns.is_none_or(|event_ns| event_ns > self.at_ns) {
            let at_ns = self.at_ns;
            waits.event_ns = Some(at_ns);
            let state = Arc::clone(&self.state);
            self.world.after(at_ns - now_ns, move || {
                let mut waits = state.lock();
                if waits.event_ns == Some(at_ns) {
                    waits.event_ns = None;
                    if let Some(waker) = waits.waker.take() {
                        waker.wake();
                    }
                }
            });
        }
        Poll::Pending
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Timer({} ns)", self.at_ns)
    }
}
