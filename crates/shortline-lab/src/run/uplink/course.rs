//! Changes the narrow link while requests arrive, as the point's course says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use shortline_sched::units::Rate;
use shortline_testbed::bed::NativeBed;

use crate::LabError;
use crate::study::point::Point;

/// The longest pause at a time, so that the end of a run need not wait.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Does `work`, and meanwhile sets the link of `bed` to the rates in the course of `point`.
///
/// # Errors
/// The error of the work, or else of `tc`.
pub fn change_while(
    bed: &NativeBed,
    point: &Point,
    work: impl FnOnce() -> Result<(), LabError>,
) -> Result<(), LabError> {
    let (begin, ended) = (Instant::now(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let changes = scope.spawn(|| {
            for step in &point.setup.course.steps {
                if !pause_until(begin + point.length().mul_f64(step.at), &ended) {
                    break;
                }
                let bps = point.rate.bps() as f64 * step.factor;
                bed.set_rate(Rate::from_bps(bps as u64))?;
            }
            Ok(())
        });
        let worked = work();
        ended.store(true, Ordering::Relaxed);
        let changed = changes.join().expect("invariant: the changes do not panic");
        worked.and(changed)
    })
}

/// Waits for that time. False if the run ended before it.
fn pause_until(time: Instant, ended: &AtomicBool) -> bool {
    while !ended.load(Ordering::Relaxed) {
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(PAUSE_MAX));
    }
    false
}
