//! Where a backend is: `host:port`, `https://host:port` if it speaks TLS, `h2c://host:port` if it speaks
//! HTTP/2 without TLS, or `unix:/path` for a socket in the file system; `fastcgi://host:port` or
//! `fastcgi:///path` if it speaks FastCGI. `srv+http://name`, `srv+https://name` and `srv+h2c://name` are as many servers as DNS
//! names (SRV). A URL without a port has its scheme's usual one; `:port` and `port` alone are this machine's.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use shortline_sched::units::excerpt;

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
    /// Servers that DNS names.
    Service(Service),
}

/// Servers that DNS names by SRV records, and how they are spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The name of the records, such as `_http._tcp.example.org`.
    pub name: String,
    /// What is spoken there.
    pub scheme: Scheme,
}

/// What is spoken at the servers of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP/1.1.
    Http,
    /// HTTP over TLS.
    Https,
    /// HTTP/2 without TLS.
    H2c,
}

impl Service {
    /// One of its servers.
    pub fn server(&self, host: &str, port: u16) -> UpstreamAddress {
        let host = host.to_owned();
        match self.scheme {
            Scheme::Http => UpstreamAddress::Tcp { host, port },
            Scheme::Https => UpstreamAddress::Tls { host, port },
            Scheme::H2c => UpstreamAddress::H2c { host, port },
        }
    }
}

impl UpstreamAddress {
    /// Whether FastCGI is spoken there.
    pub fn speaks_fastcgi(&self) -> bool {
        matches!(self, Self::FastCgiTcp { .. } | Self::FastCgiUnix(_))
    }

    /// Whether TLS is spoken there.
    pub fn has_tls(&self) -> bool {
        match self {
            Self::Tls { .. } => true,
            Self::Service(service) => service.scheme == Scheme::Https,
            _ => false,
        }
    }

    /// Whether HTTP/2 is spoken there without TLS.
    pub fn is_h2c(&self) -> bool {
        match self {
            Self::H2c { .. } => true,
            Self::Service(service) => service.scheme == Scheme::H2c,
            _ => false,
        }
    }
}

/// A text that is no backend's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("upstream `{text}`: {problem}")]
pub struct AddressError {
    text: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error(
        "{0}; give host:port such as 127.0.0.1:9000, https://app:443, h2c://127.0.0.1:50051, unix:/run/app.sock, \
         srv+http://_http._tcp.example.org, or for FastCGI fastcgi:///run/php.sock or fastcgi://127.0.0.1:9000"
    )]
    Other(&'static str),
    #[error("has no port: write {0}:9000")]
    NoPort(String),
    #[error("its port must be a number from 1 to 65535")]
    Port,
    #[error(
        "is a server without a path: write {0}, and change paths by strip-prefix or rewrite of a [[site.rule]]"
    )]
    Path(String),
    #[error(
        "{0}:// is not spoken: write http://, https://, h2c:// or fastcgi:// before host and port"
    )]
    Scheme(String),
}

impl From<&'static str> for Problem {
    fn from(problem: &'static str) -> Self {
        Self::Other(problem)
    }
}

impl UpstreamAddress {
    /// Its host, by which its certificate is checked. A socket in the file system has none.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Tcp { host, .. }
            | Self::Tls { host, .. }
            | Self::H2c { host, .. }
            | Self::FastCgiTcp { host, .. } => Some(host),
            Self::Unix(_) | Self::FastCgiUnix(_) | Self::Service(_) => None,
        }
    }
}

impl FromStr for UpstreamAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        parse(text).map_err(|problem| AddressError {
            text: excerpt(text),
            problem,
        })
    }
}

