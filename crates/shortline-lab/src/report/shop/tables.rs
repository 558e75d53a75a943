//! The tables of an experiment's runs, each with its caption: for the text report and for the page.

use shortline_bookstore::Interaction;
use shortline_bookstore::browser::Estimate;

use crate::study::shop::figures::{self, Figures};
use crate::study::shop::{Door, Load, Outcome};
use shortline_table::{Table, three_digits, time};

/// A table with its caption.
pub struct Captioned {
    /// The caption above it.
    pub caption: String,
    /// The head, then the rows.
    pub rows: Vec<Vec<String>>,
}

/// Everything as text.
pub fn text(all: &[Outcome]) -> String {
    let mut text = String::from(
        "bookstore: means with 90 % intervals over seeds where there are several; finished: the count \
         of 002, all: also those that failed, with the time until they did, and those under way at the \
         end, with the time they had had\n",
    );
    for set in Figures::by_database(all) {
        for captioned in of_database(&set) {
            text += &format!("\n{}\n\n{}", captioned.caption, captioned.plain());
        }
    }
    text
}

/// The tables of a database.
pub fn of_database(set: &Figures<'_>) -> Vec<Captioned> {
    let mut tables = vec![by_load(set), counters(set)];
    if let Some(load) = set.most().or_else(|| set.loads().into_iter().next_back()) {
        tables.push(by_type(set, load));
        tables.push(failures(set, load));
        tables.push(breakdown(set, load));
    }
    for load in set.loads().into_iter().filter(|load| load.is_open()) {
        tables.push(by_type(set, load));
        tables.push(breakdown(set, load));
    }
    tables.extend(executions(set));
    tables.extend(changes(set));
    tables.retain(|table| table.rows.len() > 1);
    tables
}

impl Captioned {
    fn new(caption: String, head: Vec<String>) -> Self {
        Self {
            caption,
            rows: vec![head],
        }
    }

