//! Request targets (RFC 9112 3.2) to paths beneath the root.
//!
//! A target is accepted only if it spells one canonical path: percent-decoded UTF-8 without control
//! characters, made of segments that are plain names, and no dotfiles. Such a path, joined to the
//! root, lies beneath it. The kernel checks that once more when the file is opened.
//!
//! | target | answer |
//! |---|---|
//! | `.`, `..`, however encoded; bad `%xx`; control characters, `%00`, spaces; not UTF-8 | 400 |
//! | longer than [`TARGET_BYTES_MAX`], a path longer than [`PATH_BYTES_MAX`] | 400 |
//! | not `/path`, `http://host/path`, `https://host/path` or (OPTIONS) `*` | 400 |
//! | `%2F`, a backslash, a segment that starts with a dot | 404 |
//!
//! `.well-known` (RFC 8615) is the one segment with a dot that is served, and only as the first
//! segment. Repeated slashes count as one. UTF-8 sent without percent-encoding is taken as it is.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Longest target accepted, in bytes as sent.
pub const TARGET_BYTES_MAX: usize = 16 * 1024;
/// Longest path accepted, in decoded bytes: Linux's `PATH_MAX` with room for an index name.
pub const PATH_BYTES_MAX: usize = 3840;

/// Everything except RFC 3986's unreserved characters is encoded, so that a name can neither end a
/// path nor look like a scheme.
const ENCODED_IN_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');
const ENCODED_IN_PATH: &AsciiSet = &ENCODED_IN_SEGMENT.remove(b'/');

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// `*`: the server as a whole.
    Asterisk,
    /// A path, with the query as sent.
    Resource {
        /// The canonical path.
        path: FilePath<'a>,
        /// What follows the first `?`, printable ASCII or UTF-8.
        query: Option<&'a str>,
    },
}

/// Why a target names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a target that a client may send: 400.
    #[error("the request target is malformed: {0}")]
    Malformed(&'static str),
    /// A proper target that never names a file here: 404.
    #[error("the request target names nothing that is served: {0}")]
    Hidden(&'static str),
}

/// A canonical path. It starts with `/`, and a directory's ends with `/`. It has no empty, `.` or
/// `..` segment, no NUL, no backslash, and no dotfile except a leading `.well-known`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilePath<'a>(Cow<'a, str>);

/// Parses a target as sent.
pub fn parse_target(raw: &str) -> Result<Target<'_>, TargetError> {
    if raw.len() > TARGET_BYTES_MAX {
        return Err(TargetError::Malformed("too long"));
    }
    if raw == "*" {
        return Ok(Target::Asterisk);
    }
    if raw
        .bytes()
        .any(|byte| byte <= b' ' || byte == 0x7f || byte == b'#')
    {
        return Err(TargetError::Malformed(
            "a control character, space or fragment",
        ));
    }
    let (raw_path, query) = match raw.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (raw, None),
    };
    let path = if is_canonical(raw_path.as_bytes()) {
        FilePath(Cow::Borrowed(raw_path))
    } else {
        canonicalize(without_authority(raw_path)?)?
    };
    Ok(Target::Resource { path, query })
}

/// A decoded path, or a part of it, as it is written in a URL.
pub fn encode_path(path: &str) -> Cow<'_, str> {
    utf8_percent_encode(path, ENCODED_IN_PATH).into()
}

/// A file name as one segment of a URL path.
pub(super) fn encode_segment(name: &str) -> impl std::fmt::Display {
    utf8_percent_encode(name, ENCODED_IN_SEGMENT)
}

/// Whether a name in a directory can be requested. The listing shows no others.
pub(super) fn is_servable_name(name: &str, in_root: bool) -> bool {
    check_segment(name, in_root).is_ok()
}

impl FilePath<'_> {
    /// The path, starting with a slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it ends with a slash.
    pub fn is_directory(&self) -> bool {
        self.0.ends_with('/')
    }

    /// The path relative to the root, without slashes at either end; `.` for the root.
    pub fn relative(&self) -> &str {
        match self.0.trim_matches('/') {
            "" => ".",
            relative => relative,
        }
    }

    /// The path as it is written in a URL.
    pub fn encoded(&self) -> String {
        encode_path(&self.0).into_owned()
    }
}

