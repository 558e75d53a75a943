//! The client's address, as announced by a proxy in front of the gate, and by the gate to the backend. Source: the
//! PROXY protocol, versions 1 and 2 (HAProxy's proxy-protocol.txt).
//!
//! ```text
//! v1   PROXY TCP4|TCP6 source destination source-port destination-port CRLF, or PROXY UNKNOWN ... CRLF
//! v2   signature (12)  0x2v (v: 0 local, 1 proxied)  family (high 4 bits) | protocol  length (2)  addresses  TLVs
//! ```
//!
//! The gate does not guess whether a header comes. From trusted networks it is required. From others it is not read,
//! since they could announce any address. Not a byte beyond the header is read. The gate announces by version 2.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use shortline_sched::Network;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Socket;

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

/// The state of a header that is being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// The header needs this many bytes to go on.
    Needs(usize),
    /// The header is complete. `None` if it has no address, such as for a health check of the proxy itself.
    Whole(Option<SocketAddr>),
}

/// Bytes that are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
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

impl Header {
    /// Reads the header from the first bytes of a connection.
    ///
    /// # Errors
    /// [`ProxyError`]
    pub fn of(bytes: &[u8]) -> Result<Self, ProxyError> {
        let Some(first) = bytes.first_chunk::<{ SIGNATURE.len() }>() else {
            return Ok(Self::Needs(SIGNATURE.len()));
        };
        if *first == SIGNATURE {
            binary(bytes)
        } else if first.starts_with(WORD) {
            line(bytes)
        } else {
            Err(ProxyError::None)
        }
    }
}

fn line(bytes: &[u8]) -> Result<Header, ProxyError> {
    if !bytes.ends_with(b"\n") {
        // Reads one byte at a time, so as not to read beyond the line.
        return if bytes.len() < LINE_BYTES_MAX {
            Ok(Header::Needs(bytes.len() + 1))
        } else {
            Err(ProxyError::Line)
        };
    }
    let text = std::str::from_utf8(bytes).map_err(|_| ProxyError::Line)?;
    let text = text.strip_suffix("\r\n").ok_or(ProxyError::Line)?;
    let words: Vec<&str> = text.split(' ').collect();
    let source = match words[..] {
        [_, "UNKNOWN", ..] => None,
        [_, "TCP4", source, destination, from, to] => {
            let source: Ipv4Addr = read(source)?;
            read::<Ipv4Addr>(destination)?;
            read::<u16>(to)?;
            Some(SocketAddr::new(source.into(), read(from)?))
        }
        [_, "TCP6", source, destination, from, to] => {
            let source: Ipv6Addr = read(source)?;
            read::<Ipv6Addr>(destination)?;
            read::<u16>(to)?;
            Some(SocketAddr::new(source.into(), read(from)?))
        }
        _ => return Err(ProxyError::Line),
    };
    Ok(Header::Whole(source))
}

fn read<T: std::str::FromStr>(text: &str) -> Result<T, ProxyError> {
    text.parse().map_err(|_| ProxyError::Line)
}

fn binary(bytes: &[u8]) -> Result<Header, ProxyError> {
    let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else {
        return Ok(Header::Needs(PREFIX_BYTES));
    };
    let rest_bytes = usize::from(u16::from_be_bytes([prefix[14], prefix[15]]));
    if rest_bytes > REST_BYTES_MAX {
        return Err(ProxyError::Binary);
    }
    let rest = &bytes[PREFIX_BYTES..];
    if rest.len() < rest_bytes {
        return Ok(Header::Needs(PREFIX_BYTES + rest_bytes));
    }
    let port = |at: usize| {
        rest.get(at..at + 2)
            .map(|port| u16::from_be_bytes([port[0], port[1]]))
    };
    let source = match (prefix[12], prefix[13] >> 4) {
        // A connection of the proxy itself, or a family without IP addresses.
        (0x20, _) | (0x21, 0 | 3) => return Ok(Header::Whole(None)),
        (0x21, 1) => rest
            .first_chunk::<4>()
            .map(|ip| IpAddr::from(*ip))
            .zip(port(8)),
        (0x21, 2) => rest
            .first_chunk::<16>()
            .map(|ip| IpAddr::from(*ip))
            .zip(port(32)),
        _ => None,
    };
    let (ip, port) = source.ok_or(ProxyError::Binary)?;
    Ok(Header::Whole(Some(SocketAddr::new(ip, port))))
}

/// A client's address, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address, if it has one.
    pub address: Option<SocketAddr>,
    /// Whether the client came by a trusted proxy.
    pub is_told: bool,
}

/// The address of a client that connected from `address`. Proxies in these networks announce the client's own.
///
/// # Errors
/// Those of the socket, and [`ProxyError`] as invalid data.
pub async fn peer(
    socket: &mut Socket,
    address: Option<SocketAddr>,
    proxies: &[Network],
) -> io::Result<Peer> {
    let is_told = address.is_some_and(|from| proxies.iter().any(|network| network.has(from.ip())));
    if !is_told {
        return Ok(Peer { address, is_told });
    }
    let address = source(socket).await?.or(address);
    Ok(Peer { address, is_told })
}

async fn source(socket: &mut Socket) -> io::Result<Option<SocketAddr>> {
    let mut bytes = Vec::new();
    loop {
        match Header::of(&bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?
        {
            Header::Whole(source) => return Ok(source),
            Header::Needs(length) => {
                let had = bytes.len();
                bytes.resize(length, 0);
                socket.read_exact(&mut bytes[had..]).await?;
            }
        }
    }
}

/// The two ends of a client's connection to the gate.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// The client's, if it has an address.
    pub client: Option<SocketAddr>,
    /// The gate's, if it has an address.
    pub gate: Option<SocketAddr>,
}

