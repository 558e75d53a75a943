//! A response on its way out: waits for grants, reads as much as was granted, and hands it to
//! the protocol above, one chunk a grant. HTTP/1.1 and HTTP/2 send through the same code, and so do
//! files and what comes from a backend: of that, a grant is asked for what is here.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use shortline_link::{Grant, JobHandle};

use crate::account::Account;
use crate::proxy::Relayed;
use crate::site::{KERNEL_COPY_BYTES_MIN, OpenFile, PlanBody, Segment};

/// Bytes read from a file that is not held in memory, at a time.
const READ_BYTES: usize = 64 * 1024;
/// The least a grant is used for, however long the head was.
const CHUNK_BYTES_MIN: u32 = 512;

/// What a protocol adds to the bytes of a body, so that a grant fills whole segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Framing {
    /// The response's head, sent with the first chunk.
    pub head_bytes: u32,
    /// Added to every chunk: an HTTP/2 frame's header, a TLS record's header and tag.
    pub chunk_bytes: u32,
}

/// Where a body comes from.
pub enum Content {
    /// Files, or bytes at hand.
    Segments(VecDeque<Segment>),
    /// A backend.
    Relayed(Relayed),
}

/// A response that waits or is being sent.
pub struct Outgoing {
    job: JobHandle,
    grant: Option<Grant>,
    content: Content,
    /// Body bytes not yet handed over; `None` where their number is known at the end only.
    remaining_bytes: Option<u64>,
    /// Everything was handed over.
    complete: bool,
    framing: Framing,
    /// Bytes of the first segment's file that were read ahead.
    ahead: Bytes,
    reading: Option<Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>>,
    /// Counts and logs the response when this is dropped.
    pub account: Account,
}

impl Outgoing {
    /// The response of this content, whose turn `job` waits for.
    pub fn new(job: JobHandle, content: Content, framing: Framing, account: Account) -> Self {
        Self {
            job,
            grant: None,
            remaining_bytes: content.bytes(),
            content,
            complete: false,
            framing,
            ahead: Bytes::new(),
            reading: None,
            account,
        }
    }

    /// Body bytes not yet handed over; `None` where only the end tells.
    pub fn remaining_bytes(&self) -> Option<u64> {
        self.remaining_bytes
    }

