//! Tenants and servers in virtual time: the service of each tenant, whatever it does.

mod limits;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::*;

const TENANTS: [&str; 3] = ["a", "b", "c"];
/// The expected service of each type, in milliseconds.
const SIZES: [u64; 4] = [1, 5, 20, 60];

/// A request that a test sends.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at_ms: u64,
    tenant: usize,
    size: usize,
    /// Its service, in fifths of its estimate.
    fifths: u64,
    /// How long its client pauses it after its first millisecond.
    pause_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ends,
    Pauses(u64),
    Resumes,
    Arrives(usize),
    Looks,
}

/// A running request.
#[derive(Clone, Copy, Debug)]
struct Run {
    tenant: usize,
    left_ns: u64,
    /// Since when it has been served, if it is not paused.
    since_ns: Option<u64>,
}

/// A gate, with a server for each admitted request.
struct Bench {
    gate: Admission,
    tenants: Vec<TenantId>,
    events: BinaryHeap<Reverse<(u64, Event, Option<RequestId>)>>,
    runs: BTreeMap<RequestId, Run>,
    sent: BTreeMap<RequestId, Sent>,
    served_ns: [u64; 3],
    running_most: [u64; 3],
}

impl Bench {
    fn new(capacity: &str, limits: [TenantLimits; 3]) -> Self {
        let mut gate = Admission::new(AdmissionConfig {
            capacity: capacity.parse().unwrap(),
            estimates_fixed: true,
            stall_ns: None,
            ..AdmissionConfig::default()
        });
        let estimates = SIZES.iter().map(|&size_ms| KeptEstimate {
            name: size_ms.to_string(),
            service_ns: size_ms * MS,
            requests: 8,
            spread: None,
        });
        gate.restore(&Kept {
            capacity_ns: None,
            estimates: estimates.collect(),
        });
        let named = TENANTS.into_iter().zip(limits);
        gate.set_tenants(named, TenantLimits::default());
        let tenants = TENANTS.map(|name| gate.tenant_of(name)).to_vec();
        Self {
            gate,
            tenants,
            events: BinaryHeap::new(),
            runs: BTreeMap::new(),
            sent: BTreeMap::new(),
            served_ns: [0; 3],
            running_most: [0; 3],
        }
    }

    /// Serves all requests. `observe` is called after each event.
    fn serve(&mut self, all: &[Sent], mut observe: impl FnMut(&Self)) {
        for (index, sent) in all.iter().enumerate() {
            let arrival = (sent.at_ms * MS, Event::Arrives(index), None);
            self.events.push(Reverse(arrival));
        }
        while let Some(Reverse((now_ns, event, id))) = self.events.pop() {
            self.serve_until(now_ns);
            match (event, id) {
                (Event::Arrives(index), _) => self.arrive(now_ns, all[index]),
                (Event::Ends, Some(id)) => {
                    self.runs.remove(&id);
                    self.gate.finish(now_ns, id, Outcome::Completed);
                }
                (Event::Pauses(pause_ms), Some(id)) => {
                    self.runs.get_mut(&id).unwrap().since_ns = None;
                    self.gate.pause(now_ns, id);
                    let resumed_ns = now_ns + pause_ms * MS;
                    self.events
                        .push(Reverse((resumed_ns, Event::Resumes, Some(id))));
                }
                (Event::Resumes, Some(id)) => {
                    let run = self.runs.get_mut(&id).unwrap();
                    run.since_ns = Some(now_ns);
                    let end_ns = now_ns + run.left_ns;
                    self.gate.resume(now_ns, id);
                    self.events.push(Reverse((end_ns, Event::Ends, Some(id))));
                }
                (Event::Looks, _) | (_, None) => {}
            }
            self.admit(now_ns);
            observe(self);
        }
    }

    fn arrive(&mut self, now_ns: u64, sent: Sent) {
        let request = NewRequest {
            tenant: self.tenants[sent.tenant],
            ..NewRequest::new(self.gate.type_of(&SIZES[sent.size].to_string()))
        };
        let id = self.gate.take_in(now_ns, request).unwrap();
        self.sent.insert(id, sent);
    }

