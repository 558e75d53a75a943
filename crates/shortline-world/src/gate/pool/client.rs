//! A client of the pool, whatever its protocol: why its life ends, and how it leaves.

use std::io;

/// Why a client's life ends.
pub enum Over {
    /// The connection is over.
    Ended(String),
    /// It leaves by itself, or was told why it has to.
    Left,
}

impl From<io::Error> for Over {
    fn from(error: io::Error) -> Self {
        Self::Ended(error.to_string())
    }
}

/// How a client leaves.
#[derive(Clone, Copy, Debug)]
pub enum Leaving {
    /// It says so.
    Terminate,
    /// It closes its connection.
    Close,
    /// It resets its connection, after having read nothing for a while.
    Reset,
    /// It closes its connection in the middle of a message.
    InMessage,
}
