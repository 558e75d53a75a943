//! One connection of a client from its acceptance to its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;

use super::admin::{self, AdminDatabase, Asker, Rights};
use super::authentication::{self, Authenticated, AuthenticationError};
use super::backend::{BackendError, connect};
use super::cancel;
use super::pool::{self, Pool, Pooled};
use super::protocol::Postgres;
use super::reply::Complaint;
use super::startup::{self, Beginning, Startup, StartupError};
use super::{PostgresConfig, Shared};
use crate::classify::ClientNames;
use crate::relay::proxy;
use crate::relay::{
    self, About, Entry, Handle, Order, Protocol, Registration, Session, Side, Socket, Stream, Work,
};
use crate::{Gate, GateClient};

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

/// What a client gets.
enum Began<'a> {
    Session(Opened<Postgres>),
    Pooled(Opened<Pooled>),
    Admin(Stream, &'a AdminDatabase, Rights),
}

/// A client that is not let in yet.
struct Newcomer<'a> {
    registration: &'a Registration,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    names: Arc<ClientNames>,
}

impl<'a> Newcomer<'a> {
    /// Waits until its database is not kept out, and says why it is not let in, if it is not.
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

    /// The gate knows it now.
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

/// Who pays for a client's work, whose connection to the backend has the number `backend` there.
fn account_of(shared: &Shared, names: &ClientNames, backend: Option<u32>) -> GateClient {
    let user = names.user.as_deref().unwrap_or_default();
    let mut account = shared.gate.client(user, backend);
    if let Some(database) = &names.database {
        account.set_database(database);
    }
    account
}

/// A session that may begin.
struct Opened<P> {
    session: Box<Session<P>>,
    /// What the backend has said already.
    ahead: Vec<u8>,
    entry: Option<Entry<Box<[u8]>>>,
}

/// Serves a connection until it ends.
pub async fn serve(
    shared: Arc<Shared>,
    socket: Socket,
    peer: Option<SocketAddr>,
    registration: Registration,
) {
    let config = &shared.config.relay;
    let opening = open(&shared, socket, peer, &registration);
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

/// Relays the session to its end.
async fn run<P: Protocol<Complaint = Complaint>>(shared: &Shared, opened: Opened<P>) {
    let Opened {
        mut session,
        ahead,
        entry,
    } = opened;
    let end = session.relay(ahead).await;
    drop(entry);
    session.close(end, &shared.config.relay.registry).await;
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
        // A client that has said nothing is not waited for.
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
    if let Some(pool) = &config.pool {
        let opened = enter_pool(shared, pool, client, &startup, newcomer).await?;
        return Ok(Some(Began::Pooled(opened)));
    }
    let opened = enter_session(shared, client, &startup, newcomer).await?;
    Ok(Some(Began::Session(opened)))
}

/// The admin database, if that is what the client wants.
fn admin_database<'a>(config: &'a PostgresConfig, startup: &Startup) -> Option<&'a AdminDatabase> {
    let wanted = startup.parameter("database")?;
    let database = config.admin.as_ref()?;
    (wanted == database.name.as_bytes() && !startup.is_replication()).then_some(database)
}

/// What a client of the admin database may say: as who it is on this machine, or by its password in the pool.
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
        // A client that has left shows where it is served.
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
) -> Result<Authenticated, AuthenticationError> {
    let is_bindable = |certificate| {
        let tls = shared.config.relay.client_tls.as_ref();
        client.is_secure() && tls.is_some_and(|tls| tls.shows(certificate))
    };
    let strikes_plus = server.is_secure() && !server.peer_certificate().is_some_and(is_bindable);
    authentication::send(server, &startup.packet).await?;
    let message_bytes_max = shared.config.relay.limits.message_bytes_max;
    authentication::relay(client, server, strikes_plus, message_bytes_max).await
}

fn opened(
    shared: &Arc<Shared>,
    newcomer: Newcomer<'_>,
    startup: &Startup,
    client: Stream,
    server: Stream,
    authenticated: Authenticated,
) -> Opened<Postgres> {
    let handle = newcomer.introduce(client.is_secure());
    let names = newcomer.names;
    let is_gated = !startup.is_replication();
    let key = authenticated.key.as_deref();
    let account = is_gated.then(|| account_of(shared, &names, key.and_then(process_of)));
    let work = Work::new(&shared.gate, handle, account);
    let protocol = Postgres::new(shared, names, is_gated);
    let ahead = authenticated.ahead_client.into();
    let session = Session::new(protocol, handle, work, client, Side::new(server), ahead);
    Opened {
        session: Box::new(session),
        entry: key.map(|key| shared.waits.register(key.into(), handle)),
        ahead: authenticated.ahead_server.into(),
    }
}

/// Gives a client a connection to the backend of its own, and lets it in if the backend does.
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
    match authenticate(shared, &mut client, &mut server, startup).await {
        Ok(authenticated) => Ok(opened(
            shared,
            newcomer,
            startup,
            client,
            server,
            authenticated,
        )),
        Err(error) => {
            if let Some(complaint) = error.complaint() {
                say_last(client, &complaint).await;
            }
            Err(error.into())
        }
    }
}

/// Lets a client into the pool.
async fn enter_pool(
    shared: &Arc<Shared>,
    pool: &Arc<Pool>,
    mut client: Stream,
    startup: &Startup,
    newcomer: Newcomer<'_>,
) -> Result<Opened<Pooled>, OpenError> {
    let handle = newcomer.registration.handle.member();
    let account = account_of(shared, &newcomer.names, None);
    let names = Arc::clone(&newcomer.names);
    match pool::open(shared, pool, &mut client, startup, names, handle).await {
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
            );
            Ok(Opened {
                session: Box::new(session),
                ahead: Vec::new(),
                entry: Some(entered.entry),
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

/// What statements are classified by beside their text.
fn names_of(startup: &Startup, peer: Option<SocketAddr>) -> ClientNames {
    let name = |parameter| {
        let name = startup.parameter(parameter)?;
        Some(String::from_utf8_lossy(name).into())
    };
    let user = name("user");
    ClientNames {
        address: peer.map(|address| address.ip()),
        application_name: name("application_name"),
        // The backend's own default.
        database: name("database").or_else(|| user.clone()),
        user,
    }
}

/// The number of the process that a key names: the first half of a BackendKeyData's body.
pub(super) fn process_of(key: &[u8]) -> Option<u32> {
    key.first_chunk().map(|number| u32::from_be_bytes(*number))
}

/// Tells the client why it is left.
pub(super) async fn say_last(client: Stream, complaint: &Complaint) {
    Side::new(client).close(&complaint.fatal()).await;
}
