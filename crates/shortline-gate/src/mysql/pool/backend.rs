//! Connections to MySQL and MariaDB for the pool ([`crate::pool::connections`]). After login, session tracking is
//! turned on, and the initial variables and database are read.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::time::Instant;

use super::prepared::OfConnection;
use super::settings::{Schema, Settings, base_of, look_at_base};
use crate::mysql::ask::{AskError, ask};
use crate::mysql::capability::{Capabilities, SESSION_TRACK};
use crate::mysql::link::Link;
use crate::mysql::login::{self, Account, LoginError, Ready, Secret, Way, Wishes};
use crate::pool::{self, Names, connections};
use crate::relay::{RelayConfig, Stream, Upstream};

/// ER_SERVER_SHUTDOWN
const SHUTDOWN: u16 = 1053;
/// COM_RESET_CONNECTION
const RESET: u8 = 0x1f;
/// The time limit for resetting a connection after its session.
const CLEAN_TIME_MAX: Duration = Duration::from_secs(10);

/// Turns on session tracking, so OK packets report changes. MySQL has it since 5.7, MariaDB since 10.2.
const TRACK: &str = "SET SESSION session_track_schema=ON, session_track_system_variables='*', \
    session_track_state_change=ON, session_track_transaction_info='CHARACTERISTICS'";

/// Opens connections with this configuration.
#[derive(Debug)]
pub struct Backend(pub RelayConfig);

impl Backend {
    /// Opens them to this server.
    pub fn to(relay: &RelayConfig, upstream: Upstream) -> Self {
        Self(RelayConfig {
            upstream,
            ..relay.clone()
        })
    }
}

/// A connection that is lent.
pub type Held = connections::Held<Backend>;
/// Why a connection could not be acquired.
pub type AcquireError = connections::AcquireError<OpenError>;

/// The kind of a connection. Connections of one kind are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The user that is logged in.
    pub user: String,
    /// The capabilities in `OF_POOLED` that the client agreed on with the gate.
    pub capabilities: Capabilities,
    /// The collation that the client began with.
    pub collation: u8,
    /// Whether it is in a database. A session cannot leave a database for none.
    pub has_database: bool,
}

/// The secret and the database for a login.
#[derive(Clone, Debug)]
pub struct Login {
    /// The secret for the proof.
    pub secret: Secret,
    /// The database to begin in.
    pub database: Option<String>,
}

/// The state of a connection, independent of its session.
#[derive(Debug)]
pub struct Known {
    /// The number by which the server's KILL names it.
    pub thread_id: u32,
    /// The capabilities that both sides agreed on.
    pub capabilities: Capabilities,
    /// The database that it is in.
    pub schema: Schema,
    /// The variables that differ from those at login.
    pub settings: Settings,
    /// The variables at login that DEFAULT does not restore.
    pub base: Settings,
    /// It was told that its next transaction is read only, and may not have begun one since.
    pub may_be_read_only: bool,
    /// The shared statements prepared on it.
    pub prepared: OfConnection,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The login failed.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// Session tracking cannot be turned on, so the connection cannot be pooled.
    #[error(
        "the backend does not say what changes in a session (session tracking, which MySQL 5.7 and MariaDB 10.2 have): {0}"
    )]
    Track(#[from] AskError),
    /// The initial variables cannot be read.
    #[error("the backend does not say what a session begins with")]
    Base,
}

impl pool::Backend for Backend {
    type Kind = Kind;
    type Login = Login;
    type Known = Known;
    type Refusal = OpenError;

    async fn open(&self, kind: &Kind, login: &Login) -> Result<(Known, Stream), OpenError> {
        let way = Way {
            upstream: &self.0.upstream,
            tls: &self.0.upstream_tls,
            time_max: self.0.limits.connect_time_max,
        };
        let account = Account {
            user: kind.user.clone(),
            secret: login.secret.clone(),
            database: login.database.clone(),
        };
        let wishes = Wishes {
            capabilities: kind.capabilities | SESSION_TRACK,
            collation: kind.collation,
        };
        let Ready {
            stream,
            capabilities,
            thread_id,
        } = in_time(way, login::open(way, &account, wishes)).await?;
        let (base, schema, stream) = in_time(way, set_up(stream, capabilities)).await?;
        let known = Known {
            thread_id,
            capabilities,
            schema,
            settings: Settings::default(),
            base,
            may_be_read_only: false,
            prepared: OfConnection::default(),
        };
        Ok((known, stream))
    }

    /// A server that ends says so (1053).
    fn is_unreachable(refusal: &OpenError) -> bool {
        match refusal {
            OpenError::Login(LoginError::Connect(_) | LoginError::Left(_)) => true,
            OpenError::Login(LoginError::Refused { code, .. }) => *code == SHUTDOWN,
            OpenError::Track(error) => matches!(error, AskError::Left(_)),
            _ => false,
        }
    }

    fn names(&self, kind: &Kind, known: &Known) -> Names {
        let database = known.schema.as_deref().unwrap_or_default();
        Names {
            user: kind.user.clone(),
            database: String::from_utf8_lossy(database).into_owned(),
            process: Some(known.thread_id),
        }
    }
}

/// A backend that hangs must not keep room for connections. A login may take as long as connecting, TLS and itself.
async fn in_time<T, E: Into<OpenError>>(
    way: Way<'_>,
    opening: impl Future<Output = Result<T, E>>,
) -> Result<T, OpenError> {
    let too_slow = || LoginError::Left(io::ErrorKind::TimedOut.into()).into();
    match tokio::time::timeout(3 * way.time_max, opening).await {
        Ok(opened) => opened.map_err(Into::into),
        Err(_) => Err(too_slow()),
    }
}

async fn set_up(
    stream: Stream,
    capabilities: Capabilities,
) -> Result<(Settings, Schema, Stream), OpenError> {
    let (stream, _) = ask(stream, capabilities, TRACK).await?;
    let (stream, rows) = ask(stream, capabilities, &look_at_base()).await?;
    let (base, schema) = rows
        .into_iter()
        .next()
        .and_then(base_of)
        .ok_or(OpenError::Base)?;
    Ok((base, schema, stream))
}

/// Resets a connection and gives it back. It is closed if that fails or takes too long.
pub async fn clean(mut held: Box<Held>, stream: Stream) {
    let capabilities = held.known.capabilities;
    let cleaning = async {
        let mut link = Link::of_established(stream);
        link.write(&[RESET]).await?;
        match link.read().await?.first() {
            Some(0) => set_up(link.stream, capabilities).await,
            _ => Err(OpenError::Base),
        }
    };
    if let Ok(Ok((base, schema, stream))) = tokio::time::timeout(CLEAN_TIME_MAX, cleaning).await {
        held.known.settings = Settings::default();
        held.known.prepared = OfConnection::default();
        held.known.base = base;
        // A reset does not change the database, and the session may have turned off its tracking.
        held.known.schema = schema;
        give_back(Instant::now(), held, stream);
    }
}

/// Gives a connection back under its current kind.
pub fn give_back(now: Instant, mut held: Box<Held>, stream: Stream) {
    let has_database = held.known.schema.is_some();
    if held.kind.has_database != has_database {
        held.kind = Kind {
            has_database,
            ..(*held.kind).clone()
        }
        .into();
    }
    held.give_back_at(now, stream);
}

impl From<std::io::Error> for OpenError {
    fn from(error: std::io::Error) -> Self {
        Self::Track(error.into())
    }
}
