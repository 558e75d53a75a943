//! A backend that serves many at once, behind the gate: 002's database.
//!
//! With n jobs inside, the K servers do
//!
//! ```text
//! min(n, K) / (1 + fall * max(0, n - knee))
//! ```
//!
//! of work per unit of time, shared equally. That is processor sharing with thrashing beyond a
//! knee, the shape of 002's Figs 5 and 7 without admission control.
//!
//! [`shortline_sched::admission`], the very code of the gate, decides who is inside, and learns
//! service times while it runs. Policy `fifo` is 002's FIFO, `sjf` its SJF, with aging its bound,
//! `boost` and `gittins` are the gate's, and estimates are moving averages. Under `fair` there is no gate. A job's type is its size
//! as far as policies know it, in quarters of an octave, so that errors of estimates
//! (`estimate_sigma`) put jobs into wrong types.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use shortline_sched::Estimator;
use shortline_sched::admission::{
    Admission, AdmissionConfig, Capacity, OldestShare, Order, Outcome, RequestId,
};
use shortline_sched::{Policy, Urgency};

use crate::SimError;
use crate::engine::{Work, put};

/// An end this soon after an arrival counts as before it, as in the other engines.
const ROUNDING_NS: f64 = 1e-3;

/// A backend, and how much the gate admits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backend {
    /// What the gate admits.
    pub capacity: Capacity,
    /// How the backend slows down with too much inside; `None` if it does not.
    pub thrash: Option<Thrash>,
}

/// How throughput falls with the number inside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thrash {
    knee: f64,
    fall: f64,
}

/// A text that describes no thrashing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "thrashing `{0}`: must be KNEE:FALL, how many jobs at once do no harm (1 or more) and what share of \
     the throughput each further one costs (0 to 1), such as 20:0.02"
)]
pub struct ThrashError(String);

impl FromStr for Thrash {
    type Err = ThrashError;

    fn from_str(text: &str) -> Result<Self, ThrashError> {
        let refused = || ThrashError(shortline_sched::units::excerpt(text));
        let (knee, fall) = text.split_once(':').ok_or_else(refused)?;
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| refused());
        let (knee, fall) = (number(knee)?, number(fall)?);
        if knee.is_finite() && knee >= 1.0 && (0.0..=1.0).contains(&fall) {
            Ok(Self { knee, fall })
        } else {
            Err(refused())
        }
    }
}

impl Backend {
    /// Whether the gate knows a policy.
    pub(crate) fn check(self, policy: Policy) -> Result<(), SimError> {
        match policy {
            Policy::Fair | Policy::Fifo | Policy::Sjf | Policy::Boost | Policy::Gittins => Ok(()),
            _ => Err(SimError::NoGatePolicy {
                policy: policy.to_string(),
            }),
        }
    }

    /// Work done per unit of time with so many inside.
    fn work_rate(self, servers: f64, inside: usize) -> f64 {
        let inside = inside as f64;
        let thrash = self.thrash.map_or(1.0, |thrash| {
            1.0 + thrash.fall * (inside - thrash.knee).max(0.0)
        });
        inside.min(servers) / thrash
    }
}

/// The backend behind the gate, at some time.
pub(crate) struct Gated {
    backend: Backend,
    servers: f64,
    gate: Admission,
    now_ns: f64,
    /// How much service each job inside has had since the backend was last empty.
    attained_ns: f64,
    /// The jobs inside, by the attained service at which they end.
    ending: BTreeMap<Key, RequestId>,
    jobs: HashMap<RequestId, Job>,
    /// The request of each slot, for jobs that leave early.
    requests: HashMap<u32, RequestId>,
    /// When each slot's job was admitted; not a number before.
    started_ns: Vec<f64>,
    /// Whether the gate must be asked again who may enter.
    stale: bool,
}

/// A float above 0 as bits, whose order is that of the float; then the order of arrival.
type Key = (u64, RequestId);

struct Job {
    slot: u32,
    work_ns: f64,
    /// Its place in `ending` once it is admitted.
    key: Option<Key>,
}

