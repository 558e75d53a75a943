//! Names of servers: one name, or all names with one label before it, as certificates have them (RFC 6125, 6.4.3).
//!
//! `*.example.org` stands for `www.example.org`, and neither for `example.org` nor for `a.b.example.org`. A name that is given
//! goes before a wildcard. Names are compared without case and without a final dot (RFC 1034, 3.1).
//!
//! Departure: a label may have an underscore, because names of hosts that are in use do.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// RFC 1035, 2.3.4.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// A name, or all names with one more label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// This name, in small letters.
    Exact(Box<str>),
    /// Any one label, a dot and this name.
    Below(Box<str>),
}

/// A text that is no name of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// A letter beyond ASCII.
    #[error("`{0}`: write the name as DNS has it, with xn-- (idn2 '{0}' prints that)")]
    NotAscii(String),
    /// A port.
    #[error("`{0}`: a site has a name, and no port: leave out what is behind the colon")]
    Port(String),
    /// What stands for all names elsewhere.
    #[error("`{0}`: a site for all names that no other site has has none: leave `names` out")]
    All(String),
    /// A URL.
    #[error("`{0}`: a site has a name alone: write {1}")]
    Url(String, String),
    /// Something else.
    #[error("`{0}` is no name of a site: write it like example.org, *.example.org or 192.0.2.1")]
    Other(String),
}

/// Values by the names that they are for.
#[derive(Clone, Debug)]
pub struct Names<T> {
    exact: HashMap<Box<str>, T, ahash::RandomState>,
    below: HashMap<Box<str>, T, ahash::RandomState>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self {
            exact: HashMap::default(),
            below: HashMap::default(),
        }
    }
}

impl<T> Names<T> {
    /// Gives the names of `pattern` a value. Returns the one that they had.
    pub fn insert(&mut self, pattern: &Pattern, value: T) -> Option<T> {
        match pattern {
            Pattern::Exact(name) => self.exact.insert(name.clone(), value),
            Pattern::Below(parent) => self.below.insert(parent.clone(), value),
        }
    }

    /// The value for a host, which has no port.
    pub fn find(&self, host: &str) -> Option<&T> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let host = match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(host.to_ascii_lowercase()),
            false => Cow::Borrowed(host),
        };
        if let Some(value) = self.exact.get(&*host) {
            return Some(value);
        }
        let (label, parent) = host.split_once('.')?;
        self.below.get(parent).filter(|_| !label.is_empty())
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.below.is_empty()
    }
}

impl Pattern {
    /// Whether it stands for a host, which has no port.
    pub fn stands_for(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match self {
            Self::Exact(name) => name.eq_ignore_ascii_case(host),
            Self::Below(parent) => host.split_once('.').is_some_and(|(label, above)| {
                !label.is_empty() && parent.eq_ignore_ascii_case(above)
            }),
        }
    }

    /// Whether it stands for all hosts that `other` stands for.
    pub fn covers(&self, other: &Self) -> bool {
        self == other || matches!(other, Self::Exact(name) if self.stands_for(name))
    }

    /// A name that it stands for.
    pub fn example(&self) -> Cow<'_, str> {
        match self {
            Self::Exact(name) => Cow::Borrowed(name),
            Self::Below(parent) => Cow::Owned(format!("www.{parent}")),
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if !text.is_ascii() {
            return Err(PatternError::NotAscii(text.to_owned()));
        }
        let shown = || text.escape_debug().to_string();
        let name = text
            .strip_suffix('.')
            .unwrap_or(text)
            .to_ascii_lowercase()
            .into_boxed_str();
        if let Ok(address) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
            // In a request an IPv6 address has brackets.
            return Ok(Self::Exact(match address {
                IpAddr::V4(address) => address.to_string().into(),
                IpAddr::V6(address) => format!("[{address}]").into(),
            }));
        }
        if ["_", "*", "_default_"].contains(&&*name) {
            return Err(PatternError::All(shown()));
        }
        if let Some((_, rest)) = name.split_once("://") {
            let host = rest.split(['/', ':']).next().unwrap_or_default();
            return Err(PatternError::Url(shown(), host.escape_debug().to_string()));
        }
        if let Some((_, port)) = name.split_once(':')
            && port.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Err(PatternError::Port(shown()));
        }
        let (parent, is_below) = match name.strip_prefix("*.") {
            Some(parent) => (parent, true),
            None => (&*name, false),
        };
        if name.len() > NAME_BYTES_MAX || !parent.split('.').all(is_label) {
            return Err(PatternError::Other(shown()));
        }
        Ok(match is_below {
            true => Self::Below(parent.into()),
            false => Self::Exact(name),
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(parent) => write!(f, "*.{parent}"),
        }
    }
}

fn is_label(label: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !label.is_empty()
        && label.len() <= LABEL_BYTES_MAX
        && label.bytes().all(is_inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_goes_before_a_wildcard_which_stands_for_one_label() {
        let mut names = Names::default();
        for (index, name) in ["example.org", "*.example.org", "www.Example.org.", "[::1]"]
            .iter()
            .enumerate()
        {
            assert_eq!(names.insert(&pattern(name), index), None);
        }
        for (host, found) in [
            ("example.org", Some(0)),
            ("EXAMPLE.org.", Some(0)),
            ("a.example.org", Some(1)),
            ("www.example.org", Some(2)),
            ("a.b.example.org", None),
            (".example.org", None),
            ("example.com", None),
            ("org", None),
            ("[::1]", Some(3)),
            ("", None),
        ] {
            assert_eq!(names.find(host).copied(), found, "{host}");
        }
        assert_eq!(names.insert(&pattern("EXAMPLE.ORG"), 9), Some(0));
    }

    #[test]
    fn what_is_no_name_is_refused_with_what_would_be() {
        for (text, told) in [
            ("b\u{fc}cher.example", "xn--"),
            ("example.org:443", "no port"),
            ("https://example.org/a", "write example.org"),
            ("*", "leave `names` out"),
            ("_", "leave `names` out"),
            ("a.*.example", "no name"),
            ("*.", "leave `names` out"),
            ("", "no name"),
            ("-a.example", "no name"),
            ("a..example", "no name"),
            ("a b", "no name"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        let long = format!("{}.example", "a".repeat(64));
        assert!(long.parse::<Pattern>().is_err());
        assert!(
            format!("a.{}", "b.".repeat(130))
                .parse::<Pattern>()
                .is_err()
        );
    }

    proptest! {
        #[test]
        fn a_pattern_is_read_as_it_is_shown_and_finds_its_example(
            text in "(\\*\\.)?[a-zA-Z0-9][a-zA-Z0-9_]{0,9}(\\.[a-z0-9]{1,5}){0,3}"
        ) {
            let pattern: Pattern = text.parse().unwrap();
            prop_assert_eq!(&pattern.to_string().parse::<Pattern>().unwrap(), &pattern);
            let mut names = Names::default();
            names.insert(&pattern, ());
            prop_assert!(names.find(&pattern.example()).is_some());
        }

        #[test]
        fn no_text_is_too_odd(text in ".{0,40}", host in ".{0,40}") {
            let mut names = Names::default();
            if let Ok(pattern) = text.parse::<Pattern>() {
                names.insert(&pattern, ());
                prop_assert!(names.find(&pattern.example()).is_some());
            }
            names.find(&host);
        }
    }
}
