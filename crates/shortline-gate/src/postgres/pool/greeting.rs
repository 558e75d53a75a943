//! Who a client of the pool is, before it has a connection: asked by SCRAM-SHA-256, or by MD5 where no
//! more is stored.
//!
//! A user that nobody knows is asked like one with another password, with the same salt each time, and
//! refused as late. Whoever is refused waits a second for it, so that guessing is slow.

use std::time::Duration;

use bytes::{Buf, BytesMut};
use subtle::ConstantTimeEq;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::frame::{FrameError, HEADER_BYTES, Header};
use super::super::messages::text;
use super::super::reply::{Complaint, message};
use super::super::scram::{self, Keys, ScramError, Secret};
use super::login::{Login, md5_of};
use super::secrets::Stored;
use crate::relay::Stream;

/// The longest answer, in bytes.
const ANSWER_BYTES_MAX: u32 = 4096;
const REFUSED_AFTER: Duration = Duration::from_secs(1);
const OK: u32 = 0;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// Why a client is not let in.
#[derive(Debug, thiserror::Error)]
pub enum GreetingError {
    /// User or password is wrong.
    #[error("password authentication failed for user \"{0}\"")]
    Refused(String),
    /// It does not speak the protocol.
    #[error("during authentication: {0}")]
    Frame(#[from] FrameError),
    /// It says something else than it was asked.
    #[error("during authentication: {0}")]
    Scram(#[from] ScramError),
    /// The same, of the protocol.
    #[error("expected an answer about the password, got message `{}`", char::from(*.0).escape_default())]
    NoAnswer(u8),
    /// It left.
    #[error("the client left during authentication")]
    Left,
}

impl GreetingError {
    /// What the client is told, unless it has left.
    pub fn complaint(&self) -> Option<Complaint> {
        let sqlstate = match self {
            Self::Left => return None,
            Self::Refused(_) => "28P01",
            Self::Frame(_) | Self::Scram(_) | Self::NoAnswer(_) => "08P01",
        };
        Some(Complaint::new(sqlstate, self.to_string()))
    }
}

/// A client that is asked.
pub struct Greeting<'a> {
    /// Its connection.
    pub client: &'a mut Stream,
    /// Who it says it is.
    pub user: &'a str,
    /// What it has said that was not read.
    pub ahead: &'a mut BytesMut,
}

impl Greeting<'_> {
    /// Asks, and says what the gate may log in with for the client, of whom this is `known`. `secret` makes the
    /// salts of those that are not there.
    ///
    /// # Errors
    /// [`GreetingError`]
    pub async fn ask(
        mut self,
        known: Option<&Stored>,
        secret: &[u8; 32],
    ) -> Result<Login, GreetingError> {
        let shown = match known {
            Some(Stored::Md5(stored)) => self.ask_md5(stored).await?,
            Some(Stored::Password(password)) => self.ask_scram(password.keys().clone()).await?,
            Some(Stored::Scram(keys)) => self.ask_scram(keys.clone()).await?,
            None => {
                let keys = Keys::of_nobody(self.user.as_bytes(), secret);
                self.ask_scram(keys).await?
            }
        };
        let login = match (shown, known) {
            // A password serves whatever the backend asks for.
            (Some(_), Some(Stored::Password(password))) => {
                Login::Scram(Secret::Password(password.text().to_owned()))
            }
            (Some(login), Some(_)) => login,
            _ => {
                tokio::time::sleep(REFUSED_AFTER).await;
                return Err(GreetingError::Refused(self.user.to_owned()));
            }
        };
        self.say(OK, b"").await?;
        Ok(login)
    }

    async fn ask_scram(&mut self, keys: Keys) -> Result<Option<Login>, GreetingError> {
        let offer = [scram::MECHANISM.as_bytes(), b"\0\0"].concat();
        self.say(SASL, &offer).await?;
        let answer = self.answer().await?;
        let (mechanism, mut rest) = text(&answer);
        if mechanism != scram::MECHANISM.as_bytes() || rest.len() < 4 {
            return Err(ScramError::Malformed.into());
        }
        rest.advance(4);
        let (server, first) = scram::Server::begin(keys, rest)?;
        self.say(SASL_CONTINUE, first.as_bytes()).await?;
        let proof = self.answer().await?;
        let (last, secret) = match server.finish(&proof) {
            Ok(finished) => finished,
            Err(ScramError::Proof) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.say(SASL_FINAL, last.as_bytes()).await?;
        Ok(Some(Login::Scram(secret)))
    }

    async fn ask_md5(&mut self, stored: &str) -> Result<Option<Login>, GreetingError> {
        let salt: [u8; 4] = scram::random();
        self.say(MD5, &salt).await?;
        let answer = self.answer().await?;
        let expected = format!("md5{}", md5_of(&[&stored.as_bytes()[3..], &salt]));
        let is_same: bool = text(&answer).0.ct_eq(expected.as_bytes()).into();
        Ok(is_same.then(|| Login::Md5(stored.to_owned())))
    }

    async fn say(&mut self, code: u32, body: &[u8]) -> Result<(), GreetingError> {
        let said = message(b'R', &[&code.to_be_bytes(), body]);
        let sent = async {
            self.client.write_all(&said).await?;
            self.client.flush().await
        };
        sent.await.map_err(|_| GreetingError::Left)
    }

    /// The client's next answer.
    async fn answer(&mut self) -> Result<BytesMut, GreetingError> {
        loop {
            if let Some(header) = Header::first_of(self.ahead, ANSWER_BYTES_MAX)? {
                if header.tag != b'p' {
                    return Err(GreetingError::NoAnswer(header.tag));
                }
                if self.ahead.len() >= header.message_bytes() {
                    let mut answer = self.ahead.split_to(header.message_bytes());
                    answer.advance(HEADER_BYTES);
                    return Ok(answer);
                }
            }
            if self.client.read_buf(self.ahead).await.unwrap_or(0) == 0 {
                return Err(GreetingError::Left);
            }
        }
    }
}
