//! The client's address as a proxy announces it before anything else on a connection. Source: the PROXY protocol, versions 1 and 2
//! (HAProxy's proxy-protocol.txt).
//!
//! ```text
//! v1   PROXY TCP4|TCP6 source destination source-port destination-port CRLF, or PROXY UNKNOWN ... CRLF
//! v2   signature (12)  0x2v (v: 0 local, 1 proxied)  family (high 4 bits) | protocol  length (2)  addresses  TLVs
//! ```
//!
//! Not a byte beyond the header is read, so what follows may be anything: TLS, HTTP, a database's protocol. TLVs are passed over. A
//! library (ppp 2.3) parses what is in a buffer, but does not say how much to read.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The start of a header of version 2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The start of a header of version 1.
const WORD: &[u8] = b"PROXY ";
/// The longest line of version 1, in bytes.
const LINE_BYTES_MAX: usize = 107;
/// The bytes of version 2 before the addresses: signature, command, family, length.
const PREFIX_BYTES: usize = 16;
/// The longest rest of version 2 that is read, in bytes: addresses and TLVs, such as the names of certificates.
const REST_BYTES_MAX: usize = 4096;

/// The two ends of a client's connection to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The client's.
    pub client: SocketAddr,
    /// The proxy's, to which the client has connected.
    pub proxy: SocketAddr,
}

/// The version of a header that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A line of text.
    One,
    /// Binary.
    Two,
}

/// A text that names no version.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no version of the PROXY protocol: give \"v1\" (text) or \"v2\" (binary)")]
pub struct VersionError(String);

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        match text {
            "v1" => Ok(Self::One),
            "v2" => Ok(Self::Two),
            _ => Err(VersionError(text.escape_debug().to_string())),
        }
    }
}

/// The state of a header that is being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// The header needs this many bytes to go on.
    Needs(usize),
    /// The header is complete. `None` if it has no address, such as for a health check of the proxy itself.
    Whole(Option<Ends>),
}

/// Bytes that are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Neither of the two versions.
    #[error("a trusted proxy sent no PROXY header")]
    None,
    /// A malformed line of version 1.
    #[error("a trusted proxy sent a wrong PROXY line")]
    Line,
    /// A malformed header of version 2.
    #[error("a trusted proxy sent a wrong PROXY header")]
    Binary,
}

/// Reads the header from the start of a connection.
///
/// # Errors
/// Those of the connection, and [`HeaderError`] as invalid data.
pub async fn read(connection: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Ends>> {
    let mut bytes = Vec::new();
    loop {
        match Header::of(&bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?
        {
            Header::Whole(ends) => return Ok(ends),
            Header::Needs(length) => {
                let had = bytes.len();
                bytes.resize(length, 0);
                connection.read_exact(&mut bytes[had..]).await?;
            }
        }
    }
}

/// The header that announces a client; without one it is the proxy's own connection.
pub fn announcement(version: Version, ends: Option<Ends>) -> Vec<u8> {
    let same_family = ends.map(|Ends { client, proxy }| {
        let (from, to) = (client.ip().to_canonical(), proxy.ip().to_canonical());
        match (from, to) {
            (IpAddr::V4(_), IpAddr::V4(_)) => (from, to, client.port(), proxy.port()),
            _ => (mapped(from), mapped(to), client.port(), proxy.port()),
        }
    });
    match version {
        Version::One => line_of(same_family),
        Version::Two => binary_of(same_family),
    }
}

/// Addresses and ports, client first, of one family.
type SameFamily = (IpAddr, IpAddr, u16, u16);

fn mapped(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().into(),
        IpAddr::V6(ip) => ip.into(),
    }
}

fn line_of(ends: Option<SameFamily>) -> Vec<u8> {
    match ends {
        None => b"PROXY UNKNOWN\r\n".to_vec(),
        Some((from, to, from_port, to_port)) => {
            let family = if from.is_ipv4() { "TCP4" } else { "TCP6" };
            format!("PROXY {family} {from} {to} {from_port} {to_port}\r\n").into_bytes()
        }
    }
}

fn binary_of(ends: Option<SameFamily>) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    let Some((from, to, from_port, to_port)) = ends else {
        header.extend([0x20, 0, 0, 0]);
        return header;
    };
    let octets = |ip| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let addresses = [octets(from), octets(to)].concat();
    let family = if from.is_ipv4() { 0x11 } else { 0x21 };
    header.extend([0x21, family, 0, addresses.len() as u8 + 4]);
    header.extend(addresses);
    header.extend(from_port.to_be_bytes());
    header.extend(to_port.to_be_bytes());
    header
}

