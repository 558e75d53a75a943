//! `[[site.rule]]`: rules as the file has them.

use std::collections::BTreeMap;
use std::str::FromStr;

use http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde::Deserialize;
use shortline_daemon::keys::{all_from_text, from_text, some_from_text};
use shortline_sched::Network;
use shortline_web::rules::pattern::Pattern;
use shortline_web::rules::template::{Template, TemplateError};
use shortline_web::rules::{Answer, Changes, PathChange, Rule, When};

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
/// The longest text that a rule answers with.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A rule as the file has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RuleKeys {
    #[serde(deserialize_with = "some_from_text")]
    path: Option<RulePath>,
    #[serde(deserialize_with = "all_from_text")]
    method: Option<Vec<MethodName>>,
    #[serde(deserialize_with = "some_from_text")]
    header: Option<WantedField>,
    #[serde(deserialize_with = "all_from_text")]
    allow: Option<Vec<Network>>,
    #[serde(deserialize_with = "all_from_text")]
    deny: Option<Vec<Network>>,
    #[serde(deserialize_with = "some_from_text")]
    redirect: Option<Location>,
    respond: Option<String>,
    status: Option<u16>,
    #[serde(deserialize_with = "some_from_text")]
    rewrite: Option<TargetTemplate>,
    #[serde(deserialize_with = "some_from_text")]
    strip_prefix: Option<Prefix>,
    #[serde(deserialize_with = "all_from_text")]
    try_files: Option<Vec<TargetTemplate>>,
    #[serde(deserialize_with = "some_from_text")]
    cache_control: Option<Value>,
    headers: ChangeKeys,
    request_headers: ChangeKeys,
}

/// Changes of fields as the file has them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct ChangeKeys {
    set: BTreeMap<Field, Value>,
    add: BTreeMap<Field, Value>,
    remove: Vec<Field>,
}

impl RuleKeys {
    /// The rule, of a site with files, routes, or both.
    ///
    /// # Errors
    /// What contradicts itself, and what would be right.
    pub fn resolve(&self, has_files: bool, has_routes: bool) -> Result<Rule, String> {
        self.refuse_nothing()?;
        self.refuse_contradictions()?;
        if self.try_files.is_some() && !has_files {
            return Err("try-files: the site has no files: give it a root".to_owned());
        }
        if self.request_headers != ChangeKeys::default() && !has_routes {
            return Err(
                "request-headers: the site has no route to a backend: leave it out".to_owned(),
            );
        }
        let mut response = self.headers.changes();
        if let Some(value) = &self.cache_control {
            response.set.push((CACHE_CONTROL, value.0.clone()));
        }
        Ok(Rule {
            when: When {
                path: self.path.as_ref().map(|path| path.0.clone()),
                methods: self
                    .method
                    .iter()
                    .flatten()
                    .map(|name| name.0.clone())
                    .collect(),
                header: self
                    .header
                    .clone()
                    .map(|wanted| (wanted.name, wanted.value)),
            },
            allow: self.allow.clone().unwrap_or_default(),
            deny: self.deny.clone().unwrap_or_default(),
            answer: self.answer()?,
            path: self.path_change(),
            try_files: self
                .try_files
                .iter()
                .flatten()
                .map(|target| target.0.clone())
                .collect(),
            request: self.request_headers.changes(),
            response,
        })
    }

    fn answer(&self) -> Result<Option<Answer>, String> {
        match (&self.redirect, &self.respond) {
            (Some(to), _) => {
                let code = self.status.unwrap_or(302);
                let status = StatusCode::from_u16(code).ok();
                let status =
                    status.filter(|status| [301, 302, 303, 307, 308].contains(&status.as_u16()));
                Ok(Some(Answer::Redirect {
                    to: to.0.clone(),
                    status: status.ok_or_else(|| {
                        format!("status: {code} is no redirect: want 301, 302, 303, 307 or 308")
                    })?,
                }))
            }
            (None, Some(text)) => {
                let code = self.status.unwrap_or(200);
                let status = StatusCode::from_u16(code).ok().filter(|status| {
                    code >= 200 && status.as_u16() < 600 && ![204, 205, 304].contains(&code)
                });
                if text.len() > TEXT_BYTES_MAX {
                    return Err(
                        "respond: is longer than 64KiB: make it a file, and rewrite to that"
                            .to_owned(),
                    );
                }
                Ok(Some(Answer::Respond {
                    status: status.ok_or_else(|| {
                        format!("status: {code} has no text: want 200 to 599, but 204, 205 and 304")
                    })?,
                    body: text.clone().into(),
                }))
            }
            (None, None) => Ok(None),
        }
    }

