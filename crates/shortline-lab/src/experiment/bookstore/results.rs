//! What the runs brought, and the tables of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use shortline_bookstore::browser::{Estimate, Summary};
use shortline_bookstore::{Interaction, Kind};

use super::{Door, Load, RESULTS, Run};
use crate::LabError;
use crate::experiment::plan::read_json;
use crate::table::{Table, three_digits, time};

/// A run, as kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    pub run: Run,
    pub summary: Summary,
    /// Processor time of the database per second; 1 is one processor full.
    pub database_cpu_share: f64,
    /// The same of browsers, application and gate.
    pub own_cpu_share: f64,
    /// How late interactions started, in the mean.
    pub late_mean_s: f64,
}

/// The most that a database did without a gate so far, in finished interactions per second.
pub fn peak_per_s(all: &[Kept], database: Kind) -> Option<f64> {
    all.iter()
        .filter(|kept| (kept.run.database, kept.run.door) == (database, Door::None))
        .filter(|kept| matches!(kept.run.load, Load::Browsers(_)))
        .map(|kept| kept.summary.throughput_per_min / 60.0)
        .max_by(f64::total_cmp)
}

/// The report on the results in `folder`: throughput and response time by the number of browsers
/// (002's Figs. 5 to 10), and by type at the most of them (Figs. 11 to 13).
///
/// # Errors
/// If the results are missing or wrong.
pub fn report(folder: &Path) -> Result<String, LabError> {
    let all: Vec<Kept> = read_json(&folder.join(RESULTS))?;
    let mut text = String::from(
        "bookstore: finished interactions a minute, response times with 90 % intervals over seeds\n",
    );
    for database in Kind::ALL {
        let of: Vec<&Kept> = all
            .iter()
            .filter(|kept| kept.run.database == database)
            .collect();
        let Some(most) = of.iter().map(|kept| kept.run.load).max() else {
            continue;
        };
        writeln!(text, "\n{database}\n\n{}", by_load(&of)).ok();
        let at_most: Vec<&Kept> = of
            .into_iter()
            .filter(|kept| kept.run.load == most)
            .collect();
        writeln!(
            text,
            "{database}, {most}: means by type\n\n{}",
            by_type(&at_most)
        )
        .ok();
    }
    Ok(text)
}

fn by_load(all: &[&Kept]) -> Table {
    let mut table = Table::new(&[
        "load",
        "door",
        "per minute",
        "finished, mean",
        "all, mean",
        "failed",
        "database",
        "shop",
    ]);
    for (load, door) in groups(all) {
        let group: Vec<&Kept> = all
            .iter()
            .copied()
            .filter(|kept| (kept.run.load, kept.run.door.to_string()) == (load, door.clone()))
            .collect();
        let over = |of: &dyn Fn(&Kept) -> Option<f64>| {
            Estimate::of(&group.iter().filter_map(|kept| of(kept)).collect::<Vec<_>>())
        };
        let all_of = |kept: &Kept| kept.summary.all.clone();
        let failed: usize = group
            .iter()
            .filter_map(|kept| Some(all_of(kept)?.failed))
            .sum();
        let share = |of: &dyn Fn(&Kept) -> f64| {
            over(&|kept| Some(of(kept)))
                .map_or_else(String::new, |of| format!("{:.0} %", 100.0 * of.mean))
        };
        table.row(vec![
            load.to_string(),
            door.clone(),
            with_interval(
                over(&|kept| Some(kept.summary.throughput_per_min)),
                three_digits,
            ),
            with_interval(over(&|kept| all_of(kept)?.mean_finished_s), time),
            with_interval(over(&|kept| Some(all_of(kept)?.mean_s.mean)), time),
            failed.to_string(),
            share(&|kept| kept.database_cpu_share),
            share(&|kept| kept.own_cpu_share),
        ]);
    }
    table
}

fn by_type(all: &[&Kept]) -> Table {
    let doors: Vec<Door> = {
        let mut doors = Vec::new();
        for kept in all {
            if !doors.contains(&kept.run.door) {
                doors.push(kept.run.door);
            }
        }
        doors
    };
    let mut head = vec!["interaction".to_owned()];
    head.extend(doors.iter().map(ToString::to_string));
    let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    for interaction in Interaction::ALL {
        let mut row = vec![interaction.to_string()];
        for door in &doors {
            let means: Vec<f64> = all
                .iter()
                .filter(|kept| kept.run.door == *door)
                .filter_map(|kept| Some(kept.summary.types.get(&interaction)?.mean_s.mean))
                .collect();
            row.push(with_interval(Estimate::of(&means), time));
        }
        table.row(row);
    }
    table
}

/// Loads and doors, each once, in the order of loads.
fn groups(all: &[&Kept]) -> BTreeSet<(Load, String)> {
    let group = |kept: &&Kept| (kept.run.load, kept.run.door.to_string());
    all.iter().map(group).collect()
}

fn with_interval(estimate: Option<Estimate>, write: fn(f64) -> String) -> String {
    match estimate {
        None => "-".to_owned(),
        Some(Estimate {
            mean,
            half_width_90: None,
        }) => write(mean),
        Some(Estimate {
            mean,
            half_width_90: Some(half),
        }) => format!("{} +- {}", write(mean), write(half)),
    }
}
