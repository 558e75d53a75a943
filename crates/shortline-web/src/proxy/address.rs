//! Where a backend is: `host:port`, `https://host:port` if it speaks TLS, `h2c://host:port` if it speaks
//! HTTP/2 without TLS, or `unix:/path` for a socket in the file system; `fastcgi://host:port` or
//! `fastcgi:///path` if it speaks FastCGI.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A backend's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamAddress {
    /// A host, by name or number, and a port. A name is looked up for every new connection.
    Tcp {
        /// The host; an IPv6 address without its brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// The same, with TLS for that name.
    Tls {
        /// The host; an IPv6 address without its brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// The same without TLS, where HTTP/2 is known to be spoken (RFC 9113 3.3).
    H2c {
        /// The host; an IPv6 address without its brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket in the file system.
    Unix(PathBuf),
    /// A host and a port where FastCGI is spoken.
    FastCgiTcp {
        /// The host; an IPv6 address without its brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket in the file system where FastCGI is spoken.
    FastCgiUnix(PathBuf),
}

impl UpstreamAddress {
    /// Whether FastCGI is spoken there.
    pub fn speaks_fastcgi(&self) -> bool {
        matches!(self, Self::FastCgiTcp { .. } | Self::FastCgiUnix(_))
    }
}

/// A text that is no backend's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "upstream `{text}`: {problem}; give host:port such as 127.0.0.1:9000, https://app:443, \
     h2c://127.0.0.1:50051, unix:/run/app.sock, or for FastCGI fastcgi:///run/php.sock or \
     fastcgi://127.0.0.1:9000"
)]
pub struct AddressError {
    text: String,
    problem: &'static str,
}

impl UpstreamAddress {
    /// Its host, by which its certificate is checked. A socket in the file system has none.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Tcp { host, .. }
            | Self::Tls { host, .. }
            | Self::H2c { host, .. }
            | Self::FastCgiTcp { host, .. } => Some(host),
            Self::Unix(_) | Self::FastCgiUnix(_) => None,
        }
    }
}

impl FromStr for UpstreamAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        parse(text).map_err(|problem| AddressError {
            text: text.to_owned(),
            problem,
        })
    }
}

fn parse(text: &str) -> Result<UpstreamAddress, &'static str> {
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.starts_with('/') {
            Ok(UpstreamAddress::Unix(path.into()))
        } else {
            Err("the socket's path must be absolute")
        };
    }
    if let Some(path) = text.strip_prefix("fastcgi://")
        && path.len() > 1
        && path.starts_with('/')
    {
        return Ok(UpstreamAddress::FastCgiUnix(path.into()));
    }
    let (scheme, address) = ["https://", "h2c://", "fastcgi://", "http://"]
        .into_iter()
        .find_map(|scheme| Some((scheme, text.strip_prefix(scheme)?)))
        .unwrap_or(("http://", text));
    let address = address.strip_suffix('/').unwrap_or(address);
    let authority: http::uri::Authority = address.parse().map_err(|_| "no host and port")?;
    if authority.as_str().contains('@') {
        return Err("a user has no place here");
    }
    let host = authority.host();
    let host = host
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(host);
    match authority.port_u16() {
        Some(port) if port > 0 && !host.is_empty() => {
            let host = host.to_owned();
            Ok(match scheme {
                "https://" => UpstreamAddress::Tls { host, port },
                "h2c://" => UpstreamAddress::H2c { host, port },
                "fastcgi://" => UpstreamAddress::FastCgiTcp { host, port },
                _ => UpstreamAddress::Tcp { host, port },
            })
        }
        _ => Err("no host and port"),
    }
}

impl fmt::Display for UpstreamAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write_authority(formatter, host, *port),
            Self::Tls { host, port } => {
                formatter.write_str("https://")?;
                write_authority(formatter, host, *port)
            }
            Self::H2c { host, port } => {
                formatter.write_str("h2c://")?;
                write_authority(formatter, host, *port)
            }
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::FastCgiTcp { host, port } => {
                formatter.write_str("fastcgi://")?;
                write_authority(formatter, host, *port)
            }
            Self::FastCgiUnix(path) => write!(formatter, "fastcgi://{}", path.display()),
        }
    }
}

fn write_authority(formatter: &mut fmt::Formatter<'_>, host: &str, port: u16) -> fmt::Result {
    if host.contains(':') {
        write!(formatter, "[{host}]:{port}")
    } else {
        write!(formatter, "{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (text, written) in [
            ("127.0.0.1:9000", "127.0.0.1:9000"),
            ("http://app.internal:80/", "app.internal:80"),
            ("[::1]:8080", "[::1]:8080"),
            ("https://app.internal:443/", "https://app.internal:443"),
            ("https://[::1]:8443", "https://[::1]:8443"),
            ("h2c://app.internal:50051/", "h2c://app.internal:50051"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
            ("fastcgi://[::1]:9000", "fastcgi://[::1]:9000"),
            ("fastcgi://php:9000/", "fastcgi://php:9000"),
            ("fastcgi:///run/php.sock", "fastcgi:///run/php.sock"),
        ] {
            let address: UpstreamAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), written);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_remedy() {
        for text in [
            "",
            "app",
            "app:",
            "app:0",
            ":80",
            "app:99999",
            "https://app",
            "h2c://app",
            "unix:run/app.sock",
            "fastcgi://php",
            "fastcgi:///",
            "fastcgi://php:9000/path",
            "user@app:80",
            "http://app:80/path",
            "a b:80",
        ] {
            let error = text.parse::<UpstreamAddress>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("upstream `{text}`: ")),
                "{error}"
            );
            assert!(error.contains("host:port"), "{error}");
        }
    }
}