    fn admit(&mut self, now_ns: u64) {
        while let Some(id) = self.gate.admit_next(now_ns) {
            let sent = self.sent.remove(&id).unwrap();
            let work_ns = (SIZES[sent.size] * MS * sent.fifths / 5).max(1);
            let (until_ns, event) = if sent.pause_ms > 0 && work_ns > MS {
                (MS, Event::Pauses(sent.pause_ms))
            } else {
                (work_ns, Event::Ends)
            };
            self.events
                .push(Reverse((now_ns + until_ns, event, Some(id))));
            self.events
                .push(Reverse((now_ns + 10 * MS, Event::Looks, None)));
            let run = Run {
                tenant: sent.tenant,
                left_ns: work_ns,
                since_ns: Some(now_ns),
            };
            self.runs.insert(id, run);
            let running = self.runs.values().filter(|run| run.tenant == sent.tenant);
            let most = &mut self.running_most[sent.tenant];
            *most = (*most).max(running.count() as u64);
        }
    }

    /// Serves the running requests until `now_ns`.
    fn serve_until(&mut self, now_ns: u64) {
        for run in self.runs.values_mut() {
            if let Some(since_ns) = &mut run.since_ns {
                let span_ns = now_ns - *since_ns;
                run.left_ns = run.left_ns.saturating_sub(span_ns);
                self.served_ns[run.tenant] += span_ns;
                *since_ns = now_ns;
            }
        }
    }

    fn waiting(&self, tenant: usize) -> usize {
        let index = self.gate.tenants.index(self.tenants[tenant]);
        self.gate.tenants.get(index).waiting
    }
}

fn weighted(weight: u64) -> TenantLimits {
    TenantLimits {
        weight: Weight::try_from(weight).unwrap(),
        ..TenantLimits::default()
    }
}

/// The largest change of the difference between two tenants' service over their weights, while both wait.
#[derive(Default)]
struct Apart {
    least: Option<f64>,
    most: f64,
    /// The largest so far, in nanoseconds.
    change_ns: f64,
}

impl Apart {
    fn see(&mut self, both_wait: bool, difference_ns: f64) {
        if !both_wait {
            self.least = None;
            return;
        }
        let least = *self.least.get_or_insert_with(|| {
            self.most = difference_ns;
            difference_ns
        });
        self.most = self.most.max(difference_ns);
        self.least = Some(least.min(difference_ns));
        self.change_ns = self.change_ns.max(self.most - least.min(difference_ns));
    }
}

/// Requests of all tenants, few or many. `fifths` bounds the errors of estimates, and `pauses_ms` the pauses.
fn sent(fifths: std::ops::Range<u64>, pauses_ms: u64) -> impl Strategy<Value = Vec<Sent>> {
    let one = (0..400u64, 0..3usize, 0..SIZES.len(), fifths, 0..=pauses_ms);
    let one = one.prop_map(|(at_ms, tenant, size, fifths, pause_ms)| Sent {
        at_ms,
        tenant,
        size,
        fifths,
        pause_ms,
    });
    proptest::collection::vec(one, 1..160)
}

/// The largest change of each pair, with the pair and the charges that bound it.
fn apart(
    bench: &mut Bench,
    all: &[Sent],
    weights: [u64; 3],
    is_seen: fn(&Bench) -> bool,
) -> Vec<(f64, (f64, f64))> {
    let pairs = [(0, 1), (0, 2), (1, 2)];
    let mut seen: Vec<Apart> = pairs.iter().map(|_| Apart::default()).collect();
    bench.serve(all, |bench| {
        for (apart, (f, g)) in seen.iter_mut().zip(pairs) {
            let both_wait = bench.waiting(f) > 0 && bench.waiting(g) > 0;
            let share = |tenant: usize| bench.served_ns[tenant] as f64 / weights[tenant] as f64;
            if !both_wait || is_seen(bench) {
                apart.see(both_wait, share(f) - share(g));
            }
        }
    });
    let charge = |tenant: usize| {
        let of_tenant = all.iter().filter(|sent| sent.tenant == tenant);
        let charges = of_tenant.map(|sent| SIZES[sent.size] * MS * sent.fifths.max(5) / 5);
        charges.max().unwrap_or(0) as f64 / weights[tenant] as f64
    };
    let bound = |bench: &Bench, tenant: usize| charge(tenant) * bench.running_most[tenant] as f64;
    let largest = (0..3)
        .map(|tenant| bound(bench, tenant))
        .fold(0.0, f64::max);
    let bounds = pairs.map(|(f, g)| (bound(bench, f) + bound(bench, g), largest));
    seen.iter()
        .map(|apart| apart.change_ns)
        .zip(bounds)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Goyal, Vin and Cheng 1996, Theorem 1: one server, and estimates are exact.
    #[test]
    fn one_server_keeps_the_bound_of_start_time_fair_queueing(
        all in sent(5..6, 0),
        weights in [1..5u64, 1..5, 1..5],
    ) {
        let mut bench = Bench::new("1ns", weights.map(weighted));
        for (change_ns, (bound_ns, _)) in apart(&mut bench, &all, weights, is_between_two) {
            prop_assert!(change_ns <= bound_ns * 1.000_001, "{change_ns} > {bound_ns}");
        }
        prop_assert_eq!(bench.gate.waiting() + bench.runs.len(), 0);
    }

    /// Several requests run at once, differ from their estimates, and pause.
    #[test]
    fn the_backlogged_are_served_by_their_weights_within_the_bound(
        all in sent(1..20, 30),
        weights in [1..5u64, 1..5, 1..5],
        capacity_ms in 1..100u64,
    ) {
        let mut bench = Bench::new(&format!("{capacity_ms}ms"), weights.map(weighted));
        for (change_ns, (pair_ns, largest_ns)) in apart(&mut bench, &all, weights, |_| true) {
            let bound_ns = (3.0 * pair_ns + largest_ns) * 1.000_001;
            prop_assert!(change_ns <= bound_ns, "{change_ns} > {bound_ns}");
        }
        prop_assert_eq!(bench.gate.waiting() + bench.runs.len(), 0);
        for (tenant, view) in bench.gate.view().tenants[1..].iter().enumerate() {
            // The view shows the service spent, to a nanosecond for each request.
            let error_ns = view.served_ns.abs_diff(bench.served_ns[tenant]);
            prop_assert!(error_ns <= all.len() as u64, "{error_ns}");
        }
    }
}

