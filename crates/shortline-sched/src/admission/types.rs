//! The bounded table of request types, and what is known of each.
//!
//! The estimate of an unseen type is the mean of recent requests of all types. While none of its requests
//! has ended, the estimate is also at least as long as its oldest request has been running. So it does not
//! stay small while long requests pile up in the backend.
//!
//! When the table is full, a new name replaces an old one. The old name must have no request inside, and
//! must not have been used since the hand last passed it (CLOCK, Corbató's 1968 approximation of LRU). A
//! name counts as used only from its second use on. So a flood of names seen once replaces its own names and
//! not those in use. If a few steps find no place, the new name shares the first type.
//!
//! A request can be admitted out of order ([`super::oldest`], [`super::newcomers`]). If it then takes less
//! than a tenth of its estimate, its type counts as new again. An estimate that is far too long would
//! otherwise correct itself too slowly, because it keeps other requests of the type waiting.
//!
//! If the capacity is `auto`, estimates are divided by the slowdown ([`super::slowdown`]). So what a type
//! adds to the load does not depend on the load. There the estimate for the load is always a mean, whatever
//! the estimator, because work is measured in it. The median of a skewed distribution is below its mean. With
//! medians the slowdown would be too large, and the measured work too high.

use std::collections::HashMap;

use ahash::RandomState;
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::boosts::{OUTLIER, Tail};
use super::config::{AdmissionConfig, Capacity, Order, types_held};
use super::kind::{Kind, Work};
use super::slowdown::Slowdown;
use super::view::TypeView;
use crate::estimate::{Estimate, Estimator, KeptSpread, SERVICE_NS_MAX, Spread};

/// Names a type in the table.
///
/// A full table forgets unused types. The id of a forgotten type then names the shared type, which holds
/// all names without room of their own. So look up the type by name for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId {
    index: u32,
    /// Distinguishes the type from others that had its place.
    generation: u32,
}

/// An estimate kept across a restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptEstimate {
    /// The name of the type.
    pub name: String,
    /// What a request of it adds to the load, in nanoseconds of service.
    pub service_ns: u64,
    /// The number of requests behind the estimate.
    pub requests: usize,
    /// Their distribution, in the same unit. Files from before 2026-11 have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<KeptSpread>,
}

/// The name of the type shared by all names for which the table has no room.
const OTHERS: &str = "other";

/// The most bytes of a name that are kept. Names that agree in these bytes are one type.
const NAME_BYTES_MAX: usize = 200;

/// The most places examined to find one for a new name.
const HAND_STEPS_MAX: usize = 32;

/// The most requests that a kept estimate counts as. New ones soon outweigh it.
const KEPT_REQUESTS_MAX: usize = 8;

/// A type is well known once this many of its requests have ended.
const KNOWN_WELL: usize = 16;

/// An estimate is doubted if a request took less than this fraction of it: one over `DOUBTFUL`.
const DOUBTFUL: u64 = 10;

/// The estimates that have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learnt {
    Nothing,
    /// That of the type.
    Type,
    /// Those of all types, by the same factor.
    Unit,
}

/// The table.
#[derive(Debug)]
pub(super) struct Types {
    kinds: Vec<Kind>,
    /// A client may choose names: `ahash` is keyed, and faster for text than the standard library's.
    by_name: HashMap<String, usize, RandomState>,
    held_max: usize,
    hand: usize,
    order: Order,
    /// The parameters of boosts, once enough is known.
    tail: Option<Tail>,
    /// For the order of types.
    estimator: Estimator,
    /// For the load.
    estimator_of_load: Estimator,
    /// Whether restored estimates stay as they are.
    estimates_fixed: bool,
    service_ns_prior: u64,
    /// The last requests of all types, in the unit of [`Slowdown`].
    all: Estimate,
    slowdown: Slowdown,
}

impl Types {
    pub(super) fn new(config: &AdmissionConfig) -> Self {
        Self {
            kinds: vec![Kind::new(OTHERS, 0)],
            by_name: HashMap::from_iter([(OTHERS.to_owned(), 0)]),
            held_max: types_held(config.types_max).get(),
            hand: 0,
            order: config.order,
            tail: None,
            estimator: config.estimator,
            estimator_of_load: estimator_of_load(config),
            estimates_fixed: config.estimates_fixed,
            service_ns_prior: config.service_ns_prior.clamp(1, SERVICE_NS_MAX),
            all: Estimate::default(),
            slowdown: Slowdown::new(config.capacity == Capacity::Auto),
        }
    }

