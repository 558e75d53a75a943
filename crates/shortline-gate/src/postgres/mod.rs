//! The PostgreSQL relay: `shortline gate postgres`.
//!
//! Each client has a connection to the backend of its own. Authentication and every message go
//! through as they are; only the first message of a transaction is held until the [`Gate`] admits
//! it, and only when the gate refuses does it say something of its own. The protocol is that of
//! PostgreSQL's documentation, part VIII, "Frontend/Backend Protocol", version 3.
//!
//! | part | what it does |
//! |---|---|
//! | `startup` | TLS, cancel requests and the StartupMessage |
//! | `backend` | the connection to it, with TLS or without |
//! | `authentication` | up to the first ReadyForQuery |
//! | `protocol` | both directions after it |
//! | `frame`, `messages` | finds messages in a stream, and fields in messages |
//! | `opening`, `control`, `statements` | what a transaction's first messages ask for |
//! | `conversation` | what is still owed to the client |
//! | `pool`, `scram` | many clients on few connections, and who they are |
//! | `pgbouncer` | reads its configuration |
//! | `cancel` | cancel requests: ends what still waits here, passes the others on |
//! | `reply` | the gate's own words |
//! | `admin`, `asker` | SHOW commands, and who may ask |
//!
//! What a client notices of a gate:
//! - an ERROR 53300 when the queue is full and 57014 when it has waited for too long; the
//!   connection lives on. Inside a transaction that had only begun, the transaction has failed;
//! - FATAL 57P03 when the backend cannot be reached, 08006 when it closes a connection without a
//!   word, 08P01 for bytes that are no protocol, 53300 for one connection too many, 57P01 when the
//!   gate ends;
//! - `now()` of a transaction begun by a bare BEGIN is the time of that (see `control`).
//!
//! Replication connections are relayed without admission. Pipelined transactions of one connection
//! are one unit while they overlap.

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

use crate::Gate;
use crate::classify::{Classify, Client};
use crate::relay::{self, AbortOnDrop, Listener, RelayConfig, Socket, Upstream, Waits};
pub use admin::{AdminDatabase, Answer, Answering, Answers, Rights, Table};
pub use asker::{NotHeard, check as check_asker};
pub(crate) use backend::connect_to;
use control::is_transaction_control;
pub use pool::{Pool, PoolConfig};
use statements::Prepared;

/// The protocol's name in TLS (ALPN), for [`ClientTls::new`](crate::relay::tls::ClientTls::new).
pub const ALPN: &[u8] = b"postgresql";

/// The type of preparing without executing.
const PREPARATION: &str = "prepare";
/// The type of what has no text.
const UNKNOWN: &str = "unknown";

/// How the relay works.
#[derive(Clone, Debug)]
pub struct PostgresConfig {
    /// What every relay is told.
    pub relay: RelayConfig,
    /// A client whose transaction waited for so long gets a notice.
    pub notice_after: Option<Duration>,
    /// The backend sees the client's address behind `application_name`, as with PgBouncer's
    /// `application_name_add_host`.
    pub tells_address: bool,
    /// A database that has no backend, but answers of the gate itself.
    pub admin: Option<AdminDatabase>,
    /// Many clients on few connections; without it each has one of its own.
    pub pool: Option<Arc<Pool>>,
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
        }
    }
}

/// Relays the connections to `listener` until `shutdown` is ready and transactions under way have
/// ended, or [`relay::Limits::drain_time_max`] has.
///
/// # Errors
/// When a thread cannot be started or the listener not be put on its poller.
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
    let serve = move |socket, peer, registration| {
        connection::serve(Arc::clone(&relay.0), socket, peer, registration)
    };
    let served = relay::serve(listener.into(), &limits, &registry, shutdown, serve).await;
    drop(sweeping);
    served
}

/// The relay without its listener: for connections that were accepted elsewhere, such as in a simulated
/// world.
#[derive(Clone, Debug)]
pub struct PostgresRelay(Arc<Shared>);

impl PostgresRelay {
    /// A relay with these settings.
    pub fn new(config: PostgresConfig, gate: Gate) -> Self {
        Self(Arc::new(Shared {
            waits: Arc::default(),
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

/// What all connections share.
#[derive(Debug)]
struct Shared {
    config: PostgresConfig,
    gate: Gate,
    /// By the keys that cancel requests name.
    waits: Arc<Waits<Box<[u8]>>>,
}

impl Shared {
    fn name_of(&self, statement: &[u8], client: &Client<'_>) -> Arc<str> {
        (self.config.relay.classify)(statement, client)
    }

    fn prepared(&self, statement: &[u8], client: &Client<'_>) -> Prepared {
        if is_transaction_control(statement) {
            Prepared::Control
        } else {
            Prepared::Work(self.name_of(statement, client))
        }
    }
}
