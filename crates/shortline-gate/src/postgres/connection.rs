//! A client's connection from accept to close.

mod arrived;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use shortline_sched::admission::Refusal;
use tokio::io::AsyncWriteExt;

use super::admin::{self, AdminDatabase, Asker, Rights};
use super::authentication::{self, Authenticated, AuthenticationError};
use super::backend::{BackendError, connect};
use super::cancel::{self, process_of};
use super::pool::{self, Beside, Cancellable, Pool, Pooled};
use super::protocol::Postgres;
use super::reply::{Complaint, say_last};
use super::startup::{self, Beginning, Startup, StartupError};
use super::{PostgresConfig, Shared};
use crate::Gate;
use crate::classify::ClientNames;
use crate::relay::proxy;
use crate::relay::{
    self, About, Entry, Handle, Order, Protocol, Registration, Session, Side, Socket, Stream, Work,
};
use crate::{BackendConnection, GateClient};

/// Why a connection ended before its session began.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Startup(#[from] StartupError),
    #[error(transparent)]
    Connect(#[from] BackendError),
    #[error(transparent)]
    Authentication(#[from] AuthenticationError),
    #[error(transparent)]
    Pool(#[from] pool::EntryError),
    #[error("before the client began: {0}")]
    Proxy(#[from] io::Error),
}

/// The session that a client gets.
enum Began<'a> {
    Session(Opened<Postgres>),
    Pooled(Opened<Pooled>),
    Admin(Stream, &'a AdminDatabase, Rights),
}

/// A client that is not admitted to a session yet.
struct Newcomer<'a> {
    registration: &'a Registration,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    names: Arc<ClientNames>,
}

impl<'a> Newcomer<'a> {
    /// Waits until its database accepts clients. Returns the error if the client is refused.
    async fn wait_to_enter(&self, gate: &Gate) -> Option<Complaint> {
        let database = self.names.database.as_deref();
        let name = database.unwrap_or_default();
        if gate.is_disabled(name) {
            let message =
                format!("database \"{name}\" is not accepting connections: it is disabled");
            return Some(Complaint::new("55000", message));
        }
        let handle = &self.registration.handle;
        tokio::select! {
            biased;
            () = handle.wait_to_enter(gate, database) => None,
            () = handle.ordered(Order::Drain) => Some(Complaint::shutting_down()),
        }
    }

    /// Registers the client's addresses and names with its handle.
    fn introduce(&self, is_secure: bool) -> &'a Arc<Handle> {
        let handle = self.registration.handle.member();
        handle.introduce(About {
            peer: self.peer,
            local: self.local,
            is_secure,
            names: Arc::clone(&self.names),
        });
        handle
    }
}

/// The account that a client's work is charged to.
fn account_of(shared: &Shared, names: &ClientNames) -> GateClient {
    let user = names.user.as_deref().unwrap_or_default();
    let mut account = shared.gate.client(user);
    if let Some(database) = &names.database {
        account.set_database(database);
    }
    account
}

/// A session that may begin.
struct Opened<P> {
    session: Box<Session<P>>,
    /// The bytes that the backend has already sent.
    ahead: Vec<u8>,
    entry: Option<Entry<Box<[u8]>>>,
    /// Of a connection beside the pool.
    cancelling: Option<Cancellable>,
}

/// Serves a connection until it ends.
pub async fn serve(
    shared: Arc<Shared>,
    socket: Socket,
    peer: Option<SocketAddr>,
    registration: Registration,
) {
    let config = &shared.config.relay;
    let opening = Box::pin(open(&shared, socket, peer, &registration));
    let opened = relay::open_in_time(opening, &registration, config).await;
    match opened.flatten() {
        Some(Began::Session(opened)) => Box::pin(run(&shared, opened)).await,
        Some(Began::Pooled(opened)) => Box::pin(run(&shared, opened)).await,
        Some(Began::Admin(client, database, rights)) => {
            let serving = admin::serve(client, database, rights, &registration.handle);
            let serving = Box::pin(serving);
            if let Err(error) = serving.await {
                config.registry.count_failure(&error);
            }
        }
        None => {}
    }
    drop(registration);
}

pub use arrived::go_on;

/// Relays the session to its end.
async fn run<P: Protocol<Complaint = Complaint>>(shared: &Shared, opened: Opened<P>) {
    let Opened {
        mut session,
        ahead,
        entry,
        cancelling,
    } = opened;
    let end = session.relay(ahead).await;
    drop((entry, cancelling));
    Box::pin(session.close(end, &shared.config.relay.registry)).await;
}

/// Everything up to the first ReadyForQuery. None if the client wanted no session.
async fn open<'a>(
    shared: &'a Arc<Shared>,
    mut socket: Socket,
    from: Option<SocketAddr>,
    registration: &Registration,
) -> Result<Option<Began<'a>>, OpenError> {
    let config = &shared.config;
    let (local, uid) = (socket.local_addr(), socket.peer_uid());
    let peer = proxy::peer(&mut socket, from, &config.relay.proxies).await?;
    let begun = tokio::select! {
        biased;
        begun = startup::begin(socket, config.relay.client_tls.as_ref()) => begun,
        // A drain does not wait for a client that has sent nothing.
        () = registration.handle.ordered(Order::Drain) => return Ok(None),
    };
    let (mut client, mut startup) = match begun {
        Ok(Beginning::Session { client, startup }) => (client, startup),
        Ok(Beginning::Cancel { client, packet }) => {
            cancel::serve(shared, &packet, client).await?;
            return Ok(None);
        }
        Ok(Beginning::Gone) => return Ok(None),
        Err(StartupError::Refused { complaint, client }) => {
            say_last(*client, &complaint).await;
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    if registration.is_too_many {
        let limit = config.relay.limits.connections_max;
        let message = format!("sorry, too many clients already: the gate takes {limit}");
        say_last(client, &Complaint::new("53300", message)).await;
        return Ok(None);
    }
    if let Some(database) = admin_database(config, &startup) {
        let rights = {
            let asker = Asker { peer, local, uid };
            enter_admin(shared, database, &mut client, &startup, asker).await
        };
        return match rights {
            Ok(rights) => Ok(Some(Began::Admin(client, database, rights))),
            Err(complaint) => {
                say_last(client, &complaint).await;
                Ok(None)
            }
        };
    }
    let newcomer = Newcomer {
        registration,
        peer: peer.address,
        local: local.ok(),
        names: Arc::new(names_of(&startup, peer.address)),
    };
    if let (true, Some(address)) = (config.tells_address, peer.address) {
        startup.add_to_application_name(&format!(" - {address}"));
    }
    if let Some(complaint) = newcomer.wait_to_enter(&shared.gate).await {
        say_last(client, &complaint).await;
        return Ok(None);
    }
    let began = match &config.pool {
        Some(pool) if startup.is_replication() => {
            Began::Session(enter_beside(shared, pool, client, &startup, newcomer).await?)
        }
        Some(pool) => Began::Pooled(enter_pool(shared, pool, client, &startup, newcomer).await?),
        None => Began::Session(enter_session(shared, client, &startup, newcomer).await?),
    };
    Ok(Some(began))
}

/// The admin database, if the client asks for it.
fn admin_database<'a>(config: &'a PostgresConfig, startup: &Startup) -> Option<&'a AdminDatabase> {
    let wanted = startup.parameter("database")?;
    let database = config.admin.as_ref()?;
    (wanted == database.name.as_bytes() && !startup.is_replication()).then_some(database)
}

