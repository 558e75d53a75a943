//! The pacer: a model of the queue in front of the uplink, in bytes, that says when the next
//! quantum may be handed to the kernel.
//!
//! Model: `queue(t)` rises by the wire bytes of each grant and falls with the uplink's rate.
//! A grant is due when `queue <= lead`: the kernel then holds at most the rest of one quantum,
//! so that almost nothing is where it can no longer be reordered (design, idea 2), and the
//! link does not run dry while the process is being woken: `lead` follows how late wake-ups are, and
//! how late after a grant its bytes are in the socket (the maximum of each, forgotten by a 64th at
//! each), between [`LEAD_NS_MIN`] and [`LEAD_NS_MAX`]. `queue` may go down to `-credit` ([`CREDIT_NS`]) while
//! somebody waits or has not written a grant yet: time lost to a wake-up that was later still is made good,
//! as in a token bucket of that depth. Time in which nobody asked is not: what it let through at once would
//! stand in the kernel's queue before the next small response.
//!
//! Correction: the model is charged with what we expect to be sent, and corrected with what
//! the link really sent (device counters, or `TCP_INFO` where there are none): SYN-ACKs,
//! acknowledgements, TLS records, retransmissions and foreign traffic are all in there.
//! Charges whose bytes have not reached the kernel are kept apart (`unwritten`), so that they
//! are not mistaken for bytes that were never needed. Where the kernel shows its queue, the
//! model is never below it. But corrections do not make it longer than [`QUEUE_NS_MAX`]: much of what they count
//! may not have gone through the uplink, or the rate may be far too low as yet. A longer queue would let
//! nobody send, so nothing would ever show that it is not there.
//!
//! No I/O and no clock: time is an argument, in nanoseconds.

use shortline_sched::units::Rate;

use crate::driver::device::Reading;

/// The least kernel queue aimed at, as time on the link.
pub const LEAD_NS_MIN: u64 = 100_000;
/// The most, on a machine that wakes us late; a connection that takes longer waits for its client.
pub const LEAD_NS_MAX: u64 = 2_000_000;
/// Lost time that is made good, as time on the link.
pub const CREDIT_NS: u64 = 3_000_000;
/// The longest queue that corrections make, as time on the link. Hardly a router holds more.
pub const QUEUE_NS_MAX: u64 = 1_000_000_000;
/// Observations further apart than this are not compared: what was sent meanwhile has drained.
const OBSERVATION_NS_MAX: u64 = 20_000_000;

/// The model of the uplink's queue; see the module's text.
#[derive(Clone, Debug)]
pub struct Pacer {
    bytes_per_ns: f64,
    wake_late_ns: Lateness,
    write_late_ns: Lateness,
    /// When the oldest grant was made that may be unwritten.
    granted_ns: Option<u64>,
    credit_bytes: f64,
    queue_bytes: f64,
    advanced_ns: u64,
    /// Whether somebody was told to wait when last asked.
    made_wait: bool,
    unwritten_bytes: f64,
    last_charge_bytes: f64,
    written_since_reading: f64,
    last_reading: Option<(u64, Reading)>,
}

impl Pacer {
    /// A pacer for `rate` with an empty queue.
    pub fn new(rate: Rate, now_ns: u64) -> Self {
        let bytes_per_ns = rate.bps() as f64 / 8e9;
        Self {
            bytes_per_ns,
            wake_late_ns: Lateness::default(),
            write_late_ns: Lateness::default(),
            granted_ns: None,
            credit_bytes: bytes_per_ns * CREDIT_NS as f64,
            queue_bytes: 0.0,
            advanced_ns: now_ns,
            made_wait: false,
            unwritten_bytes: 0.0,
            last_charge_bytes: 0.0,
            written_since_reading: 0.0,
            last_reading: None,
        }
    }

    /// The uplink's rate is `rate` from `now_ns` on.
    pub fn set_rate(&mut self, rate: Rate, now_ns: u64) {
        self.advance(now_ns);
        self.bytes_per_ns = rate.bps() as f64 / 8e9;
        self.credit_bytes = self.bytes_per_ns * CREDIT_NS as f64;
        self.floor();
        self.ceil();
    }

