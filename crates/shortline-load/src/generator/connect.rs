//! Opening a connection: TCP without Nagle's delay, then TLS if the target uses it.
//!
//! Every TLS connection is a new visitor's: sessions are not resumed.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpBindAddressNoPort;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

use super::sources::SourceAddress;
use super::{LoadError, LoadOptions, Protocol, Target, Trust};
use crate::record::Failure;

/// A connection, plain or encrypted.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Opens connections to one server, from one address.
#[derive(Clone)]
pub(super) struct Connector {
    address: SocketAddr,
    /// The source address; `None` lets the system choose.
    source: Option<IpAddr>,
    tls: Option<Tls>,
}

#[derive(Clone)]
struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
    protocol: &'static [u8],
}

impl Connector {
    pub(super) async fn new(options: &LoadOptions) -> Result<Self, LoadError> {
        let target = &options.target;
        let tls = match (target.secure(), &options.trust) {
            (false, _) => None,
            (true, None) => return Err(LoadError::Untrusted(target.clone())),
            (true, Some(trust)) => Some(Tls::new(target, options.protocol, trust)?),
        };
        let address = resolve(target).await.map_err(|source| LoadError::Resolve {
            target: target.clone(),
            source,
        })?;
        let other_kind = |source: &&SourceAddress| source.address.is_ipv4() != address.is_ipv4();
        if let Some(source) = options.sources.iter().find(other_kind) {
            return Err(LoadError::Source {
                address: source.address,
                target: target.clone(),
            });
        }
        Ok(Self {
            address,
            source: None,
            tls,
        })
    }

    /// The server's address.
    pub(super) fn server(&self) -> SocketAddr {
        self.address
    }

    /// How it speaks TLS, and for which name, if it does.
    pub(super) fn tls(&self) -> Option<(Arc<ClientConfig>, String)> {
        let tls = self.tls.as_ref()?;
        let name = tls.name.to_str().into_owned();
        Some((Arc::clone(tls.connector.config()), name))
    }

    /// The source address of its connections, if there is one.
    pub(super) fn source(&self) -> Option<IpAddr> {
        self.source
    }

    /// The same connector, from that address.
    pub(super) fn from(&self, source: IpAddr) -> Self {
        Self {
            source: Some(source),
            ..self.clone()
        }
    }

    pub(super) async fn connect(&self) -> Result<Box<dyn Wire>, Failure> {
        let tcp = self.open().await.map_err(|_| Failure::Connect)?;
        tcp.set_nodelay(true).map_err(|_| Failure::Connect)?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(tcp));
        };
        let stream = tls.connector.connect(tls.name.clone(), tcp).await;
        let stream = stream.map_err(|_| Failure::Tls)?;
        let agreed = stream.get_ref().1.alpn_protocol();
        // A server without ALPN speaks HTTP/1.1; HTTP/2 must be agreed on.
        if agreed == Some(tls.protocol) || (agreed.is_none() && tls.protocol == b"http/1.1") {
            Ok(Box::new(stream))
        } else {
            Err(Failure::Tls)
        }
    }

    async fn open(&self) -> io::Result<TcpStream> {
        let Some(source) = self.source else {
            return TcpStream::connect(self.address).await;
        };
        let socket = match self.address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // Otherwise a port would be reserved for this address alone, whatever it connects to, and
        // there are no more of those than ports.
        setsockopt(&socket, IpBindAddressNoPort, &true)?;
        socket.bind(SocketAddr::new(source, 0))?;
        socket.connect(self.address).await
    }
}

/// The target's address; of several the first that accepts a connection.
async fn resolve(target: &Target) -> io::Result<SocketAddr> {
    let found = tokio::net::lookup_host((target.host(), target.port())).await?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.len() > 1 {
        for address in &addresses {
            if TcpStream::connect(address).await.is_ok() {
                return Ok(*address);
            }
        }
    }
    let none = || io::Error::new(io::ErrorKind::NotFound, "it has no address");
    addresses.first().copied().ok_or_else(none)
}

impl Tls {
    fn new(target: &Target, protocol: Protocol, trust: &Trust) -> Result<Self, LoadError> {
        let name =
            ServerName::try_from(target.host().to_owned()).map_err(|error| LoadError::Resolve {
                target: target.clone(),
                source: io::Error::new(io::ErrorKind::InvalidInput, error),
            })?;
        let protocol: &[u8] = match protocol {
            Protocol::Http1 => b"http/1.1",
            Protocol::Http2 => b"h2",
            Protocol::Http3 => b"h3",
        };
        let trust = match trust {
            Trust::Ca(file) => shortline_tls::Trust::File(file.clone()),
            Trust::Anyone => shortline_tls::Trust::Anyone,
        };
        let mut config = shortline_tls::client_config(&trust, &[protocol])?;
        config.resumption = Resumption::disabled();
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            name,
            protocol,
        })
    }
}
