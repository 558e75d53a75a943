//! Where certificates come from, and what they are like.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use shortline_tls::Trust;

use crate::external::ExternalAccount;

/// Let's Encrypt.
pub const DIRECTORY: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// Let's Encrypt for tests: it has wider limits, and nobody trusts it.
pub const DIRECTORY_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// Where certificates come from, and what they are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The URL of the authority's directory (RFC 8555, 7.1.1), `https`.
    pub directory: String,
    /// Mail addresses for the authority to write to.
    pub contact: Vec<String>,
    /// What the authority has given to somebody it knows, if it knows us.
    pub external_account: Option<ExternalAccount>,
    /// The folder that keys and certificates are kept in.
    pub state: PathBuf,
    /// Whose certificate the authority's own server may have.
    pub trust: Trust,
    /// What keys are like.
    pub key_kind: KeyKind,
    /// How the authority may check names, in the order in which it is tried.
    pub challenges: Vec<ChallengeKind>,
    /// The profile that certificates are ordered by, if the authority has several.
    pub profile: Option<String>,
    /// Whether a certificate is revoked when another has taken its place.
    pub revoke_replaced: bool,
    /// Which names get a certificate when a client asks for them.
    pub on_demand: OnDemand,
}

/// Bounds on certificates that are got when clients ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDemand {
    /// A URL that is asked whether a name is allowed: `?domain=NAME` is put behind it, and 200 allows.
    pub ask: Option<String>,
    /// The most names.
    pub names_max: usize,
    /// The most orders in a minute.
    pub orders_per_minute_max: usize,
}

impl Default for OnDemand {
    fn default() -> Self {
        Self {
            ask: None,
            names_max: 1000,
            orders_per_minute_max: 10,
        }
    }
}

/// What a certificate's key is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA on P-256.
    #[default]
    P256,
    /// ECDSA on P-384.
    P384,
}

/// How an authority checks that a name is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeKind {
    /// A text over plain HTTP at port 80 (RFC 8555, 8.3).
    Http01,
    /// A certificate in a handshake at port 443 (RFC 8737).
    TlsAlpn01,
}

/// A text that is not one of these.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not known: write {known}")]
pub struct WordError {
    text: String,
    known: &'static str,
}

impl WordError {
    fn new(text: &str, known: &'static str) -> Self {
        let text = text.escape_debug().to_string();
        Self { text, known }
    }
}

impl FromStr for KeyKind {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "p256" => Ok(Self::P256),
            "p384" => Ok(Self::P384),
            _ => Err(WordError::new(text, "p256 or p384")),
        }
    }
}

impl FromStr for ChallengeKind {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "http-01" => Ok(Self::Http01),
            "tls-alpn-01" => Ok(Self::TlsAlpn01),
            _ => Err(WordError::new(text, "http-01 or tls-alpn-01")),
        }
    }
}

impl fmt::Display for ChallengeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        })
    }
}