/// The rights of a client of the admin database: those of its user on this machine, or those of its user in the pool,
/// whose password it must then prove.
async fn enter_admin(
    shared: &Shared,
    database: &AdminDatabase,
    client: &mut Stream,
    startup: &Startup,
    asker: Asker,
) -> Result<Rights, Complaint> {
    let Some(refusal) = admin::refusal(asker, &database.uids).await else {
        let said = async {
            client.write_all(&admin::authentication_ok()).await?;
            client.flush().await
        };
        // If the client has left, serving it reports that.
        let _ = said.await;
        return Ok(Rights::Act);
    };
    let user = startup.parameter("user").map(String::from_utf8_lossy);
    let user = user.as_deref().unwrap_or_default();
    let (Some(pool), Some(rights)) = (&shared.config.pool, database.rights_of(user)) else {
        return Err(refusal);
    };
    pool::identify(pool, client, user).await?;
    Ok(rights)
}

async fn authenticate(
    shared: &Shared,
    client: &mut Stream,
    server: &mut Stream,
    startup: &Startup,
    join: impl FnMut() -> Result<(), Refusal>,
) -> Result<Authenticated, AuthenticationError> {
    let is_bindable = |certificate| {
        let tls = shared.config.relay.client_tls.as_ref();
        client.is_secure() && tls.is_some_and(|tls| tls.shows(certificate))
    };
    let strikes_plus = server.is_secure() && !server.peer_certificate().is_some_and(is_bindable);
    authentication::send(server, &startup.packet).await?;
    let message_bytes_max = shared.config.relay.limits.message_bytes_max;
    authentication::relay(client, server, strikes_plus, message_bytes_max, join).await
}

/// A client that the backend has accepted.
struct Arrived {
    /// None for a client that is not gated.
    account: Option<GateClient>,
    client: Stream,
    server: Stream,
    authenticated: Authenticated,
}

