//! The bounded table of request types, and what is known of each.
//!
//! A type nobody has seen is expected to take what requests took in the mean of late, and while
//! none of it has ended, at least as long as its oldest one has been running: the estimate does
//! not stay small while long ones pile up in the backend.
//!
//! When the table is full, a new name takes the place of one that nobody of it is inside and
//! that was not used since the hand passed it last (CLOCK, the approximation of LRU by Corbató
//! 1968). A new name is not yet used in that sense, so that a flood of names seen once replaces
//! its own and not what is in use. If none is found in a few steps, it shares the first type.
//!
//! Who is admitted out of the order ([`super::oldest`], [`super::newcomers`]) and takes less than a tenth of
//! what was expected makes its type new again: an estimate that is far too long keeps others of the type
//! from coming and saying so.
//!
//! Where the capacity is `auto`, estimates are divided by the slowdown ([`super::slowdown`]), so
//! that what a type adds to the load does not depend on the load. There what it adds is a mean, whatever
//! the estimator, for work is measured in it: medians are below the mean of what is skewed, so that the
//! slowdown would be too large, and capacities would seem to do more than they do.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Outcome;
use super::boosts::{OUTLIER, Tail};
use super::config::{AdmissionConfig, Capacity, Order, types_held};
use super::kind::Kind;
use super::slowdown::Slowdown;
use super::view::TypeView;
use crate::estimate::{Estimate, Estimator, KeptSpread, SERVICE_NS_MAX, Spread};

/// Names a type in the table.
///
/// A full table forgets types that are not used; an id of one means the type that all share for
/// which there is no room. So ask for the type by name for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId {
    index: u32,
    /// Tells the type from others that had its place.
    generation: u32,
}

/// An estimate to be kept over a restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptEstimate {
    /// The name of the type.
    pub name: String,
    /// What a request of it adds to the load, in nanoseconds of service.
    pub service_ns: u64,
    /// How many requests the estimate came from.
    pub requests: usize,
    /// How they were spread, in the same unit; files of before 2026-11 have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<KeptSpread>,
}

/// The name of the type that all share for which the table has no room.
const OTHERS: &str = "other";

/// Names are kept up to this many bytes; those alike so far are one type.
const NAME_BYTES_MAX: usize = 200;

/// The most places that are looked at for one that can be given to a new name.
const HAND_STEPS_MAX: usize = 32;

/// As how many requests a kept estimate counts at most: new ones soon outweigh it.
const KEPT_REQUESTS_MAX: usize = 8;

/// A type is known well once so many requests of it have ended.
const KNOWN_WELL: usize = 16;

/// An estimate is doubted if one took less than one over so much of it.
const DOUBTFUL: u64 = 10;

/// Whose estimates have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learnt {
    Nothing,
    /// That of the type.
    Type,
    /// Those of all types, by one factor.
    Unit,
}

