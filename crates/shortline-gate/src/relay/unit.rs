//! A transaction before the gate, whatever protocol it is in: the question whether it may start, and
//! what is known of it while it runs.

use std::fmt;
use std::task::{Context, Poll};

use crate::{Admitted, Asked, Gate, GateClient, Outcome, Refused, TypeId, Wait};

/// A transaction that waits for admission.
pub struct Admission(Wait);

impl Admission {
    /// Asks the gate, for a task that is to be woken when a wait is over.
    ///
    /// # Errors
    /// [`Refused`] if it may not even wait.
    pub fn ask(
        gate: &Gate,
        request_type: TypeId,
        client: Option<&GateClient>,
        context: &mut Context<'_>,
    ) -> Result<Answer, Refused> {
        let mut admission = match gate.ask(request_type, client)? {
            Asked::Admitted(admitted) => return Ok(Answer::Runs(Running::new(admitted))),
            Asked::Waits(wait) => Self(wait),
        };
        // Between the question and now it may have been its turn.
        Ok(match admission.poll(context) {
            Poll::Ready(answer) => Answer::Runs(Running::new(answer?)),
            Poll::Pending => Answer::Waits(admission),
        })
    }

    /// The end of the wait, if it has come.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Admitted, Refused>> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Admission")
    }
}

/// What becomes of a transaction.
#[derive(Debug)]
pub enum Answer {
    /// It runs.
    Runs(Running),
    /// It waits.
    Waits(Admission),
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

    /// A statement has ended; whatever the backend does next is another one.
    pub fn next_statement(&mut self) {
        if !self.is_paused {
            self.admitted.next_statement();
        }
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
