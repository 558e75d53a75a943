//! Authenticates a client of the pool, before it has a connection. The method is SCRAM-SHA-256, or MD5 if only
//! an MD5 hash is stored.
//!
//! An unknown user goes through the same exchange as a user with a wrong password, with the same salt each time.
//! A refused client waits a second for the error, which slows down guessing.

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

/// The longest body of an answer, in bytes.
const ANSWER_BYTES_MAX: u32 = 4096;
const REFUSED_AFTER: Duration = Duration::from_secs(1);
const OK: u32 = 0;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// Why a client is refused.
#[derive(Debug, thiserror::Error)]
pub enum GreetingError {
    /// User or password is wrong.
    #[error("password authentication failed for user \"{0}\"")]
    Refused(String),
    /// It does not speak the protocol.
    #[error("during authentication: {0}")]
    Frame(#[from] FrameError),
    /// Its SCRAM message is wrong.
    #[error("during authentication: {0}")]
    Scram(#[from] ScramError),
    /// It sent another message instead of an answer.
    #[error("expected an answer about the password, got message `{}`", char::from(*.0).escape_default())]
    NoAnswer(u8),
    /// It left.
    #[error("the client left during authentication")]
    Left,
}

impl GreetingError {
    /// The error for the client. None if it has left.
    pub fn complaint(&self) -> Option<Complaint> {
        let sqlstate = match self {
            Self::Left => return None,
            Self::Refused(_) => "28P01",
            Self::Frame(_) | Self::Scram(_) | Self::NoAnswer(_) => "08P01",
        };
        Some(Complaint::new(sqlstate, self.to_string()))
    }
}

/// A client to authenticate.
pub struct Greeting<'a> {
    /// Its connection.
    pub client: &'a mut Stream,
    /// The user that it claims to be.
    pub user: &'a str,
    /// Its bytes that are not read yet.
    pub ahead: &'a mut BytesMut,
}

impl Greeting<'_> {
    /// Authenticates the client against the secret `known`. Returns the login that the gate may use for it. Without
    /// `known` the user is unknown, and `secret` determines its salt.
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
            // A password works with any method that the backend uses.
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
