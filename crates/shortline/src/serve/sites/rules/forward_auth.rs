//! `forward-auth` of a rule: another server decides who may ask.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, COOKIE, HeaderName, HeaderValue, USER_AGENT};
use http::uri::{PathAndQuery, Scheme};
use http::{Uri, uri::Authority};
use serde::{Deserialize, Deserializer};
use shortline_daemon::file::spot::KeyError;
use shortline_daemon::keys::{any_number, from_text, one_or_more};
use shortline_sched::units::{Size, Span};
use shortline_web::proxy::{UpstreamAddress, UpstreamOptions};
use shortline_web::rules::forward_auth::{ForwardAuth, ForwardAuthOptions};

use super::values::{CookieName, Field, shown};

/// The fields that the server gets if nothing is said: who asks, and what the answer depends on.
const SENT: [HeaderName; 5] = [
    ACCEPT,
    AUTHORIZATION,
    COOKIE,
    USER_AGENT,
    HeaderName::from_static("x-requested-with"),
];
const TIME_MAX: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The table as the file has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ForwardAuthKeys {
    url: ServerUrl,
    ca: Option<PathBuf>,
    #[serde(default, deserialize_with = "one_or_more")]
    send_headers: Option<Vec<Field>>,
    #[serde(default, deserialize_with = "any_number")]
    copy_headers: Vec<Field>,
    #[serde(default)]
    copy_cookies: Vec<CookieName>,
    time_max: Option<Span>,
    answer_size_max: Option<Size>,
    #[serde(default)]
    trust_forwarded: bool,
}

/// A URL of a server: where it is, how it is called there, and what is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerUrl {
    address: UpstreamAddress,
    host: HeaderValue,
    target: PathAndQuery,
}

impl ForwardAuthKeys {
    /// The server, which is not open yet.
    ///
    /// # Errors
    /// A key that is of no use, or a value that cannot be.
    pub fn resolve(&self) -> Result<ForwardAuth, KeyError> {
        if self.ca.is_some() && !self.url.address.has_tls() {
            return Err(KeyError::new(
                "forward-auth.ca",
                "is for a server with TLS: give an https:// URL, or leave it out",
            ));
        }
        let time_max = self.time_max.map_or(TIME_MAX, Span::duration);
        if time_max.is_zero() {
            return Err(KeyError::new(
                "forward-auth.time-max",
                "must be more than 0, such as 5s",
            ));
        }
        let names = |fields: &[Field]| fields.iter().map(|field| field.0.clone()).collect();
        let bytes = |size: Size| usize::try_from(size.bytes()).unwrap_or(usize::MAX);
        Ok(ForwardAuth::new(ForwardAuthOptions {
            upstream: UpstreamOptions {
                backends: vec![self.url.address.clone().into()],
                authorities: self.ca.clone(),
                connect_time_max: time_max,
                first_byte_time_max: time_max,
                idle_time_max: time_max,
                trust_forwarded: self.trust_forwarded,
                ..UpstreamOptions::default()
            },
            target: self.url.target.clone(),
            host: self.url.host.clone(),
            sent: self.send_headers.as_deref().map_or(SENT.into(), names),
            copied: names(&self.copy_headers),
            cookies: self
                .copy_cookies
                .iter()
                .map(|name| name.0.clone())
                .collect(),
            answer_bytes_max: self.answer_size_max.map_or(ANSWER_BYTES_MAX, bytes),
            time_max,
        }))
    }

    /// Whether a backend gets fields of its answer.
    pub fn is_told(&self) -> bool {
        !self.copy_headers.is_empty()
    }
}

/// A text that is no such URL.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is no URL of a server: write it like http://127.0.0.1:4180/oauth2/auth or https://auth.internal/check"
)]
pub struct ServerUrlError(String);

impl FromStr for ServerUrl {
    type Err = ServerUrlError;

    fn from_str(text: &str) -> Result<Self, ServerUrlError> {
        let read = || {
            let uri: Uri = text.parse().ok().filter(|_| !text.contains('#'))?;
            let authority: &Authority = uri.authority()?;
            let host = authority.host().trim_matches(['[', ']']).to_owned();
            let port = |default| match authority.port() {
                None => Some(default),
                Some(port) => Some(port.as_u16()).filter(|port| *port > 0),
            };
            let address = match uri.scheme()? {
                scheme if *scheme == Scheme::HTTP => UpstreamAddress::Tcp {
                    host,
                    port: port(80)?,
                },
                scheme if *scheme == Scheme::HTTPS => UpstreamAddress::Tls {
                    host,
                    port: port(443)?,
                },
                _ => return None,
            };
            let is_plain = !authority.as_str().contains('@') && !authority.host().is_empty();
            Some(Self {
                address,
                host: HeaderValue::from_str(authority.as_str()).ok()?,
                target: uri.path_and_query()?.clone(),
            })
            .filter(|_| is_plain)
        };
        read().ok_or_else(|| ServerUrlError(shown(text)))
    }
}

impl<'de> Deserialize<'de> for ServerUrl {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        from_text(source)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_url_says_where_the_server_is_and_what_is_asked_for() {
        for (text, address, host, target) in [
            ("http://auth", "auth:80", "auth", "/"),
            (
                "https://auth/check?x=1",
                "https://auth:443",
                "auth",
                "/check?x=1",
            ),
            ("http://[::1]:4180/a", "[::1]:4180", "[::1]:4180", "/a"),
        ] {
            let url: ServerUrl = text.parse().unwrap();
            assert_eq!(url.address.to_string(), address);
            assert_eq!(
                (url.host.to_str().unwrap(), url.target.as_str()),
                (host, target)
            );
        }
        for text in [
            "",
            "auth:80",
            "/check",
            "ftp://auth/",
            "http://user@auth/",
            "http://auth:0/",
            "http://auth/a#b",
            "http://",
        ] {
            let refused = text.parse::<ServerUrl>().unwrap_err().to_string();
            assert!(
                refused.contains("http://127.0.0.1:4180/oauth2/auth"),
                "{refused}"
            );
        }
    }
}
