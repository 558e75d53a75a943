//! Rates, sizes and times as text: `10mbit`, `64KiB`, `500ms`.
//!
//! A value is a number, possibly with a decimal fraction, and a unit right after it. Case does not
//! matter. Values are exact: one that is not a whole number of bits, bytes or nanoseconds, or does
//! not fit 64 bits, is refused rather than rounded. Units of rates are decimal, as for `tc`. For
//! sizes both kinds exist (`kB` = 1000, `KiB` = 1024).
//!
//! Each value prints as text that reads back as itself.

mod meant;

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A data rate in bits per second, above 0 when it was read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u64);

/// A length of time, to the nanosecond, at most 584 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// A text that is not a rate, size or time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} `{value}`: {problem}; write it like {example}", .quantity.name)]
pub struct UnitError {
    quantity: &'static Quantity,
    value: String,
    problem: Problem,
    /// What was perhaps meant, or usual values.
    example: String,
}

impl UnitError {
    /// For a number that stood in a file without quotes: what is right there has some.
    fn quoted(self) -> Self {
        Self {
            example: format!("\"{}\"", self.example),
            ..self
        }
    }
}

impl Rate {
    /// A rate in bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }
}

impl Size {
    /// A size in bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl Span {
    /// A span of that duration; the longest span if it is longer than 584 years.
    pub fn from_duration(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The span as a duration.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match RATE.parse(text)? {
            0 => Err(RATE.refuse(text, Problem::Zero)),
            bps => Ok(Self(bps)),
        }
    }
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        SIZE.parse(text).map(Self)
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        SPAN.parse(text).map(Self)
    }
}

/// The traits that all quantities share: printed and (de)serialized as text.
macro_rules! written_with_a_unit {
    ($type:ty, $quantity:ident) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&$quantity.print(self.0))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Written(PhantomData))
            }
        }
    };
}

/// Takes a text, and a number as the text it is written as.
struct Written<T>(PhantomData<T>);

impl<T: FromStr<Err = UnitError>> Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number and its unit, in quotes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        let read = number.to_string().parse();
        read.map_err(|error: UnitError| E::custom(error.quoted()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        let read = number.to_string().parse();
        read.map_err(|error: UnitError| E::custom(error.quoted()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        let read = number.to_string().parse();
        read.map_err(|error: UnitError| E::custom(error.quoted()))
    }
}

written_with_a_unit!(Rate, RATE);
written_with_a_unit!(Size, SIZE);
written_with_a_unit!(Span, SPAN);

/// The name of a quantity, and its units.
#[derive(Debug, PartialEq, Eq)]
struct Quantity {
    name: &'static str,
    examples: &'static str,
    /// The unit of a value of 1.
    base: &'static str,
    /// The unit that a number without one has most probably.
    usual: &'static str,
    /// Units, with the number of base units in each.
    units: &'static [(&'static str, u64)],
    /// Whether a number without a unit counts the base.
    unit_optional: bool,
}

static RATE: Quantity = Quantity {
    name: "rate",
    examples: "10mbit, 1.5gbit or 8000000bit",
    base: "bits per second",
    usual: "mbit",
    units: &[
        ("bit", 1),
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("tbit", 1_000_000_000_000),
    ],
    unit_optional: false,
};

static SIZE: Quantity = Quantity {
    name: "size",
    examples: "64KiB, 2MB or 512",
    base: "bytes",
    usual: "B",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000),
        ("TiB", 1 << 40),
    ],
    unit_optional: true,
};

static SPAN: Quantity = Quantity {
    name: "time",
    examples: "500ms, 2s or 1.5min",
    base: "nanoseconds",
    usual: "s",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ],
    unit_optional: false,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("does not start with a number")]
    NoNumber,
    #[error("has no unit")]
    NoUnit,
    #[error("has an unknown unit")]
    UnknownUnit,
    #[error("counts bits, not bytes")]
    Bytes,
    #[error("is no whole number of {0}")]
    NotWhole(&'static str),
    #[error("is too large")]
    TooLarge,
    #[error("must be above 0")]
    Zero,
}

impl Quantity {
    fn parse(&'static self, text: &str) -> Result<u64, UnitError> {
        self.value(text.trim())
            .map_err(|problem| self.refuse(text, problem))
    }

    fn refuse(&'static self, text: &str, problem: Problem) -> UnitError {
        let is_rate_in_bytes = self.name == RATE.name && meant::counts_bytes(text);
        let meant = match problem {
            Problem::NoUnit => Some(format!("{}{}", text.trim(), self.usual)),
            Problem::UnknownUnit => meant::meant(self, text),
            _ => None,
        };
        let meant = meant.map(|meant| excerpt(&meant));
        UnitError {
            quantity: self,
            value: excerpt(text),
            problem: match problem {
                Problem::UnknownUnit if is_rate_in_bytes => Problem::Bytes,
                problem => problem,
            },
            example: meant.unwrap_or_else(|| self.examples.to_owned()),
        }
    }

