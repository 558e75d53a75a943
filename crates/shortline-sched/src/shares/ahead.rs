//! How much the clients ahead of V can wait in all, which others may use.
//!
//! For a position r that V has not reached, this computes
//!
//! ```text
//! A(r) = sum over the clients whose position p is beyond V of weight * (min(r, p) - V)
//! ```
//!
//! It is needed at each grant, while clients come, move and leave. So positions are kept in bins, with the sum
//! of each bin. The width of a bin is the power of two below its clients' distance from V when they entered it
//! (a timing wheel: Varghese and Lauck, 1987). At each width two whole bins can lie beyond V. So a sum over all
//! costs some tens of additions, however many clients there are, and a move costs one.
//!
//! The result is A(r) or less. A bin that contains V counts nothing. In a bin that contains r, each client counts
//! with the lower end, and with a part of its distance beyond that, the part of the bin below r:
//! min(r, p) - low >= (p - low) * (r - low) / width.

use super::fluid::Position;

/// The narrowest bins are 2^38 wide: 64 units of work. A client less far ahead counts nothing.
const NARROWEST_BITS: u32 = 38;
/// The widest bins are 2^77 wide: 2^45 units of work. A client twice as far ahead counts nothing, so sums stay
/// below 2^128.
const WIDTHS: usize = 40;
/// Two bins lie beyond V, one contains V, and one is behind.
const BINS: usize = 4;

/// See the module's text. Clients are named by their index.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    bins: Box<[[Bin; BINS]; WIDTHS]>,
    /// A bit for each width that has had a client.
    used: u64,
    places: Vec<Option<Place>>,
}

/// The positions from `number` times the width up to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    number: Position,
    weight: u128,
    /// The sum of weight * (position - lower end).
    beyond: u128,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    position: Position,
    weight: u32,
    width: u32,
}

impl Place {
    fn bits(self) -> u32 {
        NARROWEST_BITS + self.width
    }

    fn number(self) -> Position {
        self.position >> self.bits()
    }

    fn beyond(self) -> u128 {
        let inside = self.position - (self.number() << self.bits());
        u128::from(self.weight) * inside
    }
}

impl Default for Ahead {
    fn default() -> Self {
        Self {
            bins: Box::new([[Bin::default(); BINS]; WIDTHS]),
            used: 0,
            places: Vec::new(),
        }
    }
}

impl Ahead {
    /// Sets a client's position. `now` is V.
    pub(super) fn set(&mut self, client: u32, weight: u32, position: Position, now: Position) {
        let known = self.places.get(client as usize).copied().flatten();
        if known.is_some_and(|place| (place.position, place.weight) == (position, weight)) {
            return;
        }
        if known.is_some() {
            self.remove(client);
        }
        let Some(width) = width_at(position.saturating_sub(now)) else {
            return;
        };
        let place = Place {
            position,
            weight,
            width,
        };
        let bin = &mut self.bins[width as usize][(place.number() % BINS as u128) as usize];
        if bin.number != place.number() {
            // V has passed the bin that was there.
            *bin = Bin {
                number: place.number(),
                ..Bin::default()
            };
        }
        bin.weight += u128::from(weight);
        bin.beyond += place.beyond();
        self.used |= 1 << width;
        if self.places.len() <= client as usize {
            self.places.resize(client as usize + 1, None);
        }
        self.places[client as usize] = Some(place);
    }

    /// Removes a client.
    pub(super) fn remove(&mut self, client: u32) {
        let Some(place) = self.places.get_mut(client as usize).and_then(Option::take) else {
            return;
        };
        let bin = &mut self.bins[place.width as usize][(place.number() % BINS as u128) as usize];
        if bin.number == place.number() {
            bin.weight -= u128::from(place.weight);
            bin.beyond -= place.beyond();
        }
    }