    /// Whether everything was handed over.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Ready when the response may send its next quantum; body bytes it may carry. `None`: there
    /// are no more.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<u32>>> {
        if let Some(reading) = &mut self.reading {
            self.ahead = ready!(reading.as_mut().poll(context))?;
            self.reading = None;
        }
        if self.complete {
            return Poll::Ready(Ok(None));
        }
        let overhead = self.framing.head_bytes + self.framing.chunk_bytes;
        let mut bytes_max = u32::MAX;
        if let Content::Relayed(relayed) = &mut self.content {
            // The head may leave without a body that is not here yet.
            let at_hand = match self.framing.head_bytes {
                0 => ready!(relayed.poll_at_hand(context))?,
                _ => Some(relayed.at_hand()),
            };
            let Some(at_hand) = at_hand else {
                return Poll::Ready(Ok(None));
            };
            bytes_max = u32::try_from(at_hand).unwrap_or(u32::MAX);
            if self.grant.is_none() {
                self.job.offer(bytes_max.saturating_add(overhead));
            }
        }
        let grant = match self.grant {
            Some(grant) => grant,
            None => {
                let grant = ready!(self.job.poll_grant(context));
                self.account.granted();
                *self.grant.insert(grant)
            }
        };
        let granted = grant.bytes.saturating_sub(overhead).max(CHUNK_BYTES_MIN);
        Poll::Ready(Ok(Some(granted.min(bytes_max))))
    }

    /// Ready when head and first chunk may leave together: granted, and in memory. A head that
    /// leaves while its body is still read costs a packet of its own, and the body another turn.
    /// Only a backend's head does not wait for its body: that may be long in coming.
    pub fn poll_start(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let bytes_max = ready!(self.poll_ready(context))?.unwrap_or(0);
            if self.is_in_memory(bytes_max)? {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// The next piece of the body, at most `bytes_max` and what is granted, or its trailers.
    /// `None`: all is out.
    pub fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
        bytes_max: u32,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            if self.complete {
                return Poll::Ready(None);
            }
            let granted_bytes = match ready!(self.poll_ready(context)) {
                Ok(Some(bytes)) => bytes.min(bytes_max),
                Ok(None) => {
                    let trailers = self.end().transpose();
                    return Poll::Ready(trailers.map(|trailers| trailers.map(Frame::trailers)));
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            match self.is_in_memory(granted_bytes) {
                Ok(true) => {}
                Ok(false) => continue, // on its way from the disk: wait for it above
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
            let chunk = self.next_chunk(granted_bytes);
            if let Ok(chunk) = &chunk {
                self.hand_over(chunk.len() as u32);
            }
            return Poll::Ready(Some(chunk.map(Frame::data)));
        }
    }

    /// Lets a head leave that has nothing to leave with: it takes the grant.
    pub fn start(&mut self) {
        let alone = match &self.content {
            Content::Segments(_) => self.remaining_bytes == Some(0),
            Content::Relayed(relayed) => relayed.at_hand() == 0,
        };
        if alone {
            self.hand_over(0);
        }
    }

    /// The grant cannot be used now; others go first until this response asks again.
    pub fn decline(&mut self) {
        if self.grant.take().is_some() {
            self.job.decline();
        }
    }

    fn hand_over(&mut self, body_bytes: u32) {
        let head_bytes = std::mem::take(&mut self.framing.head_bytes);
        self.grant = None;
        self.complete = match &mut self.remaining_bytes {
            Some(remaining_bytes) => {
                *remaining_bytes -= u64::from(body_bytes);
                *remaining_bytes == 0
            }
            None => self.content.has_ended(),
        };
        self.account.handed_over(body_bytes, self.complete);
        let payload_bytes = head_bytes + body_bytes + self.framing.chunk_bytes;
        if self.complete {
            self.job.finish(payload_bytes);
        } else {
            self.job.hand_over(payload_bytes);
        }
    }

    /// The end of a body of which only the end told the length; its trailers, if it has any.
    fn end(&mut self) -> io::Result<Option<HeaderMap>> {
        if self.remaining_bytes.is_some() {
            // Less came than was promised.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let trailers = match &mut self.content {
            Content::Segments(_) => None,
            Content::Relayed(relayed) => relayed.take_trailers(),
        };
        self.complete = true;
        self.account.handed_over(0, true);
        self.job.finish(0);
        Ok(trailers)
    }

    /// Whether the next bytes are in memory; else starts to read them and declines the grant.
    fn is_in_memory(&mut self, bytes_max: u32) -> io::Result<bool> {
        let Content::Segments(segments) = &self.content else {
            return Ok(true);
        };
        let Some(Segment::File { file, offset, len }) = segments.front() else {
            return Ok(true);
        };
        if !self.ahead.is_empty() {
            return Ok(true);
        }
        let length = (*len).min(READ_BYTES.max(bytes_max as usize) as u64) as usize;
        let read = file.read_now(*offset, length);
        let disk = &self.account.connection().settings.disk;
        match read.inspect_err(|error| disk.log(error))? {
            Some(bytes) => {
                self.ahead = bytes;
                Ok(true)
            }
            None => {
                let (file, offset) = (Arc::clone(file), *offset);
                self.read_from_disk(file, offset, length);
                Ok(false)
            }
        }
    }

    /// Up to `bytes_max` bytes, which are in memory.
    fn next_chunk(&mut self, bytes_max: u32) -> io::Result<Bytes> {
        let segments = match &mut self.content {
            Content::Segments(segments) => segments,
            Content::Relayed(relayed) => return Ok(relayed.take(bytes_max as usize)),
        };
        let Some(segment) = segments.front_mut() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let length = segment.len().min(u64::from(bytes_max)) as usize;
        let chunk = match segment {
            Segment::Bytes(bytes) => bytes.split_to(length),
            Segment::File { file, offset, len } => {
                let chunk = self.ahead.split_to(length.min(self.ahead.len()));
                // Of plain HTTP/1.1 the socket sees the very bytes, and may let the kernel's stand in.
                if self.framing.chunk_bytes == 0
                    && chunk.len() >= KERNEL_COPY_BYTES_MIN
                    && let Some(copy) = file.in_kernel()
                {
                    self.account.connection().watch.offer_copy(copy);
                }
                *offset += chunk.len() as u64;
                *len -= chunk.len() as u64;
                chunk
            }
        };
        if segment.is_empty() {
            segments.pop_front();
        }
        Ok(chunk)
    }

    fn read_from_disk(&mut self, file: Arc<OpenFile>, offset: u64, length: usize) {
        self.decline();
        let remaining_bytes = self.remaining_bytes.unwrap_or(length as u64);
        let client = self.account.client();
        let disk = Arc::clone(&self.account.connection().settings.disk);
        let read = disk.read(file, offset, length, remaining_bytes, client);
        self.reading = Some(Box::pin(read));
    }
}

impl Content {
    /// Bytes of the body, if it is known how many.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Self::Segments(segments) => Some(segments.iter().map(Segment::len).sum()),
            Self::Relayed(relayed) => relayed.remaining_bytes(),
        }
    }

    /// Whether it is known already that nothing follows, no trailers either.
    fn has_ended(&self) -> bool {
        match self {
            Self::Segments(segments) => segments.is_empty(),
            Self::Relayed(relayed) => relayed.has_ended(),
        }
    }
}

impl From<PlanBody> for Content {
    fn from(body: PlanBody) -> Self {
        Self::Segments(match body {
            PlanBody::Empty => VecDeque::new(),
            PlanBody::Segments(segments) => segments.into(),
        })
    }
}
