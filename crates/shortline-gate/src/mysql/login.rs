//! Opens a connection of the gate's own to the backend, and logs in (MySQL's source documentation, "Connection
//! Phase").
//!
//! The gate proves a password by `mysql_native_password` or `caching_sha2_password` ([`super::scramble`]). With
//! the latter, a server that has not cached the user asks for the password itself. The gate sends it over TLS
//! only. Without TLS it would be encrypted under the RSA key that the server sends, or that an attacker between
//! them sends.

use std::fmt;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::capability::{
    CONNECT_WITH_DB, Capabilities, DEPRECATE_EOF, MULTI_RESULTS, MYSQL, PLUGIN_AUTH,
    PLUGIN_AUTH_LENENC, PROTOCOL_41, SECURE_CONNECTION, SSL, TRANSACTIONS,
};
use super::greeting::{Greeting, GreetingError, SSL_REQUEST_BYTES};
use super::link::Link;
use super::scramble::{Method, NONCE_BYTES, SHA1_BYTES, native_proof};
use super::value;
use crate::relay::tls::UpstreamTls;
use crate::relay::{ConnectError, Stream, Upstream};

const OK: u8 = 0x00;
const MORE_DATA: u8 = 0x01;
const SWITCH: u8 = 0xfe;
const ERR: u8 = 0xff;
/// A server's answers to a proof by `caching_sha2_password`.
const PROOF_IS_GOOD: u8 = 3;
const PASSWORD_WANTED: u8 = 4;
/// `utf8mb4_general_ci`, which every server has.
const COLLATION: u8 = 45;
const PACKET_BYTES_MAX: u32 = 1 << 24;

/// The capabilities that the gate needs for commands of its own.
pub const CAPABILITIES: Capabilities = MYSQL
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | MULTI_RESULTS
    | PLUGIN_AUTH
    | PLUGIN_AUTH_LENENC;

/// Where to log in, and how to get there.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// The backend.
    pub upstream: &'a Upstream,
    /// TLS to the backend. It is used if this allows it.
    pub tls: &'a UpstreamTls,
    /// The time limit for connecting, and again for the TLS handshake.
    pub time_max: Duration,
}

/// The user to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub user: String,
    /// The secret for the proof.
    pub secret: Secret,
    /// The database to begin in.
    pub database: Option<String>,
}

/// A secret that can make a proof.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Secret {
    /// The password itself. Empty if there is none.
    Password(String),
    /// SHA1(password), which a client's proof has revealed.
    NativeKey([u8; SHA1_BYTES]),
}

/// Does not show the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Password(_) => "Password",
            Self::NativeKey(_) => "NativeKey",
        })
    }
}

/// The properties of the new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// The capabilities apart from those that a login needs ([`CAPABILITIES`]).
    pub capabilities: Capabilities,
    /// The number of a collation.
    pub collation: u8,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            capabilities: DEPRECATE_EOF,
            collation: COLLATION,
        }
    }
}

/// A connection that waits for its first command.
#[derive(Debug)]
pub struct Ready {
    /// The connection.
    pub stream: Stream,
    /// The capabilities that both sides agreed on.
    pub capabilities: Capabilities,
    /// The number by which KILL names the connection.
    pub thread_id: u32,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The backend cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// TLS is required, and the backend has none.
    #[error("the backend offers no TLS")]
    NoTls,
    /// The handshake failed, or the certificate was not accepted.
    #[error("TLS with the backend: {0}")]
    Tls(io::Error),
    /// The backend refused the login.
    #[error("the backend refuses {user}: {reason}")]
    Refused {
        /// The user.
        user: String,
        /// MySQL's error number.
        code: u16,
        /// The backend's message.
        reason: String,
    },
    /// The backend uses a method that the gate does not have.
    #[error(
        "the backend asks {user} for {method}, and the gate knows mysql_native_password and caching_sha2_password: \
         alter user {user} identified with one of these"
    )]
    Method {
        /// The user.
        user: String,
        /// The plugin's name.
        method: String,
    },
    /// The backend asks for the password of this user without TLS.
    #[error(
        "the backend asks {0} for the password itself, which the gate sends over TLS only: give --upstream-tls \
         require, or let {0} log in by another way first, after which caching_sha2_password asks for a proof"
    )]
    InTheClear(String),
    /// The backend asks for a proof of this user that a hash cannot make.
    #[error(
        "the backend asks {0} for caching_sha2_password, which needs the password, and the gate has a hash of \
         mysql_native_password alone"
    )]
    NoPassword(String),
    /// The connection broke.
    #[error("the backend closed the connection during login: {0}")]
    Left(#[from] io::Error),
    /// It does not speak the protocol.
    #[error("{0}")]
    Greeting(#[from] GreetingError),
    /// It sent a packet with an unexpected first byte.
    #[error("the backend does not speak the protocol: packet {0:#04x} during login")]
    Unexpected(u8),
}

/// Opens a connection and logs in.
///
/// # Errors
/// [`LoginError`]
pub async fn open(way: Way<'_>, account: &Account, wishes: Wishes) -> Result<Ready, LoginError> {
    let mut link = Link::of_server(way.upstream.connect(way.time_max).await?);
    let mut login = Login {
        account,
        nonce: [0; NONCE_BYTES],
    };
    let payload = link.read().await?;
    if payload.first() == Some(&ERR) {
        return Err(login.refused(&payload));
    }
    let greeting = Greeting::parse(payload)?;
    let mut capabilities =
        greeting.capabilities() & (CAPABILITIES | wishes.capabilities) | PROTOCOL_41 | MYSQL;
    if account.database.is_some() {
        capabilities |= CONNECT_WITH_DB;
    }
    if let Some(connector) = way.tls.connector(true) {
        if greeting.capabilities() & SSL != 0 {
            capabilities |= SSL;
            link.write(&head(capabilities, wishes.collation)).await?;
            if let Stream::Plain(socket) = link.stream {
                let secured = connector.connect(socket, &way.upstream.host);
                let secured = tokio::time::timeout(way.time_max, secured).await;
                let secured = secured.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                link.stream = secured.map_err(LoginError::Tls)?;
            }
        } else if !way.tls.is_optional() {
            return Err(LoginError::NoTls);
        }
    }
    login.nonce = greeting.nonce();
    let thread_id = greeting.thread_id();
    // A server with an unknown default method then switches to the user's method.
    let method = Method::of(greeting.method()).unwrap_or(Method::Native);
    let agreed = Wishes {
        capabilities,
        ..wishes
    };
    link.write(&login.answer(agreed, method)?).await?;
    login.authenticate(&mut link, method).await?;
    Ok(Ready {
        stream: link.stream,
        capabilities,
        thread_id,
    })
}

/// The first part of an answer, which is also the `SSLRequest`.
fn head(capabilities: Capabilities, collation: u8) -> Vec<u8> {
    let mut payload = capabilities.to_le_bytes()[..4].to_vec();
    payload.extend(PACKET_BYTES_MAX.to_le_bytes());
    payload.push(collation);
    payload.resize(SSL_REQUEST_BYTES, 0);
    payload
}

struct Login<'a> {
    account: &'a Account,
    nonce: [u8; NONCE_BYTES],
}

