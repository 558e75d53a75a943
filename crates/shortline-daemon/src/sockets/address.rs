//! Addresses to listen on, as people write them: `127.0.0.1:8080`, `localhost:8080`, `:8080`, `8080`, `unix:/PATH`.
//!
//! A port without an address is that port of every IPv4 address of this machine, as nginx and Caddy read it. For the
//! admin endpoint, which has no password, it is 127.0.0.1's. `localhost` is 127.0.0.1. Other names are refused:
//! whether they lead to this machine would be known only when it starts.

use std::fmt::{Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use shortline_sched::units::excerpt;

/// A port that the example of a refusal has.
const PORT_EXAMPLE: u16 = 8080;
/// The same for the admin endpoint.
const ADMIN_PORT_EXAMPLE: u16 = 9180;

/// Where clients connect: by TCP, or `unix:/PATH`. Caddy's `unix//PATH` is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// By TCP.
    Tcp(SocketAddr),
    /// In the file system.
    Unix(PathBuf),
}

/// Where the admin endpoint answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminAddress(pub Address);

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// A host alone.
    #[error("`{text}` has no port: write it like {write}")]
    NoPort {
        /// The text.
        text: String,
        /// What would be right.
        write: String,
    },
    /// A host, and no number or too large a one.
    #[error("`{0}`: its port must be a number from 1 to 65535, or 0 for any that is free")]
    Port(String),
    /// More than the address.
    #[error("`{text}` is more than an address: write {write}{tls}")]
    More {
        /// The text.
        text: String,
        /// The address in it.
        write: String,
        /// How the rest is said here.
        tls: &'static str,
    },
    /// A name.
    #[error(
        "`{text}`: {host} is a name, and an address of this machine is wanted: write :{port} for all of them \
         (the names that a site answers for are `names` of its [[site]])"
    )]
    Name {
        /// The text.
        text: String,
        /// The name in it.
        host: String,
        /// The port in it.
        port: u16,
    },
    /// Anything else.
    #[error(
        "`{0}` is no address to listen on: write it like 127.0.0.1:{PORT_EXAMPLE}, :{PORT_EXAMPLE} for all addresses of this \
         machine, or unix:/PATH"
    )]
    Other(String),
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let path = text.strip_prefix("unix:");
        match path.or_else(|| text.strip_prefix("unix/")) {
            // A mode stands behind a bar in Caddy's, and has a key of its own here.
            Some(path) if path.starts_with('/') && !path.contains(['\0', '|']) => {
                Ok(Self::Unix(path.into()))
            }
            Some(_) => Err(AddressError::Other(excerpt(text))),
            None => by_tcp(text, Ipv4Addr::UNSPECIFIED)
                .map(Self::Tcp)
                .ok_or_else(|| refusal(text, PORT_EXAMPLE)),
        }
    }
}

impl FromStr for AdminAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.starts_with("unix:") || text.starts_with("unix/") {
            return text.parse().map(Self);
        }
        by_tcp(text, Ipv4Addr::LOCALHOST)
            .map(|address| Self(Address::Tcp(address)))
            .ok_or_else(|| refusal(text, ADMIN_PORT_EXAMPLE))
    }
}

/// An address by TCP. A port alone is that of `alone`.
fn by_tcp(text: &str, alone: Ipv4Addr) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let port = number(port)?;
    let host = match host {
        "" => alone,
        "*" => Ipv4Addr::UNSPECIFIED,
        name if name.eq_ignore_ascii_case("localhost") => Ipv4Addr::LOCALHOST,
        _ => return None,
    };
    Some(SocketAddr::new(host.into(), port))
}

/// A port: digits only, which `parse` alone does not ask for.
fn number(port: &str) -> Option<u16> {
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|_| is_number)
}

/// Says what somebody who wrote this has meant.
fn refusal(text: &str, port: u16) -> AddressError {
    let shown = excerpt(text);
    let bare = without_more(text);
    if bare != text && by_tcp(bare, Ipv4Addr::UNSPECIFIED).is_some() {
        let is_tls = text.contains("https") || text.contains("ssl") || text.contains("tls");
        return AddressError::More {
            text: shown,
            write: if number(bare).is_some() {
                format!(":{bare}")
            } else {
                bare.to_owned()
            },
            tls: if is_tls {
                ", and give --tls-cert and --tls-key, or --tls-auto NAME"
            } else {
                ""
            },
        };
    }
    if let Some(host) = host_alone(bare) {
        return AddressError::NoPort {
            text: shown,
            write: format!("{host}:{port}"),
        };
    }
    match bare.rsplit_once(':') {
        Some((host, end))
            if is_name(host) || host.is_empty() || host.parse::<Ipv4Addr>().is_ok() =>
        {
            match number(end) {
                Some(port) => AddressError::Name {
                    text: shown,
                    host: host.to_owned(),
                    port,
                },
                None => AddressError::Port(shown),
            }
        }
        None if !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit()) => {
            AddressError::Port(shown)
        }
        _ => AddressError::Other(shown),
    }
}