    /// A(r) or less, in units of work times 2^32; see the module's text.
    pub(super) fn until(&self, r: Position, now: Position) -> u128 {
        let mut sum: u128 = 0;
        let mut left = self.used;
        while left != 0 {
            let width = left.trailing_zeros();
            left &= left - 1;
            let bits = NARROWEST_BITS + width;
            let next = (now >> bits) + 1;
            for number in [next, next + 1] {
                let bin = &self.bins[width as usize][(number % BINS as u128) as usize];
                let low = number << bits;
                if bin.number != number {
                    continue;
                }
                let beyond = match low + (1 << bits) <= r {
                    true => bin.beyond,
                    // The order of these operations keeps the product below 2^128.
                    false => (bin.beyond >> (bits - 20)) * (r.saturating_sub(low) >> 20),
                };
                let distance = low.min(r).saturating_sub(now);
                sum = sum
                    .saturating_add(bin.weight.saturating_mul(distance))
                    .saturating_add(beyond);
            }
        }
        sum
    }
}

/// The index of the width for a distance from V; `None` if it is too near or too far.
fn width_at(distance: Position) -> Option<u32> {
    let bits = distance.checked_ilog2()?;
    let width = bits.checked_sub(NARROWEST_BITS)?;
    (width < WIDTHS as u32).then_some(width)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Set {
            client: u32,
            weight: u32,
            distance: u64,
        },
        Remove(u32),
        Pass(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let distance = (0..40u32, 0..1u64 << 20).prop_map(|(bits, part)| (part << bits) >> 10);
        let passed = (0..30u32, 0..1u64 << 20).prop_map(|(bits, part)| (part << bits) >> 16);
        prop_oneof![
            4 => (0..30u32, 1..9u32, distance)
                .prop_map(|(client, weight, distance)| Step::Set { client, weight, distance }),
            1 => (0..30u32).prop_map(Step::Remove),
            2 => passed.prop_map(Step::Pass),
        ]
    }

    proptest! {
        /// Compared with a list of all clients.
        #[test]
        fn never_more_than_they_can_wait(
            steps in prop::collection::vec(step(), 1..200),
            asked in 0..1u64 << 50,
        ) {
            let mut ahead = Ahead::default();
            let mut listed: [Option<(u128, u32)>; 30] = [None; 30];
            let mut now: Position = 12_345 << 32;
            for step in steps {
                match step {
                    Step::Set { client, weight, distance } => {
                        let position = now + (u128::from(distance) << 32);
                        ahead.set(client, weight, position, now);
                        listed[client as usize] = Some((position, weight));
                    }
                    Step::Remove(client) => {
                        ahead.remove(client);
                        listed[client as usize] = None;
                    }
                    Step::Pass(work) => now += u128::from(work) << 32,
                }
                let r = now + (u128::from(asked) << 32);
                let exact: u128 = listed
                    .iter()
                    .flatten()
                    .map(|(position, weight)| {
                        u128::from(*weight) * (*position).min(r).saturating_sub(now)
                    })
                    .sum();
                prop_assert!(ahead.until(r, now) <= exact);
            }
        }
    }

    #[test]
    fn of_one_that_r_is_beyond_all_is_told_and_else_a_part() {
        let now: Position = 777 << 30;
        for distance in [64_u128 << 32, 1000 << 32, (1 << 40) + 12_345, 5 << 60] {
            let mut ahead = Ahead::default();
            ahead.set(3, 2, now + distance, now);
            let all = 2 * distance;
            assert_eq!(ahead.until(now + 4 * distance, now), all);
            let part = ahead.until(now + distance, now);
            assert!(part <= all && 4 * part >= all, "{part} of {all}");
            assert_eq!(ahead.until(now, now), 0);
        }
    }

    #[test]
    fn who_was_passed_counts_nothing_and_is_taken_out_without_harm() {
        let mut ahead = Ahead::default();
        ahead.set(0, 1, 5 << 40, 0);
        assert_eq!(ahead.until(8 << 40, 0), 5 << 40);
        let now = 7 << 40;
        assert_eq!(ahead.until(9 << 40, now), 0);
        // Another bin has that place by now.
        ahead.set(1, 1, 21 << 40, 17 << 40);
        ahead.remove(0);
        assert_eq!(ahead.until(24 << 40, 17 << 40), 4 << 40);
    }
}
