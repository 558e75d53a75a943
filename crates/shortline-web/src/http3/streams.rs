//! The streams of a QUIC connection, as the h3 crate wants them (`h3::quic`), on quinn.
//!
//! Departures from the crate h3-quinn, which does the same: what is written tells the link ([`Carrier`]), within the bound of
//! [`super::wire`]; the code that answers a request can ask its stream whether the client takes anything and whether it is
//! still there ([`Pipe`]); and what h3 reads without handing anything on is bounded, for it keeps a whole frame that is not data,
//! however long that says it is.

mod receive;
mod send;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use parking_lot::Mutex;
use quinn::{ConnectionError, VarInt, WriteError};

use super::wire::Wire;
use crate::watch::Watch;
pub use receive::RecvStream;
pub use send::SendStream;

/// The most bytes taken from quinn at a time.
const READ_BYTES: usize = 16 * 1024;
/// The most requests of a connection that end before their heads are whole: h3 keeps a number of each.
const HEADLESS_MAX: u64 = 256;

/// What the streams of a connection share.
pub struct Carrier {
    pub wire: Arc<Wire>,
    watch: Arc<Watch>,
    /// The most bytes of a request that h3 keeps before it hands something on.
    held_bytes_max: u64,
    requests: AtomicU64,
    /// Requests that are not answered yet.
    answers: AtomicUsize,
    /// Requests that ended before their heads were whole.
    headless: AtomicU64,
    /// Streams with bytes that quinn has not taken.
    unwritten: AtomicUsize,
    /// The stream that was accepted last.
    accepted: Mutex<Option<Arc<Pipe>>>,
}

/// A request's stream, for who answers it.
pub struct Pipe {
    send: Mutex<quinn::SendStream>,
    /// Bytes read since something was handed on.
    held_bytes: AtomicU64,
}

impl Carrier {
    pub fn new(wire: Arc<Wire>, watch: Arc<Watch>, header_bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            wire,
            watch,
            held_bytes_max: (header_bytes_max + READ_BYTES) as u64,
            requests: AtomicU64::new(0),
            answers: AtomicUsize::new(0),
            headless: AtomicU64::new(0),
            unwritten: AtomicUsize::new(0),
            accepted: Mutex::new(None),
        })
    }

    /// The stream of the request that h3 has just accepted.
    pub fn take_accepted(&self) -> Option<Arc<Pipe>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.wire.asked();
        self.watch.bytes_read();
        self.accepted.lock().take()
    }

    /// A request is to be answered, until the result is dropped.
    pub fn begin_answer(self: &Arc<Self>) -> Answering {
        self.answers.fetch_add(1, Ordering::Relaxed);
        Answering(Arc::clone(self))
    }

    /// Requests that are not answered yet.
    pub fn answers(&self) -> usize {
        self.answers.load(Ordering::Relaxed)
    }

    /// A request ended before its head was whole. Whether too many have.
    pub fn has_no_head(&self) -> bool {
        self.headless.fetch_add(1, Ordering::Relaxed) >= HEADLESS_MAX
    }

    /// Tells the link that nothing waits to be written, if that is so.
    pub fn settle(&self) {
        if self.unwritten.load(Ordering::Acquire) == 0 {
            self.watch.transport().drained();
        }
    }

    fn ends_writing(&self) {
        if self.unwritten.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.watch.transport().drained();
        }
    }
}