    /// Measures work as the capacity of `config` needs it from now on. What is known stays: what requests take under the
    /// present load is their work at the moment of the change. Returns whether anything changed.
    pub(super) fn measure_for(&mut self, config: &AdmissionConfig) -> bool {
        let divides = config.capacity == Capacity::Auto;
        if divides == self.slowdown.divides() {
            return false;
        }
        self.rescale(self.slowdown.load_ns(1) * self.slowdown.factor());
        self.slowdown = Slowdown::new(divides);
        self.estimator_of_load = estimator_of_load(config);
        for index in 0..self.kinds.len() {
            if self.kinds[index].is_known() {
                self.derive(index);
            }
            let kind = &mut self.kinds[index];
            let load_ns = self.slowdown.load_ns(kind.estimate_ns());
            kind.anchor.load_ns = kind.anchor.load_ns.map(|_| load_ns);
            kind.work = Work::default();
        }
        true
    }

    /// Ranks types for another order.
    pub(super) fn set_order(&mut self, order: Order) {
        self.order = order;
        for index in 0..self.kinds.len() {
            if self.kinds[index].is_known() {
                self.derive(index);
            }
        }
    }

    /// The type of this name, or the shared type if there is no room for it.
    pub(super) fn enter(&mut self, name: &str) -> TypeId {
        let name = beginning(name);
        let index = match self.by_name.get(name) {
            Some(&index) => {
                self.kinds[index].used = true;
                index
            }
            None => self.add(name),
        };
        TypeId {
            index: index as u32,
            generation: self.kinds[index].generation,
        }
    }

    /// The place of a type, or that of the shared type if it was forgotten.
    pub(super) fn index(&self, request_type: TypeId) -> usize {
        let index = request_type.index as usize;
        let known = self.kinds.get(index);
        match known {
            Some(kind) if kind.generation == request_type.generation => index,
            _ => 0,
        }
    }

    /// The number of types in the table, the shared one included.
    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    pub(super) fn get(&self, kind: usize) -> &Kind {
        &self.kinds[kind]
    }

    pub(super) fn get_mut(&mut self, kind: usize) -> &mut Kind {
        &mut self.kinds[kind]
    }

    /// What one more request of a type would add to the load now, in nanoseconds.
    pub(super) fn load_ns(&self, kind: usize) -> u64 {
        let load_ns = self.slowdown.load_ns(self.kinds[kind].estimate_ns());
        (load_ns as u64).clamp(1, SERVICE_NS_MAX)
    }

    /// A request of a type has ended that started with this estimate. Returns what it counts as where work is
    /// measured, in nanoseconds of load.
    pub(super) fn count_work(&mut self, kind: usize, estimate_ns: u64) -> u64 {
        self.kinds[kind].work.count(estimate_ns)
    }

    /// What a request adds to the load, as the mean over recent requests of all types.
    pub(super) fn mean_load_ns(&self) -> u64 {
        let mean_ns = self.all.typical(Estimator::MovingAverage);
        self.slowdown
            .load_ns(mean_ns.unwrap_or(self.service_ns_prior)) as u64
    }

    /// How long a request of a type is expected to take now, in nanoseconds.
    pub(super) fn service_ns(&self, kind: usize) -> u64 {
        let load_ns = self.slowdown.load_ns(self.kinds[kind].estimate_ns());
        ((load_ns * self.slowdown.factor()) as u64).clamp(1, SERVICE_NS_MAX)
    }

    /// The 99th percentile of a type's service under the present slowdown, without outliers, in nanoseconds.
    /// `None` until `ended` of its requests have ended.
    pub(super) fn p99_ns(&self, kind: usize, ended: usize) -> Option<f64> {
        let service = &self.kinds[kind].service;
        let sample = service.spread().without_outliers().quantile(0.99);
        let unit_ns = self.slowdown.load_ns(1) * self.slowdown.factor();
        (service.count() >= ended).then_some(sample * unit_ns)
    }

    /// The factor by which services exceed the estimates in the load.
    pub(super) fn slowdown(&self) -> f64 {
        self.slowdown.factor()
    }