/// Whether no running request is partly served.
fn is_between_two(bench: &Bench) -> bool {
    let is_whole = |left_ns: u64| SIZES.iter().any(|size_ms| left_ns == size_ms * MS);
    bench.runs.values().all(|run| is_whole(run.left_ns))
}

fn burst(tenant: usize, size: usize, count: usize, fifths: u64, pause_ms: u64) -> Vec<Sent> {
    let one = Sent {
        at_ms: 0,
        tenant,
        size,
        fifths,
        pause_ms,
    };
    vec![one; count]
}

/// The service of the tenants while the first two both wait.
fn served_while_both_wait(capacity: &str, all: &[Sent]) -> [u64; 3] {
    let mut bench = Bench::new(capacity, [TenantLimits::default(); 3]);
    let mut served_ns = [0; 3];
    bench.serve(all, |bench| {
        if bench.waiting(0) > 0 && bench.waiting(1) > 0 {
            served_ns = bench.served_ns;
        }
    });
    served_ns
}

#[test]
fn neither_short_statements_nor_cheap_names_nor_splitting_nor_open_transactions_win() {
    let honest = burst(1, 2, 100, 5, 0);
    for (what, greedy) in [
        ("short statements", burst(0, 0, 2000, 5, 0)),
        ("cheap names", burst(0, 0, 100, 100, 0)),
        ("more of them", burst(0, 2, 2000, 5, 0)),
        ("open transactions", burst(0, 2, 200, 5, 50)),
        ("dear names that take nothing", burst(0, 3, 2000, 1, 0)),
    ] {
        let all = [honest.clone(), greedy].concat();
        let [greedy_ns, honest_ns, _] = served_while_both_wait("40ms", &all);
        let share = greedy_ns as f64 / (greedy_ns + honest_ns) as f64;
        assert!(share < 0.56, "{what}: {share}");
        assert!(honest_ns > 400 * MS, "{what}: {honest_ns}");
    }
}

#[test]
fn a_tenant_that_was_idle_has_no_credit_for_it() {
    let mut all = burst(0, 1, 400, 5, 0);
    // After a second alone the other tenant arrives.
    all.extend(burst(1, 1, 200, 5, 0).iter().map(|&sent| Sent {
        at_ms: 1000,
        ..sent
    }));
    let mut bench = Bench::new("1ns", [TenantLimits::default(); 3]);
    let mut before_ns = None;
    let mut after_ns = [0; 3];
    bench.serve(&all, |bench| {
        if bench.waiting(0) > 0 && bench.waiting(1) > 0 {
            before_ns.get_or_insert(bench.served_ns);
            after_ns = bench.served_ns;
        }
    });
    let before_ns = before_ns.unwrap();
    let (first_ns, second_ns) = (after_ns[0] - before_ns[0], after_ns[1] - before_ns[1]);
    assert!(second_ns > 900 * MS, "{second_ns}");
    assert!(
        first_ns.abs_diff(second_ns) <= 10 * MS,
        "{first_ns} {second_ns}"
    );
}
