//! The head of a response on the disk: one file beside that of the body.
//!
//! ```text
//! shortline-response 1 CRC BYTES     the checksum of what follows, as eight hexadecimal digits, and its length
//! {"name":...}                       the head as JSON; bytes of field values are written as the characters U+0000 to U+00FF
//! ```
//!
//! A machine that lost power may leave any bytes here, so nothing is believed: [`Head::parse`] refuses what it cannot read back as it was
//! written. The body has a checksum, too. It is compared where the machine has been started anew since the body was written, as a body
//! that is whole for the running kernel may not have reached the disk.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use flate2::Crc;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

/// The largest head. A response with a larger one is not written.
pub const HEAD_BYTES_MAX: usize = 1 << 20;
/// What the first line begins with. Another version has another number.
const MAGIC: &str = "shortline-response 1 ";
/// The longest first line.
const FIRST_LINE_BYTES_MAX: usize = 64;
/// The end of the year 9999 in milliseconds. No sum with a time of a response overflows below it.
const RECEIVED_MS_MAX: u64 = 253_402_300_799_000;

/// What is known of a response besides its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The name of the requests that it answers.
    pub name: String,
    /// The name with the values of the fields that it varies by.
    pub variant: String,
    /// The fields that it varies by.
    pub varies: Arc<[HeaderName]>,
    /// Its status.
    pub status: StatusCode,
    /// Its fields, without the length.
    pub headers: HeaderMap,
    /// When it came, or was confirmed last; in whole milliseconds.
    pub received: SystemTime,
    /// Its body.
    pub body: BodyMark,
}

/// What tells whether a body is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyMark {
    /// Its bytes.
    pub bytes: u64,
    /// Their checksum.
    pub crc: u32,
    /// The start of the machine after which it was written.
    pub boot: String,
}

/// The head as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    /// What the variant's name has besides.
    values: String,
    varies: Vec<String>,
    status: u16,
    fields: Vec<(String, String)>,
    received_ms: u64,
    body: BodyMark,
}

/// Bytes that are no head, or not one of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no head of a response, or was not written to its end")]
pub struct NoHead;

/// The start of this machine, as far as the kernel tells it.
pub fn boot() -> &'static str {
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        let told = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        told.map(|id| id.trim().to_owned()).unwrap_or_default()
    });
    &BOOT
}

