//! A transaction before the gate, whatever protocol it is in: the question whether it may start, and
//! what is known of it while it runs.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::{Admitted, Gate, Outcome, Refused, TypeId};

/// A question to the gate.
pub struct Admission(Pin<Box<dyn Future<Output = Result<Admitted, Refused>> + Send>>);

impl Admission {
    /// Asks.
    pub fn ask(gate: &Gate, request_type: TypeId) -> Self {
        let gate = gate.clone();
        Self(Box::pin(async move { gate.admit(request_type).await }))
    }

    /// The answer, if there is one.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Admitted, Refused>> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Admission")
    }
}

/// A transaction that the backend works on.
#[derive(Debug)]
pub struct Running {
    admitted: Admitted,
    is_paused: bool,
    has_failed: bool,
}

impl Running {
    /// It begins.
    pub fn new(admitted: Admitted) -> Self {
        Self {
            admitted,
            is_paused: false,
            has_failed: false,
        }
    }

    /// The backend reported an error: its time says nothing of what the work takes.
    pub fn fail(&mut self) {
        self.has_failed = true;
    }

    /// Whether the backend waits for the client from now on.
    pub fn set_paused(&mut self, is_paused: bool) {
        if self.is_paused != is_paused {
            self.is_paused = is_paused;
            if is_paused {
                self.admitted.pause();
            } else {
                self.admitted.resume();
            }
        }
    }

    /// It has ended.
    pub fn finish(self) {
        self.admitted.finish(if self.has_failed {
            Outcome::Failed
        } else {
            Outcome::Completed
        });
    }
}
