//! What somebody meant by a value without a unit, or with one of another program: nginx's `128m`, Go's `1m`, a
//! provider's `100 Mbit/s`, a disk's `100MB`. It is only told, never taken: `m` is a minute there, a mebibyte
//! here.

use super::Quantity;

/// The unit of a quantity that `unit` stands for elsewhere, and what the number is multiplied by.
type Meaning = (&'static str, u64);

/// The value as it is written here, if the unit is known from elsewhere.
pub(super) fn meant(quantity: &Quantity, text: &str) -> Option<String> {
    let text = text.trim();
    let number_len = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(number_len);
    let unit = unit.trim();
    if number.is_empty() || unit.is_empty() {
        return None;
    }
    let (unit, times) = match quantity.name {
        "rate" => of_rate(unit)?,
        "size" => of_size(unit)?,
        _ => of_time(unit)?,
    };
    match times {
        1 => Some(format!("{number}{unit}")),
        times => Some(format!(
            "{}{unit}",
            number.parse::<u64>().ok()?.checked_mul(times)?
        )),
    }
}

/// Whether a rate was given in bytes, as its capital B says.
pub(super) fn counts_bytes(text: &str) -> bool {
    let unit = text
        .trim()
        .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    of_rate(unit.trim()).is_some_and(|(_, times)| times == 8)
}

fn of_rate(unit: &str) -> Option<Meaning> {
    let per_second = unit
        .strip_suffix("/s")
        .or_else(|| unit.strip_suffix("/sec"))
        .or_else(|| unit.strip_suffix("ps"))
        .unwrap_or(unit);
    let (prefix, of) = per_second.split_at_checked(1)?;
    let unit = match prefix {
        "k" | "K" => "kbit",
        "m" | "M" => "mbit",
        "g" | "G" => "gbit",
        _ => return None,
    };
    match of {
        "" | "b" | "bit" | "bits" | "Bit" | "Bits" | "BIT" => Some((unit, 1)),
        "B" | "iB" | "byte" | "bytes" | "Byte" | "Bytes" => Some((unit, 8)),
        _ => None,
    }
}

fn of_size(unit: &str) -> Option<Meaning> {
    let unit = match unit.to_ascii_lowercase().as_str() {
        "k" | "ki" => "KiB",
        "m" | "mi" => "MiB",
        "g" | "gi" => "GiB",
        "t" | "ti" => "TiB",
        "kb" => "kB",
        "mb" => "MB",
        "gb" => "GB",
        "byte" | "bytes" | "b" => "B",
        _ => return None,
    };
    Some((unit, 1))
}

fn of_time(unit: &str) -> Option<Meaning> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => ("ms", 1),
        "us" | "µs" | "μs" | "usec" => ("us", 1),
        "s" | "sec" | "secs" | "second" | "seconds" => ("s", 1),
        "m" | "min" | "mins" | "minute" | "minutes" => ("min", 1),
        "h" | "hr" | "hrs" | "hour" | "hours" => ("h", 1),
        "d" | "day" | "days" => ("d", 1),
        "w" | "week" | "weeks" => ("d", 7),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::units::{Rate, Size, Span};

    fn told<T: std::str::FromStr<Err: std::fmt::Display + std::fmt::Debug> + std::fmt::Debug>(
        text: &str,
    ) -> String {
        text.parse::<T>().unwrap_err().to_string()
    }

    #[test]
    fn units_of_other_programs_are_told_as_they_are_here() {
        for (text, write) in [
            ("100m", "100mbit"),
            ("100Mbps", "100mbit"),
            ("100 Mbit/s", "100mbit"),
            ("1.5G", "1.5gbit"),
            ("100MB", "counts bits, not bytes; write it like 800mbit"),
            ("12MB/s", "96mbit"),
            ("100", "100mbit"),
        ] {
            let told = told::<Rate>(text);
            assert!(told.ends_with(write), "{told}");
        }
        for (text, write) in [("128m", "128MiB"), ("64k", "64KiB"), ("10 bytes", "10B")] {
            let told = told::<Size>(text);
            assert!(told.ends_with(write), "{told}");
        }
        for (text, write) in [
            ("60", "60s"),
            ("1m", "1min"),
            ("60 sec", "60s"),
            ("2w", "14d"),
        ] {
            let told = told::<Span>(text);
            assert!(told.ends_with(write), "{told}");
        }
    }
}
