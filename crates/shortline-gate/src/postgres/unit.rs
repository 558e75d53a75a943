//! Where a session's unit of work stands: the transaction that waits for admission, runs, or was
//! refused.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::reply::Complaint;
use crate::{Admitted, Gate, Outcome, Refused, TypeId};

/// See the module's text.
#[derive(Debug, Default)]
pub enum Unit {
    /// There is none.
    #[default]
    None,
    /// It waits for admission.
    Waiting(Admission),
    /// It runs.
    Running(Running),
    /// It was refused; the client is told as soon as its earlier requests are answered.
    Refused(Complaint),
    /// It was refused inside a transaction, which the backend is told to fail too.
    Failing(Failing),
}

impl Unit {
    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }
}

/// A question to the gate.
pub struct Admission(Pin<Box<dyn Future<Output = Result<Admitted, Refused>> + Send>>);

impl Admission {
    /// Asks.
    pub fn ask(gate: &Gate, request_type: TypeId) -> Self {
        let gate = gate.clone();
        Self(Box::pin(async move { gate.admit(request_type).await }))
    }

    /// The answer, if there is one.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Admitted, Complaint>> {
        self.0
            .as_mut()
            .poll(context)
            .map_err(|refused| complaint_of(&refused))
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Admission")
    }
}

/// What the client is told of a refusal. 53300 (too many connections) is what poolers and the
/// backend itself say when there is no room, and drivers know to try it again later; 57014 (query
/// canceled) is what a statement's timeout gives.
fn complaint_of(refused: &Refused) -> Complaint {
    let sqlstate = match refused {
        Refused::WaitedTooLong { .. } => "57014",
        _ => "53300",
    };
    Complaint::new(sqlstate, refused.to_string())
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

/// A transaction that the backend is to fail, since its client will be told that it has failed.
#[derive(Debug)]
pub struct Failing {
    /// What the client will be told.
    pub complaint: Complaint,
    /// Messages of the backend that have not come whole.
    pub received: Vec<u8>,
}

/// What fails a transaction and does nothing else. Its error is in the backend's log.
pub const FAILING_STATEMENT: &str =
    "ROLLBACK TO SAVEPOINT \"shortline refused a statement of this transaction\"";