/// The text without a scheme before it, a network as Go names it, or words behind it.
fn without_more(text: &str) -> &str {
    let text = text.split_whitespace().next().unwrap_or("");
    let before = ["http://", "https://", "tcp://", "tcp/", "tcp4/", "udp/"];
    let text = before
        .iter()
        .find_map(|before| text.strip_prefix(before))
        .unwrap_or(text);
    text.strip_suffix('/').unwrap_or(text)
}

/// The host that is all of a text, as it stands before a port.
fn host_alone(text: &str) -> Option<String> {
    let unbracketed = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    match unbracketed.unwrap_or(text).parse() {
        Ok(IpAddr::V4(ip)) => return Some(ip.to_string()),
        Ok(IpAddr::V6(ip)) => return Some(in_brackets(ip)),
        Err(_) => {}
    }
    match text {
        "*" => Some("0.0.0.0".to_owned()),
        text if text.eq_ignore_ascii_case("localhost") => Some("localhost".to_owned()),
        _ => None,
    }
}

fn in_brackets(ip: Ipv6Addr) -> String {
    format!("[{ip}]")
}

fn is_name(host: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte);
    !host.is_empty() && host.len() <= 253 && host.bytes().all(of_name)
}

impl Address {
    /// That by TCP.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl Display for Address {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn tcp(text: &str) -> String {
        text.parse::<Address>().unwrap().to_string()
    }

    fn refused(text: &str) -> String {
        text.parse::<Address>().unwrap_err().to_string()
    }

    #[test]
    fn an_address_reads_as_people_write_it() {
        for (text, address) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:80", "[::1]:80"),
            (":80", "0.0.0.0:80"),
            ("8080", "0.0.0.0:8080"),
            ("*:443", "0.0.0.0:443"),
            ("localhost:80", "127.0.0.1:80"),
            ("LocalHost:0", "127.0.0.1:0"),
            ("unix:/run/web.sock", "unix:/run/web.sock"),
            ("unix//run/web.sock", "unix:/run/web.sock"),
        ] {
            assert_eq!(tcp(text), address);
        }
    }

    #[test]
    fn a_port_alone_is_this_machines_own_for_the_admin_endpoint() {
        let admin = |text: &str| {
            text.parse::<AdminAddress>()
                .map(|address| address.0.to_string())
        };
        for text in [":9180", "9180", "localhost:9180", "127.0.0.1:9180"] {
            assert_eq!(admin(text).unwrap(), "127.0.0.1:9180");
        }
        assert_eq!(admin("0.0.0.0:9180").unwrap(), "0.0.0.0:9180");
        assert_eq!(admin("unix:/run/admin").unwrap(), "unix:/run/admin");
        let told = admin("0.0.0.0").unwrap_err().to_string();
        assert!(told.ends_with("write it like 0.0.0.0:9180"), "{told}");
    }

    #[test]
    fn what_is_none_is_told_with_what_to_write() {
        for (text, write) in [
            ("localhost", "has no port: write it like localhost:8080"),
            ("0.0.0.0", "0.0.0.0:8080"),
            ("::1", "[::1]:8080"),
            ("[::]", "[::]:8080"),
            ("*", "0.0.0.0:8080"),
            (":99999", "from 1 to 65535"),
            ("99999", "from 1 to 65535"),
            ("127.0.0.1:http", "from 1 to 65535"),
            ("127.0.0.1:+80", "from 1 to 65535"),
            (
                "http://0.0.0.0:80/",
                "is more than an address: write 0.0.0.0:80",
            ),
            ("https://:443", "write :443, and give --tls-cert"),
            ("443 ssl", "write :443, and give --tls-cert"),
            ("80 default_server", "write :80"),
            ("tcp/:80", "write :80"),
            ("http://localhost", "write it like localhost:8080"),
            ("example.org:80", "example.org is a name"),
            ("unix:run.sock", "unix:/PATH"),
            ("", "write it like 127.0.0.1:8080"),
            ("example.org", "write it like 127.0.0.1:8080"),
        ] {
            let told = refused(text);
            assert!(told.contains(write), "{told}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in "(http://|:|localhost|unix:|\\[)?\\PC{0,80}") {
            if let Err(error) = text.parse::<Address>() {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }

        #[test]
        fn what_is_read_reads_back(port: u16, host in "(|localhost|\\*|10\\.0\\.0\\.7|\\[::1\\])") {
            let address: Address = format!("{host}:{port}").parse().unwrap();
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }
    }
}
