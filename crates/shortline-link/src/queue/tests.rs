//! What an aborted job gives back: its own charge, and nothing of the other streams of its
//! connection. And bands, lengths, marks of unsent bytes. In virtual time, without a socket.

#![allow(clippy::unwrap_used)]
use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::bands;
use crate::connections::Report;
use crate::connections::testing::{FakeSockets, PACKETS};
use crate::regulator::{FEW_MAX, PACED_UNSENT_BYTES_MAX, UNSENT_BYTES_MAX};

mod newcomers;
mod properties;

const SECOND: u64 = 1_000_000_000;
/// Payload bytes of a grant: one packet.
const QUANTUM: u32 = 1448;
/// The same with its headers.
const CHARGE: u64 = 1448 + 52 + 14;

/// A queue, a connection, and what the queue last said to do.
struct Bed {
    queue: Queue,
    sockets: FakeSockets,
    id: ConnectionId,
    marks: Arc<Marks>,
    /// What the connection's socket was told last.
    priority: u32,
    unsent_bytes_max: u32,
}

impl Bed {
    fn new(mut queue: Queue) -> Self {
        let (id, marks) = queue.open(PACKETS, 0);
        Self {
            queue,
            sockets: FakeSockets::default(),
            id,
            marks,
            priority: 0,
            unsent_bytes_max: 0,
        }
    }

    fn of(mode: LinkMode) -> Self {
        let config = LinkConfig {
            mode,
            rate: (mode == LinkMode::Paced).then(|| Rate::from_bps(8_000_000)),
            quantum_bytes: Some(QUANTUM),
            slots_max: 3,
            ..LinkConfig::default()
        };
        Self::new(Queue::new(&config, None, 0))
    }

    /// In mode `bands` on a device whose bands have the priorities 100 to 105.
    fn banded() -> Self {
        let config = LinkConfig {
            mode: LinkMode::Bands,
            ..bands::testing::config("bands")
        };
        let map = BandMap::of(&bands::testing::device(6), &config).unwrap();
        Self::new(Queue::new(&config, Some(Arc::new(map)), 0))
    }

    fn submit(&mut self, length: Length, now_ns: u64) -> JobId {
        let id = self.queue.submit(self.id, client(), length, None, now_ns);
        id.unwrap()
    }

    /// Submits a large job.
    fn large(&mut self, now_ns: u64) -> JobId {
        self.submit(Length::Known(1_000_000), now_ns)
    }

    /// Makes the grants that are due. The delay after which to look again.
    fn dispatch(&mut self, now_ns: u64) -> Option<u64> {
        self.queue.dispatch(&self.sockets, now_ns);
        let actions = self.queue.take_actions().unwrap_or_default();
        for (id, setting) in actions.set {
            assert_eq!(id, self.id);
            match setting {
                Setting::Priority(priority) => self.priority = priority,
                Setting::UnsentBytesMax(bytes) => self.unsent_bytes_max = bytes,
            }
        }
        self.queue.take_look_again_ns()
    }

    /// Submits a large job and grants it a quantum.
    fn granted(&mut self, now_ns: u64) -> JobId {
        let id = self.large(now_ns);
        self.dispatch(now_ns);
        assert_eq!(self.queue.take_grant(id), Some(QUANTUM));
        id
    }

    /// The connection's bytes are in its socket, and it says so where somebody is to hear of it.
    fn written(&mut self, now_ns: u64) {
        if self.marks.drain(Report::IfAwaited) == Some(true) {
            self.queue.drained(self.id, now_ns);
        }
    }

    fn unwritten(&self) -> u64 {
        u64::from(self.queue.connections.of(self.id).unwritten())
    }

    fn unwritten_and_charged(&self) -> (u64, u64) {
        (self.unwritten(), self.queue.charged_total)
    }
}

