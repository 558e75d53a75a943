//! What users and attacker meet: the server's files in the clear, over TLS, or a backend behind it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::LabError;
use shortline_testbed::Testbed;
use shortline_testbed::bed::NativeBed;
use shortline_testbed::server::{OursMode, Running, Server, ServerSetup, Speech};

/// The backend's port.
const BACKEND_PORT: u16 = 9080;

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

    /// Starts the backend that is behind the server, if there is one, and returns it with its address.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_backend(
        self,
        testbed: &Testbed,
        bed: &NativeBed,
        root: &Path,
    ) -> Result<Option<(Running, SocketAddr)>, LabError> {
        if self != Self::Route {
            return Ok(None);
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, BACKEND_PORT));
        let setup = ServerSetup {
            place: bed.server_place(),
            address: address.ip().to_string(),
            port: address.port(),
            root: root.into(),
            rate: None,
            speech: self.speech(),
            uplink_loopback: false,
            admin_port: None,
            workers: None,
            writers: None,
            backend: None,
        };
        let running = Running::start(testbed, Server::Ours(OursMode::Off), &setup)?;
        Ok(Some((running, address)))
    }
}
