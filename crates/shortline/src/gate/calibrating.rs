//! Reports the progress of `--capacity calibrate`: each trial in the log, and at the end the flag
//! to use.

use std::num::NonZeroU64;
use std::time::Duration;

use shortline_gate::Gate;
use shortline_sched::admission::{
    CalibrationStage, CalibrationView, Capacity, CapacityState, Trial,
};

use shortline_daemon::estimates::Keeper;

/// How often to check. A trial takes longer than this, unless it is set to be very short.
const EVERY: Duration = Duration::from_millis(100);

/// Follows the search of `gate` until it is over, and saves what it found.
pub async fn follow(gate: Gate, keeper: Option<Keeper>) {
    let mut told = Progress::default();
    loop {
        tokio::time::sleep(EVERY).await;
        let CapacityState::Calibrate(view) = gate.snapshot().capacity_state else {
            return;
        };
        told.report(&view);
        if view.stage == CalibrationStage::Over {
            break;
        }
    }
    if let Some(keeper) = keeper {
        // A panic inside prints its own message.
        let _ = tokio::task::spawn_blocking(move || keeper.save()).await;
    }
}

/// The progress that was reported so far.
#[derive(Default)]
struct Progress {
    trials: usize,
    stage: Option<CalibrationStage>,
}

impl Progress {
    fn report(&mut self, view: &CalibrationView) {
        if let Some(last) = view.last
            && view.trials > self.trials
        {
            self.trials = view.trials;
            tracing::info!("calibrate: trial {}: {}", view.trials, done(last));
        }
        if self.stage.replace(view.stage) == Some(view.stage) {
            return;
        }
        match (view.stage, view.best) {
            (CalibrationStage::Learning, _) => {
                tracing::info!("calibrate: one request at a time, to learn what each type takes");
            }
            (CalibrationStage::LoadTooSmall, _) => tracing::warn!(
                "calibrate: the load does not fill the capacity being tried: add load"
            ),
            (CalibrationStage::Over, Some(best)) => {
                tracing::info!(
                    "calibrate: over after {} trials: {}",
                    view.trials,
                    done(best)
                );
                tracing::info!("calibrated: --capacity {}", written(best.capacity_ns));
            }
            _ => {}
        }
    }
}

fn done(trial: Trial) -> String {
    format!(
        "{:.3} s of work a second at {}",
        trial.work_rate,
        written(trial.capacity_ns)
    )
}

/// A capacity in the form of the flag. It has three digits, since it is known to about a tenth.
fn written(capacity_ns: u64) -> String {
    let unit = 10u64.pow(capacity_ns.max(1).ilog10().saturating_sub(2));
    let rounded = (capacity_ns / unit).max(1).saturating_mul(unit);
    NonZeroU64::new(rounded).map_or_else(String::new, |ns| Capacity::Fixed(ns).to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_capacity_is_written_with_three_digits_and_read_back() {
        for (capacity_ns, text) in [
            (0, "1ns"),
            (1, "1ns"),
            (999, "999ns"),
            (12_855_047, "12800us"),
            (412_345_678, "412ms"),
            (20_000_000_000, "20s"),
        ] {
            assert_eq!(written(capacity_ns), text);
            text.parse::<Capacity>().unwrap();
        }
    }
}
