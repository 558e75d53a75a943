//! A chunked body, taken apart as it comes: its data piece by piece, then its trailers (RFC 9112, 7.1).

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;

use super::head::{self, HeadError};
use crate::chunked::{ChunkError, Chunked, Part};

/// A body of which something may still come.
pub struct Chunks {
    grammar: Chunked,
    /// The fields after the last chunk, as far as they have come.
    trailers: BytesMut,
    bytes_max: usize,
    fields_max: usize,
}

/// What was taken of a body.
pub enum Taken {
    /// Data, or trailers. Nothing follows those.
    Frame(Frame<Bytes>),
    /// It has ended, without trailers.
    End,
}

/// What is wrong with a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunksError {
    /// A chunk, or the lines around it.
    #[error("a malformed chunk: {0}")]
    Chunk(#[from] ChunkError),
    /// The trailers.
    #[error("malformed trailers: {0}")]
    Trailers(#[from] HeadError),
}

impl Chunks {
    /// A body of this grammar, with trailers of so many bytes and fields at most.
    pub fn new(grammar: Chunked, (bytes_max, fields_max): (usize, usize)) -> Self {
        Self {
            grammar,
            trailers: BytesMut::new(),
            bytes_max,
            fields_max,
        }
    }

    /// Takes the next part of what was read. `None`: nothing is left of that.
    ///
    /// # Errors
    /// [`ChunksError`]
    pub fn take(&mut self, input: &mut BytesMut) -> Result<Option<Taken>, ChunksError> {
        while !input.is_empty() {
            let part = self.grammar.next(input)?;
            let bytes = input.split_to(part.bytes());
            match part {
                Part::Line(_) => {}
                Part::Data(_) => return Ok(Some(Taken::Frame(Frame::data(bytes.freeze())))),
                Part::Trailers(_) => {
                    self.trailers.extend_from_slice(&bytes);
                    if self.trailers.len() > self.bytes_max {
                        return Err(HeadError::TooLarge(self.bytes_max).into());
                    }
                }
            }
            if self.grammar.has_ended() {
                let end = |trailers| Taken::Frame(Frame::trailers(trailers));
                return Ok(Some(self.trailers()?.map_or(Taken::End, end)));
            }
        }
        Ok(None)
    }

    /// The fields after the last chunk; `None` if there are none.
    fn trailers(&mut self) -> Result<Option<HeaderMap>, HeadError> {
        let text = self.trailers.split().freeze();
        // The line that ends them is there always.
        let has_some = text.len() > 2;
        has_some
            .then(|| head::trailers(&text, self.fields_max))
            .transpose()
    }
}
