//! Conditional requests (RFC 9110 13) in the order of 13.2.2.
//!
//! If-Match by strong comparison, or else If-Unmodified-Since: 412 if false. Then If-None-Match by
//! weak comparison, or else If-Modified-Since: 304 if false. If-Range by strong comparison. A date
//! is ignored if it cannot be parsed or if the file has no usable date (13.1.3, 13.1.4). An entity
//! tag that cannot be parsed matches nothing.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{
    HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE,
};

/// What a client may compare its copy against.
#[derive(Clone, Debug)]
pub struct Validators {
    /// The entity tag, quotes included.
    pub etag: HeaderValue,
    /// The last modification in whole seconds. `None` if it lies in the future or before 1970.
    pub modified: Option<SystemTime>,
}

/// The result of the conditions of a GET or HEAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Answer as if there were no conditions.
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

impl Validators {
    /// The entity tag in its parts.
    fn tag(&self) -> EntityTag<'_> {
        let etag = self.etag.as_bytes();
        let (weak, opaque) = match etag.strip_prefix(b"W/") {
            Some(opaque) => (true, opaque),
            None => (false, etag),
        };
        EntityTag { weak, opaque }
    }
}

/// Evaluates the conditions of a GET or HEAD.
pub fn evaluate(headers: &HeaderMap, validators: &Validators) -> Verdict {
    let own = validators.tag();
    let holds = if headers.contains_key(IF_MATCH) {
        any_tag(headers, IF_MATCH, |tag| !tag.weak && tag == own)
    } else {
        !is_newer(headers, IF_UNMODIFIED_SINCE, validators).unwrap_or(false)
    };
    if !holds {
        return Verdict::Failed;
    }
    let changed = if headers.contains_key(IF_NONE_MATCH) {
        !any_tag(headers, IF_NONE_MATCH, |tag| tag.opaque == own.opaque)
    } else {
        is_newer(headers, IF_MODIFIED_SINCE, validators).unwrap_or(true)
    };
    if changed {
        Verdict::Proceed
    } else {
        Verdict::NotModified
    }
}

/// Whether a Range field counts: there is no If-Range, or it names exactly this representation. A
/// date must match exactly and be at least a second old at `now`. Otherwise it is not a strong
/// validator (8.8.2.2).
pub fn if_range_holds(headers: &HeaderMap, validators: &Validators, now: SystemTime) -> bool {
    let mut values = headers.get_all(IF_RANGE).iter();
    let Some(value) = values.next() else {
        return true;
    };
    if values.next().is_some() {
        return false;
    }
    let value = value.as_bytes().trim_ascii();
    if value.starts_with(b"\"") || value.starts_with(b"W/") {
        return !validators.tag().weak && value == validators.etag.as_bytes();
    }
    match (parse_date(value), validators.modified) {
        (Some(date), Some(modified)) => {
            date == modified && modified + Duration::from_secs(1) <= now
        }
        _ => false,
    }
}

/// Parses an HTTP date in any of its three forms.
pub fn parse_date(value: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()
}

/// An entity tag (8.8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// Whether it was marked `W/`.
    pub weak: bool,
    /// The opaque part, quotes included.
    pub opaque: &'a [u8],
}

/// The entity tags of a field line, up to the first one that cannot be parsed.
pub fn entity_tags(value: &[u8]) -> impl Iterator<Item = EntityTag<'_>> {
    let mut rest = value;
    std::iter::from_fn(move || {
        rest = skip_separators(rest);
        let (tag, after) = split_tag(rest)?;
        rest = after;
        Some(tag)
    })
}

