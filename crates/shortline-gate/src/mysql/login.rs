//! A connection to the backend of the gate's own: opened, logged in, and ready for its first command (MySQL's
//! source documentation, "Connection Phase").
//!
//! The gate proves a password by `mysql_native_password` or `caching_sha2_password` ([`super::scramble`]). Where a
//! server of the latter has not seen the user for a while it wants the password itself. The gate sends that
//! over TLS only: without TLS it would have to be encrypted under whatever RSA key the server, or
//! somebody between, sends.

use std::fmt;
use std::io;
use std::time::Duration;

use super::capability::{
    CONNECT_WITH_DB, Capabilities, DEPRECATE_EOF, MULTI_RESULTS, MYSQL, PLUGIN_AUTH,
    PLUGIN_AUTH_LENENC, PROTOCOL_41, SECURE_CONNECTION, SSL, TRANSACTIONS,
};
use super::greeting::{Greeting, GreetingError, SSL_REQUEST_BYTES};
use super::link::Link;
use super::scramble::{Method, NONCE_BYTES};
use super::value;
use crate::relay::tls::UpstreamTls;
use crate::relay::{ConnectError, Stream, Upstream};

const OK: u8 = 0x00;
const MORE_DATA: u8 = 0x01;
const SWITCH: u8 = 0xfe;
const ERR: u8 = 0xff;
/// What a server of `caching_sha2_password` says of a proof.
const PROOF_IS_GOOD: u8 = 3;
const PASSWORD_WANTED: u8 = 4;
/// `utf8mb4_general_ci`, which every server knows.
const CHARACTER_SET: u8 = 45;
const PACKET_BYTES_MAX: u32 = 1 << 24;

/// What the gate needs of a server for commands of its own.
pub const CAPABILITIES: Capabilities = MYSQL
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | MULTI_RESULTS
    | PLUGIN_AUTH
    | PLUGIN_AUTH_LENENC
    | DEPRECATE_EOF;

/// Where to log in, and how to get there.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// The backend.
    pub upstream: &'a Upstream,
    /// TLS to it: there is, wherever this allows it.
    pub tls: &'a UpstreamTls,
    /// To connect, and for TLS.
    pub time_max: Duration,
}

/// Whom to log in.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub user: String,
    /// Empty where there is none.
    pub password: String,
    /// The database to begin in.
    pub database: Option<String>,
}

/// Nobody's secret.
impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Account({})", self.user)
    }
}

/// A connection that waits for its first command.
#[derive(Debug)]
pub struct Ready {
    /// The connection.
    pub stream: Stream,
    /// What both sides agreed on.
    pub capabilities: Capabilities,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// There is none at all.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It was to have TLS.
    #[error("the backend offers no TLS")]
    NoTls,
    /// The handshake failed, or its certificate is not what was wanted.
    #[error("TLS with the backend: {0}")]
    Tls(io::Error),
    /// The backend said no.
    #[error("the backend refuses {user}: {reason}")]
    Refused {
        /// Whom.
        user: String,
        /// The code it gave.
        code: u16,
        /// What it said.
        reason: String,
    },
    /// The backend wants another proof than the gate knows of.
    #[error(
        "the backend asks {user} for {method}, and the gate knows mysql_native_password and caching_sha2_password: \
         alter user {user} identified with one of these"
    )]
    Method {
        /// Of whom.
        user: String,
        /// The plugin's name.
        method: String,
    },
    /// The backend wants a password in the clear.
    #[error(
        "the backend asks {0} for the password itself, which the gate sends over TLS only: give --upstream-tls \
         require, or let {0} log in by another way first, after which caching_sha2_password asks for a proof"
    )]
    InTheClear(String),
    /// The connection broke.
    #[error("the backend closed the connection during login: {0}")]
    Left(#[from] io::Error),
    /// It does not speak the protocol.
    #[error("{0}")]
    Greeting(#[from] GreetingError),
    /// It said what nobody can follow.
    #[error("the backend does not speak the protocol: packet {0:#04x} during login")]
    Unexpected(u8),
}

/// Opens a connection and logs in.
///
/// # Errors
/// [`LoginError`]
pub async fn open(way: Way<'_>, account: &Account) -> Result<Ready, LoginError> {
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
    let mut capabilities = greeting.capabilities() & CAPABILITIES | PROTOCOL_41 | MYSQL;
    if account.database.is_some() {
        capabilities |= CONNECT_WITH_DB;
    }
    if let Some(connector) = way.tls.connector(true) {
        if greeting.capabilities() & SSL != 0 {
            capabilities |= SSL;
            link.write(&head(capabilities)).await?;
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
    // A server whose own method is unknown here switches to that of the user.
    let method = Method::of(greeting.method()).unwrap_or(Method::Native);
    link.write(&login.answer(capabilities, method)).await?;
    login.authenticate(&mut link, method).await?;
    Ok(Ready {
        stream: link.stream,
        capabilities,
    })
}

/// The first part of an answer, which is an `SSLRequest` too.
fn head(capabilities: Capabilities) -> Vec<u8> {
    let mut payload = capabilities.to_le_bytes()[..4].to_vec();
    payload.extend(PACKET_BYTES_MAX.to_le_bytes());
    payload.push(CHARACTER_SET);
    payload.resize(SSL_REQUEST_BYTES, 0);
    payload
}

struct Login<'a> {
    account: &'a Account,
    nonce: [u8; NONCE_BYTES],
}

impl Login<'_> {
    fn answer(&self, capabilities: Capabilities, method: Method) -> Vec<u8> {
        let mut payload = head(capabilities);
        let proof = self.proof(method);
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
        payload
    }

    fn proof(&self, method: Method) -> Vec<u8> {
        method.proof(self.account.password.as_bytes(), &self.nonce)
    }

    /// Answers what the server asks, up to its verdict.
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
                    link.write(&self.proof(method)).await?;
                }
                Some((&MORE_DATA, [PROOF_IS_GOOD])) => {}
                Some((&MORE_DATA, [PASSWORD_WANTED])) if method == Method::CachingSha2 => {
                    if !link.stream.is_secure() {
                        return Err(LoginError::InTheClear(self.account.user.clone()));
                    }
                    link.write(&[self.account.password.as_bytes(), b"\0"].concat())
                        .await?;
                }
                other => return Err(LoginError::Unexpected(other.map_or(0, |(first, _)| *first))),
            }
        }
    }

    /// The method that the server wants instead, by a nonce of its own.
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

/// The code and the text of an ERR packet, on one line.
pub fn error_of(packet: &[u8]) -> (u16, String) {
    let code = packet
        .get(1..3)
        .map_or(0, |code| u16::from_le_bytes([code[0], code[1]]));
    let text = packet.get(3..).unwrap_or_default();
    // A SQLSTATE stands before it, once that is agreed on.
    let text = match text.strip_prefix(b"#") {
        Some(rest) => rest.get(5..).unwrap_or_default(),
        None => text,
    };
    (code, one_line(text))
}

fn one_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(char::is_control, " ")
}