/// A request that is not answered yet.
pub struct Answering(Arc<Carrier>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pipe {
    /// Ready when the client takes data and quinn has room. An error: the client wants no more.
    pub fn poll_writable(
        &self,
        carrier: &Carrier,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), WriteError>> {
        carrier.wire.make_room();
        let mut send = self.send.lock();
        // quinn answers a write of nothing as it would one of something.
        let written = pin!(send.write(&[])).poll(context);
        written.map_ok(|_| ())
    }

    /// Ready once the client wants no more of the stream, or is gone.
    pub fn gone(&self) -> Gone {
        let stopped = self.send.lock().stopped();
        Box::pin(async move {
            let _ = stopped.await;
        })
    }

    /// Something of the request was handed on.
    pub fn handed_on(&self) {
        self.held_bytes.store(0, Ordering::Relaxed);
    }
}

/// Ready once a client is gone.
pub type Gone = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

type Waiting<T> = Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send>>;

/// A connection: accepts streams, and opens them. h3 wants a second one for who opens streams besides.
pub struct Quic {
    carrier: Arc<Carrier>,
    connection: quinn::Connection,
    requests: Option<Waiting<(quinn::SendStream, quinn::RecvStream)>>,
    others: Option<Waiting<quinn::RecvStream>>,
    opening: Option<Waiting<quinn::SendStream>>,
}

impl Quic {
    pub fn new(connection: quinn::Connection, carrier: Arc<Carrier>) -> Self {
        Self {
            carrier,
            connection,
            requests: None,
            others: None,
            opening: None,
        }
    }
}

/// Polls what `begin` makes of the connection, until it has a result.
fn poll_waiting<T, F: Future<Output = Result<T, ConnectionError>> + Send + 'static>(
    waiting: &mut Option<Waiting<T>>,
    connection: &quinn::Connection,
    begin: impl FnOnce(quinn::Connection) -> F,
    context: &mut Context<'_>,
) -> Poll<Result<T, ConnectionError>> {
    let future = waiting.get_or_insert_with(|| Box::pin(begin(connection.clone())));
    let done = ready!(future.as_mut().poll(context));
    *waiting = None;
    Poll::Ready(done)
}

impl quic::Connection<Bytes> for Quic {
    type RecvStream = RecvStream;
    type OpenStreams = Self;

    fn poll_accept_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let accept = |connection: quinn::Connection| async move { connection.accept_uni().await };
        let accepted = poll_waiting(&mut self.others, &self.connection, accept, context);
        let accepted = ready!(accepted).map_err(lost)?;
        Poll::Ready(Ok(RecvStream::of_client(accepted, &self.carrier)))
    }

    fn poll_accept_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, ConnectionErrorIncoming>> {
        let accept = |connection: quinn::Connection| async move { connection.accept_bi().await };
        let accepted = poll_waiting(&mut self.requests, &self.connection, accept, context);
        let (send, receive) = ready!(accepted).map_err(lost)?;
        let send = SendStream::new(send, &self.carrier);
        *self.carrier.accepted.lock() = Some(Arc::clone(&send.pipe));
        let receive = RecvStream::of_request(receive, Arc::clone(&send.pipe), &self.carrier);
        Poll::Ready(Ok(BidiStream { send, receive }))
    }

    fn opener(&self) -> Self {
        Self::new(self.connection.clone(), Arc::clone(&self.carrier))
    }
}

impl quic::OpenStreams<Bytes> for Quic {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    /// No server opens one.
    fn poll_open_bidi(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        Poll::Ready(Err(of_connection(ConnectionError::LocallyClosed)))
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<SendStream, StreamErrorIncoming>> {
        let open = |connection: quinn::Connection| async move { connection.open_uni().await };
        let opened = poll_waiting(&mut self.opening, &self.connection, open, context);
        Poll::Ready(match ready!(opened) {
            Ok(stream) => Ok(SendStream::new(stream, &self.carrier)),
            Err(error) => Err(of_connection(error)),
        })
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(var_int(code.value()), reason);
    }
}

/// A request's stream.
pub struct BidiStream {
    send: SendStream,
    receive: RecvStream,
}

impl quic::SendStream<Bytes> for BidiStream {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(context)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(context)
    }

    fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl quic::RecvStream for BidiStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(context)
    }

    fn stop_sending(&mut self, code: u64) {
        self.receive.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl quic::BidiStream<Bytes> for BidiStream {
    type SendStream = SendStream;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream, RecvStream) {
        (self.send, self.receive)
    }
}

fn var_int(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

fn id(id: quinn::StreamId) -> StreamId {
    let number: u64 = VarInt::from(id).into();
    StreamId::try_from(number).expect("invariant: both count to 2^62")
}

fn lost(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(closed) => ConnectionErrorIncoming::ApplicationClose {
            error_code: closed.error_code.into_inner(),
        },
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn of_connection(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: lost(error),
    }
}
