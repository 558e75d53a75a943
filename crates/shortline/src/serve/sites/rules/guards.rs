//! Keys of rules about who may ask and how often, and pages for those who may not.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::Method;
use http::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use shortline_daemon::file::spot::KeyError;
use shortline_daemon::keys::{all_from_text, from_text};
use shortline_sched::units::Span;
use shortline_web::rules::auth::Auth;
use shortline_web::rules::cors::{AllowedOrigin, Cors, Origins};
use shortline_web::rules::pages::{Errors, Page, Pages};
use shortline_web::rules::rate::{Limiter, Rate};

use super::TEXT_BYTES_MAX;
use super::values::{Field, MethodName, shown};

/// The methods that pages of other origins may use if nothing is said.
const CORS_METHODS: [Method; 3] = [Method::GET, Method::HEAD, Method::POST];

/// `error-page`: pages by status.
pub type PageKeys = BTreeMap<ErrorsName, String>;

/// The pages of a site or rule.
///
/// # Errors
/// A page that is none, and what would be right.
pub fn pages(keys: &PageKeys, has_files: bool) -> Result<Pages, KeyError> {
    let mut pages = Vec::with_capacity(keys.len());
    for (ErrorsName(errors, name), text) in keys {
        let page = match text.starts_with('/') {
            true if !has_files => {
                return Err(KeyError::new(
                    format!("error-page.{name}"),
                    "the site has no files: give it a root, or a text that does not begin with /",
                ));
            }
            true => Page::File(text.clone()),
            false if text.len() > TEXT_BYTES_MAX => {
                return Err(KeyError::new(
                    format!("error-page.{name}"),
                    format!("is longer than 64KiB: make it a file, such as /{name}.html"),
                ));
            }
            false => Page::Text(text.clone().into()),
        };
        pages.push((*errors, page));
    }
    Ok(Pages::new(pages))
}

/// `404` or `5xx`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorsName(Errors, String);

/// `basic-auth`: users with a password.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AuthKeys {
    users: PathBuf,
    #[serde(default)]
    realm: Option<String>,
    #[serde(default)]
    user_header: Option<Field>,
}

impl AuthKeys {
    /// The users, whose file is not read yet.
    ///
    /// # Errors
    /// A realm that is none.
    pub fn resolve(&self) -> Result<Auth, KeyError> {
        let realm = self.realm.as_deref().unwrap_or("restricted");
        let field = self.user_header.as_ref().map(|field| field.0.clone());
        Auth::new(self.users.clone(), realm, field).ok_or_else(|| {
            let problem = format!(
                "`{}` is no realm: want letters, digits and signs of ASCII but \" and \\",
                shown(realm)
            );
            KeyError::new("basic-auth.realm", problem)
        })
    }

    /// Whether the backend gets the user's name.
    pub fn is_told(&self) -> bool {
        self.user_header.is_some()
    }
}

/// `cors`: what pages of other origins may do.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CorsKeys {
    #[serde(deserialize_with = "all_from_text")]
    origins: Option<Vec<OriginName>>,
    #[serde(deserialize_with = "all_from_text")]
    methods: Option<Vec<MethodName>>,
    #[serde(deserialize_with = "all_from_text")]
    headers: Option<Vec<FieldName>>,
    #[serde(deserialize_with = "all_from_text")]
    expose: Option<Vec<FieldName>>,
    max_age: Option<Span>,
    credentials: bool,
}

impl CorsKeys {
    /// What pages of other origins may do.
    ///
    /// # Errors
    /// What contradicts itself.
    pub fn resolve(&self) -> Result<Cors, KeyError> {
        let origins = self.origins.as_deref().unwrap_or_default();
        if origins.is_empty() {
            return Err(KeyError::new(
                "cors.origins",
                "names none: write it like [\"https://app.example.org\"] or [\"*\"]",
            ));
        }
        let is_any = origins.contains(&OriginName::Any);
        self.refuse_stars_with_credentials(is_any)?;
        let these = origins.iter().filter_map(|origin| match origin {
            OriginName::Any => None,
            OriginName::This(origin) => Some(origin.clone()),
        });
        let methods: Vec<String> = match &self.methods {
            None => CORS_METHODS.iter().map(Method::to_string).collect(),
            Some(methods) => methods.iter().map(|method| method.0.to_string()).collect(),
        };
        Ok(Cors {
            origins: match is_any {
                true => Origins::Any,
                false => Origins::These(these.collect()),
            },
            methods: list(&methods).ok_or_else(|| {
                KeyError::new(
                    "cors.methods",
                    "names none: write it like [\"GET\", \"PUT\"]",
                )
            })?,
            headers: self.headers.as_deref().and_then(names),
            expose: self.expose.as_deref().and_then(names),
            max_age_s: self.max_age.map(|span| span.duration().as_secs()),
            credentials: self.credentials,
        })
    }

    fn refuse_stars_with_credentials(&self, is_any: bool) -> Result<(), KeyError> {
        let has_star = |names: &Option<Vec<FieldName>>| {
            let mut names = names.iter().flatten();
            names.any(|name| name.0 == "*")
        };
        let stars = [
            (is_any, "origins"),
            (has_star(&self.headers), "headers"),
            (has_star(&self.expose), "expose"),
        ];
        let star = stars.into_iter().find(|(is_star, _)| *is_star);
        match star {
            Some((_, key)) if self.credentials => Err(KeyError::new(
                format!("cors.{key}"),
                "* contradicts credentials: browsers refuse that, so name each",
            )),
            _ => Ok(()),
        }
    }
}

