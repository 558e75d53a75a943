//! The PostgreSQL relay: `shortline gate postgres`.
//!
//! Without a pool, each client has its own connection to the backend. Authentication and all other
//! messages pass unchanged. Only the first message of a transaction is held until the [`Gate`]
//! admits it. The gate adds messages of its own only for refusals and notices. The protocol is
//! version 3 in part VIII of PostgreSQL's documentation, "Frontend/Backend Protocol".
//!
//! | part | what it does |
//! |---|---|
//! | `startup` | TLS, cancel requests and the StartupMessage |
//! | `backend` | opens a connection to the backend, with or without TLS |
//! | `authentication` | passes on authentication, up to the first ReadyForQuery |
//! | `protocol` | both directions after that |
//! | `frame`, `messages` | finds messages in a stream, and fields in messages |
//! | `opening`, `control`, `access`, `statements` | what a transaction's first messages ask for |
//! | `conversation` | what is still owed to the client |
//! | `pool`, `scram` | many clients on few connections, and their authentication |
//! | `pgbouncer` | reads PgBouncer's configuration |
//! | `cancel` | cancel requests: ends a wait at the gate, or forwards the request |
//! | `reply` | the gate's own messages |
//! | `admin`, `asker` | the admin database's commands, and who may run them |
//!
//! A client sees these differences from a server:
//! - ERROR 53300 if the queue is full, and 57014 if the request has waited too long. The connection
//!   stays open. A transaction that was open by then has failed.
//! - FATAL 57P03 if the backend cannot be reached, and 08006 if it closes a connection without an
//!   error.
//! - FATAL 08P01 for bytes that break the protocol, 53300 for one connection too many, and 57P01
//!   when the gate shuts down.
//! - In a transaction begun by a bare BEGIN, `now()` is the time of that BEGIN (see `control`).
//!
//! Replication connections are relayed without admission. Pipelined transactions of one connection
//! are one unit while they overlap.

pub mod access;
mod admin;
mod asker;
mod authentication;
mod backend;
mod cancel;
mod connection;
pub mod control;
pub mod conversation;
pub mod frame;
pub mod messages;
pub mod opening;
pub mod pgbouncer;
pub mod pool;
mod protocol;
pub mod reply;
pub mod scram;
pub mod startup;
pub mod statements;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use shortline_sched::admission::Refusal;

use crate::classify::{Class, Classify, Client, ClientNames};
use crate::relay::{self, AbortOnDrop, Incoming, Listener, RelayConfig, Socket, Upstream, Waits};
use crate::{Gate, GateClient};
pub use admin::{AdminDatabase, Answer, Answering, Answers, Rights, Table};
pub use asker::{NotHeard, check as check_asker, check_uid};
pub(crate) use backend::connect_to;
use control::is_transaction_control;
pub use pool::{Pool, PoolConfig};
use statements::Prepared;

/// The protocol's name in TLS (ALPN), for [`ClientTls::new`](crate::relay::tls::ClientTls::new).
pub const ALPN: &[u8] = b"postgresql";

/// The type of preparing without executing.
const PREPARATION: &str = "prepare";
/// The type of requests whose text is unknown.
const UNKNOWN: &str = "unknown";

/// How the relay works.
#[derive(Clone, Debug)]
pub struct PostgresConfig {
    /// The settings that all relays share.
    pub relay: RelayConfig,
    /// A client gets a notice if its transaction waited for this long or longer.
    pub notice_after: Option<Duration>,
    /// Appends the client's address to `application_name`, like PgBouncer's
    /// `application_name_add_host`.
    pub tells_address: bool,
    /// The database that the gate itself answers, without a backend.
    pub admin: Option<AdminDatabase>,
    /// Serves many clients on few connections. Without a pool, each client has its own connection.
    pub pool: Option<Arc<Pool>>,
    /// Whose wait for admission a cancel request ends, at whichever address it comes.
    pub waits: Arc<Waits<Box<[u8]>>>,
}

impl PostgresConfig {
    /// A relay to `upstream` with all defaults.
    pub fn new(upstream: Upstream, classify: Classify) -> Self {
        Self {
            relay: RelayConfig::new(upstream, classify),
            notice_after: None,
            tells_address: false,
            admin: None,
            pool: None,
            waits: Arc::default(),
        }
    }
}

/// Relays the connections to `listener` until `shutdown` is ready. Open transactions may then end
/// within [`relay::Limits::drain_time_max`].
///
/// # Errors
/// A thread cannot be started, or the listener cannot be registered with its poller.
pub async fn run(
    listener: impl Into<Listener>,
    config: PostgresConfig,
    gate: Gate,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let RelayConfig {
        limits, registry, ..
    } = config.relay.clone();
    let sweeping = config
        .pool
        .clone()
        .map(|pool| AbortOnDrop(tokio::spawn(async move { pool.sweep().await })));
    let relay = PostgresRelay::new(config, gate);
    let passed_on = Arc::clone(&relay.0);
    let serve = move |incoming, registration| {
        let shared = Arc::clone(&relay.0);
        async move {
            match incoming {
                Incoming::Accepted(socket, peer) => {
                    connection::serve(shared, socket, peer, registration).await;
                }
                Incoming::Moved(arrival) => {
                    Box::pin(connection::go_on(shared, *arrival, registration)).await;
                }
            }
        }
    };
    let cancelling = async move { cancel::serve_passed_on(&passed_on).await };
    let cancelling = AbortOnDrop(tokio::spawn(cancelling));
    let served = relay::serve(listener.into(), &limits, &registry, shutdown, serve).await;
    drop((sweeping, cancelling));
    served
}

/// The relay without its listener, for connections that were accepted elsewhere, such as in a
/// simulated world.
#[derive(Clone, Debug)]
pub struct PostgresRelay(Arc<Shared>);

impl PostgresRelay {
    /// A relay with these settings.
    pub fn new(config: PostgresConfig, gate: Gate) -> Self {
        Self(Arc::new(Shared {
            waits: Arc::clone(&config.waits),
            gate,
            config,
        }))
    }

    /// Serves a connection until it ends.
    pub async fn serve(&self, socket: Socket, peer: SocketAddr) {
        let config = &self.0.config.relay;
        let registration = config.registry.register(config.limits.connections_max);
        connection::serve(Arc::clone(&self.0), socket, Some(peer), registration).await;
    }
}

/// The state that all connections share.
#[derive(Debug)]
struct Shared {
    config: PostgresConfig,
    gate: Gate,
    /// The waiting clients, by the keys that cancel requests name.
    waits: Arc<Waits<Box<[u8]>>>,
}

impl Shared {
    fn class_of(&self, statement: &[u8], client: &Client<'_>) -> Class {
        (self.config.relay.classify)(statement, client)
    }

    /// Adds an authenticated client to its tenant, if the tenant has room.
    fn join(&self, account: &mut GateClient, names: &ClientNames) -> Result<(), Refusal> {
        let terms = (self.config.relay.terms_of)(&names.client());
        account.join(terms.tenant.as_deref())
    }

    fn prepared(&self, statement: &[u8], client: &Client<'_>) -> Prepared {
        if is_transaction_control(statement) {
            Prepared::Control
        } else {
            Prepared::Work(self.class_of(statement, client))
        }
    }
}
