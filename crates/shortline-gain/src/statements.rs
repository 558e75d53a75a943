//! What another order would have given whoever asks a database, from its own logs.
//!
//! ```text
//! logs -> statements with their durations -> types, as the gate tells them apart -> the busiest hour
//!      -> what each needs -> waits by type: as found, first come first served, behind the gate
//! ```
//!
//! [`Statements::read`] reads logs, [`Statements::gain`] computes. [`Mix`] is what can be said from `pg_stat_statements`, which
//! knows no times.
//!
//! Limits: [`KEPT_MAX`] statements in memory, of the busiest hours; all are counted. [`KINDS_MAX`] types, as in the gate.

mod busiest;
mod csv;
pub(crate) mod entry;
mod json;
mod mix;
mod moment;
mod page;
mod slow;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use shortline_gate::classify::{Classifier, ClassifierConfig, Client, Dialect, OTHER, Protocol};
use shortline_load::trace::LogInput;

use crate::GainError;
use crate::past::Reading;
pub use busiest::{DatabaseGain, DatabaseHour, Kind};
use entry::{Entry, LINE_BYTES_MAX, Reader};
pub use mix::{Mix, MixKind, MixLoad};

/// The most statements in memory, 16 bytes each. Beyond that those of the hours with least work are forgotten.
pub const KEPT_MAX: usize = 2_000_000;
/// The most types; the others are one. As the gate's `types-max`.
pub const KINDS_MAX: usize = 1_000;
/// How much of a log tells what it is.
const HEAD_BYTES: u64 = 64 << 10;
const US_PER_S: u64 = 1_000_000;
const S_PER_HOUR: u64 = 3_600;
/// How many lines are read between two calls of `progress`.
const TOLD_EVERY: u64 = 1 << 14;
const GOLDEN_FRACTION: f64 = 0.618_033_988_749_894_9;

/// What a log is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Of a web server, or nothing that is known.
    Responses,
    /// Of a database.
    Statements,
    /// Rows of `pg_stat_statements`.
    Mix,
}

impl Content {
    /// By its beginning.
    pub fn of(input: &mut LogInput) -> Self {
        let head = input.head(HEAD_BYTES);
        if Mix::begins(&head) {
            return Self::Mix;
        }
        let mut reader = Reader::default();
        let mut count = 0u64;
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            reader.line(line, &mut |_| count += 1);
        }
        reader.end(&mut |_| count += 1);
        // A line of an access log may look like a message of a database, because a client wrote part of it.
        let known = count + reader.passed.left_out.values().sum::<u64>();
        if known > reader.passed.bad {
            Self::Statements
        } else {
            Self::Responses
        }
    }
}

/// What the logs hold.
pub struct Statements {
    names: Vec<PathBuf>,
    kinds: Kinds,
    hours: BTreeMap<u64, HourSum>,
    kept: BTreeMap<u64, Vec<Kept>>,
    kept_count: usize,
    notes: Vec<String>,
    from_us: u64,
    to_us: u64,
    /// Of those that are not exact to less than a second.
    whole: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct HourSum {
    statements: u64,
    busy_us: u64,
    /// Some of its statements are forgotten.
    is_incomplete: bool,
}

/// A statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    begin_us: u64,
    duration_us: u32,
    kind: u16,
}

impl Statements {
    /// Reads all of them. A log that ends with a fault counts as far as it goes.
    ///
    /// # Errors
    /// There is no statement with its duration in any of them.
    pub fn read(
        inputs: Vec<LogInput>,
        mut progress: impl FnMut(Reading),
    ) -> Result<Self, GainError> {
        let mut all = Self {
            names: inputs.iter().map(|input| input.name().to_owned()).collect(),
            kinds: Kinds::new(),
            hours: BTreeMap::new(),
            kept: BTreeMap::new(),
            kept_count: 0,
            notes: Vec::new(),
            from_us: u64::MAX,
            to_us: 0,
            whole: 0,
        };
        for (log, mut input) in inputs.into_iter().enumerate() {
            all.read_log(&mut input, |read_bytes, responses| {
                progress(Reading {
                    log,
                    read_bytes,
                    responses,
                });
            });
        }
        if all.hours.is_empty() {
            return Err(GainError::NoStatement {
                first_bad: all.notes.into_iter().next(),
            });
        }
        if all.hours.values().any(|hour| hour.is_incomplete) {
            all.notes.push(format!(
                "{KEPT_MAX} statements are kept at most: others, those of the quieter hours first, are only counted"
            ));
        }
        Ok(all)
    }

    /// How many statements there are.
    pub fn count(&self) -> u64 {
        self.hours.values().map(|hour| hour.statements).sum()
    }

