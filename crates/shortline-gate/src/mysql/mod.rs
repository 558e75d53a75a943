//! The relay in front of MySQL and MariaDB: `shortline gate mysql`.
//!
//! Each connection of a client has one to the backend of its own, and every message passes as it is
//! but for what the opening agrees on. What the gate does with them:
//!
//! | part | what it does |
//! |---|---|
//! | `handshake` | greeting, TLS on both sides, authentication of any kind passed on |
//! | `session` | commands and responses in turn; holds a command that begins a unit of work |
//! | `command`, `control` | what a command asks for; which statements are no work |
//! | `reply` | where a response ends and whether a transaction is open then |
//! | `unit` | the transaction that waits or runs |
//! | `compress`, `frames` | the compressed protocol, which ends here |
//! | `statements` | what prepared statements are |
//! | `complaint` | errors of the gate's own |
//! | `packet`, `value`, `capability`, `greeting` | the protocol's parts |
//!
//! The protocol is that of MySQL's source documentation ("Client/Server Protocol") and of MariaDB's
//! knowledge base ("MariaDB Client/Server Protocol"). Departures from a bare relay:
//! - Connections come to the backend from the gate's address.
//! - Without a certificate for clients `CLIENT_SSL` is struck from the greeting, since a session
//!   that the gate cannot read cannot be scheduled. `caching_sha2_password` then sends passwords
//!   under the server's RSA key, which passes untouched.
//! - With one, clients that check the server's certificate see the gate's. MariaDB's connectors since
//!   3.4 check a certificate nobody vouches for against the password, which fails unless the gate
//!   shows the backend's own.
//! - Compression is with zlib only, and ends at the gate (`capability`).

mod capability;
pub mod command;
mod complaint;
pub mod compress;
pub mod control;
mod frames;
pub mod greeting;
mod handshake;
pub mod packet;
pub mod reply;
mod session;
mod statements;
mod unit;
mod value;

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::Gate;
use crate::classify::{Classify, Client};
use crate::relay::tls::{ClientTls, UpstreamTls};
use crate::relay::{self, Limits, Order, Registration, Registry, Socket, Upstream, Waits};

use complaint::Complaint;
use handshake::HandshakeError;
use session::{End, Session};

/// How the relay works.
#[derive(Clone)]
pub struct MysqlConfig {
    /// The backend.
    pub upstream: Upstream,
    /// TLS towards it. [`UpstreamTls::Prefer`] goes by the client, as [`UpstreamTls::Follow`] does: TLS
    /// on both sides or on neither.
    pub upstream_tls: UpstreamTls,
    /// TLS towards clients; without it they are offered none.
    pub client_tls: Option<ClientTls>,
    /// What clients may do.
    pub limits: Limits,
    /// The types of statements.
    pub classify: Classify,
    /// The open connections; a clone sees them from outside.
    pub registry: Arc<Registry>,
}

impl MysqlConfig {
    /// A relay to `upstream` with all defaults.
    pub fn new(upstream: Upstream, classify: Classify) -> Self {
        Self {
            upstream,
            upstream_tls: UpstreamTls::Disable,
            client_tls: None,
            limits: Limits::default(),
            classify,
            registry: Arc::default(),
        }
    }
}

impl fmt::Debug for MysqlConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MysqlConfig")
            .field("upstream", &self.upstream)
            .field("upstream_tls", &self.upstream_tls)
            .field("client_tls", &self.client_tls)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What all sessions share.
#[derive(Debug)]
struct Shared {
    config: MysqlConfig,
    gate: Gate,
    /// The type of prepared statements that are not known.
    unknown: Arc<str>,
    /// By the numbers that KILL names connections by.
    waits: Arc<Waits<u32>>,
}

/// Relays each connection to `listener` until `shutdown` is ready; then lets transactions end
/// within [`Limits::drain_time_max`] and closes what is left.
///
/// # Errors
/// When a thread cannot be started or the listener not be put on its poller.
pub async fn run(
    listener: TcpListener,
    config: MysqlConfig,
    gate: Gate,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (limits, registry) = (config.limits.clone(), Arc::clone(&config.registry));
    let relay = MysqlRelay::new(config, gate);
    let serve =
        move |socket, peer, registration| serve(socket, peer, registration, Arc::clone(&relay.0));
    relay::serve(listener, &limits, &registry, shutdown, serve).await
}

/// The relay without its listener: for connections that were accepted elsewhere, such as in a simulated
/// world.
#[derive(Clone, Debug)]
pub struct MysqlRelay(Arc<Shared>);

impl MysqlRelay {
    /// A relay with these settings.
    pub fn new(config: MysqlConfig, gate: Gate) -> Self {
        Self(Arc::new(Shared {
            unknown: "unknown".into(),
            config,
            gate,
            waits: Arc::default(),
        }))
    }

    /// Serves a connection until it ends.
    pub async fn serve(&self, socket: Socket, peer: SocketAddr) {
        let config = &self.0.config;
        let registration = config.registry.register(config.limits.connections_max);
        serve(socket, peer, registration, Arc::clone(&self.0)).await;
    }
}

/// Serves a connection from its acceptance to its end.
async fn serve(socket: Socket, peer: SocketAddr, registration: Registration, shared: Arc<Shared>) {
    let registry = &shared.config.registry;
    if registration.is_too_many {
        let limit = shared.config.limits.connections_max;
        handshake::refuse_connection(socket, Complaint::too_many_connections(limit)).await;
        return;
    }
    let limit = shared.config.limits.authentication_time_max;
    // Boxed, so that what it needs is given back before the session, which may be long.
    let handle = &registration.handle;
    let opening = Box::pin(handshake::authenticate(socket, &shared.config, handle));
    let opened = tokio::select! {
        opened = tokio::time::timeout(limit, opening) => opened,
        () = handle.ordered(Order::Close) => return,
    };
    let mut authenticated = match opened {
        Ok(Ok(authenticated)) => authenticated,
        Ok(Err(error)) => return registry.count_failure(&error),
        Err(_) => {
            let late = HandshakeError::Io(io::ErrorKind::TimedOut.into());
            return registry.count_failure(&late);
        }
    };
    authenticated.names.address = Some(peer.ip());
    let _entry = shared
        .waits
        .register(authenticated.thread_id, &registration.handle);
    let mut session = Session::new(&shared, &registration.handle, authenticated);
    let end = poll_fn(|context| session.poll(context)).await;
    match end {
        End::Refused(complaint) => registry.count_failure(&HandshakeError::Refused(complaint)),
        End::ServerLeft => registry.count_failure(&ServerLeft),
        End::ClientLeft | End::Drained | End::Closed => {}
    }
    session.close().await;
}

/// The backend has closed a connection.
#[derive(Debug, thiserror::Error)]
#[error("the backend closed the connection")]
struct ServerLeft;

impl Shared {
    fn name_of(&self, statement: &[u8], client: &Client<'_>) -> Arc<str> {
        (self.config.classify)(statement, client)
    }
}
