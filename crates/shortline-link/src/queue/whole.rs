//! Responses that need no place in the queue: nobody waits who could go first, a grant is due, and it
//! covers all of the response. Any policy would take it next, and after that grant nothing of it is
//! left to order.
//!
//! So it is charged and gone: no entry in the scheduler, and the lock is not taken again when it ends.
//! In mode `bands` none is such: there a response has to say how urgent its connection is.

use std::sync::Arc;

use shortline_sched::{Client, JobId, PathView, QueueFull};

use super::{Charge, Length, Queue};
use crate::transport::Transport;

/// A response that was granted whole.
pub(crate) struct Whole {
    client: Client,
    arrival_ns: u64,
    length_bytes: u64,
    handed_over_bytes: u64,
    granted_bytes: u32,
    charge: Charge,
}

impl Whole {
    /// Payload bytes of its grant.
    pub fn granted_bytes(&self) -> u32 {
        self.granted_bytes
    }

    /// So many payload bytes are with its connection now.
    pub fn hand_over(&mut self, transport: &Transport, payload_bytes: u32) {
        if payload_bytes > 0 {
            transport.set_busy();
        }
        self.handed_over_bytes += u64::from(payload_bytes);
    }
}

impl Queue {
    /// Grants a response all of its `length` at once, if that is what the queue would do.
    pub fn grant_whole(
        &mut self,
        transport: &Arc<Transport>,
        client: Client,
        length: Length,
        now_ns: u64,
    ) -> Option<Whole> {
        let Length::Known(length_bytes) = length else {
            return None;
        };
        // What a client got while others are there counts, where the order goes by it.
        let ordered = self.regulator.regulates();
        let counted = ordered && self.scheduler.counts_clients() && !self.scheduler.is_empty();
        let banded = self.regulator.bands().is_some();
        if banded || counted || self.scheduler.waiting() > 0 || !transport.can_send() {
            return None;
        }
        let granted_bytes = self.quantum();
        let bytes = u32::try_from(length_bytes).ok()?;
        if bytes > granted_bytes || !self.regulator.is_due(now_ns) {
            return None;
        }
        if self.regulator.bounds_newcomers()
            && !self.newcomers.has_room(client.name, transport, now_ns)
        {
            return None;
        }
        transport.job_began();
        self.note_grant(transport, client.name, now_ns);
        Some(Whole {
            client,
            arrival_ns: now_ns,
            length_bytes,
            handed_over_bytes: 0,
            granted_bytes,
            charge: self.charge(transport, bytes, now_ns),
        })
    }

    /// The grant will not be used, or not all of it.
    pub fn cancel_whole(&mut self, transport: &Arc<Transport>, whole: &mut Whole) {
        let charge = std::mem::take(&mut whole.charge);
        self.cancel_charge(transport, charge.unwritten(transport));
    }

    /// A place for it in the queue after all: it has declined its grant, or has more to send than it said.
    pub fn submit_whole(
        &mut self,
        transport: &Arc<Transport>,
        whole: &Whole,
        path: Option<PathView>,
    ) -> Result<JobId, QueueFull> {
        let length = Length::Known(whole.length_bytes);
        let id = self.submit(transport, whole.client, length, path, whole.arrival_ns)?;
        // It was one of the connection's before.
        transport.job_ended();
        self.scheduler.record(id, whole.handed_over_bytes);
        self.job_mut(id).charge = whole.charge;
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::{IpAddr, Ipv4Addr};
    use std::task::{Context, Poll, Waker};

    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::{JobHandle, Link, LinkConfig, LinkMode, TransportHandle, client_at};

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
        let (_, socket) = listener.accept().await.unwrap().0.into_split();
        let transport = link.transport(Box::new(socket), here, here);
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
        let queue = link.queue.lock();
        (queue.scheduler.len(), queue.charged_total)
    }

    #[tokio::test]
    async fn a_response_of_one_grant_needs_no_place_where_nobody_waits() {
        let (link, transport, _client) = link_and_connection(1).await;
        let mut job = submit(&transport, 500);
        assert!(transport.carries_jobs());
        assert_eq!(granted(&mut job), Some(QUANTUM));
        assert_eq!(held_and_charged(&link), (0, CHARGE));
        job.finish(500);
        drop(job);
        assert!(!transport.carries_jobs());
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
        assert!(!transport.carries_jobs());
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
        assert!(!transport.carries_jobs());
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
        assert!(!transport.carries_jobs());
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
