//! A client that compresses: everything to it and from it is in frames ([`super::compress`]).

use std::task::{Poll, ready};

use super::compress::{CompressionError, Decoder, Sequence, encode};
use crate::relay::{Exchange, with_scratch};

/// The state of the frames between a client and the gate.
#[derive(Debug, Default)]
pub struct Frames {
    decoder: Decoder,
    sequence: Sequence,
}

impl Frames {
    /// Takes bytes that came earlier.
    pub fn take(&mut self, bytes: &[u8]) {
        self.decoder.take(bytes);
    }

    /// Sends these bytes to the client.
    pub fn send(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &[u8]) {
        if !exchange.client.is_broken && !bytes.is_empty() {
            exchange.to_client(&self.encode(bytes));
        }
    }

    /// These bytes, in frames.
    pub fn encode(&mut self, bytes: &[u8]) -> Vec<u8> {
        encode(bytes, &mut self.sequence)
    }

    /// Starts the answer to a command that has not come.
    pub fn answer_first(&mut self) {
        self.sequence = Sequence::answer();
    }

    /// Decodes what comes next and appends it to `plain`, which may then have `plain_bytes_max`
    /// bytes. Ready when something has come.
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
