//! The backend's address, and how to connect to it.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

use shortline_base::world;
use shortline_sched::units::excerpt;
use tokio::net::{TcpStream, UnixStream};

use super::Socket;
use super::stream::prepare;

/// The backend's address: a name or an IP address with a port, or the path of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// A host name, or an IP address without brackets, or a path that begins with a slash.
    pub host: String,
    /// Its port. 0 for a path.
    pub port: u16,
}

/// Why the backend could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kernel or the resolver reports an error.
    #[error("cannot connect to {upstream}: {source}")]
    Refused {
        /// The backend.
        upstream: Upstream,
        /// The error.
        source: io::Error,
    },
    /// No answer came in time.
    #[error("cannot connect to {upstream} within {} ms", limit.as_millis())]
    TooSlow {
        /// The backend.
        upstream: Upstream,
        /// The time limit.
        limit: Duration,
    },
}

/// A text that is not a backend's address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// The text of a client's configuration, with the address in it.
    #[error("`{text}` is more than HOST:PORT: write {write}; user and database are the client's")]
    More {
        /// The text.
        text: String,
        /// The address in it.
        write: String,
    },
    /// A host alone, where no port is usual.
    #[error("`{0}` has no port: write HOST:PORT")]
    NoPort(String),
    /// No number, or too large a one.
    #[error("`{0}`: its port must be a number from 1 to 65535")]
    Port(String),
    /// An IPv6 address without brackets.
    #[error("`{0}`: an IPv6 address goes in brackets, such as [::1]:5432")]
    Brackets(String),
    /// A path.
    #[error(
        "`{0}` is a path: a Unix socket is written unix:/PATH and ends with the socket's own name, such as \
         unix:/run/postgresql/.s.PGSQL.5432 or unix:/run/mysqld/mysqld.sock"
    )]
    Path(String),
    /// Anything else.
    #[error("`{0}` is no HOST:PORT; an IPv6 address goes in brackets; a Unix socket is unix:/PATH")]
    Other(String),
}

impl Upstream {
    /// Whether it is on this machine, judged by its name alone.
    pub fn is_here(&self) -> bool {
        let address: Result<IpAddr, _> = self.host.parse();
        address.map_or(self.host == "localhost" || self.is_path(), |address| {
            address.to_canonical().is_loopback()
        })
    }

    /// Whether it is a Unix socket.
    pub fn is_path(&self) -> bool {
        self.host.starts_with('/')
    }

    /// Connects to the first of the backend's addresses that accepts, within `limit`.
    ///
    /// # Errors
    /// [`ConnectError`]
    pub async fn connect(&self, limit: Duration) -> Result<Socket, ConnectError> {
        let connecting = async {
            if let Some(connecting) = world::connect(&self.host, self.port) {
                return Ok(Socket::from(connecting.await?));
            }
            if self.is_path() {
                return Ok(Socket::from(UnixStream::connect(&self.host).await?));
            }
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            prepare(&stream)?;
            Ok(Socket::from(stream))
        };
        match tokio::time::timeout(limit, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(source)) => Err(ConnectError::Refused {
                upstream: self.clone(),
                source,
            }),
            Err(_) => Err(ConnectError::TooSlow {
                upstream: self.clone(),
                limit,
            }),
        }
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_path() {
            write!(formatter, "unix:{}", self.host)
        } else if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        Self::read(text, None)
    }
}

impl Upstream {
    /// Reads an address as people write it. `HOST` alone is at the usual port, if there is one; `:PORT` and `PORT` are
    /// this machine's.
    ///
    /// # Errors
    /// [`UpstreamError`]
    pub fn read(text: &str, port_usual: Option<u16>) -> Result<Self, UpstreamError> {
        if let Some(path) = text.strip_prefix("unix:") {
            let is_path = path.starts_with('/') && !path.contains('\0');
            return is_path
                .then(|| Self::at(path, 0))
                .ok_or_else(|| UpstreamError::Path(excerpt(text)));
        }
        by_tcp(text, port_usual).map_err(|refused| refused.unwrap_or_else(|| refusal(text)))
    }

    fn at(host: &str, port: u16) -> Self {
        Self {
            host: host.to_owned(),
            port,
        }
    }
}

