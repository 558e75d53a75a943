//! From the StartupMessage to the first ReadyForQuery. Every message passes unchanged, with one
//! exception.
//!
//! `SCRAM-SHA-256-PLUS` binds the password exchange to the certificate that the client sees. It
//! cannot succeed if the backend has TLS and the client sees no certificate, or another one. So it
//! is removed from the mechanisms offered. This breaks clients on TLS that support channel binding
//! (libpq with its default `channel_binding=prefer`). They report to the backend that they saw no
//! offer, and a backend on TLS must treat that as an attack (RFC 5802, 6). Such clients need
//! `channel_binding=disable`, or a gate with the backend's own certificate. With that certificate
//! the offer is kept and succeeds.

use bytes::{Buf, BytesMut};
use shortline_sched::admission::Refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::cancel::KEY_BYTES_MAX;
use super::frame::{FrameError, HEADER_BYTES, Header};
use super::messages::text;
use super::reply::{Complaint, message};
use crate::relay::Stream;

/// The longest message before the first ReadyForQuery, in bytes (PostgreSQL's own limit for
/// tickets, PG_MAX_AUTH_TOKEN_LENGTH, is 65535).
const MESSAGE_BYTES_MAX: u32 = 65_536;
/// The most bytes that are read ahead from a client that does not wait for its answers.
const AHEAD_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX as usize;
/// The authentication request that offers SASL mechanisms.
const SASL: u32 = 10;
/// The authentication request for the next SASL response.
const SASL_CONTINUE: u32 = 11;
const PLUS: &[u8] = b"SCRAM-SHA-256-PLUS";

/// A session that is ready to begin.
#[derive(Debug)]
pub struct Authenticated {
    /// The body of the backend's BackendKeyData, if it sent one.
    pub key: Option<Vec<u8>>,
    /// The bytes that the client has already sent.
    pub ahead_client: BytesMut,
    /// The bytes that the backend sent after its ReadyForQuery.
    pub ahead_server: BytesMut,
}

/// Why no session began.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticationError {
    /// The backend refused, and the client got its error.
    #[error("the backend refused the client")]
    Refused,
    /// The tenant has reached its limit of connections.
    #[error(transparent)]
    TooMany(Refusal),
    /// The client left.
    #[error("the client left during authentication")]
    ClientLeft,
    /// The backend closed the connection without an error.
    #[error("the backend closed the connection during authentication")]
    ServerLeft,
    /// The client does not speak the protocol.
    #[error("during authentication: {0}")]
    ClientFrame(FrameError),
    /// The client sent another message instead of an answer.
    #[error("expected an answer about the password, got message `{}`", char::from(*.0).escape_default())]
    NoAnswer(u8),
    /// The backend does not speak the protocol.
    #[error("the backend does not speak the protocol: {0}")]
    ServerFrame(FrameError),
}

impl AuthenticationError {
    /// The error for the client. None if the client already has it or has left.
    pub fn complaint(&self) -> Option<Complaint> {
        let sqlstate = match self {
            Self::Refused | Self::ClientLeft => return None,
            Self::TooMany(_) => "53300",
            Self::ServerLeft => "08006",
            Self::ClientFrame(_) | Self::NoAnswer(_) | Self::ServerFrame(_) => "08P01",
        };
        Some(Complaint::new(sqlstate, self.to_string()))
    }
}

/// Relays until the backend is ready. When the backend has authenticated the client, `join` decides
/// whether its tenant has room. `strikes_plus` removes `SCRAM-SHA-256-PLUS` from the offer. The body of
/// a message that the client sends ahead for the session may have `message_bytes_max` bytes.
///
/// # Errors
/// [`AuthenticationError`]
pub async fn relay(
    client: &mut Stream,
    server: &mut Stream,
    strikes_plus: bool,
    message_bytes_max: u32,
    mut join: impl FnMut() -> Result<(), Refusal>,
) -> Result<Authenticated, AuthenticationError> {
    let mut from_client = BytesMut::new();
    let mut from_server = BytesMut::new();
    let mut key = None;
    let mut is_refused = false;
    let mut is_asked = false;
    loop {
        while let Some(message) =
            take(&mut from_server).map_err(AuthenticationError::ServerFrame)?
        {
            let body = &message[HEADER_BYTES..];
            if message[0] == b'R' {
                is_asked = asks(body);
                if body == [0; 4] {
                    join().map_err(AuthenticationError::TooMany)?;
                }
            }
            match message[0] {
                b'R' if strikes_plus => say(client, &without_plus(&message)).await?,
                b'K' if body.len() <= KEY_BYTES_MAX => key = Some(body.to_vec()),
                b'E' => is_refused = true,
                _ => {}
            }
            if message[0] != b'R' || !strikes_plus {
                say(client, &message).await?;
            }
            if message[0] == b'Z' {
                flush(client).await?;
                return Ok(Authenticated {
                    key,
                    ahead_client: from_client,
                    ahead_server: from_server,
                });
            }
        }
        flush(client).await?;
        // These answer the backend. Everything else waits for the session.
        while from_client.first() == Some(&b'p') {
            let taken = take(&mut from_client).map_err(AuthenticationError::ClientFrame)?;
            let Some(message) = taken else {
                break;
            };
            send(server, &message).await?;
            is_asked = false;
        }
        check_ahead(&from_client, is_asked, message_bytes_max)?;
        tokio::select! {
            // A broken socket counts as an ended one.
            read = server.read_buf(&mut from_server) => match read.unwrap_or(0) {
                0 if is_refused => return Err(AuthenticationError::Refused),
                0 => return Err(AuthenticationError::ServerLeft),
                _ => {}
            },
            read = client.read_buf(&mut from_client), if from_client.len() < AHEAD_BYTES_MAX => {
                if read.unwrap_or(0) == 0 {
                    return Err(AuthenticationError::ClientLeft);
                }
            }
        }
    }
}

