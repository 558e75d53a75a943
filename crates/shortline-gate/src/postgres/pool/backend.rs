//! PostgreSQL's connections as the pool keeps them ([`crate::pool::connections`]).

use std::sync::Arc;

use super::super::PostgresConfig;
use super::super::connection::process_of;
use super::login::{self, Kind, Login, LoginError, Parameters};
use super::prepared::OfConnection;
use super::settings::Settings;
use crate::pool::{self, Names, connections};
use crate::relay::Stream;

/// Opens them.
#[derive(Debug)]
pub struct Backend(pub PostgresConfig);

/// All connections of a pool.
pub type Connections = connections::Connections<Backend>;
/// One that somebody has.
pub type Held = connections::Held<Backend>;
/// Why nobody gets one.
pub type AcquireError = connections::AcquireError<LoginError>;

/// What is known of a connection, whoever has it.
#[derive(Debug)]
pub struct Known {
    /// What a cancel request must name.
    pub key: Option<Arc<[u8]>>,
    /// What the backend reported as it was opened.
    pub parameters: Arc<Parameters>,
    /// What differs on it from what it began with.
    pub settings: Settings,
    /// The statements that are prepared on it.
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

    fn names(&self, kind: &Kind, known: &Known) -> Names {
        Names {
            user: kind.user.clone(),
            database: kind.database.clone(),
            process: known.key.as_deref().and_then(process_of),
        }
    }
}