impl Header {
    /// Reads the header from the first bytes of a connection.
    ///
    /// # Errors
    /// [`HeaderError`]
    pub fn of(bytes: &[u8]) -> Result<Self, HeaderError> {
        let Some(first) = bytes.first_chunk::<{ SIGNATURE.len() }>() else {
            return Ok(Self::Needs(SIGNATURE.len()));
        };
        if *first == SIGNATURE {
            binary(bytes)
        } else if first.starts_with(WORD) {
            line(bytes)
        } else {
            Err(HeaderError::None)
        }
    }
}

fn line(bytes: &[u8]) -> Result<Header, HeaderError> {
    if !bytes.ends_with(b"\n") {
        // Reads one byte at a time, so as not to read beyond the line.
        return if bytes.len() < LINE_BYTES_MAX {
            Ok(Header::Needs(bytes.len() + 1))
        } else {
            Err(HeaderError::Line)
        };
    }
    let text = std::str::from_utf8(bytes).map_err(|_| HeaderError::Line)?;
    let text = text.strip_suffix("\r\n").ok_or(HeaderError::Line)?;
    let words: Vec<&str> = text.split(' ').collect();
    Ok(Header::Whole(match words[..] {
        [_, "UNKNOWN", ..] => None,
        [_, "TCP4", from, to, from_port, to_port] => {
            let ips = (parsed::<Ipv4Addr>(from)?, parsed::<Ipv4Addr>(to)?);
            Some(ends(ips, (parsed(from_port)?, parsed(to_port)?)))
        }
        [_, "TCP6", from, to, from_port, to_port] => {
            let ips = (parsed::<Ipv6Addr>(from)?, parsed::<Ipv6Addr>(to)?);
            Some(ends(ips, (parsed(from_port)?, parsed(to_port)?)))
        }
        _ => return Err(HeaderError::Line),
    }))
}

fn parsed<T: FromStr>(text: &str) -> Result<T, HeaderError> {
    text.parse().map_err(|_| HeaderError::Line)
}

fn ends<T: Into<IpAddr>>((from, to): (T, T), (from_port, to_port): (u16, u16)) -> Ends {
    Ends {
        client: SocketAddr::new(from.into(), from_port),
        proxy: SocketAddr::new(to.into(), to_port),
    }
}

fn binary(bytes: &[u8]) -> Result<Header, HeaderError> {
    let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else {
        return Ok(Header::Needs(PREFIX_BYTES));
    };
    let rest_bytes = usize::from(u16::from_be_bytes([prefix[14], prefix[15]]));
    if rest_bytes > REST_BYTES_MAX {
        return Err(HeaderError::Binary);
    }
    let rest = &bytes[PREFIX_BYTES..];
    if rest.len() < rest_bytes {
        return Ok(Header::Needs(PREFIX_BYTES + rest_bytes));
    }
    let ends = match (prefix[12], prefix[13] >> 4) {
        // A connection of the proxy itself, or a family without IP addresses.
        (0x20, _) | (0x21, 0 | 3) => return Ok(Header::Whole(None)),
        (0x21, 1) => addresses::<4>(rest),
        (0x21, 2) => addresses::<16>(rest),
        _ => None,
    };
    Ok(Header::Whole(Some(ends.ok_or(HeaderError::Binary)?)))
}

