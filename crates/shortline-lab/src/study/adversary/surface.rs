//! What users and attacker meet: the server's files in the clear, over TLS, or a backend behind it.

use serde::{Deserialize, Serialize};

use shortline_testbed::server::Speech;

/// How the server is reached, and what it answers with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Surface {
    /// Files in the clear.
    #[default]
    Plain,
    /// Files over TLS, HTTP/2 by ALPN.
    Tls,
    /// A backend's responses, in the clear: files of another server of ours.
    Route,
}

impl Surface {
    /// The servers, in turn, unless named.
    pub fn servers(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &[
                "shares",
                "srpt",
                "nginx",
                "nginx-fq_codel",
                "nginx-cake-hosts",
            ],
            Self::Tls => &["shares", "srpt", "nginx-cake-hosts"],
            Self::Route => &["shares", "srpt"],
        }
    }

    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Plain => "files over plain TCP",
            Self::Tls => "files over TLS",
            Self::Route => "responses of a backend",
        }
    }

    /// What users and server speak.
    pub fn speech(self) -> Speech {
        Speech {
            tls: self == Self::Tls,
            http2: false,
        }
    }
}
