//! The regulator: what decides when a grant is due. Each link mode has one, and all have one set of methods, so that
//! the queue asks and tells without knowing which it has.
//!
//! | regulator | a grant is due |
//! |---|---|
//! | [`paced`] | when the modelled queue of the uplink is almost empty |
//! | [`slots`] | when less than N quanta are unacknowledged |
//! | [`writers`] | when one of N has written its block to a socket |
//! | bands, off | at once |
//!
//! No I/O of its own, and the time is an argument; what the kernel holds of a connection slots ask through
//! [`Sockets`].

#![deny(clippy::disallowed_methods)]

use std::sync::Arc;

use shortline_sched::units::Rate;

use crate::bands::BandMap;
use crate::connections::{ConnectionId, Connections, Sockets};
use crate::driver::device::Reading;

use paced::Pacer;
use slots::{LOOK_AGAIN_NS, Slots};
use writers::Writers;

pub mod paced;
pub mod slots;
pub mod writers;

/// Payload bytes of a quantum in mode `slots`.
const SLOT_QUANTUM_BYTES: u32 = 14_480;
/// Connections that compete with other people's traffic, mode `auto`: beside one download they get 97 % of
/// the link, and what they have in the kernel is less than half a second of 10 Mbit/s.
pub(crate) const FEW_MAX: usize = 32;
// Unsent bytes in a socket before it counts as not writable.
/// In mode `paced`: about one quantum.
pub(crate) const PACED_UNSENT_BYTES_MAX: u32 = 8 * 1024;
/// In mode `bands`: about one quantum. The choice of a band takes what is unsent for sent.
const BANDS_UNSENT_BYTES_MAX: u32 = 8 * 1024;
/// In mode `writers`: the system's default, no mark at all, for the socket's buffer itself is to be full.
const UNSENT_BYTES_UNMARKED: u32 = 0;
/// In the other modes: what keeps a fast path busy. With 64 KiB and more a file of 1 MiB costs twice the
/// processor time on loopback, with 16 KiB as much as with 32.
pub(crate) const UNSENT_BYTES_MAX: u32 = 32 * 1024;

/// How grants follow what was found out of the uplink (mode `auto`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pacing {
    /// As the uplink drains them.
    Rate(Rate),
    /// As many as slots say: nothing can be found out.
    Slots,
    /// To the first few, which then compete with other people's traffic: so many connections have their
    /// fair share of the link, and what else waits keeps its order and can be paced again at once.
    Few,
    /// At once: there is no bottleneck.
    Free,
    /// At once, but to few connections of a client at a time: nothing is known yet.
    Unknown,
}

/// What decides when a grant is due; see the module's text.
pub(crate) enum Regulator {
    Paced(Pacer),
    Slots(Slots),
    Writers(Writers),
    /// At once: the kernel keeps the order.
    Bands(Arc<BandMap>),
    Off,
}

impl Regulator {
    /// As the uplink drains, at that rate.
    pub fn paced(rate: Rate, now_ns: u64) -> Self {
        Self::Paced(Pacer::new(rate, now_ns))
    }

    /// `slots_max` slots of so many payload bytes.
    pub fn slots(slots_max: usize, quantum_bytes: Option<u32>) -> Self {
        let quantum_bytes = quantum_bytes.unwrap_or(SLOT_QUANTUM_BYTES);
        Self::Slots(Slots::new(slots_max, quantum_bytes))
    }

    /// Paper 001's writers.
    pub fn writers(writers_max: usize) -> Self {
        Self::Writers(Writers::new(writers_max))
    }

    fn few(quantum_bytes: Option<u32>) -> Self {
        let quantum_bytes = quantum_bytes.unwrap_or(SLOT_QUANTUM_BYTES);
        Self::Slots(Slots::new(FEW_MAX, quantum_bytes).patient())
    }

    /// Becomes what `pacing` asks for, unless it is that. Slots are `slots_max`, of `quantum_bytes` if that is given.
    pub fn follow(
        &mut self,
        pacing: Pacing,
        slots_max: usize,
        quantum_bytes: Option<u32>,
        connections: &mut Connections,
        now_ns: u64,
    ) {
        let next = match (pacing, &mut *self) {
            (Pacing::Rate(rate), Self::Paced(pacer)) => return pacer.set_rate(rate, now_ns),
            (Pacing::Few, Self::Slots(slots)) if slots.is_patient() => return,
            (Pacing::Slots, Self::Slots(slots)) if !slots.is_patient() => return,
            (Pacing::Free | Pacing::Unknown, Self::Off) => return,
            (Pacing::Rate(rate), _) => Self::paced(rate, now_ns),
            (Pacing::Few, _) => Self::few(quantum_bytes),
            (Pacing::Slots, _) => Self::slots(slots_max, quantum_bytes),
            (Pacing::Free | Pacing::Unknown, _) => Self::Off,
        };
        if let Self::Slots(slots) = std::mem::replace(self, next) {
            slots.release_all(connections);
        }
    }

    /// Whether grants may have to wait for it or are ordered elsewhere, in the kernel.
    pub fn regulates(&self) -> bool {
        !matches!(self, Self::Off)
    }

    /// The kernel's bands, where the kernel keeps the order.
    pub fn bands(&self) -> Option<&Arc<BandMap>> {
        match self {
            Self::Bands(map) => Some(map),
            Self::Paced(_) | Self::Slots(_) | Self::Writers(_) | Self::Off => None,
        }
    }

    /// Whether clients have few newcomers at a time: not where the kernel keeps the order, for it has the bytes
    /// already; and writers are few.
    pub fn bounds_newcomers(&self) -> bool {
        !matches!(self, Self::Bands(_) | Self::Writers(_))
    }

