//! TLS on both sides of a relay: the gate's certificate towards clients, and how far the backend's
//! is checked. TLS 1.2 and 1.3 by rustls with ring.
//!
//! A relay reads what it relays, so TLS ends here. Certificates of clients therefore do not reach
//! the backend.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ServerConfig};
use shortline_tls::{Certificate, TlsError, Trust, client_config};
use tokio_rustls::TlsAcceptor;

use super::{Socket, Stream};

/// TLS towards clients. Clones share the certificate, also one that comes later.
#[derive(Clone, Debug)]
pub struct ClientTls {
    certificate: Arc<Certificate>,
    config: Arc<ServerConfig>,
    /// Whether clients without TLS are turned away.
    pub is_required: bool,
}

impl ClientTls {
    /// With the gate's certificate; `alpn` are the protocol's names.
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

    /// New handshakes of this and all its clones get this certificate; those under way keep theirs.
    pub fn replace(&self, key: CertifiedKey) {
        self.certificate.replace(key);
    }

    /// The client's side of the handshake is about to come.
    ///
    /// # Errors
    /// What rustls says of the handshake.
    pub async fn accept(&self, socket: Socket) -> io::Result<Stream> {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.config));
        let accepted = acceptor.accept(socket).await?;
        Ok(Stream::Tls(Box::new(accepted.into())))
    }

    /// Whether clients see this very certificate. One who shook hands just before it was exchanged saw
    /// another, and would fail at a channel binding rather than be let in wrongly.
    pub fn shows(&self, certificate: &CertificateDer<'_>) -> bool {
        self.certificate.shows(certificate)
    }
}

/// TLS towards the backend, named as libpq's `sslmode` but for the first.
#[derive(Clone, Debug, Default)]
pub enum UpstreamTls {
    /// As the client: with TLS for clients that have it, if the backend offers it, and without for
    /// the others. So the backend's rules about who needs TLS mean what they say. Its certificate is
    /// not checked.
    Follow(Connector),
    /// Never.
    #[default]
    Disable,
    /// If the backend offers it; its certificate is not checked.
    Prefer(Connector),
    /// Always; its certificate is not checked.
    Require(Connector),
    /// Always, with a certificate for the backend's name from an authority in the file.
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

    /// How to begin TLS for a client that has it to the gate or not, if it is wanted at all.
    pub fn connector(&self, client_is_secure: bool) -> Option<&Connector> {
        match self {
            Self::Disable => None,
            Self::Follow(connector) => client_is_secure.then_some(connector),
            Self::Prefer(connector) | Self::Require(connector) | Self::VerifyFull(connector) => {
                Some(connector)
            }
        }
    }

    /// Whether a backend without TLS is used nevertheless.
    pub fn is_optional(&self) -> bool {
        matches!(self, Self::Disable | Self::Follow(_) | Self::Prefer(_))
    }
}

/// How TLS towards the backend begins.
#[derive(Clone, Debug)]
pub struct Connector(Arc<ClientConfig>);

impl Connector {
    fn new(trust: &Trust) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(client_config(trust, &[])?)))
    }

    /// Begins TLS on a socket whose backend is ready for it.
    ///
    /// # Errors
    /// What rustls says of the handshake or of the certificate, or a name that cannot be one of a
    /// certificate.
    pub async fn connect(&self, socket: Socket, host: &str) -> io::Result<Stream> {
        let connected = shortline_tls::connect(&self.0, host, socket).await?;
        Ok(Stream::Tls(Box::new(connected.into())))
    }
}
