//! What an aborted job gives back: its own charge, and nothing of the other streams of its
//! connection. In virtual time; the sockets only lend their name.

#![allow(clippy::unwrap_used)]
use std::future::poll_fn;
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use shortline_base::socket::HangUp;
use socket2::SockRef;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::qdisc::{Band, DeviceBands, Kind, Traffic};
use crate::regulator::{FEW_MAX, PACED_UNSENT_BYTES_MAX, UNSENT_BYTES_MAX};
use crate::{Link, TransportHandle};

mod newcomers;

const SECOND: u64 = 1_000_000_000;
/// Payload bytes of a grant: one packet, on the loopback interface too.
const QUANTUM: u32 = 1448;
/// The same with its headers.
const CHARGE: u64 = 1448 + 52 + 14;

/// A queue in `mode`, a connection, and what keeps it open.
async fn queue_and_connection(mode: LinkMode) -> (Queue, TransportHandle, TcpStream) {
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
        .transport(Box::new(socket), here, here);
    (Queue::new(&config, None, 0), transport, client)
}

fn client() -> Client {
    crate::client_at(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Submits a job and grants it a quantum.
fn granted(queue: &mut Queue, transport: &TransportHandle, now_ns: u64) -> JobId {
    let id = queue
        .submit(
            transport.shared(),
            client(),
            Length::Known(1_000_000),
            None,
            now_ns,
        )
        .unwrap();
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
async fn a_connection_that_breaks_after_its_response_was_handed_over_owes_nothing() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Paced).await;
    let id = granted(&mut queue, &transport, SECOND);
    queue.hand_over(id, QUANTUM);
    queue.complete(id);
    queue.remove(id);
    assert_eq!(unwritten(&transport), CHARGE, "the protocol has the bytes");
    queue.transport_ended(transport.shared());
    assert_eq!((unwritten(&transport), queue.charged_total), (0, 0));
    assert_eq!(queue.regulator.unwritten_bytes(), 0);
}

#[tokio::test]
async fn an_abort_that_has_nothing_unwritten_cancels_nothing() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Paced).await;
    let written = granted(&mut queue, &transport, SECOND);
    queue.hand_over(written, QUANTUM);
    transport.drained();
    let other = granted(&mut queue, &transport, 2 * SECOND);
    queue.hand_over(other, QUANTUM);
    let waiting = queue
        .submit(
            transport.shared(),
            client(),
            Length::Known(2_000_000),
            None,
            2 * SECOND,
        )
        .unwrap();
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
    queue.transport_blocked(transport.shared());
    assert_eq!(queue.charged_total, 0);
    queue.remove(aborted);
    queue.transport_drained(transport.shared(), SECOND);
    assert_eq!(queue.charged_total, CHARGE);
}

#[tokio::test]
async fn an_abort_frees_its_own_slot_only() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Slots).await;
    let aborted = granted(&mut queue, &transport, SECOND);
    let other = granted(&mut queue, &transport, SECOND);
    queue.hand_over(other, QUANTUM);
    queue.remove(aborted);
    assert_eq!(queue.regulator.slots_held(), Some(1));
}

/// The charge of a grant not used yet counts as written when the connection drains: it must not be
/// taken from what others are charged afterwards.
#[tokio::test]
async fn an_abort_after_a_drain_leaves_later_charges() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Paced).await;
    let aborted = granted(&mut queue, &transport, SECOND);
    queue.transport_drained(transport.shared(), SECOND);
    let other = granted(&mut queue, &transport, 2 * SECOND);
    queue.hand_over(other, QUANTUM);
    queue.remove(aborted);
    assert_eq!(unwritten(&transport), CHARGE);
}

