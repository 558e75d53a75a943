//! One connection of a client from its acceptance to its end.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::admin::{self, AdminDatabase};
use super::authentication::{self, Authenticated, AuthenticationError};
use super::cancel::key_of;
use super::reply::Complaint;
use super::session::{End, Session};
use super::startup::{self, Beginning, Startup, StartupError};
use super::{PostgresConfig, Shared};
use crate::classify::ClientNames;
use crate::relay::tls::UpstreamTls;
use crate::relay::{ConnectError, Entry, Registration, Stream, Upstream};

/// How long a client is given to take the last that it is told.
const LAST_WORD_TIME_MAX: Duration = Duration::from_secs(5);
/// What asks a backend for TLS: length and code.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Why a connection ended before its session began.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Startup(#[from] StartupError),
    #[error(transparent)]
    Connect(#[from] ServerError),
    #[error(transparent)]
    Authentication(#[from] AuthenticationError),
}

/// Why there is no connection to the backend.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the backend offers no TLS")]
    NoTls,
    #[error("TLS with the backend: {0}")]
    Tls(io::Error),
}

/// What a client gets.
enum Began<'a> {
    Session(Opened),
    Admin(Stream, &'a AdminDatabase),
}

/// A session that may begin.
struct Opened {
    session: Box<Session>,
    authenticated: Authenticated,
    entry: Option<Entry<Box<[u8]>>>,
}

/// Serves a connection until it ends.
pub async fn serve(
    shared: Arc<Shared>,
    socket: TcpStream,
    peer: SocketAddr,
    registration: Registration,
) {
    let authentication_time_max = shared.config.limits.authentication_time_max;
    // Each stage is boxed and gives its memory back before the next begins.
    let opening = Box::pin(open(&shared, socket, peer, &registration));
    match tokio::time::timeout(authentication_time_max, opening).await {
        Ok(Ok(Some(Began::Session(opened)))) => Box::pin(run(&shared, opened)).await,
        Ok(Ok(Some(Began::Admin(client, database)))) => {
            let serving = Box::pin(admin::serve(client, database, &registration.handle));
            if let Err(error) = serving.await {
                shared.config.registry.count_failure(&error);
            }
        }
        Ok(Ok(None)) => {}
        Ok(Err(error)) => {
            tracing::debug!(%peer, "{error}");
            shared.config.registry.count_failure(&error);
        }
        Err(elapsed) => shared.config.registry.count_failure(&elapsed),
    }
    drop(registration);
}

/// Relays the session and tells the client of an end that it does not know of.
async fn run(shared: &Shared, opened: Opened) {
    let Opened {
        mut session,
        authenticated,
        entry,
    } = opened;
    let end = relay(&mut session, authenticated).await;
    drop(entry);
    let complaint = match end {
        End::ClientLeft | End::Closed | End::ServerLeft { was_told: true } => return,
        End::ServerLeft { was_told: false } => Complaint::new(
            "08006",
            "the backend closed the connection; if a transaction was being committed, its outcome is unknown",
        ),
        End::Refused(complaint) => complaint,
        End::Drained => Complaint::new("57P01", "terminating connection: the gate shuts down"),
    };
    if !matches!(complaint.sqlstate, "57P01") {
        shared.config.registry.count_failure(&complaint);
    }
    // The backend and the unit of work are let go of first.
    if let Some(client) = session.into_client() {
        say_last(client, &complaint).await;
    }
}

async fn relay(session: &mut Session, authenticated: Authenticated) -> End {
    let Authenticated {
        ahead_client,
        ahead_server,
        ..
    } = authenticated;
    let early = poll_fn(|context| {
        std::task::Poll::Ready(session.begin(context, &ahead_client, &ahead_server))
    })
    .await;
    drop((ahead_client, ahead_server));
    match early {
        Some(end) => end,
        None => poll_fn(|context| session.poll(context)).await,
    }
}

/// Everything up to the first ReadyForQuery. None if the client wanted no session.
async fn open<'a>(
    shared: &'a Arc<Shared>,
    socket: TcpStream,
    peer: SocketAddr,
    registration: &Registration,
) -> Result<Option<Began<'a>>, OpenError> {
    let config = &shared.config;
    let local = socket.local_addr();
    let (mut client, startup) = match startup::begin(socket, config.client_tls.as_ref()).await {
        Ok(Beginning::Session { client, startup }) => (client, startup),
        Ok(Beginning::Cancel { packet }) => {
            cancel(shared, &packet).await?;
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
        let limit = config.limits.connections_max;
        let message = format!("sorry, too many clients already: the gate takes {limit}");
        say_last(client, &Complaint::new("53300", message)).await;
        return Ok(None);
    }
    if let Some(database) = admin_database(config, &startup) {
        if let Some(complaint) = admin::refusal(peer, local, &database.uids).await {
            say_last(client, &complaint).await;
            return Ok(None);
        }
        return Ok(Some(Began::Admin(client, database)));
    }
    let mut server = match connect(shared).await {
        Ok(server) => server,
        Err(error) => {
            say_last(client, &Complaint::new("57P03", error.to_string())).await;
            return Err(error.into());
        }
    };
    match authenticate(shared, &mut client, &mut server, &startup).await {
        Ok(authenticated) => Ok(Some(Began::Session(opened(
            shared,
            registration,
            &startup,
            peer,
            client,
            server,
            authenticated,
        )))),
        Err(error) => {
            if matches!(error, AuthenticationError::ServerLeft) {
                say_last(client, &Complaint::new("08006", error.to_string())).await;
            }
            Err(error.into())
        }
    }
}

