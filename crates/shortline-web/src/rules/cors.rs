//! Which pages of other origins may read a site's responses (CORS: the Fetch standard, 3.2).
//!
//! | request | answer |
//! |---|---|
//! | preflight: OPTIONS with `Origin` and `Access-Control-Request-Method`, from an origin that may | 204 with what is allowed |
//! | preflight from another | 403 |
//! | any other from an origin that may | its response, with `Access-Control-Allow-Origin` |
//! | any other | its response, which the browser keeps from the page |
//!
//! What a backend says of the same is replaced. The origin is compared in its parts: scheme, host and port. A wildcard stands for one
//! label of the host, as in certificates. A response that depends on the origin says so (`Vary`).

use std::fmt;
use std::str::FromStr;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use shortline_tls::names::Pattern;

use crate::files::{Plan, PlanBody};

/// All fields that say what another origin may do.
const SAID: [HeaderName; 6] = [
    ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE,
];

/// What pages of other origins may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Cors {
    /// Which origins.
    pub origins: Origins,
    /// The methods of a preflight's answer, as a list.
    pub methods: HeaderValue,
    /// The fields of a request that they may set, as a list, if any.
    pub headers: Option<HeaderValue>,
    /// The fields of a response that they may read besides the usual ones, as a list, if any.
    pub expose: Option<HeaderValue>,
    /// For how many seconds a preflight's answer holds, if that is said.
    pub max_age_s: Option<u64>,
    /// Whether requests may have cookies and the like.
    pub credentials: bool,
}

/// Origins that may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origins {
    /// All.
    Any,
    /// These.
    These(Vec<AllowedOrigin>),
}

/// An origin, or those of all hosts with one more label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedOrigin {
    scheme: Box<str>,
    host: Pattern,
    port: Option<u16>,
}

/// A text that is no origin.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no origin: write it like https://app.example.org, https://*.example.org, http://localhost:3000 or *"
)]
pub struct OriginError(String);

/// An origin as a browser sends it (RFC 6454, 6.2), in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The scheme.
    pub scheme: &'a str,
    /// The host.
    pub host: &'a str,
    /// The port, if it is not that of the scheme.
    pub port: Option<u16>,
}

impl<'a> Origin<'a> {
    /// Reads it. `None`: it is `null` or something else.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_lowercase())
            && scheme.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte)
            });
        // The colons of an IPv6 address are inside its brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, digits)) if !digits.ends_with(']') => (host, Some(port(digits)?)),
            _ => (authority, None),
        };
        let is_host = !host.is_empty()
            && host
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"/\\@?#,;\"".contains(&byte));
        (is_scheme && is_host).then_some(Self { scheme, host, port })
    }
}

fn port(digits: &str) -> Option<u16> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

impl FromStr for AllowedOrigin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let refused = || OriginError(text.escape_debug().to_string());
        let origin = Origin::parse(text).ok_or_else(refused)?;
        Ok(Self {
            scheme: origin.scheme.into(),
            host: origin.host.parse().map_err(|_| refused())?,
            port: origin.port,
        })
    }
}

impl fmt::Display for AllowedOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl AllowedOrigin {
    /// Whether it is, or stands for, this origin.
    pub fn allows(&self, origin: &Origin<'_>) -> bool {
        *self.scheme == *origin.scheme
            && self.port == origin.port
            && self.host.stands_for(origin.host)
    }
}

impl Cors {
    /// The answer to a preflight. `None`: the request is none.
    pub fn preflight(&self, head: &Parts) -> Option<Plan> {
        let is_preflight = head.method == Method::OPTIONS
            && head.headers.contains_key(ORIGIN)
            && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if !is_preflight {
            return None;
        }
        if self.allowed(&head.headers).is_none() {
            let why = "pages of this origin may not ask";
            return Some(Plan::explained(StatusCode::FORBIDDEN, &head.method, &why));
        }
        let mut headers = HeaderMap::with_capacity(6);
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, self.methods.clone());
        if let Some(names) = &self.headers {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
        if let Some(seconds) = self.max_age_s {
            headers.insert(ACCESS_CONTROL_MAX_AGE, seconds.into());
        }
        Some(Plan {
            status: StatusCode::NO_CONTENT,
            headers: headers.into(),
            body: PlanBody::Empty,
        })
    }