/// An address by TCP; without an error where what was meant has to be found out.
fn by_tcp(text: &str, port_usual: Option<u16>) -> Result<Upstream, Option<UpstreamError>> {
    if let Some(port) = number(text) {
        return Ok(Upstream::at("127.0.0.1", port));
    }
    let (host, port) = match text.rsplit_once(':') {
        // The end of an IPv6 address.
        Some(_) if text.ends_with(']') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host = match bare {
        Some(bare) if bare.parse::<Ipv6Addr>().is_ok() => bare,
        None if is_name(host) => host,
        None if host.is_empty() && port.is_some() => "127.0.0.1",
        _ => return Err(None),
    };
    let port = match port {
        None => port_usual.ok_or_else(|| UpstreamError::NoPort(excerpt(text)))?,
        Some(port) => number(port).ok_or_else(|| UpstreamError::Port(excerpt(text)))?,
    };
    Ok(Upstream::at(host, port))
}

fn number(port: &str) -> Option<u16> {
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|port| is_number && *port != 0)
}

/// Whether it may be a host's name, or an IPv4 address.
fn is_name(host: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte) || byte >= 0x80;
    !host.is_empty() && host.bytes().all(of_name)
}

/// Says what somebody who wrote this has meant: a client's URL or its parameters (libpq 34.1.1), a path.
fn refusal(text: &str) -> UpstreamError {
    let shown = excerpt(text);
    if text.starts_with('/') {
        return UpstreamError::Path(shown);
    }
    let is_url = text.contains("://");
    if text.parse::<Ipv6Addr>().is_ok() || !is_url && text.matches(':').count() > 2 {
        return UpstreamError::Brackets(shown);
    }
    let of_url = text.split_once("://").map(|(_, rest)| {
        let authority = rest.split(['/', '?']).next().unwrap_or(rest);
        let address = authority
            .rsplit_once('@')
            .map_or(authority, |(_, address)| address);
        address.to_owned()
    });
    let parameter = |name: &str| {
        let words = text
            .split_whitespace()
            .filter_map(|word| word.split_once('='));
        let mut named = words.filter(|(key, _)| *key == name);
        named.next().map(|(_, value)| value)
    };
    let of_parameters = parameter("host").map(|host| match parameter("port") {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    });
    match of_url.or(of_parameters) {
        Some(write) if by_tcp(&write, Some(1)).is_ok() => {
            UpstreamError::More { text: shown, write }
        }
        _ => UpstreamError::Other(shown),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_address_reads_back() {
        for text in ["db:5432", "127.0.0.1:1", "[::1]:5432", "unix:/run/s"] {
            assert_eq!(text.parse::<Upstream>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_on_this_machine_is_known_by_its_name() {
        let is_here = |text: &str| text.parse::<Upstream>().unwrap().is_here();
        assert!(
            is_here("localhost:1")
                && is_here("127.0.0.2:1")
                && is_here("[::1]:1")
                && is_here("unix:/s")
        );
        assert!(!is_here("db:1") && !is_here("192.0.2.1:1") && !is_here("[2001:db8::1]:1"));
    }

    #[test]
    fn a_host_or_a_port_alone_is_completed() {
        let read = |text: &str| Upstream::read(text, Some(5432)).unwrap().to_string();
        for (text, address) in [
            ("localhost", "localhost:5432"),
            ("db.internal", "db.internal:5432"),
            ("[::1]", "[::1]:5432"),
            ("db:1", "db:1"),
            (":6432", "127.0.0.1:6432"),
            ("6432", "127.0.0.1:6432"),
        ] {
            assert_eq!(read(text), address);
        }
    }

    #[test]
    fn what_is_none_is_named_with_what_to_write() {
        for (text, write) in [
            ("db", "HOST:PORT"),
            ("db:", "from 1 to 65535"),
            ("db:0", "from 1 to 65535"),
            ("::1:5432", "brackets"),
            ("db:65536", "from 1 to 65535"),
            ("unix:s", "unix:/PATH"),
            ("/run/postgresql", "unix:/PATH"),
            ("postgres://app:pw@db:5432/shop?x=1", "write db:5432;"),
            ("host=db port=5432 user=app", "write db:5432;"),
            ("a b", "HOST:PORT"),
            ("", "HOST:PORT"),
        ] {
            let error = text.parse::<Upstream>().unwrap_err().to_string();
            assert!(error.contains(write), "{error}");
        }
    }
}
