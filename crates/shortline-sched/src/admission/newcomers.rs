//! Trials: one request of each new type goes early, within bounds.
//!
//! Without trials, the new statements of a release would wait together with long reports. (Paper 002 knows
//! all its types beforehand.) A type is *new* until two of its requests have ended, because a single one may
//! have been unusually long. While none of its requests runs, its first waiter is a **trial**:
//!
//! - It goes before the known types as soon as the load is below the capacity. It counts as at most a mean
//!   request, and as at most a quarter of the capacity.
//! - At most two trials run at once.
//! - Trials owe their work to the others. No further trial goes first until four times as much other work
//!   has been admitted. So trials get a fifth of the work admitted while others wait, even in a flood of new
//!   names. A trial owes its estimate while it runs, and what it took once it has ended.
//!
//! A new type whose trial runs, or that may not be tried now, ranks as usual. Its rank is a mean request, or
//! what its oldest request has taken so far if that is more ([`super::types`]). When the queue is empty, the
//! debt is forgotten, because a trial then delays no other request.

/// A type is known once this many of its requests have ended.
pub(super) const KNOWN: usize = 2;

/// The most trials that run at once.
const RUNNING_MAX: usize = 2;

/// Other work owed for each unit of work of trials.
const OWED: f64 = 4.0;

/// What trials owe to the known types.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newcomers {
    running: usize,
    /// In nanoseconds of load.
    debt_ns: f64,
}

impl Newcomers {
    /// Whether another trial may start.
    pub(super) fn may_try(self) -> bool {
        self.running < RUNNING_MAX && self.debt_ns <= 0.0
    }

    /// A trial was admitted.
    pub(super) fn start(&mut self, load_ns: u64) {
        self.running += 1;
        self.debt_ns += OWED * load_ns as f64;
    }

    /// A trial has ended. The debt is corrected from its estimate to what it took.
    pub(super) fn end(&mut self, expected_ns: u64, taken_ns: u64) {
        self.running -= 1;
        self.debt_ns += OWED * (taken_ns as f64 - expected_ns as f64);
    }

    /// A request that is not a trial was admitted.
    pub(super) fn repay(&mut self, load_ns: u64) {
        self.debt_ns = (self.debt_ns - load_ns as f64).max(0.0);
    }

    /// The queue is empty.
    pub(super) fn forgive(&mut self) {
        self.debt_ns = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_trial_took_is_repaid_four_times_before_the_next() {
        let mut newcomers = Newcomers::default();
        assert!(newcomers.may_try());
        newcomers.start(10);
        assert!(!newcomers.may_try());
        // Four times the estimate is repaid.
        newcomers.repay(40);
        assert!(newcomers.may_try());
        newcomers.start(10);
        newcomers.repay(40);
        assert!(!newcomers.may_try(), "two run");
        newcomers.end(10, 110);
        newcomers.repay(399);
        assert!(!newcomers.may_try());
        newcomers.repay(1);
        assert!(newcomers.may_try());
        newcomers.start(10);
        newcomers.end(10, 0);
        newcomers.end(10, 10);
        assert!(newcomers.may_try(), "what took no time owes nothing");
    }
}
