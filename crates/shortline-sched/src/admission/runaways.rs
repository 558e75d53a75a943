//! Runaways: requests that take far longer than their type.
//!
//! A request is a runaway once it has been served for longer than
//!
//! ```text
//! max(multiple * p99 of its type, 2 s)
//! ```
//!
//! The 99th percentile is that of about the last thousand requests of the type, without outliers, under the
//! present slowdown. At least [`KNOWN_WELL`] requests of the type must have ended. Pauses and waits for locks
//! do not count. Without a rule ([`Runaway`]), its own or the gate's, no request is a runaway. What it takes counts
//! in the load ([`super::growth`]) and is charged to its client ([`super::debts`]), as for any request.
//!
//! When a runaway ends, its type's name is remembered for [`REMEMBERED_NS`]. Until then requests of this name
//! are of the type [`CLASS`], which has an estimate of its own. So the next one does not go first on the
//! estimate of the quick ones. With [`RunawayAction::Cancel`] the driver also ends its statement in the
//! backend (by [`Admission::cancel_after_ns`]). TiDB has both (`QUERY_LIMIT`, `WATCH SIMILAR`). With
//! [`RunawayAction::Charge`] it is only counted. There is no rule by default: a request that ran away by accident
//! makes all others like it long for a while.

use std::collections::HashMap;

use super::config::{Runaway, RunawayAction};
use super::requests::{Request, RequestId, Running};
use super::types::Types;
use super::{Admission, TypeId};

/// The type of requests whose name ran away recently.
const CLASS: &str = "runaway";

/// How long a name is remembered, in nanoseconds.
const REMEMBERED_NS: u64 = 600_000_000_000;

/// The most names remembered. Beyond that, the one remembered for longest is forgotten.
const NAMES_MAX: usize = 1000;

/// The shortest service of a runaway, in nanoseconds.
const LEAST_NS: u64 = 2_000_000_000;

/// This many requests of the type must have ended.
const KNOWN_WELL: usize = 16;

/// The rule, and the names remembered.
#[derive(Debug, Default)]
pub(super) struct Runaways {
    rule: Option<Runaway>,
    /// Each name with the time until which it is remembered, in nanoseconds.
    names: HashMap<String, u64>,
}

impl Runaways {
    pub(super) fn new(rule: Option<Runaway>) -> Self {
        Self {
            rule,
            names: HashMap::new(),
        }
    }

    /// The name of the type for a request of this name.
    pub(super) fn class_of<'a>(&self, now_ns: u64, name: &'a str) -> &'a str {
        match self.names.get(name) {
            Some(&until_ns) if now_ns < until_ns => CLASS,
            _ => name,
        }
    }

    fn remember(&mut self, now_ns: u64, name: &str) {
        if self.names.len() >= NAMES_MAX {
            self.names.retain(|_, until_ns| *until_ns > now_ns);
        }
        if self.names.len() >= NAMES_MAX {
            let oldest = self.names.iter().min_by_key(|(_, until_ns)| **until_ns);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.names.remove(&oldest);
            }
        }
        let until_ns = now_ns.saturating_add(REMEMBERED_NS);
        self.names.insert(name.to_owned(), until_ns);
    }

    /// Uses another rule for requests without one of their own.
    pub(super) fn set_rule(&mut self, rule: Option<Runaway>) {
        self.rule = rule;
    }

    /// What is done about a request if it runs away, and the service after which it does, in nanoseconds. `None` if it
    /// never does.
    fn of(&self, types: &Types, request: &Request) -> Option<(RunawayAction, u64)> {
        let rule = request.runaway.or(self.rule)?;
        let limit_ns = rule.multiple * types.p99_ns(request.kind, KNOWN_WELL)?;
        // A request of the class is not a runaway again.
        let may = types.get(request.kind).name() != CLASS;
        may.then(|| (rule.action, (limit_ns as u64).max(LEAST_NS)))
    }

    /// A request has ended. Returns whether it was a runaway.
    pub(super) fn end(
        &mut self,
        now_ns: u64,
        types: &Types,
        request: &Request,
        running: &Running,
    ) -> bool {
        let Some((action, after_ns)) = self.of(types, request) else {
            return false;
        };
        let is_one = running.service_ns(now_ns) > after_ns;
        if is_one && action != RunawayAction::Charge {
            self.remember(now_ns, types.get(request.kind).name());
        }
        is_one
    }
}

impl Admission {
    /// The type of this name, entered into the table if it is new. A full table forgets an unused type. If
    /// all are in use, new names share one type. A name that ran away recently gets the type for runaways.
    pub fn type_of(&mut self, name: &str) -> TypeId {
        let name = self.runaways.class_of(self.now_ns, name);
        self.types.enter(name)
    }

