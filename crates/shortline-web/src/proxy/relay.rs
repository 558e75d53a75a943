//! A response's body between its backend and the uplink: a bounded buffer. It takes what has come with the head. If that is not
//! all, a task fills it as fast as the backend sends. The response empties it as it gets grants.
//!
//! So the client's pace does not decide when the backend is done. A response that fits in the
//! buffer frees its backend at once, however slow the client is. With a larger one the backend
//! waits while the buffer is full, and its permit is paused meanwhile (`admission`).
//!
//! One that is longer than the buffer, and whose bytes both sides take as they are, passes through the kernel only ([`Piped`]): the
//! pipe is the buffer's room then.
//!
//! A body that is compressed on the way ([`Coder`]) is so before it gets into the buffer, in pieces between which other tasks
//! run. What was taken in is brought out when nothing more has arrived, so an event reaches its client at once.
//!
//! A body that ends too early is an error here, however it came. The client's connection is then
//! reset, so that no truncated response looks complete.

mod buffer;

use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use http::HeaderMap;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use shortline_base::pipe::Filled;
use tokio::task::AbortHandle;

use super::admission::{Held, Side};
use super::error::with_sources;
use super::exchange::Ending;
use super::response::{BodyError, ResponseBody};
use crate::compress::PIECE_BYTES;
use crate::compress::encoder::Coder;
use crate::piped::Piped;
use crate::response_cache::Recording;
use buffer::Buffer;

/// How often to yield to others while a body's first bytes are on their way. They can then leave
/// with the head rather than in a packet of their own.
const SETTLE_TURNS: usize = 3;

/// The end of the buffer that the client's response reads.
pub struct Relayed {
    buffer: Arc<Buffer>,
    /// Body bytes not yet taken, if the head gave the length.
    remaining_bytes: Option<u64>,
    /// What fills the buffer. `None`: it was filled at once.
    pump: Option<AbortHandle>,
}

/// What is done with a body on its way: nothing, or it passes through the kernel only, is kept for other requests, or compressed.
#[allow(missing_docs)]
pub enum Way {
    Plain,
    Piped(Arc<Piped>),
    Recorded(Box<Recording>),
    Coded(Box<Coder>),
}

/// Begins to read `body`; `None` if there is nothing to read.
pub fn begin(body: ResponseBody, ending: Ending, held: Held, way: Way) -> Option<Relayed> {
    let (mut piped, mut recording, mut coder) = (None, None, None);
    match way {
        Way::Plain => {}
        Way::Piped(pipe) => piped = Some(pipe),
        Way::Recorded(kept) => recording = Some(kept),
        Way::Coded(codes) => coder = Some(codes),
    }
    let remaining_bytes = body.size_hint().exact().filter(|_| coder.is_none());
    let buffer = Buffer::new(&ending.upstream, piped.clone());
    let has_body = !body.is_end_stream();
    let mut reading = Reading {
        body,
        buffer: Arc::clone(&buffer),
        ending,
        held,
        piped,
        recording,
        coder,
    };
    let end = match has_body {
        true => reading.what_has_come(),
        false => Some(Ok(())),
    };
    let pump = match end {
        Some(end) => {
            reading
                .over(end)
                .into_iter()
                .for_each(Ending::keep_connection_soon);
            None
        }
        None => Some(tokio::spawn(reading.pump()).abort_handle()),
    };
    has_body.then_some(Relayed {
        buffer,
        remaining_bytes,
        pump,
    })
}

/// A response whose body is being read.
struct Reading {
    body: ResponseBody,
    buffer: Arc<Buffer>,
    ending: Ending,
    held: Held,
    piped: Option<Arc<Piped>>,
    recording: Option<Box<Recording>>,
    coder: Option<Box<Coder>>,
}

/// A response that ended too early.
struct BrokenOff {
    /// The error for the client's side.
    kind: io::ErrorKind,
    /// The reason for the log.
    reason: String,
}

