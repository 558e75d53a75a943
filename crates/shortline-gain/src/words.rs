//! Says it in words first, then in two tables.

use std::fmt::Write;

use shortline_table::{Table, bytes, percent, three_digits};
use time::OffsetDateTime;

use crate::gain::{Basis, Class, Gain, Group};
use crate::live::{Live, MEANS_MIN, PERCENTILES_MIN, off};
use crate::waits::{SERVERS, Waits};

/// The most hours in a table, the fullest.
const HOURS_SHOWN: usize = 12;
/// A mean of the usual sizes this many times shorter than under fair sharing is worth a change.
const WORTH: f64 = 1.2;

/// FIFO, fair sharing and Shortline.
const FIFO: usize = 0;
const FAIR: usize = 1;
const OURS: usize = 2;

impl Gain {
    /// The report as text.
    pub fn words(&self) -> String {
        let mut text = String::new();
        for line in self.heading() {
            let _ = writeln!(text, "{line}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        for sentence in self.verdict() {
            let _ = write!(text, "\n{sentence}\n");
        }
        if let Some(full) = &self.full {
            let _ = write!(text, "\n{}\n\n{}", self.hours_title(), self.hours_table());
            let _ = write!(
                text,
                "\nResponse times in these hours, means and 99th percentiles:\n\n{}",
                table(full)
            );
        } else {
            let _ = write!(
                text,
                "\nResponse times, means and 99th percentiles:\n\n{}",
                table(&self.all)
            );
        }
        if let Some(live) = &self.live {
            let _ = write!(text, "\n{}\n\n{}", live.told(), live.table());
            for note in live.notes.iter().chain(&live.doubts) {
                let _ = writeln!(text, "{note}");
            }
        }
        let _ = write!(text, "\n{EXPLANATION}\n");
        text
    }

    /// What was read, and the link.
    pub(crate) fn heading(&self) -> [String; 2] {
        let logs = match &self.logs[..] {
            [one] => one.clone(),
            logs => format!("{} logs", logs.len()),
        };
        let about = format!(
            "{logs}: {} responses, {} ({} on the wire), {} to {} UTC",
            thousands(self.responses),
            bytes(self.bytes as f64),
            bytes(self.wire_bytes as f64),
            moment(self.from_unix_s),
            moment(self.to_unix_s),
        );
        let rate = rate(self.rate_bps);
        let link = match self.rate_from {
            Basis::Stated => format!("Uplink: {rate}."),
            Basis::BusiestHour => format!(
                "Uplink: {rate}, which the busiest hour ({} UTC) would just fill; --uplink RATE if you know it. A faster one gains less.",
                moment(self.busiest_unix_s)
            ),
        };
        [about, link]
    }

    /// Whether it is worth it, and what it costs whom.
    pub(crate) fn verdict(&self) -> Vec<String> {
        let Some(full) = &self.full else {
            let busiest = self.hours.iter().map(|hour| hour.load).fold(0.0, f64::max);
            return vec![format!(
                "Nothing to gain: in no hour was the link full for a sixtieth of the time. In the busiest it carried {} of what it can.",
                percent(busiest)
            )];
        };
        let opening = if is_worth_it(full) {
            "Worth it: while the link is full,"
        } else {
            "Little to gain: while the link is full,"
        };
        let Some(small) = full.classes.first() else {
            return Vec::new();
        };
        let mut told = vec![format!("{opening} {}", told_class(small))];
        if let Some(large) = full.classes.last().filter(|large| large.name != small.name) {
            told.push(told_price(large));
        }
        told
    }

    /// The result in a line, as the page's title.
    pub(crate) fn title(&self) -> String {
        let small = self.full.as_ref().map(|full| (full, full.classes.first()));
        match small {
            Some((full, Some(small))) => format!(
                "{}esponses {} take {} instead of {}",
                if is_worth_it(full) {
                    "R"
                } else {
                    "Little to gain: r"
                },
                small.name,
                time(small.waits[OURS].mean_s),
                time(small.waits[FAIR].mean_s)
            ),
            Some((_, None)) | None => {
                "Nothing to gain: the link was never full for long".to_owned()
            }
        }
    }

    /// The result of the busiest hour in a line, as the drawing's title.
    pub(crate) fn busiest_told(&self) -> String {
        let busiest = self.busiest_unix_s;
        let hour = self.hours.iter().find(|hour| hour.begin_unix_s == busiest);
        let Some(hour) = hour else {
            return "Mean response time by hour".to_owned();
        };
        let means = SERVERS.iter().zip(hour.mean_s).rev();
        let means = means.map(|(server, mean_s)| format!("{server} {}", time(mean_s)));
        let means = means.collect::<Vec<_>>().join(", ");
        format!("Mean response time in the busiest hour: {means}")
    }

    pub(crate) fn hours_title(&self) -> String {
        let full = self.hours.iter().filter(|hour| hour.is_full).count();
        let of = self.hours.len();
        let shown = if full > HOURS_SHOWN {
            format!(" (the {HOURS_SHOWN} with most)")
        } else {
            String::new()
        };
        format!(
            "The link was full for a sixtieth of the time or longer in {full} of {of} hours{shown}; mean response times:"
        )
    }

    pub(crate) fn hours_table(&self) -> Table {
        let mut head = vec!["hour (UTC)", "load", "full for", "responses"];
        let names = SERVERS.map(|server| server.to_string());
        head.extend(names.iter().map(String::as_str));
        let mut hours: Vec<_> = self.hours.iter().filter(|hour| hour.is_full).collect();
        hours.sort_by_key(|hour| std::cmp::Reverse(hour.full_s));
        hours.truncate(HOURS_SHOWN);
        hours.sort_by_key(|hour| hour.begin_unix_s);
        let mut table = Table::new(&head);
        for hour in hours {
            let mut cells = vec![
                moment(hour.begin_unix_s),
                format!("{:.2}", hour.load),
                time(f64::from(hour.full_s)),
                thousands(hour.responses),
            ];
            cells.extend(hour.mean_s.map(time));
            table.row(cells);
        }
        table
    }
}

/// Whether the sizes that most visitors ask for gain much. The mean of all sizes would be that of a few huge downloads.
fn is_worth_it(full: &Group) -> bool {
    let usual = full.classes.iter().max_by_key(|class| class.responses);
    usual.is_some_and(|usual| usual.waits[FAIR].mean_s >= WORTH * usual.waits[OURS].mean_s)
}

/// What the figures are, for whoever reads them.
pub(crate) const EXPLANATION: &str = "\
FIFO is whole responses first come, first served; fq_codel shares fairly among all; Shortline is its default order. A
server as found, behind the kernel's FIFO, lies between the first two. Times are those on your uplink alone, by fluid theory:
without losses and round trips, each response a client of its own. Lost packets make the first two longer.";

impl Live {
    /// What was replayed, and how near it came.
    pub(crate) fn told(&self) -> String {
        let came = match (self.means_apart(), self.percentiles_apart()) {
            _ if !self.doubts.is_empty() => {
                "This machine was too busy to judge the prediction by it.".to_owned()
            }
            (Some(means), Some(percentiles)) => format!(
                "It came within {} of the prediction in the mean of every size with {MEANS_MIN} responses or more, and within {} in the \
                 99th percentile of every size with {PERCENTILES_MIN}.",
                percent(means),
                percent(percentiles)
            ),
            (Some(means), None) => format!(
                "It came within {} of the prediction in the mean of every size with {MEANS_MIN} responses or more. No size has the \
                 {PERCENTILES_MIN} that a 99th percentile needs.",
                percent(means)
            ),
            (None, _) => format!(
                "It has fewer than {MEANS_MIN} responses of every size, too few to say how near the prediction comes."
            ),
        };
        format!(
            "Replayed for real, on loopback: the busiest {}, from {} UTC, {} responses, {}. {came}",
            shortline_table::time(self.length_s),
            second(self.from_unix_s),
            thousands(self.responses),
            bytes(self.bytes as f64)
        )
    }

