//! Tables and figures in plain text, for people: on a terminal, in a report, on an axis.
//!
//! A figure has three significant digits and a fitting unit.
#![forbid(unsafe_code)]

use std::fmt;

/// A table with a head. The first column is aligned left, the others right.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(head: &[&str]) -> Self {
        Self {
            rows: vec![head.iter().map(ToString::to_string).collect()],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The head, then the rows.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    line += &format!("{cell:<width$}");
                } else {
                    line += &format!("  {cell:>width$}");
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A time in seconds: `22 us`, `4.21 ms`, `867 ms`, `13.8 s`.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 0.9995 => format!("{} s", three_digits(s)),
        s if s >= 0.000_999_5 || s == 0.0 => format!("{} ms", three_digits(s * 1e3)),
        s => format!("{:.0} us", s * 1e6),
    }
}

/// The same without trailing zeros, for axes: `1 ms`, `0.5 s`.
pub fn time_on_axis(seconds: f64) -> String {
    time(seconds).replace(".00 ", " ").replace(".0 ", " ")
}

/// Bytes in decimal units: `41 B`, `9.30 KB`, `52.3 MB`.
pub fn bytes(count: f64) -> String {
    match count {
        count if count >= 1e9 => format!("{} GB", three_digits(count / 1e9)),
        count if count >= 1e6 => format!("{} MB", three_digits(count / 1e6)),
        count if count >= 1e3 => format!("{} KB", three_digits(count / 1e3)),
        count => format!("{count:.0} B"),
    }
}

/// A share of 1 in per cent.
pub fn percent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// A number with three significant digits. It has more only before the point; very small numbers
/// have a power of ten.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.0995 || size == 0.0 => format!("{value:.2}"),
        size if size >= 0.000_995 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

/// The text of a value that may be missing.
pub fn or_dash<T>(value: Option<T>, tell: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), tell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["server", "mean"]);
        table.row(vec!["ours".into(), "35 ms".into()]);
        assert_eq!(table.to_string(), "server   mean\nours    35 ms\n");
    }

    #[test]
    fn figures_have_three_digits_and_the_unit_that_fits() {
        let told = [0.0, 0.000_022, 0.00421, 0.15, 0.8674, 0.9997, 13.84, 1009.0].map(time);
        let expected = [
            "0.00 ms", "22 us", "4.21 ms", "150 ms", "867 ms", "1.00 s", "13.8 s", "1009 s",
        ];
        assert_eq!(told, expected);
        assert_eq!([0.01, 1.0].map(time_on_axis), ["10 ms", "1 s"]);
        let told = [41.0, 9_300.0, 2_020_000.0, 52_300_000.0, 1e9].map(bytes);
        assert_eq!(told, ["41 B", "9.30 KB", "2.02 MB", "52.3 MB", "1.00 GB"]);
        assert_eq!(
            [0.0, 0.5, 0.000_01].map(percent),
            ["0.00 %", "50.0 %", "0.0010 %"]
        );
        assert_eq!(three_digits(-0.000_02), "-2.00e-5");
        assert_eq!(or_dash(None, three_digits), "-");
    }
}
