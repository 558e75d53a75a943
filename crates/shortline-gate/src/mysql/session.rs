//! A session after its authentication: commands and responses in turn, each command that is work
//! held until its unit is admitted.
//!
//! One task polls both directions. A read takes what there is into the thread's scratch buffer; what
//! may go on is written at once, so that rows and packets of any length pass in pieces. What is kept
//! per session is what a socket did not take, and the held start of a command.
//!
//! A unit of work begins with the first command that is work ([`Command`]) while none is admitted,
//! and ends with the response whose status flags say that no transaction is open ([`Follower`]).
//! Until then everything goes through unheld: an admitted transaction is never queued again. An ERR
//! packet has no flags; then the transaction is taken to be as it was. While the backend waits for
//! the client the unit is paused.
//!
//! A client that sends further commands before it has its response has them read no further than
//! fits ([`crate::relay::Limits::held_bytes_max`]), and sent when it is their turn.

mod commands;
mod to_client;
mod to_server;

use std::sync::Arc;
use std::task::{Context, Poll};

use super::Shared;
use super::capability::{COMPRESS, QUERY_ATTRIBUTES};
use super::complaint::Complaint;
use super::frames::Frames;
use super::handshake::Authenticated;
use super::packet::{Renumbering, Scanner};
use super::reply::Follower;
use super::statements::{Prepared, Statements};
use super::unit::Unit;
use crate::GateClient;
use crate::classify::ClientNames;
use crate::relay::{Handle, Order, Side};

/// What a backend may go on sending to a client that has left, before it is left too; so that a
/// statement that only produces rows does not go on for nobody.
const UNREAD_BYTES_MAX: usize = 64 * 1024;

/// How a session ended.
#[derive(Debug)]
pub enum End {
    /// The client has left, and the backend has nothing of it to do any more.
    ClientLeft,
    /// The backend has left.
    ServerLeft,
    /// The client did something that ends the connection; it has been told.
    Refused(Complaint),
    /// The gate ends, and the session had nothing under way.
    Drained,
    /// It was told to close at once.
    Closed,
}

/// Whose turn it is.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// The client's next command.
    Command,
    /// A command waits for admission.
    Waiting,
    /// The rest of a command is to come; then the server's response, if it has one.
    Sending { has_response: bool },
    /// The server's response.
    Replying,
    /// The server waits for a local file, in packets up to an empty one.
    File { is_empty: bool },
    /// The client authenticates itself anew: either's.
    Authentication,
    /// The rest of a refused command is to come; then the client is told.
    Dropping(Complaint),
    /// Either's, from now on.
    Stream,
}

/// What to do when a command has been answered.
#[derive(Debug, Default)]
struct Afterwards {
    /// A statement was to be prepared, to be this.
    prepares: Option<Prepared>,
    /// The session was to begin anew.
    resets: bool,
    /// This connection, or its statement, was to be killed.
    kills: Option<u32>,
}

/// See the module's text.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    handle: Arc<Handle>,
    names: ClientNames,
    client: Side,
    /// The client compresses.
    frames: Option<Box<Frames>>,
    server: Side,
    scanner: Scanner,
    renumbering: Renumbering,
    reply: Follower,
    has_query_attributes: bool,
    statements: Statements,
    turn: Turn,
    afterwards: Afterwards,
    unit: Unit,
    /// Of the client, and not sent yet.
    held: Vec<u8>,
    /// Sent by the backend after the client had left.
    unread_bytes: usize,
    /// The backend knows that nothing more will come.
    is_shut: bool,
    /// Who pays for what a unit uses beyond what was expected; leaves after the unit.
    account: GateClient,
}