impl Reading {
    /// Reads what has arrived. The end, if that has come, too: a small body mostly comes with its head, and needs no task.
    fn what_has_come(&mut self) -> Option<Result<(), BrokenOff>> {
        // Compressing takes time, in which other tasks are to run.
        while self.coder.is_none() && self.may_be_read() && !self.buffer.is_full() {
            match self.body.frame().now_or_never()? {
                None => return Some(Ok(())),
                Some(Err(error)) => return Some(Err(broken_off(&*error))),
                Some(Ok(frame)) => self.take(frame),
            }
            if self.body.is_end_stream() {
                return Some(Ok(()));
            }
        }
        None
    }

    /// Whether what comes next is to be read: what was with the head, or all of a body that does not pass through a pipe.
    fn may_be_read(&mut self) -> bool {
        self.piped.is_none() || self.body.movable(0).is_none_or(|body| body.was_read())
    }

    /// Reads the body to its end.
    async fn pump(mut self) {
        let end = match (self.piped.take(), self.coder.take()) {
            (Some(piped), _) => self.fill_pipe(&piped).await,
            (None, Some(coder)) => self.fill_coded(coder).await,
            (None, None) => self.fill().await,
        };
        if let Some(ending) = self.over(end) {
            ending.keep_connection().await;
        }
    }

    /// The body has ended. Its connection can be kept if it did so whole.
    fn over(self, end: Result<(), BrokenOff>) -> Option<Ending> {
        self.held.finish(end.is_ok());
        match end {
            Ok(()) => {
                self.ending.complete();
                self.recording
                    .into_iter()
                    .for_each(|recording| recording.finish());
                self.buffer.end(Ok(()));
                Some(self.ending)
            }
            Err(BrokenOff { kind, reason }) => {
                self.ending.broke_off(kind, &reason);
                self.buffer.end(Err(kind));
                None
            }
        }
    }

    async fn fill(&mut self) -> Result<(), BrokenOff> {
        loop {
            // What is recorded in memory is held anyway, however slow the client is.
            let records = self.recording.as_ref();
            if !records.is_some_and(|recording| recording.is_in_memory()) {
                self.buffer.wait_for_space(&self.held).await;
            }
            let Some(frame) = self.next_frame().await? else {
                return Ok(());
            };
            self.take(frame);
            if self.body.is_end_stream() {
                return Ok(());
            }
        }
    }

    /// The same, with a body that passes through a pipe.
    async fn fill_pipe(&mut self, piped: &Piped) -> Result<(), BrokenOff> {
        let mut has_moved = false;
        while let Some(body) = self.body.movable(0) {
            self.buffer.wait_for_space(&self.held).await;
            let room_bytes = self.buffer.room_bytes().max(1);
            let moving = poll_fn(|context| body.poll_move(piped, room_bytes, context));
            match in_time(&mut self.ending, moving).await? {
                Filled::Bytes(bytes) => {
                    has_moved = true;
                    self.buffer.push_piped(bytes);
                }
                Filled::Full => {
                    self.held.waits(Side::Download, true);
                    poll_fn(|context| piped.poll_room(context)).await;
                    self.held.waits(Side::Download, false);
                }
                // Nothing is in the pipe.
                Filled::Refused if !has_moved => return self.fill().await,
                Filled::Refused => return Err(io::Error::from(io::ErrorKind::Unsupported).into()),
            }
        }
        Ok(())
    }

    /// The same, with a body that is compressed on the way.
    async fn fill_coded(&mut self, mut coder: Box<Coder>) -> Result<(), BrokenOff> {
        loop {
            self.buffer.wait_for_space(&self.held).await;
            // What is on its way gets time to arrive.
            tokio::task::yield_now().await;
            let frame = match self.body.frame().now_or_never() {
                Some(frame) => frame.transpose().map_err(|error| broken_off(&*error))?,
                None => {
                    self.buffer.push(Frame::data(coder.flush()?));
                    self.next_frame().await?
                }
            };
            let data = match frame.map(Frame::into_data) {
                None => break,
                Some(Err(trailers)) => {
                    self.buffer.push(trailers);
                    continue;
                }
                Some(Ok(data)) => data,
            };
            for piece in data.chunks(PIECE_BYTES) {
                self.buffer.push(Frame::data(coder.pass(piece)?));
                tokio::task::yield_now().await;
            }
            if self.body.is_end_stream() {
                break;
            }
        }
        self.buffer.push(Frame::data(coder.finish()?));
        Ok(())
    }

