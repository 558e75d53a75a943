//! What can be said from `pg_stat_statements`, which knows what statements need and not when they came.
//!
//! If requests arrive at random (Poisson) at a load of rho at one processor, with mean service E S and second moment E S^2, the
//! mean response times are (Kleinrock, Queueing Systems 2, 1976, 3.6 and 4.4; Cobham 1954):
//!
//! ```text
//! first come first served   E S + W0 / (1 - rho)              W0 = lambda E S^2 / 2
//! processor sharing         E S / (1 - rho)
//! shortest type first       E S + sum of p_i W0 / ((1 - sigma_i-1) (1 - sigma_i)),   sigma_i the load of types 1 to i
//! ```
//!
//! Types are the gate's. Departure: it takes a processor as one server. With several, waits are shorter in all three.

use std::collections::HashMap;

use serde::Serialize;
use shortline_gate::classify::{Dialect, Tagged, fingerprint};
use shortline_load::trace::LogInput;

use super::csv;
use super::entry::LINE_BYTES_MAX;
use crate::GainError;

/// The loads that are told.
const LOADS: [f64; 5] = [0.5, 0.7, 0.8, 0.9, 0.95];
/// The most bytes of a row of several lines.
const ROW_BYTES_MAX: usize = 1 << 20;
/// More are no number of calls.
const CALLS_MAX: f64 = 1e14;
/// The most types.
const KINDS_MAX: usize = 20_000;

/// What the rows come to.
#[derive(Clone, Debug, Serialize)]
pub struct Mix {
    /// The file.
    pub name: String,
    /// The types, those with most work first.
    pub kinds: Vec<MixKind>,
    /// Calls of all.
    pub calls: u64,
    /// What all of them took, in seconds.
    pub work_s: f64,
    /// Whether the rows have deviations. Without, each type is taken as constant, so that gains are larger than they would be.
    pub has_deviations: bool,
    /// Mean response times by load.
    pub loads: Vec<MixLoad>,
    /// What could not be read, a line each.
    pub notes: Vec<String>,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixKind {
    /// The statement without its constants.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// What it takes in the mean, in seconds.
    pub mean_s: f64,
    /// The second moment of that.
    pub square_s2: f64,
}

/// The mean response times at a load, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MixLoad {
    /// The part of the time in which the database works.
    pub load: f64,
    /// First come first served.
    pub fifo_s: f64,
    /// Processor sharing: a database without a gate.
    pub shared_s: f64,
    /// Shortest type first, as the gate does.
    pub shortline_s: f64,
}

/// The places of the columns that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Columns {
    query: usize,
    calls: usize,
    mean: Option<usize>,
    total: Option<usize>,
    deviation: Option<usize>,
    is_aligned: bool,
}

impl Mix {
    /// Whether a file begins with the columns of `pg_stat_statements`.
    pub(super) fn begins(head: &[u8]) -> bool {
        let mut lines = head.split(|byte| *byte == b'\n');
        lines
            .find(|line| !line.trim_ascii().is_empty())
            .is_some_and(|line| Columns::of(line).is_some())
    }

    /// Reads the rows, as CSV or as `psql` shows them.
    ///
    /// # Errors
    /// It cannot be read, or has no row.
    pub fn read(mut input: LogInput) -> Result<Self, GainError> {
        let mut reading = Reading::default();
        let mut line = Vec::new();
        while input.next_line(&mut line, LINE_BYTES_MAX)? {
            reading.line(line.trim_ascii_end());
        }
        reading.end();
        let name = input.name().display().to_string();
        let mut kinds: Vec<MixKind> = reading.kinds.into_values().collect();
        let work = |kind: &MixKind| kind.calls as f64 * kind.mean_s;
        kinds.sort_by(|one, other| {
            work(other)
                .total_cmp(&work(one))
                .then_with(|| one.name.cmp(&other.name))
        });
        if kinds.is_empty() {
            return Err(GainError::NoRow { name });
        }
        let notes = (reading.bad > 0).then(|| {
            format!(
                "{name}: {} rows could not be read: want calls and times as numbers",
                reading.bad
            )
        });
        Ok(Self {
            calls: kinds.iter().map(|kind| kind.calls).sum(),
            work_s: kinds.iter().map(work).sum(),
            has_deviations: reading
                .columns
                .is_some_and(|columns| columns.deviation.is_some()),
            loads: LOADS.map(|load| at_load(&kinds, load)).to_vec(),
            kinds,
            name,
            notes: notes.into_iter().collect(),
        })
    }
}