    fn path_change(&self) -> Option<PathChange> {
        match (&self.rewrite, &self.strip_prefix) {
            (Some(target), _) => Some(PathChange::Rewrite(target.0.clone())),
            (None, Some(prefix)) => Some(PathChange::Strip(prefix.0.clone())),
            (None, None) => None,
        }
    }

    fn refuse_nothing(&self) -> Result<(), String> {
        let match_only = Self {
            path: self.path.clone(),
            method: self.method.clone(),
            header: self.header.clone(),
            ..Self::default()
        };
        match *self == match_only {
            true => Err(
                "does nothing: give it redirect, respond, rewrite, strip-prefix, try-files, cache-control, headers, \
                 request-headers, allow or deny"
                    .to_owned(),
            ),
            false => Ok(()),
        }
    }

    fn refuse_contradictions(&self) -> Result<(), String> {
        let answers = self.redirect.is_some() || self.respond.is_some();
        let goes_on = [
            (self.rewrite.is_some(), "rewrite"),
            (self.strip_prefix.is_some(), "strip-prefix"),
            (self.try_files.is_some(), "try-files"),
            (
                self.request_headers != ChangeKeys::default(),
                "request-headers",
            ),
        ];
        if self.redirect.is_some() && self.respond.is_some() {
            return Err("redirect contradicts respond: leave one of them out".to_owned());
        }
        if let Some((_, key)) = goes_on.iter().find(|(is_given, _)| answers && *is_given) {
            return Err(format!("{key}: the rule answers by itself: leave it out"));
        }
        if self.status.is_some() && !answers {
            return Err("status: is for redirect and respond: leave it out".to_owned());
        }
        if self.rewrite.is_some() && self.strip_prefix.is_some() {
            return Err("rewrite contradicts strip-prefix: leave one of them out".to_owned());
        }
        let templates = [
            &self.redirect.as_ref().map(|to| &to.0),
            &self.rewrite.as_ref().map(|target| &target.0),
        ];
        let needs_rest = templates
            .into_iter()
            .flatten()
            .any(|template| template.needs_rest());
        let has_wildcard = self.path.as_ref().is_some_and(|path| path.1.contains('*'));
        if needs_rest && !has_wildcard {
            return Err(
                "{rest} is what a * of the path stands for: give path one, such as /old/*"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

impl ChangeKeys {
    fn changes(&self) -> Changes {
        let pairs = |fields: &BTreeMap<Field, Value>| {
            let fields = fields.iter();
            fields
                .map(|(name, value)| (name.0.clone(), value.0.clone()))
                .collect()
        };
        Changes {
            remove: self.remove.iter().map(|name| name.0.clone()).collect(),
            set: pairs(&self.set),
            add: pairs(&self.add),
        }
    }
}

/// A pattern of paths, and its text.
#[derive(Clone, Debug, PartialEq)]
struct RulePath(Pattern, String);

#[derive(Clone, Debug, PartialEq)]
struct MethodName(Method);

/// `name`, or `name: value`.
#[derive(Clone, Debug, PartialEq)]
struct WantedField {
    name: HeaderName,
    value: Option<Pattern>,
}

/// Where a redirect leads: a whole URL, or a path.
#[derive(Clone, Debug, PartialEq)]
struct Location(Template);

/// What becomes a target.
#[derive(Clone, Debug, PartialEq)]
struct TargetTemplate(Template);

#[derive(Clone, Debug, PartialEq)]
struct Prefix(String);

/// The name of a field that may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field(HeaderName);

#[derive(Clone, Debug, PartialEq)]
struct Value(HeaderValue);

/// A value of a rule that is refused.
#[derive(Debug, thiserror::Error)]
enum RuleError {
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
    #[error("`{0}` is of the connection, and no rule changes it: leave it out")]
    Connection(String),
    #[error("`{0}` is no value of a field: want letters, digits and signs of ASCII in one line")]
    Value(String),
    #[error(transparent)]
    Template(#[from] TemplateError),
}

fn shown(text: &str) -> String {
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

from_text!(Field, Value);
