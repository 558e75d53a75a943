//! Changes by an operator while requests wait and run: a pause, places, and limits.
//!
//! The order and the estimators stay, because waiting requests have their places by them.

use std::num::NonZeroUsize;

use super::capacity::Control;
use super::{Admission, AdmissionConfig};

impl Admission {
    /// Runs at most `running_max` requests at once from now on. Running ones go on.
    pub fn set_running_max(&mut self, running_max: Option<NonZeroUsize>) {
        self.running_max = running_max;
    }

    /// Starts no request from now on, or starts them again. Running requests go on to their end, and waiting
    /// ones keep their places. The time of a pause does not count as time with waiters.
    pub fn set_paused(&mut self, now_ns: u64, is_paused: bool) {
        let now_ns = self.tell_time(now_ns);
        self.is_paused = is_paused;
        self.progress_ns = now_ns;
    }

    /// Uses the capacity and the limits of `new` instead of `old`. Waiting requests stay, even if fewer may wait.
    /// The slowdown and the estimator of the load stay those of the capacity at the start.
    pub fn reconfigure(&mut self, now_ns: u64, old: &AdmissionConfig, new: &AdmissionConfig) {
        self.tell_time(now_ns);
        self.queue_max = new.queue_max;
        self.shed_wait_ns = new.shed_wait_ns.map(u64::from);
        self.stall_ns = new.stall_ns.map(u64::from);
        self.debt_wait_ns_max = new.debt_wait_ns_max;
        if new.capacity != old.capacity || new.open_up != old.open_up {
            let found_ns = self.control.limit_ns();
            self.control = Control::new(new);
            // The old limit is the best place to begin.
            if let Some(found_ns) = found_ns {
                self.control.restore(found_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Capacity, Outcome, Refusal};
    use super::*;

    #[test]
    fn limits_change_and_who_waits_stays() {
        let old = AdmissionConfig {
            capacity: "1ns".parse().unwrap(),
            ..AdmissionConfig::default()
        };
        let mut gate = Admission::new(old);
        let kind = gate.type_of("a");
        let first = gate.arrive(0, kind).unwrap();
        assert_eq!(gate.admit_next(0), Some(first));
        let waiting: Vec<_> = (0..3).map(|_| gate.arrive(0, kind).unwrap()).collect();
        let fewer = AdmissionConfig {
            queue_max: 1,
            ..old
        };
        gate.reconfigure(1, &old, &fewer);
        assert_eq!(gate.waiting(), 3);
        assert!(matches!(
            gate.arrive(1, kind),
            Err(Refusal::QueueFull { .. })
        ));
        assert_eq!(gate.admit_next(1), None);
        let open = AdmissionConfig {
            capacity: Capacity::Off,
            ..fewer
        };
        gate.reconfigure(2, &fewer, &open);
        for id in waiting {
            assert_eq!(gate.admit_next(2), Some(id));
        }
        gate.finish(3, first, Outcome::Completed);
        let auto = AdmissionConfig {
            capacity: Capacity::Auto,
            ..open
        };
        gate.reconfigure(4, &open, &old);
        gate.reconfigure(5, &old, &auto);
        assert!(gate.view().capacity_ns.is_some());
    }
}
