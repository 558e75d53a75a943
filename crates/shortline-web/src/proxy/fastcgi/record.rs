//! Records of FastCGI 1.0 (its specification, 3.3 to 5.6), without I/O.
//!
//! | bytes | of a record's head |
//! |---|---|
//! | 1 | version, 1 |
//! | 1 | type |
//! | 2 | number of the request; ours is always 1, because PHP has one request a connection |
//! | 2 | length of the content |
//! | 1 | length of the padding |
//! | 1 | nothing |
//!
//! What a backend sends is passed on as it comes, without waiting for the end of a record. So the decoder holds a head at most.

use bytes::{BufMut, Bytes, BytesMut};

/// The number of our only request.
const REQUEST: u16 = 1;
const VERSION: u8 = 1;
/// The length of a record's head, and of the contents of the first and the last record of a request.
const HEAD_BYTES: usize = 8;
/// The role of a program that answers requests (6.2).
const RESPONDER: u16 = 1;
/// The flag by which the backend keeps the connection open (5.1).
const KEEP_CONNECTION: u8 = 1;
/// The most content of a record: as much as its length can say, in eighths as the specification recommends.
pub const CONTENT_BYTES_MAX: usize = 65_528;

const BEGIN: u8 = 1;
const END: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// What a backend has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A piece of the response.
    Output(Bytes),
    /// A piece of what the program complains about.
    Complaint(Bytes),
    /// The end of the request.
    End(Ending),
}

/// How a backend ended the request (5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is done.
    Complete,
    /// It takes one request a connection, and says that it has one.
    CannotMultiplex,
    /// It has too much to do.
    Overloaded,
    /// It knows no such role, or something else that is not specified.
    Refused(u8),
}

/// What is no record of our request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Another version.
    #[error("a record of FastCGI version {0}: only version 1 is known")]
    Version(u8),
    /// Another request.
    #[error("a record for request {0}: only request 1 was sent")]
    Request(u16),
    /// A type that no backend sends.
    #[error("a record of type {0}: want output, errors or the end")]
    Type(u8),
    /// An end of another length.
    #[error("a record that ends the request in {0} bytes: want 8")]
    End(u16),
}

/// Reads records; see the module's text.
#[derive(Debug, Default)]
pub struct Decoder(Awaited);

/// What comes next.
#[derive(Debug, Default)]
enum Awaited {
    #[default]
    Head,
    Content {
        is_complaint: bool,
        left: u16,
        padding: u8,
    },
    End {
        padding: u8,
    },
    Padding(u8),
}

impl Decoder {
    /// The next thing that the backend says. `None`: more bytes are needed.
    ///
    /// # Errors
    /// [`RecordError`]; nothing after it can be understood.
    pub fn next(&mut self, received: &mut BytesMut) -> Result<Option<Event>, RecordError> {
        loop {
            match &mut self.0 {
                Awaited::Head => {
                    if received.len() < HEAD_BYTES {
                        return Ok(None);
                    }
                    self.0 = awaited(&received.split_to(HEAD_BYTES))?;
                }
                Awaited::Content {
                    left: 0, padding, ..
                } => self.0 = Awaited::Padding(*padding),
                Awaited::Content {
                    is_complaint, left, ..
                } => {
                    if received.is_empty() {
                        return Ok(None);
                    }
                    let piece = received.len().min(usize::from(*left));
                    *left -= piece as u16;
                    let piece = received.split_to(piece).freeze();
                    return Ok(Some(match is_complaint {
                        true => Event::Complaint(piece),
                        false => Event::Output(piece),
                    }));
                }
                Awaited::End { padding } => {
                    if received.len() < HEAD_BYTES {
                        return Ok(None);
                    }
                    self.0 = Awaited::Padding(*padding);
                    let content = received.split_to(HEAD_BYTES);
                    return Ok(Some(Event::End(ending(content[4]))));
                }
                Awaited::Padding(0) => self.0 = Awaited::Head,
                Awaited::Padding(left) => {
                    if received.is_empty() {
                        return Ok(None);
                    }
                    let piece = received.len().min(usize::from(*left));
                    *left -= piece as u8;
                    drop(received.split_to(piece));
                }
            }
        }
    }

