//! Waiters by deadline, and whether a request can pass those before it.
//!
//! Work is done at `rate` (expected service per unit of time). In the order of deadlines, each waiter starts
//! when it fits beside the work that is left of those before it. A request can pass all waiters before it
//! without breaking their deadlines if for each of them
//!
//! ```text
//! now + (backlog + work of the waiters before it + what must be free for itself) / rate
//!     <= deadline
//! ```
//!
//! where the backlog is the running work and the passing request, less the capacity. A waiter's *latest* is
//! the latest `now + backlog / rate` at which this holds. The list is cut into blocks. Each block has its
//! work, and the smallest latest of its waiters as if none waited before the block. A query looks at every
//! block before the request's own, and at the waiters of that one: some 250 blocks and 40 waiters for 10,000.
//! A change recomputes one block, and only a new rate recomputes all of them.

use super::requests::RequestId;

/// A deadline, then the order of arrival.
pub(super) type Key = (u64, RequestId);

/// The most waiters in a block.
const BLOCK_MAX: usize = 64;

/// The last key of a block before it is computed.
const NO_KEY: Key = (
    0,
    RequestId {
        sequence: 0,
        slot: 0,
    },
);

/// How far the rate may move, as a factor, before all blocks are recomputed.
const RATE_TOLERANCE: f64 = 1.1;

/// Waiters by deadline.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// No block is empty.
    blocks: Vec<Block>,
    rate: f64,
}

#[derive(Debug)]
struct Block {
    waiters: Vec<Waiter>,
    /// The key of the last waiter, kept here for scans over the blocks.
    last: Key,
    /// How long the waiters' work takes, in nanoseconds.
    lasts_ns: f64,
    /// The smallest latest of the waiters, in nanoseconds.
    latest_ns: f64,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    key: Key,
    work_ns: u64,
    /// What must be free before it starts, in nanoseconds of load.
    room_ns: u64,
}

impl Deadlines {
    pub(super) fn new() -> Self {
        Self {
            blocks: Vec::new(),
            rate: 1.0,
        }
    }

    /// The earliest deadline.
    pub(super) fn first(&self) -> Option<Key> {
        Some(self.blocks.first()?.waiters.first()?.key)
    }

    /// Adds a waiter with `work_ns` of work. It starts once `room_ns` of the capacity is free.
    pub(super) fn insert(&mut self, key: Key, work_ns: u64, room_ns: u64) {
        let waiter = Waiter {
            key,
            work_ns,
            room_ns,
        };
        if self.blocks.is_empty() {
            self.blocks.push(Block::new(vec![waiter], self.rate));
            return;
        }
        let index = self.block_of(key);
        let block = &mut self.blocks[index];
        let place = block.waiters.partition_point(|other| other.key < key);
        block.waiters.insert(place, waiter);
        if block.waiters.len() > BLOCK_MAX {
            let half = block.waiters.split_off(BLOCK_MAX / 2);
            let block_after = Block::new(half, self.rate);
            self.blocks.insert(index + 1, block_after);
        }
        self.blocks[index].compute(self.rate);
    }

    /// Removes a waiter. Returns false if it is not in.
    pub(super) fn remove(&mut self, key: Key) -> bool {
        if self.blocks.is_empty() {
            return false;
        }
        let index = self.block_of(key);
        let block = &mut self.blocks[index];
        let Ok(place) = block.waiters.binary_search_by_key(&key, |other| other.key) else {
            return false;
        };
        block.waiters.remove(place);
        if block.waiters.is_empty() {
            self.blocks.remove(index);
        } else {
            block.compute(self.rate);
        }
        true
    }

    /// Sets how much work is done per unit of time.
    pub(super) fn set_rate(&mut self, rate: f64) {
        let ratio = rate / self.rate;
        if !(1.0 / RATE_TOLERANCE..=RATE_TOLERANCE).contains(&ratio) {
            self.rate = rate;
            for block in &mut self.blocks {
                block.compute(rate);
            }
        }
    }

    /// Whether all waiters before `key` keep their deadlines with `backlog_ns` of work before them. The
    /// backlog includes the work of `key` itself. A negative backlog is free capacity.
    pub(super) fn can_pass(&self, now_ns: u64, key: Key, backlog_ns: f64) -> bool {
        let mut start_ns = now_ns as f64 + backlog_ns / self.rate;
        for block in &self.blocks {
            if block.last >= key {
                return block.latest_before(key, self.rate) >= start_ns;
            }
            if block.latest_ns < start_ns {
                return false;
            }
            start_ns += block.lasts_ns;
        }
        true
    }

