//! `shortline model --tail`: how the tails of fifo and boost fall.

use serde::Serialize;
use shortline_command::CommandError;
use shortline_command::output::results_json;
use shortline_sim::model::{Queue, Tail};
use shortline_table::Table;

use super::queues::Setting;

/// One entry of the JSON. Times are in mean service times.
#[derive(Serialize)]
struct TailResult<'a> {
    #[serde(flatten)]
    setting: &'a Setting,
    #[serde(flatten)]
    tail: Tail,
}

/// The tails of these queues, as a table or as JSON.
///
/// # Errors
/// [`CommandError`]: sizes without an exponential tail.
pub(super) fn told(settings: &[Setting], json: bool) -> Result<String, CommandError> {
    let mut results = Vec::new();
    for setting in settings {
        let queue = Queue::new(setting.dist.clone(), setting.load).map_err(CommandError::usage)?;
        let tail = queue.tail().map_err(CommandError::usage)?;
        results.push(TailResult {
            setting,
            tail: tail.in_units_of(setting.dist.mean()),
        });
    }
    match json {
        true => results_json(&results, &[]),
        false => Ok(table(&results)),
    }
}

fn table(results: &[TailResult<'_>]) -> String {
    let mut table = Table::new(&["queue", "g", "C of fifo", "C of boost", "boost over fifo"]);
    for TailResult { setting, tail } in results {
        let number = |value: f64| format!("{value:.4}");
        table.row(vec![
            setting.heading(),
            number(tail.decay_rate),
            number(tail.fifo),
            number(tail.boost),
            number(tail.boost / tail.fifo),
        ]);
    }
    format!("share of jobs that take longer than t mean service times: about C e^(-g t)\n\n{table}")
}
