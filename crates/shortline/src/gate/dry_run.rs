//! Logs the result of a dry run: when the capacity becomes known or unknown, and at the end.

use std::time::Duration;

use shortline_gate::{Gate, GateSnapshot};
use shortline_sched::units::Span;

/// How often to check.
const EVERY: Duration = Duration::from_secs(1);

/// Follows a dry run for as long as the gate runs.
pub async fn follow(gate: Gate) {
    let mut known = None;
    loop {
        let snapshot = gate.snapshot();
        let now = snapshot.capacity_ns.is_some();
        if known.replace(now) != Some(now) {
            tracing::info!("{}", render(&snapshot));
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// The result so far, in one line.
pub fn render(snapshot: &GateSnapshot) -> String {
    let totals = &snapshot.totals;
    match snapshot.capacity_ns {
        Some(capacity_ns) => format!(
            "dry run: nobody waits; at a capacity of {} {} of {} requests would have waited",
            Span::from_duration(Duration::from_nanos(capacity_ns)),
            totals.would_wait,
            totals.admitted
        ),
        None => format!(
            "dry run: nobody waits; the capacity is not known: of {} requests none would have waited, as \
             far as can be told",
            totals.admitted
        ),
    }
}

#[cfg(test)]
mod tests {
    use shortline_gate::GateConfig;
    use shortline_sched::admission::{AdmissionConfig, Capacity};

    use super::*;

    #[test]
    fn a_dry_run_that_does_not_know_says_so() {
        let gate = Gate::new(GateConfig {
            admission: AdmissionConfig {
                capacity: Capacity::Auto,
                dry_run: true,
                ..AdmissionConfig::default()
            },
            ..GateConfig::default()
        });
        let line = render(&gate.snapshot());
        assert!(
            line.contains("the capacity is not known: of 0 requests none"),
            "{line}"
        );
    }
}