    /// The block where a key is or belongs.
    fn block_of(&self, key: Key) -> usize {
        let after = self
            .blocks
            .partition_point(|block| block.waiters.first().is_some_and(|first| first.key <= key));
        after.saturating_sub(1)
    }
}

impl Block {
    fn new(waiters: Vec<Waiter>, rate: f64) -> Self {
        let mut block = Self {
            last: NO_KEY,
            waiters,
            lasts_ns: 0.0,
            latest_ns: 0.0,
        };
        block.compute(rate);
        block
    }

    fn compute(&mut self, rate: f64) {
        let work_ns: u64 = self.waiters.iter().map(|waiter| waiter.work_ns).sum();
        self.last = self.waiters.last().map_or(NO_KEY, |waiter| waiter.key);
        self.lasts_ns = work_ns as f64 / rate;
        self.latest_ns = latest_ns(&self.waiters, rate);
    }

    /// The smallest latest of the waiters before a key.
    fn latest_before(&self, key: Key, rate: f64) -> f64 {
        let end = self.waiters.partition_point(|waiter| waiter.key < key);
        latest_ns(&self.waiters[..end], rate)
    }
}

/// The smallest latest of `waiters`, as if none waited before them.
fn latest_ns(waiters: &[Waiter], rate: f64) -> f64 {
    let time_of_work = 1.0 / rate;
    let mut before_ns = 0.0;
    let mut latest_ns = f64::INFINITY;
    for waiter in waiters {
        let (deadline_ns, _) = waiter.key;
        let needed_ns = (before_ns + waiter.room_ns as f64) * time_of_work;
        latest_ns = latest_ns.min(deadline_ns as f64 - needed_ns);
        before_ns += waiter.work_ns as f64;
    }
    latest_ns
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(deadline_ns: u64, sequence: u64) -> Key {
        (deadline_ns, RequestId { sequence, slot: 0 })
    }

    /// Whether all before `key` start in time, found by serving them.
    fn can_pass_slowly(waiters: &[Waiter], now_ns: u64, key: Key, backlog_ns: u64) -> bool {
        let mut start_ns = now_ns + backlog_ns;
        waiters.iter().take_while(|w| w.key < key).all(|waiter| {
            let in_time = start_ns + waiter.room_ns <= waiter.key.0;
            start_ns += waiter.work_ns;
            in_time
        })
    }

    proptest! {
        #[test]
        fn says_what_serving_them_one_by_one_would_show(
            jobs in prop::collection::vec((0..40_000u64, 1..40u64, any::<bool>()), 1..900),
            asked in 0..40_000u64, backlog_ns in 0..3000u64, now_ns in 0..100u64,
        ) {
            let mut deadlines = Deadlines::new();
            let mut waiters = Vec::new();
            for (sequence, &(deadline_ns, work_ns, _)) in (0..).zip(&jobs) {
                let key = key(deadline_ns, sequence);
                let room_ns = work_ns / 2;
                deadlines.insert(key, work_ns, room_ns);
                waiters.push(Waiter {
                    key,
                    work_ns,
                    room_ns,
                });
            }
            for (sequence, &(deadline_ns, _, goes)) in (0..).zip(&jobs) {
                if goes {
                    let key = key(deadline_ns, sequence);
                    prop_assert!(deadlines.remove(key));
                    prop_assert!(!deadlines.remove(key));
                    waiters.retain(|waiter| waiter.key != key);
                }
            }
            waiters.sort_by_key(|waiter| waiter.key);
            prop_assert_eq!(deadlines.first(), waiters.first().map(|waiter| waiter.key));
            let asked = key(asked, 0);
            prop_assert_eq!(
                deadlines.can_pass(now_ns, asked, backlog_ns as f64),
                can_pass_slowly(&waiters, now_ns, asked, backlog_ns)
            );
        }
    }

    #[test]
    fn twice_the_rate_starts_them_in_half_the_time() {
        let mut deadlines = Deadlines::new();
        deadlines.insert(key(100, 0), 50, 0);
        deadlines.insert(key(120, 1), 50, 0);
        let last = key(1000, 2);
        assert!(deadlines.can_pass(0, last, 70.0));
        assert!(!deadlines.can_pass(0, last, 71.0));
        deadlines.set_rate(2.0);
        assert!(deadlines.can_pass(0, last, 190.0));
        assert!(!deadlines.can_pass(0, last, 201.0));
    }
}