impl Gated {
    pub(crate) fn new(
        backend: Backend,
        policy: Policy,
        urgency: Urgency,
        servers: f64,
        jobs_max: usize,
    ) -> Self {
        let order = match (policy, urgency.aging()) {
            (Policy::Sjf, Some(aging)) => Order::SjfAging(aging),
            (Policy::Sjf, None) => Order::Sjf,
            (Policy::Boost, _) => Order::Boost,
            (Policy::Gittins, _) => Order::Gittins,
            _ => Order::Fifo,
        };
        let capacity = match policy {
            Policy::Fair => Capacity::Off,
            _ => backend.capacity,
        };
        let admission = AdmissionConfig {
            order,
            oldest_share: OldestShare::NONE,
            estimator: Estimator::MovingAverage,
            capacity,
            queue_max: jobs_max,
            stall_ns: None,
            ..AdmissionConfig::default()
        };
        Self::with(admission, backend, servers)
    }

    pub(crate) fn with(admission: AdmissionConfig, backend: Backend, servers: f64) -> Self {
        Self {
            backend,
            servers,
            gate: Admission::new(admission),
            now_ns: 0.0,
            attained_ns: 0.0,
            ending: BTreeMap::new(),
            jobs: HashMap::new(),
            requests: HashMap::new(),
            started_ns: Vec::new(),
            stale: false,
        }
    }

    pub(crate) fn now_ns(&self) -> f64 {
        self.now_ns
    }

    /// When the job of a slot was admitted; not a number if it never was.
    pub(crate) fn started_ns(&self, slot: u32) -> f64 {
        self.started_ns[slot as usize]
    }

    pub(crate) fn submit(&mut self, job: &Work) {
        let band = ((job.estimate_ns.max(1) as f64).log2() * 4.0) as u32;
        self.submit_as(job, &band.to_string());
    }

    /// The same for a job whose type has a name.
    pub(crate) fn submit_as(&mut self, job: &Work, name: &str) {
        put(&mut self.started_ns, job.slot as usize, f64::NAN);
        let kind = self.gate.type_of(name);
        // As many may wait as may be in the system.
        let Ok(id) = self.gate.arrive(self.now(), kind) else {
            return;
        };
        let entry = Job {
            slot: job.slot,
            work_ns: job.work_ns,
            key: None,
        };
        self.jobs.insert(id, entry);
        self.requests.insert(job.slot, id);
        self.stale = true;
    }

    pub(crate) fn cancel(&mut self, slot: u32) {
        let Some(id) = self.requests.remove(&slot) else {
            return;
        };
        if let Some(Job { key: Some(key), .. }) = self.jobs.remove(&id) {
            self.ending.remove(&key);
            self.gate.finish(self.now(), id, Outcome::Failed);
        } else {
            self.gate.withdraw(self.now(), id);
        }
        self.stale = true;
    }

    pub(crate) fn run_until(&mut self, until_ns: f64) -> Option<u32> {
        // A job that arrives at this instant takes part in the choice.
        if self.stale && until_ns > self.now_ns {
            self.admit();
        }
        let Some((&(end_bits, id), _)) = self.ending.first_key_value() else {
            self.now_ns = until_ns.max(self.now_ns);
            return None;
        };
        let work_rate = self.backend.work_rate(self.servers, self.ending.len());
        let each = work_rate / self.ending.len() as f64;
        let left_ns = (f64::from_bits(end_bits) - self.attained_ns).max(0.0);
        let end_ns = self.now_ns + left_ns / each;
        if end_ns > until_ns + ROUNDING_NS {
            self.attained_ns += (until_ns - self.now_ns) * each;
            self.now_ns = until_ns;
            return None;
        }
        self.now_ns = end_ns.min(until_ns);
        self.attained_ns = f64::from_bits(end_bits);
        self.ending.remove(&(end_bits, id));
        let job = self.jobs.remove(&id)?;
        self.requests.remove(&job.slot);
        self.gate.finish(self.now(), id, Outcome::Completed);
        self.stale = true;
        Some(job.slot)
    }

    fn admit(&mut self) {
        self.stale = false;
        if self.ending.is_empty() {
            self.attained_ns = 0.0;
        }
        while let Some(id) = self.gate.admit_next(self.now()) {
            if let Some(job) = self.jobs.get_mut(&id) {
                self.started_ns[job.slot as usize] = self.now_ns;
                let key = ((self.attained_ns + job.work_ns).to_bits(), id);
                job.key = Some(key);
                self.ending.insert(key, id);
            }
        }
    }

