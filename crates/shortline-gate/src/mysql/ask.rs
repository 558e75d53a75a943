//! Runs a statement of the gate's own on a connection that no session holds, in the text protocol
//! (MySQL's source documentation, "COM_QUERY").

use std::io;

use super::capability::{Capabilities, DEPRECATE_EOF};
use super::link::Link;
use super::login::error_of;
use super::value;
use crate::relay::Stream;

const QUERY: u8 = 0x03;
const OK: u8 = 0x00;
const NULL: u8 = 0xfb;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// An EOF packet is shorter than this.
const EOF_BYTES_MAX: usize = 9;
/// The most columns in an answer.
const COLUMNS_MAX: u64 = 64;
/// The most bytes in the rows of an answer.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// The values of a row as text. NULL is None.
pub type Row = Vec<Option<Vec<u8>>>;

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The backend returned an error.
    #[error("{reason}")]
    Refused {
        /// MySQL's error number.
        code: u16,
        /// The message.
        reason: String,
    },
    /// The connection broke.
    #[error("the backend closed the connection: {0}")]
    Left(#[from] io::Error),
    /// The answer breaks the protocol or is too large.
    #[error("the backend's answer cannot be read")]
    Unread,
}

/// Runs one statement. Returns the connection and the rows.
///
/// # Errors
/// [`AskError`]. The connection is closed then.
pub async fn ask(
    stream: Stream,
    capabilities: Capabilities,
    statement: &str,
) -> Result<(Stream, Vec<Row>), AskError> {
    let mut link = Link::of_established(stream);
    let rows = ask_on(&mut link, capabilities, statement).await?;
    Ok((link.stream, rows))
}

/// The same, on a connection that is kept whatever comes of it.
///
/// # Errors
/// [`AskError`]. After anything but [`AskError::Refused`] the connection is of no more use.
pub async fn ask_on(
    link: &mut Link,
    capabilities: Capabilities,
    statement: &str,
) -> Result<Vec<Row>, AskError> {
    link.sequence = 0;
    link.write(&[&[QUERY], statement.as_bytes()].concat())
        .await?;
    let first = link.read().await?;
    let mut rows = Vec::new();
    let columns = match first.first() {
        Some(&OK) => 0,
        Some(&ERR) => return Err(refused(&first)),
        _ => value::length_encoded(&mut &first[..])
            .filter(|count| *count <= COLUMNS_MAX)
            .ok_or(AskError::Unread)?,
    };
    if columns > 0 {
        let has_end = capabilities & DEPRECATE_EOF == 0;
        for _ in 0..columns + u64::from(has_end) {
            link.read().await?;
        }
        let mut left = ANSWER_BYTES_MAX;
        loop {
            let packet = link.read().await?;
            match packet.first() {
                Some(&ERR) => return Err(refused(&packet)),
                Some(&EOF) if packet.len() < EOF_BYTES_MAX || !has_end => break,
                _ => {}
            }
            left = left.checked_sub(packet.len()).ok_or(AskError::Unread)?;
            rows.push(row(&packet, columns).ok_or(AskError::Unread)?);
        }
    }
    Ok(rows)
}

fn refused(packet: &[u8]) -> AskError {
    let (code, reason) = error_of(packet);
    AskError::Refused { code, reason }
}

/// Reads a row of the text protocol with this many columns. None if it is malformed.
pub fn row(packet: &[u8], columns: u64) -> Option<Row> {
    let rest = &mut &packet[..];
    let mut row = Row::new();
    for _ in 0..columns {
        if rest.first() == Some(&NULL) {
            value::byte(rest)?;
            row.push(None);
        } else {
            row.push(Some(value::length_encoded_bytes(rest)?.to_vec()));
        }
    }
    rest.is_empty().then_some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_row_reads_back(values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..200)), 1..5)) {
            let mut packet = Vec::new();
            for value in &values {
                match value {
                    None => packet.push(NULL),
                    Some(value) => {
                        packet.push(value.len() as u8);
                        packet.extend(value);
                    }
                }
            }
            prop_assert_eq!(row(&packet, values.len() as u64), Some(values.clone()));
            packet.push(0);
            prop_assert_eq!(row(&packet, values.len() as u64), None);
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..40), columns in 0..5_u64) {
            row(&bytes, columns);
            error_of(&bytes);
        }
    }
}
