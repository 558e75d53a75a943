//! The relay in front of MySQL and MariaDB: `shortline gate mysql`.
//!
//! Without a pool, each client has its own connection to the backend. Every message passes
//! unchanged, apart from the handshake's capabilities and compression. The parts of the gate:
//!
//! | part | what it does |
//! |---|---|
//! | `handshake` | greeting, TLS on both sides, authentication of any kind passed on |
//! | `protocol` | commands and responses in turn; holds a command that begins a unit of work |
//! | `command`, `control` | what a command asks for; which statements are not work |
//! | `reply` | where a response ends and whether a transaction is open then |
//! | `compress`, `frames` | the compressed protocol, which ends here |
//! | `statements` | the types of prepared statements |
//! | `complaint` | the gate's own errors |
//! | `pool` | many clients on few connections |
//! | `login`, `scramble`, `ask` | a connection of the gate's own: login, and a statement on it |
//! | `packet`, `link`, `value`, `capability`, `greeting` | the protocol's parts |
//!
//! The protocol is that of MySQL's source documentation ("Client/Server Protocol") and of MariaDB's
//! knowledge base ("MariaDB Client/Server Protocol"). Departures from a bare relay:
//! - The backend sees connections from the gate's address.
//! - Without a certificate for clients, `CLIENT_SSL` is removed from the greeting, because the gate
//!   cannot schedule a session it cannot read. `caching_sha2_password` then sends passwords under
//!   the server's RSA key, which passes unchanged.
//! - With a certificate, clients that check the server's certificate see the gate's. MariaDB's
//!   connectors since 3.4 check a certificate without a trusted issuer against the password. That
//!   fails unless the gate shows the backend's own.
//! - [`UpstreamTls::Prefer`](crate::relay::tls::UpstreamTls::Prefer) follows the client, as
//!   `follow` does: TLS on both sides or on neither.
//! - Compression is only with zlib, and ends at the gate (`capability`).

pub mod ask;
pub(crate) mod capability;
pub mod command;
mod complaint;
pub mod compress;
pub mod control;
mod frames;
pub mod greeting;
mod handshake;
pub(crate) mod link;
pub mod login;
pub mod packet;
pub mod pool;
mod protocol;
pub mod reply;
pub mod scramble;
mod statements;
mod value;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::Gate;
use crate::classify::{Class, Client, ClientNames};
use crate::relay::proxy::{self, Ends};
use crate::relay::{
    self, AbortOnDrop, About, Entry, Handle, Incoming, Listener, Registration, RelayConfig,
    Session, Side, Socket, Stream, Waits, Work,
};
use crate::{BackendConnection, GateClient};
use shortline_sched::admission::Refusal;

use complaint::Complaint;
use handshake::Authenticated;
use pool::Pooled;
use protocol::Mysql;

pub use pool::{Pool, PoolConfig};

/// The state that all sessions share.
#[derive(Debug)]
struct Shared {
    config: RelayConfig,
    /// Serves many clients on few connections. Without a pool, each client has its own connection.
    pool: Option<Arc<Pool>>,
    gate: Gate,
    /// The type of unknown prepared statements.
    unknown: Class,
    /// The waiting clients, by the numbers that KILL uses for connections.
    waits: Arc<Waits<u32>>,
}

