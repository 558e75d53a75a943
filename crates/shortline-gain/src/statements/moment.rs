//! When a statement ended, as logs write it: `2026-11-26 16:43:35.123 UTC` anywhere in a line's prefix, `1795711415.123` (`%n`),
//! `2026-11-26T16:43:35.123456Z` of MySQL, `261126 16:43:35` of MariaDB.

use time::{Date, Month, PrimitiveDateTime, Time, UtcOffset};

/// The end of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// Microseconds since 1970 in UTC.
    pub(crate) unix_us: u64,
    /// Whether only the second is known.
    pub(crate) is_whole: bool,
    /// A zone by a name that is not known, and was taken for UTC.
    pub(crate) unknown_zone: Option<String>,
}

const US_PER_S: u64 = 1_000_000;
/// The longest name of a zone.
const ZONE_BYTES_MAX: usize = 8;

/// Names of zones whose offset is clear, in minutes. Others are numbers, or ambiguous.
const ZONES: [(&str, i16); 24] = [
    ("UTC", 0),
    ("GMT", 0),
    ("Z", 0),
    ("WET", 0),
    ("WEST", 60),
    ("BST", 60),
    ("CET", 60),
    ("CEST", 120),
    ("EET", 120),
    ("EEST", 180),
    ("MSK", 180),
    ("IST", 330),
    ("HKT", 480),
    ("JST", 540),
    ("KST", 540),
    ("AEST", 600),
    ("AEDT", 660),
    ("EST", -300),
    ("EDT", -240),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PST", -480),
    ("PDT", -420),
];

/// Whether a line begins as a record of csvlog: a time, and a comma behind it.
pub(super) fn begins_record(line: &[u8]) -> bool {
    let Some((_, rest)) = date_and_time(line) else {
        return false;
    };
    let comma = rest
        .iter()
        .take(ZONE_BYTES_MAX + 8)
        .position(|b| *b == b',');
    comma.is_some_and(|at| rest[..at].iter().all(|byte| !b"\"[:(".contains(byte)))
}

/// The first time in a prefix.
pub(super) fn of_prefix(prefix: &[u8]) -> Option<End> {
    let found = (0..prefix.len()).find_map(|at| {
        let is_start = at == 0 || !prefix[at - 1].is_ascii_digit();
        is_start.then(|| of_text(&prefix[at..])).flatten()
    });
    found.or_else(|| {
        let words = prefix.split(|byte| !(byte.is_ascii_digit() || *byte == b'.'));
        words.filter(|word| word.len() >= 10).find_map(of_epoch)
    })
}

/// A time at the beginning of a text, with its zone.
pub(super) fn of_text(text: &[u8]) -> Option<End> {
    let (time, rest) = date_and_time(text)?;
    let (fraction_us, is_whole, rest) = fraction_us(rest);
    let zone = rest.strip_prefix(b" ").unwrap_or(rest);
    let (offset_minutes, unknown_zone) = offset(zone);
    end(time, fraction_us, is_whole, offset_minutes, unknown_zone)
}

/// `261126 16:43:35`, in the server's zone, which is taken for UTC.
pub(super) fn of_short(text: &[u8]) -> Option<End> {
    let (date, time) = text.trim_ascii().split_at_checked(6)?;
    let (year, month, day) = (
        number(&date[..2])?,
        number(&date[2..4])?,
        number(&date[4..])?,
    );
    let time = String::from_utf8_lossy(time);
    let time = time.split_ascii_whitespace().next()?;
    let mut parts = time.split(':').map(|part| part.parse::<u8>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let date = calendar(2_000 + i32::try_from(year).ok()?, month, day)?;
    let time = PrimitiveDateTime::new(date, Time::from_hms(hour, minute, second).ok()?);
    end(time, 0, true, 0, None)
}

/// Seconds since 1970, with or without a fraction.
pub(super) fn of_epoch(text: &[u8]) -> Option<End> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (seconds, rest) = text.split_at(digits);
    let seconds = number(seconds).filter(|_| digits <= 10)?;
    let (fraction_us, is_whole, _) = fraction_us(rest);
    Some(End {
        unix_us: seconds * US_PER_S + fraction_us,
        is_whole,
        unknown_zone: None,
    })
}

fn end(
    time: PrimitiveDateTime,
    fraction_us: u64,
    is_whole: bool,
    offset_minutes: i16,
    unknown_zone: Option<String>,
) -> Option<End> {
    let seconds = time.assume_utc().unix_timestamp() - i64::from(offset_minutes) * 60;
    // Beyond 2106 and before 1970 there is no log.
    let seconds = u32::try_from(seconds).ok()?;
    Some(End {
        unix_us: u64::from(seconds) * US_PER_S + fraction_us,
        is_whole,
        unknown_zone,
    })
}

