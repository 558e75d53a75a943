//! A response on its way out: waits for grants, reads as much as was granted, and hands it to
//! the protocol above, one chunk a grant. HTTP/1.1 and HTTP/2 send through the same code.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use shortline_link::{Grant, JobHandle};

use crate::account::Account;
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

/// A response that waits or is being sent.
pub struct Outgoing {
    job: JobHandle,
    grant: Option<Grant>,
    segments: VecDeque<Segment>,
    remaining_bytes: u64,
    framing: Framing,
    /// Bytes of the first segment's file that were read ahead.
    ahead: Bytes,
    reading: Option<Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>>,
    /// Counts and logs the response when this is dropped.
    pub account: Account,
}

impl Outgoing {
    /// The response `body`, whose turn `job` waits for.
    pub fn new(job: JobHandle, body: PlanBody, framing: Framing, account: Account) -> Self {
        let segments = match body {
            PlanBody::Empty => VecDeque::new(),
            PlanBody::Segments(segments) => segments.into(),
        };
        let remaining_bytes = segments.iter().map(Segment::len).sum();
        Self {
            job,
            grant: None,
            segments,
            remaining_bytes,
            framing,
            ahead: Bytes::new(),
            reading: None,
            account,
        }
    }

    /// Body bytes not yet handed over.
    pub fn remaining_bytes(&self) -> u64 {
        self.remaining_bytes
    }

    /// Ready when the response may send its next quantum; body bytes it may carry.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<u32>> {
        if let Some(reading) = &mut self.reading {
            self.ahead = ready!(reading.as_mut().poll(context))?;
            self.reading = None;
        }
        let grant = match self.grant {
            Some(grant) => grant,
            None => {
                let grant = ready!(self.job.poll_grant(context));
                self.account.granted();
                *self.grant.insert(grant)
            }
        };
        let overhead = self.framing.head_bytes + self.framing.chunk_bytes;
        Poll::Ready(Ok(grant
            .bytes
            .saturating_sub(overhead)
            .max(CHUNK_BYTES_MIN)))
    }

    /// Ready when head and first chunk may leave together: granted, and in memory. A head that
    /// leaves while its body is still read costs a packet of its own, and the body another turn.
    pub fn poll_start(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let bytes_max = ready!(self.poll_ready(context))?;
            if self.is_in_memory(bytes_max)? {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// The next chunk of the body, at most `bytes_max` and what is granted. `None`: all is out.
    pub fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
        bytes_max: u32,
    ) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if self.remaining_bytes == 0 {
                return Poll::Ready(None);
            }
            let granted_bytes = match ready!(self.poll_ready(context)) {
                Ok(bytes) => bytes.min(bytes_max),
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
            return Poll::Ready(Some(chunk));
        }
    }

    /// A response without a body: its head takes the grant.
    pub fn hand_over_head(&mut self) {
        self.hand_over(0);
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
        self.remaining_bytes -= u64::from(body_bytes);
        let complete = self.remaining_bytes == 0;
        self.account.handed_over(body_bytes, complete);
        let payload_bytes = head_bytes + body_bytes + self.framing.chunk_bytes;
        if complete {
            self.job.finish(payload_bytes);
        } else {
            self.job.hand_over(payload_bytes);
        }
    }

    /// Whether the next bytes are in memory; else starts to read them and declines the grant.
    fn is_in_memory(&mut self, bytes_max: u32) -> io::Result<bool> {
        let Some(Segment::File { file, offset, len }) = self.segments.front() else {
            return Ok(true);
        };
        if !self.ahead.is_empty() {
            return Ok(true);
        }
        let length = (*len).min(READ_BYTES.max(bytes_max as usize) as u64) as usize;
        match file.read_now(*offset, length)? {
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
        let Some(segment) = self.segments.front_mut() else {
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
            self.segments.pop_front();
        }
        Ok(chunk)
    }

    fn read_from_disk(&mut self, file: Arc<OpenFile>, offset: u64, length: usize) {
        self.decline();
        let disk = Arc::clone(&self.account.connection().settings.disk);
        self.reading = Some(Box::pin(disk.read(
            file,
            offset,
            length,
            self.remaining_bytes,
        )));
    }
}
