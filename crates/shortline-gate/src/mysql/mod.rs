//! The relay in front of MySQL and MariaDB: `shortline gate mysql`.
//!
//! Each client connection has its own connection to the backend. Every message passes unchanged,
//! except for what the opening agrees on. The parts of the gate:
//!
//! | part | what it does |
//! |---|---|
//! | `handshake` | greeting, TLS on both sides, authentication of any kind passed on |
//! | `protocol` | commands and responses in turn; holds a command that begins a unit of work |
//! | `command`, `control` | what a command asks for; which statements are not work |
//! | `reply` | where a response ends and whether a transaction is open then |
//! | `compress`, `frames` | the compressed protocol, which ends here |
//! | `statements` | what prepared statements are |
//! | `complaint` | the gate's own errors |
//! | `packet`, `value`, `capability`, `greeting` | the protocol's parts |
//!
//! The protocol is that of MySQL's source documentation ("Client/Server Protocol") and of MariaDB's
//! knowledge base ("MariaDB Client/Server Protocol"). Departures from a bare relay:
//! - The backend sees connections from the gate's address.
//! - Without a certificate for clients, `CLIENT_SSL` is removed from the greeting, because the gate
//!   cannot schedule a session it cannot read. `caching_sha2_password` then sends passwords under
//!   the server's RSA key, which passes unchanged.
//! - With one, clients that check the server's certificate see the gate's. MariaDB's connectors
//!   since 3.4 check a certificate without an issuer they trust against the password. That fails
//!   unless the gate shows the backend's own.
//! - [`UpstreamTls::Prefer`](crate::relay::tls::UpstreamTls::Prefer) follows the client, as
//!   `follow` does: TLS on both sides or on neither.
//! - Compression is only with zlib, and ends at the gate (`capability`).

mod capability;
pub mod command;
mod complaint;
pub mod compress;
pub mod control;
mod frames;
pub mod greeting;
mod handshake;
pub mod packet;
mod protocol;
pub mod reply;
mod statements;
mod value;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::Gate;
use crate::classify::{Class, Client, ClientNames};
use crate::relay::{self, Handle, Registration, RelayConfig, Session, Side, Socket, Waits, Work};

use complaint::Complaint;
use handshake::Authenticated;
use protocol::Mysql;

/// What all sessions share.
#[derive(Debug)]
struct Shared {
    config: RelayConfig,
    gate: Gate,
    /// The type of unknown prepared statements.
    unknown: Class,
    /// By the numbers that KILL uses for connections.
    waits: Arc<Waits<u32>>,
}

/// Relays each connection to `listener` until `shutdown` is ready. Then lets transactions end
/// within [`relay::Limits::drain_time_max`] and closes what is left.
///
/// # Errors
/// A thread cannot be started, or the listener cannot be registered with its poller.
pub async fn run(
    listener: TcpListener,
    config: RelayConfig,
    gate: Gate,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (limits, registry) = (config.limits.clone(), Arc::clone(&config.registry));
    let relay = MysqlRelay::new(config, gate);
    let serve =
        move |socket, peer, registration| serve(socket, peer, registration, Arc::clone(&relay.0));
    relay::serve(listener, &limits, &registry, shutdown, serve).await
}

/// The relay without its listener, for connections that were accepted elsewhere, such as in a
/// simulated world.
#[derive(Clone, Debug)]
pub struct MysqlRelay(Arc<Shared>);

impl MysqlRelay {
    /// A relay with these settings.
    pub fn new(config: RelayConfig, gate: Gate) -> Self {
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

/// Serves a connection from accept to close.
async fn serve(socket: Socket, peer: SocketAddr, registration: Registration, shared: Arc<Shared>) {
    let registry = &shared.config.registry;
    if registration.is_too_many {
        let limit = shared.config.limits.connections_max;
        handshake::refuse_connection(socket, Complaint::too_many_connections(limit)).await;
        return;
    }
    let handle = &registration.handle;
    let mut account = None;
    let mut join = |names: &mut ClientNames| {
        names.address = Some(peer.ip());
        let user = names.user.as_deref().unwrap_or_default();
        let account = account.insert(shared.gate.client(user, None));
        let tenant = (shared.config.tenant_of)(&names.client());
        account.join(tenant.as_deref())
    };
    let opening = handshake::authenticate(socket, &shared.config, handle, &mut join);
    let opened = relay::open_in_time(opening, &registration, &shared.config).await;
    let (Some(authenticated), Some(mut account)) = (opened, account) else {
        return;
    };
    account.set_backend(Some(authenticated.thread_id));
    let thread_id = authenticated.thread_id;
    let entry = shared.waits.register(thread_id, handle.member());
    let work = Work::new(&shared.gate, handle.member(), Some(account));
    let mut session = session(&shared, handle.member(), work, authenticated);
    let end = session.relay(Vec::new()).await;
    drop(entry);
    session.close(end, registry).await;
}

/// The session of a client that the backend has accepted.
fn session(
    shared: &Arc<Shared>,
    handle: &Arc<Handle>,
    work: Work,
    authenticated: Authenticated,
) -> Session<Mysql> {
    let Authenticated {
        client,
        server,
        capabilities,
        status,
        names,
        ahead,
        ..
    } = authenticated;
    let mut protocol = Mysql::new(shared, names, capabilities, status);
    let ahead = protocol.decode_ahead(ahead);
    Session::new(protocol, handle, work, client, Side::new(server), ahead)
        .limit_idle_transactions(shared.config.limits.idle_transaction_time_max)
}

impl Shared {
    fn class_of(&self, statement: &[u8], client: &Client<'_>) -> Class {
        (self.config.classify)(statement, client)
    }
}
