//! What the server offers users and attacker: its files in the clear, its files over TLS, or a backend's
//! responses.

use serde::{Deserialize, Serialize};

use shortline_testbed::server::Speech;

/// How the server is reached, and what it responds with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Surface {
    /// Files in the clear.
    #[default]
    Plain,
    /// Files over TLS, HTTP/2 by ALPN.
    Tls,
    /// A backend's responses, in the clear. The backend is another server of ours with the same files.
    Route,
}

impl Surface {
    /// The default servers, in turn.
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

    /// The protocol of users and server.
    pub fn speech(self) -> Speech {
        Speech {
            tls: self == Self::Tls,
            http2: false,
            http3: false,
        }
    }
}
