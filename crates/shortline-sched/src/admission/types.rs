//! The bounded table of request types, and what is known of each.

use std::collections::HashMap;

use super::Outcome;
use super::config::AdmissionConfig;
use super::estimate::{Estimator, Window};
use super::requests::RequestId;
use super::view::TypeView;
use crate::JobId;

/// Names a type in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(u32);

/// The name of the type that all share for which the table has no room.
const OTHERS: &str = "other";

/// Names are kept up to this many bytes; those alike so far are one type.
const NAME_BYTES_MAX: usize = 200;

/// What is known of a type, and who of it waits.
#[derive(Debug)]
pub(super) struct Kind {
    name: String,
    window: Window,
    estimate_ns: u64,
    /// The first and the last that wait.
    pub(super) ends: Option<(RequestId, RequestId)>,
    /// Its place in the order of types; `None` while nobody waits.
    pub(super) place: Option<JobId>,
    pub(super) waiting: usize,
    running: usize,
    admitted: u64,
    completed: u64,
    failed: u64,
    pub(super) refused: u64,
    pub(super) withdrawn: u64,
    waited_ns_sum: u64,
    waited_ns_max: u64,
}

impl Kind {
    fn new(name: &str, estimate_ns: u64) -> Self {
        Self {
            name: name.to_owned(),
            window: Window::default(),
            estimate_ns,
            ends: None,
            place: None,
            waiting: 0,
            running: 0,
            admitted: 0,
            completed: 0,
            failed: 0,
            refused: 0,
            withdrawn: 0,
            waited_ns_sum: 0,
            waited_ns_max: 0,
        }
    }

    /// The expected service time, in nanoseconds.
    pub(super) fn estimate_ns(&self) -> u64 {
        self.estimate_ns
    }

    pub(super) fn admit(&mut self, waited_ns: u64) {
        self.admitted += 1;
        self.running += 1;
        self.waited_ns_sum = self.waited_ns_sum.saturating_add(waited_ns);
        self.waited_ns_max = self.waited_ns_max.max(waited_ns);
    }

    /// Counts an end; whether it teaches anything. Of a request that failed it is only known
    /// that its service is at least as long, which is news if that is more than was expected.
    pub(super) fn finish(&mut self, service_ns: u64, outcome: Outcome) -> bool {
        self.running -= 1;
        match outcome {
            Outcome::Completed => {
                self.completed += 1;
                true
            }
            Outcome::Failed => {
                self.failed += 1;
                service_ns > self.estimate_ns
            }
        }
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct Types {
    kinds: Vec<Kind>,
    by_name: HashMap<String, u32>,
    types_max: usize,
    estimator: Estimator,
    service_ns_prior: u64,
}

impl Types {
    pub(super) fn new(config: &AdmissionConfig) -> Self {
        let mut types = Self {
            kinds: Vec::new(),
            by_name: HashMap::new(),
            types_max: config.types_max.min(u32::MAX as usize - 1),
            estimator: config.estimator,
            service_ns_prior: config.service_ns_prior.max(1),
        };
        types.add(OTHERS);
        types
    }

    /// The type of that name; the one that all others share if there is no room for it.
    pub(super) fn enter(&mut self, name: &str) -> TypeId {
        let name = &name[..name.floor_char_boundary_at(NAME_BYTES_MAX)];
        if let Some(&index) = self.by_name.get(name) {
            return TypeId(index);
        }
        if self.kinds.len() > self.types_max {
            return TypeId(0);
        }
        TypeId(self.add(name))
    }

    /// The index of a type. One of another table is that of all others.
    pub(super) fn index(&self, request_type: TypeId) -> usize {
        let index = request_type.0 as usize;
        if index < self.kinds.len() { index } else { 0 }
    }

    pub(super) fn get(&self, kind: usize) -> &Kind {
        &self.kinds[kind]
    }

    pub(super) fn get_mut(&mut self, kind: usize) -> &mut Kind {
        &mut self.kinds[kind]
    }

    /// Learns from a request that ended.
    pub(super) fn learn(&mut self, kind: usize, service_ns: u64) {
        let estimator = self.estimator;
        let kind = &mut self.kinds[kind];
        kind.window.add(service_ns);
        if let Some(estimate_ns) = kind.window.estimate_ns(estimator) {
            kind.estimate_ns = estimate_ns.max(1);
        }
    }

    pub(super) fn views(&self) -> impl Iterator<Item = TypeView> {
        self.kinds.iter().map(|kind| TypeView {
            name: kind.name.clone(),
            estimate_ns: kind.estimate_ns,
            waiting: kind.waiting,
            running: kind.running,
            admitted: kind.admitted,
            completed: kind.completed,
            failed: kind.failed,
            refused: kind.refused,
            withdrawn: kind.withdrawn,
            waited_ns_sum: kind.waited_ns_sum,
            waited_ns_max: kind.waited_ns_max,
        })
    }

    fn add(&mut self, name: &str) -> u32 {
        let index = self.kinds.len() as u32;
        self.kinds.push(Kind::new(name, self.service_ns_prior));
        self.by_name.insert(name.to_owned(), index);
        index
    }
}

/// `str::floor_char_boundary`, which the oldest compiler supported does not have.
trait FloorCharBoundary {
    fn floor_char_boundary_at(&self, bytes_max: usize) -> usize;
}

impl FloorCharBoundary for str {
    fn floor_char_boundary_at(&self, bytes_max: usize) -> usize {
        if self.len() <= bytes_max {
            return self.len();
        }
        (0..=bytes_max)
            .rev()
            .find(|&end| self.is_char_boundary(end))
            .unwrap_or(0)
    }
}