/// The table.
#[derive(Debug)]
pub(super) struct Types {
    kinds: Vec<Kind>,
    by_name: HashMap<String, usize>,
    held_max: usize,
    hand: usize,
    order: Order,
    /// What boosts come from, once enough is known.
    tail: Option<Tail>,
    /// For the order, and for the load.
    estimator: Estimator,
    estimator_of_load: Estimator,
    /// Whether what is restored stays.
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
            by_name: HashMap::from([(OTHERS.to_owned(), 0)]),
            held_max: types_held(config.types_max).get(),
            hand: 0,
            order: config.order,
            tail: None,
            estimator: config.estimator,
            estimator_of_load: match config.capacity {
                Capacity::Auto => Estimator::MovingAverage,
                _ => config.estimator,
            },
            estimates_fixed: config.estimates_fixed,
            service_ns_prior: config.service_ns_prior.clamp(1, SERVICE_NS_MAX),
            all: Estimate::default(),
            slowdown: Slowdown::new(config.capacity == Capacity::Auto),
        }
    }

    /// The type of that name; the one that all others share if there is no room for it.
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

    /// The place of a type; that of all others if it was forgotten.
    pub(super) fn index(&self, request_type: TypeId) -> usize {
        let index = request_type.index as usize;
        let known = self.kinds.get(index);
        match known {
            Some(kind) if kind.generation == request_type.generation => index,
            _ => 0,
        }
    }

    /// How many types are in the table, the shared one included.
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

    /// What a request adds in the mean over all types.
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

    /// The 99th percentile of a type's service under the present load, outliers left out, in nanoseconds;
    /// `None` before so many have ended.
    pub(super) fn p99_ns(&self, kind: usize, ended: usize) -> Option<f64> {
        let service = &self.kinds[kind].service;
        let sample = service.spread().without_outliers().quantile(0.99);
        let unit_ns = self.slowdown.load_ns(1) * self.slowdown.factor();
        (service.count() >= ended).then_some(sample * unit_ns)
    }

    /// How much longer services take than the estimates in the load say.
    pub(super) fn slowdown(&self) -> f64 {
        self.slowdown.factor()
    }

    /// Looks again at the estimate of a type of which nothing has ended yet; whether it changed.
    pub(super) fn refresh(&mut self, kind: usize, now_ns: u64) -> bool {
        // The mean, for what is not known is as likely as not one of those that take long.
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

    /// A request ended; whose estimates that changed.
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

    /// One that went out of the order has ended: if that took far less than expected, what was known of
    /// its type is out of date, and few others will come to say so.
    pub(super) fn doubt(&mut self, kind: usize, service_ns: u64) {
        let expected_ns = self.service_ns(kind);
        let kind = &mut self.kinds[kind];
        if service_ns < expected_ns / DOUBTFUL && !kind.is_fixed {
            kind.service = Estimate::default();
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
        let gauge = self.slowdown.load_ns(1);
        kind.unknown_since_ns = None;
        let estimate_ns = |estimator| kind.service.typical(estimator).unwrap_or(1);
        let of_load_ns = estimate_ns(self.estimator_of_load);
        let rank_ns = estimate_ns(self.estimator);
        (kind.estimate_ns, kind.rank_ns) = (of_load_ns, rank_ns);
        if self.order == Order::Gittins {
            let rank_ns = kind.service.spread().without_outliers().gittins(0.0);
            kind.rank_ns = rank_ns as u64;
        }
        kind.boost_ns = self.tail.map_or(0, |tail| kind.boost_ns(tail, gauge));
        let sample_ns = sample_ns.min(kind.estimate_ns().saturating_mul(OUTLIER));
        self.all.add(now_ns, sample_ns);
        kind.anchor.recent += 1.0;
        if kind.service.count() == KNOWN_WELL {
            let load_ns = self.slowdown.load_ns(kind.estimate_ns());
            kind.anchor.load_ns.get_or_insert(load_ns);
        }
    }

    /// How all requests of late are spread, in nanoseconds of load.
    pub(super) fn spread_of_load(&self) -> Spread {
        let mut spread = self.all.spread().clone();
        spread.rescale(self.slowdown.load_ns(1));
        spread
    }

    /// Computes all boosts anew.
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

    /// The estimates, to be kept over a restart.
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

    /// Begins a type where it stood.
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
        }
        if kept.requests > 0 {
            self.kinds[kind].is_fixed = self.estimates_fixed;
            let load_ns = kept.service_ns.clamp(1, SERVICE_NS_MAX);
            self.kinds[kind].anchor.load_ns = Some(load_ns as f64);
        }
    }

    /// All types. `oldest_wait_ns` is what the oldest waiter of each has waited, as far as one waits.
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

    /// Moves the hand to a place that can be given away.
    fn unused(&mut self) -> Option<usize> {
        for _ in 0..HAND_STEPS_MAX.min(self.held_max - 1) {
            // The first place is never given away.
            self.hand = self.hand % (self.held_max - 1) + 1;
            let kind = &mut self.kinds[self.hand];
            if kind.is_idle() && !std::mem::take(&mut kind.used) {
                return Some(self.hand);
            }
        }
        None
    }
}

/// So much of a name as is kept.
pub(super) fn beginning(name: &str) -> &str {
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let end = (0..=NAME_BYTES_MAX)
        .rev()
        .find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or(0)]
}
