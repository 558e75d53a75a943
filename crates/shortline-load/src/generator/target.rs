//! The server that is loaded: `http://HOST[:PORT]` or `https://HOST[:PORT]`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use thiserror::Error;

/// A server: scheme, host and port. The trace gives the paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    secure: bool,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// Host and port as in the `Host` header.
    authority: String,
}

/// Whom to trust over TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Certificates signed by one of those in this PEM file.
    Ca(PathBuf),
    /// Any certificate: for test beds.
    Anyone,
}

/// Text that names no server.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("target `{text}`: want http://HOST[:PORT] or https://HOST[:PORT] without a path")]
pub struct TargetError {
    text: String,
}

impl Target {
    /// Whether it is reached over TLS.
    pub fn secure(&self) -> bool {
        self.secure
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        parse(text).ok_or_else(|| TargetError { text: text.into() })
    }
}

fn parse(text: &str) -> Option<Target> {
    let uri: Uri = text.parse().ok()?;
    let secure = match uri.scheme_str()? {
        "http" => false,
        "https" => true,
        _ => return None,
    };
    let authority = uri.authority()?;
    if uri
        .path_and_query()
        .is_some_and(|path| path.as_str() != "/")
        || authority.as_str().contains('@')
        || text.contains('#')
    {
        return None;
    }
    let host = authority.host();
    let port = match authority.as_str()[host.len()..].strip_prefix(':') {
        None => {
            if secure {
                443
            } else {
                80
            }
        }
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
    };
    Some(Target {
        secure,
        host: host.trim_matches(['[', ']']).to_owned(),
        port,
        authority: authority.as_str().to_owned(),
    })
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.authority)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ports_follow_the_scheme() {
        let target: Target = "https://example.org".parse().unwrap();
        assert_eq!(
            (target.secure(), target.host(), target.port()),
            (true, "example.org", 443)
        );
        let target: Target = "http://[::1]:8080/".parse().unwrap();
        assert_eq!((target.host(), target.port()), ("::1", 8080));
        assert_eq!(target.to_string(), "http://[::1]:8080");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "example.org",
            "ftp://x",
            "http://",
            "http://x/path",
            "http://x/?q",
            "http://x:0",
            "http://x:99999",
            "http://x:",
            "http://u@x",
            "http://x#f",
        ] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(
                error.contains("want http://HOST[:PORT]"),
                "{text:?}: {error}"
            );
        }
    }
}
