//! The commands of these worlds, as clients mean them and as they are sent.

use super::packets::{Payload, text};

/// A command. Statements have the numbers that the one gave who reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Goodbye.
    Quit,
    /// Statements.
    Query(String),
    /// Another database.
    InitDb(String),
    /// Prepares a statement.
    Prepare(String),
    /// Executes the statement of this number, with a value for each parameter.
    Execute(u32, Option<String>),
    /// Closes it. There is no answer.
    Close(u32),
    /// Resets its cursor and its data.
    ResetStatement(u32),
    /// Resets the session.
    Reset,
    /// Whether several statements may come at once from now on.
    SetOption(bool),
    /// Nothing.
    Ping,
    /// A command that there is not.
    Unknown(u8),
}

impl Command {
    /// Its packet's contents, where the statement of each number has the one that `told` says.
    pub fn encoded(&self, told: impl Fn(u32) -> u32) -> Payload {
        let with = |first: u8, rest: &[u8]| [&[first], rest].concat();
        let of = |statement: &u32| told(*statement).to_le_bytes();
        match self {
            Self::Quit => vec![0x01],
            Self::InitDb(name) => with(0x02, name.as_bytes()),
            Self::Query(text) => with(0x03, text.as_bytes()),
            Self::Ping => vec![0x0e],
            Self::Prepare(text) => with(0x16, text.as_bytes()),
            Self::Execute(statement, value) => {
                let mut payload = with(0x17, &of(statement));
                payload.extend([0, 1, 0, 0, 0]);
                if let Some(value) = value {
                    // No NULL, and the type of a text.
                    payload.extend([0, 1, 0xfd, 0]);
                    payload.extend(text(value.as_bytes()));
                }
                payload
            }
            Self::Close(statement) => with(0x19, &of(statement)),
            Self::ResetStatement(statement) => with(0x1a, &of(statement)),
            Self::SetOption(has_several) => vec![0x1b, u8::from(!has_several), 0],
            Self::Reset => vec![0x1f],
            Self::Unknown(first) => vec![*first],
        }
    }

    /// Reads a packet's contents.
    pub fn decoded(payload: &[u8]) -> Self {
        let (first, body) = payload.split_first().unwrap_or((&0, &[]));
        let text = || String::from_utf8_lossy(body).into_owned();
        let number = body
            .first_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes));
        match first {
            0x01 => Self::Quit,
            0x02 => Self::InitDb(text()),
            0x03 => Self::Query(text()),
            0x0e => Self::Ping,
            0x16 => Self::Prepare(text()),
            // The number, flags and the number of times, then NULLs, a type, and the length of a short text.
            0x17 => {
                let value = body.get(14..);
                let value = value.map(|value| String::from_utf8_lossy(value).into_owned());
                Self::Execute(number, value)
            }
            0x19 => Self::Close(number),
            0x1a => Self::ResetStatement(number),
            0x1b => Self::SetOption(body.first() == Some(&0)),
            0x1f => Self::Reset,
            first => Self::Unknown(*first),
        }
    }
}