    /// The unsent bytes in a socket before it counts as not writable.
    pub fn unsent_bytes_max(&self) -> u32 {
        match self {
            Self::Paced(_) => PACED_UNSENT_BYTES_MAX,
            Self::Bands(_) => BANDS_UNSENT_BYTES_MAX,
            Self::Writers(_) => UNSENT_BYTES_UNMARKED,
            Self::Slots(_) | Self::Off => UNSENT_BYTES_MAX,
        }
    }

    /// Payload bytes of the next grant, where it says that.
    pub fn quantum_bytes(&self) -> Option<u32> {
        match self {
            Self::Slots(slots) => Some(slots.quantum_bytes()),
            Self::Paced(_) | Self::Writers(_) | Self::Bands(_) | Self::Off => None,
        }
    }

    /// Whether a grant is due, for somebody who waits until it is.
    pub fn is_due(
        &mut self,
        connections: &mut Connections,
        sockets: &dyn Sockets,
        now_ns: u64,
    ) -> bool {
        match self {
            Self::Paced(pacer) => pacer.is_due(now_ns),
            Self::Slots(slots) => slots.is_free(connections, sockets, now_ns),
            Self::Writers(writers) => writers.is_free(),
            Self::Bands(_) | Self::Off => true,
        }
    }

    /// How long until it is to be asked again, where no grant is due.
    pub fn look_again_ns(&self, now_ns: u64) -> u64 {
        match self {
            Self::Paced(pacer) => pacer.due_ns().saturating_sub(now_ns),
            Self::Slots(slots) => slots.look_again_ns(),
            Self::Writers(_) | Self::Bands(_) | Self::Off => LOOK_AGAIN_NS,
        }
    }

    /// A grant of so many payload bytes leaves on a connection, on the wire `wire_bytes`.
    pub fn charge(
        &mut self,
        connections: &mut Connections,
        id: ConnectionId,
        payload_bytes: u32,
        wire_bytes: u32,
        now_ns: u64,
    ) {
        match self {
            Self::Paced(pacer) => pacer.charge(wire_bytes, now_ns),
            Self::Slots(slots) => slots.take(connections, id, payload_bytes, now_ns),
            Self::Writers(writers) => writers.take(id),
            Self::Bands(_) | Self::Off => {}
        }
    }

    /// So many wire bytes that the connection was charged last will not be written now.
    pub fn give_back(&mut self, connections: &mut Connections, id: ConnectionId, wire_bytes: u32) {
        match self {
            Self::Paced(pacer) => pacer.refund(wire_bytes),
            Self::Slots(slots) => slots.release_last(connections, id),
            Self::Writers(writers) => writers.release_last(id),
            Self::Bands(_) | Self::Off => {}
        }
    }

    /// All that was charged to the connection is in its socket: `unwritten` wire bytes, and those given back before
    /// that were written after all.
    pub fn drained(&mut self, id: ConnectionId, unwritten: u32, refunded: u32, now_ns: u64) {
        match self {
            Self::Paced(pacer) => {
                pacer.charge(refunded, now_ns);
                pacer.written(unwritten + refunded, now_ns);
            }
            Self::Writers(writers) => writers.release(id),
            Self::Slots(_) | Self::Bands(_) | Self::Off => {}
        }
    }

    /// So many wire bytes of what was written stay in the socket, as the congestion window is full.
    pub fn held_back(&mut self, wire_bytes: u32) {
        if let Self::Paced(pacer) = self {
            pacer.held_back(wire_bytes);
        }
    }

    /// The client has sent another request on a connection, and what takes its oldest `slots_arrived` slots has arrived.
    pub fn asked_again(
        &mut self,
        connections: &mut Connections,
        id: ConnectionId,
        slots_arrived: u32,
    ) {
        if let Self::Slots(slots) = self {
            slots.release_arrived(connections, id, slots_arrived);
        }
    }

    /// The connection has ended, and nobody writes to it any more.
    pub fn ended(&mut self, id: ConnectionId) {
        if let Self::Writers(writers) = self {
            writers.release(id);
        }
    }

    /// A wake-up for a grant that was due came `late_ns` too late.
    pub fn woke_late(&mut self, late_ns: u64) {
        if let Self::Paced(pacer) = self {
            pacer.woke_late(late_ns);
        }
    }

    /// What the device's counters said.
    pub fn observe(&mut self, reading: Reading, now_ns: u64) {
        if let Self::Paced(pacer) = self {
            pacer.observe(now_ns, reading);
        }
    }

    /// Wire bytes that went out beside what was charged; negative: fewer than charged.
    pub fn correct(&mut self, wire_bytes: f64) {
        if let Self::Paced(pacer) = self {
            pacer.correct(wire_bytes);
        }
    }

    /// The modelled queue in bytes, where there is a model.
    pub fn queue_bytes(&mut self, now_ns: u64) -> Option<u64> {
        match self {
            Self::Paced(pacer) => Some(pacer.queue_bytes(now_ns)),
            Self::Slots(_) | Self::Writers(_) | Self::Bands(_) | Self::Off => None,
        }
    }

    /// Wire bytes that were charged and are not known to be in a socket, where a pacer counts them.
    pub fn unwritten_bytes(&self) -> u64 {
        match self {
            Self::Paced(pacer) => pacer.unwritten_bytes(),
            Self::Slots(_) | Self::Writers(_) | Self::Bands(_) | Self::Off => 0,
        }
    }

    /// Slots or writers that are taken, where there are such.
    pub fn slots_held(&self) -> Option<usize> {
        match self {
            Self::Slots(slots) => Some(slots.holders()),
            Self::Writers(writers) => Some(writers.busy()),
            Self::Paced(_) | Self::Bands(_) | Self::Off => None,
        }
    }
}
