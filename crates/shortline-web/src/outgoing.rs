//! A response on its way out. It waits for a grant, reads as much as was granted, and hands it to
//! the protocol above, one chunk per grant. HTTP/1.1, HTTP/2 and HTTP/3 share this code, and so do files
//! and the responses of backends. For a backend's response, a grant is asked only for the bytes
//! that have arrived. One whose bandwidth is limited asks for none before its time ([`crate::pace`]).

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use shortline_base::disk::NotMoved;
use shortline_link::{Grant, JobHandle};

use crate::account::Account;
use crate::files::{KERNEL_COPY_BYTES_MIN, KernelCopy, OpenFile, PlanBody, Segment};
use crate::pace::{Bandwidth, Paced};
use crate::piped::{PROMISE_BYTES_MAX, Piped};
use crate::proxy::Relayed;

/// The most bytes read at a time from a file that is not in memory, and written at a time by a response that is not
/// scheduled: twice as fast as 256 KiB.
const READ_BYTES: u32 = 64 * 1024;
/// A shorter rest of a file is not worth a pipe.
const PIPED_BYTES_MIN: u64 = 256 * 1024;
/// A grant allows at least a chunk of this size, however much of it the head took.
const CHUNK_BYTES_MIN: u32 = 512;

/// What a protocol adds to a body, counted so that a grant fills whole segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Framing {
    /// The size of the response's head, which leaves with the first chunk.
    pub head_bytes: u32,
    /// The bytes added to every chunk: an HTTP/2 frame header, a TLS record's header and tag.
    pub chunk_bytes: u32,
}

/// Where a body comes from.
pub enum Content {
    /// Files, or bytes in memory.
    Segments(VecDeque<Segment>),
    /// A backend.
    Relayed(Relayed),
}

/// Whether files pass through a pipe.
enum Piping {
    Untried,
    Never,
    Through(Arc<Piped>),
}

/// A response that waits or is being sent.
pub struct Outgoing {
    job: JobHandle,
    grant: Option<Grant>,
    content: Content,
    /// Body bytes not yet handed over. `None` if only the end tells how many there are.
    remaining_bytes: Option<u64>,
    /// Everything was handed over.
    complete: bool,
    framing: Framing,
    /// Bytes read ahead from the first segment's file.
    ahead: Bytes,
    reading: Option<Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>>,
    /// How it sends long files that are not kept in memory.
    piping: Piping,
    /// When its next bytes may leave, if its bandwidth is limited.
    pace: Option<Box<Paced>>,
    /// Counts and logs the response when this is dropped.
    pub account: Account,
}

impl Outgoing {
    /// A response with this content. `job` is its turn.
    pub fn new(
        mut job: JobHandle,
        content: Content,
        framing: Framing,
        bandwidth: Option<Bandwidth>,
        account: Account,
    ) -> Self {
        let pace = bandwidth.map(|bandwidth| Box::new(Paced::new(bandwidth)));
        let most = |pace: &Paced| u64::from(pace.piece_bytes());
        if let Some(pace) = &pace
            && content.bytes().is_none_or(|bytes| bytes > most(pace))
        {
            // It was perhaps granted more than it may send at once.
            job.decline();
        }
        Self {
            pace,
            job,
            grant: None,
            remaining_bytes: content.bytes(),
            content,
            complete: false,
            framing,
            ahead: Bytes::new(),
            reading: None,
            piping: Piping::Untried,
            account,
        }
    }

    /// Body bytes not yet handed over. `None` if only the end tells how many there are.
    pub fn remaining_bytes(&self) -> Option<u64> {
        self.remaining_bytes
    }

