//! What hyper reads from a client: one message at a time, and only well-formed chunked bodies.
//!
//! To find a chunk's size one must know where the body begins, and hyper does not say. So a read
//! ends at the blank line after a head, whatever else the kernel has. hyper then parses the head
//! and says how long the body is ([`Messages::body`]). The body is read to its end and no further.
//! What was read too early is kept for the next read; it is less than one of hyper's reads.
//!
//! A request without chunks costs one scan for the line ends of its head. A chunked one is checked
//! by [`Chunked`]. If it breaks the grammar, the read fails as if the connection were lost.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use memchr::memchr_iter;
use tokio::io::{AsyncRead, ReadBuf};

use crate::chunked::Chunked;
use crate::write_through::write_through;

/// The state of [`Messages`] while nothing has been said about the last head.
const UNSAID: u64 = u64::MAX;
/// The state of [`Messages`] for a chunked body. No length is as large: RFC 9112 has no limit, but
/// hyper has this one.
const CHUNKED: u64 = u64::MAX - 1;

/// How long the body after the last head is. The code that receives hyper's parsed head sets it for
/// the code that reads.
#[derive(Debug)]
pub struct Messages(AtomicU64);

/// A client's connection as hyper reads it.
pub struct Reading<S, M> {
    /// Bytes that were read but that hyper has not seen.
    before: Bytes,
    stream: S,
    place: Place,
    messages: M,
}

/// Where in a message the next byte is.
enum Place {
    Head(Head),
    /// Behind a head. hyper has not yet said what follows.
    HeadEnd,
    /// In a body with this many bytes left; not 0.
    Body(u64),
    Chunks(Chunked),
}

/// The state of a head that is being read.
#[derive(Default)]
struct Head {
    /// A line that is not blank has been read. Blank lines before it are skipped (RFC 9112 2.2).
    begun: bool,
    line: Line,
}

/// The unfinished line of a head.
#[derive(Default)]
enum Line {
    #[default]
    Empty,
    /// Only a carriage return.
    Return,
    Text,
}

impl Default for Messages {
    fn default() -> Self {
        Self(AtomicU64::new(UNSAID))
    }
}

impl Messages {
    /// Says that the parsed head has a body of this many bytes. `None`: it is chunked.
    pub fn body(&self, bytes: Option<u64>) {
        self.0.store(bytes.unwrap_or(CHUNKED), Ordering::Relaxed);
    }

    fn take(&self) -> io::Result<Place> {
        match self.0.swap(UNSAID, Ordering::Relaxed) {
            // hyper reads on where, as far as we can see, a head has ended.
            UNSAID => Err(io::ErrorKind::InvalidData.into()),
            CHUNKED => Ok(Place::Chunks(Chunked::default())),
            0 => Ok(Place::Head(Head::default())),
            bytes => Ok(Place::Body(bytes)),
        }
    }
}

impl<S, M> Reading<S, M> {
    /// Reads `before`, then `stream`, from the beginning of a head.
    pub fn new(before: Bytes, stream: S, messages: M) -> Self {
        Self {
            before,
            stream,
            place: Place::Head(Head::default()),
            messages,
        }
    }

    /// The bytes that were read too early, and the stream.
    pub fn into_parts(self) -> (Bytes, S) {
        (self.before, self.stream)
    }
}

impl Place {
    /// Advances over `bytes`, of which there is at least one. Returns how many may be read now.
    fn pass(&mut self, bytes: &[u8], messages: &Messages) -> io::Result<usize> {
        if let Self::HeadEnd = self {
            *self = messages.take()?;
        }
        let (passed, next) = match self {
            Self::Head(head) => (head.end(bytes), Self::HeadEnd),
            Self::Body(left) => {
                let passed = usize::try_from(*left)
                    .ok()
                    .filter(|left| *left <= bytes.len());
                *left -= passed.unwrap_or(bytes.len()) as u64;
                (passed, Self::Head(Head::default()))
            }
            Self::Chunks(chunked) => {
                let end = chunked.read(bytes).map_err(|error| {
                    tracing::debug!("{error}");
                    io::Error::new(io::ErrorKind::InvalidData, error)
                })?;
                (end, Self::Head(Head::default()))
            }
            Self::HeadEnd => return Err(io::ErrorKind::InvalidData.into()),
        };
        if passed.is_some() {
            *self = next;
        }
        Ok(passed.unwrap_or(bytes.len()))
    }
}

impl Head {
    /// Reads on. `Some(n)`: the head ends after `n` of `bytes`. A line ends with LF, with or
    /// without a CR before it (RFC 9112 2.2), as in hyper.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut start = 0;
        for end in memchr_iter(b'\n', bytes) {
            let line = std::mem::take(&mut self.line).with(&bytes[start..end]);
            start = end + 1;
            if !matches!(line, Line::Text) && self.begun {
                return Some(start);
            }
            self.begun |= matches!(line, Line::Text);
        }
        self.line = std::mem::take(&mut self.line).with(&bytes[start..]);
        None
    }
}

