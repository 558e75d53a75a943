//! A session's unit of work, for all protocols: its admission, and its state while it runs.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use shortline_sched::admission::Refusal;
use tokio::time::Instant;

use super::{ClientState, Handle};
use crate::classify::Class;
use crate::{Admitted, BackendConnection, Decision, Gate, GateClient, Outcome, Question, Wait};

/// Why a unit may not start.
#[derive(Debug)]
pub enum Denied {
    /// The gate refused it.
    Refused(Refusal),
    /// Its client cancelled it while it waited.
    Cancelled,
}

/// The session's unit of work, if there is one, and the means to begin another.
#[derive(Debug)]
pub struct Work {
    unit: Unit,
    gate: Gate,
    handle: Arc<Handle>,
    /// The client that pays for units that use more than their estimate. Dropped after the unit.
    account: Option<GateClient>,
    /// The unit is one of another server's gate.
    elsewhere: Option<Elsewhere>,
}

/// Another gate, and the same account there.
#[derive(Debug)]
struct Elsewhere {
    gate: Gate,
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
    /// A statement has ended, and it is not noted yet when.
    has_ended_one: bool,
}

impl Work {
    /// A session without a unit. Without an account, no client pays for its units.
    pub fn new(gate: &Gate, handle: &Arc<Handle>, account: Option<GateClient>) -> Self {
        Self {
            unit: Unit::None,
            gate: gate.clone(),
            handle: Arc::clone(handle),
            account,
            elsewhere: None,
        }
    }

    /// The handle of the session's connection.
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

    /// Asks the gate to admit a unit of this class. The unit then runs or waits. The task is woken when
    /// its wait is over.
    ///
    /// # Errors
    /// [`Refusal`] if the unit may not wait.
    pub fn ask(&mut self, context: &mut Context<'_>, class: &Class) -> Result<(), Refusal> {
        self.ask_at(None, context, class)
    }

    /// As [`Self::ask`], but asks the gate of another server, if one is given.
    ///
    /// # Errors
    /// [`Refusal`] if the unit may not wait.
    pub fn ask_at(
        &mut self,
        elsewhere: Option<&Gate>,
        context: &mut Context<'_>,
        class: &Class,
    ) -> Result<(), Refusal> {
        self.elsewhere = elsewhere.map(|gate| Elsewhere {
            account: self.account.as_ref().map(|account| account.at(gate)),
            gate: gate.clone(),
        });
        let (gate, account) = match &self.elsewhere {
            None => (&self.gate, self.account.as_ref()),
            Some(elsewhere) => (&elsewhere.gate, elsewhere.account.as_ref()),
        };
        let own = || account.map(GateClient::tenant).unwrap_or_default();
        let (request_type, tenant) = gate.named(&class.name, class.tenant.as_deref());
        let question = Question {
            client: account,
            tenant: tenant.unwrap_or_else(own),
            never_waits: class.never_waits,
            runaway: class.runaway,
            ..request_type.into()
        };
        self.unit = match gate.ask(question)? {
            Decision::Admitted(admitted) => Unit::Running(Running::new(admitted, &self.handle)),
            Decision::Waits(wait) => {
                let mut waiting = Waiting(wait);
                // It may have been admitted in the meantime.
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

    /// The decision on the unit that waited. If it runs now, returns how long it waited. `None` while it
    /// waits, or if no unit waits.
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

    /// Drops a unit that waits, since its client has left.
    pub fn forget_waiting(&mut self) {
        if self.is_waiting() {
            self.unit = Unit::None;
        }
    }

    /// Sets the connection that the session's units run on. `None` for no connection.
    pub fn set_backend(&mut self, backend: Option<BackendConnection>) {
        let account = match &mut self.elsewhere {
            None => self.account.as_mut(),
            Some(elsewhere) => elsewhere.account.as_mut(),
        };
        if let Some(account) = account {
            account.set_backend(backend);
        }
    }

    /// Records an error of the backend. The unit then ends as failed, and its time is only a lower bound of its
    /// service.
    pub fn fail(&mut self) {
        if let Unit::Running(running) = &mut self.unit {
            running.has_failed = true;
        }
    }

    /// A statement has ended, and the backend goes on with the next one, if there is one. The clock is read at the next
    /// [`Self::set_paused`]: mostly the unit has ended by then.
    pub fn next_statement(&mut self) {
        if let Unit::Running(running) = &mut self.unit {
            running.has_ended_one = !running.is_paused;
        }
    }

    /// Sets whether the backend waits for the client. Called when all that has come is handled.
    pub fn set_paused(&mut self, is_paused: bool) {
        let Unit::Running(running) = &mut self.unit else {
            return;
        };
        let has_ended_one = std::mem::take(&mut running.has_ended_one);
        if running.is_paused != is_paused {
            running.is_paused = is_paused;
            if is_paused {
                running.admitted.pause();
            } else {
                running.admitted.resume();
            }
        } else if has_ended_one && !is_paused {
            running.admitted.next_statement();
        }
    }

    /// When the backend began to work on the present statement. `None` while it works on none.
    pub fn statement_since(&self) -> Option<Instant> {
        match &self.unit {
            Unit::Running(running) => running.admitted.statement_since(),
            Unit::None | Unit::Waiting(_) => None,
        }
    }

    /// Ends the running unit.
    pub fn finish(&mut self) {
        self.finish_at(Instant::now());
    }

    /// As `finish`, with the time `now` of the end.
    pub fn finish_at(&mut self, now: Instant) {
        if let Unit::Running(running) = std::mem::take(&mut self.unit) {
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
            has_ended_one: false,
        }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Waiting")
    }
}