    /// What the backend sends next. `None`: it has sent all.
    async fn next_frame(&mut self) -> Result<Option<Frame<Bytes>>, BrokenOff> {
        let frame = self.body.frame().map(Option::transpose);
        in_time(&mut self.ending, frame).await
    }

    /// Puts a frame into the buffer, and records it as long as the response may be kept. One with trailers is not.
    fn take(&mut self, frame: Frame<Bytes>) {
        self.recording = self.recording.take().and_then(|mut recording| {
            let data = frame.data_ref()?;
            recording.push(data).then_some(recording)
        });
        self.buffer.push(frame);
    }
}

/// What comes, unless the backend is silent for too long before.
async fn in_time<T>(
    ending: &mut Ending,
    coming: impl Future<Output = Result<T, BodyError>>,
) -> Result<T, BrokenOff> {
    let idle_time_max = ending.upstream.options.idle_time_max;
    match ending.timer().limit(idle_time_max, pin!(coming)).await {
        Some(come) => come.map_err(|error| broken_off(&*error)),
        None => Err(BrokenOff {
            kind: io::ErrorKind::TimedOut,
            reason: format!("silent for {} s", idle_time_max.as_secs_f64()),
        }),
    }
}

fn broken_off(error: &(dyn Error + Send + Sync)) -> BrokenOff {
    BrokenOff {
        kind: io::ErrorKind::UnexpectedEof,
        reason: with_sources(error),
    }
}

impl From<io::Error> for BrokenOff {
    /// It cannot be compressed, for there is no memory, or be moved any more.
    fn from(error: io::Error) -> Self {
        Self {
            kind: error.kind(),
            reason: format!("it cannot be passed on: {error}"),
        }
    }
}

impl Relayed {
    /// Body bytes not yet taken, if the head gave the length.
    pub fn remaining_bytes(&self) -> Option<u64> {
        self.remaining_bytes
    }

    /// Ready with the number of bytes that have arrived, or with `None` at the body's end.
    pub fn poll_at_hand(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<usize>>> {
        self.buffer.poll_at_hand(context)
    }

    /// When the backend sent the last byte. `None`: it has not.
    pub fn ended_ns(&self) -> Option<u64> {
        self.buffer.ended_ns()
    }

    /// Bytes that have arrived and are not yet taken.
    pub fn at_hand(&self) -> usize {
        self.buffer.at_hand()
    }

    /// Whether all of it was taken and there are no trailers.
    pub fn has_ended(&self) -> bool {
        self.buffer.has_ended()
    }

    /// Whether what it takes are promises.
    pub fn is_piped(&self) -> bool {
        self.buffer.is_piped()
    }

    /// Takes up to `bytes_max` of the bytes that have arrived. They may be promises (`crate::piped`).
    pub fn take(&mut self, bytes_max: usize) -> Bytes {
        let taken = self.buffer.take(bytes_max);
        if let Some(remaining) = &mut self.remaining_bytes {
            *remaining = remaining.saturating_sub(taken.len() as u64);
        }
        taken
    }

    /// Takes the trailers, which follow the body's last byte.
    pub fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.buffer.take_trailers()
    }

    /// Reads all of it for nobody.
    pub async fn pass_over(&mut self) {
        while let Ok(Some(bytes)) = std::future::poll_fn(|context| self.poll_at_hand(context)).await
        {
            drop(self.take(bytes));
        }
    }

    /// Gives a body that is on its way time to arrive.
    pub async fn settle(&self) {
        for _ in 0..SETTLE_TURNS {
            if self.buffer.has_news() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Relayed {
    fn drop(&mut self) {
        // The body is still being read, but nobody wants the rest: tell the backend.
        let unread = self.remaining_bytes != Some(0);
        if let Some(pump) = self
            .pump
            .as_ref()
            .filter(|_| unread && !self.buffer.is_filled())
        {
            pump.abort();
        }
    }
}
