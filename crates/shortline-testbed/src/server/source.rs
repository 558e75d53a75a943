//! Where our server has its responses from: each way must keep the order.

use std::path::Path;

/// Room for all of a study's responses, so that none is made or fetched anew.
const KEPT: &str = "1GiB";

/// Where our server has its responses from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The files of the folder.
    #[default]
    Files,
    /// The same, as a site that is found by its name.
    Site,
    /// The same, texts that it compresses on the fly, as the generator asks.
    Texts,
    /// A server that gets all requests: the URL of a route.
    Backend(String),
    /// The same, of which it keeps all responses.
    Kept(String),
    /// PHP-FPM at this socket, which sends the files by the program in this folder.
    Php {
        /// The path of the socket.
        socket: String,
        /// The folder of the program.
        folder: String,
    },
}

impl Source {
    /// The configuration for it, if it needs one. The server is asked for by `host`.
    pub fn configuration(&self, host: &str, root: &Path) -> Option<String> {
        let root = root.display();
        match self {
            Self::Files => None,
            Self::Site => Some(format!(
                "[[site]]\nnames = [\"{host}\"]\nroot = \"{root}\"\n[[site]]\nnames = [\"other.example\"]\nroot = \"{root}\"\n"
            )),
            Self::Texts => Some(format!("[cache]\nsize-max = \"{KEPT}\"\n")),
            Self::Kept(url) => Some(format!(
                "[[route]]\npath = \"/\"\nupstream = [\"{url}\"]\n[route.cache]\nsize-max = \"{KEPT}\"\n\
                 response-size-max = \"{KEPT}\"\ndefault-time = \"1h\"\n"
            )),
            Self::Backend(url) => {
                Some(format!("[[route]]\npath = \"/\"\nupstream = [\"{url}\"]\n"))
            }
            Self::Php { socket, folder } => Some(format!(
                "[[route]]\npath = \"/\"\nupstream = [\"fastcgi://{socket}\"]\n[route.fastcgi]\nroot = \"{folder}\"\n\
                 variables = {{ SITE = \"{root}\" }}\n"
            )),
        }
    }

    /// The codings that requests take.
    pub fn codings(&self) -> Option<&'static str> {
        (*self == Self::Texts).then_some("zstd")
    }

    /// Whether the folder of files is named by a flag.
    pub fn has_root(&self) -> bool {
        !matches!(self, Self::Site)
    }
}
