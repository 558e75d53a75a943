//! The report: a line for each door, in the mean over the seeds.
//!
//! Times are those of requests that got a whole response. A door that refuses requests makes the others'
//! times short, so the share that it refused stands beside them.

use std::fmt::Write as _;

use shortline_table::{Table, three_digits};

use super::Outcome;
use crate::study::application::{Design, Door, LOADS};
use crate::study::stats::mean;

/// The report as text.
pub fn text(design: &Design, outcomes: &[Outcome]) -> String {
    let mut table = Table::new(&[
        "door",
        "mean, ms",
        "p99, ms",
        "longest type, ms",
        "done a second",
        "failed, %",
        "of the longest, %",
        "seeds",
    ]);
    let mut doors: Vec<Door> = Vec::new();
    for outcome in outcomes {
        if !doors.contains(&outcome.door) {
            doors.push(outcome.door);
        }
    }
    for door in doors {
        let of = |value: fn(&Outcome) -> f64| {
            let of_door = outcomes.iter().filter(|outcome| outcome.door == door);
            mean(of_door.map(value)).unwrap_or(0.0)
        };
        let seeds = outcomes.iter().filter(|outcome| outcome.door == door);
        table.row(vec![
            door.to_string(),
            three_digits(1e3 * of(|outcome| outcome.mean_s)),
            three_digits(1e3 * of(|outcome| outcome.p99_s)),
            three_digits(1e3 * of(|outcome| outcome.longest_mean_s)),
            three_digits(of(|outcome| outcome.done as f64 / outcome.took_s)),
            three_digits(of(|outcome| lost(outcome.done, outcome.requests))),
            three_digits(of(|outcome| {
                lost(outcome.longest_done, outcome.longest_requests)
            })),
            seeds.count().to_string(),
        ]);
    }
    let mut text = String::new();
    let [high, low] = LOADS;
    let late = mean(outcomes.iter().map(|outcome| outcome.late_mean_s)).unwrap_or(0.0);
    writeln!(
        text,
        "an application at {high} and {low} of its capacity, {} s each in turns; requests started {:.2} ms late \
         in the mean\n",
        design.phase.as_secs_f64(),
        1e3 * late,
    )
    .ok();
    text += &table.to_string();
    text
}

/// The share that failed, in per cent.
fn lost(done: u64, requests: u64) -> f64 {
    100.0 * (requests - done) as f64 / requests.max(1) as f64
}
