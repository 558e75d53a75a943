//! Reports that a gate changes nothing. A gate orders waiting requests. If none has waited for
//! minutes, it has no effect.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shortline_gate::GateSnapshot;

/// How long no request must have waited before it is reported.
const SAID_AFTER: Duration = Duration::from_secs(5 * 60);

/// Records when a request last waited. A handle: clones share it.
#[derive(Clone, Debug, Default)]
pub struct Quiet(Arc<Mutex<Observed>>);

#[derive(Debug, Default)]
struct Observed {
    waits: Waits,
    /// The number of requests that were admitted when a request last waited.
    admitted: u64,
    since: Duration,
    is_logged: bool,
}

/// Counters. Each request that waits, or would wait, raises one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waits {
    waited_ns_sum: u64,
    would_wait: u64,
    left: u64,
}

impl Quiet {
    /// Checks the gate at the time `at` since its start. Returns a line for the log, if there is
    /// one.
    pub fn look(&self, at: Duration, seen: &GateSnapshot) -> Option<String> {
        let totals = &seen.totals;
        let waits = Waits {
            waited_ns_sum: totals.waited_ns_sum,
            would_wait: totals.would_wait,
            left: totals.withdrawn + totals.refused_full + totals.refused_shed,
        };
        let mut last = self.0.lock();
        if seen.waiting > 0 || waits != last.waits {
            *last = Observed {
                waits,
                admitted: totals.admitted,
                since: at,
                is_logged: false,
            };
        }
        // A gate without requests has nothing to report.
        if last.is_logged || totals.admitted == last.admitted {
            return None;
        }
        let line = sentence(at.saturating_sub(last.since), seen)?;
        last.is_logged = true;
        Some(line)
    }

    /// The note at the time `at` since the start, if any.
    pub fn note(&self, at: Duration, now: &GateSnapshot) -> Option<String> {
        sentence(at.saturating_sub(self.0.lock().since), now)
    }
}

fn sentence(quiet: Duration, now: &GateSnapshot) -> Option<String> {
    // Without a limit, no request was meant to wait.
    if quiet < SAID_AFTER || now.waiting > 0 || now.capacity_ns.is_none() {
        return None;
    }
    let minutes = quiet.as_secs() / 60;
    Some(format!(
        "nothing has waited for {minutes} minutes, so the gate changes nothing now"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use shortline_gate::{Decision, Gate, GateConfig};
    use shortline_sched::admission::Outcome;

    fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    fn gate(capacity: &str) -> Gate {
        let mut config = GateConfig::default();
        config.admission.capacity = capacity.parse().unwrap();
        Gate::new(config)
    }

    fn pass(gate: &Gate) {
        if let Decision::Admitted(admitted) = gate.ask(gate.type_of("a")).unwrap() {
            admitted.finish(Outcome::Completed);
        }
    }

    #[test]
    fn a_gate_that_orders_nothing_says_so_once() {
        let (gate, quiet) = (gate("auto"), Quiet::default());
        pass(&gate);
        assert_eq!(quiet.look(minutes(4), &gate.snapshot()), None);
        assert_eq!(quiet.note(minutes(4), &gate.snapshot()), None);
        let said = "nothing has waited for 6 minutes, so the gate changes nothing now";
        assert_eq!(
            quiet.look(minutes(6), &gate.snapshot()).as_deref(),
            Some(said)
        );
        assert_eq!(
            quiet.note(minutes(6), &gate.snapshot()).as_deref(),
            Some(said)
        );
        assert_eq!(quiet.look(minutes(7), &gate.snapshot()), None);
        let later = quiet.note(minutes(7), &gate.snapshot()).unwrap();
        assert!(later.contains("7 minutes"), "{later}");
    }

    #[test]
    fn a_wait_however_short_begins_it_anew() {
        let (gate, quiet) = (gate("1ns"), Quiet::default());
        let mut seen = gate.snapshot();
        seen.totals.admitted = 1;
        assert!(quiet.look(minutes(6), &seen).is_some());
        seen.totals.waited_ns_sum = 1;
        assert_eq!(quiet.look(minutes(7), &seen), None);
        assert_eq!(quiet.note(minutes(11), &seen), None);
        seen.totals.admitted = 2;
        assert!(quiet.look(minutes(12), &seen).is_some());
    }

    #[test]
    fn nothing_is_said_where_nothing_passes_or_nobody_was_to_wait() {
        let quiet = Quiet::default();
        assert_eq!(quiet.look(minutes(9), &gate("auto").snapshot()), None);
        let off = gate("off");
        pass(&off);
        assert_eq!(quiet.look(minutes(9), &off.snapshot()), None);
    }
}
