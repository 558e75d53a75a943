//! Where a session's unit of work stands: the transaction that waits for admission, runs, or was
//! refused.

use super::reply::Complaint;
use crate::relay::{Admission, Running};

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
