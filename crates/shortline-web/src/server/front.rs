//! The sockets that a server accepts connections from. They may change while it runs, and every worker follows.
//!
//! A socket that is given up is closed with its last worker, after [`LINGER`]: connections on their way to it are taken
//! until then, because the kernel would reset them. While the server pauses it takes nothing: what waits in the sockets
//! is another process's.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use shortline_sched::Network;
use tokio::sync::watch as channel;
use tokio::task::AbortHandle;

use super::Taker;
use super::socket::Socket;
use crate::http3::port::{Port, QuicListener};

/// A client that has begun to connect is through by then.
const LINGER: Duration = Duration::from_secs(1);

/// A socket that accepts connections.
#[derive(Clone)]
pub struct Listener {
    socket: Arc<Socket>,
    /// Our end of its connections, where that is the same for all.
    local: Option<SocketAddr>,
    tls: Option<Arc<rustls::ServerConfig>>,
    /// The networks of proxies that announce each client ([`crate::proxy_header`]). `None`: clients connect.
    proxies: Option<Arc<[Network]>>,
    /// The UDP port of HTTP/3.
    quic: Option<QuicListener>,
}

impl Listener {
    /// A bound and listening socket, with its certificate and protocols if it speaks TLS.
    ///
    /// # Errors
    /// An option of the socket cannot be set.
    pub fn new(socket: Arc<Socket>, tls: Option<Arc<rustls::ServerConfig>>) -> io::Result<Self> {
        socket.prepare()?;
        Ok(Self {
            local: socket.local(),
            socket,
            tls,
            proxies: None,
            quic: None,
        })
    }

    /// The same, with HTTP/3 at this port or without, and with the same certificates. Without TLS there is none.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn beside(self, port: Option<Arc<Port>>) -> io::Result<Self> {
        let quic = port.zip(self.tls.as_deref());
        let quic = quic.map(|(port, tls)| QuicListener::new(port, tls));
        Ok(Self {
            quic: quic.transpose()?,
            ..self
        })
    }

    /// The UDP port of HTTP/3, if it has one.
    pub fn port(&self) -> Option<&Arc<Port>> {
        self.quic.as_ref().map(QuicListener::port)
    }

    /// What tells clients of HTTP/3.
    pub(super) fn announcement(&self) -> Option<HeaderValue> {
        self.quic.as_ref()?.announcement()
    }

    /// The same, for proxies of these networks, which announce each client. No others may connect. `None`: for clients.
    pub fn behind(self, proxies: Option<Arc<[Network]>>) -> Self {
        Self { proxies, ..self }
    }

    /// Its certificate and protocols, if it speaks TLS.
    pub(super) fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        self.tls.clone()
    }

    /// Our end of its connections, where that is the same for all.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    /// Whether a connection from there may be taken, and if so, whether it begins with who the client is.
    pub(super) fn admits(&self, peer: SocketAddr) -> Option<bool> {
        let Some(proxies) = &self.proxies else {
            return Some(false);
        };
        let peer = peer.ip().to_canonical();
        let is_proxy = proxies.iter().any(|network| network.has(peer));
        is_proxy.then_some(true)
    }

    /// The socket.
    pub fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    fn is(&self, other: &Self) -> bool {
        let speaks_alike = match (&self.tls, &other.tls) {
            (Some(tls), Some(other)) => Arc::ptr_eq(tls, other),
            (tls, other) => tls.is_none() && other.is_none(),
        };
        let has_port = match (self.port(), other.port()) {
            (Some(port), Some(other)) => Arc::ptr_eq(port, other),
            (port, other) => port.is_none() && other.is_none(),
        };
        let is_at_same = Arc::ptr_eq(&self.socket, &other.socket) && has_port;
        is_at_same && speaks_alike && self.proxies == other.proxies
    }
}

/// What is accepted from now.
#[derive(Clone, Default)]
struct State {
    listeners: Vec<Listener>,
    is_paused: bool,
}

impl State {
    fn accepted(&self) -> &[Listener] {
        match self.is_paused {
            true => &[],
            false => &self.listeners,
        }
    }

