//! The service of a client that uses more than its estimates, beside honest clients. Sessions in a closed loop
//! use a server that runs all admitted requests at once, in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// The estimates of the short and the long type.
const SHORT_MS: u64 = 10;
const LONG_MS: u64 = 300;

/// The requests of a session.
#[derive(Clone, Copy, Debug)]
enum Behaviour {
    /// Short requests that take what is expected.
    Exact,
    /// Units with this many statements. Each statement takes what is expected of a unit.
    Long(u64),
    /// The same, each over a new connection.
    Reconnecting(u64),
    /// Short requests, and one long one in ten. Times vary, and each is followed by a rest as long as a
    /// short request.
    Varying(Times),
}

/// How the service times of honest requests vary.
#[derive(Clone, Copy, Debug)]
enum Times {
    /// Two statements of exponential times.
    Exponential,
    /// Five statements. One request in fifty takes thirty times as long as expected, because of a lock.
    Locked,
}

/// A request that waits or runs.
#[derive(Clone, Copy, Debug)]
struct Inside {
    session: usize,
    kind: usize,
    arrival_ns: u64,
    service_ns: u64,
    longest_ns: u64,
}

/// The service that a session got.
#[derive(Clone, Copy, Debug, Default)]
struct Got {
    work_ns: u64,
    /// By type.
    requests: [u64; 2],
    response_ns: [u64; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Finish(RequestId),
    Arrive,
}

struct World {
    gate: Admission,
    kinds: [TypeId; 2],
    sessions: Vec<(Behaviour, Option<ClientId>)>,
    got: Vec<Got>,
    inside: BTreeMap<RequestId, Inside>,
    events: BinaryHeap<Reverse<(u64, usize, Event)>>,
    random: ChaCha8Rng,
}

impl World {
    fn new(order: Order, capacity_ms: u64, sessions: &[Behaviour], pays: bool) -> Self {
        let mut gate = Admission::new(AdmissionConfig {
            order,
            capacity: format!("{capacity_ms}ms").parse().unwrap(),
            estimates_fixed: true,
            ..AdmissionConfig::default()
        });
        let estimates = [("short", SHORT_MS), ("long", LONG_MS)].map(|(name, ms)| KeptEstimate {
            name: name.to_owned(),
            service_ns: ms * MS,
            requests: 8,
            spread: None,
        });
        gate.restore(&Kept {
            capacity_ns: None,
            estimates: estimates.into(),
        });
        let kinds = ["short", "long"].map(|name| gate.type_of(name));
        let sessions = sessions.iter().enumerate();
        let sessions: Vec<_> = sessions
            .map(|(account, &behaviour)| (behaviour, pays.then(|| gate.enter(account as u64))))
            .collect();
        let arrivals = (0..sessions.len()).map(|session| Reverse((0, session, Event::Arrive)));
        Self {
            gate,
            kinds,
            got: vec![Got::default(); sessions.len()],
            inside: BTreeMap::new(),
            events: arrivals.collect(),
            random: ChaCha8Rng::seed_from_u64(7),
            sessions,
        }
    }

    /// Runs until `until_s`. Returns what each session got.
    fn run(mut self, until_s: u64) -> Vec<Got> {
        while let Some(Reverse((now_ns, session, event))) = self.events.pop() {
            if now_ns > until_s * 1000 * MS {
                break;
            }
            match event {
                Event::Arrive => self.arrive(now_ns, session),
                Event::Finish(id) => self.finish(now_ns, session, id),
            }
            while let Some(id) = self.gate.admit_next(now_ns) {
                let inside = self.inside[&id];
                let end_ns = now_ns + inside.service_ns;
                let end = Reverse((end_ns, inside.session, Event::Finish(id)));
                self.events.push(end);
            }
        }
        self.got
    }

    fn arrive(&mut self, now_ns: u64, session: usize) {
        let (behaviour, client) = self.sessions[session];
        let (kind, statements) = self.draw(behaviour);
        let id = self
            .gate
            .arrive_as(now_ns, self.kinds[kind], client)
            .unwrap();
        let inside = Inside {
            session,
            kind,
            arrival_ns: now_ns,
            service_ns: statements.iter().sum(),
            longest_ns: statements.into_iter().max().unwrap_or(0),
        };
        self.inside.insert(id, inside);
    }

