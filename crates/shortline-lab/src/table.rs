//! Tables and figures in plain text.

use std::fmt;

/// A table with a head; the first column to the left, the others to the right.
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

/// A time in seconds with three digits that count: `4.21 ms`, `867 ms`, `13.8 s`.
pub fn time(seconds: f64) -> String {
    if seconds < 0.9995 {
        format!("{} ms", three_digits(seconds * 1e3))
    } else {
        format!("{} s", three_digits(seconds))
    }
}

/// The same without what is 0 behind the point, for axes: `1 ms`, `0.5 s`.
pub fn time_on_axis(seconds: f64) -> String {
    time(seconds).replace(".00 ", " ").replace(".0 ", " ")
}

/// A number with three digits that count and nothing behind thousands.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Bytes in decimal units.
pub fn bytes(count: f64) -> String {
    match count {
        count if count >= 1e9 => format!("{} GB", three_digits(count / 1e9)),
        count if count >= 1e6 => format!("{} MB", three_digits(count / 1e6)),
        count => format!("{} KB", three_digits(count / 1e3)),
    }
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
    fn figures_have_three_digits() {
        assert_eq!(time(0.00421), "4.21 ms");
        assert_eq!(time(0.8674), "867 ms");
        assert_eq!(time(0.9997), "1.00 s");
        assert_eq!(time(13.84), "13.8 s");
        assert_eq!(time_on_axis(0.01), "10 ms");
        assert_eq!(time_on_axis(1.0), "1 s");
        assert_eq!(bytes(52_300_000.0), "52.3 MB");
    }
}
