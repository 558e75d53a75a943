//! Which types of requests have their own series in `/metrics`.
//!
//! The table of types may have a thousand rows, and types are replaced when it is full. A metrics
//! store pays for every name it has ever seen. So only the types with the most work have series. The
//! others share one, `other`. The work of a type is its requests so far times its estimate. A type
//! keeps its series until another has twice its work, so that series do not come and go.
//!
//! A counter must not fall. So `other` is not a sum over the types that are in it now. It counts
//! what happened to types while they were in it, from one check to the next. Nothing is subtracted
//! when a type leaves.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use shortline_sched::admission::{Times, TypeView};

/// The name of the series of all others. A type with this name counts in it, and so does the type
/// that rare types share.
const OTHER: &str = "other";

/// The default number of types with their own series.
pub const TYPES_MAX_DEFAULT: usize = 50;

/// How many times as much work a type needs to take another's place.
const MORE: f64 = 2.0;

/// Chooses the series of one gate.
#[derive(Debug)]
pub struct Series {
    types_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The types that have their own series.
    named: HashSet<String>,
    /// The counts of each type in the table at the last check.
    seen: HashMap<String, Counts>,
    /// What happened to types without series.
    other: Counts,
}

/// Counts that only grow.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    admitted: u64,
    completed: u64,
    failed: u64,
    refused: u64,
    withdrawn: u64,
    waited_ns: u64,
    times: Times,
}

impl Series {
    /// At most this many types have series.
    pub fn new(types_max: usize) -> Self {
        Self {
            types_max,
            state: Mutex::default(),
        }
    }

    /// The types that have series, and `other` last.
    pub fn shown(&self, types: &[TypeView]) -> Vec<TypeView> {
        let mut state = self.state.lock();
        state.choose(types, self.types_max);
        state.count(types);
        let is_named = |each: &&TypeView| state.named.contains(&each.name);
        let (mut told, rest): (Vec<_>, Vec<_>) = types.iter().partition(is_named);
        let other = state.other(&rest);
        told.push(&other);
        told.into_iter().cloned().collect()
    }
}

impl State {
    fn choose(&mut self, types: &[TypeView], types_max: usize) {
        let work = |each: &TypeView| {
            let requests = each.completed + (each.running + each.waiting) as u64;
            let keeps = if self.named.contains(&each.name) {
                MORE
            } else {
                1.0
            };
            requests as f64 * each.estimate_ns as f64 * keeps
        };
        let mut by_work: Vec<(f64, &str)> = types
            .iter()
            .filter(|each| each.name != OTHER)
            .map(|each| (work(each), each.name.as_str()))
            .collect();
        by_work.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        by_work.truncate(types_max);
        self.named = by_work.iter().map(|(_, name)| (*name).to_owned()).collect();
    }

    /// Adds what has happened to the other types since the last check.
    fn count(&mut self, types: &[TypeView]) {
        let seen = types
            .iter()
            .map(|each| (each.name.clone(), Counts::of(each)));
        let before = std::mem::replace(&mut self.seen, seen.collect());
        for each in types {
            if !self.named.contains(&each.name) {
                let before = before.get(&each.name).copied().unwrap_or_default();
                self.other.add(Counts::of(each), before);
            }
        }
    }

    fn other(&self, rest: &[&TypeView]) -> TypeView {
        let sum = |value: fn(&TypeView) -> usize| rest.iter().map(|each| value(each)).sum();
        let most = |value: fn(&TypeView) -> u64| rest.iter().map(|each| value(each)).max();
        let admitted: u64 = rest.iter().map(|each| each.admitted).sum();
        let expected_ns: f64 = rest
            .iter()
            .map(|each| each.admitted as f64 * each.estimate_ns as f64)
            .sum();
        TypeView {
            name: OTHER.to_owned(),
            // The mean estimate of a request of these types.
            estimate_ns: (expected_ns / admitted.max(1) as f64) as u64,
            requests_known: sum(|each| each.requests_known),
            waiting: sum(|each| each.waiting),
            running: sum(|each| each.running),
            admitted: self.other.admitted,
            completed: self.other.completed,
            failed: self.other.failed,
            refused: self.other.refused,
            withdrawn: self.other.withdrawn,
            would_wait: rest.iter().map(|each| each.would_wait).sum(),
            waited_ns_sum: self.other.waited_ns,
            times: self.other.times,
            waited_ns_max: most(|each| each.waited_ns_max).unwrap_or(0),
            oldest_wait_ns: most(|each| each.oldest_wait_ns).unwrap_or(0),
        }
    }
}

