//! What an aborted job gives back: its own charge, and nothing of the other streams of its
//! connection. In virtual time; the sockets only lend their name.

#![allow(clippy::unwrap_used)]
use std::net::{IpAddr, Ipv4Addr};

use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::Link;

const SECOND: u64 = 1_000_000_000;
/// Payload bytes of a grant: one packet, on the loopback interface too.
const QUANTUM: u32 = 1448;
/// The same with its headers.
const CHARGE: u64 = 1448 + 52 + 14;

/// A queue in `mode`, a connection, and what keeps it open.
async fn queue_and_connection(mode: LinkMode) -> (Queue, Arc<Transport>, TcpStream) {
    let config = LinkConfig {
        mode,
        rate: (mode == LinkMode::Paced).then(|| Rate::from_bps(8_000_000)),
        quantum_bytes: Some(QUANTUM),
        slots_max: 3,
        schedule_loopback: true,
        ..LinkConfig::default()
    };
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let listener = TcpListener::bind((here, 0)).await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (_, socket) = listener.accept().await.unwrap().0.into_split();
    let transport = Link::new(config.clone())
        .unwrap()
        .transport(socket, here, here);
    (Queue::new(&config, 0), transport, client)
}

/// Submits a job and grants it a quantum.
fn granted(queue: &mut Queue, transport: &Arc<Transport>, now_ns: u64) -> JobId {
    let id = queue.submit(transport, 1_000_000, now_ns).unwrap();
    queue.dispatch(now_ns);
    assert_eq!(queue.take_grant(id), Some(QUANTUM));
    id
}

fn unwritten(transport: &Transport) -> u64 {
    u64::from(transport.ledger.unwritten.load(Ordering::Acquire))
}

#[tokio::test]
async fn an_abort_cancels_its_own_grant_only() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Paced).await;
    let aborted = granted(&mut queue, &transport, SECOND);
    let other = granted(&mut queue, &transport, 2 * SECOND);
    queue.hand_over(other, QUANTUM);
    queue.remove(aborted);
    assert_eq!(
        (unwritten(&transport), queue.charged_total),
        (CHARGE, CHARGE)
    );
}

#[tokio::test]
async fn an_abort_cancels_its_own_bytes_in_the_connection_only() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Paced).await;
    let aborted = granted(&mut queue, &transport, SECOND);
    let other = granted(&mut queue, &transport, 2 * SECOND);
    queue.hand_over(aborted, QUANTUM);
    queue.hand_over(other, QUANTUM);
    queue.remove(aborted);
    assert_eq!(
        (unwritten(&transport), queue.charged_total),
        (CHARGE, CHARGE)
    );
    queue.remove(other);
    assert_eq!((unwritten(&transport), queue.charged_total), (0, 0));
}

#[tokio::test]
async fn an_abort_that_has_nothing_unwritten_cancels_nothing() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Paced).await;
    let written = granted(&mut queue, &transport, SECOND);
    queue.hand_over(written, QUANTUM);
    transport.drained();
    let other = granted(&mut queue, &transport, 2 * SECOND);
    queue.hand_over(other, QUANTUM);
    let waiting = queue.submit(&transport, 2_000_000, 2 * SECOND).unwrap();
    queue.remove(written);
    queue.remove(waiting);
    assert_eq!(
        (unwritten(&transport), queue.charged_total),
        (CHARGE, 2 * CHARGE)
    );
}

/// What was given back because the socket was full is charged again when it drains: but for what
/// was aborted meanwhile.
#[tokio::test]
async fn an_abort_on_a_full_socket_leaves_the_refunds_of_others() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Paced).await;
    let aborted = granted(&mut queue, &transport, SECOND);
    let other = granted(&mut queue, &transport, 2 * SECOND);
    queue.hand_over(aborted, QUANTUM);
    queue.hand_over(other, QUANTUM);
    queue.transport_blocked(&transport);
    assert_eq!(queue.charged_total, 0);
    queue.remove(aborted);
    queue.transport_drained(&transport);
    assert_eq!(queue.charged_total, CHARGE);
}

#[tokio::test]
async fn an_abort_frees_its_own_slot_only() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Slots).await;
    let aborted = granted(&mut queue, &transport, SECOND);
    let other = granted(&mut queue, &transport, SECOND);
    queue.hand_over(other, QUANTUM);
    queue.remove(aborted);
    let Gate::Slots(slots) = &queue.gate else {
        panic!("invariant: made for slots")
    };
    assert_eq!(slots.holders(), 1);
}

/// The charge of a grant not used yet counts as written when the connection drains: it must not be
/// taken from what others are charged afterwards.
#[tokio::test]
async fn an_abort_after_a_drain_leaves_later_charges() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Paced).await;
    let aborted = granted(&mut queue, &transport, SECOND);
    queue.transport_drained(&transport);
    let other = granted(&mut queue, &transport, 2 * SECOND);
    queue.hand_over(other, QUANTUM);
    queue.remove(aborted);
    assert_eq!(unwritten(&transport), CHARGE);
}