/// Whether a path is canonical as it stands, by one scan of its bytes. This is the common case,
/// which then needs no copy. It may return false for a canonical path, but never true for another.
fn is_canonical(path: &[u8]) -> bool {
    let mut before = 0;
    for &byte in path {
        let plain = match byte {
            b'/' => before != b'/',
            b'.' => before != b'/',
            b'%' | b'\\' | 0x80.. | 0..=b' ' | 0x7f => false,
            _ => before != 0,
        };
        if !plain {
            return false;
        }
        before = byte;
    }
    before != 0 && path[0] == b'/' && path.len() <= PATH_BYTES_MAX
}

/// The path of an absolute-form target; the host is the connection's business.
fn without_authority(raw_path: &str) -> Result<&str, TargetError> {
    if raw_path.starts_with('/') {
        return Ok(raw_path);
    }
    let malformed = TargetError::Malformed("neither a path nor an http URL");
    let (scheme, rest) = raw_path.split_once("://").ok_or(malformed)?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(malformed);
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.is_empty() {
        return Err(malformed);
    }
    Ok(if path.is_empty() { "/" } else { path })
}

fn canonicalize(raw_path: &str) -> Result<FilePath<'static>, TargetError> {
    let mut path = String::with_capacity(raw_path.len());
    let raw_segments = raw_path.split('/').filter(|segment| !segment.is_empty());
    for (index, raw_segment) in raw_segments.enumerate() {
        let segment = decode(raw_segment)?;
        check_segment(&segment, index == 0)?;
        path.push('/');
        path.push_str(&segment);
    }
    if raw_path.ends_with('/') {
        path.push('/');
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(TargetError::Malformed("too long"));
    }
    Ok(FilePath(Cow::Owned(path)))
}

fn decode(raw_segment: &str) -> Result<Cow<'_, str>, TargetError> {
    let bytes = raw_segment.as_bytes();
    let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    let escapes = (0..bytes.len()).filter(|at| bytes[*at] == b'%');
    if !escapes
        .into_iter()
        .all(|at| is_hex(at + 1) && is_hex(at + 2))
    {
        return Err(TargetError::Malformed("a % without two hexadecimal digits"));
    }
    let decoded = percent_decode_str(raw_segment).decode_utf8();
    decoded.map_err(|_| TargetError::Malformed("not UTF-8"))
}

