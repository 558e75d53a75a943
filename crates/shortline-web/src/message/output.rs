//! What is to be written of a message: text first, such as its head, then pieces of its body, which are not copied.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::HeaderName;
use tokio::io::AsyncWrite;

use super::head::write_fields;

/// The most pieces written at a time.
const PIECES_MAX: usize = 16;
/// No more is taken while so much waits. So one long piece waits at a time: what the socket sends in its place is of one file
/// ([`crate::socket`]).
const BYTES_MAX: usize = 8 * 1024;

/// What waits to be written.
#[derive(Default)]
pub struct Output {
    text: Vec<u8>,
    /// So much of the text was written.
    text_written: usize,
    pieces: VecDeque<Bytes>,
    pieces_bytes: usize,
    has_written: bool,
    /// Whether the stream may still hold something of what it took, as TLS does.
    is_unflushed: bool,
}

impl Output {
    /// Text to be written before anything else. Nothing may wait but text.
    pub fn text(&mut self) -> &mut Vec<u8> {
        debug_assert!(self.pieces.is_empty(), "text would overtake a body");
        &mut self.text
    }

    /// A piece of a body.
    pub fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.pieces_bytes += piece.len();
        self.pieces.push_back(piece);
    }

    /// A piece of a body as a chunk.
    pub fn push_chunk(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.push(format!("{:x}\r\n", piece.len()).into());
        self.push(piece);
        self.push(Bytes::from_static(b"\r\n"));
    }

    /// The last chunk, with those of the trailers that were announced.
    pub fn end_chunks(&mut self, trailers: &HeaderMap, announced: &[HeaderName]) {
        let mut text = b"0\r\n".to_vec();
        let sent = trailers.iter().filter(|(name, _)| announced.contains(name));
        write_fields(&mut text, sent);
        text.extend_from_slice(b"\r\n");
        self.push(text.into());
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.pieces.is_empty()
    }

    /// Whether enough waits.
    pub fn is_full(&self) -> bool {
        self.pieces.len() >= PIECES_MAX || self.text.len() + self.pieces_bytes >= BYTES_MAX
    }

    /// Whether anything was ever written.
    pub fn has_written(&self) -> bool {
        self.has_written
    }

    /// Writes. Ready once nothing waits any more, in the stream neither.
    ///
    /// # Errors
    /// As the stream's.
    pub fn poll_write(
        &mut self,
        mut stream: Pin<&mut (impl AsyncWrite + ?Sized)>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let mut slices = [IoSlice::new(&[]); PIECES_MAX + 1];
            let text = &self.text[self.text_written..];
            let text = (!text.is_empty()).then_some(text);
            let all = text
                .into_iter()
                .chain(self.pieces.iter().map(AsRef::as_ref));
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(all) {
                *slice = IoSlice::new(piece);
                count += 1;
            }
            let written = match &slices[..count] {
                // A system call that costs less.
                [only] => stream.as_mut().poll_write(context, only),
                slices => stream.as_mut().poll_write_vectored(context, slices),
            };
            let written = ready!(written)?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.has_written = true;
            self.is_unflushed = true;
            self.advance(written);
        }
        if self.is_unflushed {
            ready!(stream.poll_flush(context))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut written: usize) {
        let of_text = written.min(self.text.len() - self.text_written);
        self.text_written += of_text;
        written -= of_text;
        if self.text_written == self.text.len() {
            self.text.clear();
            self.text_written = 0;
        }
        self.pieces_bytes -= written;
        while let Some(piece) = self.pieces.front_mut() {
            let step = written.min(piece.len());
            piece.advance(step);
            written -= step;
            if !piece.is_empty() {
                return;
            }
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::task::Waker;

    use proptest::prelude::*;

    use super::*;

    /// Takes up to so many bytes at a time, every second time none, and lets go of them when it is flushed.
    #[derive(Default)]
    struct Holding {
        bytes_max: usize,
        polls: usize,
        held: Vec<u8>,
        sent: Vec<u8>,
    }

    impl Holding {
        fn waits(&mut self) -> bool {
            self.polls += 1;
            self.polls % 2 == 1
        }
    }

    impl AsyncWrite for Holding {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.waits() {
                return Poll::Pending;
            }
            let taken = bytes.len().min(self.bytes_max);
            self.held.extend_from_slice(&bytes[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            if self.waits() {
                return Poll::Pending;
            }
            let held = std::mem::take(&mut self.held);
            self.sent.extend(held);
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn written(output: &mut Output, stream: &mut Holding) {
        let mut context = Context::from_waker(Waker::noop());
        while output
            .poll_write(Pin::new(stream), &mut context)
            .is_pending()
        {}
    }

    /// TLS takes bytes that the socket below it has no room for yet.
    #[test]
    fn what_a_stream_took_and_holds_is_not_written() {
        let (mut output, mut stream) = (Output::default(), Holding::default());
        stream.bytes_max = 100;
        output.push("hi".into());
        written(&mut output, &mut stream);
        assert_eq!(stream.sent, b"hi");
    }

    proptest! {
        #[test]
        fn all_leaves_in_its_order(
            text in "[a-z]{0,20}",
            pieces in proptest::collection::vec("[A-Z]{0,9}", 0..40),
            bytes_max in 1usize..30,
        ) {
            let (mut output, mut stream) = (Output::default(), Holding::default());
            stream.bytes_max = bytes_max;
            output.text().extend_from_slice(text.as_bytes());
            for piece in &pieces {
                output.push(piece.clone().into());
            }
            let all = text + &pieces.concat();
            prop_assert_eq!(output.is_empty(), all.is_empty());
            written(&mut output, &mut stream);
            prop_assert!(output.is_empty() && !output.is_full());
            prop_assert_eq!(String::from_utf8(stream.sent).unwrap(), all);
        }
    }
}
