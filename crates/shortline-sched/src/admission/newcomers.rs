//! Types of which next to nothing is known (paper 002 knows all of its own beforehand) go
//! early, so that what a release brings does not wait with the reports: one request of each, before the
//! known ones, within bounds.
//!
//! A type is *new* until two of its requests have ended: one alone may have been the long one. As long as
//! none of it runs, its first waiter is a **trial**:
//!
//! - It goes before the known types as soon as the load is below the capacity, and counts as a mean
//!   request at most.
//! - Two trials run at once at most.
//! - What trials take is owed to the others: until these have been admitted with four times as much work,
//!   no further trial goes first. So of the work that is admitted while others wait trials have a fifth,
//!   whatever a flood of new names brings. What they take is known when they have ended; until then they
//!   owe their estimate.
//!
//! A new type whose trial runs, or that may not be tried now, ranks as it always did: as a mean request, or
//! as what its oldest one has taken so far if that is more ([`super::types`]). The debt is forgotten where
//! nobody waits: then a trial delays nobody.

/// So many requests of a type must have ended.
pub(super) const KNOWN: usize = 2;

/// So many trials run at once.
const RUNNING_MAX: usize = 2;

/// What the others are owed for a unit of work of trials.
const OWED: f64 = 4.0;

/// What trials owe to the known types.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newcomers {
    running: usize,
    /// In nanoseconds of load.
    debt_ns: f64,
}

impl Newcomers {
    /// Whether another may be tried.
    pub(super) fn may_try(self) -> bool {
        self.running < RUNNING_MAX && self.debt_ns <= 0.0
    }

    /// A trial was admitted.
    pub(super) fn start(&mut self, load_ns: u64) {
        self.running += 1;
        self.debt_ns += OWED * load_ns as f64;
    }

    /// It has ended, after more work or less.
    pub(super) fn end(&mut self, expected_ns: u64, taken_ns: u64) {
        self.running -= 1;
        self.debt_ns += OWED * (taken_ns as f64 - expected_ns as f64);
    }

    /// Another was admitted.
    pub(super) fn repay(&mut self, load_ns: u64) {
        self.debt_ns = (self.debt_ns - load_ns as f64).max(0.0);
    }

    /// Nobody waits.
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
        // Four times the estimate has been admitted, but it takes longer.
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
