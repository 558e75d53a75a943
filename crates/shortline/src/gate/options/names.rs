//! The options whose values are words: TLS to the backend, policies, pools, formats of the log. Case does not matter.

use std::str::FromStr;

use clap::ValueEnum;

/// Whether the backend is spoken to with TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UpstreamTlsMode {
    /// With TLS for clients that use it, if the backend has it; without TLS for the others. The
    /// certificate is not checked.
    Follow,
    /// Without TLS.
    Disable,
    /// With TLS if the backend has it. The certificate is not checked.
    Prefer,
    /// Only with TLS. The certificate is not checked.
    Require,
    /// Only with TLS, and with a certificate for the backend's name signed by one of the
    /// authorities.
    VerifyFull,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// In order of arrival.
    Fifo,
    /// Shortest estimate first.
    Sjf,
    /// In order of arrival, short types as if they had come earlier.
    Boost,
    /// The least expected work to an end first, by the type's distribution.
    Gittins,
}

impl PolicyName {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Sjf => "sjf",
            Self::Boost => "boost",
            Self::Gittins => "gittins",
        }
    }
}

/// How long connections are lent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PoolName {
    /// Each client has a connection of its own.
    Off,
    /// For a client's session, from its first statement on.
    Session,
    /// For a transaction.
    Transaction,
}

impl PoolName {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Session => "session",
            Self::Transaction => "transaction",
        }
    }
}

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// A word that is none of an option's.
#[derive(Debug, thiserror::Error)]
#[error("`{word}`: must be one of {names}")]
pub struct WordError {
    word: String,
    names: String,
}

/// The same words in the file as on the command line.
macro_rules! words {
    ($($type:ident),*) => {
        $(impl FromStr for $type {
            type Err = WordError;

            fn from_str(word: &str) -> Result<Self, WordError> {
                read(word)
            }
        })*
    };
}

words!(UpstreamTlsMode, PolicyName, PoolName, LogFormat);

fn read<T: ValueEnum>(word: &str) -> Result<T, WordError> {
    let values = || {
        T::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value)
    };
    T::from_str(word, true).map_err(|_| WordError {
        word: word.escape_debug().to_string(),
        names: values()
            .map(|value| value.get_name().to_owned())
            .collect::<Vec<_>>()
            .join(", "),
    })
}