impl Ends {
    /// Announces the client to the backend. One without an address is announced as the gate itself.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn announce(self, backend: &mut Socket) -> io::Result<()> {
        let header = match self.client.zip(self.gate) {
            Some((client, gate)) => announcement(client, gate),
            None => [SIGNATURE.as_slice(), &[0x20, 0, 0, 0]].concat(),
        };
        backend.write_all(&header).await
    }
}

/// The header of version 2 that announces a client.
fn announcement(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    let addresses: (u8, Vec<u8>) =
        match (source.ip().to_canonical(), destination.ip().to_canonical()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => (0x11, [from.octets(), to.octets()].concat()),
            (from, to) => {
                let v6 = |ip| match ip {
                    IpAddr::V4(ip) => Ipv4Addr::to_ipv6_mapped(&ip),
                    IpAddr::V6(ip) => ip,
                };
                (0x21, [v6(from).octets(), v6(to).octets()].concat())
            }
        };
    let (family, addresses) = addresses;
    header.extend([0x21, family, 0, addresses.len() as u8 + 4]);
    header.extend(addresses);
    header.extend(source.port().to_be_bytes());
    header.extend(destination.port().to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    /// Reads a header from bytes that come as they are needed. Returns the result and how many bytes it took.
    fn fed(bytes: &[u8]) -> (Result<Option<SocketAddr>, ProxyError>, usize) {
        let mut length = 0;
        loop {
            match Header::of(&bytes[..length]) {
                Ok(Header::Whole(source)) => return (Ok(source), length),
                Ok(Header::Needs(more)) if more <= bytes.len() => {
                    assert!(more > length);
                    length = more;
                }
                Ok(Header::Needs(_)) => return (Err(ProxyError::None), length),
                Err(error) => return (Err(error), length),
            }
        }
    }

    #[test]
    fn a_line_names_the_client() {
        for (line, expected) in [
            (
                "PROXY TCP4 192.0.2.1 192.0.2.2 5000 6432\r\n",
                Some("192.0.2.1:5000"),
            ),
            (
                "PROXY TCP6 2001:db8::1 ::1 5000 6432\r\n",
                Some("[2001:db8::1]:5000"),
            ),
            ("PROXY UNKNOWN\r\n", None),
            ("PROXY UNKNOWN a b c d\r\n", None),
        ] {
            let behind = [line.as_bytes(), b"\0\0\0\x08"].concat();
            let expected = expected.map(|text| text.parse().unwrap());
            assert_eq!(fed(&behind), (Ok(expected), line.len()), "{line}");
        }
        for wrong in [
            "PROXY TCP4 192.0.2.1 192.0.2.2 5000\r\n",
            "PROXY TCP4 ::1 ::1 1 1\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 5000 70000\r\n",
            "PROXY UNKNOWN\n",
        ] {
            assert_eq!(fed(wrong.as_bytes()).0, Err(ProxyError::Line), "{wrong}");
        }
        let endless = [b"PROXY ".as_slice(), &[b'a'; 200]].concat();
        assert_eq!(fed(&endless).0, Err(ProxyError::Line));
        assert_eq!(fed(b"GET / HTTP/1.1\r\n").0, Err(ProxyError::None));
    }

    #[test]
    fn a_proxy_that_speaks_for_itself_names_nobody() {
        let local = [SIGNATURE.as_slice(), &[0x20, 0, 0, 3], b"abc", b"more"].concat();
        assert_eq!(fed(&local), (Ok(None), PREFIX_BYTES + 3));
        let short = [SIGNATURE.as_slice(), &[0x21, 0x11, 0, 2], b"ab"].concat();
        assert_eq!(fed(&short).0, Err(ProxyError::Binary));
        let long = [SIGNATURE.as_slice(), &[0x21, 0x11, 0xff, 0xff]].concat();
        assert_eq!(fed(&long).0, Err(ProxyError::Binary));
        let version = [SIGNATURE.as_slice(), &[0x31, 0x11, 0, 0]].concat();
        assert_eq!(fed(&version).0, Err(ProxyError::Binary));
    }

    #[tokio::test]
    async fn a_client_without_an_address_is_announced_as_the_gate() {
        let (near, far) = tokio::net::UnixStream::pair().unwrap();
        let gate = "127.0.0.1:3306".parse().ok();
        let ends = Ends { client: None, gate };
        ends.announce(&mut near.into()).await.unwrap();
        let mut far = Socket::from(far);
        assert_eq!(source(&mut far).await.unwrap(), None);
    }

    proptest! {
        #[test]
        fn what_is_announced_is_read(from: u32, to: u128, from_port: u16, to_port: u16, is_mixed: bool) {
            let v4 = SocketAddr::new(Ipv4Addr::from(from).into(), from_port);
            let v6 = SocketAddr::new(Ipv6Addr::from(to).into(), to_port);
            let (source, destination) = if is_mixed { (v6, v4) } else { (v4, v4) };
            let header = announcement(source, destination);
            let (read, taken) = fed(&[header.as_slice(), b"behind"].concat());
            prop_assert_eq!(taken, header.len());
            let read = read.unwrap().unwrap();
            prop_assert_eq!(read.ip().to_canonical(), source.ip().to_canonical());
            prop_assert_eq!(read.port(), source.port());
        }

        #[test]
        fn no_bytes_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let behind = [SIGNATURE.as_slice(), &bytes].concat();
            prop_assert!(fed(&bytes).1 <= bytes.len() && fed(&behind).1 <= behind.len());
        }
    }
}
