//! PostgreSQL's connections for the pool ([`crate::pool::connections`]).

use std::sync::Arc;

use super::super::PostgresConfig;
use super::super::cancel::process_of;
use super::login::{self, Kind, Login, LoginError, Parameters};
use super::prepared::OfConnection;
use super::settings::Settings;
use crate::pool::{self, Names, connections};
use crate::relay::{Stream, Upstream};

/// Opens connections with this configuration.
#[derive(Debug)]
pub struct Backend(pub PostgresConfig);

impl Backend {
    /// Opens them to this server.
    pub fn to(relay: &PostgresConfig, upstream: Upstream) -> Self {
        let mut config = relay.clone();
        config.relay.upstream = upstream;
        Self(config)
    }
}

/// A connection that is lent.
pub type Held = connections::Held<Backend>;
/// Why a connection could not be acquired.
pub type AcquireError = connections::AcquireError<LoginError>;

/// The state of a connection, independent of its session.
#[derive(Debug)]
pub struct Known {
    /// The key for cancel requests.
    pub key: Option<Arc<[u8]>>,
    /// The parameters that the backend reported at login.
    pub parameters: Arc<Parameters>,
    /// The parameters that now differ from those.
    pub settings: Settings,
    /// The statements prepared on it.
    pub prepared: OfConnection,
}

impl pool::Backend for Backend {
    type Kind = Kind;
    type Login = Login;
    type Known = Known;
    type Refusal = LoginError;

    async fn open(&self, kind: &Kind, login: &Login) -> Result<(Known, Stream), LoginError> {
        let ready = login::open(&self.0, kind, login).await?;
        let known = Known {
            key: ready.key,
            parameters: Arc::new(ready.parameters),
            settings: Settings::default(),
            prepared: OfConnection::default(),
        };
        Ok((known, ready.stream))
    }

    /// What says that it starts or ends (57P01 to 57P03) says it of whatever server it is.
    fn is_unreachable(refusal: &LoginError) -> bool {
        match refusal {
            LoginError::Connect(_) | LoginError::Left | LoginError::TooSlow(_) => true,
            LoginError::Refused { sqlstate, .. } => sqlstate.starts_with("57P0"),
            _ => false,
        }
    }

    fn names(&self, kind: &Kind, known: &Known) -> Names {
        Names {
            user: kind.user.clone(),
            database: kind.database.clone(),
            process: known.key.as_deref().and_then(process_of),
        }
    }
}