    /// For a running request that is cancelled if it runs away: the service after which it does, and its service so
    /// far, both in nanoseconds. `None` if it does not run, or is never cancelled.
    pub fn cancel_after_ns(&self, now_ns: u64, id: RequestId) -> Option<(u64, u64)> {
        let running = self.requests.running(id)?;
        let (action, after_ns) = self.runaways.of(&self.types, self.requests.get(id)?)?;
        let service_ns = running.service_ns(now_ns.max(self.now_ns));
        (action == RunawayAction::Cancel).then_some((after_ns, service_ns))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{AdmissionConfig, NewRequest, Outcome};
    use super::*;

    const MS: u64 = 1_000_000;

    fn gate(rule: &str) -> Admission {
        Admission::new(AdmissionConfig {
            runaway: Some(rule.parse().unwrap()),
            ..AdmissionConfig::default()
        })
    }

    /// Runs a request of a type for `service_ns`; returns the time of its end.
    fn run(
        gate: &mut Admission,
        now_ns: u64,
        name: &str,
        service_ns: u64,
        outcome: Outcome,
    ) -> u64 {
        let kind = gate.type_of(name);
        let id = gate.arrive(now_ns, kind).unwrap();
        assert_eq!(gate.admit_next(now_ns), Some(id));
        gate.finish(now_ns + service_ns, id, outcome);
        now_ns + service_ns
    }

    #[test]
    fn a_rule_reads_back_and_nonsense_is_refused_in_a_line() {
        for (text, shown) in [
            ("cancel", "cancel:20"),
            ("class:2.5", "class:2.5"),
            ("charge", "charge:20"),
        ] {
            assert_eq!(text.parse::<Runaway>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "kill",
            "cancel:",
            "cancel:1",
            "class:inf",
            "class:nan",
            ":3",
        ] {
            let refusal = text.parse::<Runaway>().unwrap_err().to_string();
            assert!(
                refusal.contains("cancel:20") && refusal.lines().count() == 1,
                "{refusal}"
            );
        }
    }

    #[test]
    fn the_next_like_a_runaway_are_of_their_class_until_it_is_forgotten() {
        let mut gate = gate("class:10");
        let mut now_ns = 0;
        for _ in 0..KNOWN_WELL {
            now_ns = run(&mut gate, now_ns, "web", 500 * MS, Outcome::Completed);
        }
        let own = gate.type_of("web");
        // Exactly ten times as long is not a runaway.
        now_ns = run(&mut gate, now_ns, "web", 5000 * MS, Outcome::Completed);
        assert_eq!(gate.type_of("web"), own);
        now_ns = run(&mut gate, now_ns, "web", 5500 * MS, Outcome::Failed);
        assert_ne!(gate.type_of("web"), own);
        assert_eq!(gate.type_of("web"), gate.type_of(CLASS));
        assert_eq!(gate.view().totals.runaways, 1);
        run(
            &mut gate,
            now_ns + REMEMBERED_NS,
            "other",
            MS,
            Outcome::Completed,
        );
        assert_eq!(gate.type_of("web"), own);
    }

    #[test]
    fn what_is_short_or_hardly_known_never_runs_away() {
        let mut gate = gate("cancel:2");
        let mut now_ns = 0;
        for count in 0..KNOWN_WELL {
            let id = gate.type_of("web");
            let id = gate.arrive(now_ns, id).unwrap();
            gate.admit_next(now_ns).unwrap();
            assert_eq!(gate.cancel_after_ns(now_ns, id), None, "{count}");
            now_ns += MS;
            gate.finish(now_ns, id, Outcome::Completed);
        }
        let id = gate.type_of("web");
        let id = gate.arrive(now_ns, id).unwrap();
        gate.admit_next(now_ns).unwrap();
        let found = gate.cancel_after_ns(now_ns + 7 * MS, id);
        assert_eq!(found, Some((LEAST_NS, 7 * MS)));
        gate.finish(now_ns + 7 * MS, id, Outcome::Completed);
        assert_eq!(gate.view().totals.runaways, 0);
        assert_eq!(gate.cancel_after_ns(now_ns, id), None);
    }

    #[test]
    fn a_request_with_a_rule_of_its_own_goes_by_that() {
        // The rule of all is less strict. One pays only, one is cancelled sooner, and one of no rule does neither.
        for (rule, is_cancelled, is_counted, is_classed) in [
            (Some("charge:3"), false, true, false),
            (Some("cancel:3"), true, true, true),
            (None, false, false, false),
        ] {
            let mut gate = gate("class:10");
            let mut now_ns = 0;
            for _ in 0..KNOWN_WELL {
                now_ns = run(&mut gate, now_ns, "web", 500 * MS, Outcome::Completed);
            }
            let own = gate.type_of("web");
            let request = NewRequest {
                runaway: rule.map(|rule| rule.parse().unwrap()),
                ..NewRequest::new(own)
            };
            let id = gate.take_in(now_ns, request).unwrap();
            assert_eq!(gate.admit_next(now_ns), Some(id));
            now_ns += 2500 * MS;
            let due = gate.cancel_after_ns(now_ns, id);
            assert_eq!(due.is_some(), is_cancelled, "{rule:?}");
            gate.finish(now_ns, id, Outcome::Failed);
            let counted = gate.view().totals.runaways;
            assert_eq!(counted, u64::from(is_counted), "{rule:?}");
            assert_eq!(gate.type_of("web") != own, is_classed, "{rule:?}");
        }
    }

    #[test]
    fn no_more_names_are_remembered_than_there_is_room_for() {
        let mut runaways = Runaways::default();
        for name in 0..2 * NAMES_MAX as u64 {
            runaways.remember(name, &name.to_string());
        }
        assert_eq!(runaways.names.len(), NAMES_MAX);
        assert_eq!(runaways.class_of(0, "1999"), CLASS);
        assert_eq!(runaways.class_of(0, "3"), "3");
    }
}
