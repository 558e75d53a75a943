//! The summary for people.

use std::fmt;

use shortline_table::{Table, bytes, or_dash, percent, three_digits, time};

use super::{Distribution, LATE_S, Summary};

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_counts(f)?;
        self.write_times(f)?;
        write!(f, "{}", self.classes())?;
        let late = &self.lateness;
        writeln!(
            f,
            "lateness       p50 {}   p99 {}   max {}   {} over {}",
            time(late.p50),
            time(late.p99),
            time(late.max),
            self.late_starts,
            time(LATE_S),
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
            bytes(self.received_bytes as f64),
            time(self.duration_s),
        )
    }

    fn write_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = &self.response_time;
        let finished = self.response_time_mean_finished_s;
        writeln!(
            f,
            "response time  mean {}   of the finished {}   variance {} s²   C² {}",
            time(all.mean),
            or_dash(finished, time),
            three_digits(all.variance),
            three_digits(all.c2),
        )?;
        writeln!(f, "               {}", percentiles(all, time))?;
        if let Some(first) = &self.first_byte {
            let mean = time(first.mean);
            writeln!(
                f,
                "first byte     mean {mean}   {}",
                percentiles(first, time)
            )?;
        }
        if let Some(slowdown) = &self.slowdown {
            let mean = three_digits(slowdown.mean);
            writeln!(
                f,
                "slowdown       mean {mean}   {}",
                percentiles(slowdown, three_digits)
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

    fn classes(&self) -> Table {
        let mut table = Table::new(&[
            "size",
            "requests",
            "failed",
            "mean",
            "of finished",
            "p50",
            "p99",
            "first byte",
            "slowdown",
        ]);
        for class in self.classes.iter().chain([&self.largest]) {
            let times = &class.response_time;
            table.row(vec![
                class.name.clone(),
                times.count.to_string(),
                class.failed.to_string(),
                time(times.mean),
                or_dash(class.response_time_mean_finished_s, time),
                time(times.p50),
                time(times.p99),
                or_dash(class.first_byte_mean_s, time),
                or_dash(class.slowdown_mean, three_digits),
            ]);
        }
        table
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::record::{Failure, RequestRecord};

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
