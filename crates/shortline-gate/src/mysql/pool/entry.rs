//! A client enters the pool: it is authenticated, and gets a session if its database exists. This needs a connection
//! only if no session has begun in that database before.

use std::sync::Arc;

use tokio::time::Instant;

use super::backend::{AcquireError, Kind, Login, OpenError, give_back};
use super::greeting::{ask_servers, database_of, greet};
use super::protocol::{Member, Pooled};
use super::{PLACES_MAX, Pool, Target};
use crate::mysql::Shared;
use crate::mysql::capability::OF_POOLED;
use crate::mysql::complaint::Complaint;
use crate::mysql::handshake::{HandshakeError, Join, refuse};
use crate::mysql::link::Link;
use crate::mysql::login::LoginError;
use crate::pool::connections;
use crate::relay::{Entry, Handle, Socket, Stream};

/// The server's OK to an answer: autocommit, and nothing else.
const OK: &[u8] = b"\0\0\0\x02\0\0\0";

/// A session that is ready to begin.
pub struct Entered {
    /// The client.
    pub client: Stream,
    /// Its protocol.
    pub protocol: Pooled,
    /// Its entry among the waits that KILL can end.
    pub entry: Entry<u32>,
}

/// Authenticates the client and makes its session. If the client is refused, it gets the error here.
///
/// # Errors
/// [`HandshakeError`]
pub(in super::super) async fn open(
    shared: &Arc<Shared>,
    pool: &Arc<Pool>,
    client: Socket,
    handle: &Arc<Handle>,
    join: Join<'_>,
) -> Result<Entered, HandshakeError> {
    let mut link = Link::of_client(client);
    let known = pool.server.lock().clone();
    let server = match known {
        Some(server) => server,
        None => match ask_servers(&shared.config, pool.common.nodes.cluster().servers()).await {
            Ok(server) => {
                *pool.server.lock() = Some(server.clone());
                server
            }
            Err(complaint) => return Err(refuse(&mut link, complaint, true).await),
        },
    };
    let thread_id = pool.new_id();
    let mut known = greet(link, &shared.config, pool, &server, thread_id, handle).await?;
    if let Err(refusal) = join(&mut known.names) {
        let complaint = Complaint::too_many_of_tenant(&refusal);
        return Err(refuse(&mut known.link, complaint, false).await);
    }
    let database = database_of(&known.names, known.capabilities);
    let kind = Arc::new(Kind {
        user: known.names.user.as_deref().unwrap_or_default().to_owned(),
        capabilities: known.capabilities & OF_POOLED,
        collation: known.collation,
        has_database: database.is_some(),
    });
    let mut link = known.link;
    let login = Login {
        secret: known.secret,
        database,
    };
    if let Err(error) = begin_there(pool, &kind, &login).await {
        return Err(refuse(&mut link, complaint_of(&error), false).await);
    }
    link.write(OK).await?;
    let target = Arc::new(Target {
        user: kind.user.clone(),
        secret: login.secret.clone(),
        current: Default::default(),
    });
    pool.targets.lock().insert(thread_id, Arc::clone(&target));
    let terms = (shared.config.terms_of)(&known.names.client());
    let member = Member {
        is_of_transactions: pool.common.lends_for_transactions(&terms),
        pool: Arc::clone(pool),
        kind,
        login,
        target,
        thread_id,
    };
    Ok(Entered {
        client: link.stream,
        protocol: Pooled::new(shared, known.names, member),
        entry: shared.waits.register(thread_id, handle),
    })
}

/// Checks that a session can begin with this kind and database, if none has before.
async fn begin_there(
    pool: &Arc<Pool>,
    kind: &Arc<Kind>,
    login: &Login,
) -> Result<(), AcquireError> {
    let place = (Arc::clone(kind), login.database.clone().unwrap_or_default());
    if pool.places.lock().contains(&place) {
        return Ok(());
    }
    let nodes = Arc::clone(&pool.common.nodes);
    let acquiring = nodes.acquire_any(Arc::clone(kind), login.clone());
    let (held, stream) = acquiring.await?;
    let is_there = held.known.schema.as_deref() == login.database.as_deref().map(str::as_bytes);
    give_back(Instant::now(), held, stream);
    // An idle connection in another database does not show whether this one exists. The first statement will.
    if is_there {
        let mut places = pool.places.lock();
        if places.len() >= PLACES_MAX {
            places.clear();
        }
        places.insert(place);
    }
    Ok(())
}

/// The error for a client that does not get a connection.
pub(super) fn complaint_of(error: &AcquireError) -> Complaint {
    match error {
        connections::AcquireError::Login(OpenError::Login(LoginError::Refused {
            code,
            reason,
            ..
        })) => {
            let sqlstate = match code {
                1044 | 1049 => "42000",
                1040 => "08004",
                1045 => "28000",
                _ => "HY000",
            };
            Complaint::new(*code, sqlstate, reason.clone())
        }
        connections::AcquireError::Login(error) => Complaint::unreachable(error),
        connections::AcquireError::NoPrimary(error) => Complaint::unreachable(error),
        connections::AcquireError::Busy { .. } => Complaint::new(1040, "08004", error.to_string()),
    }
}
