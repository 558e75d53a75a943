//! A client that compresses: what is said to it goes into frames, and what it says comes in such
//! ([`super::compress`]).

use std::task::{Poll, ready};

use super::compress::{CompressionError, Decoder, Sequence, encode};
use crate::relay::{Exchange, with_scratch};

/// What is known of the frames between a client and the gate.
#[derive(Debug, Default)]
pub struct Frames {
    decoder: Decoder,
    sequence: Sequence,
}

impl Frames {
    /// Takes bytes that came before.
    pub fn take(&mut self, bytes: &[u8]) {
        self.decoder.take(bytes);
    }

    /// Sends the client these bytes.
    pub fn send(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &[u8]) {
        if !exchange.client.is_broken && !bytes.is_empty() {
            exchange.to_client(&self.encode(bytes));
        }
    }

    /// These bytes, in frames.
    pub fn encode(&mut self, bytes: &[u8]) -> Vec<u8> {
        encode(bytes, &mut self.sequence)
    }

    /// What is said next is the answer to a command that has not come.
    pub fn answer_first(&mut self) {
        self.sequence = Sequence::answer();
    }

    /// Decodes what comes next to the end of `plain`, which may have `plain_bytes_max` bytes then.
    /// Ready when something has come.
    ///
    /// # Errors
    /// [`CompressionError`]
    pub fn poll_decode(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        plain: &mut Vec<u8>,
        plain_bytes_max: usize,
    ) -> Poll<Result<(), CompressionError>> {
        let Self { decoder, sequence } = self;
        if decoder.decode(plain, plain_bytes_max, sequence)? {
            return Poll::Ready(Ok(()));
        }
        if exchange.client.is_ended {
            return Poll::Pending;
        }
        ready!(with_scratch(|scratch| {
            exchange
                .client
                .poll_read(exchange.context, scratch)
                .map(|read| decoder.take(&scratch[..read]))
        }));
        Poll::Ready(Ok(()))
    }
}
