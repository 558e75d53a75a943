//! The handle of a job: what a response asks of the link, and tells it, until it ends.
//!
//! A response that was granted whole as it came ([`Whole`]) takes the queue's lock no more unless
//! it goes astray: is declined, sends more than it said, or is aborted.

use std::task::{Context, Poll};

use shortline_base::clock::now_ns;
use shortline_sched::{Client, JobId, QueueFull};

use super::link::State;
use super::transport::TransportHandle;
use crate::connections::ConnectionId;
use crate::queue::{Length, Queue, Whole};

/// Leave to hand over up to so many payload bytes, framing and head included. [`u32::MAX`] to a job that is not
/// scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Payload bytes of the connection.
    pub bytes: u32,
}

/// An unscheduled job may send all it has.
const UNSCHEDULED: Grant = Grant { bytes: u32::MAX };

/// A response on the link, until it is dropped.
pub struct JobHandle(Option<Scheduled>);

struct Scheduled {
    transport: TransportHandle,
    connection: ConnectionId,
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
        let Some(connection) = self.id() else {
            return Ok(JobHandle::unscheduled());
        };
        let link = self.link();
        let now_ns = now_ns();
        let path = link.path(self.kernel(), false);
        let slots_arrived = self.slots_arrived();
        let mut state = link.state.lock();
        let State { queue, sockets } = &mut *state;
        queue.release_last_response(connection, slots_arrived);
        if let Some(whole) = queue.grant_whole(connection, client, length, sockets, now_ns) {
            link.leave(state, now_ns);
            let granted_bytes = Some(whole.granted_bytes());
            return Ok(self.job(connection, Place::Whole(whole), granted_bytes));
        }
        let submitted = queue.submit(connection, client, length, path, now_ns);
        let job = submitted.map(|id| {
            queue.dispatch(sockets, now_ns);
            (Place::Queued(id), queue.take_grant(id))
        });
        link.leave(state, now_ns);
        job.map(|(place, granted_bytes)| self.job(connection, place, granted_bytes))
    }

    /// A job with the grant that it was given at once, if it was.
    fn job(&self, connection: ConnectionId, place: Place, granted_bytes: Option<u32>) -> JobHandle {
        JobHandle(Some(Scheduled {
            transport: self.clone(),
            connection,
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

    /// Whether it waits for grants at all.
    pub fn is_scheduled(&self) -> bool {
        self.0.is_some()
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
            let mut state = job.transport.link().state.lock();
            state.queue.offer(id, payload_bytes);
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
                let mut state = job.transport.link().state.lock();
                state.queue.hand_over(*id, payload_bytes);
            }
            Place::Whole(whole) => whole.hand_over(job.transport.marks(), payload_bytes),
        }
    }

    /// As [`Self::hand_over`], with the last bytes of the response, or none where all are out: the
    /// job ends with them.
    pub fn finish(&mut self, payload_bytes: u32) {
        let Some(job) = self.0.take() else {
            return;
        };
        let transport = &job.transport;
        match job.place {
            Place::Queued(id) => change_queue(transport, |queue| {
                queue.hand_over(id, payload_bytes);
                queue.complete(id);
                queue.remove(id);
            }),
            Place::Whole(mut whole) => {
                whole.hand_over(transport.marks(), payload_bytes);
                transport.marks().whole_ended();
            }
        }
        let link = transport.link();
        link.correct_by_socket(job.connection, transport.kernel());
    }

    /// The grant just taken cannot be used now; the next [`Self::poll_grant`] asks again.
    pub fn decline(&mut self) {
        if let Some(job) = &mut self.0 {
            job.granted_bytes = None;
            job.asks = false;
            let connection = job.connection;
            change_queue(&job.transport, |queue| match &mut job.place {
                Place::Queued(id) => queue.decline(*id),
                Place::Whole(whole) => queue.cancel_whole(connection, whole),
            });
        }
    }
}

impl Drop for JobHandle {
    fn drop(&mut self) {
        let Some(job) = self.0.take() else {
            return;
        };
        let transport = &job.transport;
        change_queue(transport, |queue| match job.place {
            Place::Queued(id) => {
                queue.remove(id);
            }
            Place::Whole(mut whole) => {
                queue.cancel_whole(job.connection, &mut whole);
                transport.marks().whole_ended();
            }
        });
        let link = transport.link();
        link.correct_by_socket(job.connection, transport.kernel());
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
            .then(|| link.path(self.transport.kernel(), true))
            .flatten();
        let mut state = link.state.lock();
        let State { queue, sockets } = &mut *state;
        if let Some(bytes) = queue.take_grant(id) {
            return Ok(Some(bytes));
        }
        let now_ns = now_ns();
        queue.want(id, path, now_ns);
        queue.dispatch(sockets, now_ns);
        let granted = queue.take_grant(id);
        if granted.is_none() {
            queue.job_mut(id).waker = Some(context.waker().clone());
        }
        link.leave(state, now_ns);
        Ok(granted)
    }

    /// Its place in the queue: that of a job granted whole, from now on.
    fn enter_queue(&mut self) -> Result<JobId, QueueFull> {
        let id = match &self.place {
            Place::Queued(id) => *id,
            Place::Whole(whole) => {
                let link = self.transport.link();
                let path = link.path(self.transport.kernel(), true);
                let mut state = link.state.lock();
                state.queue.submit_whole(self.connection, whole, path)?
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use std::task::Waker;

    use shortline_base::socket::Halves;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::{Link, LinkConfig, LinkMode, client_at};

    const QUANTUM: u32 = 1448;
    /// What 500 payload bytes cost on the wire.
    const CHARGE: u64 = 500 + 52 + 14;

    fn client() -> Client {
        client_at(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// A link of one slot, a connection on it, and what keeps that open.
    async fn link_and_connection(jobs_max: usize) -> (Arc<Link>, TransportHandle, TcpStream) {
        let link = Link::new(LinkConfig {
            mode: LinkMode::Slots,
            slots_max: 1,
            quantum_bytes: Some(QUANTUM),
            schedule_loopback: true,
            jobs_max,
            ..LinkConfig::default()
        });
        let link = link.unwrap();
        let (transport, client) = connection(&link).await;
        (link, transport, client)
    }

    async fn connection(link: &Arc<Link>) -> (TransportHandle, TcpStream) {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let listener = TcpListener::bind((here, 0)).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await;
        let ours = listener.accept().await.unwrap().0.into_std().unwrap();
        let socket = Halves::from(ours).sending;
        let transport = link.transport(socket, here, here);
        (transport, client.unwrap())
    }

    fn submit(transport: &TransportHandle, bytes: u64) -> JobHandle {
        transport.submit(client(), Length::Known(bytes)).unwrap()
    }

    fn granted(job: &mut JobHandle) -> Option<u32> {
        match job.poll_grant(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(grant) => Some(grant.bytes),
            Poll::Pending => None,
        }
    }

    /// Jobs in the queue, and wire bytes charged.
    fn held_and_charged(link: &Link) -> (usize, u64) {
        let queue = &link.state.lock().queue;
        (queue.scheduler.len(), queue.charged_total)
    }

    fn carries_jobs(transport: &TransportHandle) -> bool {
        let id = transport.id().unwrap();
        let queue = &transport.link().state.lock().queue;
        queue.connections.of(id).carries_jobs()
    }

    #[tokio::test]
    async fn a_response_of_one_grant_needs_no_place_where_nobody_waits() {
        let (link, transport, _client) = link_and_connection(1).await;
        let mut job = submit(&transport, 500);
        assert!(carries_jobs(&transport));
        assert_eq!(granted(&mut job), Some(QUANTUM));
        assert_eq!(held_and_charged(&link), (0, CHARGE));
        job.finish(500);
        drop(job);
        assert!(!carries_jobs(&transport));
        assert!(!transport.can_send(), "its bytes are with the connection");
        transport.drained();
        assert_eq!(held_and_charged(&link), (0, CHARGE));
    }

    #[tokio::test]
    async fn one_that_would_have_to_wait_or_needs_more_grants_queues() {
        let (link, transport, _client) = link_and_connection(4).await;
        let (other, _other_client) = connection(&link).await;
        let _large = submit(&transport, 100_000);
        assert_eq!(held_and_charged(&link).0, 1, "more than a quantum");
        let _small = submit(&other, 500);
        assert_eq!(held_and_charged(&link).0, 2, "the slot is taken");
        let (link, transport, _client) = link_and_connection(4).await;
        submit(&transport, 500).finish(500);
        let _next = submit(&transport, 500);
        assert_eq!(held_and_charged(&link).0, 1, "its connection is busy");
        let (other, _other_client) = connection(&link).await;
        let _unknown = other.submit(client(), Length::Unknown).unwrap();
        assert_eq!(held_and_charged(&link).0, 2);
    }

    #[tokio::test]
    async fn an_aborted_one_is_not_charged() {
        let (link, transport, _client) = link_and_connection(1).await;
        drop(submit(&transport, 500));
        assert_eq!(held_and_charged(&link), (0, 0));
        assert!(!carries_jobs(&transport));
    }

    #[tokio::test]
    async fn a_declined_one_waits_its_turn_in_the_queue() {
        let (link, transport, _client) = link_and_connection(1).await;
        let mut job = submit(&transport, 500);
        assert_eq!(granted(&mut job), Some(QUANTUM));
        job.decline();
        assert_eq!(held_and_charged(&link), (0, 0));
        assert_eq!(granted(&mut job), Some(QUANTUM));
        assert_eq!(held_and_charged(&link), (1, CHARGE));
        job.finish(500);
        assert_eq!(held_and_charged(&link), (0, CHARGE));
        assert!(!carries_jobs(&transport));
    }

    #[tokio::test]
    async fn one_that_sends_more_than_it_said_goes_on_in_the_queue() {
        let (link, transport, _client) = link_and_connection(1).await;
        let mut job = submit(&transport, 500);
        assert_eq!(granted(&mut job), Some(QUANTUM));
        job.hand_over(600);
        transport.drained();
        assert!(granted(&mut job).is_some());
        assert_eq!(held_and_charged(&link).0, 1);
        job.finish(100);
        assert_eq!(held_and_charged(&link).0, 0);
        assert!(!carries_jobs(&transport));
    }

    #[tokio::test]
    async fn one_that_finds_the_queue_full_later_goes_on_without() {
        let (link, transport, _client) = link_and_connection(1).await;
        let mut job = submit(&transport, 500);
        job.decline();
        let _large = submit(&transport, 100_000);
        assert!(granted(&mut job).is_some());
        job.finish(500);
        assert_eq!(held_and_charged(&link).0, 1);
    }
}
