//! Text of an access log: bytes that clients send, escaped, and dates.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Appends bytes so that they cannot end a quoted field or a line: quotes, backslashes, control characters and bytes
/// beyond ASCII become `\xHH`.
pub fn escape(line: &mut String, text: &[u8]) {
    for byte in text {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                // Writing to a String cannot fail.
                let _ = write!(line, "\\x{byte:02X}");
            }
            _ => line.push(char::from(*byte)),
        }
    }
}

/// The text that bytes are: UTF-8, or else ISO-8859-1, as which a field may be read (RFC 9110, 5.5).
pub fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// `21/Nov/2026:10:00:00 +0000`, from the HTTP date of the same moment: `Sat, 21 Nov 2026 10:00:00
/// GMT`, whose fields have fixed places.
pub fn common_time(time: SystemTime) -> String {
    let http = httpdate::fmt_http_date(time);
    let (day, month, year, clock) = (&http[5..7], &http[8..11], &http[12..16], &http[17..25]);
    format!("{day}/{month}/{year}:{clock} +0000")
}

/// `2026-11-21T10:00:00.123Z` (RFC 3339).
pub fn iso_time(time: SystemTime) -> String {
    format!("{}.{:03}Z", iso_seconds(time), millis(time))
}

/// `2026-11-21T10:00:00`.
pub fn iso_seconds(time: SystemTime) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let http = httpdate::fmt_http_date(time);
    let month = MONTHS.find(&http[8..11]).map_or(0, |at| at / 3 + 1);
    let (day, year, clock) = (&http[5..7], &http[12..16], &http[17..25]);
    format!("{year}-{month:02}-{day}T{clock}")
}

/// `1795255200.123`: seconds since 1970.
pub fn unix_time(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:03}", since.as_secs(), since.subsec_millis())
}

fn millis(time: SystemTime) -> u32 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.subsec_millis()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_moment_in_all_forms() {
        let time = UNIX_EPOCH + Duration::from_millis(951_827_696_007);
        assert_eq!(common_time(time), "29/Feb/2000:12:34:56 +0000");
        assert_eq!(iso_time(time), "2000-02-29T12:34:56.007Z");
        assert_eq!(unix_time(time), "951827696.007");
    }

    #[test]
    fn bytes_that_are_no_utf_8_are_latin_1() {
        assert_eq!(decoded("é".as_bytes()), "é");
        assert_eq!(decoded(b"\xe9\xff"), "é\u{ff}");
    }
}
