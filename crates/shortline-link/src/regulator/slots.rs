//! Slots: at most N responses hold unacknowledged bytes in the kernel, whatever the uplink's rate
//! is, which need not be known.
//!
//! In the spirit of 001 3.3 (write concurrency), but counted in quanta that the peer has not
//! acknowledged instead of blocked writers: what waits in a socket buffer, a qdisc or a queue
//! further on is all unacknowledged, and cannot be reordered any more.
//!
//! Departures, each to keep the link busy and the cost low where there is no queue:
//! - **Level.** There are `N * 2^level` slots of `quantum * 2^min(level, 2)` bytes. The level
//!   rises when all slots are taken and a grant was acknowledged, within a round trip, at the
//!   speed of a quantum in [`DRAIN_NS_FAST`] or in [`DRAIN_NS_INSTANT`]: then there is no
//!   bottleneck to order for. It falls to 0 when a grant is seen unacknowledged after
//!   [`DRAIN_NS_FAST`]; one that was acknowledged before anybody looked tells nothing of the path,
//!   however late the look. Where the uplink has less than 50 Mbit/s or so it never leaves 0.
//! - A slot whose bytes make no progress for [`STALL_NS_MAX`] is given back: a stalled client
//!   must not hold the link.
//! - The next request of a connection suggests that its last response has arrived: one look at this
//!   socket then gives its slot back. The request alone proves nothing, for a client may send a
//!   thousand of them before it reads. The connection's thread looks, before it takes the link's lock.
//!
//! No I/O of its own: what the kernel holds is asked through [`Sockets`], the time is an argument. A slot holds
//! its connection's entry, so that it can ask when the connection is over.

use slab::Slab;

use crate::connections::{ConnectionId, Connections, Sockets};

/// Drained this soon after its grant (beside the path's own round trip), a quantum met no queue.
pub const DRAIN_NS_FAST: u64 = 2_000_000;
/// Drained this soon, anything met none: a small response needs longer at 20 Mbit/s.
pub const DRAIN_NS_INSTANT: u64 = 250_000;
/// A slot without any newly acknowledged byte for so long is given back.
pub const STALL_NS_MAX: u64 = 100_000_000;
/// How long until full slots are looked at again while jobs wait.
pub const LOOK_AGAIN_NS: u64 = 250_000;
/// As [`STALL_NS_MAX`] and [`LOOK_AGAIN_NS`] where a queue is known to stand: a round trip is long there, and
/// packets get lost.
const PATIENT_STALL_NS_MAX: u64 = 1_000_000_000;
const PATIENT_LOOK_AGAIN_NS: u64 = 1_000_000;
/// 32 times the slots: where clients acknowledge late, more must be under way.
const LEVEL_MAX: u32 = 5;
/// Four times the quantum: larger writes only evict each other from the processor's cache.
const QUANTUM_LEVEL_MAX: u32 = 2;

struct Slot {
    holder: ConnectionId,
    granted_ns: u64,
    progress_ns: u64,
    unacknowledged_bytes: u32,
    granted_bytes: u32,
    /// Seen unacknowledged after [`DRAIN_NS_FAST`].
    late: bool,
}

/// The slots; see the module's text.
pub struct Slots {
    slots_max: usize,
    quantum_bytes: u32,
    level: u32,
    stall_ns_max: u64,
    look_again_ns: u64,
    looked_ns: Option<u64>,
    /// In no order. Each connection has the places of its own: with 16 workers there are a thousand slots, and to search them for
    /// one took longer than all else that is done under the lock.
    taken: Slab<Slot>,
}

impl Slots {
    /// `slots_max` slots of `quantum_bytes` payload bytes each at level 0.
    pub fn new(slots_max: usize, quantum_bytes: u32) -> Self {
        Self {
            slots_max,
            quantum_bytes,
            level: 0,
            stall_ns_max: STALL_NS_MAX,
            look_again_ns: LOOK_AGAIN_NS,
            looked_ns: None,
            taken: Slab::new(),
        }
    }

    /// The same for many slots behind a queue that others fill, too: rarer looks, and no slot is given
    /// back for the losses there.
    pub fn patient(self) -> Self {
        Self {
            stall_ns_max: PATIENT_STALL_NS_MAX,
            look_again_ns: PATIENT_LOOK_AGAIN_NS,
            ..self
        }
    }

