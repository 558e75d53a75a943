//! The reports on a database in words and tables: those for whom it changes first.

use std::fmt::Write;

use shortline_table::{Table, percent, three_digits};

use super::busiest::{DatabaseGain, FIFO, FOUND, Kind, ORDERS, OURS};
use super::mix::{Mix, MixLoad};
use crate::gain::{Basis, FULL_SHARE};
use crate::waits::Waits;
use crate::words::{moment, thousands, time};

/// The most types in a table.
const KINDS_SHOWN: usize = 15;
/// The most hours in a table, the busiest.
const HOURS_SHOWN: usize = 12;
/// The most types in a sentence.
const KINDS_TOLD: usize = 3;
/// A mean this many times shorter than as found is worth a change.
const WORTH: f64 = 1.2;
/// A type that takes this many times as long as found waits longer.
const LONGER: f64 = 1.05;
/// If it is also this much longer, in seconds: nobody notices less.
const NOTICED_S: f64 = 0.001;

pub(super) const EXPLANATION: &str = "\
As found is the log itself. FIFO is a gate that admits as many statements as there are processors, first come first served.
Shortline is its gate with all defaults, which finds out how much to admit and what each type takes. What a statement needs is
taken from the log: of n under way on k processors each has k/n of one. Waits for locks and disks count as work. A statement comes
when it came in the log, however early answers come: a client that asks one thing after the other would ask the next one sooner.";

pub(super) const MIX_EXPLANATION: &str = "\
pg_stat_statements says what statements need, and not when they came. So it cannot tell whether any waited for another, when, and
how long. The table is what theory expects of such statements at one processor, if they come at random (M/G/1). With several
processors all waits are shorter. A log of the busiest hour with log_min_duration_statement = 0 tells the rest.";

impl DatabaseGain {
    /// The report as text.
    pub fn words(&self) -> String {
        let mut text = String::new();
        for line in self.heading().iter().chain(&self.notes) {
            let _ = writeln!(text, "{line}");
        }
        for sentence in self.verdict() {
            let _ = write!(text, "\n{sentence}\n");
        }
        let _ = write!(
            text,
            "\n{}\n\n{}\n{}\n\n{}\n{EXPLANATION}\n",
            self.kinds_title(),
            self.kinds_table(),
            self.hours_title(),
            self.hours_table()
        );
        text
    }

    pub(super) fn heading(&self) -> [String; 2] {
        let logs = match &self.logs[..] {
            [one] => one.clone(),
            logs => format!("{} logs", logs.len()),
        };
        let about = format!(
            "{logs}: {} of {}, {} to {} UTC",
            counted(self.statements, "statement"),
            counted(self.kinds_count as u64, "type"),
            moment(self.from_unix_s),
            moment(self.to_unix_s),
        );
        let processors = counted(self.processors.into(), "processor");
        let database = match self.processors_from {
            Basis::Stated => format!("Database: {processors}."),
            Basis::BusiestHour => format!(
                "Database: {processors}, which the busiest hour ({} UTC) would just keep busy; --processors N if you know it. With more \
                 less is gained.",
                moment(self.busiest_unix_s)
            ),
        };
        [about, database]
    }

