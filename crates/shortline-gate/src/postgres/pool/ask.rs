//! Runs a Query of the pool's own on a connection that no session holds.

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::frame::{FrameError, HEADER_BYTES, Header};
use super::backend::Held;
use super::login::{Parameters, error_field, parameter};
use crate::relay::Stream;

/// The longest body of a message in an answer, in bytes.
const MESSAGE_BYTES_MAX: u32 = 65_536;

/// The result of a Query.
#[derive(Debug, Default)]
pub struct Answer {
    /// The parameters that the backend reported during the Query.
    pub parameters: Parameters,
    /// The bodies of its DataRows.
    pub rows: Vec<Vec<u8>>,
}

/// Why a Query failed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The backend returned an error.
    #[error("{reason}")]
    Refused {
        /// The SQLSTATE.
        sqlstate: String,
        /// The message.
        reason: String,
    },
    /// The connection broke.
    #[error("the backend closed the connection")]
    Left,
    /// It does not speak the protocol.
    #[error("the backend does not speak the protocol: {0}")]
    Frame(#[from] FrameError),
    /// It sent more than it was asked for.
    #[error("the backend does not speak the protocol: message `{}` unasked", char::from(*.0).escape_default())]
    Unasked(u8),
}

/// As [`ask`], on a connection that is lent for it.
///
/// # Errors
/// [`AskError`]
pub async fn ask_on(
    held: &mut Held,
    stream: &mut Stream,
    query: &[u8],
) -> Result<Answer, AskError> {
    held.known.prepared.note_query();
    ask(stream, query).await
}

/// Sends a whole Query and reads its answer up to ReadyForQuery.
///
/// # Errors
/// [`AskError`]. After any error but [`AskError::Refused`] the connection must be closed.
pub async fn ask(stream: &mut Stream, query: &[u8]) -> Result<Answer, AskError> {
    let sent = async {
        stream.write_all(query).await?;
        stream.flush().await
    };
    sent.await.map_err(|_| AskError::Left)?;
    let mut answer = Answer::default();
    let mut refused = None;
    let mut is_ready = false;
    let mut received = BytesMut::new();
    // Right behind the ReadyForQuery there may be a notice or a changed parameter, and nothing else.
    while !is_ready || !received.is_empty() {
        let whole = Header::first_of(&received, MESSAGE_BYTES_MAX)?
            .filter(|header| received.len() >= header.message_bytes());
        let Some(header) = whole else {
            if stream.read_buf(&mut received).await.unwrap_or(0) == 0 {
                return Err(refused.unwrap_or(AskError::Left));
            }
            continue;
        };
        let message = received.split_to(header.message_bytes());
        let body = &message[HEADER_BYTES..];
        match header.tag {
            b'S' => {
                let (name, value) = parameter(body);
                answer.parameters.insert(name.to_vec(), value.to_vec());
            }
            b'N' | b'A' => {}
            tag if is_ready => return Err(AskError::Unasked(tag)),
            b'D' => answer.rows.push(body.to_vec()),
            b'E' => {
                refused = Some(AskError::Refused {
                    sqlstate: error_field(body, b'C'),
                    reason: error_field(body, b'M'),
                });
            }
            b'Z' => is_ready = true,
            _ => {}
        }
    }
    refused.map_or(Ok(answer), Err)
}
