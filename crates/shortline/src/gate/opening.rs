//! Tells that a gate has opened up or closed again ([`shortline_sched::admission::OpeningView`]), and that a
//! fixed capacity keeps requests waiting of which nobody knows whether they need to.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shortline_gate::GateSnapshot;
use shortline_sched::admission::{CapacityState, OpeningStage, OpeningView};
use shortline_sched::units::Span;

/// How long requests must have waited behind a fixed capacity before that is told.
const SAID_AFTER: Duration = Duration::from_secs(5 * 60);

/// Follows what a gate has opened. A handle: clones share it.
#[derive(Clone, Debug, Default)]
pub struct Opened(Arc<Mutex<Observed>>);

#[derive(Debug, Default)]
struct Observed {
    openings: u64,
    closings: u64,
    /// When the last look found nobody waiting.
    empty_at: Duration,
    is_told: bool,
}

impl Opened {
    /// Checks the gate at the time `at` since its start. Returns a warning for the log, if there is one.
    pub fn look(&self, at: Duration, seen: &GateSnapshot) -> Option<String> {
        let mut last = self.0.lock();
        if seen.waiting == 0 {
            (last.empty_at, last.is_told) = (at, false);
        }
        let Some(now) = seen.opening else {
            if last.is_told {
                return None;
            }
            let line = doubt(at.saturating_sub(last.empty_at), seen);
            last.is_told = line.is_some();
            return line;
        };
        let (opened, closed) = (now.openings > last.openings, now.closings > last.closings);
        (last.openings, last.closings) = (now.openings, now.closings);
        match () {
            () if opened => Some(how(&now)),
            () if closed => Some(format!(
                "closed again: the capacity of {} is the limit",
                span(now.closed_ns)
            )),
            () => None,
        }
    }

    /// The note at the time `at` since the start, if any.
    pub fn note(&self, at: Duration, now: &GateSnapshot) -> Option<String> {
        match now.opening {
            Some(opening) if opening.stage == OpeningStage::Open => Some(format!(
                "the gate has opened up beyond the capacity of {}, because that does clearly more work",
                span(opening.closed_ns)
            )),
            Some(_) => None,
            None => doubt(at.saturating_sub(self.0.lock().empty_at), now),
        }
    }
}

/// What was opened up, and why.
fn how(now: &OpeningView) -> String {
    let Some(last) = now.last else {
        return "opened up".to_owned();
    };
    format!(
        "opened up: {:.0} % more work is done at {} than at {}",
        100.0 * last.gain,
        span(last.high_ns),
        span(last.low_ns)
    )
}

/// The sentence on a fixed capacity that is never exceeded, and behind which requests always wait.
fn doubt(full: Duration, now: &GateSnapshot) -> Option<String> {
    let is_fixed = now.capacity_state == CapacityState::Fixed;
    if full < SAID_AFTER || now.waiting == 0 || !is_fixed {
        return None;
    }
    let minutes = full.as_secs() / 60;
    Some(format!(
        "requests have waited all the time for {minutes} minutes; whether a higher capacity would do more is \
         not known, and --open-up TIME tries it up to that time"
    ))
}

fn span(ns: u64) -> Span {
    Span::from_duration(Duration::from_nanos(ns))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use shortline_gate::{Gate, GateConfig};
    use shortline_sched::admission::Compared;

    fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    fn snapshot(open_up: &str) -> GateSnapshot {
        let mut config = GateConfig::default();
        config.admission.capacity = "400ms".parse().unwrap();
        config.admission.open_up = open_up.parse().unwrap();
        Gate::new(config).snapshot()
    }

    #[test]
    fn each_opening_and_closing_is_told_once() {
        let (opened, mut seen) = (Opened::default(), snapshot("2s"));
        assert_eq!(opened.look(minutes(1), &seen), None);
        let opening = seen.opening.as_mut().unwrap();
        opening.openings = 1;
        opening.stage = OpeningStage::Open;
        opening.last = Some(Compared {
            low_ns: 400_000_000,
            high_ns: 800_000_000,
            gain: 0.92,
            is_clear: true,
        });
        let line = opened.look(minutes(2), &seen).unwrap();
        assert_eq!(
            line,
            "opened up: 92 % more work is done at 800ms than at 400ms"
        );
        assert_eq!(opened.look(minutes(2), &seen), None);
        let note = opened.note(minutes(2), &seen).unwrap();
        assert!(note.contains("beyond the capacity of 400ms"), "{note}");
        let opening = seen.opening.as_mut().unwrap();
        (opening.closings, opening.stage) = (1, OpeningStage::Closed);
        let line = opened.look(minutes(3), &seen).unwrap();
        assert_eq!(line, "closed again: the capacity of 400ms is the limit");
        assert_eq!(opened.note(minutes(3), &seen), None);
    }

    #[test]
    fn a_fixed_capacity_that_nobody_may_exceed_is_doubted_after_five_minutes_of_waiting() {
        let (opened, mut seen) = (Opened::default(), snapshot("off"));
        assert_eq!(opened.look(minutes(9), &seen), None);
        seen.waiting = 3;
        assert_eq!(opened.look(minutes(13), &seen), None);
        let line = opened.look(minutes(14), &seen).unwrap();
        assert!(
            line.contains("for 5 minutes") && line.contains("--open-up"),
            "{line}"
        );
        assert_eq!(opened.look(minutes(15), &seen), None);
        assert!(opened.note(minutes(15), &seen).is_some());
        seen.waiting = 0;
        assert_eq!(opened.look(minutes(16), &seen), None);
        assert_eq!(opened.note(minutes(25), &seen), None);
    }
}
