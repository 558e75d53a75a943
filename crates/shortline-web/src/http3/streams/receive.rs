//! A stream that is read. h3 keeps a frame that is not data until it is whole, however long it says it is. So what it reads without
//! handing anything on is bounded.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{self, StreamErrorIncoming, StreamId};
use quinn::ReadError;

use super::{Carrier, Pipe, READ_BYTES, id, of_connection, var_int};

/// What a client may send on its own streams, such as settings, beside [`CONTROL_BYTES_PER_REQUEST`].
const CONTROL_BYTES: u64 = 64 * 1024;
/// For each request: what says how urgent it is (RFC 9218, 7.2).
const CONTROL_BYTES_PER_REQUEST: u64 = 1024;

/// The receiving half of a request's stream, or a stream of the client's.
pub struct RecvStream {
    stream: quinn::RecvStream,
    carrier: Arc<Carrier>,
    read: Read,
}

enum Read {
    Request(Arc<Pipe>),
    /// So many bytes so far.
    Control(u64),
}

impl RecvStream {
    /// The receiving half of a request's stream.
    pub fn of_request(stream: quinn::RecvStream, pipe: Arc<Pipe>, carrier: &Arc<Carrier>) -> Self {
        Self {
            stream,
            carrier: Arc::clone(carrier),
            read: Read::Request(pipe),
        }
    }

    /// A stream of the client's.
    pub fn of_client(stream: quinn::RecvStream, carrier: &Arc<Carrier>) -> Self {
        Self {
            stream,
            carrier: Arc::clone(carrier),
            read: Read::Control(0),
        }
    }

    /// Notes that so many bytes were read. Whether they are too many.
    fn reads(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        match &mut self.read {
            Read::Request(pipe) => {
                let held_bytes = pipe.held_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
                held_bytes > self.carrier.held_bytes_max
            }
            Read::Control(read_bytes) => {
                let requests = self.carrier.requests.load(Ordering::Relaxed);
                *read_bytes += bytes;
                *read_bytes > CONTROL_BYTES + requests * CONTROL_BYTES_PER_REQUEST
            }
        }
    }
}

/// quinn would tell the client to stop with a code that is no code of HTTP/3.
impl Drop for RecvStream {
    fn drop(&mut self) {
        quic::RecvStream::stop_sending(self, Code::H3_NO_ERROR.value());
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let chunk = ready!(pin!(self.stream.read_chunk(READ_BYTES, true)).poll(context));
        let chunk = chunk.map_err(not_read)?;
        let Some(chunk) = chunk else {
            return Poll::Ready(Ok(None));
        };
        if self.reads(chunk.bytes.len()) {
            let code = Code::H3_EXCESSIVE_LOAD.value();
            self.stop_sending(code);
            return Poll::Ready(Err(StreamErrorIncoming::StreamTerminated {
                error_code: code,
            }));
        }
        Poll::Ready(Ok(Some(chunk.bytes)))
    }

    fn stop_sending(&mut self, code: u64) {
        // It has ended already.
        let _ = self.stream.stop(var_int(code));
    }

    fn recv_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

fn not_read(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated {
            error_code: code.into_inner(),
        },
        ReadError::ConnectionLost(error) => of_connection(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}
