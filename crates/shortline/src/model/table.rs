//! The results of `shortline model` as a table.

use shortline_sim::model::{Analysis, Point};
use shortline_table::Table;

use super::ModelResult;

/// Percentiles of size shown, as the share of larger jobs.
const SHARES: [(f64, &str); 5] = [
    (0.5, "p50"),
    (0.1, "p90"),
    (0.01, "p99"),
    (1e-3, "p99.9"),
    (1e-4, "p99.99"),
];

/// A table per distribution and load: the means, then the expected slowdown of single sizes.
pub(super) fn table(results: &[ModelResult]) -> String {
    let mut text = String::from("times in mean service times; slowdown of jobs by size\n");
    let same = |a: &ModelResult, b: &ModelResult| a.setting.heading() == b.setting.heading();
    for group in results.chunk_by(same) {
        let heading = group[0].setting.heading();
        text += &format!("\n{heading}\n{}", of_setting(group));
    }
    text
}

fn of_setting(results: &[ModelResult]) -> Table {
    let is_simulated = results[0].simulated.is_some();
    let mut head = vec!["policy", "mean", "slowdown"];
    if is_simulated {
        head.extend(["mean simulated", "slowdown simulated", "worst job"]);
    }
    let means = head.len();
    head.extend(SHARES.map(|(_, name)| name));
    head.extend(["largest", "max", "at size"]);
    let mut table = Table::new(&head);
    table.row(loads(&results[0], means));
    for result in results {
        table.row(row(result));
    }
    table
}

/// The share of the load that the larger jobs make up.
fn loads(result: &ModelResult, means: usize) -> Vec<String> {
    let mut cells = vec![String::new(); means];
    cells[0] = "load of larger jobs".into();
    let shares = SHARES.map(|(share, _)| point(&result.analysis, share).load_above);
    cells.extend(shares.map(|load| format!("{load:.4}")));
    cells
}

fn point(analysis: &Analysis, share: f64) -> &Point {
    let mut points = analysis.points.iter();
    points
        .find(|point| point.share_above == share)
        .expect("invariant: there is a point for 1, 2, 5 of every power of ten")
}

fn row(result: &ModelResult) -> Vec<String> {
    let analysis = &result.analysis;
    let mut cells = vec![
        analysis.policy.to_string(),
        number(analysis.sojourn_mean),
        number(analysis.slowdown_mean),
    ];
    if let Some(simulated) = &result.simulated {
        let with_margin = |mean: f64, margin: f64| format!("{mean:.4} ± {margin:.4}");
        cells.extend([
            with_margin(simulated.sojourn_mean, simulated.sojourn_margin),
            with_margin(simulated.slowdown_mean, simulated.slowdown_margin),
            format!("{:.1}", simulated.slowdown_worst),
        ]);
    }
    let slowdowns = SHARES.map(|(share, _)| point(analysis, share).slowdown);
    cells.extend(slowdowns.map(number));
    cells.extend([
        number(analysis.slowdown_largest),
        number(analysis.slowdown_max),
        number(analysis.slowdown_max_size),
    ]);
    cells
}

fn number(value: f64) -> String {
    if value.is_infinite() {
        "inf".into()
    } else {
        format!("{value:.4}")
    }
}