/// A queue in mode `bands` on a device whose bands have the priorities 0 to 5, a connection, and
/// what keeps it open.
async fn banded_queue_and_connection() -> (Queue, TransportHandle, TcpStream) {
    let (_, transport, client) = queue_and_connection(LinkMode::Slots).await;
    let band = |band: u32| Band {
        name: band.to_string(),
        priority: band,
        traffic: Traffic::default(),
    };
    let device = DeviceBands {
        device: "d0".to_owned(),
        kind: Kind::Prio,
        bands: (0..6).map(band).collect(),
        unset: Some(0),
        traffic: Traffic::default(),
    };
    let config = LinkConfig {
        mode: LinkMode::Bands,
        policy: "bands".parse().unwrap(),
        ..LinkConfig::default()
    };
    let map = BandMap::of(&device, &config).unwrap();
    (
        Queue::new(&config, Some(Arc::new(map)), 0),
        transport,
        client,
    )
}

fn descriptor(transport: &Transport) -> BorrowedFd<'_> {
    match transport.socket().hang_up() {
        HangUp::Ask(descriptor) => descriptor,
        HangUp::Known(_) => panic!("no kernel's socket"),
    }
}

fn priority(transport: &Transport) -> u32 {
    SockRef::from(&descriptor(transport)).priority().unwrap()
}

#[tokio::test]
async fn a_connection_moves_to_another_band_as_its_response_shrinks() {
    let (mut queue, transport, _client) = banded_queue_and_connection().await;
    assert_eq!(priority(&transport), 0, "before the first response");
    let id = queue
        .submit(transport.shared(), client(), Length::Known(60_000), None, 0)
        .unwrap();
    let mut seen = Vec::new();
    for _ in 0..8 {
        queue.dispatch(0);
        assert_eq!(queue.take_grant(id), Some(BANDS_QUANTUM_BYTES));
        seen.push(priority(&transport));
        queue.hand_over(id, 8000);
        transport.drained();
        queue.want(id, None, 0);
    }
    // 60 and 52 KB, then 44 to 12, and 4 at the end.
    assert_eq!(seen, [5, 5, 4, 4, 4, 4, 4, 3]);
    assert_eq!(queue.band_changes_total, 3, "no call but for a change");
    assert_eq!(queue.charged_total, 0);
}

#[tokio::test]
async fn a_connection_of_several_responses_has_the_band_of_the_most_urgent() {
    let (mut queue, transport, _client) = banded_queue_and_connection().await;
    let large = queue
        .submit(
            transport.shared(),
            client(),
            Length::Known(1_000_000),
            None,
            0,
        )
        .unwrap();
    queue.dispatch(0);
    assert_eq!(priority(&transport), 5);
    // What the large one sends stands before the small one, which makes it urgent.
    queue.hand_over(large, BANDS_QUANTUM_BYTES);
    let small = queue
        .submit(transport.shared(), client(), Length::Known(500), None, 0)
        .unwrap();
    queue.dispatch(0);
    assert_eq!((priority(&transport), queue.take_grant(small)), (1, None));
    queue.transport_drained(transport.shared(), SECOND);
    transport.drained();
    queue.want(large, None, 0);
    queue.dispatch(0);
    assert!(queue.take_grant(small).is_some() && queue.take_grant(large).is_some());
    assert_eq!(priority(&transport), 1, "both may send, the small one too");
    queue.hand_over(small, 500);
    queue.remove(small);
    transport.drained();
    queue.hand_over(large, BANDS_QUANTUM_BYTES);
    transport.drained();
    queue.want(large, None, 0);
    queue.dispatch(0);
    assert_eq!(priority(&transport), 5);
    assert_eq!(queue.band_changes_total, 3);
}

#[tokio::test]
async fn no_more_than_so_many_writers_write_and_a_full_write_frees_them() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Writers).await;
    for now_ns in 1..=3 {
        granted(&mut queue, &transport, now_ns);
    }
    let waiting = queue
        .submit(
            transport.shared(),
            client(),
            Length::Known(1_000_000),
            None,
            4,
        )
        .unwrap();
    assert!(queue.dispatch(4).is_some(), "to be looked at again");
    assert_eq!(queue.take_grant(waiting), None);
    queue.transport_drained(transport.shared(), SECOND);
    assert_eq!(queue.dispatch(5), None);
    assert_eq!(queue.take_grant(waiting), Some(QUANTUM));
}