    pub(crate) fn table(&self) -> Table {
        let head = [
            "size",
            "responses",
            "",
            "mean predicted",
            "replayed",
            "",
            "99 % predicted",
            "replayed",
            "",
        ];
        let mut table = Table::new(&head);
        for class in &self.classes {
            for (place, server) in SERVERS.iter().enumerate() {
                let (predicted, replayed) = (class.predicted[place], class.replayed[place]);
                let apart =
                    |predicted, replayed| format!("{:+.0} %", 100.0 * off(predicted, replayed));
                table.row(vec![
                    class.name.to_owned(),
                    thousands(class.responses),
                    server.to_string(),
                    time(predicted.mean_s),
                    time(replayed.mean_s),
                    apart(predicted.mean_s, replayed.mean_s),
                    time(predicted.p99_s),
                    time(replayed.p99_s),
                    apart(predicted.p99_s, replayed.p99_s),
                ]);
            }
        }
        table
    }
}

/// Waits by size.
pub(crate) fn table(group: &Group) -> Table {
    let mut head = vec!["size", "responses"];
    let names = SERVERS.map(|server| [server.to_string(), "99 %".to_owned()]);
    head.extend(names.iter().flatten().map(String::as_str));
    let mut table = Table::new(&head);
    let mut row = |name: &str, responses, waits: [Waits; 3]| {
        let mut cells = vec![name.to_owned(), thousands(responses)];
        cells.extend(
            waits
                .iter()
                .flat_map(|waits| [time(waits.mean_s), time(waits.p99_s)]),
        );
        table.row(cells);
    };
    for class in &group.classes {
        row(class.name, class.responses, class.waits);
    }
    row("all", group.responses, group.waits);
    table
}

fn told_class(small: &Class) -> String {
    format!(
        "responses {} come in {} in the mean, instead of {} with fair sharing (fq_codel). Behind the kernel's FIFO it is more than \
         that, up to {}.",
        small.name,
        time(small.waits[OURS].mean_s),
        time(small.waits[FAIR].mean_s),
        time(small.waits[FIFO].mean_s),
    )
}

fn told_price(large: &Class) -> String {
    let ratio = large.waits[OURS].mean_s / large.waits[FAIR].mean_s;
    let told = match ratio {
        ratio if ratio > 1.05 => format!(
            "take {} times as long as with fair sharing",
            three_digits(ratio)
        ),
        ratio if ratio < 0.95 => format!(
            "take {} of the time that they take with fair sharing",
            percent(ratio)
        ),
        _ => "take as long as with fair sharing".to_owned(),
    };
    format!(
        "Those {} {told}: {} instead of {}.",
        large.name,
        time(large.waits[OURS].mean_s),
        time(large.waits[FAIR].mean_s)
    )
}

/// As on other tables, but from ten minutes on in minutes and hours.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{} h", three_digits(s / 3600.0)),
        s if s >= 600.0 => format!("{} min", three_digits(s / 60.0)),
        s => shortline_table::time(s),
    }
}