/// Checks bytes of the client that are not an answer. They are an error if an answer is due, or if
/// they cannot be a message.
fn check_ahead(
    ahead: &[u8],
    is_asked: bool,
    message_bytes_max: u32,
) -> Result<(), AuthenticationError> {
    match ahead.first() {
        None | Some(b'p') => Ok(()),
        Some(tag) if is_asked => Err(AuthenticationError::NoAnswer(*tag)),
        Some(_) => Header::first_of(ahead, message_bytes_max)
            .map(|_| ())
            .map_err(AuthenticationError::ClientFrame),
    }
}

/// Whether an authentication request with this body expects an answer: a cleartext or MD5 password,
/// the first one for GSSAPI, the first and later ones for SASL.
fn asks(mut body: &[u8]) -> bool {
    body.len() >= 4 && matches!(body.get_u32(), 3 | 5 | 7 | SASL | SASL_CONTINUE)
}

async fn say(client: &mut Stream, bytes: &[u8]) -> Result<(), AuthenticationError> {
    let said = client.write_all(bytes).await;
    said.map_err(|_| AuthenticationError::ClientLeft)
}

async fn flush(client: &mut Stream) -> Result<(), AuthenticationError> {
    let flushed = client.flush().await;
    flushed.map_err(|_| AuthenticationError::ClientLeft)
}

/// Sends a whole message to the backend.
///
/// # Errors
/// [`AuthenticationError::ServerLeft`]
pub async fn send(server: &mut Stream, bytes: &[u8]) -> Result<(), AuthenticationError> {
    let sent = async {
        server.write_all(bytes).await?;
        server.flush().await
    };
    sent.await.map_err(|_| AuthenticationError::ServerLeft)
}

/// Takes the first message from `bytes`, if it is whole.
fn take(bytes: &mut BytesMut) -> Result<Option<BytesMut>, FrameError> {
    let Some(header) = Header::first_of(bytes, MESSAGE_BYTES_MAX)? else {
        return Ok(None);
    };
    if bytes.len() < header.message_bytes() {
        return Ok(None);
    }
    Ok(Some(bytes.split_to(header.message_bytes())))
}

/// The message, with `SCRAM-SHA-256-PLUS` removed if it offers SASL mechanisms.
pub fn without_plus(whole: &[u8]) -> Vec<u8> {
    let mut body = whole.get(HEADER_BYTES..).unwrap_or_default();
    let offered = body;
    if body.len() < 4 || body.get_u32() != SASL {
        return whole.to_vec();
    }
    let mut kept = Vec::with_capacity(offered.len());
    kept.extend_from_slice(&offered[..4]);
    loop {
        let (mechanism, rest) = text(body);
        if mechanism.is_empty() {
            break;
        }
        if mechanism != PLUS {
            kept.extend_from_slice(mechanism);
            kept.push(0);
        }
        body = rest;
    }
    kept.push(0);
    message(whole[0], &[&kept])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plus_is_struck_and_nothing_else() {
        let offer = |mechanisms: &[u8]| message(b'R', &[&[0, 0, 0, 10], mechanisms, b"\0"]);
        let both = offer(b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0");
        assert_eq!(without_plus(&both), offer(b"SCRAM-SHA-256\0"));
        let one = offer(b"SCRAM-SHA-256\0");
        assert_eq!(without_plus(&one), one);
        let md5 = message(b'R', &[&[0, 0, 0, 5], b"salt"]);
        assert_eq!(without_plus(&md5), md5);
    }

    proptest! {
        #[test]
        fn any_message_stays_a_message(body in prop::collection::vec(any::<u8>(), 0..80), is_sasl: bool) {
            let code: &[u8] = if is_sasl { &[0, 0, 0, 10] } else { &[] };
            let struck = without_plus(&message(b'R', &[code, &body]));
            let header = Header::first_of(&struck, MESSAGE_BYTES_MAX);
            prop_assert_eq!(header.ok().flatten().map(Header::message_bytes), Some(struck.len()));
        }
    }
}
