//! Opens a connection of the gate's own to the backend, and logs in.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::PostgresConfig;
use super::super::backend::{BackendError, connect};
use super::super::cancel::KEY_BYTES_MAX;
use super::super::frame::{FrameError, HEADER_BYTES, Header};
use super::super::messages::text;
use super::super::reply::{Complaint, message};
use super::super::scram::{self, ScramError};
use crate::relay::Stream;

/// The longest body of a message before the first ReadyForQuery, in bytes.
const MESSAGE_BYTES_MAX: u32 = 65_536;
/// Version 3.0.
const PROTOCOL: u32 = 196_608;
/// Authentication requests.
const OK: u32 = 0;
const PASSWORD: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// The kind of a connection. Connections of one kind are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// The user that is logged in.
    pub user: String,
    /// The database.
    pub database: String,
    /// The other parameters of the client's StartupMessage, except those that the gate sets on each connection.
    pub startup: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The secret for a login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Login {
    /// A password, or the keys that a client's proof has revealed.
    Scram(scram::Secret),
    /// `md5` and the hash of password and user.
    Md5(String),
}

/// The parameters that a backend reports: values by name.
pub type Parameters = BTreeMap<Vec<u8>, Vec<u8>>;

/// Does not show the secret.
impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Scram(_) => "Scram",
            Self::Md5(_) => "Md5",
        })
    }
}

