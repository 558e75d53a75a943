//! Whom a client trusts, and how it begins TLS.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_native_certs::load_native_certs;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::{TlsError, fitness, pem, provider};

/// Whose certificates a client accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Certificates for the server's name, from an authority that the system trusts.
    System,
    /// Certificates for the server's name, from an authority in this PEM file.
    File(PathBuf),
    /// Any certificate: only that the server holds its key is checked, as with libpq's `require`.
    Anyone,
}

/// How a client speaks TLS, over one of these protocols (names of ALPN).
///
/// # Errors
/// [`TlsError`]
pub fn client_config(trust: &Trust, alpn: &[&[u8]]) -> Result<ClientConfig, TlsError> {
    let builder =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let mut config = match trust {
        Trust::System => builder.with_root_certificates(roots_of_system()?),
        Trust::File(path) => builder.with_root_certificates(roots_of_file(path)?),
        Trust::Anyone => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate::default())),
    }
    .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// Begins TLS with the server called `host`.
///
/// # Errors
/// A handshake or certificate error of rustls, or a name that no certificate can have.
pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    config: &Arc<ClientConfig>,
    host: &str,
    socket: S,
) -> io::Result<TlsStream<S>> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let connector = TlsConnector::from(Arc::clone(config));
    let connected = connector.connect(name, socket).await;
    connected.map_err(|error| fitness::explained(error, host))
}

fn roots_of_file(path: &std::path::Path) -> Result<RootCertStore, TlsError> {
    let found = pem::certificates("authorities", path)?;
    usable(found).map_err(|problem| TlsError::file("authorities", path, problem))
}

fn roots_of_system() -> Result<RootCertStore, TlsError> {
    let found = load_native_certs();
    let unread = found.errors.first().map(ToString::to_string);
    usable(found.certs).map_err(|problem| TlsError::System {
        problem: unread.unwrap_or(problem),
    })
}

/// The usable certificates; at least one.
fn usable(found: Vec<CertificateDer<'static>>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match roots.add_parsable_certificates(found) {
        (0, ignored) => Err(format!("no usable certificate ({ignored} unusable)")),
        _ => Ok(roots),
    }
}

/// Accepts any certificate; checks only the handshake's signatures. As [`Trust::Anyone`], for a configuration that is made otherwise.
#[derive(Debug)]
pub struct AnyCertificate(Arc<CryptoProvider>);

impl Default for AnyCertificate {
    fn default() -> Self {
        Self(provider())
    }
}

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
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_without_authorities_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pem");
        for content in [None, Some(""), Some("nonsense")] {
            if let Some(content) = content {
                std::fs::write(&path, content).unwrap();
            }
            let refused = client_config(&Trust::File(path.clone()), &[]);
            let error = refused.unwrap_err().to_string();
            assert!(error.starts_with("authorities "), "{error}");
            assert!(error.contains("a.pem: "), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
