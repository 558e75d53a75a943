//! Dispatch: to which of several servers an arriving job goes, where each server has a queue of its own.
//!
//! [`Rule`] is how a server is chosen. Rules that are good before servers in order of arrival may be bad before servers that
//! do the shortest first: one that has many small jobs of one server's does those of another late. *Guardrails* mend any
//! rule. Jobs are told apart by rank, `r` for sizes from `c^r` to `c^(r + 1)`. For each rank a server has a counter of the
//! work that it was given. A server is *safe* for a job if
//!
//! ```text
//! its counter + size - the least counter of the rank  <  g c^(r + 1)
//! c = 1 + 1 / (1 + ln(1 / (1 - load)))
//! ```
//!
//! and the rule chooses among the safe ones. When a server is empty, its counters become the least of each rank. So servers
//! have nearly the same work of each size, and before servers under `srpt` any rule has the optimal mean in heavy traffic.
//!
//! Source: Grosof, Scully and Harchol-Balter, Load Balancing Guardrails, SIGMETRICS 2019 (arXiv 1905.03439), section 3. `g`
//! is at least 1, so a server with the least counter is always safe.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use crate::units::excerpt;

/// How a server is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The one that was chosen longest ago.
    RoundRobin,
    /// One with the fewest jobs.
    FewestJobs,
    /// One with the least work left.
    LeastWork,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 3] = [Self::RoundRobin, Self::FewestJobs, Self::LeastWork];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::FewestJobs => "fewest-jobs",
            Self::LeastWork => "least-work",
        }
    }
}

/// A text that is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("dispatch `{0}`: must be round-robin, fewest-jobs or least-work")]
pub struct UnknownRule(String);

impl FromStr for Rule {
    type Err = UnknownRule;

    fn from_str(text: &str) -> Result<Self, UnknownRule> {
        let mut rules = Self::ALL.into_iter();
        let found = rules.find(|rule| rule.name() == text);
        found.ok_or_else(|| UnknownRule(excerpt(text)))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A server's queue at an arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queued {
    /// Its jobs.
    pub jobs: usize,
    /// The work left of them.
    pub work: f64,
}

/// Chooses servers.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    rule: Rule,
    guardrails: Option<Guardrails>,
    /// The servers, the one that was chosen longest ago first.
    turns: Vec<usize>,
}

/// The work given to servers, by rank of the jobs.
#[derive(Clone, Debug)]
struct Guardrails {
    /// `g`.
    tightness: f64,
    /// `c`.
    base: f64,
    /// By rank, for each server. A size is a float, so there are a few hundred ranks at most.
    given: BTreeMap<i32, Vec<f64>>,
    /// The servers that were empty when the counters were last set back for it, and have had no job since.
    is_even: Vec<bool>,
}

impl Dispatcher {
    /// A dispatcher to so many servers.
    pub fn new(rule: Rule, servers: NonZeroUsize) -> Self {
        Self {
            rule,
            guardrails: None,
            turns: (0..servers.get()).collect(),
        }
    }

    /// The same with guardrails of this tightness, 1 or more, for this load.
    #[must_use]
    pub fn with_guardrails(self, tightness: f64, load: f64) -> Self {
        let relaxed = (1.0 / (1.0 - load.clamp(0.0, 0.9999))).ln();
        let guardrails = Guardrails {
            tightness: tightness.max(1.0),
            base: 1.0 + 1.0 / (1.0 + relaxed),
            given: BTreeMap::new(),
            is_even: vec![false; self.turns.len()],
        };
        Self {
            guardrails: Some(guardrails),
            ..self
        }
    }

    /// The server for a job of this size; `queues` has the queue of each.
    pub fn dispatch(&mut self, size: f64, queues: &[Queued]) -> usize {
        let mut safe = vec![true; self.turns.len()];
        if let Some(guardrails) = &mut self.guardrails {
            guardrails.see(queues);
            safe = guardrails.safe(size);
        }
        let mut candidates = self.turns.iter().copied().filter(|&server| safe[server]);
        let chosen = match self.rule {
            Rule::RoundRobin => candidates.next(),
            Rule::FewestJobs => candidates.min_by_key(|&server| queues[server].jobs),
            Rule::LeastWork => {
                let work = |server: &usize| queues[*server].work;
                candidates.min_by(|a, b| work(a).total_cmp(&work(b)))
            }
        };
        // One is safe, because the least counter is.
        let chosen = chosen.unwrap_or(self.turns[0]);
        self.turns.retain(|&server| server != chosen);
        self.turns.push(chosen);
        if let Some(guardrails) = &mut self.guardrails {
            guardrails.give(size, chosen);
        }
        chosen
    }
}

