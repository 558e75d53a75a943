//! What both HTTP versions share: what one exchange has shown, and how an error counts.

use std::error::Error;
use std::io;
use std::time::Instant;

use http::StatusCode;

use crate::record::Failure;

/// What a try has shown so far; kept when the try is given up.
pub(super) struct Observed {
    intended: Instant,
    /// Seconds after the intended start.
    pub(super) connect_s: Option<f64>,
    /// Seconds after the intended start.
    pub(super) first_byte_s: Option<f64>,
    /// Body bytes.
    pub(super) received: u64,
    /// Tries, including the one under way.
    pub(super) tries: u32,
}

impl Observed {
    pub(super) fn new(intended: Instant) -> Self {
        Self {
            intended,
            connect_s: None,
            first_byte_s: None,
            received: 0,
            tries: 0,
        }
    }

    /// Begins a try, and forgets what the one before showed.
    pub(super) fn begin_try(&mut self) {
        *self = Self {
            tries: self.tries + 1,
            ..Self::new(self.intended)
        };
    }

    pub(super) fn connected(&mut self) {
        self.connect_s = Some(self.elapsed_s());
    }

    pub(super) fn head_arrived(&mut self) {
        self.first_byte_s = Some(self.elapsed_s());
    }

    /// Seconds since the intended start.
    pub(super) fn elapsed_s(&self) -> f64 {
        Instant::now()
            .saturating_duration_since(self.intended)
            .as_secs_f64()
    }

    /// The verdict on a response that has come to its end.
    pub(super) fn judge(&self, status: StatusCode, bytes_expected: u64) -> Result<(), Failure> {
        if status != StatusCode::OK {
            Err(Failure::Status(status.as_u16()))
        } else if self.received < bytes_expected {
            Err(Failure::Short)
        } else {
            Ok(())
        }
    }
}

/// How an exchange ended early.
pub(super) enum Broken {
    /// The connection had been closed before the request reached it. Nobody answered, and a fresh
    /// connection may be tried (RFC 9110, 9.2.2, RFC 9113, 8.7).
    Stale,
    /// The request failed.
    Failed(Failure),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Whether the peer or the network ended the connection. Looks through layers of errors.
pub(super) fn is_connection_lost(error: &(dyn Error + 'static)) -> bool {
    let mut layer = Some(error);
    while let Some(error) = layer {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return matches!(
                io.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::NotConnected
                    | io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::TimedOut
            );
        }
        layer = error.source();
    }
    false
}