    /// Whether a grant is due at `now_ns`, for somebody who waits until it is.
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        self.advance(now_ns);
        if !self.made_wait && self.unwritten_bytes == 0.0 {
            self.queue_bytes = self.queue_bytes.max(0.0);
        }
        self.made_wait = self.queue_bytes > self.lead_bytes();
        !self.made_wait
    }

    /// When the next grant will be due if nothing else happens.
    pub fn due_ns(&self) -> u64 {
        let excess_bytes = (self.queue_bytes - self.lead_bytes()).max(0.0);
        self.advanced_ns + (excess_bytes / self.bytes_per_ns).ceil() as u64
    }

    /// A wake-up for a grant that was due came `late_ns` too late.
    pub fn woke_late(&mut self, late_ns: u64) {
        self.wake_late_ns.add(late_ns.min(LEAD_NS_MAX));
    }

    /// The modelled queue in bytes at `now_ns`.
    pub fn queue_bytes(&mut self, now_ns: u64) -> u64 {
        self.advance(now_ns);
        self.queue_bytes.max(0.0) as u64
    }

    /// A grant of `wire_bytes` leaves: they count at once, and as unwritten until told.
    pub fn charge(&mut self, wire_bytes: u32, now_ns: u64) {
        self.granted_ns.get_or_insert(now_ns);
        self.queue_bytes += f64::from(wire_bytes);
        self.unwritten_bytes += f64::from(wire_bytes);
        self.last_charge_bytes = f64::from(wire_bytes);
    }

    /// Bytes charged before have reached the kernel.
    pub fn written(&mut self, wire_bytes: u32, now_ns: u64) {
        let bytes = f64::from(wire_bytes).min(self.unwritten_bytes);
        self.unwritten_bytes -= bytes;
        if let Some(granted_ns) = self.granted_ns.take() {
            let late_ns = now_ns.saturating_sub(granted_ns);
            if late_ns <= LEAD_NS_MAX {
                self.write_late_ns.add(late_ns);
            }
        }
        self.written_since_reading += bytes;
    }

    /// Bytes charged before will not be written now: the link is free for others.
    pub fn refund(&mut self, wire_bytes: u32) {
        let bytes = f64::from(wire_bytes).min(self.unwritten_bytes);
        self.unwritten_bytes -= bytes;
        self.queue_bytes -= bytes;
        // That a client's window was full says nothing of how late we are.
        self.granted_ns = None;
        self.floor();
    }

    /// Bytes charged and written that the socket keeps until its client has acknowledged others: the link is free for
    /// others. Once they leave, the device has counted more than was written.
    pub fn held_back(&mut self, wire_bytes: u32) {
        self.written_since_reading -= f64::from(wire_bytes);
        self.queue_bytes -= f64::from(wire_bytes);
        self.floor();
    }

    /// Bytes that went out beside what was charged (negative: fewer than charged).
    pub fn correct(&mut self, wire_bytes: f64) {
        self.queue_bytes += wire_bytes;
        self.floor();
        self.ceil();
    }

    /// Corrects the model with the device's counters read at `now_ns`.
    pub fn observe(&mut self, now_ns: u64, reading: Reading) {
        self.advance(now_ns);
        if let Some((then_ns, last)) = self.last_reading
            && now_ns.saturating_sub(then_ns) <= OBSERVATION_NS_MAX
            && reading.enqueued_bytes >= last.enqueued_bytes
        {
            let enqueued = (reading.enqueued_bytes - last.enqueued_bytes) as f64;
            self.correct(enqueued - self.written_since_reading);
        }
        self.written_since_reading = 0.0;
        self.last_reading = Some((now_ns, reading));
        let known = reading.backlog_bytes as f64 + self.unwritten_bytes;
        self.queue_bytes = self.queue_bytes.max(known);
    }

    /// Wire bytes that were charged and are not known to be in a socket.
    pub fn unwritten_bytes(&self) -> u64 {
        self.unwritten_bytes as u64
    }

    fn lead_bytes(&self) -> f64 {
        self.lead_ns() * self.bytes_per_ns
    }

    fn lead_ns(&self) -> f64 {
        let late_ns = self.wake_late_ns.0 + self.write_late_ns.0;
        late_ns.clamp(LEAD_NS_MIN as f64, LEAD_NS_MAX as f64)
    }

    fn advance(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.advanced_ns);
        self.advanced_ns = self.advanced_ns.max(now_ns);
        self.queue_bytes -= elapsed_ns as f64 * self.bytes_per_ns;
        self.floor();
    }

    fn floor(&mut self) {
        self.queue_bytes = self.queue_bytes.max(-self.credit_bytes);
    }

    /// Limits what corrections have added. A grant is not limited: its bytes are sent.
    fn ceil(&mut self) {
        let longest_bytes = self.bytes_per_ns * QUEUE_NS_MAX as f64;
        let granted_bytes = self.unwritten_bytes + self.last_charge_bytes;
        self.queue_bytes = self.queue_bytes.min(longest_bytes.max(granted_bytes));
    }
}

