//! The handle of a job: what a response asks of the link, and tells it, until it ends.
//!
//! A response that was granted whole as it came ([`Whole`]) takes the queue's lock no more unless
//! it goes astray: is declined, sends more than it said, or is aborted.

use std::task::{Context, Poll};

use shortline_sched::{Client, JobId, QueueFull};

use crate::queue::{Length, Queue, Whole};
use crate::transport_handle::TransportHandle;
use shortline_base::clock::now_ns;

/// Leave to hand over up to so many payload bytes, framing and head included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Payload bytes of the connection.
    pub bytes: u32,
}

/// What an unscheduled job may send at once: twice as fast as writes of 256 KiB.
const UNSCHEDULED: Grant = Grant { bytes: 64 * 1024 };

/// A response on the link, until it is dropped.
pub struct JobHandle(Option<Scheduled>);

struct Scheduled {
    transport: TransportHandle,
    place: Place,
    /// Granted as the job was submitted, and not yet taken.
    granted_bytes: Option<u32>,
    /// It has asked for a grant that it has not taken.
    asks: bool,
}

enum Place {
    Queued(JobId),
    Whole(Whole),
}

impl TransportHandle {
    /// A response of `length` (head, framing and body) wants to leave on this connection, for `client`.
    ///
    /// # Errors
    /// [`QueueFull`]: as many wait as may.
    pub fn submit(&self, client: Client, length: Length) -> Result<JobHandle, QueueFull> {
        if !self.is_scheduled() {
            return Ok(JobHandle::unscheduled());
        }
        let (link, transport) = (self.link(), self.shared());
        let now_ns = now_ns();
        let path = link.path(transport, false);
        let mut queue = link.queue.lock();
        queue.release_last_response(transport);
        if let Some(whole) = queue.grant_whole(transport, client, length, now_ns) {
            link.leave_queue(queue, now_ns, None);
            let granted_bytes = Some(whole.granted_bytes());
            return Ok(self.job(Place::Whole(whole), granted_bytes));
        }
        let id = queue.submit(transport, client, length, path, now_ns)?;
        let look_again_ns = queue.dispatch(now_ns);
        let granted_bytes = queue.take_grant(id);
        link.leave_queue(queue, now_ns, look_again_ns);
        Ok(self.job(Place::Queued(id), granted_bytes))
    }

    /// A job with the grant that it was given at once, if it was.
    fn job(&self, place: Place, granted_bytes: Option<u32>) -> JobHandle {
        JobHandle(Some(Scheduled {
            transport: self.clone(),
            place,
            granted_bytes,
            asks: true,
        }))
    }
}

impl JobHandle {
    /// A response that waits for nobody, such as the one that says the queue is full.
    pub fn unscheduled() -> Self {
        Self(None)
    }

    /// Ready when the job may hand bytes over. Asks for a grant if none was asked for yet.
    pub fn poll_grant(&mut self, context: &mut Context<'_>) -> Poll<Grant> {
        let Some(job) = &mut self.0 else {
            return Poll::Ready(UNSCHEDULED);
        };
        let granted = match job.granted_bytes.take() {
            Some(bytes) => Some(bytes),
            None => match job.ask(context) {
                Ok(granted) => granted,
                Err(QueueFull { .. }) => {
                    // It was granted whole once: what is left of it is little.
                    *self = Self::unscheduled();
                    return Poll::Ready(UNSCHEDULED);
                }
            },
        };
        job.asks = granted.is_none();
        granted.map_or(Poll::Pending, |bytes| Poll::Ready(Grant { bytes }))
    }

    /// The response has so many payload bytes to hand over now and waits for more to be made: its
    /// next grant is for these. Without a word it has all that it has left.
    pub fn offer(&mut self, payload_bytes: u32) {
        if let Some(job) = &mut self.0
            && job.granted_bytes.is_none()
            && let Ok(id) = job.enter_queue()
        {
            let mut queue = job.transport.link().queue.lock();
            queue.offer(id, payload_bytes);
        }
    }

