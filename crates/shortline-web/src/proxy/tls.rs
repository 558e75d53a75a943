//! TLS to backends whose address begins with `https://`: 1.2 and 1.3 by rustls with ring, HTTP/1.1
//! by ALPN, the backend's name by SNI.
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

/// Makes TLS connections to backends.
#[derive(Clone)]
pub struct Connector(Arc<ClientConfig>);

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
        Ok(Self(Arc::new(client_config(&trust, &[b"http/1.1"])?)))
    }

    /// Begins TLS with the backend called `host`.
    ///
    /// # Errors
    /// rustls's error about the handshake or the certificate, or a name that no certificate can
    /// have.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        connect(&self.0, host, stream).await
    }
}
