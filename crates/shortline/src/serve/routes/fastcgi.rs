//! `[route.fastcgi]`: the programs that a FastCGI backend runs, such as PHP's.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use shortline_sched::units::Size;

const INDEX: &str = "index.php";
const SUFFIX: &str = ".php";

/// The table as the file has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FastCgiKeys {
    root: Option<PathBuf>,
    upstream_root: Option<AbsolutePath>,
    index: Option<FileName>,
    front_controller: Option<bool>,
    suffix: Option<Suffix>,
    variables: BTreeMap<VariableName, String>,
    held_size_max: Option<Size>,
}

/// The programs of a route as they are used.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSettings {
    /// The folder. `None`: that of the site, until the site is known.
    pub root: Option<PathBuf>,
    /// The folder as the backend names it, if it names it otherwise.
    pub upstream_root: Option<String>,
    /// The name of the program of a folder.
    pub index: String,
    /// The path of the front controller, if there is one.
    pub front: Option<String>,
    /// How the names of programs end.
    pub suffix: String,
    /// Variables for all programs.
    pub variables: Vec<(String, String)>,
}

impl FastCgiKeys {
    /// The programs of the route with this path.
    pub fn resolve(self, path: &str) -> ProgramSettings {
        let index = self.index.map_or_else(|| INDEX.to_owned(), |index| index.0);
        let front = format!("{}/{index}", path.trim_end_matches('/'));
        ProgramSettings {
            root: self.root,
            upstream_root: self.upstream_root.map(|path| path.0),
            front: self.front_controller.unwrap_or(true).then_some(front),
            index,
            suffix: self
                .suffix
                .map_or_else(|| SUFFIX.to_owned(), |suffix| suffix.0),
            variables: self
                .variables
                .into_iter()
                .map(|(name, value)| (name.0, value))
                .collect(),
        }
    }

    /// Bytes of a request of unknown length that are held.
    pub fn held_size_max(&self) -> Option<Size> {
        self.held_size_max
    }
}

/// An absolute path on the machine of the backend.
#[derive(Clone, Debug, PartialEq)]
struct AbsolutePath(String);

/// A file's name without a folder.
#[derive(Clone, Debug, PartialEq)]
struct FileName(String);

/// The end of a name.
#[derive(Clone, Debug, PartialEq)]
struct Suffix(String);

/// The name of a variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct VariableName(String);

/// A value that is refused.
#[derive(Debug, thiserror::Error)]
enum ValueError {
    #[error("`{0}` is no absolute path: give one such as /var/www/html")]
    Path(String),
    #[error("`{0}` is no file's name: give one such as index.php")]
    Name(String),
    #[error("`{0}` is no end of a name: give one with a dot, such as .php")]
    Suffix(String),
    #[error("`{0}` is no variable: write it like APP_ENV, with capitals, digits and _")]
    Variable(String),
}

impl FromStr for AbsolutePath {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match Path::new(text).is_absolute() && !text.chars().any(char::is_control) {
            true => Ok(Self(text.to_owned())),
            false => Err(ValueError::Path(text.escape_debug().to_string())),
        }
    }
}

impl FromStr for FileName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let is_plain = !text.is_empty() && !text.starts_with('.') && !text.contains(['/', '\\']);
        match is_plain && !text.chars().any(char::is_control) {
            true => Ok(Self(text.to_owned())),
            false => Err(ValueError::Name(text.escape_debug().to_string())),
        }
    }
}

impl FromStr for Suffix {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let end = text.strip_prefix('.').unwrap_or_default();
        match !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            true => Ok(Self(text.to_owned())),
            false => Err(ValueError::Suffix(text.escape_debug().to_string())),
        }
    }
}

impl FromStr for VariableName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let is_plain =
            |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        match !text.is_empty() && text.bytes().all(is_plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(ValueError::Variable(text.escape_debug().to_string())),
        }
    }
}

fn parsed<T: FromStr<Err: fmt::Display>, E: de::Error>(text: &str) -> Result<T, E> {
    text.parse().map_err(E::custom)
}

macro_rules! from_text {
    ($($type:ident),+) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
                parsed(&String::deserialize(source)?)
            }
        }
    )+};
}

from_text!(AbsolutePath, FileName, Suffix, VariableName);