    /// Updates the estimate of a type of which no request has ended. Returns whether it changed.
    pub(super) fn refresh(&mut self, kind: usize, now_ns: u64) -> bool {
        // The mean: an unknown type may be one of those that take long.
        let prior_ns = self.all.typical(Estimator::MovingAverage);
        let kind = &mut self.kinds[kind];
        if kind.is_known() {
            return false;
        }
        let running_ns = kind
            .unknown_since_ns
            .map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        let estimate_ns = prior_ns
            .unwrap_or(self.service_ns_prior)
            .max(self.slowdown.sample_ns(running_ns))
            .min(SERVICE_NS_MAX);
        kind.rank_ns = estimate_ns;
        kind.boost_ns = self
            .tail
            .map_or(0, |tail| kind.boost_ns(tail, self.slowdown.load_ns(1)));
        std::mem::replace(&mut kind.estimate_ns, estimate_ns) != estimate_ns
    }

    /// A request has ended. Returns which estimates changed.
    pub(super) fn end(
        &mut self,
        now_ns: u64,
        kind: usize,
        service_ns: u64,
        outcome: Outcome,
    ) -> Learnt {
        let longer = service_ns > self.service_ns(kind);
        let teaches = self.kinds[kind].end(longer, outcome);
        if teaches && !self.kinds[kind].is_fixed {
            self.learn(now_ns, kind, service_ns)
        } else {
            Learnt::Nothing
        }
    }

    /// A request that was admitted out of order has ended. If it took far less than expected, the type's
    /// estimate is out of date, and few other requests will get to correct it. So the type is learnt anew.
    pub(super) fn doubt(&mut self, kind: usize, service_ns: u64) {
        let expected_ns = self.service_ns(kind);
        let kind = &mut self.kinds[kind];
        if service_ns < expected_ns / DOUBTFUL && !kind.is_fixed {
            kind.service = Estimate::default();
            kind.work = Work::default();
        }
    }

    fn learn(&mut self, now_ns: u64, index: usize, service_ns: u64) -> Learnt {
        if self.kinds[index].is_known() {
            let expected_ns = self.slowdown.load_ns(self.kinds[index].estimate_ns());
            self.slowdown.observe(service_ns, expected_ns);
        }
        let sample_ns = self.slowdown.sample_ns(service_ns);
        self.add_sample(now_ns, index, sample_ns);
        if self.slowdown.is_due(self.kinds.len())
            && let Some(factor) = self.slowdown.anchor(&mut self.kinds)
        {
            self.rescale(factor);
            return Learnt::Unit;
        }
        Learnt::Type
    }

    fn add_sample(&mut self, now_ns: u64, index: usize, sample_ns: u64) {
        let kind = &mut self.kinds[index];
        kind.service.add(now_ns, sample_ns);
        kind.unknown_since_ns = None;
        self.derive(index);
        let kind = &mut self.kinds[index];
        let sample_ns = sample_ns.min(kind.estimate_ns().saturating_mul(OUTLIER));
        self.all.add(now_ns, sample_ns);
        kind.anchor.recent += 1.0;
        if kind.service.count() == KNOWN_WELL {
            let load_ns = self.slowdown.load_ns(kind.estimate_ns());
            kind.anchor.load_ns.get_or_insert(load_ns);
        }
    }

    /// Computes what follows from a type's distribution: its estimate, its rank and its boost.
    fn derive(&mut self, index: usize) {
        let kind = &mut self.kinds[index];
        let estimate_ns = |estimator| kind.service.typical(estimator).unwrap_or(1);
        kind.estimate_ns = estimate_ns(self.estimator_of_load);
        kind.rank_ns = match self.estimator == self.estimator_of_load {
            true => kind.estimate_ns,
            false => estimate_ns(self.estimator),
        };
        if self.order == Order::Gittins {
            let rank_ns = kind.service.spread().without_outliers().gittins(0.0);
            kind.rank_ns = rank_ns as u64;
        }
        let gauge = self.slowdown.load_ns(1);
        kind.boost_ns = self.tail.map_or(0, |tail| kind.boost_ns(tail, gauge));
    }

    /// The distribution of recent requests of all types, in nanoseconds of load.
    pub(super) fn spread_of_load(&self) -> Spread {
        let mut spread = self.all.spread().clone();
        spread.rescale(self.slowdown.load_ns(1));
        spread
    }

    /// Sets the parameters of boosts and computes all boosts anew.
    pub(super) fn set_tail(&mut self, tail: Option<Tail>) {
        self.tail = tail;
        let gauge = self.slowdown.load_ns(1);
        for kind in &mut self.kinds {
            kind.boost_ns = tail.map_or(0, |tail| kind.boost_ns(tail, gauge));
        }
    }

