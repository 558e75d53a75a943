//! The report on an uplink experiment: a table for each seed, void runs and failures, and
//! medians over the seeds.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::figures::{BoundFigures, Figures, RunFigures, SeedFigures};
use super::plan::Plan;
use crate::stats::Spread;
use crate::table::{Table, bytes, three_digits, time};

/// The report: a table for each seed, then medians over the seeds, then failures.
pub fn table(plan: &Plan, figures: &Figures) -> String {
    let mut text = head(plan);
    for seed in &figures.seeds {
        // Writing to a string cannot fail.
        writeln!(
            text,
            "\nseed {}, {} bytes a request beside its body:",
            seed.seed, seed.per_request_bytes
        )
        .ok();
        text += &seed_table(seed).to_string();
        text += &notes(seed);
    }
    if figures.seeds.len() > 1 {
        writeln!(
            text,
            "\nmedian of {} seeds (lowest to highest):",
            figures.seeds.len()
        )
        .ok();
        text += &medians(plan, figures).to_string();
    }
    text
}

fn head(plan: &Plan) -> String {
    let protocol = match (plan.tls, plan.http2) {
        (false, false) => "HTTP/1.1",
        (true, false) => "HTTP/1.1 over TLS",
        (false, true) => "HTTP/2 (prior knowledge)",
        (true, true) => "HTTP/2 over TLS",
    };
    let per_connection = match plan.requests_per_connection {
        Some(1) => "a connection per request".to_owned(),
        Some(requests) => format!("{requests} requests per connection"),
        None => "6 connections for all".to_owned(),
    };
    format!(
        "{}: {} for {} s, {protocol}, {per_connection}, {}, Linux {}\n",
        plan.experiment, plan.rate, plan.seconds, plan.congestion_control, plan.kernel
    )
}

fn seed_table(seed: &SeedFigures) -> Table {
    let mut table = Table::new(&[
        "server",
        "mean",
        "x optimum",
        "p50",
        "p99",
        "largest 1 %",
        "x optimum",
        "failed",
        "on wire",
        "overload/off",
        "drops",
        "late",
        "latest",
    ]);
    let bound = |name: &str, bound: &BoundFigures| {
        vec![
            name.to_owned(),
            time(bound.mean_s),
            three_digits(bound.mean_s / seed.optimum.mean_s),
            time(bound.p50_s),
            time(bound.p99_s),
            time(bound.largest_mean_s),
            three_digits(bound.largest_mean_s / seed.optimum.largest_mean_s),
        ]
    };
    table.row(bound("fluid SRPT", &seed.optimum));
    table.row(bound("fluid PS", &seed.fair));
    for run in &seed.runs {
        let summary = &run.summary;
        table.row(vec![
            run.server.clone(),
            time(summary.response_time.mean),
            three_digits(run.over_optimum),
            time(summary.response_time.p50),
            time(summary.response_time.p99),
            time(summary.largest.response_time.mean),
            three_digits(run.largest_over_optimum),
            (summary.requests - summary.finished).to_string(),
            bytes(run.wire_bytes as f64),
            run.overload_over_off
                .map_or("-".into(), |share| format!("{share:.3}")),
            run.drops.to_string(),
            summary.late_starts.to_string(),
            time(summary.lateness.max),
        ]);
    }
    table
}

/// What a reader must know beside the table: void runs and failures.
fn notes(seed: &SeedFigures) -> String {
    let mut notes = String::new();
    for run in &seed.runs {
        if let Some(void) = &run.summary.void {
            writeln!(notes, "{} is VOID: {void}", run.server).ok();
        }
        if run.failed.is_empty() {
            continue;
        }
        let kinds: Vec<String> = run
            .summary
            .failures
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let finished = run
            .summary
            .response_time_mean_finished_s
            .map_or("-".into(), time);
        writeln!(
            notes,
            "{} failed: {}; mean of the others {finished}; in seed-{}/{}.csv, first:",
            run.server,
            kinds.join(", "),
            seed.seed,
            run.server
        )
        .ok();
        for failed in &run.failed {
            writeln!(notes, "  {failed}").ok();
        }
    }
    notes
}

fn medians(plan: &Plan, figures: &Figures) -> Table {
    let mut table = Table::new(&[
        "server",
        "mean",
        "x optimum",
        "largest 1 % x",
        "overload/off",
        "failed",
        "void",
    ]);
    let mut by_server: BTreeMap<&str, Vec<&RunFigures>> = BTreeMap::new();
    for run in figures.seeds.iter().flat_map(|seed| &seed.runs) {
        by_server.entry(&run.server).or_default().push(run);
    }
    let spread = |values: Vec<f64>, show: fn(f64) -> String| match Spread::of(values) {
        Some(spread) => format!(
            "{} ({} to {})",
            show(spread.median),
            show(spread.low),
            show(spread.high)
        ),
        None => "-".into(),
    };
    let optimum = figures
        .seeds
        .iter()
        .map(|seed| seed.optimum.mean_s)
        .collect();
    table.row(vec!["fluid SRPT".into(), spread(optimum, time)]);
    for server in &plan.servers {
        let runs = by_server
            .get(server.as_str())
            .map_or(&[][..], Vec::as_slice);
        let failed: usize = runs
            .iter()
            .map(|run| run.summary.requests - run.summary.finished)
            .sum();
        table.row(vec![
            server.clone(),
            spread(
                runs.iter()
                    .map(|run| run.summary.response_time.mean)
                    .collect(),
                time,
            ),
            spread(
                runs.iter().map(|run| run.over_optimum).collect(),
                three_digits,
            ),
            spread(
                runs.iter().map(|run| run.largest_over_optimum).collect(),
                three_digits,
            ),
            spread(
                runs.iter()
                    .filter_map(|run| run.overload_over_off)
                    .collect(),
                |share| format!("{share:.3}"),
            ),
            failed.to_string(),
            runs.iter()
                .filter(|run| run.summary.void.is_some())
                .count()
                .to_string(),
        ]);
    }
    table
}