    /// Whether it is worth it, and what it costs whom.
    pub(super) fn verdict(&self) -> Vec<String> {
        let hour = format!("the busiest hour ({} UTC)", moment(self.busiest_unix_s));
        if self.is_never_full() {
            return vec![format!(
                "Nothing to gain: in {hour} the database was full, with more statements under way than processors, for {} of {}. There \
                 was hardly a queue that another order could change.",
                time(self.full_s),
                time(self.covered_s)
            )];
        }
        let opening = if self.waits[FOUND].mean_s >= WORTH * self.waits[OURS].mean_s {
            "Worth it"
        } else if self.waits[OURS].mean_s <= LONGER * self.waits[FOUND].mean_s {
            "Little to gain"
        } else {
            "Not worth it"
        };
        let mut told = vec![format!(
            "{opening}: in {hour} the database was full for {} of {}. A statement has its answer after {} in the mean, instead of {} as \
             found, and {} first come first served.",
            time(self.full_s),
            time(self.covered_s),
            time(self.waits[OURS].mean_s),
            time(self.waits[FOUND].mean_s),
            time(self.waits[FIFO].mean_s),
        )];
        let is_longer =
            |long_s: f64, short_s: f64| long_s > LONGER * short_s && long_s - short_s > NOTICED_S;
        told.extend(self.told_kinds("Most is gained by", |kind| {
            let gains = is_longer(kind.waits[FOUND].mean_s, kind.waits[OURS].mean_s);
            if gains { saved_s(kind) } else { 0.0 }
        }));
        let longer = self.told_kinds("Longer wait", |kind| {
            let loses = is_longer(kind.waits[OURS].mean_s, kind.waits[FOUND].mean_s);
            if loses { -saved_s(kind) } else { 0.0 }
        });
        told.push(longer.unwrap_or_else(|| "No type of statement waits longer.".to_owned()));
        told
    }

    /// Whether there was hardly a queue.
    fn is_never_full(&self) -> bool {
        self.full_s < FULL_SHARE * self.covered_s
    }

    /// The result in a line, as the page's title.
    pub(super) fn title(&self) -> String {
        match self.is_never_full() {
            true => "Nothing to gain: the database was never full for long".to_owned(),
            false => format!(
                "A statement has its answer after {} instead of {}",
                time(self.waits[OURS].mean_s),
                time(self.waits[FOUND].mean_s)
            ),
        }
    }

    /// The busiest hour in a line, as the drawing's title.
    pub(super) fn under_way_told(&self) -> String {
        let hours = self.hours.iter().map(|hour| hour.under_way);
        format!(
            "Up to {} under way in the mean of an hour, on {}",
            three_digits(hours.fold(0.0, f64::max)),
            counted(self.processors.into(), "processor")
        )
    }

    /// The types with most of something, if any has it.
    fn told_kinds(&self, opening: &str, of: impl Fn(&Kind) -> f64) -> Option<String> {
        let mut kinds: Vec<(&Kind, f64)> = self.kinds.iter().map(|kind| (kind, of(kind))).collect();
        kinds.retain(|(_, much)| *much > 0.0);
        kinds.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let told = kinds.iter().take(KINDS_TOLD).map(|(kind, _)| {
            format!(
                "{} ({}): {} instead of {}",
                kind.name,
                thousands(kind.statements),
                time(kind.waits[OURS].mean_s),
                time(kind.waits[FOUND].mean_s)
            )
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("{opening}: {}.", told.join("; ")))
    }

    pub(super) fn kinds_title(&self) -> String {
        let shown = match self.kinds.len() {
            all if all > KINDS_SHOWN => {
                format!(" (the {KINDS_SHOWN} of {all} types with most work)")
            }
            _ => String::new(),
        };
        format!(
            "From a statement to its answer in that hour{shown}, means and 99th percentiles; at most {} were under way at once, and the \
             load was {}:",
            thousands(self.under_way_max.into()),
            percent(self.load)
        )
    }

    pub(super) fn kinds_table(&self) -> Table {
        let mut head = vec!["type", "statements", "of the work"];
        head.extend(ORDERS.iter().flat_map(|order| [*order, "99 %"]));
        let mut table = Table::new(&head);
        let mut row = |name: &str, statements, share, waits: &[Waits; 3]| {
            let mut cells = vec![name.to_owned(), thousands(statements), percent(share)];
            cells.extend(
                waits
                    .iter()
                    .flat_map(|waits| [time(waits.mean_s), time(waits.p99_s)]),
            );
            table.row(cells);
        };
        for kind in self.kinds.iter().take(KINDS_SHOWN) {
            row(&kind.name, kind.statements, kind.work_share, &kind.waits);
        }
        row("all", self.busiest_statements, 1.0, &self.waits);
        table
    }

    pub(super) fn hours_title(&self) -> String {
        let shown = if self.hours.len() > HOURS_SHOWN {
            format!(" (the {HOURS_SHOWN} busiest of {})", self.hours.len())
        } else {
            String::new()
        };
        format!("Hours{shown}:")
    }

    pub(super) fn hours_table(&self) -> Table {
        let mut hours: Vec<_> = self.hours.iter().collect();
        hours.sort_by(|one, other| other.under_way.total_cmp(&one.under_way));
        hours.truncate(HOURS_SHOWN);
        hours.sort_by_key(|hour| hour.begin_unix_s);
        let mut table = Table::new(&["hour (UTC)", "statements", "under way in the mean"]);
        for hour in hours {
            table.row(vec![
                moment(hour.begin_unix_s),
                thousands(hour.statements),
                three_digits(hour.under_way),
            ]);
        }
        table
    }
}

/// `1 type`, `2 types`.
fn counted(count: u64, what: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{} {what}{end}", thousands(count))
}

/// What all of a type gain together.
fn saved_s(kind: &Kind) -> f64 {
    kind.statements as f64 * (kind.waits[FOUND].mean_s - kind.waits[OURS].mean_s)
}

impl Mix {
    /// The report as text.
    pub fn words(&self) -> String {
        let mut text = format!("{}\n", self.about());
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        let _ = write!(
            text,
            "\n{}\n\n{}\nTypes:\n\n{}\n{MIX_EXPLANATION}\n",
            self.verdict(),
            self.loads_table(),
            self.kinds_table()
        );
        text
    }

