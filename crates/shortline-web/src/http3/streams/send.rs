//! A stream that is written to. What quinn does not take at once waits here, and the link hears when nothing waits any more.
//!
//! quinn does not say why it takes nothing. It has no room as long as bytes are under way; if none are, the client's window is closed.
//! Then other streams of the connection go on.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, StreamErrorIncoming, StreamId, WriteBuf};
use parking_lot::Mutex;
use quinn::WriteError;

use super::{Carrier, Pipe, id, of_connection, var_int};
use crate::watch::Watch;
use crate::watch::stall::WindowClosed;

/// The sending half of a request's stream, or a stream of ours.
pub struct SendStream {
    pub pipe: Arc<Pipe>,
    carrier: Arc<Carrier>,
    id: quinn::StreamId,
    /// What quinn has not taken yet.
    writing: Option<WriteBuf<Bytes>>,
    waits: Waits,
    ended: bool,
}

/// What a stream with bytes waits for.
enum Waits {
    Nothing,
    /// Room in quinn.
    Room,
    /// The client's window. Other streams of the connection go on.
    Window {
        _noted: WindowClosed<Arc<Watch>>,
    },
}

impl SendStream {
    /// A stream that quinn has opened.
    pub fn new(stream: quinn::SendStream, carrier: &Arc<Carrier>) -> Self {
        Self {
            id: stream.id(),
            pipe: Arc::new(Pipe {
                send: Mutex::new(stream),
                held_bytes: AtomicU64::new(0),
            }),
            carrier: Arc::clone(carrier),
            writing: None,
            waits: Waits::Nothing,
            ended: false,
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        while let Some(data) = &mut self.writing {
            if !data.has_remaining() {
                self.gives_up_writing();
                break;
            }
            self.carrier.wire.make_room();
            let mut send = self.pipe.send.lock();
            let written = pin!(send.write(data.chunk())).poll(context);
            drop(send);
            match written {
                Poll::Ready(Ok(bytes)) => {
                    data.advance(bytes);
                    self.carrier.wire.written(bytes);
                    self.carrier.watch.bytes_written();
                    self.waits_for_room();
                }
                Poll::Ready(Err(error)) => {
                    self.gives_up_writing();
                    return Poll::Ready(Err(error));
                }
                Poll::Pending => {
                    self.is_blocked(context);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn waits_for_room(&mut self) {
        if let Waits::Window { .. } = self.waits {
            self.carrier.unwritten.fetch_add(1, Ordering::AcqRel);
            self.waits = Waits::Room;
        }
    }

    /// quinn takes no more. If all it has has arrived, it has room, and the client's window is closed.
    fn is_blocked(&mut self, context: &Context<'_>) {
        match self.waits {
            Waits::Room if self.carrier.wire.is_still() => {
                let watch = Arc::clone(&self.carrier.watch);
                self.waits = Waits::Window {
                    _noted: WindowClosed::new(watch),
                };
                self.carrier.ends_writing();
            }
            Waits::Room => {
                self.carrier.wire.wait(context);
                self.carrier.watch.transport().blocked();
            }
            Waits::Nothing | Waits::Window { .. } => {}
        }
    }

    fn gives_up_writing(&mut self) {
        self.writing = None;
        if let Waits::Room = std::mem::replace(&mut self.waits, Waits::Nothing) {
            self.carrier.ends_writing();
        }
    }

    fn end(&mut self, end: impl FnOnce(&mut quinn::SendStream)) {
        self.gives_up_writing();
        if !std::mem::replace(&mut self.ended, true) {
            end(&mut self.pipe.send.lock());
        }
    }
}

/// A stream that is dropped would look complete to the client.
impl Drop for SendStream {
    fn drop(&mut self) {
        self.end(|send| {
            // It has ended already.
            let _ = send.reset(var_int(Code::H3_REQUEST_CANCELLED.value()));
        });
    }
}

impl quic::SendStream<Bytes> for SendStream {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.poll_write(context).map_err(not_written)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.gives_up_writing();
        self.writing = Some(data.into());
        self.waits = Waits::Room;
        self.carrier.unwritten.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_write(context)).map_err(not_written)?;
        // The end has to be sent, too.
        self.carrier.wire.written(1);
        self.end(|send| {
            // The client may have stopped it.
            let _ = send.finish();
        });
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, code: u64) {
        self.end(|send| {
            // It has ended already.
            let _ = send.reset(var_int(code));
        });
    }

    fn send_id(&self) -> StreamId {
        id(self.id)
    }
}

fn not_written(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated {
            error_code: code.into_inner(),
        },
        WriteError::ConnectionLost(error) => of_connection(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}
