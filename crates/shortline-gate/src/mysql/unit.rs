//! Where a session's unit of work stands: the transaction that waits for admission or runs.

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
}

impl Unit {
    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }
}
