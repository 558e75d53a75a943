//! Backends that speak FastCGI, such as PHP-FPM.
//!
//! | module | |
//! |---|---|
//! | [`record`] | the bytes on the connection, without I/O |
//! | [`variables`] | what a program is told of a request |
//! | [`answer`] | the head of its response |
//! | `connection` | one request after the other on a connection |
//! | `body` | a response's body, and whether it is all there |
//! | `complaints` | what programs write to their error output, in the log |
//!
//! A connection carries one request at a time: PHP knows no other way. It is closed after its request unless idle connections are
//! allowed, because each holds one of PHP's processes.
//!
//! A library (fastcgi-client 0.12) sends the whole request before it reads any of the response. A program that answers before it
//! has read all would then stand still, and so would we.

pub mod answer;
mod body;
mod complaints;
mod connection;
pub mod record;
pub mod variables;

use std::io;

pub use body::Body;
pub use complaints::Complaints;
pub use connection::{Sender, start};
pub use variables::Call;

use answer::HeadError;
use record::{Ending, RecordError};

/// Why a backend's response is none.
#[derive(Debug, thiserror::Error)]
pub enum FastCgiError {
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(#[from] io::Error),
    /// It sent something else than FastCGI.
    #[error("not FastCGI: {0}")]
    Record(#[from] RecordError),
    /// What the program said is no response.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The head is too long.
    #[error("the head of the program's response has more than {0} bytes, the most allowed")]
    HeadTooLong(usize),
    /// The backend closed the connection in the middle.
    #[error("the backend closed the connection in the middle of the response")]
    CutShort,
    /// The program ended without a response.
    #[error("the program ended without a response")]
    NoResponse,
    /// The backend did not run the program.
    #[error("the backend did not run the program: {}", refusal(*.0))]
    Refused(Ending),
    /// The body is not as long as its head says.
    #[error("the response is not as long as its Content-Length says")]
    Length,
}

impl FastCgiError {
    /// Whether the backend has too much to do.
    pub fn is_overload(&self) -> bool {
        matches!(
            self,
            Self::Refused(Ending::Overloaded | Ending::CannotMultiplex)
        )
    }
}

fn refusal(ending: Ending) -> String {
    match ending {
        Ending::Complete => "it says that all is well".to_owned(),
        Ending::CannotMultiplex => "it has a request on this connection".to_owned(),
        Ending::Overloaded => "it has too much to do".to_owned(),
        Ending::Refused(status) => format!("protocol status {status}"),
    }
}