    /// Changes the unit of all samples.
    fn rescale(&mut self, factor: f64) {
        self.all.rescale(factor);
        for kind in &mut self.kinds {
            kind.service.rescale(factor);
            kind.estimate_ns = (kind.estimate_ns as f64 * factor) as u64;
            kind.rank_ns = (kind.rank_ns as f64 * factor) as u64;
        }
    }

    /// The estimates to keep across a restart.
    pub(super) fn kept(&self) -> Vec<KeptEstimate> {
        (0..self.kinds.len())
            .filter(|&index| self.kinds[index].is_known())
            .map(|index| KeptEstimate {
                name: self.kinds[index].name.clone(),
                service_ns: self.load_ns(index),
                requests: self.kinds[index].service.count(),
                spread: self.kinds[index]
                    .service
                    .kept_spread(self.slowdown.load_ns(1)),
            })
            .collect()
    }

    /// Restores a type's estimate.
    pub(super) fn restore(&mut self, now_ns: u64, kept: &KeptEstimate) {
        let request_type = self.enter(&kept.name);
        let kind = self.index(request_type);
        let sample_ns = self.slowdown.sample_of_load_ns(kept.service_ns);
        for _ in 0..kept.requests.min(KEPT_REQUESTS_MAX) {
            self.add_sample(now_ns, kind, sample_ns);
        }
        if let Some(spread) = &kept.spread {
            let unit = 1.0 / self.slowdown.load_ns(1);
            self.kinds[kind].service.restore_spread(spread, unit);
            self.derive(kind);
        }
        if kept.requests > 0 {
            // Else names that come once would take the places of all that is restored.
            self.kinds[kind].used = true;
            self.kinds[kind].is_fixed = self.estimates_fixed;
            let load_ns = kept.service_ns.clamp(1, SERVICE_NS_MAX);
            self.kinds[kind].anchor.load_ns = Some(load_ns as f64);
        }
    }

    /// All types. `oldest_wait_ns` is the wait so far of each type's oldest waiter, 0 without one.
    pub(super) fn views(&self, oldest_wait_ns: &[u64]) -> impl Iterator<Item = TypeView> {
        self.kinds.iter().enumerate().map(|(index, kind)| {
            let counts = kind.counts;
            TypeView {
                name: kind.name.clone(),
                estimate_ns: self.service_ns(index),
                requests_known: kind.service.count(),
                waiting: kind.waiting,
                running: kind.running,
                admitted: counts.admitted,
                completed: counts.completed,
                failed: counts.failed,
                refused: counts.refused,
                withdrawn: counts.withdrawn,
                would_wait: counts.would_wait,
                waited_ns_sum: counts.waited_ns_sum,
                waited_ns_max: counts.waited_ns_max,
                times: counts.times,
                oldest_wait_ns: oldest_wait_ns.get(index).copied().unwrap_or(0),
            }
        })
    }

    /// Finds a place for a new name.
    fn add(&mut self, name: &str) -> usize {
        let index = if self.kinds.len() < self.held_max {
            self.kinds.push(Kind::new(name, 0));
            self.kinds.len() - 1
        } else {
            let Some(index) = self.unused() else {
                return 0;
            };
            let generation = self.kinds[index].generation.wrapping_add(1);
            let forgotten = std::mem::replace(&mut self.kinds[index], Kind::new(name, generation));
            self.by_name.remove(&forgotten.name);
            index
        };
        self.by_name.insert(name.to_owned(), index);
        self.refresh(index, 0);
        index
    }

    /// Moves the hand to a place that can be reused, if it finds one.
    fn unused(&mut self) -> Option<usize> {
        for _ in 0..HAND_STEPS_MAX.min(self.held_max - 1) {
            // The first place is the shared type's, and never reused.
            self.hand = self.hand % (self.held_max - 1) + 1;
            let kind = &mut self.kinds[self.hand];
            if kind.is_idle() && !std::mem::take(&mut kind.used) {
                return Some(self.hand);
            }
        }
        None
    }
}

/// With `auto` work is measured in means (see the module).
fn estimator_of_load(config: &AdmissionConfig) -> Estimator {
    match config.capacity {
        Capacity::Auto => Estimator::MovingAverage,
        _ => config.estimator,
    }
}

/// The part of a name that is kept.
pub(super) fn beginning(name: &str) -> &str {
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let end = (0..=NAME_BYTES_MAX)
        .rev()
        .find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or(0)]
}
