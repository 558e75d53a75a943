//! What an HTTP/1.1 client sends: requests behind each other, each with its body. However the bytes are cut, there are the same
//! requests with the same bodies, and what follows them is refused or not.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use shortline_web::http1::wire::{Rest, Wire};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A head of more bytes or fields is refused.
const LIMITS: (usize, usize) = (500, 8);

/// Requests after a byte that says into how many pieces they are cut.
pub fn client(bytes: &[u8]) {
    let Some((cut, requests)) = bytes.split_first() else {
        return;
    };
    let piece = usize::from(*cut).max(1);
    let whole = outcome(requests, requests.len().max(1));
    assert_eq!(outcome(requests, piece), whole);
}

/// What requests say with their bodies, and whether they end in order.
type Outcome = (Vec<(String, Vec<u8>)>, bool);

fn outcome(bytes: &[u8], piece: usize) -> Outcome {
    let mut wire = Wire::new(Pieces { bytes, piece }, Bytes::new(), LIMITS);
    let mut context = Context::from_waker(Waker::noop());
    let mut requests = Vec::new();
    loop {
        let head = match wire.poll_head(&mut context) {
            Poll::Ready(Ok(Some(head))) => head,
            Poll::Ready(Ok(None)) => return (requests, true),
            Poll::Ready(Err(_)) => return (requests, false),
            Poll::Pending => unreachable!("the stream is always ready"),
        };
        assert!(head.parts.headers.len() <= LIMITS.1);
        let parts = &head.parts;
        let said = format!(
            "{} {} {:?} {}",
            parts.method, parts.uri, parts.headers, head.keeps
        );
        let request = wire.body_begins(&head);
        let mut body = Vec::new();
        while let Poll::Ready(Some(Ok(frame))) = wire.poll_frame(request, &mut context) {
            match frame.into_data() {
                Ok(data) => body.extend_from_slice(&data),
                Err(frame) => body.extend_from_slice(format!("{frame:?}").as_bytes()),
            }
        }
        requests.push((said, body));
        if wire.rest(&context) != Rest::Nothing {
            return (requests, false);
        }
    }
}

/// A client that sends pieces of this size, and takes whatever comes.
struct Pieces<'a> {
    bytes: &'a [u8],
    piece: usize,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = self.piece.min(self.bytes.len()).min(buffer.remaining());
        let (read, rest) = self.bytes.split_at(length);
        buffer.put_slice(read);
        self.bytes = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pieces<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
