//! By which names the admin endpoint is asked.
//!
//! A page of any site can have its own name resolve to 127.0.0.1 once it is loaded (DNS rebinding) and
//! then read what answers there, for to the browser that is the same site. What such a page cannot
//! change is the name in `Host`. So only names are answered that a stranger's site cannot have: an
//! address, `localhost`, and those that the operator gives. Clients that are no browser and send
//! neither `Host` nor a name in the target (HTTP/1.0) are answered.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::uri::Authority;
use http::{Request, header};
use serde::Deserialize;

use crate::keys::from_text;

/// The longest name of a host (RFC 1035, 2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// A name by which the endpoint may be asked, in small letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

/// A text that is no name of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of a host: give it without scheme and port, such as gate.example")]
pub struct HostNameError(String);

/// The names, beside addresses and `localhost`, by which the endpoint may be asked.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<HostName>);

impl Hosts {
    /// These names.
    pub fn new(names: &[HostName]) -> Self {
        Self(names.to_vec())
    }

    /// Why a request is not answered, if it asks by another name.
    pub fn refusal<B>(&self, request: &Request<B>) -> Option<String> {
        let of_target = request.uri().authority().map(Authority::as_str);
        let fields = request.headers().get_all(header::HOST).iter();
        let given = fields.map(|value| value.to_str().unwrap_or("?"));
        let strange = of_target
            .into_iter()
            .chain(given)
            .find(|text| !self.has(text))?;
        Some(format!(
            "the admin endpoint does not answer to the name `{}`: ask by its IP address or as \
             localhost, or start it with --admin-host NAME\n",
            strange.escape_debug()
        ))
    }

    /// Whether `text`, a host with or without a port, is a name of ours.
    fn has(&self, text: &str) -> bool {
        let Ok(authority) = text.parse::<Authority>() else {
            return false;
        };
        if text.contains('@') {
            return false;
        }
        let host = authority.host();
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let name = host.strip_suffix('.').unwrap_or(host);
        bare.unwrap_or(host).parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.0.iter().any(|own| name.eq_ignore_ascii_case(&own.0))
    }
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_part);
        if is_name {
            Ok(Self(name.to_ascii_lowercase()))
        } else {
            Err(HostNameError(text.escape_debug().to_string()))
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        from_text(source)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn asked(target: &str, hosts: &[&str]) -> Request<()> {
        let mut request = Request::builder().uri(target);
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn addresses_localhost_and_given_names_are_answered() {
        let hosts = Hosts::new(&["Gate.Example".parse().unwrap()]);
        for host in [
            "127.0.0.1",
            "127.0.0.1:9181",
            "192.0.2.7:9181",
            "[::1]:9181",
            "[::1]",
            "localhost",
            "LOCALHOST:9181",
            "localhost.:9181",
            "gate.example",
            "GATE.example:80",
        ] {
            assert_eq!(hosts.refusal(&asked("/", &[host])), None, "{host}");
        }
        assert_eq!(hosts.refusal(&asked("/", &[])), None);
    }

    #[test]
    fn a_page_whose_name_was_bound_anew_is_not_answered() {
        let hosts = Hosts::new(&["gate.example".parse().unwrap()]);
        for host in [
            "evil.example",
            "evil.example:9181",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "gate.example.evil.example",
            "user@127.0.0.1",
            "127.0.0.1, evil.example",
            "",
            ":9181",
        ] {
            let refused = hosts.refusal(&asked("/", &[host]));
            assert!(refused.unwrap().contains("--admin-host NAME"), "{host}");
        }
        assert!(
            hosts
                .refusal(&asked("/", &["127.0.0.1", "evil.example"]))
                .is_some()
        );
        let absolute = asked("http://evil.example/status", &["127.0.0.1"]);
        assert!(hosts.refusal(&absolute).is_some());
    }

    #[test]
    fn a_name_is_given_without_scheme_and_port() {
        for text in ["", ".", "http://gate", "gate:80", "a b", "ä.example"] {
            let error = text.parse::<HostName>().unwrap_err().to_string();
            assert!(error.contains("such as gate.example"), "{error}");
        }
        assert_eq!(
            "Gate.Example.".parse::<HostName>().unwrap().to_string(),
            "gate.example"
        );
    }
}