    pub(super) fn about(&self) -> String {
        format!(
            "{}: {} of {}, which took {}",
            self.name,
            counted(self.calls, "call"),
            counted(self.kinds.len() as u64, "type"),
            time(self.work_s)
        )
    }

    /// The result in a line, as the page's title.
    pub(super) fn title(&self) -> String {
        match self.busy() {
            Some(busy) => format!(
                "{} busy, a statement would have its answer after {} instead of {}",
                percent(busy.load),
                time(busy.shortline_s),
                time(busy.shared_s)
            ),
            None => "Nothing to gain: there are no statements".to_owned(),
        }
    }

    /// What is expected where a database is busy.
    fn busy(&self) -> Option<&MixLoad> {
        let mut loads = self.loads.iter();
        loads.find(|at| at.load >= 0.9).or(self.loads.last())
    }

    pub(super) fn verdict(&self) -> String {
        let Some(busy) = self.busy() else {
            return String::new();
        };
        let best_s = busy.fifo_s.min(busy.shared_s);
        let opening = if best_s >= WORTH * busy.shortline_s {
            "Worth a closer look if the database is ever full"
        } else {
            "Little to gain even when the database is full"
        };
        let constant = if self.has_deviations {
            ""
        } else {
            " Without stddev_exec_time each type is taken as constant, so that this says too much."
        };
        format!(
            "{opening}: if it works {} of the time, a statement would have its answer after {} in the mean, instead of {} while all share \
             the processor.{constant}",
            percent(busy.load),
            time(busy.shortline_s),
            time(busy.shared_s)
        )
    }

    pub(super) fn loads_table(&self) -> Table {
        let mut table = Table::new(&["busy", "all share", "FIFO", "Shortline"]);
        for at in &self.loads {
            table.row(vec![
                percent(at.load),
                time(at.shared_s),
                time(at.fifo_s),
                time(at.shortline_s),
            ]);
        }
        table
    }

    pub(super) fn kinds_table(&self) -> Table {
        let mut table = Table::new(&["type", "calls", "of the work", "mean", "deviation"]);
        for kind in self.kinds.iter().take(KINDS_SHOWN) {
            let variance = (kind.square_s2 - kind.mean_s * kind.mean_s).max(0.0);
            table.row(vec![
                kind.name.clone(),
                thousands(kind.calls),
                percent(kind.calls as f64 * kind.mean_s / self.work_s.max(1e-9)),
                time(kind.mean_s),
                time(variance.sqrt()),
            ]);
        }
        table
    }
}
