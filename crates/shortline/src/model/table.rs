//! Results of `shortline model` for people to read.

use std::fmt::Write;

use shortline_sim::model::{Analysis, Point};

use super::ModelResult;

/// Percentiles of size shown, as the share of larger jobs.
const SHARES: [(f64, &str); 5] = [
    (0.5, "p50"),
    (0.1, "p90"),
    (0.01, "p99"),
    (1e-3, "p99.9"),
    (1e-4, "p99.99"),
];

/// A table per distribution and load: means, then the slowdown that single sizes expect.
pub(super) fn table(results: &[ModelResult]) -> String {
    let mut text = String::from("times in mean service times; slowdown of jobs by size\n");
    let mut heading = String::new();
    for result in results {
        let this = result.setting.heading();
        if heading != this {
            text += &format!("\n{this}\n{}", titles(result.simulated.is_some()));
            text += &loads(result);
            heading = this;
        }
        text += &row(result);
    }
    text
}

fn titles(simulated: bool) -> String {
    let mut text = format!("{:<6} {:>10} {:>10}", "policy", "mean", "slowdown");
    if simulated {
        let (mean, slowdown) = ("mean simulated", "slowdown simulated");
        text += &format!(" {mean:>19} {slowdown:>19} {:>9}", "worst job");
    }
    for (_, name) in SHARES {
        text += &format!(" {name:>8}");
    }
    text + &format!(" {:>8} {:>8} {:>10}\n", "largest", "max", "at size")
}

/// How much of the load the larger jobs make up.
fn loads(result: &ModelResult) -> String {
    let width = if result.simulated.is_some() { 78 } else { 28 };
    let mut text = format!("{:<width$}", "load of larger jobs");
    for share in SHARES.map(|(share, _)| share) {
        text += &format!(" {:>8.4}", point(&result.analysis, share).load_above);
    }
    text + "\n"
}

fn point(analysis: &Analysis, share: f64) -> &Point {
    let mut points = analysis.points.iter();
    points
        .find(|point| point.share_above == share)
        .expect("invariant: there is a point for 1, 2, 5 of every power of ten")
}

fn row(result: &ModelResult) -> String {
    let analysis = &result.analysis;
    let mut text = format!(
        "{:<6} {:>10.4} {:>10}",
        analysis.policy,
        analysis.sojourn_mean,
        number(analysis.slowdown_mean),
    );
    if let Some(simulated) = &result.simulated {
        let with_margin = |mean: f64, margin: f64| format!("{mean:.4} ± {margin:.4}");
        let sojourn = with_margin(simulated.sojourn_mean, simulated.sojourn_margin);
        let slowdown = with_margin(simulated.slowdown_mean, simulated.slowdown_margin);
        let worst = simulated.slowdown_worst;
        text += &format!(" {sojourn:>19} {slowdown:>19} {worst:>9.1}");
    }
    for (share, _) in SHARES {
        let point = point(analysis, share);
        text += &format!(" {:>8}", number(point.slowdown));
    }
    // A string takes any formatting.
    let _ = writeln!(
        text,
        " {:>8} {:>8} {:>10.4}",
        number(analysis.slowdown_largest),
        number(analysis.slowdown_max),
        analysis.slowdown_max_size,
    );
    text
}

fn number(value: f64) -> String {
    if value.is_infinite() {
        "inf".into()
    } else {
        format!("{value:.4}")
    }
}
