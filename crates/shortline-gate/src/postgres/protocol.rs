//! PostgreSQL's side of a session ([`crate::relay::Session`]). It finds where transactions begin and end,
//! and cleans up after a refused one.
//!
//! A unit of work begins with the first message that asks for work while no unit is admitted
//! ([`super::opening`]). It ends when the client is owed nothing and no transaction is open
//! ([`Conversation::is_over`]).

mod refusal;
mod to_client;
mod to_server;

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::conversation::{Conversation, CopyError, Status};
use super::frame::{FrameError, Scanner};
use super::opening::OpeningError;
use super::reply::Complaint;
use super::statements::Statements;
use crate::classify::ClientNames;
use crate::relay::{Denied, End, Exchange, Protocol, Side, Work};
use refusal::Refusing;

/// One side broke the protocol.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Opening(#[from] OpeningError),
    #[error(transparent)]
    Copy(#[from] CopyError),
}

/// The client's messages that are dropped after an error that the gate sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropping {
    Nothing,
    /// The next message.
    Message,
    /// The rest of a message.
    Rest,
    /// Everything up to the Sync, which the gate answers.
    UntilSync,
}

/// See the module's text.
#[derive(Debug)]
pub struct Postgres {
    shared: Arc<Shared>,
    names: Arc<ClientNames>,
    /// False for replication connections.
    is_gated: bool,
    /// The position in each side's messages.
    from_client: Scanner,
    from_server: Scanner,
    conversation: Conversation,
    statements: Statements,
    refusal: Refusing,
    /// The last requested unit begins with a message of the extended protocol.
    is_extended: bool,
    /// This many of the client's next bytes pass without a unit.
    passing: usize,
    dropping: Dropping,
    /// The client has pipelined as much as it may. Nothing more passes until everything is answered.
    is_throttled: bool,
    /// The last message to the client was an error.
    was_told: bool,
    /// The client has sent Terminate.
    is_leaving: bool,
}

impl Postgres {
    /// Starts at the first ReadyForQuery. Everything passes if `is_gated` is false.
    pub fn new(shared: &Arc<Shared>, names: Arc<ClientNames>, is_gated: bool) -> Self {
        let limits = &shared.config.relay.limits;
        Self {
            shared: Arc::clone(shared),
            names,
            is_gated,
            from_client: Scanner::new(limits.message_bytes_max),
            from_server: Scanner::new(limits.message_bytes_max),
            conversation: Conversation::new(limits.pipelined_max),
            statements: Statements::new(limits.statements_max),
            refusal: Refusing::None,
            is_extended: false,
            passing: 0,
            dropping: Dropping::Nothing,
            is_throttled: false,
            was_told: false,
            is_leaving: false,
        }
    }
}

impl Protocol for Postgres {
    type Complaint = Complaint;

    fn take_from_server(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<(), Complaint> {
        self.pass_to_client(exchange, bytes).map_err(|fault| {
            let message = format!("the backend does not speak the protocol: {fault}");
            Complaint::new("08P01", message)
        })
    }

    fn take_from_client(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &mut [u8],
    ) -> Result<usize, Complaint> {
        self.pass_to_server(exchange, bytes)
            .map_err(|fault| Complaint::new("08P01", fault.to_string()))
    }

    fn decided(&mut self, exchange: &mut Exchange<'_, '_>, decision: Result<Duration, Denied>) {
        match decision {
            Ok(waited) => self.tell_wait(exchange, waited),
            Err(denied) => self.refusal = Refusing::Due(Complaint::from(&denied)),
        }
    }

    fn advance(&mut self, exchange: &mut Exchange<'_, '_>) -> bool {
        self.refuse_when_answered(exchange)
    }

    fn held_bytes_max(&self) -> usize {
        self.shared.config.relay.limits.held_bytes_max
    }

    fn goes_through(&self, work: &Work) -> bool {
        !self.is_throttled && self.needs_no_unit(work)
    }

    fn is_idle(&self, work: &Work) -> bool {
        work.is_none()
            && matches!(self.refusal, Refusing::None)
            && self.passing == 0
            && self.conversation.is_over()
            && self.from_server.is_between_messages()
    }

    fn is_owed(&self) -> bool {
        !self.conversation.is_quiet()
    }

    /// Paused between two statements of a transaction, while waiting for COPY's data, or until the
    /// client takes its rows.
    fn is_paused(&self, client: &Side, server: &Side) -> bool {
        self.conversation.is_quiet()
            || !client.has_taken_all()
            || self.conversation.is_copying() && server.has_taken_all()
    }

    fn is_idle_in_transaction(&self, work: &Work) -> bool {
        work.is_running()
            && self.conversation.is_quiet()
            && self.conversation.status() != Status::Idle
    }

    fn was_told(&self) -> bool {
        self.was_told || self.is_leaving
    }

    fn last_words(&mut self, end: &End<Complaint>) -> Option<Vec<u8>> {
        // In the middle of a message, the error would become part of it.
        if !self.from_server.is_between_messages() {
            return None;
        }
        Complaint::of_end(end).map(|complaint| complaint.fatal())
    }
}
