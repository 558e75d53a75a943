//! Connections to MySQL and MariaDB as the pool keeps them ([`crate::pool::connections`]): logged in, told to say
//! what changes (session tracking), and asked what they begin with.

use std::time::Duration;

use super::settings::{Schema, Settings, base_of, look_at_base};
use crate::mysql::ask::{AskError, ask};
use crate::mysql::capability::{Capabilities, SESSION_TRACK};
use crate::mysql::link::Link;
use crate::mysql::login::{self, Account, LoginError, Ready, Secret, Way, Wishes};
use crate::pool::{self, Names, connections};
use crate::relay::{RelayConfig, Stream};

/// COM_RESET_CONNECTION
const RESET: u8 = 0x1f;
/// How long a connection that somebody left may take to forget it.
const CLEAN_TIME_MAX: Duration = Duration::from_secs(10);

/// What makes a server say in its OK packets what has changed: MySQL since 5.7, MariaDB since 10.2.
const TRACK: &str = "SET SESSION session_track_schema=ON, session_track_system_variables='*', \
    session_track_state_change=ON, session_track_transaction_info='CHARACTERISTICS'";

/// Opens them.
#[derive(Debug)]
pub struct Backend(pub RelayConfig);

/// All connections of a pool.
pub type Connections = connections::Connections<Backend>;
/// One that somebody has.
pub type Held = connections::Held<Backend>;
/// Why nobody gets one.
pub type AcquireError = connections::AcquireError<OpenError>;

/// What names a connection's kind: connections of one kind can stand in for each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// Who is logged in.
    pub user: String,
    /// What the client has agreed on with the gate of what a server sends or takes.
    pub capabilities: Capabilities,
    /// The collation that the client began with.
    pub collation: u8,
    /// Whether it is in a database. Nothing leads back out of one.
    pub has_database: bool,
}

/// What the gate logs in with.
#[derive(Clone, Debug)]
pub struct Login {
    /// What proves who it is.
    pub secret: Secret,
    /// The database to begin in.
    pub database: Option<String>,
}

/// What is known of a connection, whoever has it.
#[derive(Debug)]
pub struct Known {
    /// The number by which the server's KILL names it.
    pub thread_id: u32,
    /// What both sides agreed on.
    pub capabilities: Capabilities,
    /// The database that it is in.
    pub schema: Schema,
    /// What differs on it from what it began with.
    pub settings: Settings,
    /// What it began with, of what nothing leads back to by a name.
    pub base: Settings,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nobody can log in.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// It cannot be pooled.
    #[error(
        "the backend does not say what changes in a session (session tracking, which MySQL 5.7 and MariaDB 10.2 have): {0}"
    )]
    Track(#[from] AskError),
    /// The answer makes no sense.
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
        } = login::open(way, &account, wishes).await?;
        let (base, schema, stream) = set_up(stream, capabilities).await?;
        let known = Known {
            thread_id,
            capabilities,
            schema,
            settings: Settings::default(),
            base,
        };
        Ok((known, stream))
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

/// Gives a connection back as if nobody had had it. One that does not forget in time is closed.
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
        held.known.base = base;
        // Which a reset does not change, and whoever had it may have made the server silent about.
        held.known.schema = schema;
        give_back(held, stream);
    }
}

/// Gives it back, as one of the kind that it is now.
pub fn give_back(mut held: Box<Held>, stream: Stream) {
    let has_database = held.known.schema.is_some();
    if held.kind.has_database != has_database {
        held.kind = Kind {
            has_database,
            ..(*held.kind).clone()
        }
        .into();
    }
    held.give_back(stream);
}

impl From<std::io::Error> for OpenError {
    fn from(error: std::io::Error) -> Self {
        Self::Track(error.into())
    }
}
