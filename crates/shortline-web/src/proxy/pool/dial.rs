//! A new socket to a backend.

use std::io;

use shortline_base::world::{self, Stream};
use tokio::net::{TcpStream, UnixStream};

use super::super::address::UpstreamAddress;
use super::super::http2;
use super::super::tls::Offer;
use super::Backend;

impl Backend {
    /// Opens a socket. The second value is whether it is HTTP/2.
    pub(super) async fn open(&self, offer: Offer) -> io::Result<(Box<dyn Stream>, bool)> {
        let is_http2 = offer == Offer::Http2;
        if let UpstreamAddress::Tcp { host, port } | UpstreamAddress::H2c { host, port } =
            &self.own.address
            && let Some(connecting) = world::connect(host, *port)
        {
            return Ok((connecting.await?, is_http2));
        }
        Ok(match (&self.own.address, &self.tls) {
            (UpstreamAddress::Unix(path) | UpstreamAddress::FastCgiUnix(path), _) => {
                (Box::new(UnixStream::connect(path).await?), is_http2)
            }
            (UpstreamAddress::Tls { host, port }, Some(tls)) => {
                let stream = self.open_tcp(host, *port).await?;
                let (stream, chosen) = tls.connect(host, stream, offer).await?;
                if is_http2 && !chosen {
                    return Err(http2::is_not_http2("its TLS does not offer it"));
                }
                (Box::new(stream), chosen)
            }
            (UpstreamAddress::Tls { .. }, None) => {
                return Err(io::Error::other("TLS was not set up"));
            }
            (
                UpstreamAddress::Tcp { host, port }
                | UpstreamAddress::H2c { host, port }
                | UpstreamAddress::FastCgiTcp { host, port },
                _,
            ) => (Box::new(self.open_tcp(host, *port).await?), is_http2),
        })
    }

    async fn open_tcp(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let stream = match self.at {
            Some(at) => TcpStream::connect((at, port)).await?,
            None => TcpStream::connect((host, port)).await?,
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}