    /// Whether they are such.
    pub fn is_patient(&self) -> bool {
        self.look_again_ns == PATIENT_LOOK_AGAIN_NS
    }

    /// How long until full slots are to be looked at again while jobs wait.
    pub fn look_again_ns(&self) -> u64 {
        self.look_again_ns
    }

    /// Payload bytes that the next grant may carry.
    pub fn quantum_bytes(&self) -> u32 {
        self.quantum_bytes
            .saturating_mul(1 << self.level.min(QUANTUM_LEVEL_MAX))
    }

    /// Responses that hold bytes in the kernel, as far as known without looking.
    pub fn holders(&self) -> usize {
        self.taken.len()
    }

    /// Whether a slot is free; looks at the sockets only when none is known to be.
    pub fn is_free(
        &mut self,
        connections: &mut Connections,
        sockets: &dyn Sockets,
        now_ns: u64,
    ) -> bool {
        let since_ns = |looked_ns| now_ns.saturating_sub(looked_ns);
        let looks = !self.is_patient()
            || self
                .looked_ns
                .is_none_or(|looked_ns| since_ns(looked_ns) >= self.look_again_ns);
        if self.is_full() && looks {
            self.looked_ns = Some(now_ns);
            self.look(connections, sockets, now_ns);
        }
        !self.is_full()
    }

    /// A grant of `bytes` leaves on `holder`.
    pub fn take(
        &mut self,
        connections: &mut Connections,
        holder: ConnectionId,
        bytes: u32,
        now_ns: u64,
    ) {
        let place = self.taken.insert(Slot {
            holder,
            granted_ns: now_ns,
            progress_ns: now_ns,
            unacknowledged_bytes: u32::MAX,
            granted_bytes: bytes,
            late: false,
        });
        hold(connections, holder);
        connections.of_mut(holder).slots.push_back(place);
    }

    /// The last grant on `holder` will not be used: its slot is free.
    pub fn release_last(&mut self, connections: &mut Connections, holder: ConnectionId) {
        if let Some(last) = connections.of_mut(holder).slots.pop_back() {
            self.taken.remove(last);
            let_go(connections, holder);
        }
    }

    /// The oldest `arrived` slots of `holder` are free, for all of their bytes have arrived.
    pub fn release_arrived(
        &mut self,
        connections: &mut Connections,
        holder: ConnectionId,
        arrived: u32,
    ) {
        for _ in 0..arrived {
            let Some(first) = connections.of_mut(holder).slots.pop_front() else {
                return;
            };
            self.taken.remove(first);
            let_go(connections, holder);
        }
    }

    /// All slots are free, for something else decides from now on.
    pub fn release_all(self, connections: &mut Connections) {
        for (_, slot) in self.taken {
            connections.of_mut(slot.holder).slots.clear();
            let_go(connections, slot.holder);
        }
    }

    fn is_full(&self) -> bool {
        self.taken.len() >= self.slots_max << self.level
    }

    fn look(&mut self, connections: &mut Connections, sockets: &dyn Sockets, now_ns: u64) {
        let (quantum_bytes, stall_ns_max) = (self.quantum_bytes, self.stall_ns_max);
        // Each judgement may ask the kernel for the round trip: only where it can change the level.
        let (can_rise, can_fall) = (self.level < LEVEL_MAX, self.level > 0);
        let (mut fast, mut slow) = (false, false);
        self.taken.retain(|place, slot| {
            if slot.is_taken(connections, sockets, stall_ns_max, now_ns) {
                if can_fall && !slot.late {
                    slot.late = !slot.drained_within(sockets, DRAIN_NS_FAST, now_ns);
                    slow |= slot.late;
                }
                return true;
            }
            if can_rise && !fast {
                let fair_share =
                    u64::from(slot.granted_bytes) * DRAIN_NS_FAST / u64::from(quantum_bytes);
                let limit_ns = fair_share.clamp(DRAIN_NS_INSTANT, DRAIN_NS_FAST);
                fast = slot.drained_within(sockets, limit_ns, now_ns);
            }
            let own = &mut connections.of_mut(slot.holder).slots;
            own.retain(|other| *other != place);
            let_go(connections, slot.holder);
            false
        });
        if slow {
            self.level = 0;
        } else if fast {
            self.level = (self.level + 1).min(LEVEL_MAX);
        }
    }
}

