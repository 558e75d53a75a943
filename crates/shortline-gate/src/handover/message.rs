//! What the two processes of a handover say to each other.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::classify::ClientNames;
use crate::mysql::login::Secret;
use crate::postgres::pool::Login;

/// The version of all this. Another one is refused, and the old process goes on.
pub const VERSION: u32 = 2;

/// A message. Which process says it is in the text of [`super`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// The new process begins.
    Hello {
        /// Its [`VERSION`].
        version: u32,
        /// What its backend speaks.
        kind: String,
    },
    /// What the old process listens on; a file for each.
    Sockets {
        /// In the order of the files.
        sockets: Vec<Listening>,
        /// The connections of its pool, if it has one.
        pool_size: Option<usize>,
    },
    /// The new process accepts clients.
    Ready,
    /// So many connections to the backend the new process may have from now on.
    Places(usize),
    /// A session at rest, with its client's socket as the file.
    Session(Box<SessionState>),
    /// The new process can go on with it.
    Taken,
    /// It cannot, or the old one hands nothing over, for this reason.
    Refused(String),
    /// The session is the new process's.
    Go,
    /// A client wants the statement of the session with this key to be cancelled.
    Cancel(Blob),
}

/// A listening socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Listening {
    /// For clients, by TCP.
    Tcp,
    /// The same, but no option names it: whoever started the process opened it.
    Unnamed,
    /// For clients, at this path.
    Unix(PathBuf),
    /// For the admin's clients.
    Admin,
    /// For the next handover.
    Handover,
}

/// What another process needs to go on with a session that rests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// Where the client connects from.
    pub peer: Option<SocketAddr>,
    /// Where it connects to.
    pub local: Option<SocketAddr>,
    /// Its application's name as it connected.
    pub application_name: Option<String>,
    /// Its user.
    pub user: Option<String>,
    /// Its database.
    pub database: Option<String>,
    /// What it has said that nobody has dealt with.
    pub ahead: Blob,
    /// What depends on the protocol.
    pub protocol: ProtocolState,
}

impl SessionState {
    /// What statements are classified by beside their text.
    pub fn names(&self) -> ClientNames {
        let name = |name: &Option<String>| name.as_deref().map(Into::into);
        ClientNames {
            address: self.peer.map(|address| address.ip()),
            application_name: name(&self.application_name),
            user: name(&self.user),
            database: name(&self.database),
        }
    }
}

#[cfg(test)]
impl SessionState {
    /// That of a client without settings.
    pub fn example() -> Self {
        Self {
            peer: None,
            local: None,
            application_name: None,
            user: Some("user".to_owned()),
            database: Some("database".to_owned()),
            ahead: Blob::default(),
            protocol: ProtocolState::Postgres(PostgresState {
                user: "user".to_owned(),
                database: "database".to_owned(),
                startup: Vec::new(),
                login: Login::Md5(String::new()),
                key: Blob(vec![7; 8]),
                settings: Vec::new(),
                began_with: Vec::new(),
                unnamed: None,
                named: Vec::new(),
            }),
        }
    }
}

/// What depends on the protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ProtocolState {
    /// A pooled session of PostgreSQL.
    Postgres(PostgresState),
    /// One of MySQL.
    Mysql(MysqlState),
}

/// A pooled session of PostgreSQL at rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PostgresState {
    /// Who is logged in at the backend.
    pub user: String,
    /// Where.
    pub database: String,
    /// What else its connections begin with.
    pub startup: Vec<(Blob, Blob)>,
    /// What they are opened with.
    pub login: Login,
    /// The key that the client was given for cancel requests.
    pub key: Blob,
    /// The parameters that it has set.
    pub settings: Vec<(Blob, Blob)>,
    /// Those that it began with.
    pub began_with: Vec<(Blob, Blob)>,
    /// Its unnamed prepared statement: text and types as in a Parse.
    pub unnamed: Option<Blob>,
    /// Those with names.
    pub named: Vec<(Blob, Blob)>,
}

/// A variable that is set, by its name. None is NULL.
pub type Variable = (String, Option<String>);