    /// Whether the listener's socket is accepted from, perhaps in another way, or is another process's now.
    fn has_socket(&self, listener: &Listener) -> bool {
        let mut accepted = self.accepted().iter();
        self.is_paused || accepted.any(|other| Arc::ptr_eq(&other.socket, &listener.socket))
    }

    fn accepts(&self, listener: &Listener) -> bool {
        self.accepted().iter().any(|accepted| accepted.is(listener))
    }
}

/// The server's part.
#[derive(Default)]
pub struct Front(channel::Sender<State>);

impl Front {
    /// Accepts from these from now on.
    pub fn replace(&self, listeners: Vec<Listener>) {
        self.0.send_modify(|state| state.listeners = listeners);
    }

    /// Accepts nothing, or again.
    pub fn set_paused(&self, is_paused: bool) {
        self.0.send_modify(|state| state.is_paused = is_paused);
    }

    /// Gives up the UDP ports: of each as soon as its last connection has ended.
    pub fn free_ports(&self) {
        let state = self.0.borrow();
        let ports = state.listeners.iter().filter_map(Listener::port);
        ports.for_each(|port| port.retire());
    }

    /// Closes the sockets. What waits in them is left, in case another process has them too.
    pub fn close(&self) {
        self.0.send_replace(State {
            is_paused: true,
            ..State::default()
        });
    }

    /// A worker's part.
    pub fn follow(&self) -> Follower {
        let mut states = self.0.subscribe();
        let first = states.borrow_and_update().clone();
        Follower { states, first }
    }
}

/// A worker's part.
pub struct Follower {
    states: channel::Receiver<State>,
    /// The state that the worker was made for. A reload may come before the worker runs, and somebody has to take what
    /// waits in a socket that is given up.
    first: State,
}

impl Follower {
    /// Accepts from what the server listens on, until it is dropped. Must be called inside the worker's runtime.
    ///
    /// # Errors
    /// One of the first sockets cannot be registered with the poller. Of later ones the log tells.
    pub async fn accept(self, taker: Taker) -> io::Result<()> {
        let Self { mut states, first } = self;
        let mut accepting: Vec<Accepting> = Vec::new();
        for listener in first.accepted() {
            accepting.push(Accepting::start(listener, &taker)?);
        }
        drop(first);
        while states.changed().await.is_ok() {
            let state = states.borrow_and_update().clone();
            let (go_on, given_up): (Vec<_>, Vec<_>) = accepting
                .into_iter()
                .partition(|accepting| state.accepts(&accepting.listener));
            accepting = go_on;
            for accepting in given_up {
                if !state.has_socket(&accepting.listener) {
                    tokio::spawn(accepting.linger(taker.clone()));
                }
            }
            for listener in state.accepted() {
                if accepting.iter().any(|known| known.listener.is(listener)) {
                    continue;
                }
                match Accepting::start(listener, &taker) {
                    Ok(started) => accepting.push(started),
                    Err(error) => tracing::error!("a thread cannot accept connections: {error}"),
                }
            }
        }
        Ok(())
    }
}

/// A socket that a worker accepts from. Dropped it is no more.
struct Accepting {
    listener: Listener,
    task: AbortHandle,
    quic: Option<AbortHandle>,
}

impl Accepting {
    fn start(listener: &Listener, taker: &Taker) -> io::Result<Self> {
        let socket = listener.socket.register()?;
        let accepting = taker.clone().accept(socket, listener.clone());
        let quic = listener.quic.clone();
        Ok(Self {
            listener: listener.clone(),
            task: tokio::spawn(accepting).abort_handle(),
            quic: quic.map(|quic| tokio::spawn(quic.accept(taker.clone())).abort_handle()),
        })
    }

    /// Accepts for a while longer, and takes what waits in the socket before it is closed.
    async fn linger(self, taker: Taker) {
        tokio::time::sleep(LINGER).await;
        self.take_rest(&taker);
    }

    fn take_rest(&self, taker: &Taker) {
        while taker.has_room()
            && let Ok((socket, peer)) = self.listener.socket.accept()
        {
            taker.take(socket, peer, &self.listener);
        }
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(quic) = &self.quic {
            quic.abort();
        }
    }
}