/// `1,234,567`.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `38.2 Mbit/s`.
pub(crate) fn rate(bps: u64) -> String {
    let bps = bps as f64;
    let (value, unit) = match bps {
        bps if bps >= 1e9 => (bps / 1e9, "Gbit/s"),
        bps if bps >= 1e6 => (bps / 1e6, "Mbit/s"),
        bps if bps >= 1e3 => (bps / 1e3, "kbit/s"),
        bps => (bps, "bit/s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// `2026-11-21 10:00:07`, in UTC.
fn second(unix_s: u32) -> String {
    format!("{}:{:02}", moment(unix_s), unix_s % 60)
}

/// `2026-11-21 10:00`, in UTC.
pub(crate) fn moment(unix_s: u32) -> String {
    let Ok(time) = OffsetDateTime::from_unix_timestamp(unix_s.into()) else {
        return unix_s.to_string();
    };
    let (year, month, day) = time.to_calendar_date();
    format!(
        "{year}-{:02}-{day:02} {:02}:{:02}",
        u8::from(month),
        time.hour(),
        time.minute()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_for_people() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(thousands),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(rate(38_200_000), "38.2 Mbit/s");
        assert_eq!(rate(999), "999 bit/s");
        assert_eq!(
            [0.04, 599.0, 5400.0, 9000.0].map(time),
            ["40.0 ms", "599 s", "90.0 min", "2.50 h"]
        );
        assert_eq!(moment(1_795_255_200), "2026-11-21 10:00");
    }
}
