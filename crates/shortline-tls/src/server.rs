//! A server's certificate: read from PEM, checked before it is used, exchanged while the server runs.

use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::{TlsError, fitness, pem, provider};

/// Reads a certificate chain and its key. Warns if clients will refuse the certificate.
///
/// # Errors
/// [`TlsError`] names the file and what is wrong with it.
pub fn load(cert: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let chain = pem::certificates("certificate", cert)?;
    fitness::check_for_clients(cert, &chain[0])
        .map_err(|problem| TlsError::file("certificate", cert, problem))?;
    let made = CertifiedKey::from_der(chain, pem::key(key)?, &provider());
    made.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::Mismatch {
            cert: cert.to_owned(),
            key: key.to_owned(),
        },
        rustls::Error::InvalidCertificate(problem) => {
            let problem = format!("not a usable X.509 certificate ({problem:?})");
            TlsError::file("certificate", cert, problem)
        }
        error => TlsError::file("key", key, error.to_string()),
    })
}

/// The certificate of a listener. It can be exchanged; connections keep theirs.
#[derive(Debug)]
pub struct Certificate(RwLock<Arc<CertifiedKey>>);

impl Certificate {
    /// A certificate to serve.
    pub fn new(key: CertifiedKey) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(key))))
    }

    /// New handshakes get `key` from now on.
    pub fn replace(&self, key: CertifiedKey) {
        *self.0.write() = Arc::new(key);
    }

    /// Whether clients see this very certificate. A client that shook hands just before the
    /// exchange saw another.
    pub fn shows(&self, certificate: &CertificateDer<'_>) -> bool {
        self.0.read().cert.first() == Some(certificate)
    }

    /// How a listener speaks TLS with this certificate, over one of these protocols (names of ALPN).
    ///
    /// # Errors
    /// [`TlsError::Setup`]: no tickets, so no resumption.
    pub fn server_config(self: &Arc<Self>, alpn: &[&[u8]]) -> Result<Arc<ServerConfig>, TlsError> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config.ticketer = ring::Ticketer::new()?;
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::PathBuf;

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
    fn a_certificate_is_shown_until_another_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let load = |name| {
            let (cert, key) = write_pair(folder.path(), name);
            load(&cert, &key).unwrap()
        };
        let (first, second) = (load("a"), load("b"));
        let (leaf_first, leaf_second) = (first.cert[0].clone(), second.cert[0].clone());
        let certificate = Certificate::new(first);
        let config = certificate.server_config(&[b"h2", b"http/1.1"]).unwrap();
        assert_eq!(config.alpn_protocols, [&b"h2"[..], b"http/1.1"]);
        assert!(certificate.shows(&leaf_first) && !certificate.shows(&leaf_second));
        certificate.replace(second);
        assert!(certificate.shows(&leaf_second) && !certificate.shows(&leaf_first));
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
