//! Accepts connections on several threads, and ends them at shutdown.
//!
//! Clients connect by TCP or by a Unix socket. The latter have no address.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use shortline_base::accept::{self, Accepts, Listening};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;

use super::{Accepting, Limits, Order, Registration, Registry, Socket};
use crate::handover::Arrival;

/// Connections above the limit that are still accepted. They get an error in their protocol, and a
/// cancel request still gets through. Beyond these no connection is accepted.
const REFUSED_AT_ONCE_MAX: usize = 100;

/// Where clients connect.
#[derive(Debug)]
pub enum Listener {
    /// By TCP.
    Tcp(TcpListener),
    /// By a Unix socket.
    Unix(UnixListener),
}

/// A client that comes.
#[derive(Debug)]
pub enum Incoming {
    /// It connects, from this address.
    Accepted(Socket, Option<SocketAddr>),
    /// Its session comes from another process.
    Moved(Box<Arrival>),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl Listener {
    /// A copy of the socket for another thread's runtime.
    fn detached(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(listener) => listener.as_fd().try_clone_to_owned(),
            Self::Unix(listener) => listener.as_fd().try_clone_to_owned(),
        }
    }

    /// Registers `socket` with this thread's runtime.
    fn attach(&self, socket: OwnedFd) -> io::Result<Attached> {
        Ok(match self {
            Self::Tcp(_) => Attached::Tcp(Listening::new(socket)?),
            Self::Unix(_) => Attached::Unix(Listening::new(socket)?),
        })
    }
}

/// The same with a thread's runtime.
enum Attached {
    Tcp(Listening<TcpStream>),
    Unix(Listening<UnixStream>),
}

impl Accepts for Attached {
    type Stream = Socket;
    type Peer = Option<SocketAddr>;

    fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(Socket, Option<SocketAddr>)>> {
        Poll::Ready(match self {
            Self::Tcp(listener) => ready!(listener.poll_accept(context))
                .map(|(socket, peer)| (Socket::from(socket), Some(peer))),
            Self::Unix(listener) => ready!(listener.poll_accept(context))
                .map(|(socket, ())| (Socket::from(socket), None)),
        })
    }
}

/// Serves each connection to `listener` with `relay` until `shutdown` is ready. Then lets
/// transactions end within [`Limits::drain_time_max`] and closes the rest.
///
/// Each worker has a runtime of its own, and a connection stays on the worker that accepted it.
/// Moving a task between threads costs more than relaying most statements. `relay` must follow the
/// orders of [`Registration::handle`].
///
/// # Errors
/// A thread cannot be started, or the listener cannot be registered with its runtime.
pub async fn serve<R, F>(
    listener: Listener,
    limits: &Limits,
    registry: &Arc<Registry>,
    shutdown: impl Future<Output = ()>,
    relay: R,
) -> io::Result<()>
where
    R: Fn(Incoming, Registration) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = Arc::new(listener);
    let stopping = watch::Sender::new(false);
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..limits.workers.max(1) {
        let worker = Worker {
            socket: listener.detached()?,
            like: Arc::clone(&listener),
            registry: Arc::clone(registry),
            connections_max: limits.connections_max,
            stopping: stopping.subscribe(),
        };
        let relay = relay.clone();
        workers.spawn_blocking(move || worker.work(relay));
    }
    let ended = async {
        let mut result = Ok(());
        while let Some(ended) = workers.join_next().await {
            result = result.and(ended.unwrap_or_else(|error| Err(io::Error::other(error))));
        }
        result
    };
    drop(listener);
    tokio::pin!(ended);
    tokio::select! {
        result = &mut ended => return result,
        () = shutdown => {}
    }
    stopping.send_replace(true);
    registry.give_all(Order::Drain);
    if tokio::time::timeout(limits.drain_time_max, registry.empty())
        .await
        .is_err()
    {
        tracing::warn!("closing {} connections in use", registry.open());
        registry.give_all(Order::Close);
    }
    ended.await
}

/// The state of one thread.
struct Worker {
    socket: OwnedFd,
    /// The listener of which `socket` is a copy.
    like: Arc<Listener>,
    registry: Arc<Registry>,
    connections_max: usize,
    stopping: watch::Receiver<bool>,
}

impl Worker {
    fn work<R, F>(self, relay: R) -> io::Result<()>
    where
        R: Fn(Incoming, Registration) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let Self {
            socket,
            like,
            registry,
            connections_max,
            mut stopping,
        } = self;
        runtime.block_on(async {
            let listener = like.attach(socket)?;
            drop(like);
            // When this ends, the listener is closed. Otherwise the kernel would go on accepting clients,
            // and no task would serve them.
            let accepting = accept_while_open(listener, &registry, connections_max, &relay);
            let arriving = take_arrivals(&registry, connections_max, &relay);
            tokio::select! {
                ((), ()) = async { tokio::join!(accepting, arriving) } => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
            if stopping.wait_for(|stopping| *stopping).await.is_err() {
                registry.give_all(Order::Close);
            }
            // The runtime must outlive its connections.
            registry.empty().await;
            Ok(())
        })
    }
}

/// Accepts until that is over, with pauses.
async fn accept_while_open<R, F>(
    listener: Attached,
    registry: &Registry,
    connections_max: usize,
    relay: &R,
) where
    R: Fn(Incoming, Registration) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let not = |other| move |is| is != other;
    while registry.until_accepting(not(Accepting::Paused)).await == Accepting::Open {
        let acceptor = registry.acceptor();
        tokio::select! {
            () = accept(&listener, registry, connections_max, relay) => {}
            _ = registry.until_accepting(not(Accepting::Open)) => {}
        }
        drop(acceptor);
    }
}

/// Takes sessions that come from another process.
async fn take_arrivals<R, F>(registry: &Registry, connections_max: usize, relay: &R)
where
    R: Fn(Incoming, Registration) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let arrival = registry.arrivals().next().await;
        let registration = registry.register(connections_max);
        tokio::spawn(relay(Incoming::Moved(Box::new(arrival)), registration));
    }
}

async fn accept<R, F>(listener: &Attached, registry: &Registry, connections_max: usize, relay: &R)
where
    R: Fn(Incoming, Registration) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let open_max = connections_max + REFUSED_AT_ONCE_MAX;
    let take = |socket: Socket, peer| {
        // A socket that cannot be prepared has been reset already.
        if socket.prepare().is_ok() {
            let registration = registry.register(connections_max);
            tokio::spawn(relay(Incoming::Accepted(socket, peer), registration));
        }
    };
    let has_room = || registry.is_accepting() && registry.open() < open_max;
    let warn = |error, untold| tracing::warn!(untold, "cannot accept connections now: {error}");
    accept::accept(listener, has_room, take, warn).await;
}