    fn plain(&self) -> Table {
        let head: Vec<&str> = self.rows[0].iter().map(String::as_str).collect();
        let mut table = Table::new(&head);
        for row in &self.rows[1..] {
            table.row(row.clone());
        }
        table
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// Throughput and response time by load and door (Figs. 5 to 10, 14, 15).
fn by_load(set: &Figures<'_>) -> Captioned {
    let head = words(&[
        "load",
        "door",
        "a minute",
        "finished, mean",
        "all, mean",
        "all, p99",
        "failed",
        "database",
        "others",
        "runs",
    ]);
    let caption = format!(
        "{}: finished interactions a minute, response times, use of the processors",
        set.database
    );
    let mut table = Captioned::new(caption, head);
    for load in set.loads() {
        for door in set.doors(Some(load)) {
            let figure = |of: fn(&Outcome) -> Option<f64>| set.estimate(door, load, of);
            let share = |of: fn(&Outcome) -> Option<f64>| {
                figure(of).map_or_else(String::new, |of| format!("{:.0} %", 100.0 * of.mean))
            };
            table.rows.push(vec![
                load.to_string(),
                door.to_string(),
                with_interval(figure(figures::throughput), three_digits),
                with_interval(figure(figures::finished_s), time),
                with_interval(figure(figures::all_s), time),
                with_interval(figure(|run| Some(run.summary.all.as_ref()?.p99_s)), time),
                share(|run| {
                    let all = run.summary.all.as_ref()?;
                    Some(all.failed as f64 / all.count as f64)
                }),
                share(|run| Some(run.counters.database_share())),
                share(|run| Some(run.counters.others_share)),
                set.runs(door, load).count().to_string(),
            ]);
        }
    }
    table
}

/// 002's Table 2 at each load.
fn counters(set: &Figures<'_>) -> Captioned {
    let head = words(&[
        "load",
        "door",
        "user",
        "system",
        "memory MB",
        "free MB",
        "disk/s",
        "Mbit/s",
        "processes",
        "of all",
        "switches/s",
        "interrupts/s",
    ]);
    let caption = format!(
        "{}: what was used (Table 2); user, system, memory and processes are the database's",
        set.database
    );
    let mut table = Captioned::new(caption, head);
    for load in set.loads() {
        for door in set.doors(Some(load)) {
            let of = |figure: fn(&Outcome) -> f64| {
                let mean = set.mean(door, load, |run| Some(figure(run)));
                mean.map_or_else(String::new, three_digits)
            };
            let share = |figure: fn(&Outcome) -> f64| {
                let mean = set.mean(door, load, |run| Some(100.0 * figure(run)));
                mean.map_or_else(String::new, |mean| format!("{mean:.0} %"))
            };
            table.rows.push(vec![
                load.to_string(),
                door.to_string(),
                share(|run| run.counters.database_user_share),
                share(|run| run.counters.database_system_share),
                of(|run| run.counters.database_memory_mb),
                of(|run| run.counters.free_memory_mb),
                of(|run| run.counters.transfers_per_s),
                of(|run| run.counters.network_mbit_per_s),
                of(|run| run.counters.database_processes as f64),
                of(|run| run.counters.processes as f64),
                of(|run| run.counters.context_switches_per_s),
                of(|run| run.counters.interrupts_per_s),
            ]);
        }
    }
    table
}

/// Mean response times of all interactions, by type.
fn by_type(set: &Figures<'_>, load: Load) -> Captioned {
    let caption = format!(
        "{}, {load}: mean response time of all by type",
        set.database
    );
    per_type(set, load, caption, |door, interaction| {
        let of = |run: &Outcome| Some(figures::seen(run, interaction)?.mean_s.mean);
        with_interval(set.estimate(door, load, of), time)
    })
}

/// The numbers of interactions that failed or were under way at the end, and of all.
fn failures(set: &Figures<'_>, load: Load) -> Captioned {
    let caption = format!(
        "{}, {load}: failed and (under way at the end), of all, by type, of all runs",
        set.database
    );
    per_type(set, load, caption, |door, interaction| {
        let (mut failed, mut unfinished, mut count) = (0, 0, 0);
        for run in set.runs(door, load) {
            if let Some(seen) = figures::seen(run, interaction) {
                failed += seen.failed;
                unfinished += seen.unfinished;
                count += seen.count;
            }
        }
        format!("{failed} ({unfinished}) of {count}")
    })
}

/// Waiting in the gate and execution, by type (Figs. 11 to 13).
fn breakdown(set: &Figures<'_>, load: Load) -> Captioned {
    let caption = format!(
        "{}, {load}: mean wait in the gate + mean execution by type",
        set.database
    );
    per_type(set, load, caption, |door, interaction| {
        let wait = set.mean(door, load, |run| figures::wait_s(run, interaction));
        let service = set.mean(door, load, |run| figures::service_s(run, interaction));
        let or_unknown = |mean: Option<f64>| mean.map_or_else(|| "?".to_owned(), time);
        match (wait, service) {
            (None, None) => "-".into(),
            (wait, service) => format!("{} + {}", or_unknown(wait), or_unknown(service)),
        }
    })
}

fn per_type(
    set: &Figures<'_>,
    load: Load,
    caption: String,
    cell: impl Fn(Door, Interaction) -> String,
) -> Captioned {
    let doors = set.doors(Some(load));
    let mut head = vec!["interaction".to_owned()];
    head.extend(doors.iter().map(ToString::to_string));
    let mut table = Captioned::new(caption, head);
    for interaction in Interaction::ALL {
        let mut row = vec![interaction.to_string()];
        row.extend(doors.iter().map(|door| cell(*door, interaction)));
        table.rows.push(row);
    }
    table
}

/// 002's Table 1: the times of interactions alone and at a load, their frequency, and when the gate's
/// estimate had converged.
fn executions(set: &Figures<'_>) -> Option<Captioned> {
    let without_gate = |load: &Load| set.runs(Door::None, *load).next().is_some();
    let busy = |load: &Load| load.browsers().is_some() && without_gate(load);
    let busy = set.loads().into_iter().rfind(busy)?;
    set.runs(Door::None, Load::Alone).next()?;
    let caption = format!(
        "{}: mean execution alone and with {busy} (Table 1), and after how long the gate's estimate \
         was right (002 3.1)",
        set.database
    );
    let head = words(&[
        "interaction",
        "alone",
        "busy",
        "fifo",
        "share",
        "right after",
    ]);
    let mut table = Captioned::new(caption, head);
    for interaction in Interaction::ALL {
        let service = |door, load| {
            let mean = set.mean(door, load, |run| figures::service_s(run, interaction));
            mean.map_or_else(|| "-".into(), time)
        };
        let share = set.mean(Door::None, busy, |run| {
            let all = run.summary.all.as_ref()?.count as f64;
            Some(100.0 * figures::seen(run, interaction)?.count as f64 / all)
        });
        let right = set.mean(Door::FIFO, busy, |run| {
            *run.gate.as_ref()?.converged_s.get(interaction.name())?
        });
        table.rows.push(vec![
            interaction.to_string(),
            service(Door::None, Load::Alone),
            service(Door::None, busy),
            service(Door::FIFO, busy),
            share.map_or_else(String::new, |share| format!("{share:.2} %")),
            right.map_or_else(|| "-".into(), |right| format!("{right:.1} s")),
        ]);
    }
    Some(table)
}

/// The throughput after a change.
fn changes(set: &Figures<'_>) -> Option<Captioned> {
    let caption = format!(
        "{}: a change half way; finished interactions a second in the last third after it, and after \
         how long that was reached",
        set.database
    );
    let mut table = Captioned::new(
        caption,
        words(&["load", "door", "a second", "settled after"]),
    );
    for load in set.loads().into_iter().filter(|load| load.changes()) {
        for door in set.doors(Some(load)) {
            let level = set.estimate(door, load, figures::level_after_change);
            let settled = set.estimate(door, load, figures::settled_s);
            table.rows.push(vec![
                load.to_string(),
                door.to_string(),
                with_interval(level, three_digits),
                with_interval(settled, |seconds| format!("{seconds:.0} s")),
            ]);
        }
    }
    Some(table)
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
        }) => format!("{} ± {}", write(mean), write(half)),
    }
}