fn parse(text: &str) -> Result<UpstreamAddress, Problem> {
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.starts_with('/') {
            Ok(UpstreamAddress::Unix(path.into()))
        } else {
            Err("the socket's path must be absolute".into())
        };
    }
    if let Some(port) = number(text.strip_prefix(':').unwrap_or(text)) {
        return Ok(UpstreamAddress::Tcp {
            host: "127.0.0.1".to_owned(),
            port,
        });
    }
    if let Some(path) = text.strip_prefix("fastcgi://")
        && path.len() > 1
        && path.starts_with('/')
    {
        return Ok(UpstreamAddress::FastCgiUnix(path.into()));
    }
    if let Some(service) = text.strip_prefix("srv+") {
        return Ok(UpstreamAddress::Service(parse_service(service)?));
    }
    let (scheme, address) = ["https://", "h2c://", "fastcgi://", "http://"]
        .into_iter()
        .find_map(|scheme| Some((scheme, text.strip_prefix(scheme)?)))
        .unwrap_or(("http://", text));
    if let Some((other, _)) = address.split_once("://") {
        return Err(Problem::Scheme(excerpt(other)));
    }
    let address = address.strip_suffix('/').unwrap_or(address);
    if let Some((before, _)) = address.split_once(['/', '?'])
        && !before.is_empty()
        && !before.ends_with(':')
    {
        let scheme = text.find("://").map_or("", |end| &text[..end + 3]);
        return Err(Problem::Path(excerpt(&format!("{scheme}{before}"))));
    }
    let authority: http::uri::Authority = address.parse().map_err(|_| "no host and port")?;
    if authority.as_str().contains('@') {
        return Err("a user has no place here".into());
    }
    let host = authority.host();
    let host = host
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(host);
    if host.is_empty() {
        return Err("no host and port".into());
    }
    let ends_with_host = authority.as_str() == authority.host();
    let port = match number(authority.as_str().rsplit(':').next().unwrap_or("")) {
        Some(port) if !ends_with_host => port,
        _ if !ends_with_host => return Err(Problem::Port),
        // Only a URL has a port that it need not say.
        _ if text.starts_with("http://") => 80,
        _ if text.starts_with("https://") => 443,
        _ => return Err(Problem::NoPort(excerpt(text))),
    };
    let host = host.to_owned();
    Ok(match scheme {
        "https://" => UpstreamAddress::Tls { host, port },
        "h2c://" => UpstreamAddress::H2c { host, port },
        "fastcgi://" => UpstreamAddress::FastCgiTcp { host, port },
        _ => UpstreamAddress::Tcp { host, port },
    })
}

/// A port: digits only, and not 0.
fn number(port: &str) -> Option<u16> {
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|port| is_number && *port != 0)
}

fn parse_service(text: &str) -> Result<Service, &'static str> {
    let schemes = [
        ("http://", Scheme::Http),
        ("https://", Scheme::Https),
        ("h2c://", Scheme::H2c),
    ];
    let mut schemes = schemes.into_iter();
    let found = schemes.find_map(|(prefix, scheme)| Some((text.strip_prefix(prefix)?, scheme)));
    let (name, scheme) = found.ok_or("srv+ is for http://, https:// and h2c://")?;
    let name = name.strip_suffix('/').unwrap_or(name);
    let name = name.strip_suffix('.').unwrap_or(name);
    let of_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(of_label);
    if name.contains(':') {
        return Err("the records of the name have the port");
    }
    match name.len() <= 253 && name.split('.').all(is_label) {
        true => Ok(Service {
            name: name.to_ascii_lowercase(),
            scheme,
        }),
        false => Err("no name of DNS"),
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
            Self::Service(service) => {
                let scheme = match service.scheme {
                    Scheme::Http => "http",
                    Scheme::Https => "https",
                    Scheme::H2c => "h2c",
                };
                write!(formatter, "srv+{scheme}://{}", service.name)
            }
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
            (":9000", "127.0.0.1:9000"),
            ("9000", "127.0.0.1:9000"),
            ("http://app", "app:80"),
            ("https://app/", "https://app:443"),
            ("http://app.internal:80/", "app.internal:80"),
            ("[::1]:8080", "[::1]:8080"),
            ("https://app.internal:443/", "https://app.internal:443"),
            ("https://[::1]:8443", "https://[::1]:8443"),
            ("h2c://app.internal:50051/", "h2c://app.internal:50051"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
            ("fastcgi://[::1]:9000", "fastcgi://[::1]:9000"),
            ("fastcgi://php:9000/", "fastcgi://php:9000"),
            ("fastcgi:///run/php.sock", "fastcgi:///run/php.sock"),
            (
                "srv+http://_http._tcp.Example.org./",
                "srv+http://_http._tcp.example.org",
            ),
            ("srv+https://app", "srv+https://app"),
            ("srv+h2c://_grpc._tcp.a", "srv+h2c://_grpc._tcp.a"),
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
            ":0",
            "app:99999",
            "app:+1",
            "ftp://app:21",
            "postgres://app:5432",
            "http://",
            "h2c://app",
            "unix:run/app.sock",
            "fastcgi://php",
            "fastcgi:///",
            "fastcgi://php:9000/path",
            "user@app:80",
            "srv+app",
            "srv+fastcgi://app",
            "srv+http://",
            "srv+http://app:80",
            "srv+http://a..b",
            "srv+http://a b",
            "srv+http://a/b",
            "http://app:80/path",
            "a b:80",
        ] {
            let error = text.parse::<UpstreamAddress>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("upstream `{text}`: ")),
                "{error}"
            );
            let remedies = ["give host:port", "write ", "from 1 to 65535"];
            assert!(remedies.iter().any(|said| error.contains(said)), "{error}");
        }
    }
}