    fn read_log(&mut self, input: &mut LogInput, mut progress: impl FnMut(u64, u64)) {
        let mut reader = Reader::default();
        let mut line = Vec::new();
        let name = input.name().display().to_string();
        for number in 1.. {
            match input.next_line(&mut line, LINE_BYTES_MAX) {
                Ok(true) => reader.line(&line, &mut |entry| self.keep(&entry)),
                Ok(false) => break,
                Err(fault) => {
                    self.notes
                        .push(format!("{fault}; it counts as far as that"));
                    break;
                }
            }
            if number % TOLD_EVERY == 0 {
                progress(input.read_bytes(), self.count());
            }
        }
        reader.end(&mut |entry| self.keep(&entry));
        progress(input.read_bytes(), self.count());
        let told = reader.passed.told();
        self.notes
            .extend(told.iter().map(|line| format!("{name}: {line}")));
    }

    fn keep(&mut self, entry: &Entry) {
        let duration_us = (entry.duration_ms * 1e3)
            .round()
            .clamp(1.0, u32::MAX.into()) as u32;
        // Those of one second are spread over it.
        let spread_us = if entry.end.is_whole {
            self.whole += 1;
            (self.whole as f64 * GOLDEN_FRACTION).fract() * US_PER_S as f64
        } else {
            0.0
        };
        let end_us = entry.end.unix_us + spread_us as u64;
        let kept = Kept {
            begin_us: end_us.saturating_sub(duration_us.into()),
            duration_us,
            kind: self.kinds.of(entry),
        };
        let hour = kept.begin_us / US_PER_S / S_PER_HOUR;
        let sum = self.hours.entry(hour).or_default();
        sum.statements += 1;
        sum.busy_us += u64::from(duration_us);
        self.from_us = self.from_us.min(kept.begin_us);
        self.to_us = self.to_us.max(end_us);
        if sum.is_incomplete {
            return;
        }
        self.kept.entry(hour).or_default().push(kept);
        self.kept_count += 1;
        if self.kept_count > KEPT_MAX {
            self.forget(hour);
        }
    }

    /// Forgets the statements of all hours but the busiest and the one that is read; then of the quieter of these. Of one hour
    /// alone the beginning stays.
    fn forget(&mut self, current: u64) {
        let work = |hour: &u64| self.hours.get(hour).map_or(0, |sum| sum.busy_us);
        let others = self.kept.keys().copied().filter(|hour| *hour != current);
        let busiest = others.max_by_key(work);
        let forgotten: Vec<u64> = match (self.kept.len(), busiest) {
            (_, None) => {
                self.hours.entry(current).or_default().is_incomplete = true;
                return;
            }
            (2, Some(other)) if work(&other) < work(&current) => vec![other],
            (2, Some(_)) => vec![current],
            (_, Some(busiest)) => {
                let all = self.kept.keys().copied();
                all.filter(|hour| ![current, busiest].contains(hour))
                    .collect()
            }
        };
        for hour in forgotten {
            self.kept_count -= self.kept.remove(&hour).map_or(0, |gone| gone.len());
            self.hours.entry(hour).or_default().is_incomplete = true;
        }
    }
}

/// The types, as the gate names them.
struct Kinds {
    postgres: Classifier,
    mysql: Classifier,
    names: Vec<String>,
    by_name: HashMap<String, u16>,
    /// Whether some share the first.
    has_other: bool,
}

impl Kinds {
    fn count(&self) -> usize {
        self.names.len() - usize::from(!self.has_other)
    }

    fn new() -> Self {
        let of = |dialect| {
            let classifier = Classifier::new(&ClassifierConfig::new(Protocol::Sql(dialect)));
            classifier.expect("invariant: no rules cannot be wrong")
        };
        Self {
            postgres: of(Dialect::Postgres),
            mysql: of(Dialect::MySql),
            names: vec![OTHER.to_owned()],
            by_name: HashMap::from([(OTHER.to_owned(), 0)]),
            has_other: false,
        }
    }

    fn of(&mut self, entry: &Entry) -> u16 {
        let classifier = match entry.dialect {
            Dialect::Postgres => &self.postgres,
            Dialect::MySql => &self.mysql,
        };
        let class = classifier.statement(&entry.text, &Client::default());
        if let Some(kind) = self.by_name.get(&*class.name) {
            self.has_other |= *kind == 0;
            return *kind;
        }
        if self.names.len() > KINDS_MAX {
            self.has_other = true;
            return 0;
        }
        let kind = self.names.len() as u16;
        self.names.push(class.name.to_string());
        self.by_name.insert(class.name.to_string(), kind);
        kind
    }
}

#[cfg(test)]
mod tests;