fn client() -> Client {
    crate::client_at(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

#[test]
fn an_abort_cancels_its_own_grant_only() {
    let mut bed = Bed::of(LinkMode::Paced);
    let aborted = bed.granted(SECOND);
    let other = bed.granted(2 * SECOND);
    bed.queue.hand_over(other, QUANTUM);
    bed.queue.remove(aborted);
    assert_eq!(bed.unwritten_and_charged(), (CHARGE, CHARGE));
}

#[test]
fn an_abort_cancels_its_own_bytes_in_the_connection_only() {
    let mut bed = Bed::of(LinkMode::Paced);
    let aborted = bed.granted(SECOND);
    let other = bed.granted(2 * SECOND);
    bed.queue.hand_over(aborted, QUANTUM);
    bed.queue.hand_over(other, QUANTUM);
    bed.queue.remove(aborted);
    assert_eq!(bed.unwritten_and_charged(), (CHARGE, CHARGE));
    bed.queue.remove(other);
    assert_eq!(bed.unwritten_and_charged(), (0, 0));
}

#[test]
fn a_connection_that_breaks_after_its_response_was_handed_over_owes_nothing() {
    let mut bed = Bed::of(LinkMode::Paced);
    let id = bed.granted(SECOND);
    bed.queue.hand_over(id, QUANTUM);
    bed.queue.complete(id);
    bed.queue.remove(id);
    assert_eq!(bed.unwritten(), CHARGE, "the protocol has the bytes");
    assert!(bed.marks.is_charged());
    bed.queue.ended(bed.id);
    assert_eq!(bed.unwritten_and_charged(), (0, 0));
    assert!(!bed.marks.is_charged());
    assert_eq!(bed.queue.regulator.unwritten_bytes(), 0);
}

#[test]
fn an_abort_that_has_nothing_unwritten_cancels_nothing() {
    let mut bed = Bed::of(LinkMode::Paced);
    let written = bed.granted(SECOND);
    bed.queue.hand_over(written, QUANTUM);
    bed.written(SECOND);
    let other = bed.granted(2 * SECOND);
    bed.queue.hand_over(other, QUANTUM);
    let waiting = bed.submit(Length::Known(2_000_000), 2 * SECOND);
    bed.queue.remove(written);
    bed.queue.remove(waiting);
    assert_eq!(bed.unwritten_and_charged(), (CHARGE, 2 * CHARGE));
}

/// What was given back because the socket was full is charged again when it drains: but for what
/// was aborted meanwhile.
#[test]
fn an_abort_on_a_full_socket_leaves_the_refunds_of_others() {
    let mut bed = Bed::of(LinkMode::Paced);
    let aborted = bed.granted(SECOND);
    let other = bed.granted(2 * SECOND);
    bed.queue.hand_over(aborted, QUANTUM);
    bed.queue.hand_over(other, QUANTUM);
    bed.queue.blocked_by_socket(bed.id);
    assert_eq!(bed.queue.charged_total, 0);
    bed.queue.remove(aborted);
    bed.queue.drained(bed.id, SECOND);
    assert_eq!(bed.queue.charged_total, CHARGE);
}

#[test]
fn an_abort_frees_its_own_slot_only() {
    let mut bed = Bed::of(LinkMode::Slots);
    let aborted = bed.granted(SECOND);
    let other = bed.granted(SECOND);
    bed.queue.hand_over(other, QUANTUM);
    bed.queue.remove(aborted);
    assert_eq!(bed.queue.regulator.slots_held(), Some(1));
}

/// The charge of a grant not used yet counts as written when the connection drains: it must not be
/// taken from what others are charged afterwards.
#[test]
fn an_abort_after_a_drain_leaves_later_charges() {
    let mut bed = Bed::of(LinkMode::Paced);
    let aborted = bed.granted(SECOND);
    bed.queue.drained(bed.id, SECOND);
    let other = bed.granted(2 * SECOND);
    bed.queue.hand_over(other, QUANTUM);
    bed.queue.remove(aborted);
    assert_eq!(bed.unwritten(), CHARGE);
}

#[test]
fn a_connection_moves_to_another_band_as_its_response_shrinks() {
    let mut bed = Bed::banded();
    let id = bed.submit(Length::Known(60_000), 0);
    let mut seen = Vec::new();
    for _ in 0..8 {
        bed.dispatch(0);
        assert_eq!(bed.queue.take_grant(id), Some(BANDS_QUANTUM_BYTES));
        seen.push(bed.priority);
        bed.queue.hand_over(id, 8000);
        bed.written(0);
        bed.queue.want(id, None, 0);
    }
    // 60 and 52 KB, then 44 to 12, and 4 at the end.
    assert_eq!(seen, [105, 105, 104, 104, 104, 104, 104, 103]);
    assert_eq!(bed.queue.band_changes_total, 3, "no call but for a change");
    assert_eq!(bed.queue.charged_total, 0);
}

#[test]
fn a_connection_of_several_responses_has_the_band_of_the_most_urgent() {
    let mut bed = Bed::banded();
    let large = bed.large(0);
    bed.dispatch(0);
    assert_eq!(bed.priority, 105);
    // What the large one sends stands before the small one, which makes it urgent.
    bed.queue.hand_over(large, BANDS_QUANTUM_BYTES);
    let small = bed.submit(Length::Known(500), 0);
    bed.dispatch(0);
    assert_eq!((bed.priority, bed.queue.take_grant(small)), (101, None));
    bed.written(SECOND);
    bed.queue.want(large, None, 0);
    bed.dispatch(0);
    assert!(bed.queue.take_grant(small).is_some() && bed.queue.take_grant(large).is_some());
    assert_eq!(bed.priority, 101, "both may send, the small one too");
    bed.queue.hand_over(small, 500);
    bed.queue.remove(small);
    bed.written(SECOND);
    bed.queue.hand_over(large, BANDS_QUANTUM_BYTES);
    bed.written(SECOND);
    bed.queue.want(large, None, 0);
    bed.dispatch(0);
    assert_eq!(bed.priority, 105);
    assert_eq!(bed.queue.band_changes_total, 3);
}

#[test]
fn no_more_than_so_many_writers_write_and_a_full_write_frees_them() {
    let mut bed = Bed::of(LinkMode::Writers);
    for now_ns in 1..=3 {
        bed.granted(now_ns);
    }
    let waiting = bed.large(4);
    assert!(bed.dispatch(4).is_some(), "to be looked at again");
    assert_eq!(bed.queue.take_grant(waiting), None);
    bed.queue.drained(bed.id, SECOND);
    assert_eq!(bed.dispatch(5), None);
    assert_eq!(bed.queue.take_grant(waiting), Some(QUANTUM));
}

#[test]
fn a_writer_whose_connection_has_gone_is_free() {
    let mut bed = Bed::of(LinkMode::Writers);
    let jobs = [1, 2, 3].map(|now_ns| bed.granted(now_ns));
    for id in jobs {
        bed.queue.hand_over(id, QUANTUM);
        bed.queue.complete(id);
        bed.queue.remove(id);
    }
    let (other, _) = bed.queue.open(PACKETS, 0);
    let waiting = bed
        .queue
        .submit(other, client(), Length::Known(500), None, 4);
    assert!(bed.dispatch(4).is_some());
    bed.queue.close(bed.id);
    bed.dispatch(5);
    assert_eq!(bed.queue.take_grant(waiting.unwrap()), Some(QUANTUM));
}

#[test]
fn a_response_of_unknown_length_ranks_by_the_bytes_it_has_sent() {
    for (known_bytes, unknown_first) in [(40_000, false), (60_000, true)] {
        let mut bed = Bed::of(LinkMode::Paced);
        let unknown = bed.submit(Length::Unknown, 0);
        bed.queue.hand_over(unknown, 50_000);
        bed.submit(Length::Known(known_bytes), 0);
        let first = bed.queue.scheduler.peek(0).unwrap();
        assert_eq!(
            first == unknown,
            unknown_first,
            "beside {known_bytes} bytes"
        );
    }
}

#[test]
fn a_response_of_unknown_length_ends_where_it_says() {
    let mut bed = Bed::of(LinkMode::Paced);
    let id = bed.submit(Length::Unknown, SECOND);
    bed.dispatch(SECOND);
    assert_eq!(bed.queue.take_grant(id), Some(QUANTUM));
    bed.queue.hand_over(id, QUANTUM);
    bed.queue.complete(id);
    let charged = bed.queue.charged_total;
    let job = bed.queue.remove(id).unwrap();
    assert_eq!((job.work_done, job.remaining()), (u64::from(QUANTUM), 0));
    assert_eq!(
        bed.queue.charged_total, charged,
        "nothing of it was aborted"
    );
}

#[test]
fn a_grant_is_for_what_is_at_hand() {
    let mut bed = Bed::of(LinkMode::Paced);
    let id = bed.large(SECOND);
    bed.queue.offer(id, 100);
    bed.dispatch(SECOND);
    assert_eq!(bed.queue.take_grant(id), Some(100));
    assert_eq!(bed.queue.charged_total, 100 + 52 + 14);
}

#[test]
fn a_connection_keeps_little_unsent_only_while_a_found_rate_paces_it() {
    let mut bed = Bed::of(LinkMode::Auto);
    let rate = Rate::from_bps(8_000_000);
    bed.queue.pace(Pacing::Rate(rate), SECOND);
    bed.granted(SECOND);
    assert_eq!(bed.unsent_bytes_max, PACED_UNSENT_BYTES_MAX);
    bed.queue.pace(Pacing::Free, SECOND);
    bed.granted(SECOND);
    assert_eq!(bed.unsent_bytes_max, UNSENT_BYTES_MAX);
}

#[test]
fn what_waited_for_a_rate_is_not_let_go_all_at_once() {
    let mut bed = Bed::of(LinkMode::Auto);
    bed.queue.pace(Pacing::Free, SECOND);
    assert!(!bed.queue.regulator.regulates(), "nothing ever waited");
    bed.queue.pace(Pacing::Rate(Rate::from_bps(8_000)), SECOND);
    for _ in 0..2 * FEW_MAX {
        bed.large(SECOND);
    }
    bed.dispatch(SECOND);
    let before = bed.queue.grants_total;
    bed.queue.pace(Pacing::Free, SECOND);
    assert!(matches!(&bed.queue.regulator, Regulator::Slots(slots) if slots.is_patient()));
    bed.dispatch(SECOND);
    assert_eq!(bed.queue.grants_total - before, FEW_MAX as u64);
    bed.queue.pace(Pacing::Slots, SECOND);
    assert!(matches!(&bed.queue.regulator, Regulator::Slots(slots) if !slots.is_patient()));
}

/// Slots and discovery hold a connection that is over, until they let it go.
#[test]
fn a_connection_is_gone_when_nobody_holds_it_any_more() {
    let mut bed = Bed::of(LinkMode::Auto);
    bed.queue.pace(Pacing::Slots, SECOND);
    let id = bed.granted(SECOND);
    bed.queue.hand_over(id, QUANTUM);
    bed.queue.complete(id);
    bed.queue.remove(id);
    let recent = bed.queue.facts().recent;
    assert_eq!(recent, [bed.id]);
    assert!(!bed.queue.close(bed.id));
    bed.queue.let_go(recent);
    assert!(!bed.queue.connections.has_gone(), "it has a slot");
    bed.queue.pace(Pacing::Free, SECOND);
    let actions = bed.queue.take_actions();
    assert_eq!(actions.unwrap().gone, [bed.id]);
    assert_eq!(bed.queue.connections.len(), 0);
}

/// A response whose bandwidth is limited does not ask before its time. Until then the link is full with others, and when it asks it
/// has the turn that it would have had.
#[test]
fn a_response_that_is_held_back_leaves_the_link_to_others() {
    const EVERY: u64 = SECOND / 10;
    let mut bed = Bed::of(LinkMode::Paced);
    let held_back = bed.submit(Length::Known(100_000), SECOND);
    let other = bed.large(SECOND);
    let (mut now_ns, mut due_ns) = (SECOND, SECOND);
    let mut grants = [0_u64, 0];
    while now_ns < 2 * SECOND {
        let asks = now_ns >= due_ns;
        if asks {
            bed.queue.want(held_back, None, now_ns);
        }
        let wait_ns = bed.dispatch(now_ns);
        for (index, id) in [held_back, other].into_iter().enumerate() {
            let Some(bytes) = bed.queue.take_grant(id) else {
                continue;
            };
            grants[index] += 1;
            bed.queue.hand_over(id, bytes);
            if id == held_back {
                due_ns = now_ns + EVERY;
            } else {
                assert!(!asks || due_ns > now_ns, "the smaller one goes first");
                bed.queue.want(id, None, now_ns);
            }
        }
        bed.written(now_ns);
        now_ns += wait_ns.unwrap_or(1).max(1);
    }
    assert_eq!(grants[0], 10);
    // A second of 8 Mbit/s.
    let grants = grants[0] + grants[1];
    let full = SECOND / 1000 / CHARGE;
    assert!(
        (full - 2..=full + 4).contains(&grants),
        "{grants} grants, {full} fill the link"
    );
}

#[test]
fn a_paced_quantum_is_a_tenth_of_a_millisecond_on_fast_links_and_few_segments_on_others() {
    let mbit = [1, 10, 20, 100, 250, 1_000, 10_000];
    let segments = mbit.map(|mbit| {
        let bytes = paced_quantum_bytes(Rate::from_bps(mbit * 1_000_000));
        bytes / SEGMENT_BYTES_DEFAULT
    });
    assert_eq!(segments, [1, 1, 1, 3, 3, 9, 44]);
}