/// How late something is at most, in nanoseconds, lately.
#[derive(Clone, Copy, Debug, Default)]
struct Lateness(f64);

impl Lateness {
    fn add(&mut self, late_ns: u64) {
        let forgotten = self.0 * (1.0 - 1.0 / 64.0);
        self.0 = forgotten.max(late_ns as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// 1000 bytes per millisecond; it holds the queue that a grant may leave behind, 100 bytes.
    fn pacer() -> Pacer {
        let mut pacer = Pacer::new(Rate::from_bps(8_000_000), 0);
        pacer.charge(100, 0);
        pacer
    }

    fn reading(enqueued_bytes: u64, backlog_bytes: u64) -> Reading {
        Reading {
            enqueued_bytes,
            backlog_bytes,
        }
    }

    #[test]
    fn grants_follow_the_rate() {
        let mut pacer = pacer();
        assert!(pacer.is_due(0));
        pacer.charge(1000, 0);
        assert!(!pacer.is_due(MS - 1));
        assert_eq!(pacer.due_ns(), MS);
        assert!(pacer.is_due(MS));
    }

    /// With clients far away a sixth of the link was idle: what their sockets kept counted as sent until the next grant was due.
    #[test]
    fn what_a_socket_holds_back_leaves_the_link_to_others() {
        let mut pacer = pacer();
        pacer.written(100, 0);
        pacer.observe(0, reading(0, 0));
        assert!(pacer.is_due(0));
        pacer.charge(4000, 0);
        pacer.written(4000, 0);
        assert!(!pacer.is_due(0));
        pacer.held_back(3000);
        assert_eq!(pacer.due_ns(), MS, "1000 bytes are on their way");
        pacer.observe(MS, reading(1000, 0));
        assert!(pacer.is_due(MS));
        // The client has acknowledged others, and the socket sends the rest.
        pacer.observe(2 * MS, reading(4000, 0));
        assert_eq!(pacer.queue_bytes(2 * MS), 3000 - 900);
    }

    #[test]
    fn corrections_hold_nobody_back_for_long() {
        let mut pacer = pacer();
        pacer.correct(1e9);
        assert_eq!(pacer.due_ns(), 1000 * MS - MS / 10);
        // At a thousandth of the rate, too.
        pacer.set_rate(Rate::from_bps(8_000), 0);
        assert_eq!(pacer.due_ns(), 1000 * MS - MS / 10);
        // What was granted is sent, however long it takes.
        assert!(pacer.is_due(1000 * MS));
        pacer.written(100, 1000 * MS);
        pacer.charge(5000, 1000 * MS);
        pacer.correct(1e9);
        assert_eq!(pacer.queue_bytes(1000 * MS), 10_000);
    }

    #[test]
    fn a_new_rate_holds_from_then_on() {
        let mut pacer = pacer();
        pacer.charge(2000, 0);
        pacer.set_rate(Rate::from_bps(4_000_000), MS);
        assert_eq!(pacer.queue_bytes(MS), 1100);
        // Of 1100 bytes 50 may be left, 100 us; the others take 2.1 ms.
        assert_eq!(pacer.due_ns(), MS + 2_100_000);
    }

    #[test]
    fn lost_time_is_made_good_up_to_the_credit() {
        let mut pacer = pacer();
        pacer.charge(1000, 0);
        assert!(!pacer.is_due(0));
        assert!(pacer.is_due(10 * MS));
        pacer.charge(1000, 0);
        assert!(pacer.is_due(10 * MS), "two of three milliseconds are left");
        pacer.charge(2000, 0);
        pacer.charge(1000, 0);
        assert!(!pacer.is_due(10 * MS));
    }

    #[test]
    fn time_in_which_nobody_asked_is_not_made_good() {
        let mut pacer = pacer();
        pacer.written(100, 0);
        assert!(pacer.is_due(10 * MS));
        pacer.charge(1000, 10 * MS);
        assert!(!pacer.is_due(10 * MS));
        // What was granted and not written yet has been asked for.
        assert!(pacer.is_due(20 * MS));
        pacer.charge(1000, 20 * MS);
        assert!(pacer.is_due(20 * MS));
    }

    #[test]
    fn the_lead_follows_late_wake_ups_and_forgets_them() {
        let mut pacer = pacer();
        pacer.charge(1000, 0);
        pacer.woke_late(MS);
        let earlier = pacer.due_ns();
        assert_eq!(earlier, 100_000, "by what the wake-up was late");
        for _ in 0..500 {
            pacer.woke_late(0);
        }
        assert_eq!(pacer.due_ns(), MS);
        pacer.woke_late(1000 * MS);
        assert_eq!(pacer.lead_ns() as u64, LEAD_NS_MAX);
    }

    #[test]
    fn the_lead_follows_late_writes_too_but_not_clients_that_cannot_take_more() {
        let mut pacer = pacer();
        pacer.written(100, MS / 2);
        pacer.woke_late(MS / 4);
        assert_eq!(pacer.lead_ns() as u64, MS * 3 / 4);
        pacer.charge(100, MS);
        pacer.written(100, 100 * MS);
        assert_eq!(pacer.lead_ns() as u64, MS * 3 / 4);
        pacer.charge(100, 100 * MS);
        pacer.refund(100);
        pacer.charge(100, 101 * MS);
        pacer.written(100, 101 * MS);
        assert!(pacer.lead_ns() < (MS * 3 / 4) as f64);
        // The one that could not take more came before the one that could.
        pacer.charge(100, 200 * MS);
        pacer.charge(100, 200 * MS);
        pacer.refund(100);
        let before = pacer.lead_ns();
        pacer.written(100, 201 * MS);
        assert_eq!(pacer.lead_ns().to_bits(), before.to_bits());
    }

    #[test]
    fn what_the_device_sent_beside_the_charges_delays_the_next_grant() {
        let mut pacer = pacer();
        pacer.written(100, 0);
        pacer.observe(0, reading(5000, 0));
        pacer.charge(1000, 0);
        pacer.written(1000, 0);
        pacer.observe(0, reading(6500, 0));
        assert_eq!(pacer.due_ns(), MS + MS / 2);
    }

    #[test]
    fn a_grant_that_was_never_written_is_not_mistaken_for_an_overcharge() {
        let mut pacer = pacer();
        pacer.written(100, 0);
        pacer.observe(0, reading(5000, 0));
        pacer.charge(1000, 0);
        pacer.observe(0, reading(5000, 0));
        assert_eq!(pacer.due_ns(), MS);
        pacer.refund(1000);
        assert!(pacer.is_due(0));
        pacer.observe(0, reading(5000, 0));
        assert!(pacer.is_due(0));
    }

    #[test]
    fn the_model_is_never_below_the_kernels_own_queue() {
        let mut pacer = pacer();
        pacer.written(100, 0);
        pacer.observe(0, reading(9000, 3100));
        assert_eq!(pacer.due_ns(), 3 * MS);
    }

    #[test]
    fn a_counter_that_restarts_or_a_long_gap_is_not_taken_for_traffic() {
        let mut pacer = pacer();
        pacer.observe(0, reading(5000, 0));
        pacer.observe(1, reading(10, 0));
        assert!(pacer.is_due(1));
        pacer.observe(1 + 2 * OBSERVATION_NS_MAX, reading(1_000_000, 0));
        assert!(pacer.is_due(1 + 2 * OBSERVATION_NS_MAX));
    }
}
