//! A UDP port that accepts QUIC connections beside the TCP socket of the same address.
//!
//! One quinn endpoint per port reads the socket, in the thread that opened it. A connection runs in the thread that took it, as a TCP
//! connection does. It is registered with the same limits, and its handshake is a job of its client, like that of TLS over TCP.
//!
//! **Addresses that are not the client's own.** A first packet may come from anybody in any name. While few handshakes are under way a
//! connection begins at once. Beyond `HANDSHAKES_MAX`, or where the address has half of its connections, the client must first
//! send back what only the owner of the address gets (Retry). Before that nothing is kept of it, and no limit is used up in another's name.
//!
//! **When it ends.** A port that is given up takes no new connections; its socket is closed when the last of them has ended. A
//! process whose place another takes ([`Port::retire`]) does so too, and the other one opens the port as soon as it is free.
//! Whoever asks in between gets no answer by QUIC, and uses TCP.
//!
//! The key of stateless resets (RFC 9000, 10.3) is new in each process: a process that ends tells its connections, and one that
//! crashes leaves them to their timeouts.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderMap;
use http::HeaderValue;
use parking_lot::Mutex;
use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{
    Endpoint, EndpointConfig, Incoming, MtuDiscoveryConfig, ServerConfig, TokioRuntime,
    TransportConfig,
};
use rustls::ProtocolVersion;
use socket2::{Domain, Protocol, Socket, Type};

use super::wire::{Sending, Wire};
use super::{CLIENT_STREAMS_MAX, CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES};
use crate::connection::turn;
use crate::context::Connection;
use crate::limits::Limits;
use crate::server::{Arrival, Taker};
use crate::watch::Registration;

/// HTTP/3 as ALPN calls it (RFC 9114, 3.1).
const ALPN: &[u8] = b"h3";
/// So many handshakes of a port may be under way before clients must show that their address is theirs.
const HANDSHAKES_MAX: usize = 64;
/// First packets that nobody has looked at yet, and what is kept of each connection until then, and of all.
const FIRST_PACKETS_MAX: usize = 1024;
const FIRST_BYTES_MAX: u64 = 16 * 1024;
const FIRST_BYTES_MAX_OF_ALL: u64 = 4 << 20;
/// What the kernel keeps of packets that nobody has read yet, if it allows as much.
const RECEIVE_BUFFER_BYTES: usize = 2 << 20;
/// How long clients may remember that the port is there, in seconds (RFC 7838, 3.1).
const REMEMBERED_SECONDS: u32 = 24 * 60 * 60;
/// How exactly the largest packet of a path is looked for, between 1200 and 1452 bytes. Each probe is such a packet: with the 20 bytes
/// of quinn's default they are four, 5.6 KB for each connection. With half of the range the first is the largest, which most paths take.
const MTU_STEP_BYTES: u16 = 127;
/// How often a port that is not free is tried again.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// A UDP port; see the module's text.
pub struct Port {
    address: SocketAddr,
    open: Mutex<Open>,
    handshakes: AtomicUsize,
}

enum Open {
    Not,
    Bound(UdpSocket),
    Endpoint(Endpoint),
}

impl Port {
    /// The port of a TCP socket's address.
    ///
    /// # Errors
    /// It is not free.
    pub fn bind(address: SocketAddr) -> io::Result<Arc<Self>> {
        let port = Self::later(address);
        *port.open.lock() = Open::Bound(bind(address)?);
        Ok(port)
    }