fn addresses<const BYTES: usize>(rest: &[u8]) -> Option<Ends>
where
    IpAddr: From<[u8; BYTES]>,
{
    let (from, rest) = rest.split_first_chunk::<BYTES>()?;
    let (to, rest) = rest.split_first_chunk::<BYTES>()?;
    let (from_port, rest) = rest.split_first_chunk::<2>()?;
    let to_port = rest.first_chunk::<2>()?;
    let ips = (IpAddr::from(*from), IpAddr::from(*to));
    let ports = (u16::from_be_bytes(*from_port), u16::from_be_bytes(*to_port));
    Some(ends(ips, ports))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn between(client: &str, proxy: &str) -> Ends {
        Ends {
            client: client.parse().unwrap(),
            proxy: proxy.parse().unwrap(),
        }
    }

    /// Reads a header from bytes that come as they are needed. Returns the result and how many bytes it took.
    fn fed(bytes: &[u8]) -> (Result<Option<Ends>, HeaderError>, usize) {
        let mut length = 0;
        loop {
            match Header::of(&bytes[..length]) {
                Ok(Header::Whole(ends)) => return (Ok(ends), length),
                Ok(Header::Needs(more)) if more <= bytes.len() => {
                    assert!(more > length);
                    length = more;
                }
                Ok(Header::Needs(_)) => return (Err(HeaderError::None), length),
                Err(error) => return (Err(error), length),
            }
        }
    }

    #[test]
    fn a_line_names_both_ends() {
        for (line, expected) in [
            (
                "PROXY TCP4 192.0.2.1 192.0.2.2 5000 6432\r\n",
                Some(between("192.0.2.1:5000", "192.0.2.2:6432")),
            ),
            (
                "PROXY TCP6 2001:db8::1 ::1 5000 6432\r\n",
                Some(between("[2001:db8::1]:5000", "[::1]:6432")),
            ),
            ("PROXY UNKNOWN\r\n", None),
            ("PROXY UNKNOWN a b c d\r\n", None),
        ] {
            let behind = [line.as_bytes(), b"\0\0\0\x08"].concat();
            assert_eq!(fed(&behind), (Ok(expected), line.len()), "{line}");
        }
        for wrong in [
            "PROXY TCP4 192.0.2.1 192.0.2.2 5000\r\n",
            "PROXY TCP4 ::1 ::1 1 1\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 5000 70000\r\n",
            "PROXY UNKNOWN\n",
        ] {
            assert_eq!(fed(wrong.as_bytes()).0, Err(HeaderError::Line), "{wrong}");
        }
        let endless = [b"PROXY ".as_slice(), &[b'a'; 200]].concat();
        assert_eq!(fed(&endless).0, Err(HeaderError::Line));
        assert_eq!(fed(b"GET / HTTP/1.1\r\n").0, Err(HeaderError::None));
    }

    #[test]
    fn a_proxy_that_speaks_for_itself_names_nobody() {
        let local = [SIGNATURE.as_slice(), &[0x20, 0, 0, 3], b"abc", b"more"].concat();
        assert_eq!(fed(&local), (Ok(None), PREFIX_BYTES + 3));
        let short = [SIGNATURE.as_slice(), &[0x21, 0x11, 0, 2], b"ab"].concat();
        assert_eq!(fed(&short).0, Err(HeaderError::Binary));
        let long = [SIGNATURE.as_slice(), &[0x21, 0x11, 0xff, 0xff]].concat();
        assert_eq!(fed(&long).0, Err(HeaderError::Binary));
        let version = [SIGNATURE.as_slice(), &[0x31, 0x11, 0, 0]].concat();
        assert_eq!(fed(&version).0, Err(HeaderError::Binary));
    }

    #[test]
    fn what_follows_the_addresses_is_passed_over() {
        let mut header = announcement(
            Version::Two,
            Some(between("192.0.2.1:5000", "192.0.2.2:443")),
        );
        header[15] += 5;
        header.extend([0x04, 0, 2, 1, 2]);
        let told = fed(&[header.as_slice(), b"more"].concat());
        let ends = between("192.0.2.1:5000", "192.0.2.2:443");
        assert_eq!(told, (Ok(Some(ends)), header.len()));
    }

    #[test]
    fn an_announcement_is_written_as_the_protocol_says() {
        let written = |ends| String::from_utf8(announcement(Version::One, ends)).unwrap();
        assert_eq!(written(None), "PROXY UNKNOWN\r\n");
        for (client, proxy, line) in [
            (
                "192.0.2.1:5",
                "192.0.2.2:6",
                "PROXY TCP4 192.0.2.1 192.0.2.2 5 6\r\n",
            ),
            ("[::1]:5", "[::2]:6", "PROXY TCP6 ::1 ::2 5 6\r\n"),
            (
                "[::ffff:192.0.2.1]:5",
                "192.0.2.2:6",
                "PROXY TCP4 192.0.2.1 192.0.2.2 5 6\r\n",
            ),
            (
                "[::1]:5",
                "192.0.2.2:6",
                "PROXY TCP6 ::1 ::ffff:192.0.2.2 5 6\r\n",
            ),
        ] {
            assert_eq!(written(Some(between(client, proxy))), line);
        }
    }

    proptest! {
        #[test]
        fn what_is_announced_is_read(
            from: u32,
            to: u128,
            from_port: u16,
            to_port: u16,
            is_mixed: bool,
            is_text: bool,
        ) {
            let v4 = SocketAddr::new(Ipv4Addr::from(from).into(), from_port);
            let v6 = SocketAddr::new(Ipv6Addr::from(to).into(), to_port);
            let (client, proxy) = if is_mixed { (v6, v4) } else { (v4, v4) };
            let version = if is_text { Version::One } else { Version::Two };
            let header = announcement(version, Some(Ends { client, proxy }));
            let (read, taken) = fed(&[header.as_slice(), b"behind"].concat());
            prop_assert_eq!(taken, header.len());
            let read = read.unwrap().unwrap();
            for (read, sent) in [(read.client, client), (read.proxy, proxy)] {
                prop_assert_eq!(read.ip().to_canonical(), sent.ip().to_canonical());
                prop_assert_eq!(read.port(), sent.port());
            }
        }

        #[test]
        fn no_bytes_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let behind = [SIGNATURE.as_slice(), &bytes].concat();
            prop_assert!(fed(&bytes).1 <= bytes.len() && fed(&behind).1 <= behind.len());
        }
    }
}
