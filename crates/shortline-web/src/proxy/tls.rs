//! TLS to backends whose address begins with `https://`: 1.2 and 1.3 by rustls with ring, HTTP/1.1 by
//! ALPN, the backend's name by SNI.
//!
//! Its certificate must be for that name (or number), from an authority of the system or, if a file
//! is given, from one in it. There is no way to leave that unchecked: whoever can answer in the
//! place of a backend sees every request.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::certificate;

/// Why TLS to backends cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file with the authorities.
    #[error("authorities {}: {problem}; give a PEM file with the certificates that sign the \
             backends'", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The machine knows no authority.
    #[error(
        "authorities of the system: {problem}; install them (Debian: ca-certificates), or give a \
         file of your own"
    )]
    System {
        /// What was found.
        problem: String,
    },
    /// What rustls says of the parts together.
    #[error("TLS to backends cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// Begins TLS with backends.
#[derive(Clone)]
pub struct Connector(TlsConnector);

impl Connector {
    /// One that trusts the authorities of the file `authorities`, or of the system without one.
    ///
    /// # Errors
    /// [`TlsError`]
    pub fn new(authorities: Option<&Path>) -> Result<Self, TlsError> {
        let found = match authorities {
            Some(path) => load_certs_from_paths(Some(path), None),
            None => load_native_certs(),
        };
        let roots = roots(found).map_err(|problem| match authorities {
            Some(path) => TlsError::File {
                path: path.to_owned(),
                problem,
            },
            None => TlsError::System { problem },
        })?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Begins TLS with the backend called `host`.
    ///
    /// # Errors
    /// What rustls says of the handshake or of the certificate, or a name that no certificate has.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let connected = self.0.connect(name, stream).await;
        connected.map_err(|error| certificate::explained(error, host))
    }
}

/// Those of the certificates that are any use: one at least.
fn roots(found: CertificateResult) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let (usable, ignored) = roots.add_parsable_certificates(found.certs);
    match (usable, found.errors.first()) {
        (0, Some(error)) => Err(error.to_string()),
        (0, None) => Err(format!("no usable certificate ({ignored} unusable)")),
        _ => Ok(roots),
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
            let error = Connector::new(Some(&path)).err().unwrap().to_string();
            assert!(error.starts_with("authorities "), "{error}");
            assert!(error.contains("a.pem: "), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