    /// Whether nothing of a record is still to come.
    pub fn is_between_records(&self) -> bool {
        matches!(self.0, Awaited::Head | Awaited::Padding(0))
    }
}

fn awaited(head: &[u8]) -> Result<Awaited, RecordError> {
    let (version, kind, padding) = (head[0], head[1], head[6]);
    let request = u16::from_be_bytes([head[2], head[3]]);
    let length = u16::from_be_bytes([head[4], head[5]]);
    if version != VERSION {
        return Err(RecordError::Version(version));
    }
    if ![END, STDOUT, STDERR].contains(&kind) {
        return Err(RecordError::Type(kind));
    }
    if request != REQUEST {
        return Err(RecordError::Request(request));
    }
    match kind {
        END if usize::from(length) == HEAD_BYTES => Ok(Awaited::End { padding }),
        END => Err(RecordError::End(length)),
        _ => Ok(Awaited::Content {
            is_complaint: kind == STDERR,
            left: length,
            padding,
        }),
    }
}

fn ending(status: u8) -> Ending {
    match status {
        0 => Ending::Complete,
        1 => Ending::CannotMultiplex,
        2 => Ending::Overloaded,
        other => Ending::Refused(other),
    }
}

/// The records that begin a request with these variables ([`pair`]).
pub fn begin(variables: &[u8], keeps_connection: bool) -> BytesMut {
    let records = variables.len() / CONTENT_BYTES_MAX + 4;
    let mut bytes = BytesMut::with_capacity(variables.len() + records * HEAD_BYTES);
    bytes.put_slice(&head(BEGIN, HEAD_BYTES));
    bytes.put_u16(RESPONDER);
    bytes.put_u8(if keeps_connection { KEEP_CONNECTION } else { 0 });
    bytes.put_bytes(0, 5);
    for piece in variables.chunks(CONTENT_BYTES_MAX) {
        bytes.put_slice(&head(PARAMS, piece.len()));
        bytes.put_slice(piece);
    }
    bytes.put_slice(&head(PARAMS, 0));
    bytes
}

/// The head of a record with a piece of the request's body; with no bytes it ends the body. At most [`CONTENT_BYTES_MAX`].
pub fn input_head(bytes: usize) -> [u8; HEAD_BYTES] {
    head(STDIN, bytes)
}

fn head(kind: u8, length: usize) -> [u8; HEAD_BYTES] {
    let [high, low] = (length as u16).to_be_bytes();
    let [request_high, request_low] = REQUEST.to_be_bytes();
    [VERSION, kind, request_high, request_low, high, low, 0, 0]
}

