//! The queue of an emulated network: packets come in, and leave when their path lets them.
//!
//! A lane is one direction of one path ([`Way`]). Every lane has its own random stream, so lanes do not
//! influence each other. Time is an argument, in nanoseconds from any origin. For a packet of `n` IP
//! bytes offered at `t`:
//! ```text
//! lost            by the lane's loss model, else
//! start = max(t, when the lane's link is free)          without a rate: sent = t
//! sent  = start + 8 (n + 14) / rate
//! due   = sent + delay + uniform(-jitter, jitter)
//! due   = max(due, due of the packet before it in its flow)      unless `reorder`
//! ```
//! A packet beyond either of two limits is dropped and counted: `queue_packets` that wait for a lane's
//! link or are on it, and `PACKETS_MAX` under way in all lanes.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use shortline_sched::units::Rate;

use super::loss::LossProcess;
use super::path::Way;

/// What the uplink counts for a packet besides its IP bytes.
const HEAD_BYTES: u64 = 14;
/// The most packets under way: full ones at 100 Mbit/s for more than 10 s, 150 MB.
pub const PACKETS_MAX: usize = 100_000;
/// When more flows than this are remembered, those without packets under way are forgotten.
const FLOWS_MIN: usize = 1024;

/// Packets of type `P` under way.
#[derive(Debug)]
pub struct Emulator<P> {
    lanes: Vec<Lane>,
    under_way: BinaryHeap<Reverse<UnderWay<P>>>,
    packets_max: usize,
    offered: u64,
}

/// What happened to a packet that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is under way.
    UnderWay,
    /// The loss model lost it.
    Lost,
    /// It was dropped for want of room.
    Dropped,
}

/// A packet at the end of its path.
#[derive(Debug, PartialEq, Eq)]
pub struct Due<P> {
    /// The lane it came by.
    pub lane: usize,
    /// When it should leave, in nanoseconds.
    pub at_ns: u64,
    /// The packet as it was offered.
    pub packet: P,
}

/// The counters of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCounts {
    /// Packets offered.
    pub offered: u64,
    /// Of these, lost by the model.
    pub lost: u64,
    /// Of these, dropped for want of room.
    pub dropped: u64,
    /// IP bytes of the others.
    pub bytes: u64,
}

impl<P> Emulator<P> {
    /// One lane for each way. The same seed and the same offers give the same outcome.
    pub fn new(ways: &[Way], packets_max: usize, seed: u64) -> Self {
        let lanes = ways.iter().zip(0..);
        Self {
            lanes: lanes
                .map(|(way, stream)| Lane::new(way, seed, stream))
                .collect(),
            under_way: BinaryHeap::new(),
            packets_max,
            offered: 0,
        }
    }

    /// Offers a packet of `ip_bytes` to a lane. Packets of one `flow` keep their order.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn offer(
        &mut self,
        now_ns: u64,
        lane: usize,
        flow: u64,
        ip_bytes: usize,
        packet: P,
    ) -> Fate {
        let has_room = self.under_way.len() < self.packets_max;
        let result = self.lanes[lane].pass(now_ns, flow, ip_bytes as u64, has_room);
        let due_ns = match result {
            Ok(due_ns) => due_ns,
            Err(fate) => return fate,
        };
        self.under_way.push(Reverse(UnderWay {
            key: (due_ns, self.offered),
            lane,
            packet,
        }));
        self.offered += 1;
        Fate::UnderWay
    }

    /// When the next packet is due.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.under_way.peek().map(|Reverse(next)| next.key.0)
    }

    /// The next packet that is due now, if there is one.
    pub fn take_due(&mut self, now_ns: u64) -> Option<Due<P>> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        let Reverse(next) = self.under_way.pop()?;
        Some(Due {
            lane: next.lane,
            at_ns: next.key.0,
            packet: next.packet,
        })
    }

    /// The counters of each lane.
    pub fn counts(&self) -> Vec<LaneCounts> {
        self.lanes.iter().map(|lane| lane.counts).collect()
    }
}

/// Ordered by its key: the due time, then the order of offers.
#[derive(Debug)]
struct UnderWay<P> {
    key: (u64, u64),
    lane: usize,
    packet: P,
}

