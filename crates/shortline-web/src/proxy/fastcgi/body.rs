//! The body of a program's response. It is complete only when the backend has ended the request, and as long as its head says.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

use super::FastCgiError;

/// A piece of the body; `None` is its end.
pub type Piece = Result<Option<Bytes>, FastCgiError>;

/// A body under way; see the module's text.
pub struct Body {
    /// What came with the head.
    first: VecDeque<Bytes>,
    /// What is still to come.
    rest: Option<Receiver<Piece>>,
    /// How much that is with `first`, if the head says so or all is there.
    left: Option<u64>,
}

impl Body {
    /// No body.
    pub fn none() -> Self {
        Self::whole(VecDeque::new())
    }

    /// All of it.
    pub fn whole(first: VecDeque<Bytes>) -> Self {
        let bytes = first.iter().map(|piece| piece.len() as u64).sum();
        Self {
            first,
            rest: None,
            left: Some(bytes),
        }
    }

    /// The beginning, and the rest of a whole of `bytes`.
    pub fn begun(first: VecDeque<Bytes>, rest: Receiver<Piece>, bytes: Option<u64>) -> Self {
        Self {
            first,
            rest: Some(rest),
            left: bytes,
        }
    }

    fn count(&mut self, piece: Bytes) -> Result<Frame<Bytes>, FastCgiError> {
        if let Some(left) = &mut self.left {
            *left = left
                .checked_sub(piece.len() as u64)
                .ok_or(FastCgiError::Length)?;
        }
        Ok(Frame::data(piece))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = FastCgiError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, FastCgiError>>> {
        if let Some(piece) = self.first.pop_front() {
            return Poll::Ready(Some(self.count(piece)));
        }
        let Some(rest) = &mut self.rest else {
            return Poll::Ready(None);
        };
        let piece = ready!(rest.poll_recv(context));
        let end = match piece.unwrap_or(Err(FastCgiError::CutShort)) {
            Ok(Some(piece)) => return Poll::Ready(Some(self.count(piece))),
            Ok(None) if self.left.is_none_or(|left| left == 0) => None,
            Ok(None) => Some(Err(FastCgiError::Length)),
            Err(error) => Some(Err(error)),
        };
        self.rest = None;
        Poll::Ready(end)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use http_body_util::BodyExt;
    use tokio::sync::mpsc::channel;

    async fn read(length: Option<u64>, pieces: Vec<Piece>) -> Result<Bytes, FastCgiError> {
        let (sender, rest) = channel(10);
        for piece in pieces {
            sender.send(piece).await.unwrap();
        }
        drop(sender);
        let first = VecDeque::from([Bytes::from_static(b"ab")]);
        let body = Body::begun(first, rest, length).collect().await;
        body.map(|body| body.to_bytes())
    }

    fn piece(text: &'static str) -> Piece {
        Ok(Some(Bytes::from_static(text.as_bytes())))
    }

    #[tokio::test]
    async fn a_body_is_whole_if_it_ends_and_is_as_long_as_its_head_says() {
        let whole = || vec![piece("cd"), Ok(None)];
        assert_eq!(read(None, whole()).await.unwrap(), "abcd");
        assert_eq!(read(Some(4), whole()).await.unwrap(), "abcd");
        for length in [0, 1, 3, 5] {
            let told = read(Some(length), whole()).await;
            assert!(matches!(told, Err(FastCgiError::Length)), "{length}");
        }
        for length in [None, Some(4)] {
            let told = read(length, vec![piece("cd")]).await;
            assert!(matches!(told, Err(FastCgiError::CutShort)));
        }
    }
}