/// Relays each connection to `listener` until `shutdown` is ready. Then lets transactions end
/// within [`relay::Limits::drain_time_max`] and closes what is left.
///
/// # Errors
/// A thread cannot be started, or the listener cannot be registered with its poller.
pub async fn run(
    listener: impl Into<Listener>,
    config: RelayConfig,
    pool: Option<Arc<Pool>>,
    gate: Gate,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (limits, registry) = (config.limits.clone(), Arc::clone(&config.registry));
    let sweeping = pool
        .clone()
        .map(|pool| AbortOnDrop(tokio::spawn(async move { pool.sweep().await })));
    let relay = MysqlRelay::new(config, pool, gate);
    let shared = Arc::clone(&relay.0);
    let killing = AbortOnDrop(tokio::spawn(async move {
        if let Some(pool) = &shared.pool {
            pool::serve_passed_on(&shared, pool).await;
        }
    }));
    let serve = move |incoming, registration| {
        let shared = Arc::clone(&relay.0);
        async move {
            match incoming {
                Incoming::Accepted(socket, peer) => {
                    serve(socket, peer, registration, shared).await;
                }
                Incoming::Moved(arrival) => {
                    Box::pin(pool::go_on(&shared, *arrival, &registration)).await;
                }
            }
        }
    };
    let served = relay::serve(listener.into(), &limits, &registry, shutdown, serve).await;
    drop((sweeping, killing));
    served
}

/// The relay without its listener, for connections that were accepted elsewhere, such as in a
/// simulated world.
#[derive(Clone, Debug)]
pub struct MysqlRelay(Arc<Shared>);

impl MysqlRelay {
    /// A relay with these settings.
    pub fn new(config: RelayConfig, pool: Option<Arc<Pool>>, gate: Gate) -> Self {
        Self(Arc::new(Shared {
            unknown: "unknown".into(),
            config,
            pool,
            gate,
            waits: Arc::default(),
        }))
    }

    /// Serves a connection until it ends.
    pub async fn serve(&self, socket: Socket, peer: SocketAddr) {
        let config = &self.0.config;
        let registration = config.registry.register(config.limits.connections_max);
        serve(socket, Some(peer), registration, Arc::clone(&self.0)).await;
    }
}

/// Serves a connection from accept to close.
async fn serve(
    socket: Socket,
    from: Option<SocketAddr>,
    registration: Registration,
    shared: Arc<Shared>,
) {
    if registration.is_too_many {
        let limit = shared.config.limits.connections_max;
        handshake::refuse_connection(socket, Complaint::too_many_connections(limit)).await;
        return;
    }
    // Each in a box of its own, so that the memory of the login is freed before the session.
    if let Some(pool) = &shared.pool {
        let opening = Box::pin(open_pooled(&shared, pool, socket, from, &registration));
        if let Some(opened) = opening.await {
            Box::pin(relay_to_end(&shared, opened)).await;
        }
    } else {
        let opening = Box::pin(open_alone(&shared, socket, from, &registration));
        if let Some(opened) = opening.await {
            Box::pin(relay_to_end(&shared, opened)).await;
        }
    }
}

/// A session that may begin, and its entry among those that KILL can name.
type Opened<P> = (Box<Session<P>>, Entry<u32>);

/// Opens the session of a client that has its own connection to the server.
async fn open_alone(
    shared: &Arc<Shared>,
    mut socket: Socket,
    from: Option<SocketAddr>,
    registration: &Registration,
) -> Option<Opened<Mysql>> {
    let (handle, local) = (registration.handle.member(), socket.local_addr().ok());
    let opening = Box::pin(async {
        let peer = proxy::peer(&mut socket, from, &shared.config.proxies).await?;
        // The server speaks first, so a client can be held only before its names are known.
        handle.wait_to_enter(&shared.gate, None).await;
        let mut account = None;
        let mut join = |names: &mut ClientNames| {
            names.address = peer.address.map(|address| address.ip());
            let (joined, refused) = join(shared, names);
            account = Some(joined);
            refused
        };
        let ends = Ends {
            client: peer.address,
            gate: local,
        };
        let authenticated =
            handshake::authenticate(socket, ends, &shared.config, handle, &mut join).await?;
        Ok::<_, handshake::HandshakeError>((authenticated, account, peer.address))
    });
    let opened = relay::open_in_time(opening, registration, &shared.config).await;
    let (authenticated, account, peer) = opened?;
    let mut account = account?;
    handle.introduce(About {
        peer,
        local,
        is_secure: authenticated.client.is_secure(),
        names: Arc::new(authenticated.names.clone()),
    });
    account.set_backend(Some(BackendConnection::of_one(authenticated.thread_id)));
    let thread_id = authenticated.thread_id;
    let entry = shared.waits.register(thread_id, handle);
    let work = Work::new(&shared.gate, handle, Some(account));
    let session = session(shared, handle, work, authenticated);
    Some((Box::new(session), entry))
}

