//! The summary as a table for people: three digits and the unit that fits.

use std::fmt;

use super::{Distribution, LATE_S, SizeClass, Summary};

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_counts(f)?;
        self.write_times(f)?;
        self.write_classes(f)?;
        let late = &self.lateness;
        writeln!(
            f,
            "lateness       p50 {}   p99 {}   max {}   {} over {}",
            seconds(late.p50),
            seconds(late.p99),
            seconds(late.max),
            self.late_starts,
            seconds(LATE_S),
        )?;
        match &self.void {
            Some(reason) => writeln!(f, "VOID           {reason}"),
            None => Ok(()),
        }
    }
}

impl Summary {
    fn write_counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = self.requests - self.finished;
        write!(
            f,
            "requests       {}   finished {}   failed {failed}",
            self.requests, self.finished
        )?;
        for (place, (kind, count)) in self.failures.iter().enumerate() {
            write!(f, "{}{kind} {count}", if place == 0 { ": " } else { ", " })?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "incomplete     {} of all, {} of the largest 1 %",
            percent(self.incomplete_share),
            percent(self.largest.incomplete_share),
        )?;
        let mbit_per_s = self.received_bytes as f64 * 8.0 / 1e6 / self.duration_s.max(1e-9);
        writeln!(
            f,
            "received       {} of bodies in {}, {mbit_per_s:.2} Mbit/s",
            bytes(self.received_bytes),
            seconds(self.duration_s),
        )
    }

    fn write_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = &self.response_time;
        let finished = self.response_time_mean_finished_s;
        writeln!(
            f,
            "response time  mean {}   of the finished {}   variance {} s²   C² {}",
            seconds(all.mean),
            finished.map_or("-".into(), seconds),
            digits(all.variance),
            digits(all.c2),
        )?;
        writeln!(f, "               {}", percentiles(all, seconds))?;
        if let Some(first) = &self.first_byte {
            let mean = seconds(first.mean);
            writeln!(
                f,
                "first byte     mean {mean}   {}",
                percentiles(first, seconds)
            )?;
        }
        if let Some(slowdown) = &self.slowdown {
            let mean = digits(slowdown.mean);
            writeln!(
                f,
                "slowdown       mean {mean}   {}",
                percentiles(slowdown, digits)
            )?;
            match self.slowdown_rate_bps {
                Some(bps) => writeln!(
                    f,
                    "               alone: wire time at {} Mbit/s",
                    bps as f64 / 1e6
                )?,
                None => writeln!(
                    f,
                    "               alone: least time measured for that size or larger"
                )?,
            }
        }
        Ok(())
    }

    fn write_classes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<28}{:>9}{:>8}{:>10}{:>13}{:>10}{:>10}{:>12}{:>10}",
            "size",
            "requests",
            "failed",
            "mean",
            "of finished",
            "p50",
            "p99",
            "first byte",
            "slowdown"
        )?;
        for class in self.classes.iter().chain([&self.largest]) {
            write_class(f, class)?;
        }
        Ok(())
    }
}

fn write_class(f: &mut fmt::Formatter<'_>, class: &SizeClass) -> fmt::Result {
    let times = &class.response_time;
    writeln!(
        f,
        "{:<28}{:>9}{:>8}{:>10}{:>13}{:>10}{:>10}{:>12}{:>10}",
        class.name,
        times.count,
        class.failed,
        seconds(times.mean),
        class
            .response_time_mean_finished_s
            .map_or("-".into(), seconds),
        seconds(times.p50),
        seconds(times.p99),
        class.first_byte_mean_s.map_or("-".into(), seconds),
        class.slowdown_mean.map_or("-".into(), digits),
    )
}

fn percentiles(of: &Distribution, unit: impl Fn(f64) -> String) -> String {
    format!(
        "p50 {}   p90 {}   p99 {}   p99.9 {}   max {}",
        unit(of.p50),
        unit(of.p90),
        unit(of.p99),
        unit(of.p99_9),
        unit(of.max)
    )
}

pub(crate) fn seconds(value: f64) -> String {
    match value {
        v if v >= 0.9995 => format!("{} s", digits(v)),
        v if v >= 0.000_999_5 => format!("{} ms", digits(v * 1e3)),
        v => format!("{:.0} us", v * 1e6),
    }
}

pub(super) fn bytes(count: u64) -> String {
    match count {
        1_000_000.. => format!("{} MB", digits(count as f64 / 1e6)),
        1_000.. => format!("{} KB", digits(count as f64 / 1e3)),
        _ => format!("{count} B"),
    }
}

fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// Three digits, more only before the point; very small numbers by their power of ten.
fn digits(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v >= 0.0995 || v == 0.0 => format!("{v:.2}"),
        v if v >= 0.000_995 => format!("{v:.4}"),
        v => format!("{v:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::record::{Failure, RequestRecord};

    #[test]
    fn units_fit_the_value() {
        let got = [0.000_022, 0.0335, 0.15, 1.0, 13.8, 1009.0].map(seconds);
        assert_eq!(
            got,
            ["22 us", "33.5 ms", "150 ms", "1.00 s", "13.8 s", "1009 s"]
        );
        assert_eq!(
            [41, 9_300, 2_020_000].map(bytes),
            ["41 B", "9.30 KB", "2.02 MB"]
        );
    }

    #[test]
    fn the_table_has_every_figure_the_issue_asks_for() {
        let record = RequestRecord {
            lag_s: 0.000_02,
            first_byte_s: Some(0.01),
            ..RequestRecord::finished(0.0, "/a", 500, 0.02)
        };
        let failed = RequestRecord {
            failure: Some(Failure::Reset),
            ..record.clone()
        };
        let table = Summary::of(&[record, failed], None, true)
            .unwrap()
            .to_string();
        for part in [
            "requests       2   finished 1   failed 1: reset 1",
            "incomplete     50.0 % of all, 0.00 % of the largest 1 %",
            "response time  mean 20.0 ms   of the finished 20.0 ms   variance",
            "C²",
            "p99.9",
            "first byte     mean 10.0 ms",
            "slowdown       mean 1.00",
            "< 1 KB",
            "largest 1 % (from 500 B)",
            "lateness       p50 20 us",
            "VOID           interrupted",
        ] {
            assert!(table.contains(part), "no {part:?} in\n{table}");
        }
    }
}