/// A pooled session of MySQL at rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MysqlState {
    /// Who is logged in at the server.
    pub user: String,
    /// What its connections have agreed on.
    pub capabilities: u64,
    /// The collation that its connections begin with.
    pub collation: u8,
    /// What they are opened with.
    pub secret: Secret,
    /// The number that the client was given for KILL.
    pub thread_id: u32,
    /// The database that it is in.
    pub database: Option<Blob>,
    /// The variables that it has set.
    pub settings: Vec<Variable>,
    /// Its status flags that last.
    pub flags: u16,
    /// Its prepared statements.
    pub prepared: Vec<PreparedState>,
    /// The number of the last one that it prepared.
    pub last_prepared: Option<u32>,
}

/// A prepared statement of MySQL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreparedState {
    /// The client's number for it.
    pub number: u32,
    /// Its text.
    pub text: Blob,
    /// The database in which it was prepared.
    pub database: Option<Blob>,
    /// The variables that its meaning depends on.
    pub settings: Vec<Variable>,
    /// The number of its parameters.
    pub parameters: u16,
    /// Their types at the last execution.
    pub types: Option<Blob>,
    /// The error that became of its long data.
    pub failed: Option<Blob>,
}

/// Bytes; base64 in JSON.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Blob(pub Vec<u8>);

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

/// They may be a client's secret.
impl fmt::Debug for Blob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD_NO_PAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD_NO_PAD.decode(text);
        bytes.map(Self).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;
    use crate::handover::wire::{frame, take_frame};

    fn blob() -> impl Strategy<Value = Blob> {
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Blob)
    }

    fn pairs() -> impl Strategy<Value = Vec<(Blob, Blob)>> {
        prop::collection::vec((blob(), blob()), 0..4)
    }

    fn variables() -> impl Strategy<Value = Vec<Variable>> {
        prop::collection::vec((".{0,8}", prop::option::of(".{0,8}")), 0..4)
    }

    prop_compose! {
        fn prepared()(
            (number, text, parameters) in (any::<u32>(), blob(), any::<u16>()),
            (database, types, failed) in (prop::option::of(blob()), prop::option::of(blob()), prop::option::of(blob())),
            settings in variables(),
        ) -> PreparedState {
            PreparedState { number, text, database, settings, parameters, types, failed }
        }
    }

    prop_compose! {
        fn of_mysql()(
            (user, collation, capabilities, flags) in (".{0,8}", any::<u8>(), any::<u64>(), any::<u16>()),
            (thread_id, last_prepared) in (any::<u32>(), prop::option::of(any::<u32>())),
            (database, settings) in (prop::option::of(blob()), variables()),
            prepared in prop::collection::vec(prepared(), 0..3),
            secret in prop_oneof![
                ".{0,8}".prop_map(Secret::Password),
                any::<[u8; 20]>().prop_map(Secret::NativeKey),
            ],
        ) -> ProtocolState {
            ProtocolState::Mysql(MysqlState {
                user,
                capabilities,
                collation,
                secret,
                thread_id,
                database,
                settings,
                flags,
                prepared,
                last_prepared,
            })
        }
    }

    prop_compose! {
        fn state()(
            (user, database, ahead) in (".{0,8}", ".{0,8}", blob()),
            (startup, settings, began_with, named) in (pairs(), pairs(), pairs(), pairs()),
            (key, unnamed) in (blob(), prop::option::of(blob())),
            peer in prop::option::of(any::<(std::net::IpAddr, u16)>()),
            application_name in prop::option::of(".{0,8}"),
            password in ".{0,8}",
        ) -> SessionState {
            SessionState {
                peer: peer.map(SocketAddr::from),
                local: None,
                application_name,
                user: Some(user.clone()),
                database: Some(database.clone()),
                ahead,
                protocol: ProtocolState::Postgres(PostgresState {
                    user,
                    database,
                    startup,
                    login: Login::Md5(password),
                    key,
                    settings,
                    began_with,
                    unnamed,
                    named,
                }),
            }
        }
    }

    proptest! {
        #[test]
        fn a_session_arrives_as_it_left(mut state in state(), of_mysql in prop::option::of(of_mysql())) {
            if let Some(of_mysql) = of_mysql {
                state.protocol = of_mysql;
            }
            let message = Message::Session(Box::new(state));
            let mut frame = frame(&message).unwrap();
            frame.push(7);
            prop_assert_eq!(take_frame(&mut frame).unwrap(), Some(message));
            prop_assert_eq!(frame, [7]);
        }
    }
}
