//! Patterns of paths and values: a text in which `*` stands for anything, slashes too, and for nothing.
//!
//! A path is compared as it is served: percent-decoded, and with one slash where several stand together. Segments `.` and `..` are
//! left as they are: files and backends refuse them.

use std::borrow::Cow;
use std::convert::Infallible;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

/// A text with wildcards. Most have one at an end or none, and are compared at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// This text.
    Exact(Box<str>),
    /// What begins with it.
    Beginning(Box<str>),
    /// What ends with it.
    Ending(Box<str>),
    /// The parts around the wildcards, at least two.
    Parts(Box<[Box<str>]>),
}

impl FromStr for Pattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let parts: Vec<&str> = text.split('*').collect();
        Ok(match parts.as_slice() {
            [text] => Self::Exact((*text).into()),
            [beginning, ""] => Self::Beginning((*beginning).into()),
            ["", ending] => Self::Ending((*ending).into()),
            parts => Self::Parts(parts.iter().map(|part| (*part).into()).collect()),
        })
    }
}

impl Pattern {
    /// Whether it stands for the text.
    pub fn matches(&self, text: &str) -> bool {
        self.rest(text).is_some()
    }

    /// What the last wildcard stands for, which is as short as it can be for those before it; nothing where there is no
    /// wildcard. `None`: the pattern does not stand for the text.
    pub fn rest<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self {
            Self::Exact(exact) => (text == &**exact).then_some(""),
            Self::Beginning(beginning) => text.strip_prefix(&**beginning),
            Self::Ending(ending) => text.strip_suffix(&**ending),
            Self::Parts(parts) => {
                let [first, inner @ .., last] = &**parts else {
                    return None;
                };
                let mut left = text.strip_prefix(&**first)?;
                for part in inner {
                    let at = left.find(&**part)?;
                    left = &left[at + part.len()..];
                }
                left.strip_suffix(&**last)
            }
        }
    }

    /// Whether it surely stands for all texts that `other` stands for. It says so of equal patterns, and of those that
    /// end with their only wildcard.
    pub fn covers(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        let Self::Beginning(beginning) = self else {
            return false;
        };
        match other {
            Self::Exact(text) | Self::Beginning(text) => text.starts_with(&**beginning),
            Self::Ending(_) => beginning.is_empty(),
            Self::Parts(parts) => parts
                .first()
                .is_some_and(|first| first.starts_with(&**beginning)),
        }
    }
}

/// A path as it is compared.
pub fn canonical(path: &str) -> Cow<'_, str> {
    if !path.contains('%') && !path.contains("//") {
        return Cow::Borrowed(path);
    }
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let mut single = String::with_capacity(decoded.len());
    for letter in decoded.chars() {
        if letter != '/' || !single.ends_with('/') {
            single.push(letter);
        }
    }
    Cow::Owned(single)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        let Ok(pattern) = text.parse();
        pattern
    }

    #[test]
    fn a_wildcard_is_anything_and_the_last_is_the_rest() {
        for (text, with, rest) in [
            ("/a", "/a", Some("")),
            ("/a", "/ab", None),
            ("/a/*", "/a/", Some("")),
            ("/a/*", "/a/b/c", Some("b/c")),
            ("/a/*", "/a", None),
            ("*.js", "/x.js", Some("/x")),
            ("*.js", "/x.json", None),
            ("/a/*/c/*", "/a/b/c/d", Some("d")),
            ("/a*a", "/a", None),
            ("*", "", Some("")),
        ] {
            assert_eq!(pattern(text).rest(with), rest, "{text} {with}");
        }
    }

    #[test]
    fn a_path_is_compared_as_it_is_served() {
        assert_eq!(canonical("/a/b"), "/a/b");
        assert_eq!(canonical("//a%2f/%62%2F%2Fc"), "/a/b/c");
        assert_eq!(canonical("/%ff"), "/\u{fffd}");
    }

    proptest! {
        #[test]
        fn what_covers_a_pattern_matches_its_texts(
            wide in "[/ab*]{0,6}", narrow in "[/ab*]{0,6}", filling in "[/ab]{0,3}"
        ) {
            let text = narrow.replace('*', &filling);
            prop_assert!(pattern(&narrow).matches(&text));
            if pattern(&wide).covers(&pattern(&narrow)) {
                prop_assert!(pattern(&wide).matches(&text));
            }
        }

        #[test]
        fn a_canonical_path_stays_as_it_is(path in "[/ab]{0,8}") {
            let once = canonical(&path).into_owned();
            prop_assert_eq!(canonical(&once).into_owned(), once.clone());
            prop_assert!(!once.contains("//"));
        }
    }
}
