//! The unit of work of a session before the gate, whatever protocol it is in: the question whether it
//! may start, and what is known of it while it runs.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use shortline_sched::admission::Refusal;
use tokio::time::Instant;

use super::{ClientState, Handle};
use crate::{Admitted, Decision, Gate, GateClient, Outcome, Wait};

/// Why a unit does not start.
#[derive(Debug)]
pub enum Denied {
    /// The gate does not admit it.
    Refused(Refusal),
    /// Its client ended it while it waited.
    Cancelled,
}

/// Where the session's unit of work stands, and what it needs to begin another.
#[derive(Debug)]
pub struct Work {
    unit: Unit,
    gate: Gate,
    handle: Arc<Handle>,
    /// Who pays for what a unit uses beyond what was expected; leaves after the unit.
    account: Option<GateClient>,
}

#[derive(Debug, Default)]
enum Unit {
    #[default]
    None,
    Waiting(Waiting),
    Running(Running),
}

struct Waiting(Wait);

/// A unit that the backend works on.
#[derive(Debug)]
struct Running {
    admitted: Admitted,
    is_paused: bool,
    has_failed: bool,
}

impl Work {
    /// A session without a unit yet. Without an account its units are charged to nobody.
    pub fn new(gate: &Gate, handle: &Arc<Handle>, account: Option<GateClient>) -> Self {
        Self {
            unit: Unit::None,
            gate: gate.clone(),
            handle: Arc::clone(handle),
            account,
        }
    }

    /// The session's connection.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Whether there is no unit.
    pub fn is_none(&self) -> bool {
        matches!(self.unit, Unit::None)
    }

    /// Whether the unit waits for admission.
    pub fn is_waiting(&self) -> bool {
        matches!(self.unit, Unit::Waiting(_))
    }

    /// Whether the backend works on it.
    pub fn is_running(&self) -> bool {
        matches!(self.unit, Unit::Running(_))
    }

    /// Asks the gate for a unit whose type has this name, for a task that is woken when its wait is
    /// over. It runs or waits then.
    ///
    /// # Errors
    /// [`Refusal`] if it may not even wait.
    pub fn ask(&mut self, context: &mut Context<'_>, type_name: &str) -> Result<(), Refusal> {
        let request_type = self.gate.type_of(type_name);
        self.unit = match self.gate.ask(request_type, self.account.as_ref())? {
            Decision::Admitted(admitted) => Unit::Running(Running::new(admitted, &self.handle)),
            Decision::Waits(wait) => {
                let mut waiting = Waiting(wait);
                // Between the question and now it may have been its turn.
                match waiting.0.as_mut().poll(context) {
                    Poll::Ready(admitted) => Unit::Running(Running::new(admitted?, &self.handle)),
                    Poll::Pending => {
                        self.handle.begin_waiting();
                        self.handle.note(ClientState::Waiting, Instant::now());
                        Unit::Waiting(waiting)
                    }
                }
            }
        };
        Ok(())
    }

    /// What became of the unit that waited, and how long it did if it runs now. None while it waits, or
    /// if none does.
    pub fn decided(&mut self, context: &mut Context<'_>) -> Option<Result<Duration, Denied>> {
        let Unit::Waiting(waiting) = &mut self.unit else {
            return None;
        };
        let decided = if self.handle.is_waiting() {
            match waiting.0.as_mut().poll(context) {
                Poll::Pending => return None,
                Poll::Ready(_) if !self.handle.end_waiting() => Err(Denied::Cancelled),
                Poll::Ready(answer) => answer.map_err(Denied::Refused),
            }
        } else {
            Err(Denied::Cancelled)
        };
        self.unit = Unit::None;
        if decided.is_err() {
            self.handle.note(ClientState::Idle, Instant::now());
        }
        Some(decided.map(|admitted| {
            let waited = admitted.waited();
            self.unit = Unit::Running(Running::new(admitted, &self.handle));
            waited
        }))
    }

    /// The client has left: a unit that was not admitted has not begun.
    pub fn forget_waiting(&mut self) {
        if self.is_waiting() {
            self.unit = Unit::None;
        }
    }

    /// The session's units run on the backend's connection of this number from now on, or on none.
    pub fn set_backend(&mut self, backend: Option<u32>) {
        if let Some(account) = &mut self.account {
            account.set_backend(backend);
        }
    }

    /// The backend reported an error: the unit's time says nothing of what the work takes.
    pub fn fail(&mut self) {
        if let Unit::Running(running) = &mut self.unit {
            running.has_failed = true;
        }
    }

    /// A statement has ended; whatever the backend does next is another one.
    pub fn next_statement(&mut self) {
        if let Unit::Running(running) = &mut self.unit
            && !running.is_paused
        {
            running.admitted.next_statement();
        }
    }

    /// Whether the backend waits for the client from now on.
    pub fn set_paused(&mut self, is_paused: bool) {
        if let Unit::Running(running) = &mut self.unit
            && running.is_paused != is_paused
        {
            running.is_paused = is_paused;
            if is_paused {
                running.admitted.pause();
            } else {
                running.admitted.resume();
            }
        }
    }

    /// The unit that runs has ended.
    pub fn finish(&mut self) {
        if let Unit::Running(running) = std::mem::take(&mut self.unit) {
            let now = Instant::now();
            let outcome = match running.has_failed {
                true => Outcome::Failed,
                false => Outcome::Completed,
            };
            running.admitted.finish_at(now, outcome);
            self.handle.note(ClientState::Idle, now);
        }
    }
}

impl Running {
    fn new(admitted: Admitted, handle: &Handle) -> Self {
        if let Some(since) = admitted.statement_since() {
            handle.note(ClientState::Active, since);
        }
        Self {
            admitted,
            is_paused: false,
            has_failed: false,
        }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Waiting")
    }
}