    /// The same, which is opened as soon as it is free.
    pub fn later(address: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            address,
            open: Mutex::new(Open::Not),
            handshakes: AtomicUsize::new(0),
        })
    }

    /// One that is open already, as in a simulated world.
    pub fn of(endpoint: Endpoint, address: SocketAddr) -> Arc<Self> {
        let port = Self::later(address);
        *port.open.lock() = Open::Endpoint(endpoint);
        port
    }

    /// Its endpoint, with `config` for who connects from now on. Must be called inside a runtime.
    fn endpoint(&self, config: &ServerConfig) -> io::Result<Endpoint> {
        let mut open = self.open.lock();
        let socket = match std::mem::replace(&mut *open, Open::Not) {
            Open::Not => bind(self.address)?,
            Open::Bound(socket) => socket,
            Open::Endpoint(endpoint) => {
                endpoint.set_server_config(Some(config.clone()));
                *open = Open::Endpoint(endpoint.clone());
                return Ok(endpoint);
            }
        };
        let endpoint = Endpoint::new(
            EndpointConfig::default(),
            Some(config.clone()),
            socket,
            Arc::new(TokioRuntime),
        )?;
        *open = Open::Endpoint(endpoint.clone());
        Ok(endpoint)
    }

    /// Whether clients may come.
    fn is_open(&self) -> bool {
        matches!(*self.open.lock(), Open::Bound(_) | Open::Endpoint(_))
    }

    /// Takes no more connections. The socket is closed with the last one. The next [`QuicListener::accept`] opens it anew.
    pub fn retire(&self) {
        if let Open::Endpoint(endpoint) = std::mem::replace(&mut *self.open.lock(), Open::Not) {
            endpoint.set_server_config(None);
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.retire();
    }
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    // The kernel gives what it allows.
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// A port, and what those who connect get.
#[derive(Clone)]
pub struct QuicListener {
    port: Arc<Port>,
    config: ServerConfig,
    /// What tells clients of TCP that the port is there.
    announcement: HeaderValue,
}

impl QuicListener {
    /// The certificates are those of `tls`.
    ///
    /// # Errors
    /// `tls` cannot do TLS 1.3.
    pub fn new(port: Arc<Port>, tls: &rustls::ServerConfig) -> io::Result<Self> {
        let mut tls = tls.clone();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        tls.max_early_data_size = 0;
        let crypto = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config
            .max_incoming(FIRST_PACKETS_MAX)
            .incoming_buffer_size(FIRST_BYTES_MAX)
            .incoming_buffer_size_total(FIRST_BYTES_MAX_OF_ALL);
        let announced = format!("h3=\":{}\"; ma={REMEMBERED_SECONDS}", port.address.port());
        Ok(Self {
            port,
            config,
            announcement: HeaderValue::try_from(announced)
                .expect("invariant: a number and visible ASCII"),
        })
    }

    /// The port.
    pub fn port(&self) -> &Arc<Port> {
        &self.port
    }

    /// The field `Alt-Svc` of responses over TCP, once the port is open.
    pub fn announcement(&self) -> Option<HeaderValue> {
        self.port.is_open().then(|| self.announcement.clone())
    }

    /// Accepts until it is dropped. Must run inside a worker's runtime.
    pub async fn accept(self, taker: Taker) {
        let mut warned = false;
        let endpoint = loop {
            match self.port.endpoint(&self.config) {
                Ok(endpoint) => break endpoint,
                Err(error) if !warned => {
                    let address = self.port.address;
                    tracing::info!("HTTP/3 waits for UDP {address}: {error}");
                    warned = true;
                }
                Err(_) => {}
            }
            tokio::time::sleep(TRY_EVERY).await;
        };
        while let Some(incoming) = endpoint.accept().await {
            self.take(incoming, &taker);
        }
    }

    fn take(&self, incoming: Incoming, taker: &Taker) {
        let peer = incoming.remote_address();
        if !taker.has_room() {
            taker.refuse();
            return incoming.refuse();
        }
        if !incoming.remote_address_validated() && self.wants_proof(peer, taker) {
            // It is not validated, so it may be asked.
            let _ = incoming.retry();
            return;
        }
        let local = incoming.local_ip().map_or(self.port.address, |ip| {
            SocketAddr::new(ip, self.port.address.port())
        });
        let wire = Arc::new(Wire::new());
        let arrival = Arrival {
            ends: (peer, local),
            told: (peer, local),
            is_secure: true,
            announcement: None,
        };
        let Some((registration, connection)) =
            taker.enter(Box::new(Sending(Arc::clone(&wire))), arrival)
        else {
            return incoming.refuse();
        };
        let mut config = self.config.clone();
        config.transport = Arc::new(transport(&connection.settings.limits, &wire));
        let handshake = Handshake::begin(&self.port);
        tokio::spawn(async move {
            if let Some(quic) = shake_hands(&connection, incoming, config, &wire).await {
                drop(handshake);
                super::serve(connection, quic, wire).await;
            }
            end(registration).await;
        });
    }

    fn wants_proof(&self, peer: SocketAddr, taker: &Taker) -> bool {
        self.port.handshakes.load(Ordering::Relaxed) >= HANDSHAKES_MAX || taker.is_half_full(peer)
    }
}

/// A handshake that is under way.
struct Handshake(Arc<Port>);

impl Handshake {
    fn begin(port: &Arc<Port>) -> Self {
        port.handshakes.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(port))
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.0.handshakes.fetch_sub(1, Ordering::Relaxed);
    }
}

fn transport(limits: &Limits, wire: &Wire) -> TransportConfig {
    let mut mtu = MtuDiscoveryConfig::default();
    mtu.minimum_change(MTU_STEP_BYTES);
    let mut transport = TransportConfig::default();
    transport
        .mtu_discovery_config(Some(mtu))
        .max_concurrent_bidi_streams(limits.streams_max.into())
        .max_concurrent_uni_streams(CLIENT_STREAMS_MAX.into())
        .stream_receive_window(STREAM_WINDOW_BYTES.into())
        .receive_window(CONNECTION_WINDOW_BYTES.into())
        .send_window(wire.first_window_bytes())
        // What was granted first leaves first.
        .send_fairness(false)
        .datagram_receive_buffer_size(None)
        // The sweep over all connections ends those that are idle.
        .max_idle_timeout(None)
        .congestion_controller_factory(wire.controllers());
    transport
}

async fn shake_hands(
    connection: &Connection,
    incoming: Incoming,
    config: ServerConfig,
    wire: &Wire,
) -> Option<quinn::Connection> {
    let watch = &connection.watch;
    watch.handshake_begins();
    watch.transport().handshake_begins();
    let client = connection
        .settings
        .clients
        .client(connection.asks(&HeaderMap::new()));
    watch
        .obeying(Box::pin(turn(connection, client, None)))
        .await?;
    let handshake = async { incoming.accept_with(Arc::new(config))?.await };
    let quic = match watch.obeying(Box::pin(handshake)).await? {
        Ok(quic) => quic,
        Err(error) => {
            connection.server.count_connection_error(&error);
            return None;
        }
    };
    wire.connected(quic.clone());
    let data = quic
        .handshake_data()
        .and_then(|data| data.downcast::<HandshakeData>().ok());
    let name = data.and_then(|data| data.server_name);
    let shown = connection.settings.sites.shown(name.as_deref());
    connection.shown.get_or_init(|| shown);
    connection
        .tls_version
        .get_or_init(|| Some(ProtocolVersion::TLSv1_3));
    watch.transport().handshake_done(client);
    watch.transport().drained();
    watch.waits_for_request();
    Some(quic)
}

/// Ends a connection that was served.
async fn end(registration: Registration) {
    registration.watch.transport().end();
    // quinn's task sends the last packet; the worker may end with the last registration.
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
}
