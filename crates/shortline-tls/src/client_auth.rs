//! Clients that show a certificate (RFC 8446, 4.3.2): which ones a server accepts, and who they are then.
//!
//! | what | how |
//! |---|---|
//! | a certificate | must be for clients, from one of the authorities in a file, and on none of their revocation lists |
//! | a revocation list | is needed of each authority of the chain once there is a file of lists, and must not be past its next update |
//! | a session that is resumed | has the certificate of its first handshake, which is checked again: it may have ended since |
//! | a ticket | is good only where it was given: each [`ClientAuth`] has keys of its own, and rustls compares the name that is asked for |
//!
//! So no ticket leads from one site to another with other authorities, nor from before a reload to after it. TLS does not ask a
//! client for a certificate when it resumes a session (RFC 8446, 4.3.2).

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rustls::crypto::ring as crypto;
use rustls::pki_types::{CertificateRevocationListDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ProducesTickets, WebPkiClientVerifier};
use rustls::{CertificateError, Error, HandshakeKind};
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use x509_parser::parse_x509_crl;

use crate::identity::{self, ClientIdentity};
use crate::{TlsError, pem, provider};

/// What a client without a certificate gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientAuthMode {
    /// No connection.
    #[default]
    Require,
    /// The same as one with a certificate; nobody knows who it is.
    Request,
}

/// Another word.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}`: write \"require\" (nginx: on, Caddy: require_and_verify) or \"request\" (nginx: optional, Caddy: verify_if_given)"
)]
pub struct ClientAuthModeError(String);

impl FromStr for ClientAuthMode {
    type Err = ClientAuthModeError;

    fn from_str(text: &str) -> Result<Self, ClientAuthModeError> {
        match text {
            "require" => Ok(Self::Require),
            "request" => Ok(Self::Request),
            _ => Err(ClientAuthModeError(text.escape_debug().to_string())),
        }
    }
}

/// Where it is written which clients are accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientAuthFiles {
    /// The authorities, PEM.
    pub authorities: PathBuf,
    /// Their revocation lists, PEM.
    pub revoked: Option<PathBuf>,
    /// What a client without a certificate gets.
    pub mode: ClientAuthMode,
}

/// Which clients are accepted.
#[derive(Debug)]
pub struct ClientAuth {
    mode: ClientAuthMode,
    verifier: Arc<dyn ClientCertVerifier>,
    tickets: Arc<dyn ProducesTickets>,
}

/// What a handshake has told of its client.
#[derive(Debug)]
pub struct Certified {
    /// By whose rules.
    pub auth: Arc<ClientAuth>,
    /// Who it is. `None`: it has shown no certificate.
    pub identity: Option<Arc<ClientIdentity>>,
}

impl ClientAuth {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`] names the file and what is wrong with it.
    pub fn load(files: &ClientAuthFiles) -> Result<Arc<Self>, TlsError> {
        const WHAT: &str = "client authorities";
        let path = &files.authorities;
        let mut roots = RootCertStore::empty();
        for found in pem::certificates(WHAT, path)? {
            let added = roots.add(found);
            added.map_err(|error| TlsError::file(WHAT, path, format!("unusable: {error}")))?;
        }
        let mut builder = WebPkiClientVerifier::builder_with_provider(roots.into(), provider());
        if files.mode == ClientAuthMode::Request {
            builder = builder.allow_unauthenticated();
        }
        if let Some(path) = &files.revoked {
            let lists = revocation_lists(path)?;
            builder = builder.with_crls(lists).enforce_revocation_expiration();
        }
        let at = files.revoked.as_ref().unwrap_or(path);
        let verifier = builder.build();
        let verifier = verifier.map_err(|error| TlsError::file(WHAT, at, error.to_string()))?;
        Ok(Arc::new(Self {
            mode: files.mode,
            verifier,
            tickets: crypto::Ticketer::new()?,
        }))
    }

    /// Whether each client must have a certificate.
    pub fn is_required(&self) -> bool {
        self.mode == ClientAuthMode::Require
    }

    /// How `listener` speaks with these clients.
    ///
    /// # Errors
    /// [`TlsError::Setup`]
    pub fn server_config(&self, listener: &ServerConfig) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::clone(listener.crypto_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::clone(&self.verifier))
            .with_cert_resolver(Arc::clone(&listener.cert_resolver));
        config.alpn_protocols.clone_from(&listener.alpn_protocols);
        config.ticketer = Arc::clone(&self.tickets);
        // A configuration is made for each handshake, so nothing would be found in it.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Arc::new(config))
    }

    /// Who has shaken hands.
    ///
    /// # Errors
    /// The certificate of a session that is resumed is not accepted any more, or nobody could be told of.
    pub fn certified(self: Arc<Self>, connection: &ServerConnection) -> Result<Certified, Error> {
        let chain = connection.peer_certificates().unwrap_or_default();
        let Some((leaf, above)) = chain.split_first() else {
            return match self.mode {
                ClientAuthMode::Require => Err(Error::NoCertificatesPresented),
                ClientAuthMode::Request => Ok(Certified {
                    auth: self,
                    identity: None,
                }),
            };
        };
        if connection.handshake_kind() == Some(HandshakeKind::Resumed) {
            self.verifier
                .verify_client_cert(leaf, above, UnixTime::now())?;
        }
        let identity = identity::of(leaf).map_err(Error::General)?;
        Ok(Certified {
            auth: self,
            identity: Some(Arc::new(identity)),
        })
    }
}

/// Why a client's certificate was refused, if `error` says that.
pub fn refusal(error: &Error) -> Option<String> {
    let Error::InvalidCertificate(problem) = error else {
        return None;
    };
    Some(match problem {
        CertificateError::UnknownRevocationStatus => {
            "no list in client-crl is of its authority".to_owned()
        }
        CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => {
            "the list of its authority in client-crl is past its next update: get a new one, and send SIGHUP".to_owned()
        }
        CertificateError::UnknownIssuer => "it is from no authority in client-ca".to_owned(),
        CertificateError::Revoked => "it is revoked".to_owned(),
        other => other.to_string(),
    })
}

/// The lists of a file, at least one.
fn revocation_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    const WHAT: &str = "revocation lists";
    let found = pem::all::<CertificateRevocationListDer<'static>>(WHAT, path, "X509 CRL")?;
    // The verifier's own error names neither the file nor the list.
    for list in &found {
        webpki::BorrowedCertRevocationList::from_der(list)
            .map_err(|error| TlsError::file(WHAT, path, format!("unusable: {error}")))?;
        if is_over(list) {
            tracing::warn!(
                "{WHAT} {}: one is past its next update: all clients of its authority are refused; get a new one, and send SIGHUP",
                path.display()
            );
        }
    }
    Ok(found)
}

/// Whether a list is past its next update.
fn is_over(list: &CertificateRevocationListDer<'_>) -> bool {
    let now_s = i64::try_from(UnixTime::now().as_secs()).unwrap_or(i64::MAX);
    let parsed = parse_x509_crl(list).ok();
    let next = parsed.and_then(|(_, parsed)| parsed.next_update());
    next.is_some_and(|next| next.timestamp() < now_s)
}