/// Appends a variable (3.4): the lengths of name and value, in one byte or four, then both.
pub fn pair(variables: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for length in [name.len(), value.len()] {
        match u8::try_from(length) {
            Ok(short) if short < 128 => variables.push(short),
            _ => variables.put_u32(length as u32 | 1 << 31),
        }
    }
    variables.extend_from_slice(name);
    variables.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
        let mut bytes = head(kind, content.len()).to_vec();
        bytes[6] = padding;
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len() + usize::from(padding), 0xee);
        bytes
    }

    /// Output, complaints, and the end.
    type Read = (Vec<u8>, Vec<u8>, Option<Ending>);

    /// All that the decoder makes of bytes which come in pieces of `step`.
    fn decoded(bytes: &[u8], step: usize) -> Result<Read, RecordError> {
        let (mut output, mut complaints, mut end) = (Vec::new(), Vec::new(), None);
        let (mut decoder, mut received) = (Decoder::default(), BytesMut::new());
        for piece in bytes.chunks(step) {
            received.extend_from_slice(piece);
            while let Some(event) = decoder.next(&mut received)? {
                match event {
                    Event::Output(piece) => output.extend_from_slice(&piece),
                    Event::Complaint(piece) => complaints.extend_from_slice(&piece),
                    Event::End(ending) => end = Some(ending),
                }
            }
        }
        Ok((output, complaints, end))
    }

    #[test]
    fn a_response_is_read_however_it_is_cut() {
        let bytes = [
            record(STDOUT, b"Status: 200\r\n", 3),
            record(STDERR, b"oh", 0),
            record(STDOUT, b"\r\nbody", 0),
            record(STDOUT, b"", 255),
            record(END, &[0, 0, 0, 1, 0, 0, 0, 0], 7),
        ]
        .concat();
        let whole = (
            b"Status: 200\r\n\r\nbody".to_vec(),
            b"oh".to_vec(),
            Some(Ending::Complete),
        );
        for step in 1..bytes.len() {
            assert_eq!(decoded(&bytes, step).unwrap(), whole, "in pieces of {step}");
        }
    }

    #[test]
    fn what_is_no_record_of_the_request_is_an_error() {
        let told = |change: fn(&mut Vec<u8>)| {
            let mut bytes = record(STDOUT, b"x", 0);
            change(&mut bytes);
            decoded(&bytes, 100).unwrap_err()
        };
        assert_eq!(told(|bytes| bytes[0] = 2), RecordError::Version(2));
        assert_eq!(told(|bytes| bytes[3] = 2), RecordError::Request(2));
        assert_eq!(told(|bytes| bytes[1] = STDIN), RecordError::Type(STDIN));
        assert_eq!(told(|bytes| bytes[1] = END), RecordError::End(1));
    }

    #[test]
    fn a_backend_says_how_it_ended() {
        let told = |status| {
            let bytes = record(END, &[0, 0, 0, 0, status, 0, 0, 0], 0);
            decoded(&bytes, 100).unwrap().2.unwrap()
        };
        assert_eq!(told(1), Ending::CannotMultiplex);
        assert_eq!(told(2), Ending::Overloaded);
        assert_eq!(told(3), Ending::Refused(3));
    }

    #[test]
    fn lengths_of_variables_have_one_byte_or_four() {
        let mut short = Vec::new();
        pair(&mut short, b"A", &[b'v'; 127]);
        assert_eq!((short.len(), &short[..3]), (130, &[1, 127, b'A'][..]));
        let mut long = Vec::new();
        pair(&mut long, b"A", &[b'v'; 128]);
        assert_eq!(
            (long.len(), &long[..6]),
            (134, &[1, 128, 0, 0, 128, b'A'][..])
        );
    }

    proptest! {
        #[test]
        fn variables_come_in_records_of_a_length_that_fits(length in 0_usize..200_000) {
            let bytes = begin(&vec![7; length], true);
            let (mut rest, mut contents) = (&bytes[..], Vec::new());
            while let [_, kind, _, _, high, low, _, _, after @ ..] = rest {
                let (content, after) = after.split_at(usize::from(u16::from_be_bytes([*high, *low])));
                contents.push((*kind, content.len()));
                rest = after;
            }
            prop_assert!(rest.is_empty());
            prop_assert_eq!(contents.remove(0), (BEGIN, 8));
            prop_assert_eq!(contents.pop(), Some((PARAMS, 0)));
            prop_assert!(contents.iter().all(|(kind, length)| *kind == PARAMS && *length > 0));
            prop_assert_eq!(contents.iter().map(|(_, length)| length).sum::<usize>(), length);
        }

        #[test]
        fn any_bytes_are_records_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            step in 1_usize..40,
        ) {
            prop_assert_eq!(decoded(&bytes, step).is_ok(), decoded(&bytes, 1).is_ok());
        }
    }
}