    /// The value of `Access-Control-Allow-Origin` for a request, if its origin may read.
    pub fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut values = headers.get_all(ORIGIN).iter();
        let (origin, None) = (values.next()?, values.next()) else {
            return None;
        };
        match &self.origins {
            Origins::Any => Some(HeaderValue::from_static("*")),
            Origins::These(these) => {
                let parts = Origin::parse(origin.to_str().ok()?)?;
                let is_allowed = these.iter().any(|allowed| allowed.allows(&parts));
                is_allowed.then(|| origin.clone())
            }
        }
    }

    /// Says in a response what the request's origin may do: nothing, if it is not `allowed`.
    pub fn complete(
        &self,
        allowed: Option<&HeaderValue>,
        is_preflight: bool,
        headers: &mut HeaderMap,
    ) {
        if !is_preflight {
            for name in &SAID {
                headers.remove(name);
            }
        }
        if self.origins != Origins::Any {
            headers.append(VARY, HeaderValue::from_name(ORIGIN));
        }
        let Some(allowed) = allowed else {
            return;
        };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed.clone());
        if self.credentials {
            let yes = HeaderValue::from_static("true");
            headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
        }
        if let Some(names) = self.expose.as_ref().filter(|_| !is_preflight) {
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, names.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn allowed(pattern: &str, origin: &str) -> bool {
        let pattern: AllowedOrigin = pattern.parse().unwrap();
        Origin::parse(origin).is_some_and(|origin| pattern.allows(&origin))
    }

    #[test]
    fn an_origin_is_compared_in_its_parts() {
        for (pattern, origin, is_allowed) in [
            ("https://a.example", "https://a.example", true),
            ("https://a.example", "http://a.example", false),
            ("https://a.example", "https://a.example:8443", false),
            ("https://a.example:8443", "https://a.example:8443", true),
            ("https://a.example", "https://a.example.evil", false),
            ("https://a.example", "https://evil-a.example", false),
            ("https://*.example", "https://b.example", true),
            ("https://*.example", "https://c.b.example", false),
            ("https://*.example", "https://example", false),
            ("https://*.example", "https://evil/.example", false),
            ("https://*.example", "https://u@b.example", false),
            ("http://[::1]:3000", "http://[::1]:3000", true),
            ("http://localhost", "null", false),
        ] {
            assert_eq!(allowed(pattern, origin), is_allowed, "{pattern} {origin}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for text in [
            "null",
            "a.example",
            "https://",
            "https://a.example/",
            "https://a.example:x",
            "https://a.example:99999",
            "HTTPS://a.example",
            "https://a,b",
            "",
        ] {
            assert!(text.parse::<AllowedOrigin>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_origin_allows_itself_and_no_other(
            one in "https?://[ab]{1,2}(\\.[ab]{1,2}){0,2}(:[12])?",
            other in "https?://[ab]{1,2}(\\.[ab]{1,2}){0,2}(:[12])?",
        ) {
            let pattern: AllowedOrigin = one.parse().unwrap();
            prop_assert_eq!(pattern.to_string(), one.clone());
            prop_assert_eq!(pattern.allows(&Origin::parse(&other).unwrap()), one == other);
        }

        #[test]
        fn nothing_that_is_sent_is_an_origin_of_another_host(text in "[a-z:/.@?#\\[\\] ]{0,24}") {
            if let Some(origin) = Origin::parse(&text) {
                prop_assert!(!origin.host.contains(['/', '@', '?', '#', ' ']));
            }
        }
    }
}