    fn now(&self) -> u64 {
        self.now_ns.round() as u64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::num::NonZeroU32;

    use super::*;
    use crate::arrivals::Job as Arrival;
    use crate::results::PolicyResult;
    use crate::{Impatience, Simulation};

    /// At 8 Mbit/s a byte takes a microsecond.
    fn simulation(policies: &[Policy], capacity: &str, thrash: Option<&str>) -> Simulation {
        Simulation {
            servers: NonZeroU32::new(4).unwrap(),
            backend: Some(Backend {
                capacity: capacity.parse().unwrap(),
                thrash: thrash.map(|text| text.parse().unwrap()),
            }),
            ..Simulation::new(policies.to_vec(), 8_000_000)
        }
    }

    /// Overload for a while, then silence: short jobs and, one in ten, long ones.
    fn wave(count: u64, gap_us: u64) -> Vec<(u64, f64)> {
        (0..count)
            .map(|n| {
                (
                    n * gap_us * 1000,
                    if n % 10 == 9 { 20_000.0 } else { 1000.0 },
                )
            })
            .collect()
    }

    fn results(simulation: &Simulation, jobs: &[(u64, f64)]) -> Vec<PolicyResult> {
        let arrivals = |_| {
            Ok(jobs
                .iter()
                .map(|&(at_ns, bytes)| Ok(Arrival { at_ns, bytes })))
        };
        simulation.run(NonZeroU32::MIN, arrivals).unwrap()
    }

    #[test]
    fn without_thrashing_and_gate_it_is_processor_sharing() {
        let gated = simulation(&[Policy::Fair], "off", None);
        let shared = Simulation {
            backend: None,
            ..gated.clone()
        };
        let jobs = wave(500, 600);
        let mean = |simulation: &Simulation| results(simulation, &jobs)[0].sojourn_mean;
        let (gated, shared) = (mean(&gated), mean(&shared));
        assert!((gated - shared).abs() < 1e-6 * shared, "{gated} {shared}");
    }

    #[test]
    fn a_gate_keeps_a_backend_from_thrashing_and_orders_what_waits() {
        let policies = [Policy::Fair, Policy::Fifo, Policy::Sjf];
        let results = results(
            &simulation(&policies, "60ms", Some("8:0.05")),
            &wave(4000, 600),
        );
        let [none, fifo, sjf] = [0, 1, 2].map(|place: usize| results[place].sojourn_mean);
        assert!(fifo < 0.7 * none, "no gate {none}, fifo {fifo}");
        assert!(sjf < 0.5 * fifo, "fifo {fifo}, sjf {sjf}");
    }

    #[test]
    fn of_those_that_arrive_at_one_instant_a_gate_takes_the_shortest() {
        // Two jobs of each size teach the gate what each takes. Then a long one and a short one
        // come at once.
        let jobs = [
            (0, 9000.0),
            (20_000_000, 1000.0),
            (40_000_000, 9000.0),
            (60_000_000, 1000.0),
            (80_000_000, 9000.0),
            (80_000_000, 1000.0),
        ];
        let mean = |policy| {
            let alone = Simulation {
                servers: NonZeroU32::MIN,
                ..simulation(&[policy], "1ms", None)
            };
            results(&alone, &jobs)[0].sojourn_mean
        };
        // In milliseconds: 9, 1, 9, 1, then 1 and 10; or 9 and 10 in the order of arrival.
        assert!((mean(Policy::Sjf) - 31.0 / 6.0 * 1e-3).abs() < 1e-9);
        assert!((mean(Policy::Fifo) - 39.0 / 6.0 * 1e-3).abs() < 1e-9);
    }

    #[test]
    fn whoever_gives_up_leaves_the_queue_or_the_backend() {
        let impatient = Simulation {
            impatience: Some(Impatience {
                after: std::time::Duration::from_millis(30),
                retries: 1,
            }),
            ..simulation(&[Policy::Sjf, Policy::Fair], "auto", Some("8:0.05"))
        };
        for result in results(&impatient, &wave(1000, 500)) {
            assert_eq!(result.requests, 1000);
            assert!(result.aborts > 0);
        }
    }

    #[test]
    fn other_policies_are_refused() {
        let simulation = simulation(&[Policy::Srpt], "1s", None);
        let arrivals = |_| Ok(std::iter::empty());
        let error = simulation.run(NonZeroU32::MIN, arrivals).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("fifo, sjf or, without a gate, fair")
        );
    }

    #[test]
    fn thrashing_is_two_numbers() {
        let thrash: Thrash = "20:0.02".parse().unwrap();
        assert_eq!((thrash.knee, thrash.fall), (20.0, 0.02));
        for text in ["", "20", "0:0.1", "5:-1", "5:2", "nan:0.1", "a:b"] {
            let error = text.parse::<Thrash>().unwrap_err().to_string();
            assert!(error.contains("20:0.02") && error.lines().count() == 1);
        }
    }
}
