//! The answer that a client gets, whatever the protocol.

/// A client's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The statement was done; its rows.
    Done(Vec<u8>),
    /// An error.
    Error {
        /// Its SQLSTATE.
        code: String,
        /// Its text.
        text: String,
    },
}
