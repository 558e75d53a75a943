//! Tags that frameworks append to statements: `/*action='show',route='%2Fbooks%2F%3Aid'*/`.
//!
//! Source: SQLCommenter's specification (OpenTelemetry). Keys and values are URL-encoded. Values
//! are in single quotes, with a backslash before quotes inside them. Pairs are separated by commas,
//! all in one comment at the statement's end. Two more forms are read. Some libraries put the comment
//! at the beginning. Rails' query logs before 7.1 have `key:value` without quotes by default.

use std::borrow::Cow;

use memchr::memmem;
use percent_encoding::percent_decode;

/// The longest comment that is read, in bytes.
const COMMENT_BYTES_MAX: usize = 4 << 10;

/// A statement and its tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tagged<'a> {
    /// The statement without the tags' comment.
    pub statement: &'a [u8],
    /// Its tags.
    pub tags: Tags<'a>,
}

/// The tags of a statement. Most have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags<'a> {
    comment: &'a [u8],
}

impl<'a> Tagged<'a> {
    /// Separates a statement from its tags. Reads only its two ends.
    pub fn new(sql: &'a [u8]) -> Self {
        at_end(sql).or_else(|| at_beginning(sql)).unwrap_or(Self {
            statement: sql,
            tags: Tags::default(),
        })
    }
}

impl<'a> Tags<'a> {
    /// The value of a tag, decoded.
    pub fn get(&self, key: &str) -> Option<Cow<'a, str>> {
        let mut pairs = Pairs(self.comment);
        let (_, value) = pairs.find(|(name, _)| is_key(name, key))?;
        Some(decoded(value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        Pairs(self.comment).next().is_none()
    }
}

fn at_end(sql: &[u8]) -> Option<Tagged<'_>> {
    let is_end = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';');
    let end = sql.iter().rposition(is_end)? + 1;
    let before = sql[..end].strip_suffix(b"*/")?;
    let nearest = before.len().saturating_sub(COMMENT_BYTES_MAX);
    let start = nearest + memmem::rfind(&before[nearest..], b"/*")?;
    tagged(&before[start + 2..], &sql[..start])
}

fn at_beginning(sql: &[u8]) -> Option<Tagged<'_>> {
    let comment = sql.trim_ascii_start().strip_prefix(b"/*")?;
    let nearest = &comment[..comment.len().min(COMMENT_BYTES_MAX)];
    let end = memmem::find(nearest, b"*/")?;
    tagged(&comment[..end], &comment[end + 2..])
}

/// The statement with the comment's tags. `None` if the comment has no tags.
fn tagged<'a>(comment: &'a [u8], statement: &'a [u8]) -> Option<Tagged<'a>> {
    let tags = Tags { comment };
    (!tags.is_empty()).then_some(Tagged { statement, tags })
}

/// Keys and values as written, without quotes. Ends at the first pair that is not well formed.
struct Pairs<'a>(&'a [u8]);

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.0.trim_ascii();
        let separator = text.iter().position(|byte| matches!(byte, b'=' | b':'))?;
        let key = text[..separator].trim_ascii_end();
        let is_word = |byte: &u8| byte.is_ascii_graphic() && !b"'\",;()!+*/".contains(byte);
        if key.is_empty() || !key.iter().all(is_word) {
            return None;
        }
        let rest = text[separator + 1..].trim_ascii_start();
        let (value, behind) = match rest.strip_prefix(b"'") {
            Some(quoted) => {
                let end = closing_quote(quoted)?;
                let behind = quoted[end + 1..].trim_ascii_start();
                (&quoted[..end], behind)
            }
            None if text[separator] == b'=' => return None,
            None => {
                let end = rest.iter().position(|&byte| byte == b',');
                let (value, behind) = rest.split_at(end.unwrap_or(rest.len()));
                (value.trim_ascii_end(), behind)
            }
        };
        self.0 = behind.strip_prefix(b",").unwrap_or_default();
        Some((key, value))
    }
}

fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'\'', b'\\', text.get(at..)?)?;
        if text[at] == b'\'' {
            return Some(at);
        }
        at += 2;
    }
}

fn is_key(written: &[u8], key: &str) -> bool {
    written == key.as_bytes() || (written.contains(&b'%') && decoded(written) == key)
}

/// Removes the backslashes before quotes, then decodes the URL encoding.
fn decoded(written: &[u8]) -> Cow<'_, str> {
    if written.contains(&b'\\') {
        let mut plain = Vec::with_capacity(written.len());
        let mut bytes = written.iter();
        while let Some(&byte) = bytes.next() {
            plain.push(if byte == b'\\' {
                *bytes.next().unwrap_or(&byte)
            } else {
                byte
            });
        }
        return Cow::Owned(percent_decode(&plain).decode_utf8_lossy().into_owned());
    }
    percent_decode(written).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn get(sql: &str, key: &str) -> Option<String> {
        Tagged::new(sql.as_bytes())
            .tags
            .get(key)
            .map(Cow::into_owned)
    }

    #[test]
    fn the_example_of_the_specification_is_read() {
        let sql = "SELECT * from FOO /*action='%2Fparam*d',controller='index',framework='spring',\
            traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01',\
            tracestate='congo%3Dt61rcWkgMzE%2Crojo%3D00f067aa0ba902b7'*/;\n";
        assert_eq!(get(sql, "action").unwrap(), "/param*d");
        assert_eq!(get(sql, "controller").unwrap(), "index");
        assert_eq!(
            get(sql, "tracestate").unwrap(),
            "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"
        );
        assert_eq!(get(sql, "route"), None);
        assert_eq!(Tagged::new(sql.as_bytes()).statement, b"SELECT * from FOO ");
    }

    #[test]
    fn quotes_keys_and_places_vary() {
        let escaped = r"select 1 /*route='it%27s \'here\''*/";
        assert_eq!(get(escaped, "route").unwrap(), "it's 'here'");
        assert_eq!(
            get("select 1 /*route%20parameter='a'*/", "route parameter").unwrap(),
            "a"
        );
        assert_eq!(
            get(" /* route = 'a' , b='c' */ select 1", "b").unwrap(),
            "c"
        );
        let rails = "select 1 /*application:Blog,controller:posts,action:index,line:a.rb:12*/";
        assert_eq!(get(rails, "controller").unwrap(), "posts");
        assert_eq!(get(rails, "line").unwrap(), "a.rb:12");
    }

    #[test]
    fn what_has_no_tags_stays_whole() {
        for sql in [
            "select 1",
            "select 1 /* a comment */",
            "select 1 /* see: rfc 1, (2) = 'x */",
            "/*! select */ 1",
            "/*+ hint=1 */ select 1",
            "select '/*a=''b''*/'",
            "*/",
            "/*",
            "",
        ] {
            let tagged = Tagged::new(sql.as_bytes());
            assert!(tagged.tags.get("route").is_none(), "{sql}");
            if !sql.contains("see:") {
                assert_eq!(tagged.statement, sql.as_bytes(), "{sql}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(value in "\\PC{0,20}") {
            use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
            let encoded = utf8_percent_encode(&value, NON_ALPHANUMERIC);
            let sql = format!("select 1 /*a='b',route='{encoded}'*/");
            prop_assert_eq!(get(&sql, "route").unwrap(), value);
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            prop_assert!(Tagged::new(&bytes).statement.len() <= bytes.len());
        }

        #[test]
        fn any_comment_is_read(comment in r"[ab=:',\\%2/*]{0,30}") {
            let sql = format!("/*{comment}*/");
            let _ = Tagged::new(sql.as_bytes()).tags.get("a");
        }
    }
}
