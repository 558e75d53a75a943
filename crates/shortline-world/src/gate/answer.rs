//! What a client is told, whatever the protocol.

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done; the rows.
    Done(Vec<u8>),
    /// An error.
    Error {
        /// Its SQLSTATE.
        code: String,
        /// Its text.
        text: String,
    },
}
