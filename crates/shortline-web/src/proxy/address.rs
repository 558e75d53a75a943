//! Where a backend is: `host:port`, `https://host:port` if it speaks TLS, or `unix:/path` for a socket
//! in the file system.

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
    /// A socket in the file system.
    Unix(PathBuf),
}

/// A text that is no backend's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "upstream `{text}`: {problem}; give host:port such as 127.0.0.1:9000, https://app:443, or \
     unix:/run/app.sock"
)]
pub struct AddressError {
    text: String,
    problem: &'static str,
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
    let over_tls = text.strip_prefix("https://");
    let address = over_tls
        .or_else(|| text.strip_prefix("http://"))
        .unwrap_or(text);
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
            Ok(if over_tls.is_some() {
                UpstreamAddress::Tls { host, port }
            } else {
                UpstreamAddress::Tcp { host, port }
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
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
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
            ("unix:/run/app.sock", "unix:/run/app.sock"),
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
            "unix:run/app.sock",
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