/// The admin database, if that is what the client wants.
fn admin_database<'a>(config: &'a PostgresConfig, startup: &Startup) -> Option<&'a AdminDatabase> {
    let wanted = startup.parameter("database")?;
    let database = config.admin.as_ref()?;
    (wanted == database.name.as_bytes() && !startup.is_replication()).then_some(database)
}

async fn authenticate(
    shared: &Shared,
    client: &mut Stream,
    server: &mut Stream,
    startup: &Startup,
) -> Result<Authenticated, AuthenticationError> {
    let is_bindable = |certificate| {
        let tls = shared.config.client_tls.as_ref();
        client.is_secure() && tls.is_some_and(|tls| tls.shows(certificate))
    };
    let strikes_plus = server.is_secure() && !server.peer_certificate().is_some_and(is_bindable);
    authentication::send(server, &startup.packet).await?;
    authentication::relay(client, server, strikes_plus).await
}

fn opened(
    shared: &Arc<Shared>,
    registration: &Registration,
    startup: &Startup,
    peer: SocketAddr,
    client: Stream,
    server: Stream,
    authenticated: Authenticated,
) -> Opened {
    let handle = &registration.handle;
    let name = |parameter| {
        let name = startup.parameter(parameter)?;
        Some(String::from_utf8_lossy(name).into())
    };
    let user = name("user");
    let names = ClientNames {
        address: Some(peer.ip()),
        application_name: name("application_name"),
        // The backend's own default.
        database: name("database").or_else(|| user.clone()),
        user,
    };
    let session = Session::new(
        shared,
        handle,
        names,
        authenticated.key.as_deref().and_then(process_of),
        !startup.is_replication(),
        client,
        server,
    );
    let key = authenticated.key.as_deref();
    Opened {
        session: Box::new(session),
        entry: key.map(|key| shared.waits.register(key.into(), handle)),
        authenticated,
    }
}

/// The number of the process that a key names: the first half of a BackendKeyData's body.
fn process_of(key: &[u8]) -> Option<u32> {
    key.first_chunk().map(|number| u32::from_be_bytes(*number))
}

/// Sends a cancel request on, unless what it is for waits here. The client takes the connection's
/// end for the request's, so the backend's is waited for.
async fn cancel(shared: &Shared, packet: &[u8]) -> Result<(), ServerError> {
    if key_of(packet).is_some_and(|key| shared.waits.cancel(key)) {
        return Ok(());
    }
    let mut server = connect(shared).await?;
    let mut rest = Vec::new();
    // The client gets no answer, whatever becomes of its request.
    let _ = server.write_all(packet).await;
    let _ = server.flush().await;
    let _ = server.read_to_end(&mut rest).await;
    Ok(())
}

/// A connection to the backend, on TLS as configured.
async fn connect(shared: &Shared) -> Result<Stream, ServerError> {
    let config = &shared.config;
    let limit = config.limits.connect_time_max;
    connect_to(&config.upstream, &config.upstream_tls, limit).await
}

/// A connection to a backend.
pub(crate) async fn connect_to(
    upstream: &Upstream,
    tls: &UpstreamTls,
    limit: Duration,
) -> Result<Stream, ServerError> {
    let mut socket = upstream.connect(limit).await?;
    let Some(connector) = tls.connector() else {
        return Ok(Stream::Plain(socket));
    };
    let begin = async {
        socket.write_all(&TLS_REQUEST).await?;
        // Not a byte more: what follows in the clear is no handshake.
        match socket.read_u8().await? {
            b'S' => connector.connect(socket, &upstream.host).await.map(Some),
            // An error's type byte comes from servers that know of no TLS.
            _ => Ok(None),
        }
    };
    let begun = tokio::time::timeout(limit, begin)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match begun.map_err(ServerError::Tls)? {
        Some(stream) => Ok(stream),
        None if tls.is_optional() => Ok(Stream::Plain(upstream.connect(limit).await?)),
        None => Err(ServerError::NoTls),
    }
}

/// Tells the client why it is left.
async fn say_last(mut client: Stream, complaint: &Complaint) {
    let saying = async {
        client.write_all(&complaint.fatal()).await?;
        client.shutdown().await?;
        // What it has sent meanwhile must be read, or the kernel's reset overtakes the message.
        let mut rest = [0; 1024];
        while client.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    // A client that does not listen is left without a word.
    let _ = tokio::time::timeout(LAST_WORD_TIME_MAX, saying).await;
}
