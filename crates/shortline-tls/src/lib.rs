//! TLS as all of Shortline uses it: 1.2 and 1.3 by rustls with ring.
//!
//! | part | what it does |
//! |---|---|
//! | [`load`], [`Certificate`] | a server's certificate: read from PEM, checked before it is used, exchanged while the server runs |
//! | [`NamedCertificates`], [`names`] | certificates by the names that clients ask for |
//! | [`Beside`] | certificates of names that are in no table, and for clients of a protocol that is answered by the handshake alone |
//! | [`ClientAuth`], [`ClientIdentity`] | clients that show a certificate: which are accepted, and who they are |
//! | [`Trust`], [`client_config`], [`connect`], [`AnyCertificate`] | whom a client trusts, and how it begins TLS |
//! | `fitness` | certificates that some programs accept and others refuse: why, and what to do |
//! | [`TlsError`] | what is wrong, with the file |

mod client;
mod client_auth;
mod fitness;
mod identity;
pub mod names;
mod pem;
mod server;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

pub use client::{AnyCertificate, Trust, client_config, connect};
pub use client_auth::{
    Certified, ClientAuth, ClientAuthFiles, ClientAuthMode, ClientAuthModeError, refusal,
};
pub use identity::ClientIdentity;
pub use server::{
    Beside, Certificate, CertificateTable, NamedCertificates, Shown, check_names, load,
};

/// Certificates or keys that cannot be used. Names the file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read or does not hold what it should.
    #[error("{what} {}: {problem}", path.display())]
    File {
        /// What it should have been.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Certificate and key are sound, but do not belong together.
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
    /// The machine has no trusted authorities.
    #[error(
        "authorities of the system: {problem}; install them (Debian: ca-certificates), or give a \
         file of your own"
    )]
    System {
        /// What was found.
        problem: String,
    },
    /// What rustls says of the parts together.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

impl TlsError {
    fn file(what: &'static str, path: &Path, problem: impl Into<String>) -> Self {
        Self::File {
            what,
            path: path.to_owned(),
            problem: problem.into(),
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
