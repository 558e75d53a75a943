//! TLS on both sides of a relay: the gate's certificate towards clients, and the check of the
//! backend's. TLS 1.2 and 1.3 by rustls with ring.
//!
//! A relay reads the bytes that it relays, so TLS ends here. Certificates of clients therefore do not
//! reach the backend.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ServerConfig};
use shortline_tls::{Certificate, TlsError, Trust, client_config};
use tokio_rustls::TlsAcceptor;

use super::{Socket, Stream};

/// TLS towards clients. Clones share the certificate, even after it is replaced.
#[derive(Clone, Debug)]
pub struct ClientTls {
    certificate: Arc<Certificate>,
    config: Arc<ServerConfig>,
    /// Whether clients without TLS are rejected.
    pub is_required: bool,
}

impl ClientTls {
    /// TLS with the gate's certificate. `alpn` has the names of the protocol.
    ///
    /// # Errors
    /// [`TlsError::Setup`]
    pub fn new(key: CertifiedKey, alpn: &[&[u8]], is_required: bool) -> Result<Self, TlsError> {
        let certificate = Certificate::new(key);
        Ok(Self {
            config: certificate.server_config(alpn)?,
            certificate,
            is_required,
        })
    }

    /// Uses this certificate for new handshakes of this and all its clones. Handshakes under way keep theirs.
    pub fn replace(&self, key: CertifiedKey) {
        self.certificate.replace(key);
    }

    /// Does the handshake with a client.
    ///
    /// # Errors
    /// Those of rustls in the handshake.
    pub async fn accept(&self, socket: Socket) -> io::Result<Stream> {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.config));
        let accepted = acceptor.accept(socket).await?;
        Ok(Stream::Tls(Box::new(accepted.into())))
    }

    /// Whether new clients see this certificate. A client whose handshake came just before a replacement
    /// saw another. Its channel binding fails, so it is never admitted wrongly.
    pub fn shows(&self, certificate: &CertificateDer<'_>) -> bool {
        self.certificate.shows(certificate)
    }
}

/// TLS towards the backend. The names, except the first, are those of libpq's `sslmode`.
#[derive(Clone, Debug, Default)]
pub enum UpstreamTls {
    /// As the client: with TLS for clients that use it, if the backend offers it, and without for the
    /// others. So the backend's rules about TLS still apply to its clients. Its certificate is not
    /// checked.
    Follow(Connector),
    /// Never.
    #[default]
    Disable,
    /// If the backend offers it; its certificate is not checked.
    Prefer(Connector),
    /// Always; its certificate is not checked.
    Require(Connector),
    /// Always. The certificate must be for the backend's name, from an authority in the file.
    VerifyFull(Connector),
}

impl UpstreamTls {
    /// `follow`
    ///
    /// # Errors
    /// [`TlsError::Setup`]
    pub fn follow() -> Result<Self, TlsError> {
        Ok(Self::Follow(Connector::new(&Trust::Anyone)?))
    }

    /// `prefer`
    ///
    /// # Errors
    /// [`TlsError::Setup`]
    pub fn prefer() -> Result<Self, TlsError> {
        Ok(Self::Prefer(Connector::new(&Trust::Anyone)?))
    }

    /// `require`
    ///
    /// # Errors
    /// [`TlsError::Setup`]
    pub fn require() -> Result<Self, TlsError> {
        Ok(Self::Require(Connector::new(&Trust::Anyone)?))
    }

    /// `verify-full`, with the authorities in the PEM file `authorities`.
    ///
    /// # Errors
    /// [`TlsError`]
    pub fn verify_full(authorities: &Path) -> Result<Self, TlsError> {
        Ok(Self::VerifyFull(Connector::new(&Trust::File(
            authorities.to_owned(),
        ))?))
    }

    /// The connector for a client with or without TLS. `None` if TLS is not wanted for it.
    pub fn connector(&self, client_is_secure: bool) -> Option<&Connector> {
        match self {
            Self::Disable => None,
            Self::Follow(connector) => client_is_secure.then_some(connector),
            Self::Prefer(connector) | Self::Require(connector) | Self::VerifyFull(connector) => {
                Some(connector)
            }
        }
    }

    /// Whether a backend without TLS is used all the same.
    pub fn is_optional(&self) -> bool {
        matches!(self, Self::Disable | Self::Follow(_) | Self::Prefer(_))
    }
}

/// Begins TLS towards the backend.
#[derive(Clone, Debug)]
pub struct Connector(Arc<ClientConfig>);

impl Connector {
    fn new(trust: &Trust) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(client_config(trust, &[])?)))
    }

    /// Begins TLS on a socket. The backend must be ready for the handshake.
    ///
    /// # Errors
    /// Those of rustls in the handshake or about the certificate, or a name that no certificate can
    /// have.
    pub async fn connect(&self, socket: Socket, host: &str) -> io::Result<Stream> {
        let connected = shortline_tls::connect(&self.0, host, socket).await?;
        Ok(Stream::Tls(Box::new(connected.into())))
    }
}
