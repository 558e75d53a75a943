//! One connection of a client from its acceptance to its end.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::admin::{self, AdminDatabase};
use super::authentication::{self, Authenticated, AuthenticationError};
use super::backend::{BackendError, connect};
use super::cancel;
use super::reply::Complaint;
use super::session::{End, Session};
use super::startup::{self, Beginning, Startup, StartupError};
use super::{PostgresConfig, Shared};
use crate::classify::ClientNames;
use crate::relay::{Entry, Order, Registration, Socket, Stream};

/// How long a client is given to take the last that it is told.
const LAST_WORD_TIME_MAX: Duration = Duration::from_secs(5);

/// Why a connection ended before its session began.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Startup(#[from] StartupError),
    #[error(transparent)]
    Connect(#[from] BackendError),
    #[error(transparent)]
    Authentication(#[from] AuthenticationError),
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
    socket: Socket,
    peer: SocketAddr,
    registration: Registration,
) {
    let authentication_time_max = shared.config.limits.authentication_time_max;
    // Each stage is boxed and gives its memory back before the next begins.
    let opening = Box::pin(open(&shared, socket, peer, &registration));
    let opened = tokio::select! {
        opened = tokio::time::timeout(authentication_time_max, opening) => opened,
        () = registration.handle.ordered(Order::Close) => return,
    };
    match opened {
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
        End::ClientLeft | End::ServerLeft { was_told: true } => return,
        End::ServerLeft { was_told: false } => Complaint::new(
            "08006",
            "the backend closed the connection; if a transaction was being committed, its outcome is unknown",
        ),
        End::Refused(complaint) => complaint,
        End::Drained | End::Closed => Complaint::shutting_down(),
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
    socket: Socket,
    peer: SocketAddr,
    registration: &Registration,
) -> Result<Option<Began<'a>>, OpenError> {
    let config = &shared.config;
    let local = socket.local_addr();
    let begun = tokio::select! {
        biased;
        begun = startup::begin(socket, config.client_tls.as_ref()) => begun,
        // A client that has said nothing is not waited for.
        () = registration.handle.ordered(Order::Drain) => return Ok(None),
    };
    let (mut client, startup) = match begun {
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
    let mut server = match connect(config, client.is_secure()).await {
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
            if let Some(complaint) = error.complaint() {
                say_last(client, &complaint).await;
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
    let message_bytes_max = shared.config.limits.message_bytes_max;
    authentication::relay(client, server, strikes_plus, message_bytes_max).await
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

/// Tells the client why it is left.
pub(super) async fn say_last(mut client: Stream, complaint: &Complaint) {
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
