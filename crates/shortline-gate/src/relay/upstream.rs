//! The backend's address, and how to connect to it.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use shortline_base::world;
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
#[error("`{0}` is no HOST:PORT; an IPv6 address goes in brackets; a Unix socket is unix:/PATH")]
pub struct UpstreamError(String);

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
        let refused = || UpstreamError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            let is_path = path.starts_with('/') && !path.contains('\0');
            return is_path
                .then(|| Self {
                    host: path.to_owned(),
                    port: 0,
                })
                .ok_or_else(refused);
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(refused)?;
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = match bare {
            Some(bare) => bare,
            None if host.contains(':') => return Err(refused()),
            None => host,
        };
        let port = port.parse().map_err(|_| refused())?;
        if host.is_empty() || port == 0 {
            return Err(refused());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
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
    fn what_is_none_is_named() {
        for text in [
            "db", ":5432", "db:", "db:0", "::1:5432", "db:65536", "unix:s",
        ] {
            let error = text.parse::<Upstream>().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