impl Login<'_> {
    fn answer(&self, wishes: Wishes, method: Method) -> Result<Vec<u8>, LoginError> {
        let mut payload = head(wishes.capabilities, wishes.collation);
        let proof = self.proof(method)?;
        payload.extend_from_slice(self.account.user.as_bytes());
        payload.push(0);
        payload.push(proof.len() as u8);
        payload.extend(proof);
        if let Some(database) = &self.account.database {
            payload.extend_from_slice(database.as_bytes());
            payload.push(0);
        }
        payload.extend_from_slice(method.name().as_bytes());
        payload.push(0);
        Ok(payload)
    }

    fn proof(&self, method: Method) -> Result<Vec<u8>, LoginError> {
        match (&self.account.secret, method) {
            (Secret::Password(password), _) => Ok(method.proof(password.as_bytes(), &self.nonce)),
            (Secret::NativeKey(key), Method::Native) => Ok(native_proof(key, &self.nonce).to_vec()),
            (Secret::NativeKey(_), Method::CachingSha2) => {
                Err(LoginError::NoPassword(self.account.user.clone()))
            }
        }
    }

    /// Answers the server's requests, up to its verdict.
    async fn authenticate(
        &mut self,
        link: &mut Link,
        mut method: Method,
    ) -> Result<(), LoginError> {
        loop {
            let payload = link.read().await?;
            match payload.split_first() {
                Some((&OK, _)) => return Ok(()),
                Some((&ERR, _)) => return Err(self.refused(&payload)),
                Some((&SWITCH, asked)) => {
                    method = self.switch(asked)?;
                    link.write(&self.proof(method)?).await?;
                }
                Some((&MORE_DATA, [PROOF_IS_GOOD])) => {}
                Some((&MORE_DATA, [PASSWORD_WANTED])) if method == Method::CachingSha2 => {
                    if !link.stream.is_secure() {
                        return Err(LoginError::InTheClear(self.account.user.clone()));
                    }
                    let Secret::Password(password) = &self.account.secret else {
                        return Err(LoginError::NoPassword(self.account.user.clone()));
                    };
                    link.write(&[password.as_bytes(), b"\0"].concat()).await?;
                }
                other => return Err(LoginError::Unexpected(other.map_or(0, |(first, _)| *first))),
            }
        }
    }

    /// Reads a switch to another method, which has a new nonce.
    fn switch(&mut self, asked: &[u8]) -> Result<Method, LoginError> {
        let rest = &mut &asked[..];
        let name = value::text(rest).unwrap_or(asked);
        let unknown = || LoginError::Method {
            user: self.account.user.clone(),
            method: one_line(name),
        };
        let method = Method::of(name).ok_or_else(unknown)?;
        self.nonce = *rest.first_chunk().ok_or(LoginError::Unexpected(SWITCH))?;
        Ok(method)
    }

    fn refused(&self, packet: &[u8]) -> LoginError {
        let (code, reason) = error_of(packet);
        LoginError::Refused {
            user: self.account.user.clone(),
            code,
            reason,
        }
    }
}

/// The code of an ERR packet, and its text on one line.
pub fn error_of(packet: &[u8]) -> (u16, String) {
    let code = packet
        .get(1..3)
        .map_or(0, |code| u16::from_le_bytes([code[0], code[1]]));
    let text = packet.get(3..).unwrap_or_default();
    // A SQLSTATE precedes the text once the capabilities are agreed on.
    let text = match text.strip_prefix(b"#") {
        Some(rest) => rest.get(5..).unwrap_or_default(),
        None => text,
    };
    (code, one_line(text))
}

fn one_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(char::is_control, " ")
}
