//! Texts with places that a request fills: where a redirect leads, what a path becomes, which files are tried.
//!
//! | place | is |
//! |---|---|
//! | `{path}` | the path, with single slashes |
//! | `{rest}` | what the last `*` of the rule's path stands for |
//! | `{query}` | `?` and the query, or nothing |
//! | `{host}` | the host without its port |
//!
//! What comes out of a path is percent-encoded, so it can end neither a path nor a header field.

use std::fmt::Write;
use std::str::FromStr;

use crate::files::paths::encode_path;

/// A text with places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Path,
    Rest,
    Query,
    Host,
}

/// A text that is no template.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// An unknown place.
    #[error("{{{0}}} is no place: want {{path}}, {{rest}}, {{query}} or {{host}}")]
    Place(String),
    /// A brace without its other.
    #[error("`{0}` has a brace without its other: want {{path}}, {{rest}}, {{query}} or {{host}}")]
    Brace(String),
}

/// What fills the places.
pub struct Filling<'a> {
    /// The path, decoded.
    pub path: &'a str,
    /// What the last wildcard stands for, decoded.
    pub rest: &'a str,
    /// The query as sent.
    pub query: Option<&'a str>,
    /// The host.
    pub host: &'a str,
}

impl Template {
    /// The text for a request.
    pub fn fill(&self, filling: &Filling<'_>) -> String {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Path => filled.push_str(&encode_path(filling.path)),
                Part::Rest => filled.push_str(&encode_path(filling.rest)),
                Part::Host => filled.push_str(filling.host),
                Part::Query => {
                    if let Some(query) = filling.query {
                        // Writing to a string cannot fail.
                        let _ = write!(filled, "?{query}");
                    }
                }
            }
        }
        filled
    }

    /// Whether it has the place `{rest}`.
    pub fn needs_rest(&self) -> bool {
        self.0.contains(&Part::Rest)
    }

    /// Whether what it makes begins with a slash, as a target does.
    pub fn is_target(&self) -> bool {
        match self.0.first() {
            Some(Part::Text(text)) => text.starts_with('/'),
            Some(Part::Path) => true,
            _ => false,
        }
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let brace = || TemplateError::Brace(text.escape_debug().to_string());
        let mut parts = Vec::new();
        let mut left = text;
        while let Some((before, behind)) = left.split_once('{') {
            let (place, after) = behind.split_once('}').ok_or_else(brace)?;
            if before.contains('}') {
                return Err(brace());
            }
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(match place {
                "path" => Part::Path,
                "rest" => Part::Rest,
                "query" => Part::Query,
                "host" => Part::Host,
                other => return Err(TemplateError::Place(other.escape_debug().to_string())),
            });
            left = after;
        }
        if left.contains('}') {
            return Err(brace());
        }
        if !left.is_empty() {
            parts.push(Part::Text(left.to_owned()));
        }
        Ok(Self(parts))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_are_filled_and_encoded() {
        let template: Template = "https://{host}/x{path}/{rest}{query}".parse().unwrap();
        let filling = Filling {
            path: "/a b",
            rest: "c\r\nd",
            query: Some("e=f"),
            host: "h",
        };
        assert_eq!(template.fill(&filling), "https://h/x/a%20b/c%0D%0Ad?e=f");
        assert!(!template.is_target());
        for text in ["/a", "{path}.html"] {
            assert!(text.parse::<Template>().unwrap().is_target());
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        let error = |text: &str| text.parse::<Template>().unwrap_err().to_string();
        assert!(error("/{uri}").starts_with("{uri} is no place: want {path}"));
        for text in ["{path", "path}", "a}{path}", "{path}}"] {
            assert!(error(text).contains("without its other"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_filled_is_a_value_of_a_field(path in ".{0,20}", rest in ".{0,20}") {
            let template: Template = "https://h/{path}{rest}".parse().unwrap();
            let filled = template.fill(&Filling { path: &path, rest: &rest, query: None, host: "" });
            prop_assert!(http::HeaderValue::try_from(filled).is_ok());
        }

        #[test]
        fn a_text_without_braces_stays_as_it_is(text in "[^{}]{0,20}") {
            let template: Template = text.parse().unwrap();
            let filling = Filling { path: "p", rest: "r", query: None, host: "h" };
            prop_assert_eq!(template.fill(&filling), text);
        }
    }
}