fn hold(connections: &mut Connections, holder: ConnectionId) {
    connections.hold(holder);
    connections.of(holder).marks.slot_taken();
}

fn let_go(connections: &mut Connections, holder: ConnectionId) {
    connections.of(holder).marks.slot_freed();
    connections.let_go(holder);
}

impl Slot {
    fn is_taken(
        &mut self,
        connections: &Connections,
        sockets: &dyn Sockets,
        stall_ns_max: u64,
        now_ns: u64,
    ) -> bool {
        if !connections.of(self.holder).marks.has_unwritten() {
            let left_bytes = sockets.unacknowledged_bytes(self.holder);
            if left_bytes == 0 {
                return false;
            }
            if left_bytes < self.unacknowledged_bytes {
                self.unacknowledged_bytes = left_bytes;
                self.progress_ns = now_ns;
            }
        }
        now_ns.saturating_sub(self.progress_ns) < stall_ns_max
    }

    fn drained_within(&self, sockets: &dyn Sockets, limit_ns: u64, now_ns: u64) -> bool {
        let drain_ns = now_ns.saturating_sub(self.granted_ns);
        drain_ns <= limit_ns || drain_ns <= limit_ns + sockets.rtt_ns_min(self.holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::testing::{FakeSockets, connections};

    const MS: u64 = 1_000_000;

    /// Slots with the connections that hold them, none of which has acknowledged 30 bytes.
    struct Bed<const N: usize> {
        slots: Slots,
        connections: Connections,
        sockets: FakeSockets,
        ids: [ConnectionId; N],
    }

    impl<const N: usize> Bed<N> {
        fn new(slots: Slots) -> Self {
            let (connections, ids) = connections();
            let sockets = FakeSockets::default();
            for id in ids {
                sockets.holds(id, 30);
            }
            Self {
                slots,
                connections,
                sockets,
                ids,
            }
        }

        fn take(&mut self, place: usize, bytes: u32) {
            self.slots
                .take(&mut self.connections, self.ids[place], bytes, 0);
        }

        fn is_free(&mut self, now_ns: u64) -> bool {
            self.slots
                .is_free(&mut self.connections, &self.sockets, now_ns)
        }

        /// The next request of a connection of which so many slots have arrived.
        fn asked_again(&mut self, place: usize, arrived: u32) {
            self.slots
                .release_arrived(&mut self.connections, self.ids[place], arrived);
        }

        fn slots_of(&self, place: usize) -> u32 {
            self.connections.of(self.ids[place]).marks.slots()
        }

        /// All slots are taken by the first connection, which has acknowledged all.
        fn fill(&mut self, bytes: u32) {
            self.sockets.holds(self.ids[0], 0);
            while !self.slots.is_full() {
                self.take(0, bytes);
            }
        }
    }

    #[test]
    fn patient_slots_wait_for_what_is_lost_and_look_rarely() {
        let mut bed = Bed::<1>::new(Slots::new(1, 1000).patient());
        bed.take(0, 1000);
        assert!(!bed.is_free(PATIENT_LOOK_AGAIN_NS));
        assert!(!bed.is_free(PATIENT_LOOK_AGAIN_NS + 1));
        assert_eq!(bed.sockets.looks(), 1);
        assert!(!bed.is_free(PATIENT_STALL_NS_MAX));
        assert!(bed.is_free(2 * PATIENT_STALL_NS_MAX));
    }

    #[test]
    fn only_so_many_hold_bytes_and_a_drained_one_makes_room() {
        let mut bed = Bed::<2>::new(Slots::new(2, 1000));
        assert!(bed.is_free(0));
        bed.take(0, 1000);
        assert!(bed.is_free(0));
        bed.take(1, 1000);
        assert!(!bed.is_free(MS));
        bed.sockets.holds(bed.ids[0], 0);
        assert!(bed.is_free(10 * MS));
        assert_eq!(bed.slots.holders(), 1);
        assert_eq!(
            bed.slots.quantum_bytes(),
            1000,
            "10 ms is a queue: the level stays"
        );
    }

    #[test]
    fn nobody_is_asked_while_a_slot_is_free() {
        let mut bed = Bed::<1>::new(Slots::new(2, 1000));
        bed.take(0, 1000);
        assert!(bed.is_free(0));
        assert_eq!(bed.sockets.looks(), 0);
    }

    #[test]
    fn the_next_request_frees_the_slots_of_what_has_arrived_and_no_others() {
        let mut bed = Bed::<2>::new(Slots::new(4, 1000));
        for taker in [0, 1, 0, 0] {
            bed.take(taker, 1000);
        }
        bed.asked_again(0, 0);
        assert_eq!((bed.slots_of(0), bed.slots_of(1)), (3, 1));
        bed.asked_again(0, 2);
        assert_eq!((bed.slots_of(0), bed.slots_of(1)), (1, 1));
        bed.asked_again(0, 2);
        assert_eq!((bed.slots_of(0), bed.slots_of(1)), (0, 1));
        assert_eq!(bed.slots.holders(), 1);
        assert_eq!(bed.sockets.looks(), 0, "its own thread has looked");
    }

    #[test]
    fn an_unused_grant_frees_one_slot_of_its_holder() {
        let mut bed = Bed::<2>::new(Slots::new(3, 1000));
        for taker in [0, 0, 1] {
            bed.take(taker, 1000);
        }
        bed.slots.release_last(&mut bed.connections, bed.ids[0]);
        assert_eq!(bed.slots.holders(), 2);
        assert_eq!(bed.slots_of(0), 1);
        bed.asked_again(0, 1);
        assert_eq!(bed.slots.holders(), 1);
        assert_eq!([bed.slots_of(0), bed.slots_of(1)], [0, 1]);
    }

    #[test]
    fn a_connection_that_is_over_is_asked_until_its_bytes_have_arrived() {
        let mut bed = Bed::<1>::new(Slots::new(1, 1000));
        bed.take(0, 1000);
        bed.connections.let_go(bed.ids[0]);
        assert!(!bed.is_free(MS));
        assert!(bed.connections.take_gone().is_empty());
        bed.sockets.holds(bed.ids[0], 0);
        assert!(bed.is_free(2 * MS));
        assert_eq!(bed.connections.take_gone(), bed.ids);
    }

    #[test]
    fn the_level_rises_without_a_queue_and_falls_with_one() {
        let mut bed = Bed::<2>::new(Slots::new(1, 1000));
        for level in 1..=3u32 {
            bed.fill(1000);
            assert!(bed.is_free(MS));
            assert_eq!(bed.slots.quantum_bytes(), 1000 << level.min(2));
        }
        bed.take(1, 1000);
        bed.fill(1000);
        assert!(!bed.is_free(50 * MS), "the one slot left is taken");
        assert_eq!(bed.slots.level, 0, "50 ms later it was not acknowledged");
    }

    #[test]
    fn an_acknowledgement_found_late_tells_nothing() {
        let mut bed = Bed::<1>::new(Slots::new(1, 1000));
        bed.fill(1000);
        assert!(bed.is_free(MS));
        bed.fill(1000);
        assert!(bed.is_free(50 * MS));
        assert_eq!(
            bed.slots.level, 1,
            "its client only had nothing more to ask"
        );
    }

    #[test]
    fn a_small_response_proves_a_fast_path_only_at_once() {
        let mut bed = Bed::<1>::new(Slots::new(1, 1000));
        bed.fill(100);
        assert!(bed.is_free(MS));
        assert_eq!(bed.slots.level, 0, "1 ms is long for 100 bytes");
        bed.fill(100);
        assert!(bed.is_free(DRAIN_NS_INSTANT));
        assert_eq!(bed.slots.level, 1);
    }

    #[test]
    fn a_stalled_holder_loses_its_slot_and_one_that_progresses_keeps_it() {
        let mut bed = Bed::<2>::new(Slots::new(2, 1000));
        bed.take(0, 1000);
        bed.take(1, 1000);
        assert!(!bed.is_free(MS));
        bed.sockets.holds(bed.ids[1], 20);
        assert!(!bed.is_free(STALL_NS_MAX));
        assert!(bed.is_free(STALL_NS_MAX + MS));
        assert_eq!([bed.slots_of(0), bed.slots_of(1)], [0, 1]);
    }
}