fn any_tag(
    headers: &HeaderMap,
    name: HeaderName,
    is_match: impl Fn(EntityTag<'_>) -> bool,
) -> bool {
    headers.get_all(name).iter().any(|value| {
        value.as_bytes().trim_ascii() == b"*" || entity_tags(value.as_bytes()).any(&is_match)
    })
}

/// Whether the file is newer than the date in a field. `None` if there is nothing to compare.
fn is_newer(headers: &HeaderMap, name: HeaderName, validators: &Validators) -> Option<bool> {
    let date = parse_date(headers.get(name)?.as_bytes().trim_ascii())?;
    Some(validators.modified? > date)
}

fn skip_separators(value: &[u8]) -> &[u8] {
    let is_separator = |byte: &u8| matches!(byte, b' ' | b'\t' | b',');
    let skipped = value.iter().take_while(|byte| is_separator(byte)).count();
    &value[skipped..]
}

fn split_tag(value: &[u8]) -> Option<(EntityTag<'_>, &[u8])> {
    let (weak, value) = match value.strip_prefix(b"W/") {
        Some(value) => (true, value),
        None => (false, value),
    };
    let inner = value.strip_prefix(b"\"")?;
    let is_inner = |byte: &u8| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..);
    let len = inner.iter().take_while(|byte| is_inner(byte)).count();
    if inner.get(len) != Some(&b'"') {
        return None;
    }
    let (opaque, rest) = value.split_at(len + 2);
    let ends = skip_separators(rest).len() < rest.len() || rest.is_empty();
    ends.then_some((EntityTag { weak, opaque }, rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn validators() -> Validators {
        Validators {
            etag: HeaderValue::from_static("\"a\""),
            modified: parse_date(DATE.as_bytes()),
        }
    }

    fn headers(fields: &[(HeaderName, &str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()))
            .collect()
    }

    fn verdict(fields: &[(HeaderName, &str)]) -> Verdict {
        evaluate(&headers(fields), &validators())
    }

    #[test]
    fn if_match_is_strong() {
        assert_eq!(verdict(&[(IF_MATCH, "\"a\"")]), Verdict::Proceed);
        assert_eq!(verdict(&[(IF_MATCH, "\"b\", \"a\"")]), Verdict::Proceed);
        assert_eq!(verdict(&[(IF_MATCH, "*")]), Verdict::Proceed);
        for value in ["W/\"a\"", "\"b\"", "a", "\"a", "\"a\"x", ""] {
            assert_eq!(verdict(&[(IF_MATCH, value)]), Verdict::Failed, "{value}");
        }
    }

    #[test]
    fn a_weak_tag_of_ours_is_for_if_none_match_only() {
        let weak = Validators {
            etag: HeaderValue::from_static("W/\"a\""),
            modified: None,
        };
        let verdict = |name, value| evaluate(&headers(&[(name, value)]), &weak);
        for value in ["\"a\"", "W/\"a\""] {
            assert_eq!(verdict(IF_NONE_MATCH, value), Verdict::NotModified);
            assert_eq!(verdict(IF_MATCH, value), Verdict::Failed);
            let asked = headers(&[(IF_RANGE, value)]);
            assert!(!if_range_holds(&asked, &weak, SystemTime::now()));
        }
        assert_eq!(verdict(IF_NONE_MATCH, "\"b\""), Verdict::Proceed);
    }

    #[test]
    fn if_none_match_is_weak() {
        for value in ["\"a\"", "W/\"a\"", "*", "\"x,y\" , W/\"a\"", ",,\"a\",,"] {
            assert_eq!(
                verdict(&[(IF_NONE_MATCH, value)]),
                Verdict::NotModified,
                "{value}"
            );
        }
        for value in ["\"b\"", "a", "", "x, \"a\""] {
            assert_eq!(
                verdict(&[(IF_NONE_MATCH, value)]),
                Verdict::Proceed,
                "{value}"
            );
        }
    }

    #[test]
    fn dates() {
        assert_eq!(verdict(&[(IF_MODIFIED_SINCE, DATE)]), Verdict::NotModified);
        assert_eq!(verdict(&[(IF_MODIFIED_SINCE, AFTER)]), Verdict::NotModified);
        assert_eq!(verdict(&[(IF_MODIFIED_SINCE, BEFORE)]), Verdict::Proceed);
        assert_eq!(
            verdict(&[(IF_MODIFIED_SINCE, "yesterday")]),
            Verdict::Proceed
        );
        assert_eq!(verdict(&[(IF_UNMODIFIED_SINCE, DATE)]), Verdict::Proceed);
        assert_eq!(verdict(&[(IF_UNMODIFIED_SINCE, BEFORE)]), Verdict::Failed);
        assert_eq!(verdict(&[(IF_UNMODIFIED_SINCE, "0")]), Verdict::Proceed);
        let obsolete = [(IF_MODIFIED_SINCE, "Sunday, 06-Nov-94 08:49:37 GMT")];
        assert_eq!(verdict(&obsolete), Verdict::NotModified);
    }

    #[test]
    fn without_a_date_dates_are_ignored() {
        let undated = Validators {
            modified: None,
            ..validators()
        };
        for name in [IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
            assert_eq!(
                evaluate(&headers(&[(name, BEFORE)]), &undated),
                Verdict::Proceed
            );
        }
    }

    #[test]
    fn tags_win_over_dates_and_preconditions_over_caches() {
        let tag = (IF_NONE_MATCH, "\"b\"");
        assert_eq!(verdict(&[tag, (IF_MODIFIED_SINCE, DATE)]), Verdict::Proceed);
        let tag = (IF_MATCH, "\"a\"");
        assert_eq!(
            verdict(&[tag, (IF_UNMODIFIED_SINCE, BEFORE)]),
            Verdict::Proceed
        );
        let failing = [(IF_MATCH, "\"b\""), (IF_NONE_MATCH, "\"a\"")];
        assert_eq!(verdict(&failing), Verdict::Failed);
        let both = [(IF_UNMODIFIED_SINCE, DATE), (IF_NONE_MATCH, "\"a\"")];
        assert_eq!(verdict(&both), Verdict::NotModified);
    }

    #[test]
    fn lines_add_up() {
        let mut fields = headers(&[(IF_NONE_MATCH, "\"b\"")]);
        fields.append(IF_NONE_MATCH, HeaderValue::from_static("\"a\""));
        assert_eq!(evaluate(&fields, &validators()), Verdict::NotModified);
    }

    #[test]
    fn if_range_is_strong() {
        let later = parse_date(AFTER.as_bytes()).unwrap();
        let holds =
            |value: &str| if_range_holds(&headers(&[(IF_RANGE, value)]), &validators(), later);
        assert!(if_range_holds(&HeaderMap::new(), &validators(), later));
        assert!(holds("\"a\"") && holds(DATE));
        for value in ["W/\"a\"", "\"b\"", BEFORE, AFTER, "x", "*", ""] {
            assert!(!holds(value), "{value}");
        }
        let now = validators().modified.unwrap();
        assert!(!if_range_holds(
            &headers(&[(IF_RANGE, DATE)]),
            &validators(),
            now
        ));
    }

    proptest! {
        #[test]
        fn own_dates_are_never_newer(seconds in 0u64..4_000_000_000, later in 0u64..1000) {
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            let date = httpdate::fmt_http_date(modified + Duration::from_secs(later));
            let validators = Validators { modified: Some(modified), ..validators() };
            let fields = headers(&[(IF_MODIFIED_SINCE, &date)]);
            prop_assert_eq!(evaluate(&fields, &validators), Verdict::NotModified);
            let fields = headers(&[(IF_UNMODIFIED_SINCE, &date)]);
            prop_assert_eq!(evaluate(&fields, &validators), Verdict::Proceed);
        }

        #[test]
        fn any_bytes_are_judged(value in any::<Vec<u8>>()) {
            for tag in entity_tags(&value) {
                prop_assert!(tag.opaque.len() >= 2 && tag.opaque.ends_with(b"\""));
            }
            let _date = parse_date(&value);
        }
    }
}