/// A connection that waits for its first query.
#[derive(Debug)]
pub struct Ready {
    /// The connection.
    pub stream: Stream,
    /// The key for cancel requests.
    pub key: Option<Arc<[u8]>>,
    /// The parameters that the backend reports.
    pub parameters: Parameters,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The backend cannot be reached, or not with TLS.
    #[error(transparent)]
    Connect(#[from] BackendError),
    /// The backend refused the login.
    #[error("the backend refuses {user}: {reason}")]
    Refused {
        /// The user.
        user: String,
        /// The SQLSTATE.
        sqlstate: String,
        /// The backend's message.
        reason: String,
    },
    /// The backend uses a method for which the gate lacks the secret.
    #[error("the backend asks {user} for {asked}, and the gate has {has}")]
    NoSecret {
        /// The user.
        user: String,
        /// The secret that the backend asks for.
        asked: &'static str,
        /// The secret that the gate has.
        has: &'static str,
    },
    /// The SCRAM exchange failed.
    #[error("login at the backend: {0}")]
    Scram(#[from] ScramError),
    /// It closed the connection.
    #[error("the backend closed the connection during login")]
    Left,
    /// It has not let the gate in within this time.
    #[error("the backend does not end the login within {} ms", .0.as_millis())]
    TooSlow(Duration),
    /// It does not speak the protocol.
    #[error("the backend does not speak the protocol: {0}")]
    Frame(#[from] FrameError),
    /// It sent a message of an unexpected type.
    #[error("the backend does not speak the protocol: message `{}`", char::from(*.0).escape_default())]
    Unexpected(u8),
}

impl LoginError {
    /// The error for the client that the connection was opened for.
    pub fn complaint(&self) -> Complaint {
        let sqlstate = match self {
            Self::Connect(_) | Self::TooSlow(_) => "57P03",
            // It starts or ends.
            Self::Refused { sqlstate, .. } if sqlstate.starts_with("57P0") => "57P03",
            Self::Refused { sqlstate, .. } if sqlstate == "53300" => "53300",
            Self::Refused { sqlstate, .. } if sqlstate == "3D000" => "3D000",
            Self::Refused { .. } | Self::NoSecret { .. } | Self::Scram(_) => "28000",
            Self::Left | Self::Frame(_) | Self::Unexpected(_) => "08006",
        };
        Complaint::new(sqlstate, self.to_string())
    }
}

/// Opens a connection and logs in. The login may take as long as connecting.
///
/// # Errors
/// [`LoginError`]
pub async fn open(
    config: &PostgresConfig,
    kind: &Kind,
    login: &Login,
) -> Result<Ready, LoginError> {
    let stream = connect(config, true).await?;
    let limit = config.relay.limits.connect_time_max;
    let logging_in = log_in(stream, kind, login);
    let in_time = tokio::time::timeout(limit, logging_in).await;
    in_time.unwrap_or(Err(LoginError::TooSlow(limit)))
}

/// Logs in on a new connection.
///
/// # Errors
/// [`LoginError`]
pub async fn log_in(stream: Stream, kind: &Kind, login: &Login) -> Result<Ready, LoginError> {
    let mut backend = Backend {
        stream,
        received: BytesMut::new(),
        kind,
    };
    backend.send(&startup(kind)).await?;
    backend.authenticate(login).await?;
    let (mut key, mut parameters) = (None, Parameters::new());
    let mut is_ready = false;
    // Right behind the ReadyForQuery there may be a notice or a changed parameter, and nothing else.
    while !is_ready || !backend.received.is_empty() {
        let received = backend.receive().await?;
        let body = &received[HEADER_BYTES..];
        match received[0] {
            b'S' => {
                let (name, value) = parameter(body);
                parameters.insert(name.to_vec(), value.to_vec());
            }
            b'N' => {}
            tag if is_ready => return Err(LoginError::Unexpected(tag)),
            b'K' if body.len() <= KEY_BYTES_MAX => key = Some(Arc::from(body)),
            b'Z' => is_ready = true,
            b'v' | b'K' => {}
            tag => return Err(LoginError::Unexpected(tag)),
        }
    }
    Ok(Ready {
        stream: backend.stream,
        key,
        parameters,
    })
}

/// The name and value of a ParameterStatus.
pub fn parameter(body: &[u8]) -> (&[u8], &[u8]) {
    let (name, rest) = text(body);
    (name, text(rest).0)
}

fn startup(kind: &Kind) -> Vec<u8> {
    let mut packet = vec![0; 4];
    packet.extend(PROTOCOL.to_be_bytes());
    let names = [("user", &kind.user), ("database", &kind.database)];
    let names = names.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let others = kind
        .startup
        .iter()
        .map(|(name, value)| (name.as_slice(), value.as_slice()));
    for text in names
        .into_iter()
        .chain(others)
        .flat_map(|(name, value)| [name, value])
    {
        packet.extend_from_slice(text);
        packet.push(0);
    }
    packet.push(0);
    let length = u32::try_from(packet.len()).expect("it is no longer than a client's packet");
    packet[..4].copy_from_slice(&length.to_be_bytes());
    packet
}

struct Backend<'a> {
    stream: Stream,
    received: BytesMut,
    kind: &'a Kind,
}

impl Backend<'_> {
    async fn authenticate(&mut self, login: &Login) -> Result<(), LoginError> {
        loop {
            let (code, body) = self.asked().await?;
            match (code, login) {
                (OK, _) => return Ok(()),
                (PASSWORD, Login::Scram(scram::Secret::Password(password))) => {
                    self.answer(&[password.as_bytes(), b"\0"]).await?;
                }
                (MD5, Login::Scram(scram::Secret::Password(password))) => {
                    let stored = md5_of(&[password.as_bytes(), self.kind.user.as_bytes()]);
                    self.answer_md5(&stored, &body).await?;
                }
                (MD5, Login::Md5(stored)) => self.answer_md5(&stored[3..], &body).await?,
                (SASL, Login::Scram(secret)) => self.scram(secret, &body).await?,
                (PASSWORD, _) => return Err(self.no_secret("a password", login)),
                (MD5, _) => return Err(self.no_secret("an MD5 hash", login)),
                (SASL, _) => return Err(self.no_secret("SCRAM-SHA-256", login)),
                _ => return Err(self.no_secret("what is neither a password nor SCRAM", login)),
            }
        }
    }

    async fn scram(&mut self, secret: &scram::Secret, offered: &[u8]) -> Result<(), LoginError> {
        let is_offered = offered
            .split(|byte| *byte == 0)
            .any(|mechanism| mechanism == scram::MECHANISM.as_bytes());
        if !is_offered {
            return Err(ScramError::Malformed.into());
        }
        let client = scram::Client::new(secret);
        let first = client.first();
        let length = u32::try_from(first.len()).expect("it is short");
        let mechanism = scram::MECHANISM.as_bytes();
        self.answer(&[mechanism, b"\0", &length.to_be_bytes(), first.as_bytes()])
            .await?;
        let (SASL_CONTINUE, answer) = self.asked().await? else {
            return Err(ScramError::Malformed.into());
        };
        let (proven, last) = client.prove(&answer)?;
        self.answer(&[last.as_bytes()]).await?;
        let (SASL_FINAL, verdict) = self.asked().await? else {
            return Err(ScramError::Malformed.into());
        };
        Ok(proven.verify(&verdict)?)
    }

    async fn answer_md5(&mut self, stored: &str, salt: &[u8]) -> Result<(), LoginError> {
        let hash = md5_of(&[stored.as_bytes(), salt]);
        self.answer(&[b"md5", hash.as_bytes(), b"\0"]).await
    }

    /// Reads the next authentication request: its code and the rest of the body.
    async fn asked(&mut self) -> Result<(u32, Vec<u8>), LoginError> {
        loop {
            let received = self.receive().await?;
            let mut body = &received[HEADER_BYTES..];
            match received[0] {
                b'R' if body.len() >= 4 => return Ok((body.get_u32(), body.to_vec())),
                // NegotiateProtocolVersion and notices.
                b'v' | b'N' => {}
                tag => return Err(LoginError::Unexpected(tag)),
            }
        }
    }

    fn no_secret(&self, asked: &'static str, login: &Login) -> LoginError {
        LoginError::NoSecret {
            user: self.kind.user.clone(),
            asked,
            has: match login {
                Login::Scram(scram::Secret::Password(_)) => "a password",
                Login::Scram(scram::Secret::ClientKey(_)) => "SCRAM keys alone",
                Login::Md5(_) => "an MD5 hash alone",
            },
        }
    }

    async fn answer(&mut self, parts: &[&[u8]]) -> Result<(), LoginError> {
        self.send(&message(b'p', parts)).await
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), LoginError> {
        let sent = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        sent.await.map_err(|_| LoginError::Left)
    }

    /// Reads the next message. An ErrorResponse becomes an error.
    async fn receive(&mut self) -> Result<BytesMut, LoginError> {
        loop {
            if let Some(header) = Header::first_of(&self.received, MESSAGE_BYTES_MAX)?
                && self.received.len() >= header.message_bytes()
            {
                let received = self.received.split_to(header.message_bytes());
                return match header.tag {
                    b'E' => Err(self.refused(&received[HEADER_BYTES..])),
                    _ => Ok(received),
                };
            }
            if self.stream.read_buf(&mut self.received).await.unwrap_or(0) == 0 {
                return Err(LoginError::Left);
            }
        }
    }

    fn refused(&self, fields: &[u8]) -> LoginError {
        LoginError::Refused {
            user: self.kind.user.clone(),
            sqlstate: error_field(fields, b'C'),
            reason: error_field(fields, b'M'),
        }
    }
}

/// A field of an ErrorResponse's body, on one line.
pub fn error_field(fields: &[u8], name: u8) -> String {
    let mut fields = fields.split(|byte| *byte == 0);
    let found = fields.find_map(|field| field.strip_prefix(&[name]));
    let found = String::from_utf8_lossy(found.unwrap_or_default());
    found.replace(char::is_control, " ")
}

/// The MD5 hash of the concatenated parts, in hexadecimal.
pub fn md5_of(parts: &[&[u8]]) -> String {
    let mut hash = Md5::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
