//! Fair sharing among clients as a fluid, which nobody is served by: who has work there, and how far
//! everybody has come.
//!
//! The formula is the virtual time of fair queueing (Demers, Keshav, Shenker 1989; weighted: Parekh and
//! Gallager 1993): while clients of total weight W have work, the position V that all of them have come
//! to rises by 1/W for each unit of work that is done. A client leaves at the position at which its work
//! ends there.
//!
//! Departure: V follows the work that the real server has *done*, not a clock and a rate. So no rate need
//! be known, a rate may change, and where nothing is sent nobody's share is lost. A server that never
//! idles while there is work does as much as the fluid.

use crate::heap::IndexedHeap;

/// How far a client has come: work per unit of weight, in 2^-32 units.
pub(super) type Position = u128;

const FRACTION_BITS: u32 = 32;

/// How far `work` takes clients of so much weight.
pub(super) fn distance(work: u64, weight: u64) -> Position {
    divided(Position::from(work) << FRACTION_BITS, weight)
}

/// Division, as a rule in one instruction: that of 128 bits takes tens of nanoseconds.
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
    /// The position that all clients with work have come to.
    pub(super) fn now(&self) -> Position {
        self.now
    }

    /// Whether a client has work left.
    pub(super) fn has(&self, client: u32) -> bool {
        self.ends.contains(client)
    }

    /// The work of a client ends at this position: later than before, or earlier.
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

    /// All work is done: as far as it takes, nobody has any left.
    pub(super) fn finish(&mut self) {
        while let Some(((end, client), _)) = self.ends.first() {
            self.now = self.now.max(end);
            self.ends.remove(client);
        }
        self.weight = 0;
    }

    /// The client whose work ends first, if that is before `work` is done; of that, what it takes until
    /// then is used up. Else all of it.
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