#[tokio::test]
async fn a_response_of_unknown_length_ranks_by_the_bytes_it_has_sent() {
    for (known_bytes, unknown_first) in [(40_000, false), (60_000, true)] {
        let (mut queue, one, _client) = queue_and_connection(LinkMode::Paced).await;
        let (_, other, _other_client) = queue_and_connection(LinkMode::Paced).await;
        let unknown = queue
            .submit(one.shared(), client(), Length::Unknown, None, 0)
            .unwrap();
        queue.hand_over(unknown, 50_000);
        one.drained();
        queue
            .submit(
                other.shared(),
                client(),
                Length::Known(known_bytes),
                None,
                0,
            )
            .unwrap();
        let first = queue.scheduler.peek(0).unwrap();
        assert_eq!(
            first == unknown,
            unknown_first,
            "beside {known_bytes} bytes"
        );
    }
}

#[tokio::test]
async fn a_response_of_unknown_length_ends_where_it_says() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Paced).await;
    let id = queue
        .submit(transport.shared(), client(), Length::Unknown, None, SECOND)
        .unwrap();
    queue.dispatch(SECOND);
    assert_eq!(queue.take_grant(id), Some(QUANTUM));
    queue.hand_over(id, QUANTUM);
    queue.complete(id);
    let charged = queue.charged_total;
    let job = queue.remove(id).unwrap();
    assert_eq!((job.work_done, job.remaining()), (u64::from(QUANTUM), 0));
    assert_eq!(queue.charged_total, charged, "nothing of it was aborted");
}

#[tokio::test]
async fn a_grant_is_for_what_is_at_hand() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Paced).await;
    let id = queue
        .submit(
            transport.shared(),
            client(),
            Length::Known(1_000_000),
            None,
            SECOND,
        )
        .unwrap();
    queue.offer(id, 100);
    queue.dispatch(SECOND);
    assert_eq!(queue.take_grant(id), Some(100));
    assert_eq!(queue.charged_total, 100 + 52 + 14);
}

#[tokio::test]
async fn a_connection_keeps_little_unsent_only_while_a_found_rate_paces_it() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Auto).await;
    let mark = |transport: &Transport| SockRef::from(&descriptor(transport)).tcp_notsent_lowat();
    queue.pace(Pacing::Rate(Rate::from_bps(8_000_000)), SECOND);
    granted(&mut queue, &transport, SECOND);
    assert_eq!(mark(&transport).unwrap(), PACED_UNSENT_BYTES_MAX);
    queue.pace(Pacing::Free, SECOND);
    granted(&mut queue, &transport, SECOND);
    assert_eq!(mark(&transport).unwrap(), UNSENT_BYTES_MAX);
}

#[tokio::test]
async fn what_waited_for_a_rate_is_not_let_go_all_at_once() {
    let (mut queue, transport, _client) = queue_and_connection(LinkMode::Auto).await;
    queue.pace(Pacing::Free, SECOND);
    assert!(!queue.regulator.regulates(), "nothing ever waited");
    queue.pace(Pacing::Rate(Rate::from_bps(8_000)), SECOND);
    for _ in 0..2 * FEW_MAX {
        queue
            .submit(
                transport.shared(),
                client(),
                Length::Known(1_000_000),
                None,
                SECOND,
            )
            .unwrap();
    }
    queue.dispatch(SECOND);
    let before = queue.grants_total;
    queue.pace(Pacing::Free, SECOND);
    assert!(matches!(&queue.regulator, Regulator::Slots(slots) if slots.is_patient()));
    queue.dispatch(SECOND);
    assert_eq!(queue.grants_total - before, FEW_MAX as u64);
    queue.pace(Pacing::Slots, SECOND);
    assert!(matches!(&queue.regulator, Regulator::Slots(slots) if !slots.is_patient()));
}

/// A client whose connection ended without a word from its protocol waited for that as long as discovery, which sleeps
/// while nothing is sent, watched the connection.
#[tokio::test]
async fn the_end_of_a_connection_is_told_though_somebody_still_watches_it() {
    let (_queue, transport, mut client) = queue_and_connection(LinkMode::Auto).await;
    let watched = Arc::clone(transport.shared());
    transport.end();
    drop(transport);
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    drop(watched);
}
