//! Fair sharing among clients as a fluid: which clients have work there, and how far it has come. It is a
//! model and serves no request.
//!
//! The formula is the virtual time of fair queueing (Demers, Keshav, Shenker 1989; weighted: Parekh and
//! Gallager 1993). While clients of total weight W have work, their common position V rises by 1/W for each
//! unit of work done. A client leaves at the position at which its work ends there.
//!
//! Departure: V follows the work that the real server has *done*, not a clock and a rate. So the rate need
//! not be known and may change, and no client loses its share while nothing is sent. A server that never
//! idles while there is work does as much as the fluid.

use crate::heap::IndexedHeap;

/// How far a client has come: work per unit of weight, in 2^-32 units.
pub(super) type Position = u128;

const FRACTION_BITS: u32 = 32;

/// How far `work` moves clients of total weight `weight`.
pub(super) fn distance(work: u64, weight: u64) -> Position {
    divided(Position::from(work) << FRACTION_BITS, weight)
}

/// Divides, usually in one instruction. A division of 128 bits takes tens of nanoseconds.
fn divided(distance: Position, weight: u64) -> Position {
    match (weight, u64::try_from(distance)) {
        (0 | 1, _) => distance,
        (_, Ok(short)) => Position::from(short / weight),
        (_, Err(_)) => distance / Position::from(weight),
    }
}

/// The fluid; see the module's text.
#[derive(Clone, Debug, Default)]
pub(super) struct Fluid {
    now: Position,
    /// The clients that have work, by the position at which it ends.
    ends: IndexedHeap<(Position, u32)>,
    weight: u64,
}

impl Fluid {
    /// V, the position of all clients with work.
    pub(super) fn now(&self) -> Position {
        self.now
    }

    /// Whether a client has work left.
    pub(super) fn has(&self, client: u32) -> bool {
        self.ends.contains(client)
    }

    /// Sets the position at which a client's work ends.
    pub(super) fn set_end(&mut self, client: u32, weight: u32, end: Position) {
        let was_in = self.has(client);
        if end > self.now {
            self.ends.insert(client, (end, client));
            if !was_in {
                self.weight += u64::from(weight);
            }
        } else if was_in {
            self.ends.remove(client);
            self.weight -= u64::from(weight);
        }
    }

    /// Does all work: V advances to the last end.
    pub(super) fn finish(&mut self) {
        while let Some(((end, client), _)) = self.ends.first() {
            self.now = self.now.max(end);
            self.ends.remove(client);
        }
        self.weight = 0;
    }

    /// Does `work` up to the end of the first client's work, and returns that client. Takes the work done off
    /// `work`. If no client's work ends, does all of it and returns `None`.
    pub(super) fn advance(&mut self, work: &mut Position) -> Option<u32> {
        let Some(((end, client), _)) = self.ends.first() else {
            *work = 0;
            return None;
        };
        let weight = Position::from(self.weight.max(1));
        let until_end = (end - self.now).saturating_mul(weight);
        if until_end > *work {
            self.now += divided(*work, self.weight);
            *work = 0;
            return None;
        }
        *work -= until_end;
        self.now = end;
        Some(client)
    }
}
