//! After any sequence of events, the counters agree.

use super::*;

/// A call of a driver.
#[derive(Clone, Debug)]
enum Step {
    Arrive(usize),
    Finish(usize, bool),
    Withdraw(usize),
    Pause(usize),
    Resume(usize),
    Clock(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6usize).prop_map(Step::Arrive),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(n, done)| Step::Finish(n, done)),
        1 => any::<usize>().prop_map(Step::Withdraw),
        1 => any::<usize>().prop_map(Step::Pause),
        1 => any::<usize>().prop_map(Step::Resume),
        3 => (-20_000_000i64..50_000_000).prop_map(Step::Clock),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Fifo),
        Just(Order::Sjf),
        Just(Order::SjfAging("3".parse().unwrap())),
    ]
}

proptest! {
    /// After any calls, with a clock that jumps both ways: the running and waiting requests are those
    /// that arrived and have not ended, the load is the sum of what the active ones added, and none
    /// waits that may start.
    #[test]
    fn nothing_is_lost(
        order in order(), capacity in prop_oneof![
            Just("off"), Just("auto"), Just("1ns"), Just("50ms"), Just("1h")
        ],
        share in prop_oneof![Just("0"), Just("10%"), Just("50%")],
        steps in prop::collection::vec(step(), 0..300),
    ) {
        let mut gate = Admission::new(AdmissionConfig {
            order,
            capacity: capacity.parse().unwrap(),
            oldest_share: share.parse().unwrap(),
            queue_max: 50,
            ..AdmissionConfig::default()
        });
        let kinds: Vec<_> = (0..6).map(|n| gate.type_of(&n.to_string())).collect();
        let mut waiting = Vec::new();
        let mut running = Vec::new();
        let mut now_ns = 0u64;
        for step in steps {
            match step {
                Step::Arrive(kind) => match gate.arrive(now_ns, kinds[kind]) {
                    Ok(id) => waiting.push(id),
                    Err(_) => prop_assert!(gate.waiting() >= 50),
                },
                Step::Finish(n, done) if !running.is_empty() => {
                    let id = running.swap_remove(n % running.len());
                    let outcome = if done { Outcome::Completed } else { Outcome::Failed };
                    gate.finish(now_ns, id, outcome);
                    gate.finish(now_ns, id, outcome);
                }
                Step::Withdraw(n) if !waiting.is_empty() => {
                    let id = waiting.swap_remove(n % waiting.len());
                    prop_assert!(gate.withdraw(now_ns, id));
                    prop_assert!(!gate.withdraw(now_ns, id));
                }
                Step::Pause(n) if !running.is_empty() => {
                    gate.pause(now_ns, running[n % running.len()]);
                }
                Step::Resume(n) if !running.is_empty() => {
                    gate.resume(now_ns, running[n % running.len()]);
                }
                Step::Clock(by_ns) => now_ns = now_ns.saturating_add_signed(by_ns),
                _ => {}
            }
            while let Some(id) = gate.admit_next(now_ns) {
                let place = waiting.iter().position(|&other| other == id);
                prop_assert!(place.is_some(), "admitted who does not wait");
                waiting.swap_remove(place.unwrap());
                running.push(id);
            }
            let view = gate.view();
            prop_assert_eq!((view.waiting, view.running), (waiting.len(), running.len()));
            let load_ns: u64 = running
                .iter()
                .filter_map(|&id| gate.requests.running(id))
                .filter(|running| running.paused_at_ns.is_none())
                .map(|running| running.load_ns)
                .sum();
            prop_assert_eq!(view.load_ns, load_ns);
            prop_assert!(view.waiting == 0 || view.active > 0, "a standstill");
            let by_type: usize = view.types.iter().map(|kind| kind.waiting).sum();
            prop_assert_eq!(by_type, waiting.len());
        }
    }
}
