//! A client that replicates (`replication=true` or `=database` in its StartupMessage), before a pool.
//!
//! It streams for as long as it lives, so no connection can be lent to it. It gets one of its own beside the pool,
//! to the primary, which `--pool-size` does not count. There are no more of them than the server's `max_wal_senders`
//! and the gate's `--connections-max` allow. The gate authenticates the client as every client of the pool, and
//! logs in as the same user. Then every message passes, without admission.

use std::sync::Arc;

use bytes::BytesMut;

use super::super::Shared;
use super::super::authentication::Authenticated;
use super::super::backend::connect_at;
use super::super::startup::Startup;
use super::backend::AcquireError;
use super::entry::{EntryError, authenticate, user_and_database, welcome};
use super::login::{self, Kind, LoginError};
use super::{Meant, Pool, Target};
use crate::classify::ClientNames;
use crate::relay::Stream;

/// A connection beside the pool.
pub struct Beside {
    /// The connection.
    pub server: Stream,
    /// What is known of it.
    pub authenticated: Authenticated,
    /// Keeps it known to cancel requests.
    pub cancelling: Option<Cancellable>,
}

/// Forwards cancel requests to a connection until it is dropped.
pub struct Cancellable {
    pool: Arc<Pool>,
    key: Box<[u8]>,
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        self.pool.targets.lock().remove(&self.key);
    }
}

/// Authenticates the client, and opens a connection for it.
///
/// # Errors
/// [`EntryError`]
pub(in super::super) async fn replicate(
    shared: &Shared,
    pool: &Arc<Pool>,
    client: &mut Stream,
    startup: &Startup,
    names: &ClientNames,
) -> Result<Beside, EntryError> {
    let mut ahead = BytesMut::new();
    let login = authenticate(pool, client, startup, names, &mut ahead).await?;
    let nodes = &pool.common.nodes;
    let primary = nodes.cluster().primary_in_time().await;
    let node = primary.map_err(AcquireError::NoPrimary)?;
    // With TLS as the pool's connections.
    let connected = connect_at(&shared.config, nodes.upstream(node), true).await;
    let server = connected.map_err(|error| AcquireError::Login(LoginError::Connect(error)))?;
    let ready = login::log_in(server, &kind_of(startup, names), &login).await;
    let ready = ready.map_err(AcquireError::Login)?;
    let cancelling = ready.key.map(|key| cancellable(pool, key, node));
    let key = cancelling.as_ref().map(|of| &*of.key);
    welcome(client, &ready.parameters, key).await?;
    Ok(Beside {
        server: ready.stream,
        authenticated: Authenticated {
            key: key.map(<[u8]>::to_vec),
            ahead_client: ahead,
            ahead_server: BytesMut::new(),
        },
        cancelling,
    })
}

/// Everything that the client wishes goes to the server.
fn kind_of(startup: &Startup, names: &ClientNames) -> Kind {
    let (user, database) = user_and_database(names);
    let others = startup.parameters().filter(|(name, _)| {
        ![&b"user"[..], b"database"].contains(name) && !name.starts_with(b"_pq_.")
    });
    Kind {
        user: user.to_owned(),
        database: database.to_owned(),
        startup: others
            .map(|(name, value)| (name.to_vec(), value.to_vec()))
            .collect(),
    }
}

/// The client keeps the server's own key.
fn cancellable(pool: &Arc<Pool>, key: Arc<[u8]>, node: usize) -> Cancellable {
    let meant = Meant {
        key: Arc::clone(&key),
        cancels: Arc::default(),
        node,
    };
    let target = Target(parking_lot::Mutex::new(Some(meant)));
    let key: Box<[u8]> = Box::from(&*key);
    pool.targets.lock().insert(key.clone(), Arc::new(target));
    Cancellable {
        pool: Arc::clone(pool),
        key,
    }
}
