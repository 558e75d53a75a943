//! Certificates: read from PEM, checked before they are used, exchanged while the server runs.
//!
//! TLS 1.2 and 1.3 by rustls with ring; ALPN offers `h2` and `http/1.1`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use shortline_web::certificate;

/// A certificate that cannot be used; names the file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read or holds no such thing.
    #[error("{what} {}: {problem}", path.display())]
    File {
        /// Which of the two it should have been.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Each is sound, but they do not belong together.
    #[error(
        "key {} does not belong to certificate {}: give the key it was made with, and the server's certificate first in its chain",
        key.display(), cert.display()
    )]
    Mismatch {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// No tickets, so no resumption.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// The certificate of a listener. It can be exchanged; connections keep theirs.
#[derive(Debug)]
pub struct Certificate(RwLock<Arc<CertifiedKey>>);

impl Certificate {
    /// A certificate to be served.
    pub fn new(key: CertifiedKey) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(key))))
    }

    /// New handshakes get `key` from now on.
    pub fn replace(&self, key: CertifiedKey) {
        *self.0.write() = Arc::new(key);
    }

    /// How a listener speaks TLS with this certificate.
    ///
    /// # Errors
    /// [`TlsError::Setup`]
    pub fn server_config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.ticketer = ring::Ticketer::new()?;
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

/// Reads a certificate chain and its key. Warns of a certificate that clients will refuse.
///
/// # Errors
/// [`TlsError`] names the file and what is wrong with it.
pub fn load(cert: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let chain = read_chain(cert)?;
    let refused = |what, path: &Path, problem: String| TlsError::File {
        what,
        path: path.to_owned(),
        problem,
    };
    certificate::check_for_clients(cert, &chain[0])
        .map_err(|problem| refused("certificate", cert, problem))?;
    let key_read = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| refused("key", key, pem_problem(&error, "PRIVATE KEY")))?;
    let provider = ring::default_provider();
    CertifiedKey::from_der(chain, key_read, &provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::Mismatch {
            cert: cert.to_owned(),
            key: key.to_owned(),
        },
        rustls::Error::InvalidCertificate(problem) => refused(
            "certificate",
            cert,
            format!("not a usable X.509 certificate ({problem:?})"),
        ),
        error => refused("key", key, error.to_string()),
    })
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let refused = |problem| TlsError::File {
        what: "certificate",
        path: path.to_owned(),
        problem,
    };
    let chain = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| refused(pem_problem(&error, "CERTIFICATE")))?;
    if chain.is_empty() {
        return Err(refused(pem_problem(
            &pem::Error::NoItemsFound,
            "CERTIFICATE",
        )));
    }
    Ok(chain)
}

fn pem_problem(error: &pem::Error, wanted: &str) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => {
            format!("no PEM section `-----BEGIN {wanted}-----` in it")
        }
        _ => format!("not sound PEM; a section `-----BEGIN {wanted}-----` is needed ({error:?})"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn write_pair(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (cert, key) = (
            folder.join(format!("{name}.crt")),
            folder.join(format!("{name}.key")),
        );
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        (cert, key)
    }

    #[test]
    fn a_pair_is_read_and_offers_both_protocols() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = write_pair(folder.path(), "a");
        let config = Certificate::new(load(&cert, &key).unwrap())
            .server_config()
            .unwrap();
        assert_eq!(
            config.alpn_protocols,
            [b"h2".to_vec(), b"http/1.1".to_vec()]
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = write_pair(folder.path(), "a");
        let (_, key_other) = write_pair(folder.path(), "b");
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "nothing here\n").unwrap();
        let missing = folder.path().join("missing.pem");
        let cases = [
            (&cert, &key_other, "b.key does not belong to certificate"),
            (&missing, &key, "missing.pem: No such file"),
            (&empty, &key, "certificate"),
            (
                &cert,
                &empty,
                "empty.pem: no PEM section `-----BEGIN PRIVATE KEY-----`",
            ),
            (
                &key,
                &key,
                "a.key: no PEM section `-----BEGIN CERTIFICATE-----`",
            ),
        ];
        for (cert, key, expected) in cases {
            let error = load(cert, key).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