impl Line {
    fn with(self, more: &[u8]) -> Self {
        match (self, more) {
            (line, []) => line,
            (Self::Empty, b"\r") => Self::Return,
            _ => Self::Text,
        }
    }
}

impl<S, M> AsyncRead for Reading<S, M>
where
    S: AsyncRead + Unpin,
    M: AsRef<Messages> + Unpin,
{
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let messages = this.messages.as_ref();
        if !this.before.is_empty() {
            let offered = &this.before[..this.before.len().min(buffer.remaining())];
            let passed = this.place.pass(offered, messages)?;
            buffer.put_slice(&offered[..passed]);
            this.before.advance(passed);
            if this.before.is_empty() {
                // It must not keep the whole buffer alive.
                this.before = Bytes::new();
            }
            return Poll::Ready(Ok(()));
        }
        let start = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        let read = &buffer.filled()[start..];
        if read.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let passed = this.place.pass(read, messages)?;
        if passed < read.len() {
            this.before = Bytes::copy_from_slice(&read[passed..]);
            buffer.set_filled(start + passed);
        }
        Poll::Ready(Ok(()))
    }
}

write_through!(Reading<S, M>);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// A message: its head, its body, and the length said for the body.
    type Message = (Vec<u8>, Vec<u8>, Option<u64>);

    fn message() -> impl Strategy<Value = Message> {
        let head = "(\r?\n){0,2}GET / HTTP/1.1\r?\n(X: [a-z\r]{0,5}y\r?\n){0,3}\r?\n";
        let length = proptest::collection::vec(any::<u8>(), 0..20);
        let body = prop_oneof![
            length.prop_map(|body| {
                let bytes = body.len() as u64;
                (body, Some(bytes))
            }),
            Just((b"2;a\r\n\n\n\r\n0\r\n\r\n".to_vec(), None)),
        ];
        (head, body).prop_map(|(head, (body, said))| (head.into_bytes(), body, said))
    }

    /// Reads `length` bytes of a part of a message and no more, although more are there.
    fn take(place: &mut Place, messages: &Messages, bytes: &mut &[u8], part: &[u8], piece: usize) {
        let mut got = Vec::new();
        while got.len() < part.len() {
            let offered = &bytes[..piece.min(bytes.len())];
            let passed = place.pass(offered, messages).unwrap();
            got.extend_from_slice(&offered[..passed]);
            *bytes = &bytes[passed..];
        }
        assert_eq!(got, part);
    }

    proptest! {
        #[test]
        fn each_head_and_each_body_is_read_for_itself(
            wanted in proptest::collection::vec(message(), 1..5),
            piece in 1usize..80,
        ) {
            let all: Vec<u8> = wanted.iter().flat_map(|(head, body, _)| [&head[..], body].concat()).collect();
            let (mut place, messages) = (Place::Head(Head::default()), Messages::default());
            let mut bytes = &all[..];
            for (head, body, said) in &wanted {
                take(&mut place, &messages, &mut bytes, head, piece);
                messages.body(*said);
                take(&mut place, &messages, &mut bytes, body, piece);
            }
            prop_assert!(bytes.is_empty());
        }
    }

    #[test]
    fn nothing_is_read_behind_a_head_of_which_nothing_is_said() {
        let (mut place, messages) = (Place::Head(Head::default()), Messages::default());
        let passed = place
            .pass(b"GET / HTTP/1.1\r\n\r\nrest", &messages)
            .unwrap();
        assert_eq!(passed, 18);
        assert!(place.pass(b"rest", &messages).is_err());
    }

    #[tokio::test]
    async fn what_came_too_early_is_kept() {
        use tokio::io::AsyncReadExt;
        let messages = std::sync::Arc::new(Messages::default());
        let stream = &b" / HTTP/1.1\r\n\r\nbodyGET"[..];
        let before = Bytes::from_static(b"GET");
        let mut reading = Reading::new(before, stream, std::sync::Arc::clone(&messages));
        let mut buffer = [0; 100];
        assert_eq!(reading.read(&mut buffer).await.unwrap(), 3);
        assert_eq!(reading.read(&mut buffer).await.unwrap(), 15);
        messages.body(Some(4));
        assert_eq!(reading.read(&mut buffer).await.unwrap(), 4);
        assert_eq!(&buffer[..4], b"body");
        let (left, stream) = reading.into_parts();
        assert_eq!((&left[..], stream), (&b"GET"[..], &b""[..]));
    }
}