    /// Whether everything was handed over.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Ready when the response may send its next quantum, with the body bytes it may carry. `None`:
    /// no more are left.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<u32>>> {
        if let Some(reading) = &mut self.reading {
            self.ahead = ready!(reading.as_mut().poll(context))?;
            self.reading = None;
        }
        if self.complete {
            return Poll::Ready(Ok(None));
        }
        let overhead = self.framing.head_bytes + self.framing.chunk_bytes;
        let mut bytes_max = match &mut self.pace {
            None => u32::MAX,
            Some(pace) if self.grant.is_some() => pace.piece_bytes(),
            Some(pace) => ready!(pace.poll_due(context)),
        };
        if let Content::Relayed(relayed) = &mut self.content {
            // The head may leave before its body has arrived.
            let at_hand = match self.framing.head_bytes {
                0 => ready!(relayed.poll_at_hand(context))?,
                _ => Some(relayed.at_hand()),
            };
            let Some(at_hand) = at_hand else {
                return Poll::Ready(Ok(None));
            };
            bytes_max = bytes_max.min(u32::try_from(at_hand).unwrap_or(u32::MAX));
        }
        if bytes_max < u32::MAX && self.grant.is_none() {
            self.job.offer(bytes_max.saturating_add(overhead));
        }
        let grant = match self.grant {
            Some(grant) => grant,
            None => {
                let grant = ready!(self.job.poll_grant(context));
                self.account.granted();
                *self.grant.insert(grant)
            }
        };
        let granted = match grant.bytes {
            u32::MAX => self.unscheduled_bytes(),
            bytes => bytes.saturating_sub(overhead).max(CHUNK_BYTES_MIN),
        };
        Poll::Ready(Ok(Some(granted.min(bytes_max))))
    }

    /// Ready when the head and the first chunk may leave together: granted, and in memory. A head
    /// that leaves while its body is still being read costs an extra packet, and the body another
    /// turn. Only a backend's head does not wait for its body, which may take long.
    pub fn poll_start(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let bytes_max = ready!(self.poll_ready(context))?.unwrap_or(0);
            if self.is_in_memory(bytes_max)? {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// The next piece of the body, at most `bytes_max` and what is granted, or its trailers.
    /// `None`: the whole body has left.
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

    /// Lets a head leave without a body. It uses up the grant.
    pub fn start(&mut self) {
        let alone = match &self.content {
            Content::Segments(_) => self.remaining_bytes == Some(0),
            Content::Relayed(relayed) => relayed.at_hand() == 0,
        };
        if alone {
            self.hand_over(0);
        }
    }

    /// Gives back a grant that cannot be used now. Others go first until this response asks again.
    pub fn decline(&mut self) {
        if self.grant.take().is_some() {
            self.job.decline();
        }
    }

    fn hand_over(&mut self, body_bytes: u32) {
        let head_bytes = std::mem::take(&mut self.framing.head_bytes);
        self.grant = None;
        if let Some(pace) = &mut self.pace {
            pace.leave(body_bytes);
        }
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

    /// Ends a body whose length only the end told. Returns its trailers, if any.
    fn end(&mut self) -> io::Result<Option<HeaderMap>> {
        if self.remaining_bytes.is_some() {
            // Fewer bytes came than were promised.
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

    /// Whether the next bytes are in memory, or in a pipe. If not, starts to read them and declines the grant.
    fn is_in_memory(&mut self, bytes_max: u32) -> io::Result<bool> {
        let Some((file, offset, len)) = self.content.first_file() else {
            return Ok(true);
        };
        if !self.ahead.is_empty() {
            return Ok(true);
        }
        if file.in_memory().is_some() {
            // A slice of it: nothing is copied.
            let kept = file.read_now(offset, len as usize)?;
            self.ahead = kept.ok_or(io::ErrorKind::UnexpectedEof)?;
            return Ok(true);
        }
        let file = Arc::clone(file);
        let length = len.min(self.read_bytes(bytes_max) as u64) as usize;
        let at_hand = match self.pipe(&file, len) {
            Some(piped) => file.promise(offset, length, &piped),
            None => Err(NotMoved::Refused),
        };
        let length = length.min(READ_BYTES as usize);
        let at_hand = match at_hand {
            Ok(promise) => Some(promise),
            Err(NotMoved::NotAtHand) => None,
            Err(NotMoved::Refused) => {
                let disk = &self.account.connection().settings.disk;
                let read = file.read_now(offset, length);
                read.inspect_err(|error| disk.log(error))?
            }
        };
        match at_hand {
            Some(bytes) => {
                self.ahead = bytes;
                Ok(true)
            }
            None => {
                self.read_from_disk(file, offset, length);
                Ok(false)
            }
        }
    }

    /// The pipe through which the next `len` bytes of `file` may pass: they are many, not kept in memory, and neither frames nor TLS come
    /// around them.
    fn pipe(&mut self, file: &OpenFile, len: u64) -> Option<Arc<Piped>> {
        let connection = self.account.connection();
        let is_plain = self.framing.chunk_bytes == 0 && !connection.secure;
        if let Piping::Untried = self.piping
            && is_plain
            && len >= PIPED_BYTES_MIN
            && file.kept_bytes() == 0
        {
            let pipe = || connection.settings.disk.pipe();
            let begun = connection.watch.begin_pipe(pipe);
            self.piping = begun.map_or(Piping::Never, Piping::Through);
        }
        match &self.piping {
            Piping::Through(piped) => Some(Arc::clone(piped)),
            Piping::Untried | Piping::Never => None,
        }
    }

    /// What to hand over at once where no grant limits it.
    fn unscheduled_bytes(&mut self) -> u32 {
        let Some((file, offset, len)) = self.content.first_file() else {
            return match &self.content {
                Content::Relayed(relayed) if relayed.is_piped() => PROMISE_BYTES_MAX,
                Content::Relayed(_) | Content::Segments(_) => READ_BYTES,
            };
        };
        if kernel_copy(file, len, self.framing.chunk_bytes > 0).is_none() {
            let file = Arc::clone(file);
            let is_piped = self.pipe(&file, len).is_some();
            return if is_piped {
                PROMISE_BYTES_MAX
            } else {
                READ_BYTES
            };
        }
        KernelCopy::piece_bytes(offset, len)
    }

    /// How much to read of a file on disk: a chunk of `bytes_max` and as many of whole grants as fit. What is
    /// over would leave alone, as a short chunk that costs a turn and a packet.
    fn read_bytes(&self, bytes_max: u32) -> usize {
        let granted = self.grant.map_or(0, |grant| grant.bytes);
        let following = granted.saturating_sub(self.framing.chunk_bytes);
        let following = following.max(CHUNK_BYTES_MIN) as usize;
        let first = bytes_max as usize;
        first + (READ_BYTES as usize).saturating_sub(first) / following * following
    }

    /// Up to `bytes_max` bytes, which must be in memory.
    fn next_chunk(&mut self, bytes_max: u32) -> io::Result<Bytes> {
        let framed = self.framing.chunk_bytes > 0;
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
                if let Some(copy) = kernel_copy(file, chunk.len() as u64, framed) {
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
        let read = self
            .account
            .read(file, offset, length, self.remaining_bytes);
        self.reading = Some(Box::pin(read));
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if let Piping::Through(piped) = &self.piping {
            piped.end();
        }
        if let Content::Relayed(relayed) = &self.content {
            self.account.backend_ended(relayed.ended_ns());
        }
    }
}

/// The kernel's copy of a file, if the socket may send it instead of the next `len` bytes: without frames or TLS
/// around them the socket gets the very bytes of the file.
fn kernel_copy(file: &OpenFile, len: u64, framed: bool) -> Option<&Arc<KernelCopy>> {
    let may = !framed && len >= KERNEL_COPY_BYTES_MIN as u64;
    may.then(|| file.in_kernel()).flatten()
}

impl Content {
    /// The length of the body, if known.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Self::Segments(segments) => Some(segments.iter().map(Segment::len).sum()),
            Self::Relayed(relayed) => relayed.remaining_bytes(),
        }
    }

    /// The file that its next bytes are of, from where, and how many.
    fn first_file(&self) -> Option<(&Arc<OpenFile>, u64, u64)> {
        let Self::Segments(segments) = self else {
            return None;
        };
        match segments.front()? {
            Segment::File { file, offset, len } => Some((file, *offset, *len)),
            Segment::Bytes(_) => None,
        }
    }

    /// The first piece of a file that is to be kept in memory and is not there yet: which, from where, and how long. What
    /// the page cache has of it is read on the way. Files that are not kept are read piece by piece as they are granted, so
    /// that those that wait take no memory.
    pub fn unread(&self) -> Option<(Arc<OpenFile>, u64, usize)> {
        let (file, offset, len) = self.first_file()?;
        if file.kept_bytes() == 0 || file.in_memory().is_some() {
            return None;
        }
        let length = usize::try_from(len).ok()?;
        let is_unread = matches!(file.read_now(offset, length), Ok(None));
        is_unread.then(|| (Arc::clone(file), offset, length))
    }

    /// Whether it is already known that nothing follows, not even trailers.
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