impl Session {
    /// A session whose client the backend has taken.
    pub fn new(shared: &Arc<Shared>, handle: &Arc<Handle>, authenticated: Authenticated) -> Self {
        let capabilities = authenticated.capabilities;
        let is_compressed = capabilities & COMPRESS != 0;
        let mut frames = is_compressed.then(Box::<Frames>::default);
        let mut held = authenticated.ahead;
        if let Some(frames) = &mut frames {
            frames.take(&std::mem::take(&mut held));
        }
        let user = authenticated.names.user.as_deref().unwrap_or_default();
        let backend = Some(authenticated.thread_id);
        Self {
            account: shared.gate.client(user, backend),
            shared: Arc::clone(shared),
            handle: Arc::clone(handle),
            names: authenticated.names,
            client: Side::new(authenticated.client),
            frames,
            server: Side::new(authenticated.server),
            scanner: Scanner::default(),
            renumbering: Renumbering::default(),
            reply: Follower::new(capabilities, authenticated.status),
            has_query_attributes: capabilities & QUERY_ATTRIBUTES != 0,
            statements: Statements::new(shared.config.limits.statements_max),
            turn: Turn::Command,
            afterwards: Afterwards::default(),
            unit: Unit::None,
            held,
            unread_bytes: 0,
            is_shut: false,
        }
    }

    /// Relays until the session ends.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        self.handle.register(context.waker());
        loop {
            let moved = match self.turn(context) {
                Ok(moved) => moved,
                Err(complaint) => {
                    let sequence = self.scanner.sequence().wrapping_add(1);
                    self.send_to_client(context, &complaint.packet(sequence));
                    return Poll::Ready(End::Refused(complaint));
                }
            };
            if let Some(end) = self.end(context) {
                if matches!(end, End::Drained | End::Closed) {
                    self.say_shutting_down(context);
                }
                return Poll::Ready(end);
            }
            if !moved {
                break;
            }
        }
        self.mind_pause();
        Poll::Pending
    }

    /// Lets go of the backend and the unit of work, then of the client.
    pub async fn close(self) {
        let Self {
            client,
            server,
            unit,
            ..
        } = self;
        drop((server, unit));
        client.close().await;
    }

    /// Moves what can be moved now, once in each direction. False if nothing could.
    fn turn(&mut self, context: &mut Context<'_>) -> Result<bool, Complaint> {
        let from_server = self.relay_to_client(context);
        let decided = self.advance_unit(context);
        // A client that answers at once would else keep a gate from its end.
        let from_client = !self.is_drained() && self.relay_to_server(context)?;
        Ok(from_server | decided | from_client)
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
            return self.client.has_taken_all().then_some(End::ServerLeft);
        }
        if !self.client.is_ended && !self.client.is_broken {
            return None;
        }
        if !self.server.has_taken_all() {
            return None;
        }
        // Only a statement that the server has in full is worth waiting for: its load stays until
        // it ends, as it does without a gate, where the server does not notice either.
        if self.turn != Turn::Replying || self.unread_bytes > UNREAD_BYTES_MAX {
            return Some(End::ClientLeft);
        }
        self.is_shut = self.is_shut || self.server.poll_shutdown(context).is_ready();
        None
    }

    /// Tells the client that the gate ends, where an error has its place: as the answer to the
    /// command that is to come, that waits, or whose response is at a packet's end.
    fn say_shutting_down(&mut self, context: &mut Context<'_>) {
        let sequence = match self.turn {
            Turn::Command | Turn::Waiting => 1,
            Turn::Replying if self.reply.takes_error() => match self.reply.has_begun() {
                true => self.reply.sequence().wrapping_add(1),
                false => self.scanner.sequence().wrapping_add(1),
            },
            _ => return,
        };
        if let (Turn::Command, Some(frames)) = (&self.turn, &mut self.frames) {
            frames.answer_first();
        }
        self.send_to_client(context, &Complaint::shutting_down().packet(sequence));
    }

    /// Whether the session was to end as soon as it rests, and does.
    fn is_drained(&self) -> bool {
        self.handle.order() == Order::Drain && self.is_idle()
    }

    /// Whether nothing is under way. What waits for admission is not.
    fn is_idle(&self) -> bool {
        let is_between = match self.turn {
            Turn::Command => self.held.is_empty(),
            Turn::Waiting => true,
            _ => false,
        };
        is_between && !self.reply.status().is_in_transaction() && self.client.has_taken_all()
    }

    /// The unit is paused while the backend waits for the client: between two statements of a
    /// transaction, for a local file, or until the client takes what it asked for.
    fn mind_pause(&mut self) {
        let waits_for_client = match self.turn {
            Turn::Replying => !self.client.has_taken_all(),
            Turn::File { .. } => self.server.has_taken_all(),
            _ => true,
        };
        if let Unit::Running(running) = &mut self.unit {
            running.set_paused(waits_for_client);
        }
    }
}