    /// `payload_bytes` of the grant just taken go to the connection now. They may be more or
    /// fewer than granted: framing, or the end of the response.
    pub fn hand_over(&mut self, payload_bytes: u32) {
        let Some(job) = &mut self.0 else {
            return;
        };
        match &mut job.place {
            Place::Queued(id) => {
                let mut queue = job.transport.link().queue.lock();
                queue.hand_over(*id, payload_bytes);
            }
            Place::Whole(whole) => whole.hand_over(job.transport.shared(), payload_bytes),
        }
    }

    /// As [`Self::hand_over`], with the last bytes of the response, or none where all are out: the
    /// job ends with them.
    pub fn finish(&mut self, payload_bytes: u32) {
        let Some(Scheduled {
            transport, place, ..
        }) = self.0.take()
        else {
            return;
        };
        match place {
            Place::Queued(id) => change_queue(&transport, |queue| {
                queue.hand_over(id, payload_bytes);
                queue.complete(id);
                queue.remove(id);
            }),
            Place::Whole(mut whole) => {
                whole.hand_over(transport.shared(), payload_bytes);
                transport.job_ended();
            }
        }
        transport.link().correct_by_socket(&transport);
    }

    /// The grant just taken cannot be used now; the next [`Self::poll_grant`] asks again.
    pub fn decline(&mut self) {
        if let Some(job) = &mut self.0 {
            job.granted_bytes = None;
            job.asks = false;
            let Scheduled {
                transport, place, ..
            } = job;
            change_queue(transport, |queue| match place {
                Place::Queued(id) => queue.decline(*id),
                Place::Whole(whole) => queue.cancel_whole(transport.shared(), whole),
            });
        }
    }
}

impl Drop for JobHandle {
    fn drop(&mut self) {
        let Some(Scheduled {
            transport, place, ..
        }) = self.0.take()
        else {
            return;
        };
        change_queue(&transport, |queue| match place {
            Place::Queued(id) => {
                queue.remove(id);
            }
            Place::Whole(mut whole) => {
                queue.cancel_whole(transport.shared(), &mut whole);
                transport.job_ended();
            }
        });
        transport.link().correct_by_socket(&transport);
    }
}

impl Scheduled {
    /// The grant, if it is there or due; else the waker is told when it is.
    ///
    /// # Errors
    /// [`QueueFull`] if the job had no place in the queue yet and there is none.
    fn ask(&mut self, context: &mut Context<'_>) -> Result<Option<u32>, QueueFull> {
        let id = self.enter_queue()?;
        let link = self.transport.link();
        // Once a quantum: a job that has asked before waits with what was seen then.
        let path = (!self.asks)
            .then(|| link.path(&self.transport, true))
            .flatten();
        let mut queue = link.queue.lock();
        if let Some(bytes) = queue.take_grant(id) {
            return Ok(Some(bytes));
        }
        let now_ns = now_ns();
        queue.want(id, path, now_ns);
        let look_again_ns = queue.dispatch(now_ns);
        let granted = queue.take_grant(id);
        if granted.is_none() {
            queue.job_mut(id).waker = Some(context.waker().clone());
        }
        link.leave_queue(queue, now_ns, look_again_ns);
        Ok(granted)
    }

    /// Its place in the queue: that of a job granted whole, from now on.
    fn enter_queue(&mut self) -> Result<JobId, QueueFull> {
        let id = match &self.place {
            Place::Queued(id) => *id,
            Place::Whole(whole) => {
                let link = self.transport.link();
                let path = link.path(&self.transport, true);
                link.queue
                    .lock()
                    .submit_whole(self.transport.shared(), whole, path)?
            }
        };
        self.place = Place::Queued(id);
        Ok(id)
    }
}

/// Changes the queue, then makes the grants that became due.
fn change_queue(transport: &TransportHandle, change: impl FnOnce(&mut Queue)) {
    transport.link().with_queue(now_ns(), change);
}