fn check_segment(segment: &str, first: bool) -> Result<(), TargetError> {
    if segment == "." || segment == ".." {
        return Err(TargetError::Malformed("a dot segment"));
    }
    if segment.is_empty() || segment.chars().any(char::is_control) {
        return Err(TargetError::Malformed("a control character"));
    }
    if segment.contains(['/', '\\']) {
        return Err(TargetError::Hidden("a slash or backslash inside a segment"));
    }
    if segment.starts_with('.') && !(first && segment == ".well-known") {
        return Err(TargetError::Hidden("a dotfile"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn path(raw: &str) -> Result<String, TargetError> {
        match parse_target(raw)? {
            Target::Resource { path, .. } => Ok(path.as_str().to_owned()),
            Target::Asterisk => panic!("{raw} is a path"),
        }
    }

    fn is_malformed(raw: &str) -> bool {
        matches!(parse_target(raw), Err(TargetError::Malformed(_)))
    }

    fn is_hidden(raw: &str) -> bool {
        matches!(parse_target(raw), Err(TargetError::Hidden(_)))
    }

    #[test]
    fn plain_paths_are_borrowed() {
        for raw in [
            "/",
            "/index.html",
            "/a/b.c/d",
            "/a/",
            "/a...b/c",
            "/a.",
            "/~x/@:!$&'()*+,;=",
        ] {
            let parsed = parse_target(raw).unwrap();
            let Target::Resource {
                path: FilePath(Cow::Borrowed(path)),
                query: None,
            } = parsed
            else {
                panic!("{raw} should be borrowed: {parsed:?}");
            };
            assert_eq!(path, raw);
        }
    }

    #[test]
    fn spellings_of_one_path_are_one() {
        assert_eq!(path("/%61%2e%68tml").unwrap(), "/a.html");
        assert_eq!(path("//host///x//").unwrap(), "/host/x/");
        assert_eq!(path("///").unwrap(), "/");
        assert_eq!(path("/%C3%BC").unwrap(), "/ü");
        assert_eq!(path("/ü").unwrap(), "/ü");
        assert_eq!(path("/a%20b%3Fc%23").unwrap(), "/a b?c#");
        assert_eq!(path("/a%2541").unwrap(), "/a%41");
    }

    #[test]
    fn queries_are_kept_as_sent() {
        let parsed = parse_target("/a?b=../%00?c").unwrap();
        let Target::Resource { path, query } = parsed else {
            panic!("a path")
        };
        assert_eq!((path.as_str(), query), ("/a", Some("b=../%00?c")));
    }

    #[test]
    fn absolute_form_loses_its_authority() {
        assert_eq!(path("http://host/a").unwrap(), "/a");
        assert_eq!(path("HTTPS://host:8443").unwrap(), "/");
        assert_eq!(path("http://host?x=/y").unwrap(), "/");
        assert_eq!(parse_target("*").unwrap(), Target::Asterisk);
        for raw in [
            "",
            "a",
            "http:/a",
            "http:///a",
            "ftp://host/a",
            "host:80",
            "?",
            "**",
        ] {
            assert!(is_malformed(raw), "{raw}");
        }
    }

    #[test]
    fn nothing_climbs() {
        for raw in [
            "/..",
            "/../etc/passwd",
            "/a/../b",
            "/a/./b",
            "/.",
            "/%2e%2e/x",
            "/.%2E/x",
            "/%2e/",
        ] {
            assert!(is_malformed(raw), "{raw}");
        }
        for raw in ["/..%2fetc", "/a%2Fb", "/%2f", "/a\\b", "/..%5Cx", "/%5c"] {
            assert!(is_hidden(raw), "{raw}");
        }
    }

    #[test]
    fn control_characters_bad_escapes_and_other_charsets_are_malformed() {
        for raw in [
            "/%00",
            "/a%0d%0aX",
            "/a\nb",
            "/a b",
            "/\u{7f}",
            "/%7f",
            "/%C2%85",
            "/a#b",
            "/%",
            "/%4",
        ] {
            assert!(is_malformed(raw), "{raw}");
        }
        for raw in ["/%zz", "/%+1a", "/%ff", "/%c3", "/%C0%AE", "/a?b c"] {
            assert!(is_malformed(raw), "{raw}");
        }
    }

    #[test]
    fn dotfiles_are_hidden_but_well_known() {
        for raw in [
            "/.git/config",
            "/a/.htaccess",
            "/%2egit",
            "/...",
            "/a/.well-known/x",
        ] {
            assert!(is_hidden(raw), "{raw}");
        }
        assert_eq!(path("/.well-known/acme").unwrap(), "/.well-known/acme");
        assert!(is_hidden("/.well-known/.x"));
        assert!(is_hidden("/.well-knownx"));
    }

    #[test]
    fn long_ones_are_malformed() {
        assert!(is_malformed(&format!("/{}", "a".repeat(PATH_BYTES_MAX))));
        assert!(path(&format!("/{}", "a".repeat(PATH_BYTES_MAX - 1))).is_ok());
        assert!(is_malformed(&format!(
            "/a?{}",
            "b".repeat(TARGET_BYTES_MAX)
        )));
    }

    proptest! {
        #[test]
        fn never_escapes(raw in "(/|%2[eEfF]|\\.|%5c|\\\\|%00|%|\\PC|[a-c?]|http://h)*") {
            if let Ok(Target::Resource { path, .. }) = parse_target(&raw) {
                check_canonical(path.as_str());
            }
        }

        #[test]
        fn any_text_is_judged(raw in any::<String>()) {
            if let Ok(Target::Resource { path, .. }) = parse_target(&format!("/{raw}")) {
                check_canonical(path.as_str());
            }
        }

        #[test]
        fn names_survive_a_url(names in proptest::collection::vec("[^/\\\\.\\p{C}]\\PC{0,9}", 1..4)) {
            prop_assume!(names.iter().all(|name| is_servable_name(name, false)));
            let plain = format!("/{}", names.join("/"));
            let url = FilePath(Cow::Owned(plain.clone())).encoded();
            prop_assert_eq!(path(&url).unwrap(), plain);
        }
    }

    fn check_canonical(path: &str) {
        assert!(path.starts_with('/') && !path.contains("//"));
        assert!(!path.contains(['\0', '\\']));
        for segment in path.split('/') {
            assert!(segment != "." && segment != "..");
        }
    }
}
