//! What hyper reads of a client: one message at a time, and of a chunked body what is well formed.
//!
//! Which bytes are a chunk's size can only be told by who knows where the body begins, and hyper does
//! not say. So a read ends with a head's blank line, whatever follows it in the kernel; then hyper has
//! parsed the head and says how long the body is ([`Messages::body`]); and the body is read to its
//! end and no further. What came too early is kept for the next read: less than one read of hyper's.
//!
//! A request without chunks pays for one look for the ends of its head's lines. A chunked one is held to its
//! grammar by [`Chunked`]; what breaks it is an error of the read, as a lost connection would be.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use memchr::memchr_iter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::chunked::Chunked;

/// [`Messages`]: nothing has been said of the head that was read last.
const UNSAID: u64 = u64::MAX;
/// [`Messages`]: the body is chunked. No length is as large (RFC 9112 has no limit, hyper this one).
const CHUNKED: u64 = u64::MAX - 1;

/// How long the body is that follows the head that was read last: told by the one who gets what
/// hyper parsed, to the one who reads for it.
#[derive(Debug)]
pub struct Messages(AtomicU64);

/// A client's connection as hyper reads it.
pub struct Reading<S, M> {
    /// Read already, but not by hyper.
    before: Bytes,
    stream: S,
    place: Place,
    messages: M,
}

/// Where in a message the next byte is.
enum Place {
    Head(Head),
    /// Behind a head of which hyper has not said yet what follows.
    HeadEnd,
    /// In a body of which so many bytes are left; not 0.
    Body(u64),
    Chunks(Chunked),
}

/// A head as far as it has come.
#[derive(Default)]
struct Head {
    /// A line that is not blank has been there: blank ones before it are passed over (RFC 9112 2.2).
    begun: bool,
    line: Line,
}

/// The line of a head that has not ended yet.
#[derive(Default)]
enum Line {
    #[default]
    Empty,
    /// A carriage return and nothing else.
    Return,
    Text,
}

impl Default for Messages {
    fn default() -> Self {
        Self(AtomicU64::new(UNSAID))
    }
}

impl Messages {
    /// A head has been parsed whose body has so many bytes; `None`: it is chunked.
    pub fn body(&self, bytes: Option<u64>) {
        self.0.store(bytes.unwrap_or(CHUNKED), Ordering::Relaxed);
    }

    fn take(&self) -> io::Result<Place> {
        match self.0.swap(UNSAID, Ordering::Relaxed) {
            // It wants to read on where a head has ended as far as we see.
            UNSAID => Err(io::ErrorKind::InvalidData.into()),
            CHUNKED => Ok(Place::Chunks(Chunked::default())),
            0 => Ok(Place::Head(Head::default())),
            bytes => Ok(Place::Body(bytes)),
        }
    }
}

impl<S, M> Reading<S, M> {
    /// `before`, then what `stream` reads, from the beginning of a head.
    pub fn new(before: Bytes, stream: S, messages: M) -> Self {
        Self {
            before,
            stream,
            place: Place::Head(Head::default()),
            messages,
        }
    }

    /// What has been read too early, and the stream.
    pub fn into_parts(self) -> (Bytes, S) {
        (self.before, self.stream)
    }
}

impl Place {
    /// Moves on over bytes, at least one, and says how many of them may be read now.
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
    /// Reads on. `Some`: the head ends after so many of `bytes`. A line ends with LF, before which
    /// there may be CR (RFC 9112 2.2), as hyper has it.
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
                // Nothing of it may keep the whole.
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

impl<S: AsyncWrite + Unpin, M: Unpin> AsyncWrite for Reading<S, M> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// A message: its head, its body, and what is said of the body.
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

    /// Reads `length` bytes of a message's part and no more, which is all there is to be had.
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