impl Guardrails {
    fn rank(&self, size: f64) -> i32 {
        (size.max(f64::MIN_POSITIVE).ln() / self.base.ln()).floor() as i32
    }

    /// Sets the counters of servers that have become empty to the least of each rank.
    fn see(&mut self, queues: &[Queued]) {
        for (server, queue) in queues.iter().enumerate() {
            if queue.jobs == 0 && !std::mem::replace(&mut self.is_even[server], true) {
                for given in self.given.values_mut() {
                    given[server] = least(given);
                }
            }
        }
    }

    /// Which servers are safe.
    fn safe(&mut self, size: f64) -> Vec<bool> {
        let (rank, servers) = (self.rank(size), self.is_even.len());
        let given = self.given.entry(rank).or_insert_with(|| vec![0.0; servers]);
        let least = least(given);
        let most = self.tightness * self.base.powi(rank + 1);
        given
            .iter()
            // The least is safe in spite of rounding.
            .map(|&own| own <= least || own - least + size < most)
            .collect()
    }

    fn give(&mut self, size: f64, server: usize) {
        let rank = self.rank(size);
        self.is_even[server] = false;
        if let Some(given) = self.given.get_mut(&rank) {
            given[server] += size;
        }
    }
}

fn least(given: &[f64]) -> f64 {
    given.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const THREE: NonZeroUsize = NonZeroUsize::new(3).unwrap();

    fn queued(all: [(usize, f64); 3]) -> [Queued; 3] {
        all.map(|(jobs, work)| Queued { jobs, work })
    }

    #[test]
    fn each_rule_chooses_by_what_it_is_named_for() {
        let queues = queued([(3, 3.0), (1, 9.0), (2, 1.0)]);
        for (rule, expected) in [
            (Rule::RoundRobin, [0, 1, 2, 0]),
            (Rule::FewestJobs, [1, 1, 1, 1]),
            (Rule::LeastWork, [2, 2, 2, 2]),
        ] {
            assert_eq!(rule.name().parse(), Ok(rule));
            let mut dispatcher = Dispatcher::new(rule, THREE);
            let found = [(); 4].map(|()| dispatcher.dispatch(1.0, &queues));
            assert_eq!(found, expected, "{rule}");
        }
        let refusal = "random".parse::<Rule>().unwrap_err().to_string();
        assert!(refusal.contains("least-work"), "{refusal}");
    }

    #[test]
    fn with_guardrails_no_server_gets_much_more_of_a_size_than_another() {
        let queues = queued([(1, 0.0), (1, 100.0), (1, 100.0)]);
        let mut dispatcher = Dispatcher::new(Rule::LeastWork, THREE).with_guardrails(1.0, 0.9);
        let found = [(); 6].map(|()| dispatcher.dispatch(1.0, &queues));
        let of = |server| found.iter().filter(|&&each| each == server).count();
        assert_eq!((of(0), of(1), of(2)), (2, 2, 2));
        // A server that was empty owes nothing.
        let empty = queued([(0, 0.0), (1, 100.0), (1, 100.0)]);
        for _ in 0..6 {
            assert_eq!(dispatcher.dispatch(1.0, &empty), 0);
            // It has done it by the next arrival.
            dispatcher.guardrails.as_mut().unwrap().is_even[0] = false;
        }
    }

    proptest! {
        /// Definition 3.2 of the paper, for servers that are never empty.
        #[test]
        fn the_work_of_a_rank_stays_within_the_guardrails(
            sizes in proptest::collection::vec(0.01..1000.0_f64, 1..300),
            tightness in 1.0..4.0_f64,
            load in 0.1..0.99_f64,
        ) {
            for rule in Rule::ALL {
                let mut dispatcher = Dispatcher::new(rule, THREE).with_guardrails(tightness, load);
                let queues = queued([(1, 0.0), (2, 1.0), (3, 2.0)]);
                for &size in &sizes {
                    dispatcher.dispatch(size, &queues);
                }
                let guardrails = dispatcher.guardrails.unwrap();
                for (rank, given) in &guardrails.given {
                    let most = given.iter().copied().fold(0.0, f64::max) - least(given);
                    let bound = tightness * guardrails.base.powi(rank + 1);
                    prop_assert!(most <= bound * 1.000_001, "{most} {bound}");
                }
            }
        }
    }
}