impl<P> PartialEq for UnderWay<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<P> Eq for UnderWay<P> {}

impl<P> PartialOrd for UnderWay<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for UnderWay<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

#[derive(Debug)]
struct Lane {
    delay_ns: u64,
    jitter_ns: u64,
    reorder: bool,
    link: Option<Link>,
    loss: LossProcess,
    rng: ChaCha8Rng,
    flows: Flows,
    counts: LaneCounts,
}

impl Lane {
    fn new(way: &Way, seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self {
            delay_ns: way.delay.duration().as_nanos() as u64,
            jitter_ns: way.jitter.duration().as_nanos() as u64,
            reorder: way.reorder,
            link: way.rate.map(|rate| Link::new(rate, way.queue_packets)),
            loss: LossProcess::new(way.loss),
            rng,
            flows: Flows::default(),
            counts: LaneCounts::default(),
        }
    }

    /// When the packet is due, or why it never will be.
    fn pass(&mut self, now_ns: u64, flow: u64, bytes: u64, has_room: bool) -> Result<u64, Fate> {
        self.counts.offered += 1;
        if self.loss.loses(&mut self.rng) {
            self.counts.lost += 1;
            return Err(Fate::Lost);
        }
        let sent_ns = match &mut self.link {
            _ if !has_room => None,
            None => Some(now_ns),
            Some(link) => link.send(now_ns, bytes + HEAD_BYTES),
        };
        let Some(sent_ns) = sent_ns else {
            self.counts.dropped += 1;
            return Err(Fate::Dropped);
        };
        self.counts.bytes += bytes;
        let due_ns = sent_ns + self.travel_ns();
        if self.reorder || self.jitter_ns == 0 {
            return Ok(due_ns);
        }
        Ok(self.flows.after_the_last(now_ns, flow, due_ns))
    }

    fn travel_ns(&mut self) -> u64 {
        if self.jitter_ns == 0 {
            return self.delay_ns;
        }
        let spread = self.rng.random_range(0..=2 * self.jitter_ns);
        (self.delay_ns + spread).saturating_sub(self.jitter_ns)
    }
}

/// A link with a FIFO before it.
#[derive(Debug)]
struct Link {
    rate: Rate,
    queue_packets: usize,
    /// The times at which the packets that wait or are on the link will have been sent, in order.
    sent_ns: VecDeque<u64>,
}

impl Link {
    fn new(rate: Rate, queue_packets: u32) -> Self {
        Self {
            rate,
            queue_packets: queue_packets as usize,
            sent_ns: VecDeque::new(),
        }
    }

    /// When a packet that arrives now will have been sent. `None` if the FIFO is full.
    fn send(&mut self, now_ns: u64, wire_bytes: u64) -> Option<u64> {
        while self
            .sent_ns
            .front()
            .is_some_and(|sent_ns| *sent_ns <= now_ns)
        {
            self.sent_ns.pop_front();
        }
        if self.sent_ns.len() >= self.queue_packets {
            return None;
        }
        let start_ns = self.sent_ns.back().copied().unwrap_or(now_ns);
        let bit_ns = u128::from(wire_bytes) * 8 * 1_000_000_000;
        let sending_ns = (bit_ns / u128::from(self.rate.bps())) as u64;
        let sent_ns = start_ns + sending_ns;
        self.sent_ns.push_back(sent_ns);
        Some(sent_ns)
    }
}

/// When the last packet of each flow is due. A flow whose packets have all left needs no entry, so
/// there are never many more entries than packets under way.
#[derive(Debug, Default)]
struct Flows {
    last_due_ns: HashMap<u64, u64>,
    tidy_at: usize,
}

impl Flows {
    fn after_the_last(&mut self, now_ns: u64, flow: u64, due_ns: u64) -> u64 {
        if self.last_due_ns.len() >= self.tidy_at {
            self.last_due_ns.retain(|_, last_ns| *last_ns > now_ns);
            self.tidy_at = FLOWS_MIN.max(2 * self.last_due_ns.len());
        }
        let last_ns = self.last_due_ns.entry(flow).or_default();
        *last_ns = due_ns.max(*last_ns);
        *last_ns
    }
}
