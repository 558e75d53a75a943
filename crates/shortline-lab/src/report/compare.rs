//! Two runs of `versus` side by side: what a commit has made of the work per second of processor time.
//!
//! The measure is a row's ratio to the server that was the best other in the kept run. Both are measured in turn in one run, so a
//! busy or another machine moves the ratio far less than the work itself.

use std::path::Path;

use shortline_table::Table;

use super::ReportError;
use crate::study::plan::read_json;
use crate::study::stats::Spread;
use crate::study::versus::results::{RESULTS, Results};
use crate::study::versus::{ROWS, Row};

/// So much of its ratio may a row lose.
const LOSS_MAX: f64 = 0.05;

/// What came of a comparison.
#[derive(Debug)]
pub struct Comparison {
    /// The table: kept, now and the difference, row by row.
    pub text: String,
    /// The rows that have lost more than they may, and those that were not measured now.
    pub lost: Vec<String>,
}

/// Compares the results in two folders. A row that the kept run has must be in the other, too.
///
/// # Errors
/// If one of them has no `versus.json`, or a wrong one.
pub fn compare(kept: &Path, now: &Path) -> Result<Comparison, ReportError> {
    let (kept, now): (Results, Results) = (
        read_json(&kept.join(RESULTS))?,
        read_json(&now.join(RESULTS))?,
    );
    Ok(comparison(&kept, &now))
}

fn comparison(kept: &Results, now: &Results) -> Comparison {
    let lines: Vec<Line> = ROWS
        .into_iter()
        .filter_map(|row| Line::of(row, kept, now))
        .collect();
    let mut table = Table::new(&["", "of", "kept", "now", "difference", "rounds now"]);
    lines.iter().for_each(|line| table.row(line.cells()));
    Comparison {
        text: table.to_string(),
        lost: lines.iter().filter_map(Line::loss).collect(),
    }
}

/// A row of both runs.
struct Line {
    row: Row,
    /// The best other server of the kept run.
    other: String,
    kept: Spread,
    now: Option<Spread>,
}

impl Line {
    fn of(row: Row, kept: &Results, now: &Results) -> Option<Self> {
        let outcome = kept.outcome(&row)?;
        let other = outcome.servers[1].0.clone();
        Some(Self {
            now: now.ratio_to(&row, &other),
            kept: outcome.ratio,
            other,
            row,
        })
    }

    /// The change of the ratio as a share of what was kept.
    fn change(&self) -> Option<f64> {
        Some(self.now.as_ref()?.median / self.kept.median - 1.0)
    }

    fn loss(&self) -> Option<String> {
        match self.change() {
            None => Some(format!(
                "{} was not measured beside {}",
                self.row.name, self.other
            )),
            Some(change) if change < -LOSS_MAX => {
                Some(format!("{} lost {:.1} %", self.row.name, -100.0 * change))
            }
            Some(_) => None,
        }
    }

    fn cells(&self) -> Vec<String> {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let now = self.now.as_ref();
        vec![
            self.row.name.into(),
            self.other.clone(),
            format!("{:.2}", self.kept.median),
            or_none(now.map(|now| format!("{:.2}", now.median))),
            or_none(
                self.change()
                    .map(|change| format!("{:+.1} %", 100.0 * change)),
            ),
            or_none(now.map(|now| format!("{:.2} to {:.2}", now.low, now.high))),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::versus::results::Measured;

    fn results(works: &[(&str, &str, u64)]) -> Results {
        let one = |(row, server, requests): &(&str, &str, u64)| Measured {
            row: (*row).into(),
            server: (*server).into(),
            round: 1,
            requests: *requests,
            wall_s: 1.0,
            cpu_s: 1.0,
        };
        Results {
            measured: works.iter().map(one).collect(),
            ..Results::default()
        }
    }

    #[test]
    fn a_row_may_lose_a_twentieth_of_its_ratio_to_the_same_server() {
        let kept = results(&[
            ("1 KB", "auto", 100),
            ("1 KB", "h2o", 100),
            ("1 KB", "nginx", 50),
        ]);
        let lost = |ours, h2o| {
            let now = results(&[
                ("1 KB", "auto", ours),
                ("1 KB", "h2o", h2o),
                ("1 KB", "nginx", 999),
            ]);
            comparison(&kept, &now).lost
        };
        assert_eq!(lost(96, 100), Vec::<String>::new());
        // A machine of half the speed.
        assert_eq!(lost(50, 50), Vec::<String>::new());
        assert_eq!(lost(90, 100), ["1 KB lost 10.0 %"]);
    }

    #[test]
    fn a_row_that_is_not_measured_is_told() {
        let kept = results(&[("1 KB", "auto", 100), ("1 KB", "h2o", 100)]);
        let now = results(&[("1 KB", "auto", 100), ("1 KB", "nginx", 100)]);
        let found = comparison(&kept, &now);
        assert_eq!(found.lost, ["1 KB was not measured beside h2o"]);
        assert!(found.text.contains('-'), "{}", found.text);
        assert!(comparison(&results(&[]), &now).lost.is_empty());
    }
}