/// `2026-11-26 16:43:35`, or with a T, and what follows.
fn date_and_time(text: &[u8]) -> Option<(PrimitiveDateTime, &[u8])> {
    const FORM: &[u8] = b"0000-00-00 00:00:00";
    let (time, rest) = text.split_at_checked(FORM.len())?;
    let fits = |(form, byte): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        b' ' => matches!(byte, b' ' | b'T'),
        other => byte == other,
    };
    if !FORM.iter().zip(time).all(fits) {
        return None;
    }
    let part = |from: usize, to: usize| number(&time[from..to]);
    let date = calendar(i32::try_from(part(0, 4)?).ok()?, part(5, 7)?, part(8, 10)?)?;
    let small = |value: Option<u64>| value.and_then(|value| u8::try_from(value).ok());
    // A leap second is told as the one before it.
    let second = small(part(17, 19))?.min(59);
    let of_day = Time::from_hms(small(part(11, 13))?, small(part(14, 16))?, second).ok()?;
    Some((PrimitiveDateTime::new(date, of_day), rest))
}

fn calendar(year: i32, month: u64, day: u64) -> Option<Date> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok()
}

/// Microseconds of `.123`, whether there are none, and what follows.
fn fraction_us(text: &[u8]) -> (u64, bool, &[u8]) {
    let Some(rest) = text.strip_prefix(b".") else {
        return (0, true, text);
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let shown = &rest[..digits.min(6)];
    let scale = 10u64.pow(6 - shown.len() as u32);
    (
        number(shown).unwrap_or(0) * scale,
        digits == 0,
        &rest[digits..],
    )
}

/// Minutes east of Greenwich; a name that is not known with that.
fn offset(zone: &[u8]) -> (i16, Option<String>) {
    if let [sign @ (b'+' | b'-'), rest @ ..] = zone {
        let digits: Vec<u8> = rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b':')
            .filter(|byte| byte.is_ascii_digit())
            .copied()
            .collect();
        let of = |digits: &[u8]| number(digits).map_or(0, |value| value as i16);
        let minutes = match digits.len() {
            2 => of(&digits) * 60,
            4 => of(&digits[..2]) * 60 + of(&digits[2..]),
            _ => 0,
        };
        let is_real = UtcOffset::from_whole_seconds(i32::from(minutes) * 60).is_ok();
        let minutes = if is_real { minutes } else { 0 };
        return (if *sign == b'-' { -minutes } else { minutes }, None);
    }
    let letters = zone
        .iter()
        .take_while(|byte| byte.is_ascii_uppercase())
        .count();
    let name = String::from_utf8_lossy(&zone[..letters.min(ZONE_BYTES_MAX)]).into_owned();
    match ZONES.iter().find(|(known, _)| *known == name) {
        Some((_, minutes)) => (*minutes, None),
        None if letters >= 2 => (0, Some(name)),
        None => (0, None),
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const AT: u64 = 1_795_711_415;

    fn at(text: &str) -> Option<(u64, bool)> {
        let end = of_prefix(text.as_bytes())?;
        Some((end.unix_us, end.is_whole))
    }

    #[test]
    fn times_are_found_in_prefixes_of_all_sorts() {
        let with_ms = Some((AT * 1_000_000 + 123_000, false));
        assert_eq!(at("2026-11-26 16:43:35.123 UTC [7] LOG"), with_ms);
        assert_eq!(
            at("user=u,db=d,time=2026-11-26 17:43:35.123 CET LOG"),
            with_ms
        );
        assert_eq!(at("[7]: 2026-11-26 11:13:35.123 -0530 LOG"), with_ms);
        assert_eq!(at("u@d 1795711415.123 LOG"), with_ms);
        assert_eq!(
            at("2026-11-26 16:43:35 UTC::@:[1]:LOG"),
            Some((AT * 1_000_000, true))
        );
        assert_eq!(
            at("2026-11-26T17:43:35.000123+01:00"),
            Some((AT * 1_000_000 + 123, false))
        );
        for none in [
            "",
            "LOG",
            "2026-13-26 16:43:35",
            "1969-11-26 16:43:35 UTC",
            "999999999999",
        ] {
            assert_eq!(at(none), None, "{none}");
        }
    }

    #[test]
    fn a_zone_that_nobody_knows_is_told() {
        let end = of_text(b"2026-11-26 16:43:35.123 QQT").unwrap();
        assert_eq!(
            (end.unix_us / 1_000_000, end.unknown_zone.as_deref()),
            (AT, Some("QQT"))
        );
    }

    #[test]
    fn mariadb_writes_six_digits() {
        assert_eq!(
            of_short(b"261126 16:43:35").unwrap().unix_us,
            AT * 1_000_000
        );
        assert_eq!(
            of_short(b"261126  6:43:35").unwrap().unix_us,
            (AT - 36_000) * 1_000_000
        );
        assert_eq!(of_short(b"26112"), None);
    }

    #[test]
    fn only_records_have_a_comma_behind_their_time() {
        assert!(begins_record(b"2026-11-26 16:43:35.123 UTC,\"u\",\"d\",7"));
        assert!(!begins_record(
            b"2026-11-26 16:43:35.123 UTC [7] LOG:  a, b"
        ));
        assert!(!begins_record(b"SELECT 1, 2"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (of_prefix(&text), of_short(&text), begins_record(&text));
        }
    }
}
