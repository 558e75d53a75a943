//! Changes by an operator while requests wait and run: a pause, places, limits, and the order.
//!
//! The estimators stay, because estimates are made with them.

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

    /// Uses the capacity, the limits and the order of `new` instead of `old`. Waiting requests stay, even if fewer may
    /// wait.
    /// What is known of the types stays. Running requests keep what they added to the load.
    pub fn reconfigure(&mut self, now_ns: u64, old: &AdmissionConfig, new: &AdmissionConfig) {
        self.tell_time(now_ns);
        self.queue_max = new.queue_max;
        self.shed_wait_ns = new.shed_wait_ns.map(u64::from);
        self.stall_ns = new.stall_ns.map(u64::from);
        self.debt_wait_ns_max = new.debt_wait_ns_max;
        self.runaways.set_rule(new.runaway);
        if (new.order, new.oldest_share) != (old.order, old.oldest_share) {
            self.order_anew(new);
        }
        if new.capacity != old.capacity || new.open_up != old.open_up {
            let found_ns = self.control.limit_ns();
            self.control = Control::new(new);
            // The old limit is the best place to begin.
            if let Some(found_ns) = found_ns {
                self.control.restore(found_ns);
            }
            if self.types.measure_for(new) {
                for kind in 0..self.types.len() {
                    self.tenants.rank_anew(&self.types, kind);
                }
            }
        }
    }

    /// Puts all that waits in another order. Debts and requests that skip the queue are as before; credit for the oldest
    /// begins at nothing.
    fn order_anew(&mut self, config: &AdmissionConfig) {
        let mut queued = self.requests.not_held();
        queued.retain(|id| !self.unqueued.contains(id));
        for &id in &queued {
            if let Some(request) = self.requests.get(id) {
                let queue = &mut self.tenants.get_mut(request.tenant).queue;
                queue.remove(&mut self.requests, &mut self.types, id);
            }
        }
        self.order = config.order;
        self.types.set_order(config.order);
        self.tenants.order_anew(config);
        for id in queued {
            self.queue_up(id);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Capacity, Kept, KeptEstimate, OldestShare, Order, Outcome, Refusal};
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

    #[test]
    fn what_waits_goes_in_the_order_that_is_wanted_now() {
        let fifo = AdmissionConfig {
            order: Order::Fifo,
            capacity: "1ns".parse().unwrap(),
            ..AdmissionConfig::default()
        };
        let known = |name: &str, service_ns| KeptEstimate {
            name: name.to_owned(),
            service_ns,
            requests: 8,
            spread: None,
        };
        let orders = [
            Order::Fifo,
            Order::Sjf,
            Order::SjfAging("1000".parse().unwrap()),
            Order::Gittins,
        ];
        for order in orders {
            let mut gate = Admission::new(fifo);
            gate.restore(&Kept {
                capacity_ns: None,
                estimates: vec![known("long", 50_000_000), known("short", 1_000_000)],
            });
            let (long, short) = (gate.type_of("long"), gate.type_of("short"));
            let running = gate.arrive(0, short).unwrap();
            assert_eq!(gate.admit_next(0), Some(running));
            let kinds = [long, short, long, short];
            let ids = kinds.map(|kind| gate.arrive(0, kind).unwrap());
            let new = AdmissionConfig {
                order,
                oldest_share: OldestShare::NONE,
                ..fifo
            };
            gate.reconfigure(0, &fifo, &new);
            assert_eq!(gate.waiting(), 4);
            let expected = match order {
                Order::Fifo => ids,
                _ => [ids[1], ids[3], ids[0], ids[2]],
            };
            let mut ends = running;
            for (at, id) in (1..).zip(expected) {
                gate.finish(at * 1_000_000, ends, Outcome::Completed);
                assert_eq!(gate.admit_next(at * 1_000_000), Some(id), "{order:?}");
                ends = id;
            }
        }
    }

    /// Runs requests of a type one after the other; returns the time of the last one's end.
    fn run(gate: &mut Admission, mut now_ns: u64, requests: usize, service_ns: u64) -> u64 {
        for _ in 0..requests {
            let kind = gate.type_of("a");
            let id = gate.arrive(now_ns, kind).unwrap();
            assert_eq!(gate.admit_next(now_ns), Some(id));
            now_ns += service_ns;
            gate.finish(now_ns, id, Outcome::Completed);
        }
        now_ns
    }

    /// What one more request adds to the load.
    fn load_ns_of_one(gate: &mut Admission, now_ns: u64) -> u64 {
        let kind = gate.type_of("a");
        let id = gate.arrive(now_ns, kind).unwrap();
        assert_eq!(gate.admit_next(now_ns), Some(id));
        let load_ns = gate.load_ns();
        gate.finish(now_ns, id, Outcome::Failed);
        load_ns
    }

    #[test]
    fn a_capacity_that_is_found_measures_work_apart_from_the_slowdown() {
        const MS: u64 = 1_000_000;
        let fixed = AdmissionConfig {
            capacity: "1s".parse().unwrap(),
            ..AdmissionConfig::default()
        };
        let auto = AdmissionConfig {
            capacity: Capacity::Auto,
            ..fixed
        };
        let mut gate = Admission::new(fixed);
        let now_ns = run(&mut gate, 0, 40, 10 * MS);
        gate.reconfigure(now_ns, &fixed, &auto);
        assert_eq!(load_ns_of_one(&mut gate, now_ns), 10 * MS);
        // All requests become four times slower: that is the slowdown, and no more work.
        let now_ns = run(&mut gate, now_ns, 400, 40 * MS);
        let slowdown = gate.view().slowdown;
        assert!((3.5..4.5).contains(&slowdown), "{slowdown}");
        let load_ns = load_ns_of_one(&mut gate, now_ns);
        assert!((9 * MS..11 * MS).contains(&load_ns), "{load_ns}");
        // A fixed capacity is in time as it passes.
        gate.reconfigure(now_ns, &auto, &fixed);
        assert_eq!(gate.view().slowdown, 1.0);
        let load_ns = load_ns_of_one(&mut gate, now_ns);
        assert!((36 * MS..44 * MS).contains(&load_ns), "{load_ns}");
        let now_ns = run(&mut gate, now_ns, 100, 20 * MS);
        assert_eq!(gate.view().slowdown, 1.0);
        assert_eq!(load_ns_of_one(&mut gate, now_ns), 20 * MS);
    }
}
