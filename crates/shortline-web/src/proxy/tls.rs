//! TLS to backends whose address begins with `https://`: 1.2 and 1.3 by rustls with ring, the
//! version of HTTP by ALPN, the backend's name by SNI.
//!
//! Its certificate must be for that name (or number). It must come from an authority of the system
//! or, if a file is given, from one in the file. The check cannot be turned off, because anyone who
//! can impersonate a backend sees every request.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use shortline_tls::{TlsError, Trust, client_config, connect};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// The names of protocols (RFC 7301).
const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

/// The versions of HTTP that a connection may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only.
    Http2,
    /// What the backend prefers.
    Either,
}

/// Makes TLS connections to backends.
#[derive(Clone)]
pub struct Connector {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
    either: Arc<ClientConfig>,
}

impl Connector {
    /// Trusts the authorities in the file `authorities`, or those of the system without one.
    ///
    /// # Errors
    /// [`TlsError`]
    pub fn new(authorities: Option<&Path>) -> Result<Self, TlsError> {
        let trust = match authorities {
            Some(path) => Trust::File(path.to_owned()),
            None => Trust::System,
        };
        let http1 = client_config(&trust, &[HTTP_1])?;
        let offering = |names: &[&[u8]]| {
            let mut config = http1.clone();
            config.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
            Arc::new(config)
        };
        Ok(Self {
            http2: offering(&[HTTP_2]),
            either: offering(&[HTTP_2, HTTP_1]),
            http1: Arc::new(http1),
        })
    }

    /// Begins TLS with the backend called `host`. The second value is whether it is HTTP/2.
    ///
    /// # Errors
    /// rustls's error about the handshake or the certificate, or a name that no certificate can
    /// have.
    pub async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
        offer: Offer,
    ) -> io::Result<(TlsStream<TcpStream>, bool)> {
        let config = match offer {
            Offer::Http1 => &self.http1,
            Offer::Http2 => &self.http2,
            Offer::Either => &self.either,
        };
        let stream = connect(config, host, stream).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP_2);
        Ok((stream, is_http2))
    }
}
