//! What an authority looks for at our addresses while it checks a name, and how it is answered.
//!
//! | challenge | the authority | finds |
//! |---|---|---|
//! | http-01 (RFC 8555, 8.3) | asks for `/.well-known/acme-challenge/TOKEN` over HTTP | the token with the account key's thumbprint |
//! | tls-alpn-01 (RFC 8737) | begins TLS and offers only `acme-tls/1` | a certificate for the name with a digest of that text in it |
//!
//! Texts are also files in the folder of the state, so that another process on the same folder can answer. (The authority's
//! connection may reach any of several machines.) Certificates of challenges are not: they are answered by the process that orders.
//!
//! What is posted goes when its order ends, however it ends. So there is no more of it than orders under way.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

const PATH: &str = "/.well-known/acme-challenge/";
/// Let's Encrypt's tokens have 43 letters.
const TOKEN_BYTES_MAX: usize = 128;
/// A token, a dot and 43 letters of a thumbprint.
const TEXT_BYTES_MAX: u64 = 256;

/// The challenges that are open. A server answers them before everything else.
#[derive(Debug, Default)]
pub struct Challenges {
    texts: RwLock<HashMap<String, Bytes>>,
    certificates: RwLock<HashMap<String, Arc<CertifiedKey>>>,
    /// Where texts of other processes are.
    folder: RwLock<Option<PathBuf>>,
}

/// A challenge that cannot be posted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostError {
    /// A token with letters or a length that no token has.
    #[error("the authority's token is none (RFC 8555, 8.1)")]
    Token,
    /// The certificate cannot be made.
    #[error("no certificate for the challenge: {0}")]
    Certificate(String),
}

/// Something that is posted as long as this is held.
#[derive(Debug)]
pub(crate) struct Posted {
    challenges: Arc<Challenges>,
    key: Key,
}

#[derive(Debug)]
enum Key {
    Token(String),
    Name(String),
}

impl Challenges {
    /// The text at this path, if a challenge asks for it.
    pub fn text(&self, path: &str) -> Option<Bytes> {
        let token = path.strip_prefix(PATH).filter(|token| is_token(token))?;
        let ours = self.texts.read().get(token).cloned();
        ours.or_else(|| self.of_others(token))
    }

    /// Reads the text that another process has posted.
    fn of_others(&self, token: &str) -> Option<Bytes> {
        let folder = self.folder.read().clone()?;
        let mut text = Vec::new();
        let file = File::open(folder.join(token)).ok()?;
        file.take(TEXT_BYTES_MAX).read_to_end(&mut text).ok()?;
        Some(text.into())
    }

    /// Shares texts in this folder from now on.
    pub fn share_in(&self, folder: PathBuf) {
        *self.folder.write() = Some(folder);
    }

    /// Posts the text of a token.
    ///
    /// # Errors
    /// [`PostError::Token`]
    pub(crate) fn post_text(
        self: &Arc<Self>,
        token: &str,
        text: &str,
    ) -> Result<Posted, PostError> {
        if !is_token(token) {
            return Err(PostError::Token);
        }
        if let Some(folder) = &*self.folder.read() {
            let mut options = File::options();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            // Only other processes miss it.
            let written = options
                .open(folder.join(token))
                .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
            if let Err(error) = written {
                tracing::warn!("challenges {}: {error}", folder.display());
            }
        }
        let text = Bytes::copy_from_slice(text.as_bytes());
        self.texts.write().insert(token.to_owned(), text);
        Ok(Posted {
            challenges: Arc::clone(self),
            key: Key::Token(token.to_owned()),
        })
    }

    /// Posts a certificate for a name, with this digest in it.
    ///
    /// # Errors
    /// [`PostError::Certificate`]
    pub(crate) fn post_certificate(
        self: &Arc<Self>,
        name: &str,
        digest: &[u8],
    ) -> Result<Posted, PostError> {
        let refused = |error: &dyn std::fmt::Display| PostError::Certificate(error.to_string());
        let key = KeyPair::generate().map_err(|error| refused(&error))?;
        let params = CertificateParams::new(vec![name.to_owned()]);
        let mut params = params.map_err(|error| refused(&error))?;
        params.distinguished_name = DistinguishedName::new();
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let made = params.self_signed(&key).map_err(|error| refused(&error))?;
        let chain = vec![made.der().clone()];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let key = ring::sign::any_ecdsa_type(&key).map_err(|error| refused(&error))?;
        // `from_der` refuses the certificate: its extension is critical and not for rustls to know.
        let key = Arc::new(CertifiedKey::new(chain, key));
        self.certificates.write().insert(name.to_owned(), key);
        Ok(Posted {
            challenges: Arc::clone(self),
            key: Key::Name(name.to_owned()),
        })
    }
}

impl Challenges {
    /// The protocol of handshakes that an authority makes, as ALPN calls it.
    pub const PROTOCOL: &'static [u8] = b"acme-tls/1";

    /// The certificate that an authority looks for in a handshake.
    pub fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let name = name.to_ascii_lowercase();
        self.certificates.read().get(&name).cloned()
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        match &self.key {
            Key::Name(name) => drop(self.challenges.certificates.write().remove(name)),
            Key::Token(token) => {
                self.challenges.texts.write().remove(token);
                if let Some(folder) = &*self.challenges.folder.read() {
                    // It may never have been there.
                    let _ = fs::remove_file(folder.join(token));
                }
            }
        }
    }
}

/// Letters of base64url, so it is no path either.
fn is_token(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !text.is_empty() && text.len() <= TOKEN_BYTES_MAX && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn path(token: &str) -> String {
        format!("{PATH}{token}")
    }

    #[test]
    fn a_text_is_there_while_it_is_posted_for_other_processes_too() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, theirs] = [(); 2].map(|()| Arc::new(Challenges::default()));
        for challenges in [&ours, &theirs] {
            challenges.share_in(folder.path().to_owned());
        }
        let posted = ours.post_text("abc-_1", "abc-_1.key").unwrap();
        for challenges in [&ours, &theirs] {
            assert_eq!(challenges.text(&path("abc-_1")).unwrap(), "abc-_1.key");
            for other in ["abc", "", "../lock", "abc-_1/", "."] {
                assert!(challenges.text(&path(other)).is_none(), "{other}");
            }
        }
        drop(posted);
        assert!(ours.text(&path("abc-_1")).is_none() && theirs.text(&path("abc-_1")).is_none());
        for token in ["", "a/b", "..", &"a".repeat(129), "a b", "\u{e4}"] {
            assert!(
                matches!(ours.post_text(token, ""), Err(PostError::Token)),
                "{token}"
            );
        }
    }

    #[test]
    fn a_certificate_has_the_digest_in_a_critical_extension() {
        let challenges = Arc::new(Challenges::default());
        let posted = challenges.post_certificate("a.example", &[7; 32]).unwrap();
        let shown = challenges.certificate("A.example").unwrap();
        let (_, parsed) = x509_parser::parse_x509_certificate(&shown.cert[0]).unwrap();
        let mut extensions = parsed.extensions().iter();
        let found = extensions.find(|found| found.oid.to_id_string() == "1.3.6.1.5.5.7.1.31");
        let found = found.unwrap();
        assert!(found.critical);
        // An OCTET STRING of 32 bytes.
        assert_eq!(found.value, [&[4, 32][..], &[7; 32]].concat());
        assert!(challenges.certificate("b.example").is_none());
        drop(posted);
        assert!(challenges.certificate("a.example").is_none());
    }
}
