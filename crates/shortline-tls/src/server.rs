//! A server's certificate: read from PEM, checked before it is used, exchanged while the server runs.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::names::{Names, Pattern};
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

/// Whether a certificate is for these names.
///
/// # Errors
/// The first name that it is not for, and those that it is for.
pub fn check_names(key: &CertifiedKey, names: &[Pattern]) -> Result<(), String> {
    for name in names {
        fitness::check_name(&key.cert[0], name)?;
    }
    Ok(())
}

/// A certificate of a listener or of names. It can be exchanged; connections keep theirs. There may be none yet.
#[derive(Debug, Default)]
pub struct Certificate(RwLock<Option<Arc<CertifiedKey>>>);

impl Certificate {
    /// A certificate to serve.
    pub fn new(key: CertifiedKey) -> Arc<Self> {
        let certificate = Self::default();
        certificate.replace(key);
        Arc::new(certificate)
    }

    /// New handshakes get `key` from now on.
    pub fn replace(&self, key: CertifiedKey) {
        *self.0.write() = Some(Arc::new(key));
    }

    /// New handshakes get a responder's answer with the certificate (OCSP, RFC 6066, 8), or none, if `key` is still what they get.
    pub fn staple(&self, key: &Arc<CertifiedKey>, response: Option<Vec<u8>>) {
        let mut current = self.0.write();
        if current
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, key))
        {
            *current = Some(Arc::new(CertifiedKey {
                ocsp: response,
                ..key.as_ref().clone()
            }));
        }
    }

    /// What new handshakes get, if there is any.
    pub fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }

    /// Whether there is any.
    pub fn is_there(&self) -> bool {
        self.0.read().is_some()
    }

    /// Whether clients see this very certificate. A client that shook hands just before the
    /// exchange saw another.
    pub fn shows(&self, certificate: &CertificateDer<'_>) -> bool {
        let current = self.0.read();
        current.as_ref().and_then(|key| key.cert.first()) == Some(certificate)
    }

    /// How a listener speaks TLS with this certificate, over one of these protocols (names of ALPN).
    ///
    /// # Errors
    /// [`TlsError::Setup`]: no tickets, so no resumption.
    pub fn server_config(self: &Arc<Self>, alpn: &[&[u8]]) -> Result<Arc<ServerConfig>, TlsError> {
        server_config(Arc::clone(self) as Arc<dyn ResolvesServerCert>, alpn)
    }
}

/// Certificates by the names that they are for. They can be exchanged together; connections keep theirs.
#[derive(Debug, Default)]
pub struct NamedCertificates {
    table: RwLock<Arc<CertificateTable>>,
    beside: Option<Arc<dyn Beside>>,
}

/// Certificates by names.
#[derive(Debug, Default)]
pub struct CertificateTable {
    /// By the names that clients ask for.
    pub by_name: Names<Arc<Certificate>>,
    /// For all other names, and for clients that name none, of a listener without its own.
    pub fallback: Option<Arc<Certificate>>,
}

impl NamedCertificates {
    /// An empty table, and certificates beside it.
    pub fn with(beside: Arc<dyn Beside>) -> Self {
        Self {
            beside: Some(beside),
            ..Self::default()
        }
    }

    /// New handshakes go by `table` from now on.
    pub fn replace(&self, table: CertificateTable) {
        *self.table.write() = Arc::new(table);
    }

    /// The certificate for a name that has one, or will have one.
    fn find(&self, name: Option<&str>) -> Option<Arc<Certificate>> {
        name.and_then(|name| self.table.read().by_name.find(name).cloned())
    }

    fn fallback(&self) -> Option<Arc<Certificate>> {
        self.table.read().fallback.clone()
    }
}

/// Certificates beside the table of names.
pub trait Beside: fmt::Debug + Send + Sync {
    /// A protocol, as ALPN calls it, whose clients want the handshake and nothing more (RFC 8737 is of this kind).
    fn protocol(&self) -> &'static [u8];

    /// The certificate for a name, for clients that offer this protocol and no other.
    fn for_protocol(&self, name: &str) -> Option<Arc<CertifiedKey>>;

    /// The certificate for a name that the table does not have.
    fn for_name(&self, name: &str) -> Option<Arc<CertifiedKey>>;
}

/// What a listener shows: the certificate of the name that the client asks for (SNI, RFC 6066, 3), else its own, else the
/// fallback. Without any of them the handshake fails, and so it does where the name's certificate is not there yet.
#[derive(Debug)]
pub struct Shown {
    /// The listener's own.
    pub own: Option<Arc<Certificate>>,
    /// Those of names.
    pub named: Arc<NamedCertificates>,
}

impl Shown {
    /// How a listener speaks TLS with these, over one of these protocols (names of ALPN), or that of [`Beside`].
    ///
    /// # Errors
    /// [`TlsError::Setup`]: no tickets, so no resumption.
    pub fn server_config(self, alpn: &[&[u8]]) -> Result<Arc<ServerConfig>, TlsError> {
        let beside = self.named.beside.iter().map(|beside| beside.protocol());
        let alpn: Vec<&[u8]> = alpn.iter().copied().chain(beside).collect();
        server_config(Arc::new(self), &alpn)
    }

    /// What alone is asked, as the client offers its protocol alone.
    fn alone_for(&self, hello: &ClientHello<'_>) -> Option<&dyn Beside> {
        let beside = self.named.beside.as_deref()?;
        let mut offered = hello.alpn()?;
        let is_alone = offered.next() == Some(beside.protocol()) && offered.next().is_none();
        is_alone.then_some(beside)
    }

    fn beside(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.named.beside.as_ref()?.for_name(name)
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name();
        if let Some(beside) = self.alone_for(&hello) {
            return beside.for_protocol(name?);
        }
        if let Some(named) = self.named.find(name) {
            return named.current();
        }
        if let Some(beside) = name.and_then(|name| self.beside(name)) {
            return Some(beside);
        }
        let other = self.own.clone().or_else(|| self.named.fallback());
        other?.current()
    }
}

fn server_config(
    resolver: Arc<dyn ResolvesServerCert>,
    alpn: &[&[u8]],
) -> Result<Arc<ServerConfig>, TlsError> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config.ticketer = ring::Ticketer::new()?;
    Ok(Arc::new(config))
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current()
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
        // Keys of tickets are new after six hours, and the ones before are still good for as long.
        assert!(config.ticketer.enabled());
        assert_eq!(config.ticketer.lifetime(), 12 * 3600);
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