    fn value(&self, text: &str) -> Result<u64, Problem> {
        let number_len = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(number_len);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return Err(Problem::NoNumber);
        }
        let per_unit = self.per_unit(unit)?;
        let whole: u64 = whole.parse().map_err(|_| Problem::TooLarge)?;
        whole
            .checked_mul(per_unit)
            .ok_or(Problem::TooLarge)?
            .checked_add(self.fraction_of(fraction, per_unit)?)
            .ok_or(Problem::TooLarge)
    }

    fn per_unit(&self, unit: &str) -> Result<u64, Problem> {
        if unit.is_empty() {
            return if self.unit_optional {
                Ok(1)
            } else {
                Err(Problem::NoUnit)
            };
        }
        self.units
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .map(|&(_, per_unit)| per_unit)
            .ok_or(Problem::UnknownUnit)
    }

    /// `0.fraction` of a unit in base units. It must be a whole number.
    fn fraction_of(&self, fraction: &str, per_unit: u64) -> Result<u64, Problem> {
        let digits = fraction.trim_end_matches('0');
        // More digits are refused, though a binary unit could need them: one byte is 2^-40 TiB, with 40 digits.
        let not_whole = Problem::NotWhole(self.base);
        if digits.len() > 18 {
            return Err(not_whole);
        }
        let numerator: u128 = format!("0{digits}").parse().map_err(|_| not_whole)?;
        let denominator = 10u128.pow(digits.len() as u32);
        let scaled = numerator * u128::from(per_unit);
        if scaled.is_multiple_of(denominator) {
            Ok((scaled / denominator) as u64)
        } else {
            Err(not_whole)
        }
    }

    /// The value in the largest unit of which it is a whole number.
    fn print(&self, value: u64) -> String {
        let (unit, per_unit) = self
            .units
            .iter()
            .filter(|(_, per_unit)| value != 0 && value.is_multiple_of(*per_unit))
            .max_by_key(|(_, per_unit)| *per_unit)
            .unwrap_or(&self.units[0]);
        format!("{}{unit}", value / per_unit)
    }
}

/// The beginning of a refused value, safe to print in one line.
pub fn excerpt(text: &str) -> String {
    const CHARACTERS_MAX: usize = 40;
    let mut start: String = text
        .chars()
        .take(CHARACTERS_MAX)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(CHARACTERS_MAX).is_some() {
        start.push_str("...");
    }
    start
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_read_as_tc_writes_them() {
        let bps = |text: &str| text.parse::<Rate>().unwrap().bps();
        assert_eq!(bps("10mbit"), 10_000_000);
        assert_eq!(bps("1.5gbit"), 1_500_000_000);
        assert_eq!(bps("8000000bit"), 8_000_000);
        assert_eq!(bps("500Kbit"), 500_000);
        assert_eq!(Rate::from_bps(10_500_000).to_string(), "10500kbit");
    }

    #[test]
    fn sizes_read_in_both_kinds_of_unit() {
        let bytes = |text: &str| text.parse::<Size>().unwrap().bytes();
        assert_eq!(bytes("64KiB"), 65_536);
        assert_eq!(bytes("2MB"), 2_000_000);
        assert_eq!(bytes("512"), 512);
        assert_eq!(bytes("1.5kib"), 1_536);
        assert_eq!(bytes("0"), 0);
        assert_eq!(Size::from_bytes(65_536).to_string(), "64KiB");
        assert_eq!(Size::from_bytes(0).to_string(), "0B");
    }

    #[test]
    fn spans_read_to_the_nanosecond() {
        let duration = |text: &str| text.parse::<Span>().unwrap().duration();
        assert_eq!(duration("500ms"), Duration::from_millis(500));
        assert_eq!(duration("1.5s"), Duration::from_millis(1500));
        assert_eq!(duration("3min"), Duration::from_secs(180));
        assert_eq!(duration("0.000000001s"), Duration::from_nanos(1));
        let printed = Span::from_duration(Duration::from_millis(1500)).to_string();
        assert_eq!(printed, "1500ms");
    }

    #[test]
    fn a_refusal_names_the_value_the_reason_and_what_would_be_right() {
        let refusal = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert_eq!(
            refusal("10mbits"),
            "rate `10mbits`: has an unknown unit; write it like 10mbit"
        );
        assert!(refusal("10").contains("has no unit"));
        assert!(refusal("").contains("does not start with a number"));
        assert!(refusal("-1mbit").contains("does not start with a number"));
        assert!(refusal("1..5mbit").contains("does not start with a number"));
        assert!(refusal("0.5bit").contains("no whole number of bits"));
        assert!(refusal("0mbit").contains("above 0"));
        assert!(refusal("99999999999tbit").contains("too large"));
        assert!(refusal("1\nbit").contains("`1\\nbit`"));
        assert!(refusal(&"9".repeat(1000)).len() < 200);
    }

    #[test]
    fn quantities_are_text_in_a_configuration() {
        let rate: Rate = serde_json::from_str("\"10mbit\"").unwrap();
        assert_eq!(serde_json::to_string(&rate).unwrap(), "\"10mbit\"");
        let error = serde_json::from_str::<Span>("\"2\"").unwrap_err();
        assert!(error.to_string().contains("time `2`: has no unit"));
        let error = serde_json::from_str::<Span>("2").unwrap_err();
        let told = "time `2`: has no unit; write it like \"2s\"";
        assert!(error.to_string().starts_with(told), "{error}");
        assert_eq!(serde_json::from_str::<Size>("512").unwrap(), Size(512));
    }

    proptest! {
        #[test]
        fn every_value_reads_back(value in 1..=u64::MAX) {
            let (rate, size, span) = (Rate(value), Size(value), Span(value));
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            prop_assert_eq!(size.to_string().parse(), Ok(size));
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }

        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in any::<String>()) {
            if let Err(error) = text.parse::<Size>() {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }

        #[test]
        fn fractions_are_exact(whole in 0..1000u64, thousandths in 0..1000u64) {
            let text = format!("{whole}.{thousandths:03}s");
            let nanoseconds = whole * 1_000_000_000 + thousandths * 1_000_000;
            prop_assert_eq!(text.parse(), Ok(Span(nanoseconds)));
        }
    }
}