fn at_load(kinds: &[MixKind], load: f64) -> MixLoad {
    let calls: f64 = kinds.iter().map(|kind| kind.calls as f64).sum();
    let share = |kind: &MixKind| kind.calls as f64 / calls;
    let mean_s: f64 = kinds.iter().map(|kind| share(kind) * kind.mean_s).sum();
    let square_s2: f64 = kinds.iter().map(|kind| share(kind) * kind.square_s2).sum();
    let per_s = load / mean_s.max(1e-12);
    let left_s = per_s * square_s2 / 2.0;
    let mut shortest: Vec<&MixKind> = kinds.iter().collect();
    shortest.sort_by(|one, other| one.mean_s.total_cmp(&other.mean_s));
    let (mut before, mut wait_s) = (0.0, 0.0);
    for kind in shortest {
        let after = before + per_s * share(kind) * kind.mean_s;
        wait_s += share(kind) * left_s / ((1.0 - before) * (1.0 - after));
        before = after;
    }
    MixLoad {
        load,
        fifo_s: mean_s + left_s / (1.0 - load),
        shared_s: mean_s / (1.0 - load),
        shortline_s: mean_s + wait_s,
    }
}

#[derive(Default)]
struct Reading {
    columns: Option<Columns>,
    /// A row whose end has not come.
    row: Vec<u8>,
    /// The query so far of a row that psql shows on several lines.
    cells: Option<Vec<Vec<u8>>>,
    kinds: HashMap<String, MixKind>,
    bad: u64,
}

impl Reading {
    fn line(&mut self, line: &[u8]) {
        let Some(columns) = self.columns else {
            self.columns = Columns::of(line);
            return;
        };
        if columns.is_aligned {
            self.aligned(line, columns);
            return;
        }
        if !self.row.is_empty() {
            self.row.push(b'\n');
        }
        self.row.extend_from_slice(line);
        let is_open = self.row.iter().filter(|byte| **byte == b'"').count() % 2 == 1;
        if is_open && self.row.len() < ROW_BYTES_MAX {
            return;
        }
        let row = std::mem::take(&mut self.row);
        if row.is_empty() {
            return;
        }
        let all: Vec<usize> = (0..=columns.last()).collect();
        match csv::fields(&row, &all) {
            Some(cells) => self.add(&cells, columns),
            None => self.bad += 1,
        }
    }

    /// A line of psql's table: `a | b | c`, a cell of several lines with a plus at the end of all but the last.
    fn aligned(&mut self, line: &[u8], columns: Columns) {
        let is_rule = line.iter().all(|byte| b"-+ ".contains(byte));
        if is_rule || line.starts_with(b"(") {
            return;
        }
        let mut cells: Vec<Vec<u8>> = line
            .split(|byte| *byte == b'|')
            .map(|cell| cell.trim_ascii().to_vec())
            .collect();
        let Some(query) = cells.get_mut(columns.query) else {
            self.bad += 1;
            return;
        };
        let goes_on = query.last() == Some(&b'+');
        if goes_on {
            query.pop();
        }
        let mut cells = match self.cells.take() {
            None => cells,
            Some(mut first) => {
                first[columns.query].push(b' ');
                first[columns.query].append(&mut cells[columns.query]);
                first
            }
        };
        if goes_on && cells[columns.query].len() < ROW_BYTES_MAX {
            self.cells = Some(cells);
        } else {
            cells.truncate(columns.last() + 1);
            self.add(&cells, columns);
        }
    }

    fn end(&mut self) {
        let torn = !self.row.is_empty() || self.cells.is_some();
        self.bad += u64::from(torn);
    }

    fn add(&mut self, cells: &[Vec<u8>], columns: Columns) {
        let Some((text, row)) = columns.row(cells) else {
            self.bad += 1;
            return;
        };
        if row.calls == 0 {
            return;
        }
        let name = fingerprint(Tagged::new(text).statement, Dialect::Postgres);
        if self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(&name) {
            self.bad += 1;
            return;
        }
        let kind = self.kinds.entry(name.clone()).or_insert(MixKind {
            name,
            ..row.clone()
        });
        if kind.calls != row.calls || kind.mean_s.to_bits() != row.mean_s.to_bits() {
            let (old, new) = (kind.calls as f64, row.calls as f64);
            let together = |one: f64, other: f64| (one * old + other * new) / (old + new);
            kind.mean_s = together(kind.mean_s, row.mean_s);
            kind.square_s2 = together(kind.square_s2, row.square_s2);
            kind.calls = kind.calls.saturating_add(row.calls);
        }
    }
}