    fn finish(&mut self, now_ns: u64, session: usize, id: RequestId) {
        let inside = self.inside.remove(&id).unwrap();
        self.gate.excuse(id, inside.longest_ns);
        self.gate.finish(now_ns, id, Outcome::Completed);
        let got = &mut self.got[session];
        got.work_ns += inside.service_ns;
        got.requests[inside.kind] += 1;
        got.response_ns[inside.kind] += now_ns - inside.arrival_ns;
        let (behaviour, client) = &mut self.sessions[session];
        if let (Behaviour::Reconnecting(_), Some(client)) = (*behaviour, client) {
            self.gate.leave(*client);
            *client = self.gate.enter(session as u64);
        }
        let rest_ns = match behaviour {
            Behaviour::Varying(_) => SHORT_MS * MS,
            _ => 0,
        };
        self.events
            .push(Reverse((now_ns + rest_ns, session, Event::Arrive)));
    }

    /// The type of the next request, and the service time of each of its statements.
    fn draw(&mut self, behaviour: Behaviour) -> (usize, Vec<u64>) {
        match behaviour {
            Behaviour::Exact => (0, vec![SHORT_MS * MS]),
            Behaviour::Long(times) | Behaviour::Reconnecting(times) => {
                (0, vec![SHORT_MS * MS; times as usize])
            }
            Behaviour::Varying(times) => {
                let kind = usize::from(self.random.random_bool(0.1));
                let mean_ns = ([SHORT_MS, LONG_MS][kind] * MS) as f64;
                let statements = match times {
                    Times::Exponential => 2,
                    Times::Locked => 5,
                };
                let mut drawn: Vec<f64> = (0..statements)
                    .map(|_| -(1.0 - self.random.random::<f64>()).ln() / f64::from(statements))
                    .collect();
                if matches!(times, Times::Locked) && self.random.random_bool(0.02) {
                    drawn[0] += 30.0;
                }
                let drawn = drawn.into_iter().map(|part| (mean_ns * part) as u64);
                (kind, drawn.collect())
            }
        }
    }
}

/// The work that the first session gets, as a multiple of an honest session's. All others are honest.
fn advantage(order: Order, places: u64, first: Behaviour, honest: usize, pays: bool) -> f64 {
    let mut sessions = vec![Behaviour::Exact; honest + 1];
    sessions[0] = first;
    let got = World::new(order, places * SHORT_MS, &sessions, pays).run(600);
    let honest_ns: u64 = got[1..].iter().map(|got| got.work_ns).sum();
    got[0].work_ns as f64 / (honest_ns as f64 / honest as f64)
}

#[test]
fn an_open_transaction_gives_no_more_than_a_fair_share() {
    for order in [
        Order::Fifo,
        Order::Sjf,
        Order::SjfAging("5".parse().unwrap()),
    ] {
        let free = advantage(order, 3, Behaviour::Long(100), 31, false);
        assert!(free > 10.0, "the attack is worth nothing: {free:.1}");
        for times in [10, 30, 100, 400] {
            let paid = advantage(order, 3, Behaviour::Long(times), 31, true);
            assert!(paid < 1.3, "{order:?}, {times} estimates: {paid:.2} times");
        }
    }
}

#[test]
fn connecting_anew_pays_no_debt() {
    let paid = advantage(Order::Sjf, 3, Behaviour::Reconnecting(100), 31, true);
    assert!(paid < 1.3, "{paid:.2} times");
}

#[test]
fn what_takes_somewhat_longer_than_expected_gains_thrice_at_most() {
    for times in [1, 2, 3, 4, 6] {
        let paid = advantage(Order::Sjf, 3, Behaviour::Long(times), 31, true);
        assert!(paid < 3.1, "{times} estimates: {paid:.2} times");
    }
}

#[test]
fn honest_clients_whose_times_vary_are_not_slowed_down() {
    for times in [Times::Exponential, Times::Locked] {
        let sessions = vec![Behaviour::Varying(times); 40];
        let [with, without] = [true, false].map(|pays| {
            let got = World::new(Order::Sjf, 400, &sessions, pays).run(2000);
            [0, 1].map(|kind| {
                let requests: u64 = got.iter().map(|got| got.requests[kind]).sum();
                let response_ns: u64 = got.iter().map(|got| got.response_ns[kind]).sum();
                response_ns as f64 / requests as f64
            })
        });
        for kind in [0, 1] {
            let slower = with[kind] / without[kind];
            assert!(
                slower < 1.05,
                "{times:?}, type {kind}: {slower:.3} times as slow"
            );
        }
    }
}

#[test]
fn a_debt_is_forgotten_after_a_while() {
    let mut gate = gate(Order::Sjf, "1ns");
    let kind = taught(&mut gate, "a", 10);
    let client = gate.enter(1);
    let mut now_ns = gate.now_ns;
    let id = gate.arrive_as(now_ns, kind, Some(client)).unwrap();
    gate.admit_next(now_ns).unwrap();
    now_ns += 600_000 * MS;
    gate.finish(now_ns, id, Outcome::Failed);
    // The type has learnt from the long unit, so it is taught to be short again.
    let short = taught(&mut gate, "b", 1);
    now_ns = gate.now_ns;
    let debtor = gate.arrive_as(now_ns, short, Some(client)).unwrap();
    let mut others: Vec<_> = (0..2)
        .map(|_| gate.arrive(now_ns, short).unwrap())
        .collect();
    let mut waited_ns = 0;
    loop {
        let next = gate.admit_next(now_ns).unwrap();
        if next == debtor {
            break;
        }
        assert!(waited_ns <= 61_000 * MS, "held back for too long");
        now_ns += 1000 * MS;
        waited_ns += 1000 * MS;
        gate.finish(now_ns, next, Outcome::Failed);
        // Short requests keep arriving, so one is always before it.
        let Ok(other) = gate.arrive(now_ns, short) else {
            continue;
        };
        others.push(other);
    }
    assert!(waited_ns >= 59_000 * MS, "{waited_ns}");
}

#[test]
fn whoever_is_alone_waits_for_no_debt() {
    let mut gate = gate(Order::Sjf, "1ns");
    let kind = taught(&mut gate, "a", 10);
    let client = gate.enter(1);
    let start_ns = gate.now_ns;
    let id = gate.arrive_as(start_ns, kind, Some(client)).unwrap();
    gate.admit_next(start_ns).unwrap();
    let end_ns = start_ns + 5000 * MS;
    gate.finish(end_ns, id, Outcome::Completed);
    let next = gate.arrive_as(end_ns, kind, Some(client)).unwrap();
    assert_eq!(gate.admit_next(end_ns), Some(next));
}

#[test]
fn what_runs_beyond_its_estimate_weighs_more_and_leaves_nothing_behind() {
    let mut gate = gate(Order::Sjf, "80ms");
    let kind = taught(&mut gate, "a", 1);
    let big = taught(&mut gate, "big", 79);
    let start_ns = gate.now_ns;
    let long = gate.arrive(start_ns, kind).unwrap();
    gate.admit_next(start_ns).unwrap();
    gate.arrive(start_ns, big).unwrap();
    let second = gate.admit_next(start_ns).unwrap();
    gate.arrive(start_ns, big).unwrap();
    for (after_ms, expected_ms) in [(2, 1), (15, 10), (500, 10)] {
        assert_eq!(gate.admit_next(start_ns + after_ms * MS), None);
        assert_eq!(
            gate.requests.running(long).unwrap().load_ns,
            expected_ms * MS
        );
    }
    gate.finish(gate.now_ns, second, Outcome::Failed);
    // 79 fit beside 1, but not beside 10.
    assert_eq!(gate.admit_next(gate.now_ns), None);
    gate.finish(gate.now_ns, long, Outcome::Completed);
    assert_eq!(gate.load_ns(), 0);
    assert!(gate.admit_next(gate.now_ns).is_some());
}

#[test]
fn a_wait_for_a_lock_is_no_service_and_no_debt() {
    let mut gate = gate(Order::Sjf, "80ms");
    let kind = taught(&mut gate, "a", 10);
    let client = gate.enter(1);
    let start_ns = gate.now_ns;
    let id = gate.arrive_as(start_ns, kind, Some(client)).unwrap();
    gate.admit_next(start_ns).unwrap();
    gate.waited_for_lock(id, 4990 * MS);
    assert_eq!(gate.load_ns(), 10 * MS);
    gate.finish(start_ns + 5000 * MS, id, Outcome::Completed);
    assert_eq!(gate.view().types[1].estimate_ns, 10 * MS);
    let next = gate.arrive_as(gate.now_ns, kind, Some(client)).unwrap();
    assert!(gate.requests.waiting(next).unwrap().held_until_ns.is_none());
}

/// A step of a client.
#[derive(Clone, Debug)]
enum Step {
    Arrive(usize, usize),
    Finish(usize),
    Withdraw(usize),
    Pause(usize),
    Resume(usize),
    Reconnect(usize),
    Clock(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3usize, 0..4usize).prop_map(|(kind, client)| Step::Arrive(kind, client)),
        3 => any::<usize>().prop_map(Step::Finish),
        1 => any::<usize>().prop_map(Step::Withdraw),
        1 => any::<usize>().prop_map(Step::Pause),
        1 => any::<usize>().prop_map(Step::Resume),
        1 => (0..4usize).prop_map(Step::Reconnect),
        3 => (0..900_000_000u64).prop_map(Step::Clock),
    ]
}

