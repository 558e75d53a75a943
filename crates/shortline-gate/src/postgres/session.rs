//! A session after its authentication: bytes go from side to side in large pieces, and the first
//! messages of each transaction are held until it is admitted.
//!
//! One task polls both directions. A read takes what there is into the thread's scratch buffer;
//! the messages in it are found in place, and what may go on is written at once. What is kept per
//! session is what a socket did not take, and the held start of a transaction.
//!
//! A unit of work begins with the first message that asks for work while none is admitted
//! ([`super::opening`]), and ends when the client is owed nothing and no transaction is open
//! ([`Conversation::is_over`]). Until then everything goes through unheld: an admitted transaction
//! is never queued again. While the backend waits for the client the unit is paused. A client that leaves in the
//! middle of a statement keeps its load until the backend has noticed, as it would without a gate.

mod decided;
mod to_client;
mod to_server;

use std::sync::Arc;
use std::task::{Context, Poll};

use super::Shared;
use super::conversation::{Conversation, CopyError};
use super::frame::{FrameError, Scanner};
use super::opening::OpeningError;
use super::reply::Complaint;
use super::statements::Statements;
use super::unit::Unit;
use crate::GateClient;
use crate::classify::ClientNames;
use crate::relay::{Handle, Order, Side, Stream};

/// What a backend may go on sending to a client that has left, before it is left too; so that a
/// statement that only produces rows does not go on for nobody.
const UNREAD_BYTES_MAX: usize = 64 * 1024;

/// How a session ended.
#[derive(Debug)]
pub enum End {
    /// The client has left, and the backend has nothing of it to do any more.
    ClientLeft,
    /// The backend has left. If it did not say why, the gate must.
    ServerLeft {
        /// Whether the last that the client got was an error, or it wants to know of none.
        was_told: bool,
    },
    /// The client did something that ends the connection.
    Refused(Complaint),
    /// The gate ends, and the session had nothing under way.
    Drained,
    /// It was told to close at once.
    Closed,
}

/// One of the two sides does not speak the protocol.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Opening(#[from] OpeningError),
    #[error(transparent)]
    Copy(#[from] CopyError),
}

/// What of the client's messages is dropped, because the client has been told of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropping {
    Nothing,
    /// The next message.
    Message,
    /// The rest of a message.
    Rest,
    /// Everything up to the Sync, which is answered here.
    UntilSync,
}

/// In which directions something may be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Directions {
    to_client: bool,
    to_server: bool,
}

impl Directions {
    const NONE: Self = Self {
        to_client: false,
        to_server: false,
    };
    const BOTH: Self = Self {
        to_client: true,
        to_server: true,
    };
}

/// See the module's text.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    handle: Arc<Handle>,
    names: ClientNames,
    /// Replication connections are not.
    is_gated: bool,
    client: Side,
    server: Side,
    /// Where in the messages of each of them what comes is.
    from_client: Scanner,
    from_server: Scanner,
    conversation: Conversation,
    statements: Statements,
    unit: Unit,
    /// Of the client, and not sent yet.
    held: Vec<u8>,
    /// So many of the client's bytes go on without a unit.
    passing: usize,
    dropping: Dropping,
    /// The client has pipelined as much as it may: nothing more goes on before all is answered.
    is_throttled: bool,
    /// The last message to the client was an error.
    was_told: bool,
    /// The client has said that it leaves.
    is_leaving: bool,
    /// Sent by the backend after the client had left.
    unread_bytes: usize,
    /// The backend knows that nothing more will come.
    is_shut: bool,
    /// Who pays for what a unit uses beyond what was expected; leaves after the unit.
    account: Option<GateClient>,
}

impl Session {
    /// A session whose backend is ready.
    pub fn new(
        shared: &Arc<Shared>,
        handle: &Arc<Handle>,
        names: ClientNames,
        backend: Option<u32>,
        is_gated: bool,
        client: Stream,
        server: Stream,
    ) -> Self {
        let limits = &shared.config.limits;
        let user = names.user.as_deref().unwrap_or_default();
        let account = is_gated.then(|| shared.gate.client(user, backend));
        Self {
            account,
            shared: Arc::clone(shared),
            handle: Arc::clone(handle),
            names,
            is_gated,
            client: Side::new(client),
            server: Side::new(server),
            from_client: Scanner::new(limits.message_bytes_max),
            from_server: Scanner::new(limits.message_bytes_max),
            conversation: Conversation::new(limits.pipelined_max),
            statements: Statements::new(limits.statements_max),
            unit: Unit::None,
            held: Vec::new(),
            passing: 0,
            dropping: Dropping::Nothing,
            is_throttled: false,
            was_told: false,
            is_leaving: false,
            unread_bytes: 0,
            is_shut: false,
        }
    }