fn opened(shared: &Arc<Shared>, newcomer: Newcomer<'_>, arrived: Arrived) -> Opened<Postgres> {
    let Arrived {
        mut account,
        client,
        server,
        authenticated,
    } = arrived;
    let handle = newcomer.introduce(client.is_secure());
    let names = newcomer.names;
    let key = authenticated.key.as_deref();
    let is_gated = account.is_some();
    if let Some(account) = &mut account {
        account.set_backend(key.and_then(process_of).map(BackendConnection::of_one));
    }
    let work = Work::new(&shared.gate, handle, account);
    let idle_time_max = shared
        .config
        .relay
        .idle_transaction_time_max(&names.client());
    let protocol = Postgres::new(shared, names, is_gated);
    let ahead = authenticated.ahead_client.into();
    let session = Session::new(protocol, handle, work, client, Side::new(server), ahead)
        .limit_idle_transactions(idle_time_max);
    Opened {
        session: Box::new(session),
        entry: key.map(|key| shared.waits.register(key.into(), handle)),
        ahead: authenticated.ahead_server.into(),
        cancelling: None,
    }
}

/// Gives a client its own connection to the backend, and a session if the backend accepts it.
async fn enter_session(
    shared: &Arc<Shared>,
    mut client: Stream,
    startup: &Startup,
    newcomer: Newcomer<'_>,
) -> Result<Opened<Postgres>, OpenError> {
    let mut server = match connect(&shared.config, client.is_secure()).await {
        Ok(server) => server,
        Err(error) => {
            say_last(client, &Complaint::new("57P03", error.to_string())).await;
            return Err(error.into());
        }
    };
    let mut account = (!startup.is_replication()).then(|| account_of(shared, &newcomer.names));
    let join = || {
        account
            .as_mut()
            .map_or(Ok(()), |account| shared.join(account, &newcomer.names))
    };
    match authenticate(shared, &mut client, &mut server, startup, join).await {
        Ok(authenticated) => {
            let arrived = Arrived {
                account,
                client,
                server,
                authenticated,
            };
            Ok(opened(shared, newcomer, arrived))
        }
        Err(error) => {
            if let Some(complaint) = error.complaint() {
                say_last(client, &complaint).await;
            }
            Err(error.into())
        }
    }
}

/// Authenticates a client of the pool, and gives it a session.
async fn enter_pool(
    shared: &Arc<Shared>,
    pool: &Arc<Pool>,
    mut client: Stream,
    startup: &Startup,
    newcomer: Newcomer<'_>,
) -> Result<Opened<Pooled>, OpenError> {
    let handle = newcomer.registration.handle.member();
    let mut account = account_of(shared, &newcomer.names);
    let names = Arc::clone(&newcomer.names);
    let idle_time_max = shared
        .config
        .relay
        .idle_transaction_time_max(&names.client());
    let entering = pool::open(
        shared,
        pool,
        &mut client,
        startup,
        names,
        handle,
        &mut account,
    );
    match entering.await {
        Ok(entered) => {
            newcomer.introduce(client.is_secure());
            let work = Work::new(&shared.gate, handle, Some(account));
            let session = Session::new(
                entered.protocol,
                handle,
                work,
                client,
                Side::detached(),
                entered.ahead,
            )
            .limit_idle_transactions(idle_time_max);
            Ok(Opened {
                session: Box::new(session),
                ahead: Vec::new(),
                entry: Some(entered.entry),
                cancelling: None,
            })
        }
        Err(error) => {
            if let Some(complaint) = error.complaint() {
                say_last(client, &complaint).await;
            }
            Err(error.into())
        }
    }
}

/// Authenticates a client of the pool that replicates, and gives it its own connection beside the pool.
async fn enter_beside(
    shared: &Arc<Shared>,
    pool: &Arc<Pool>,
    mut client: Stream,
    startup: &Startup,
    newcomer: Newcomer<'_>,
) -> Result<Opened<Postgres>, OpenError> {
    match pool::replicate(shared, pool, &mut client, startup, &newcomer.names).await {
        Ok(Beside {
            server,
            authenticated,
            cancelling,
        }) => {
            let arrived = Arrived {
                account: None,
                client,
                server,
                authenticated,
            };
            let mut opened = opened(shared, newcomer, arrived);
            opened.cancelling = cancelling;
            Ok(opened)
        }
        Err(error) => {
            if let Some(complaint) = error.complaint() {
                say_last(client, &complaint).await;
            }
            Err(error.into())
        }
    }
}

/// The names by which statements are classified, apart from their text.
fn names_of(startup: &Startup, peer: Option<SocketAddr>) -> ClientNames {
    let name = |name: Option<&[u8]>| Some(String::from_utf8_lossy(name?).into());
    ClientNames {
        address: peer.map(|address| address.ip()),
        application_name: name(startup.parameter("application_name")),
        database: name(startup.database()),
        user: name(startup.parameter("user")),
    }
}