/// Relays the session to its end.
async fn relay_to_end<P: relay::Protocol<Complaint = Complaint>>(
    shared: &Shared,
    (mut session, entry): Opened<P>,
) {
    let end = session.relay(Vec::new()).await;
    drop(entry);
    Box::pin(session.close(end, &shared.config.registry)).await;
}

/// Opens the session of a client of the pool.
async fn open_pooled(
    shared: &Arc<Shared>,
    pool: &Arc<Pool>,
    mut socket: Socket,
    from: Option<SocketAddr>,
    registration: &Registration,
) -> Option<Opened<Pooled>> {
    let (handle, local) = (registration.handle.member(), socket.local_addr().ok());
    let opening = Box::pin(async {
        let peer = proxy::peer(&mut socket, from, &shared.config.proxies).await?;
        handle.wait_to_enter(&shared.gate, None).await;
        let mut account = None;
        let mut join = |names: &mut ClientNames| {
            names.address = peer.address.map(|address| address.ip());
            let (joined, refused) = join(shared, names);
            account = Some(joined);
            refused
        };
        let entered = pool::open(shared, pool, socket, handle, &mut join).await?;
        Ok::<_, handshake::HandshakeError>((entered, account, peer.address))
    });
    let opened = relay::open_in_time(opening, registration, &shared.config).await;
    let (entered, account, peer) = opened?;
    let newcomer = Newcomer {
        protocol: entered.protocol,
        client: entered.client,
        entry: entered.entry,
        account,
        peer,
        local,
    };
    Some(newcomer.begin(shared, registration, Vec::new()))
}

/// A client of the pool whose session begins, or goes on here.
struct Newcomer {
    protocol: Pooled,
    client: Stream,
    /// Its entry among the waits that KILL can end.
    entry: Entry<u32>,
    account: Option<GateClient>,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
}

impl Newcomer {
    /// Its session. `ahead` has what it has sent already.
    fn begin(
        self,
        shared: &Arc<Shared>,
        registration: &Registration,
        ahead: Vec<u8>,
    ) -> Opened<Pooled> {
        let Self {
            mut protocol,
            client,
            entry,
            account,
            peer,
            local,
        } = self;
        let handle = registration.handle.member();
        let names = protocol.names_mut();
        handle.introduce(About {
            peer,
            local,
            is_secure: client.is_secure(),
            names: Arc::new(names.clone()),
        });
        let idle_time_max = shared.config.idle_transaction_time_max(&names.client());
        let work = Work::new(&shared.gate, handle, account);
        let session = Session::new(protocol, handle, work, client, Side::detached(), ahead)
            .limit_idle_transactions(idle_time_max);
        (Box::new(session), entry)
    }
}

/// Adds an authenticated client to its tenant. Returns the account for its statements, and whether the tenant has
/// room.
fn join(shared: &Shared, names: &ClientNames) -> (GateClient, Result<(), Refusal>) {
    let user = names.user.as_deref().unwrap_or_default();
    let mut account = shared.gate.client(user);
    if let Some(database) = &names.database {
        account.set_database(database);
    }
    let terms = (shared.config.terms_of)(&names.client());
    let joined = account.join(terms.tenant.as_deref());
    (account, joined)
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
    let idle_time_max = shared.config.idle_transaction_time_max(&names.client());
    let mut protocol = Mysql::new(shared, names, capabilities, status);
    let ahead = protocol.decode_ahead(ahead);
    Session::new(protocol, handle, work, client, Side::new(server), ahead)
        .limit_idle_transactions(idle_time_max)
}

impl Shared {
    fn class_of(&self, statement: &[u8], client: &Client<'_>) -> Class {
        (self.config.classify)(statement, client)
    }
}