impl Columns {
    fn of(line: &[u8]) -> Option<Self> {
        let is_aligned = line.contains(&b'|');
        let mark = if is_aligned { b'|' } else { b',' };
        let names: Vec<String> = line
            .split(|byte| *byte == mark)
            .map(|name| {
                String::from_utf8_lossy(name)
                    .trim()
                    .trim_matches('"')
                    .to_ascii_lowercase()
            })
            .collect();
        let place = |wanted: &[&str]| {
            names
                .iter()
                .position(|name| wanted.contains(&name.as_str()))
        };
        let columns = Self {
            query: place(&["query"])?,
            calls: place(&["calls"])?,
            // Without `exec` they are those of PostgreSQL 12 and older.
            mean: place(&["mean_exec_time", "mean_time"]),
            total: place(&["total_exec_time", "total_time"]),
            deviation: place(&["stddev_exec_time", "stddev_time"]),
            is_aligned,
        };
        (columns.mean.is_some() || columns.total.is_some()).then_some(columns)
    }

    /// The last place that counts.
    fn last(self) -> usize {
        let optional = [self.mean, self.total, self.deviation];
        let places = optional
            .into_iter()
            .flatten()
            .chain([self.query, self.calls]);
        places.max().unwrap_or(0)
    }

    /// The statement's text and its figures; the name is still empty.
    fn row(self, cells: &[Vec<u8>]) -> Option<(&[u8], MixKind)> {
        let number = |place: usize| -> Option<f64> {
            let text = std::str::from_utf8(cells.get(place)?).ok()?;
            let number: f64 = text.trim().parse().ok()?;
            (number.is_finite() && number >= 0.0).then_some(number)
        };
        let calls = number(self.calls).filter(|calls| *calls <= CALLS_MAX)?;
        let mean_ms = match (self.mean, self.total) {
            (Some(mean), _) => number(mean)?,
            (None, Some(total)) => number(total)? / calls.max(1.0),
            (None, None) => return None,
        };
        let deviation_ms = self.deviation.map_or(Some(0.0), number)?;
        let kind = MixKind {
            name: String::new(),
            calls: calls as u64,
            mean_s: mean_ms / 1e3,
            square_s2: (mean_ms * mean_ms + deviation_ms * deviation_ms) / 1e6,
        };
        Some((cells.get(self.query)?, kind))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Mix {
        Mix::read(LogInput::of_bytes(text.as_bytes().to_vec()).unwrap()).unwrap()
    }

    const CSV: &str = "query,calls,mean_exec_time,stddev_exec_time\n\
        \"SELECT a,\n  b FROM t WHERE c = $1\",900,1,0\nSELECT count(*) FROM t,100,91,0\nSELECT 1,x,1,1\n";

    #[test]
    fn rows_are_read_as_csv_and_as_psql_shows_them() {
        let mix = read(CSV);
        assert_eq!((mix.calls, mix.kinds.len(), mix.notes.len()), (1_000, 2, 1));
        assert_eq!(mix.kinds[0].name, "select count(*) from t");
        assert!((mix.work_s - 10.0).abs() < 1e-9);
        let psql = "          query          | calls | mean_exec_time | stddev_exec_time \n\
            -------------------------+-------+----------------+------------------\n \
            SELECT a,              +|   900 |              1 |                0\n   \
              b FROM t WHERE c = $1  |       |                |                 \n \
            SELECT count(*) FROM t  |   100 |             91 |                0\n(2 rows)\n";
        let shown = read(psql);
        assert_eq!(shown.kinds, mix.kinds);
        assert!(Mix::begins(psql.as_bytes()) && Mix::begins(CSV.as_bytes()));
        assert!(!Mix::begins(b"2026-11-26 16:43:35 UTC,calls,query"));
    }

    #[test]
    fn response_times_are_those_of_the_formulas() {
        // E S = 10 ms, E S^2 = 829 ms^2, at a load of a half 50 a second.
        let mix = read(CSV);
        let half = mix.loads[0];
        let wait_s = 50.0 * 829e-6 / 2.0;
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} {other}");
        near(half.shared_s, 0.02);
        near(half.fifo_s, 0.01 + wait_s / 0.5);
        // The short ones are a load of 0.045.
        let short_s = wait_s / 0.955;
        near(half.shortline_s, 0.01 + 0.9 * short_s + 0.1 * short_s / 0.5);
    }

    #[test]
    fn a_file_without_rows_is_refused() {
        let error = Mix::read(LogInput::of_bytes(b"query,calls,total_time\n".to_vec()).unwrap());
        assert!(error.unwrap_err().to_string().starts_with("memory: no row"));
    }

    proptest! {
        #[test]
        fn no_table_panics(text in "(query[,|]calls[,|]mean_time\n)?[a-z0-9,|\"+\n ]{0,80}") {
            let mix = Mix::read(LogInput::of_bytes(text.into_bytes()).unwrap());
            if let Ok(mix) = mix {
                prop_assert!(mix.loads.iter().all(|load| load.shortline_s >= 0.0));
            }
        }
    }
}
