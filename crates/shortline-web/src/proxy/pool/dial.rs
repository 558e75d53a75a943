//! A new socket to a backend. If the backend is to know the client, the first bytes announce it (PROXY protocol), before
//! TLS.

use std::io;

use shortline_base::world::{self, Stream};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};

use super::super::address::UpstreamAddress;
use super::super::backend_socket::Dialed;
use super::super::http2;
use super::super::tls::Offer;
use super::Backend;
use crate::proxy_header::{Ends, announcement};

impl Backend {
    /// Opens a socket, for the client that is announced or for nobody's request. The second value is whether it is HTTP/2.
    pub(super) async fn open(
        &self,
        offer: Offer,
        announced: Option<Ends>,
    ) -> io::Result<(Dialed, bool)> {
        let is_http2 = offer == Offer::Http2;
        if let UpstreamAddress::Tcp { host, port }
        | UpstreamAddress::H2c { host, port }
        | UpstreamAddress::FastCgiTcp { host, port } = &self.own.address
            && let Some(connecting) = world::connect(host, *port)
        {
            let stream = self.announce(connecting.await?, announced).await?;
            return Ok((Dialed::Other(stream), is_http2));
        }
        Ok(match (&self.own.address, &self.tls) {
            (UpstreamAddress::Unix(path) | UpstreamAddress::FastCgiUnix(path), _) => {
                let stream = UnixStream::connect(path).await?;
                let stream = self.announce(stream, announced).await?;
                (Dialed::Unix(stream), is_http2)
            }
            (UpstreamAddress::Tls { host, port }, Some(tls)) => {
                let stream = self.open_tcp(host, *port, announced).await?;
                let (stream, chosen) = tls.connect(host, stream, offer).await?;
                if is_http2 && !chosen {
                    return Err(http2::is_not_http2("its TLS does not offer it"));
                }
                (Dialed::Other(Box::new(stream)), chosen)
            }
            (UpstreamAddress::Tls { .. }, None) => {
                return Err(io::Error::other("TLS was not set up"));
            }
            (UpstreamAddress::Service(_), _) => {
                return Err(io::Error::other("its servers were not looked up"));
            }
            (
                UpstreamAddress::Tcp { host, port }
                | UpstreamAddress::H2c { host, port }
                | UpstreamAddress::FastCgiTcp { host, port },
                _,
            ) => {
                let stream = self.open_tcp(host, *port, announced).await?;
                (Dialed::Tcp(stream), is_http2)
            }
        })
    }

    async fn open_tcp(
        &self,
        host: &str,
        port: u16,
        announced: Option<Ends>,
    ) -> io::Result<TcpStream> {
        let stream = match self.at {
            Some(at) => TcpStream::connect((at, port)).await?,
            None => TcpStream::connect((host, port)).await?,
        };
        stream.set_nodelay(true)?;
        self.announce(stream, announced).await
    }

    /// Announces the client, or that the connection is our own.
    async fn announce<S: Stream>(&self, mut stream: S, announced: Option<Ends>) -> io::Result<S> {
        if let Some(version) = self.own.send_proxy {
            stream.write_all(&announcement(version, announced)).await?;
        }
        Ok(stream)
    }
}