impl Counts {
    fn of(each: &TypeView) -> Self {
        Self {
            admitted: each.admitted,
            completed: each.completed,
            failed: each.failed,
            refused: each.refused,
            withdrawn: each.withdrawn,
            waited_ns: each.waited_ns_sum,
            times: each.times,
        }
    }

    /// Adds the growth from `before` to `now`. If a count fell, the table had forgotten the type in
    /// between, and all of `now` is added.
    fn add(&mut self, now: Self, before: Self) {
        let is_new = now.admitted < before.admitted;
        let before = if is_new { Self::default() } else { before };
        self.admitted += now.admitted.saturating_sub(before.admitted);
        self.completed += now.completed.saturating_sub(before.completed);
        self.failed += now.failed.saturating_sub(before.failed);
        self.refused += now.refused.saturating_sub(before.refused);
        self.withdrawn += now.withdrawn.saturating_sub(before.withdrawn);
        self.waited_ns += now.waited_ns.saturating_sub(before.waited_ns);
        self.times.grow(&now.times, &before.times);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn view(name: &str, completed: u64, estimate_ns: u64) -> TypeView {
        TypeView {
            name: name.to_owned(),
            estimate_ns,
            requests_known: 1,
            waiting: 0,
            running: 0,
            admitted: completed,
            completed,
            failed: 0,
            refused: 0,
            withdrawn: 0,
            would_wait: 0,
            waited_ns_sum: completed,
            times: Times::default(),
            waited_ns_max: 7,
            oldest_wait_ns: 0,
        }
    }

    fn names(told: &[TypeView]) -> Vec<&str> {
        told.iter().map(|each| each.name.as_str()).collect()
    }

    #[test]
    fn a_thousand_types_are_a_bounded_number_of_series() {
        let series = Series::new(3);
        let mut types: Vec<_> = (0..1000).map(|i| view(&format!("t{i}"), i, 10)).collect();
        types.insert(0, view(OTHER, 5, 10));
        let told = series.shown(&types);
        assert_eq!(names(&told), ["t997", "t998", "t999", OTHER]);
        let all: u64 = types.iter().map(|each| each.completed).sum();
        assert_eq!(told.iter().map(|each| each.completed).sum::<u64>(), all);
        assert_eq!(told.last().unwrap().waited_ns_max, 7);
    }

    #[test]
    fn no_counter_falls_when_a_type_gets_series_or_loses_them() {
        let series = Series::new(1);
        let look = |a: u64, b: u64| series.shown(&[view("a", a, 10), view("b", b, 10)]);
        let first = look(10, 4);
        assert_eq!((names(&first), first[1].completed), (vec!["a", OTHER], 4));
        // A little more work is not enough.
        let second = look(10, 15);
        assert_eq!(
            (names(&second), second[1].completed),
            (vec!["a", OTHER], 15)
        );
        let third = look(10, 30);
        assert_eq!((names(&third), third[1].completed), (vec!["b", OTHER], 15));
        let fourth = look(13, 30);
        assert_eq!(fourth[1].completed, 18);
        // The table has forgotten it and seen it again.
        let fifth = look(2, 30);
        assert_eq!(fifth[1].completed, 20);
    }

    #[test]
    fn what_waits_and_was_never_served_is_seen() {
        let series = Series::new(1);
        let starving = TypeView {
            waiting: 8,
            oldest_wait_ns: 18_000_000_000,
            ..view("reports", 0, 1_000_000)
        };
        let told = series.shown(&[view("a", 1_000_000, 1_000_000), starving]);
        assert_eq!(names(&told), ["a", OTHER]);
        let other = told.last().unwrap();
        assert_eq!((other.waiting, other.oldest_wait_ns), (8, 18_000_000_000));
    }
}