fn names(names: &[FieldName]) -> Option<HeaderValue> {
    let names: Vec<String> = names.iter().map(|name| name.0.clone()).collect();
    list(&names)
}

/// A list as a field has it. `None`: it is empty.
fn list(elements: &[String]) -> Option<HeaderValue> {
    let value = HeaderValue::try_from(elements.join(", ")).ok();
    value.filter(|_| !elements.is_empty())
}

/// An origin, or `*`.
#[derive(Clone, Debug, PartialEq)]
enum OriginName {
    Any,
    This(AllowedOrigin),
}

/// The name of a field, or `*`.
#[derive(Clone, Debug, PartialEq)]
struct FieldName(String);

/// `rate`, `rate-burst` and `rate-by`.
#[derive(Clone, Debug)]
pub struct RateKeys<'a> {
    /// How many in which time.
    pub rate: Option<&'a RateText>,
    /// How many at once.
    pub burst: Option<NonZeroU32>,
    /// Of whom.
    pub by: Option<&'a RateBy>,
}

impl RateKeys<'_> {
    /// The limit, if there is one.
    ///
    /// # Errors
    /// A key without a rate.
    pub fn resolve(&self) -> Result<Option<Limiter>, KeyError> {
        let Some(rate) = self.rate else {
            return match (self.burst, self.by) {
                (None, None) => Ok(None),
                (Some(_), _) => Err(without_rate("rate-burst")),
                (None, Some(_)) => Err(without_rate("rate-by")),
            };
        };
        let by = match self.by {
            None | Some(RateBy::Client) => None,
            Some(RateBy::Header(name)) => Some(name.clone()),
        };
        let limiter = Limiter::new(Rate {
            period: rate.per / rate.requests.get(),
            burst: self.burst.unwrap_or(rate.requests),
            by,
        });
        limiter
            .map(Some)
            .ok_or_else(|| KeyError::new("rate", "is more than one in a nanosecond: leave it out"))
    }
}

fn without_rate(key: &'static str) -> KeyError {
    KeyError::new(key, "belongs to a rate: add it, such as rate = \"10/s\"")
}

/// `10/s`.
#[derive(Clone, Debug, PartialEq)]
pub struct RateText {
    requests: NonZeroU32,
    per: Duration,
}

/// `client`, or `header:NAME`.
#[derive(Clone, Debug, PartialEq)]
pub enum RateBy {
    /// Its address.
    Client,
    /// The value of this field.
    Header(HeaderName),
}

/// A value that is refused.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    #[error("`{0}` is no error: want a status such as 404, or 4xx or 5xx for all of a class")]
    Errors(String),
    #[error("`{0}` is no rate: write it like 10/s, 100/min or 1000/h")]
    Rate(String),
    #[error("`{0}` does not say whose requests count together: want client or header:NAME")]
    RateBy(String),
    #[error("`{0}` is no name of a field: write it like x-request-id, or * for all")]
    FieldName(String),
}

impl FromStr for ErrorsName {
    type Err = GuardError;

    fn from_str(text: &str) -> Result<Self, GuardError> {
        let code = || text.parse().ok().filter(|code| (400..600).contains(code));
        let errors = match text {
            "4xx" => Some(Errors::Class(4)),
            "5xx" => Some(Errors::Class(5)),
            _ => code().map(Errors::Status),
        };
        errors
            .map(|errors| Self(errors, text.to_owned()))
            .ok_or_else(|| GuardError::Errors(shown(text)))
    }
}

impl FromStr for OriginName {
    type Err = <AllowedOrigin as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "*" => Ok(Self::Any),
            origin => origin.parse().map(Self::This),
        }
    }
}

impl FromStr for FieldName {
    type Err = GuardError;

    fn from_str(text: &str) -> Result<Self, GuardError> {
        match text == "*" || text.parse::<HeaderName>().is_ok() {
            true => Ok(Self(text.to_owned())),
            false => Err(GuardError::FieldName(shown(text))),
        }
    }
}

impl FromStr for RateText {
    type Err = GuardError;

    fn from_str(text: &str) -> Result<Self, GuardError> {
        let read = || {
            let (requests, unit) = text.split_once('/')?;
            let seconds = match unit.trim() {
                "s" => 1,
                "min" => 60,
                "h" => 3600,
                _ => return None,
            };
            Some(Self {
                requests: requests.trim().parse().ok()?,
                per: Duration::from_secs(seconds),
            })
        };
        read().ok_or_else(|| GuardError::Rate(shown(text)))
    }
}

impl FromStr for RateBy {
    type Err = GuardError;

    fn from_str(text: &str) -> Result<Self, GuardError> {
        let name = text.strip_prefix("header:").map(str::trim);
        match (text, name.and_then(|name| name.parse().ok())) {
            ("client", _) => Ok(Self::Client),
            (_, Some(name)) => Ok(Self::Header(name)),
            _ => Err(GuardError::RateBy(shown(text))),
        }
    }
}

impl<'de> Deserialize<'de> for ErrorsName {
    fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        from_text(source)
    }
}