proptest! {
    /// With any debts, no request is lost, the load is the sum of what the active ones add, and
    /// none waits while nothing runs.
    #[test]
    fn nobody_in_debt_is_lost(
        fifo: bool, steps in prop::collection::vec(step(), 0..200),
    ) {
        let order = if fifo { Order::Fifo } else { Order::Sjf };
        let mut gate = gate(order, "50ms");
        gate.queue_max = 1000;
        let kinds: Vec<_> = (1..4).map(|n| taught(&mut gate, &n.to_string(), n * 5)).collect();
        let mut clients: Vec<_> = (0..4).map(|account| gate.enter(account)).collect();
        let (mut waiting, mut running) = (Vec::new(), Vec::new());
        let mut now_ns = gate.now_ns;
        for step in steps {
            match step {
                Step::Arrive(kind, client) => {
                    let client = Some(clients[client]);
                    waiting.push(gate.arrive_as(now_ns, kinds[kind], client).unwrap());
                }
                Step::Finish(n) if !running.is_empty() => {
                    let id = running.swap_remove(n % running.len());
                    gate.finish(now_ns, id, Outcome::Completed);
                }
                Step::Withdraw(n) if !waiting.is_empty() => {
                    let id = waiting.swap_remove(n % waiting.len());
                    prop_assert!(gate.withdraw(now_ns, id));
                }
                Step::Pause(n) if !running.is_empty() => gate.pause(now_ns, running[n % running.len()]),
                Step::Resume(n) if !running.is_empty() => gate.resume(now_ns, running[n % running.len()]),
                Step::Reconnect(n) => {
                    gate.leave(clients[n]);
                    clients[n] = gate.enter(n as u64);
                }
                Step::Clock(by_ns) => now_ns += by_ns,
                _ => {}
            }
            while let Some(id) = gate.admit_next(now_ns) {
                waiting.retain(|&other| other != id);
                running.push(id);
            }
            let view = gate.view();
            prop_assert_eq!((view.waiting, view.running), (waiting.len(), running.len()));
            prop_assert!(view.waiting == 0 || view.active > 0, "a standstill");
            let by_type: usize = view.types.iter().map(|kind| kind.waiting).sum();
            prop_assert_eq!(by_type, waiting.len());
            let load_ns: u64 = running
                .iter()
                .filter_map(|&id| gate.requests.running(id))
                .filter(|running| running.paused_at_ns.is_none())
                .map(|running| running.load_ns)
                .sum();
            prop_assert_eq!(view.load_ns, load_ns);
        }
        for id in running {
            gate.finish(now_ns, id, Outcome::Completed);
        }
        prop_assert_eq!(gate.load_ns(), 0);
    }
}