    /// Takes what came of the two sides together with the authentication.
    pub fn begin(
        &mut self,
        context: &mut Context<'_>,
        client: &[u8],
        server: &[u8],
    ) -> Option<End> {
        if let Err(fault) = self.take_from_server(context, server) {
            return Some(server_fault(&fault));
        }
        match self.take_from_client(context, client) {
            Ok(taken) => {
                self.held.extend_from_slice(&client[taken..]);
                None
            }
            Err(fault) => Some(client_fault(&fault)),
        }
    }

    /// The client, with everything else given back; none if it takes nothing more or is in the
    /// middle of a message.
    pub fn into_client(self) -> Option<Stream> {
        let is_listening = !self.client.is_broken
            && self.client.has_taken_all()
            && self.from_server.is_between_messages();
        is_listening.then(|| self.client.into_stream())
    }

    /// Relays until the session ends.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        self.handle.register(context.waker());
        let mut next = Directions::BOTH;
        while next != Directions::NONE {
            next = match self.turn(context, next) {
                Ok(next) => next,
                Err(end) => return Poll::Ready(end),
            };
            if let Some(end) = self.end(context) {
                return Poll::Ready(end);
            }
        }
        self.mind_pause();
        Poll::Pending
    }

    /// Moves what can be moved now, once in each of these directions. Returns those in which more
    /// may be moved at once: what comes from the backend may let the client go on, but not the
    /// other way round, since an answer takes longer than this.
    fn turn(&mut self, context: &mut Context<'_>, now: Directions) -> Result<Directions, End> {
        let from_server = now.to_client
            && self
                .relay_to_client(context)
                .map_err(|fault| server_fault(&fault))?;
        let decided = self.advance_unit(context);
        // A client that answers at once would else keep a gate from its end.
        let from_client = (now.to_server || from_server || decided)
            && !self.is_drained()
            && self
                .relay_to_server(context)
                .map_err(|fault| client_fault(&fault))?;
        Ok(Directions {
            to_client: from_server || decided,
            to_server: from_client || decided,
        })
    }

    /// Whether it is over, and how.
    fn end(&mut self, context: &mut Context<'_>) -> Option<End> {
        if self.handle.order() == Order::Close {
            return Some(End::Closed);
        }
        if self.is_drained() {
            return Some(End::Drained);
        }
        if self.server.is_ended {
            let was_told = self.was_told || self.is_leaving;
            return self
                .client
                .has_taken_all()
                .then_some(End::ServerLeft { was_told });
        }
        if !self.client.is_ended && !self.client.is_broken {
            return None;
        }
        // A transaction that is not admitted has not begun.
        if !self.unit.is_running() {
            self.unit = Unit::None;
            self.held = Vec::new();
        }
        if !self.server.has_taken_all() {
            return None;
        }
        if self.conversation.is_quiet() || self.unread_bytes > UNREAD_BYTES_MAX {
            return Some(End::ClientLeft);
        }
        // The backend works on: its load stays until it notices, as it does without a gate, that
        // the client has left.
        self.is_shut = self.is_shut || self.server.poll_shutdown(context).is_ready();
        None
    }

    /// Whether the session was to end as soon as it rests, and does.
    fn is_drained(&self) -> bool {
        self.handle.order() == Order::Drain && self.is_idle()
    }

    fn is_idle(&self) -> bool {
        matches!(self.unit, Unit::None)
            && self.held.is_empty()
            && self.passing == 0
            && self.conversation.is_over()
            && self.from_server.is_between_messages()
    }

    /// The unit is paused while the backend waits for the client: between two statements of a
    /// transaction, for COPY's data, or until the client takes what it asked for.
    fn mind_pause(&mut self) {
        let waits_for_client = self.conversation.is_quiet()
            || !self.client.has_taken_all()
            || self.conversation.is_copying() && self.server.has_taken_all();
        if let Unit::Running(running) = &mut self.unit {
            running.set_paused(waits_for_client);
        }
    }
}

fn client_fault(fault: &Fault) -> End {
    End::Refused(Complaint::new("08P01", fault.to_string()))
}

fn server_fault(fault: &Fault) -> End {
    let message = format!("the backend does not speak the protocol: {fault}");
    End::Refused(Complaint::new("08P01", message))
}
