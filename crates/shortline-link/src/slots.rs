//! Slots: at most N quanta hold unacknowledged bytes in the kernel, whatever the uplink's rate
//! is, which need not be known.
//!
//! In the spirit of 001 3.3 (write concurrency), but counted in bytes that the peer has not
//! acknowledged instead of blocked writers: what waits in a socket buffer, a qdisc or a queue
//! further on is all unacknowledged, and cannot be reordered any more.
//!
//! Departures, each to keep the link busy and the cost low:
//! - the quantum doubles, up to a limit, while it is acknowledged within a round trip and
//!   [`DRAIN_NS_FAST`], and halves when it takes longer, down to the configured one: where
//!   there is no queue, nothing is gained by small quanta;
//! - a slot whose bytes make no progress for [`STALL_NS_MAX`] is given back: a stalled client
//!   must not hold the link;
//! - after a look that found every slot drained, responses that fit into one quantum pass
//!   without another look for [`TRUST_NS`], while nobody waits and up to [`TRUST_BYTES_MAX`]:
//!   an uncontended server pays no system call.

use std::sync::Arc;

use crate::transport::Transport;

/// Drained this soon after its grant (beside the path's own round trip), a quantum met no queue.
pub const DRAIN_NS_FAST: u64 = 2_000_000;
/// A slot without any newly acknowledged byte for so long is given back.
pub const STALL_NS_MAX: u64 = 100_000_000;
/// How long a look that found all slots drained is believed.
pub const TRUST_NS: u64 = 1_000_000;
/// How many bytes may pass on the strength of one look.
pub const TRUST_BYTES_MAX: u32 = 64 * 1024;
/// The largest quantum an unqueued path gets.
pub const QUANTUM_BYTES_MAX: u32 = 256 * 1024;
/// How long until full slots are looked at again while jobs wait.
pub const LOOK_AGAIN_NS: u64 = 250_000;

struct Holder {
    transport: Arc<Transport>,
    granted_ns: u64,
    progress_ns: u64,
    unacknowledged_bytes: u32,
}

/// The slots; see the module's text.
pub struct Slots {
    slots_max: usize,
    quantum_bytes_min: u32,
    quantum_bytes: u32,
    holders: Vec<Holder>,
    trusted_until_ns: u64,
    trusted_bytes: u32,
}

impl Slots {
    /// `slots_max` slots of `quantum_bytes` payload bytes each to begin with.
    pub fn new(slots_max: usize, quantum_bytes: u32) -> Self {
        Self {
            slots_max,
            quantum_bytes_min: quantum_bytes,
            quantum_bytes,
            holders: Vec::with_capacity(slots_max),
            trusted_until_ns: 0,
            trusted_bytes: 0,
        }
    }

    /// Payload bytes that the next grant may carry.
    pub fn quantum_bytes(&self) -> u32 {
        self.quantum_bytes
    }

    /// Slots that hold bytes, as far as known without looking.
    pub fn held(&self) -> usize {
        self.holders.len()
    }

    /// Lets a short response pass without a look, if the last one still stands.
    pub fn pass_on_trust(&mut self, now_ns: u64, bytes: u64) -> bool {
        let fits = bytes <= u64::from(self.quantum_bytes_min.min(self.trusted_bytes));
        if !fits || now_ns >= self.trusted_until_ns {
            return false;
        }
        self.trusted_bytes -= bytes as u32;
        true
    }

    /// Whether a slot is free; looks at the sockets only when none is known to be.
    pub fn is_free(&mut self, now_ns: u64) -> bool {
        if self.holders.len() >= self.slots_max {
            self.look(now_ns);
        }
        self.holders.len() < self.slots_max
    }

    /// A grant leaves on `transport`: it holds a slot from now on.
    pub fn hold(&mut self, transport: &Arc<Transport>, now_ns: u64) {
        self.trusted_until_ns = 0;
        self.holders.push(Holder {
            transport: Arc::clone(transport),
            granted_ns: now_ns,
            progress_ns: now_ns,
            unacknowledged_bytes: u32::MAX,
        });
    }

    /// The granted bytes will not be written now: the slot is free for others.
    pub fn release(&mut self, transport: &Arc<Transport>) {
        if let Some(at) = self
            .holders
            .iter()
            .position(|holder| Arc::ptr_eq(&holder.transport, transport))
        {
            self.holders.swap_remove(at);
        }
    }

    fn look(&mut self, now_ns: u64) {
        let mut quantum_bytes = self.quantum_bytes;
        let quantum_bytes_min = self.quantum_bytes_min;
        self.holders.retain_mut(|holder| {
            let held = holder.still_holds(now_ns);
            if !held {
                let drain_ns = now_ns.saturating_sub(holder.granted_ns);
                let fast = drain_ns <= DRAIN_NS_FAST
                    || drain_ns <= DRAIN_NS_FAST + holder.transport.rtt_ns_min();
                quantum_bytes = if fast {
                    (quantum_bytes * 2).min(QUANTUM_BYTES_MAX)
                } else {
                    (quantum_bytes / 2).max(quantum_bytes_min)
                };
            }
            held
        });
        self.quantum_bytes = quantum_bytes;
        if self.holders.is_empty() {
            self.trusted_until_ns = now_ns + TRUST_NS;
            self.trusted_bytes = TRUST_BYTES_MAX;
        }
    }
}

impl Holder {
    fn still_holds(&mut self, now_ns: u64) -> bool {
        if self.transport.has_unwritten() {
            // Granted, but not in the socket yet: nothing to be seen there.
            return now_ns.saturating_sub(self.progress_ns) < STALL_NS_MAX;
        }
        // A socket that cannot be asked any more holds nothing.
        let left_bytes = self.transport.unacknowledged_bytes().unwrap_or(0);
        if left_bytes < self.unacknowledged_bytes {
            self.unacknowledged_bytes = left_bytes;
            self.progress_ns = now_ns;
        }
        left_bytes > 0 && now_ns.saturating_sub(self.progress_ns) < STALL_NS_MAX
    }
}
