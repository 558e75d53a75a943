//! TLS on both sides of a relay: the gate's certificate towards clients, and how far the backend's
//! is checked. TLS 1.2 and 1.3 by rustls with ring.
//!
//! A relay reads what it relays, so TLS ends here. Certificates of clients therefore do not reach
//! the backend.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use shortline_web::certificate;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{Socket, Stream};

/// A certificate or key that cannot be used; names the file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read or holds no such thing.
    #[error("{what} {}: {problem}", path.display())]
    File {
        /// What it should have been.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// What rustls says of the parts together.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// TLS towards clients. Clones share the certificate, also one that comes later.
#[derive(Clone, Debug)]
pub struct ClientTls {
    shown: Arc<RwLock<Shown>>,
    /// Whether clients without TLS are turned away.
    pub is_required: bool,
}

/// What new handshakes get.
#[derive(Clone, Debug)]
struct Shown {
    config: Arc<ServerConfig>,
    leaf: CertificateDer<'static>,
}

impl ClientTls {
    /// Reads the gate's certificate chain and its key; `alpn` are the protocol's names. Warns of a
    /// certificate that clients will refuse.
    ///
    /// # Errors
    /// [`TlsError`]
    pub fn load(
        cert: &Path,
        key: &Path,
        alpn: &[&[u8]],
        is_required: bool,
    ) -> Result<Self, TlsError> {
        let chain = read_chain("certificate", cert)?;
        let leaf = chain[0].clone();
        certificate::check_for_clients(cert, &leaf).map_err(|problem| TlsError::File {
            what: "certificate",
            path: cert.to_owned(),
            problem,
        })?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::File {
            what: "key",
            path: key.to_owned(),
            problem: pem_problem(&error, "PRIVATE KEY"),
        })?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let config = Arc::new(config);
        Ok(Self {
            shown: Arc::new(RwLock::new(Shown { config, leaf })),
            is_required,
        })
    }

    /// New handshakes of this and all its clones get the certificate of `other`; those under way keep
    /// theirs.
    pub fn replace(&self, other: &Self) {
        let shown = other.shown.read().clone();
        *self.shown.write() = shown;
    }

    /// The client's side of the handshake is about to come.
    ///
    /// # Errors
    /// What rustls says of the handshake.
    pub async fn accept(&self, socket: Socket) -> io::Result<Stream> {
        let config = Arc::clone(&self.shown.read().config);
        let accepted = TlsAcceptor::from(config).accept(socket).await?;
        Ok(Stream::Tls(Box::new(accepted.into())))
    }

    /// Whether clients see this very certificate. One who shook hands just before it was exchanged saw
    /// another, and would fail at a channel binding rather than be let in wrongly.
    pub fn shows(&self, certificate: &CertificateDer<'_>) -> bool {
        self.shown.read().leaf == *certificate
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
        Ok(Self::Follow(Connector::unchecked()?))
    }

    /// `prefer`
    ///
    /// # Errors
    /// [`TlsError::Setup`]
    pub fn prefer() -> Result<Self, TlsError> {
        Ok(Self::Prefer(Connector::unchecked()?))
    }

    /// `require`
    ///
    /// # Errors
    /// [`TlsError::Setup`]
    pub fn require() -> Result<Self, TlsError> {
        Ok(Self::Require(Connector::unchecked()?))
    }

    /// `verify-full`, with the authorities in the PEM file `authorities`.
    ///
    /// # Errors
    /// [`TlsError`]
    pub fn verify_full(authorities: &Path) -> Result<Self, TlsError> {
        Ok(Self::VerifyFull(Connector::checked(authorities)?))
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
    fn unchecked() -> Result<Self, TlsError> {
        let provider = provider();
        let verifier = Arc::new(AnyCertificate(Arc::clone(&provider)));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    fn checked(authorities: &Path) -> Result<Self, TlsError> {
        let refused = |problem: String| TlsError::File {
            what: "authorities",
            path: authorities.to_owned(),
            problem,
        };
        let mut roots = RootCertStore::empty();
        for certificate in read_chain("authorities", authorities)? {
            roots
                .add(certificate)
                .map_err(|error| refused(error.to_string()))?;
        }
        let provider = provider();
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| refused(error.to_string()))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_webpki_verifier(verifier)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// Begins TLS on a socket whose backend is ready for it.
    ///
    /// # Errors
    /// What rustls says of the handshake or of the certificate, or a name that cannot be one of a
    /// certificate.
    pub async fn connect(&self, socket: Socket, host: &str) -> io::Result<Stream> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let connected = TlsConnector::from(Arc::clone(&self.0))
            .connect(name, socket)
            .await
            .map_err(|error| certificate::explained(error, host))?;
        Ok(Stream::Tls(Box::new(connected.into())))
    }
}

/// Takes any certificate, as libpq's `require` does; only the handshake's signatures are checked.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The certificates of a PEM file: at least one.
fn read_chain(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let refused = |error| TlsError::File {
        what,
        path: path.to_owned(),
        problem: pem_problem(&error, "CERTIFICATE"),
    };
    let chain = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(refused)?;
    if chain.is_empty() {
        return Err(refused(pem::Error::NoItemsFound));
    }
    Ok(chain)
}

fn pem_problem(error: &pem::Error, wanted: &str) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("no PEM section `-----BEGIN {wanted}-----` in it"),
        _ => format!("not sound PEM; a section `-----BEGIN {wanted}-----` is needed ({error:?})"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (cert, key) = (folder.path().join("a.crt"), folder.path().join("a.key"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let missing = folder.path().join("missing.pem");
        ClientTls::load(&cert, &key, &[b"postgresql"], false).unwrap();
        let cases = [
            (&missing, &key, "missing.pem: No such file"),
            (
                &cert,
                &cert,
                "a.crt: no PEM section `-----BEGIN PRIVATE KEY-----`",
            ),
            (
                &key,
                &key,
                "a.key: no PEM section `-----BEGIN CERTIFICATE-----`",
            ),
        ];
        for (cert, key, expected) in cases {
            let error = ClientTls::load(cert, key, &[], false)
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = UpstreamTls::verify_full(&key).unwrap_err().to_string();
        assert!(error.starts_with("authorities "), "{error}");
    }
}
