//! Values of rules as the file has them.

use std::str::FromStr;

use http::Method;
use http::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use shortline_daemon::keys::from_text;
use shortline_web::rules::pattern::Pattern;
use shortline_web::rules::template::{Template, TemplateError};

/// Fields that carry the connection, not the response: to set them would break messages apart.
const OF_THE_CONNECTION: [&str; 8] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// A pattern of paths, and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct RulePath(pub Pattern, pub String);

/// A method.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodName(pub Method);

/// `name`, or `name: value`.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedField {
    pub name: HeaderName,
    pub value: Option<Pattern>,
}

/// Where a redirect leads: a whole URL, or a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Location(pub Template);

/// What becomes a target.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetTemplate(pub Template);

/// The beginning of paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefix(pub String);

/// The name of a field that may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field(pub HeaderName);

/// The name of a cookie, or with a `*` of several.
#[derive(Clone, Debug, PartialEq)]
pub struct CookieName(pub Pattern);

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Value(pub HeaderValue);

/// A value of a rule that is refused.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    #[error("`{0}` is no path of a rule: begin with / or *, such as /old/* or *.js")]
    Path(String),
    #[error("`{0}` is no method: write it like GET")]
    Method(String),
    #[error("`{0}` is no field: write it like accept: text/html*, or only its name")]
    Wanted(String),
    #[error("`{0}` leads nowhere: begin with https://, http:// or /")]
    Location(String),
    #[error("`{0}` is no path: begin with / or {{path}}")]
    Target(String),
    #[error("`{0}` is no beginning of a path: write it like /api")]
    Prefix(String),
    #[error("`{0}` is no name of a field: write it like x-frame-options")]
    Field(String),
    #[error(
        "`{0}` is no name of a cookie: write it like _oauth2_proxy, or _oauth2_proxy* for all that begin so"
    )]
    Cookie(String),
    #[error("`{0}` is of the connection, and no rule changes it: leave it out")]
    Connection(String),
    #[error("`{0}` is no value of a field: want letters, digits and signs of ASCII in one line")]
    Value(String),
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// A text as a message shows it.
pub fn shown(text: &str) -> String {
    text.escape_debug().to_string()
}

impl FromStr for RulePath {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        match text.starts_with(['/', '*']) {
            true => {
                let Ok(pattern) = text.parse();
                Ok(Self(pattern, text.to_owned()))
            }
            false => Err(RuleError::Path(shown(text))),
        }
    }
}

impl FromStr for MethodName {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let is_written = !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        let method = Method::from_bytes(text.as_bytes())
            .ok()
            .filter(|_| is_written);
        method
            .map(Self)
            .ok_or_else(|| RuleError::Method(shown(text)))
    }
}

impl FromStr for WantedField {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name, Some(value.trim())),
            None => (text, None),
        };
        let name = name
            .trim()
            .parse()
            .map_err(|_| RuleError::Wanted(shown(text)))?;
        let value = value.map(|value| {
            let Ok(pattern) = value.parse();
            pattern
        });
        Ok(Self { name, value })
    }
}

impl FromStr for Location {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let leads = ["https://", "http://", "/", "{path}"];
        if !leads.iter().any(|beginning| text.starts_with(beginning))
            || HeaderValue::from_str(text).is_err()
        {
            return Err(RuleError::Location(shown(text)));
        }
        Ok(Self(text.parse()?))
    }
}

impl FromStr for TargetTemplate {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let template: Template = text.parse()?;
        match template.is_target() {
            true => Ok(Self(template)),
            false => Err(RuleError::Target(shown(text))),
        }
    }
}

impl FromStr for Prefix {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        match text.starts_with('/') && text.len() > 1 && !text.contains(['*', '?', '#']) {
            true => Ok(Self(text.to_owned())),
            false => Err(RuleError::Prefix(shown(text))),
        }
    }
}

impl FromStr for Field {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let name: HeaderName = text.parse().map_err(|_| RuleError::Field(shown(text)))?;
        match OF_THE_CONNECTION.contains(&name.as_str()) {
            true => Err(RuleError::Connection(name.to_string())),
            false => Ok(Self(name)),
        }
    }
}

impl FromStr for CookieName {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        // A cookie's name is a token, and so is a method.
        match Method::from_bytes(text.as_bytes()) {
            Ok(_) => {
                let Ok(pattern) = text.parse();
                Ok(Self(pattern))
            }
            Err(_) => Err(RuleError::Cookie(shown(text))),
        }
    }
}

impl PartialOrd for Field {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Field {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.as_str().cmp(other.0.as_str())
    }
}

impl FromStr for Value {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let value = HeaderValue::from_str(text);
        value.map(Self).map_err(|_| RuleError::Value(shown(text)))
    }
}

macro_rules! from_text {
    ($($type:ident),*) => {
        $(impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
                from_text(source)
            }
        })*
    };
}

from_text!(CookieName, Field, Value);
