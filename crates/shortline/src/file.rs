//! The configuration file: TOML, every key optional, unknown keys refused.
//!
//! An error names the file, the line, the key and what would be right, in one line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use shortline_command::toml_text;
use toml::de::{DeTable, DeValue};

use super::gate::options::GateOptions;
use super::serve::options::{
    AdminOptions, ClientOptions, LimitOptions, LogOptions, SiteKeys, UplinkOptions,
};
use super::serve::routes::keys::RouteKeys;

/// The most bytes a configuration file may have.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What a configuration file says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct File {
    /// `[[listen]]`, once per address.
    pub listen: Vec<Listen>,
    /// `[uplink]`
    pub uplink: UplinkOptions,
    /// `[site]`
    pub site: SiteKeys,
    /// `[[route]]`, once per path.
    pub route: Vec<RouteKeys>,
    /// `[clients]`
    pub clients: ClientOptions,
    /// `[limits]`
    pub limits: LimitOptions,
    /// `[admin]`
    pub admin: AdminOptions,
    /// `[log]`
    pub log: LogOptions,
    /// `[gate]`
    pub gate: GateOptions,
}

/// An address, and the certificate if it speaks TLS.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Listen {
    /// Where connections are taken.
    pub address: SocketAddr,
    /// The certificate chain, PEM.
    pub tls_cert: Option<PathBuf>,
    /// Its key, PEM.
    pub tls_key: Option<PathBuf>,
}

/// A file that says nothing usable.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("configuration {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// It is absurdly long.
    #[error("configuration {}: larger than {FILE_BYTES_MAX} bytes; is it the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not what is expected.
    #[error("{place}: {problem}")]
    Content {
        /// File, line and key.
        place: String,
        /// What is wrong with the value, and what would be right.
        problem: String,
    },
}

impl FileError {
    /// Whether the file itself is wrong, rather than out of reach.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Unreadable { .. })
    }
}

/// A file's content with its text, to name lines of it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    path: PathBuf,
    text: String,
}

/// Reads a configuration file.
///
/// # Errors
/// [`FileError`]
pub fn read(path: &Path) -> Result<(File, Source), FileError> {
    let unreadable = |source| FileError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
        });
    }
    parse(path, std::fs::read_to_string(path).map_err(unreadable)?)
}

/// Reads the file that `--config` names; nothing is said where it names none.
///
/// # Errors
/// [`FileError`]
pub fn read_if_named(path: Option<&Path>) -> Result<(File, Source), FileError> {
    path.map_or_else(|| Ok(<(File, Source)>::default()), read)
}

/// Understands the text of a configuration file; the path is for messages.
///
/// # Errors
/// [`FileError::Content`]
pub fn parse(path: &Path, text: String) -> Result<(File, Source), FileError> {
    let source = Source {
        path: path.to_owned(),
        text,
    };
    let file = toml::from_str(&source.text).map_err(|error| source.content_error(&error))?;
    Ok((file, source))
}

/// Names where a value came from, for errors.
pub struct Place<'a> {
    /// The file.
    pub source: &'a Source,
    /// The table of the key.
    pub table: &'static str,
}

impl Place<'_> {
    /// The flag, or the key's place in the file.
    pub fn of(&self, by_flag: bool, flag: &str, key: &str) -> String {
        if by_flag {
            format!("--{flag}")
        } else {
            self.source.place(self.table, key)
        }
    }
}

impl Source {
    /// Names a key of a table as `file:line: table.key`, for errors about a combination.
    pub fn place(&self, table: &str, key: &str) -> String {
        let parsed = DeTable::parse(&self.text).ok();
        let span = parsed.as_ref().and_then(|document| {
            let DeValue::Table(table) = document.get_ref().get(table)?.get_ref() else {
                return None;
            };
            table.get_key_value(key).map(|(key, _)| key.span())
        });
        let line = span.map_or_else(String::new, |span| {
            format!(":{}", toml_text::line(&self.text, span.start))
        });
        format!("{}{line}: {table}.{key}", self.path.display())
    }

    fn content_error(&self, error: &toml::de::Error) -> FileError {
        let offset = error.span().map_or(0, |span| span.start);
        let key = toml_text::key(&self.text, offset);
        let key = key.map_or_else(String::new, |key| format!(" {key}:"));
        FileError::Content {
            place: format!(
                "{}:{}",
                self.path.display(),
                toml_text::line(&self.text, offset)
            ),
            problem: format!("{key} {}", error.message().replace('\n', "; "))
                .trim_start()
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn error_of(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.toml");
        std::fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        error.replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn a_wrong_value_is_told_with_line_key_and_remedy() {
        let error = error_of("[site]\nroot = \"/srv\"\n\n[uplink]\nrate = \"10mbits\"\n");
        assert!(
            error.starts_with("site.toml:5: uplink.rate: rate `10mbits`"),
            "{error}"
        );
        assert!(error.contains("10mbit,"), "{error}");
    }

    #[test]
    fn a_wrong_type_is_told_with_line_and_key() {
        let error = error_of("[limits]\nconnections-max = \"many\"\n");
        assert!(
            error.starts_with("site.toml:2: limits.connections-max:"),
            "{error}"
        );
        let error = error_of("[limits]\nconnections-max = 0\n");
        assert!(error.ends_with("expected a nonzero usize"), "{error}");
    }

    #[test]
    fn an_unknown_key_is_told_with_those_that_exist() {
        let error = error_of("[limits]\nconections-max = 5\n");
        assert!(
            error.starts_with("site.toml:2: limits.conections-max:"),
            "{error}"
        );
        assert!(error.contains("`connections-max`"), "{error}");
    }

    #[test]
    fn an_array_of_tables_is_searched_too() {
        let error =
            error_of("[[listen]]\naddress = \"0.0.0.0:80\"\n[[listen]]\naddress = \"localhost\"\n");
        assert!(error.starts_with("site.toml:4: listen.address:"), "{error}");
    }

    #[test]
    fn broken_toml_is_told_with_its_line() {
        let error = error_of("[uplink]\nrate = \n");
        assert!(error.starts_with("site.toml:2:"), "{error}");
    }

    #[test]
    fn a_place_names_the_line_of_a_key() {
        let source = Source {
            path: "a.toml".into(),
            text: "[uplink]\n# x\nslots = 3\n".into(),
        };
        assert_eq!(source.place("uplink", "slots"), "a.toml:3: uplink.slots");
    }
}