/// The checksum of some bytes.
pub fn crc_of(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

impl BodyMark {
    /// Whether the body must be read to know that it is whole.
    pub fn is_doubtful(&self) -> bool {
        self.boot.is_empty() || self.boot != boot()
    }
}

impl Head {
    /// The head in these bytes.
    ///
    /// # Errors
    /// [`NoHead`]
    pub fn parse(bytes: &[u8]) -> Result<Self, NoHead> {
        let json = body_of(bytes).ok_or(NoHead)?;
        let written: Written = serde_json::from_slice(json).map_err(|_| NoHead)?;
        Self::of(written).ok_or(NoHead)
    }

    /// The bytes of its file. `None`: there are too many.
    pub fn render(&self) -> Option<Vec<u8>> {
        let fields = self.headers.iter();
        let fields = fields.map(|(name, value)| (name.to_string(), to_text(value.as_bytes())));
        let since = self.received.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let written = Written {
            values: self.variant.strip_prefix(self.name.as_str())?.to_owned(),
            name: self.name.clone(),
            varies: self.varies.iter().map(HeaderName::to_string).collect(),
            status: self.status.as_u16(),
            fields: fields.collect(),
            received_ms: u64::try_from(since.as_millis()).ok()?,
            body: self.body.clone(),
        };
        let bytes = with_first_line(&serde_json::to_vec(&written).ok()?);
        (bytes.len() <= HEAD_BYTES_MAX).then_some(bytes)
    }

    fn of(written: Written) -> Option<Self> {
        if written.received_ms > RECEIVED_MS_MAX || !is_values(&written.values) {
            return None;
        }
        let name_of = |name: &String| HeaderName::from_bytes(name.as_bytes()).ok();
        let varies: Option<Vec<HeaderName>> = written.varies.iter().map(name_of).collect();
        let mut headers = HeaderMap::new();
        for (name, value) in &written.fields {
            let value = HeaderValue::from_bytes(&to_bytes(value)?).ok()?;
            headers.try_append(name_of(name)?, value).ok()?;
        }
        Some(Self {
            variant: format!("{}{}", written.name, written.values),
            name: written.name,
            varies: varies?.into(),
            status: StatusCode::from_u16(written.status).ok()?,
            headers,
            received: SystemTime::UNIX_EPOCH + Duration::from_millis(written.received_ms),
            body: written.body,
        })
    }
}

/// A head as JSON behind the line that belongs before it.
pub fn with_first_line(json: &[u8]) -> Vec<u8> {
    let line = format!("{MAGIC}{:08x} {}\n", crc_of(json), json.len());
    [line.as_bytes(), json].concat()
}

/// What follows the first line, if the line fits it.
fn body_of(bytes: &[u8]) -> Option<&[u8]> {
    let line_end = bytes
        .iter()
        .take(FIRST_LINE_BYTES_MAX)
        .position(|byte| *byte == b'\n')?;
    let (line, rest) = (&bytes[..line_end], &bytes[line_end + 1..]);
    let (crc, length) = std::str::from_utf8(line)
        .ok()?
        .strip_prefix(MAGIC)?
        .split_once(' ')?;
    let is_whole =
        length.parse() == Ok(rest.len()) && u32::from_str_radix(crc, 16) == Ok(crc_of(rest));
    (is_whole && bytes.len() <= HEAD_BYTES_MAX).then_some(rest)
}

/// Values begin on a line of their own.
fn is_values(text: &str) -> bool {
    text.is_empty() || text.starts_with('\n')
}

fn to_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn to_bytes(text: &str) -> Option<Vec<u8>> {
    text.chars()
        .map(|character| u8::try_from(character).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn head(
        name: &str,
        values: &str,
        fields: &[(String, Vec<u8>)],
        received_ms: u64,
        bytes: u64,
    ) -> Head {
        let pair = |(name, value): &(String, Vec<u8>)| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            (name, HeaderValue::from_bytes(value).unwrap())
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields.iter().map(pair) {
            headers.append(name, value);
        }
        Head {
            name: name.to_owned(),
            variant: format!("{name}{values}"),
            varies: [HeaderName::from_static("accept")].into(),
            status: StatusCode::NOT_FOUND,
            headers,
            received: SystemTime::UNIX_EPOCH + Duration::from_millis(received_ms),
            body: BodyMark {
                bytes,
                crc: 7,
                boot: boot().to_owned(),
            },
        }
    }

    #[test]
    fn a_head_that_is_cut_or_changed_is_none() {
        let fields = [
            ("x-a".to_owned(), b"caf\xe9".to_vec()),
            ("x-a".to_owned(), b"2".to_vec()),
        ];
        let head = head(
            "http://a/\n/x",
            "\naccept\n 1",
            &fields,
            1_800_000_000_123,
            9,
        );
        let bytes = head.render().unwrap();
        assert_eq!(Head::parse(&bytes), Ok(head));
        for end in 0..bytes.len() {
            assert_eq!(Head::parse(&bytes[..end]), Err(NoHead), "{end}");
        }
        assert_eq!(Head::parse(&[&bytes[..], b"x"].concat()), Err(NoHead));
        let other = String::from_utf8(bytes)
            .unwrap()
            .replace("response 1", "response 2");
        assert_eq!(Head::parse(other.as_bytes()), Err(NoHead));
    }

    #[test]
    fn a_value_that_no_field_may_have_is_refused_though_its_checksum_fits() {
        let json = concat!(
            r#"{"name":"a","values":"","varies":[],"status":200,"fields":[["x","a\r\nb"]],"#,
            r#""received_ms":1,"body":{"bytes":1,"crc":1,"boot":""}}"#
        );
        let parse = |json: &str| Head::parse(&with_first_line(json.as_bytes()));
        assert_eq!(parse(json), Err(NoHead));
        let sound = json.replace("\\r\\n", "");
        assert!(parse(&sound).is_ok());
        for (from, to) in [
            ("\"status\":200", "\"status\":99"),
            ("\"received_ms\":1", "\"received_ms\":18446744073709551615"),
            ("\"values\":\"\"", "\"values\":\"x\""),
            ("\"varies\":[]", "\"varies\":[\" \"]"),
        ] {
            assert_eq!(parse(&sound.replace(from, to)), Err(NoHead), "{to}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            name in "[ -~\n\u{e9}]{0,60}",
            values in "(\n[ -~\n]{0,40})?",
            fields in prop::collection::vec(("[a-z][a-z0-9-]{0,12}", prop::collection::vec(prop::sample::select(
                (0x20u8..=0xff).filter(|byte| *byte != 0x7f).collect::<Vec<_>>()), 0..20)), 0..8),
            received_ms in 0..=RECEIVED_MS_MAX,
            bytes: u64,
        ) {
            // Spaces around a value are no part of it for a parser of HTTP, but they are kept here.
            let head = head(&name, &values, &fields, received_ms, bytes);
            prop_assert_eq!(Head::parse(&head.render().unwrap()), Ok(head));
        }

        #[test]
        fn no_bytes_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Head::parse(&bytes);
            let _ = Head::parse(&with_first_line(&bytes));
        }
    }
}
