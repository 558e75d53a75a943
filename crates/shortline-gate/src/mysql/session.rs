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

use std::sync::Arc;
use std::task::{Context, Poll};

use super::Shared;
use super::capability::{COMPRESS, QUERY_ATTRIBUTES};
use super::command::{Command, wanted_bytes};
use super::complaint::Complaint;
use super::control::{self, Control};
use super::handshake::Authenticated;
use super::packet::{Found, HEADER_BYTES, Header, Renumbering, Scanner};
use super::reply::{Follower, Shape};
use super::side::Side;
use super::statements::{Prepared, Statements};
use super::unit::Unit;
use crate::classify::ClientNames;
use crate::relay::{Admission, Answer, Handle, Order, Running, SCRATCH_BYTES, with_scratch};

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
}

impl Session {
    /// A session whose client the backend has taken.
    pub fn new(shared: &Arc<Shared>, handle: &Arc<Handle>, authenticated: Authenticated) -> Self {
        let capabilities = authenticated.capabilities;
        let is_compressed = capabilities & COMPRESS != 0;
        let mut client = Side::new(authenticated.client, is_compressed);
        let mut held = authenticated.ahead;
        if is_compressed {
            client.take_frames(&std::mem::take(&mut held));
        }
        Self {
            shared: Arc::clone(shared),
            handle: Arc::clone(handle),
            names: authenticated.names,
            client,
            server: Side::new(authenticated.server, false),
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
                    self.client.send(context, &complaint.packet(sequence));
                    return Poll::Ready(End::Refused(complaint));
                }
            };
            if let Some(end) = self.end(context) {
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
        let from_client = self.relay_to_server(context)?;
        Ok(from_server | decided | from_client)
    }

    /// Whether it is over, and how.
    fn end(&mut self, context: &mut Context<'_>) -> Option<End> {
        match self.handle.order() {
            Order::Close => return Some(End::Closed),
            Order::Drain if self.is_idle() => return Some(End::Drained),
            Order::Drain | Order::None => {}
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

    // From the backend to the client.

    fn relay_to_client(&mut self, context: &mut Context<'_>) -> bool {
        if self.client.poll_flush(context).is_pending() || self.server.is_ended {
            return false;
        }
        with_scratch(|scratch| match self.server.poll_read(context, scratch) {
            Poll::Pending => false,
            Poll::Ready(read) => {
                self.pass_to_client(context, &scratch[..read]);
                true
            }
        })
    }

    fn pass_to_client(&mut self, context: &mut Context<'_>, bytes: &[u8]) {
        if self.client.is_ended || self.client.is_broken {
            self.unread_bytes += bytes.len();
        }
        if self.turn != Turn::Stream {
            self.reply.follow(bytes);
            if self.reply.take_file_wanted() && self.turn == Turn::Replying {
                self.turn = Turn::File { is_empty: false };
                self.renumbering
                    .begin(self.reply.sequence().wrapping_add(1));
            }
            if self.turn == Turn::Authentication {
                self.renumbering
                    .begin(self.reply.sequence().wrapping_add(1));
            }
        }
        self.client.send(context, bytes);
        self.mind_reply();
    }

    /// Minds that the response may have come whole.
    fn mind_reply(&mut self) {
        if !matches!(self.turn, Turn::Replying | Turn::Authentication) || !self.reply.is_done() {
            return;
        }
        self.turn = Turn::Command;
        let has_failed = self.reply.has_failed();
        let Afterwards {
            prepares,
            resets,
            kills,
        } = std::mem::take(&mut self.afterwards);
        if let (Some(statement), Some(prepared)) = (self.reply.prepared(), prepares) {
            self.statements.prepared(statement, prepared);
        }
        if resets && !has_failed {
            self.statements.clear();
        }
        if let (Some(thread_id), false) = (kills, has_failed) {
            self.shared.waits.cancel(thread_id);
        }
        if let Unit::Running(running) = &mut self.unit {
            if has_failed {
                running.fail();
            }
            if !self.reply.status().is_in_transaction()
                && let Unit::Running(running) = std::mem::take(&mut self.unit)
            {
                running.finish();
            }
        }
    }

    // From the client to the backend.

    fn relay_to_server(&mut self, context: &mut Context<'_>) -> Result<bool, Complaint> {
        if self.server.poll_flush(context).is_pending() {
            return Ok(false);
        }
        if !self.held.is_empty() && self.take_held(context)? {
            return Ok(true);
        }
        let room = self.room();
        if room == 0 {
            return Ok(false);
        }
        if self.client.is_compressed() {
            let plain_bytes_max = self.held.len() + room;
            let polled = self
                .client
                .poll_decode(context, &mut self.held, plain_bytes_max);
            return match polled {
                Poll::Pending => Ok(false),
                Poll::Ready(decoded) => decoded.map(|()| true).map_err(Complaint::malformed),
            };
        }
        if self.client.is_ended {
            return Ok(false);
        }
        with_scratch(
            |scratch| match self.client.poll_read(context, &mut scratch[..room]) {
                Poll::Pending => Ok(false),
                Poll::Ready(read) if self.held.is_empty() => {
                    let taken = self.pass_to_server(context, &mut scratch[..read])?;
                    self.held.extend_from_slice(&scratch[taken..read]);
                    Ok(true)
                }
                Poll::Ready(read) => {
                    self.held.extend_from_slice(&scratch[..read]);
                    Ok(true)
                }
            },
        )
    }

    /// How much more is taken from the client, in bytes.
    fn room(&self) -> usize {
        let goes_through = match self.turn {
            Turn::Command => self.unit.is_running() && self.held.is_empty(),
            Turn::Waiting | Turn::Replying | Turn::Authentication => false,
            _ => true,
        };
        if goes_through {
            return SCRATCH_BYTES;
        }
        // A statement is read with its header and the byte that says that it is one.
        let held_bytes_max = self.shared.config.limits.held_bytes_max + HEADER_BYTES + 1;
        held_bytes_max
            .saturating_sub(self.held.len())
            .min(SCRATCH_BYTES)
    }

    /// Sends of what is held what may go on. False if nothing may.
    fn take_held(&mut self, context: &mut Context<'_>) -> Result<bool, Complaint> {
        let mut held = std::mem::take(&mut self.held);
        let before = std::mem::discriminant(&self.turn);
        let taken = self.pass_to_server(context, &mut held)?;
        self.held = held;
        if taken == self.held.len() {
            // Not only emptied: an idle session keeps no memory.
            self.held = Vec::new();
        } else if taken > 0 {
            self.held.drain(..taken);
        }
        Ok(taken > 0 || before != std::mem::discriminant(&self.turn))
    }

    /// Deals with the client's next bytes and returns how many of them are done with; the rest is
    /// to be held.
    fn pass_to_server(
        &mut self,
        context: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Result<usize, Complaint> {
        let (mut sent, mut at) = (0, 0);
        while at < bytes.len() {
            match &self.turn {
                Turn::Command => {
                    // Renumbering begins anew with each command.
                    if self.client.is_compressed() {
                        self.send(context, &mut bytes[sent..at]);
                        sent = at;
                    }
                    self.begin(context, &bytes[at..])?;
                    if matches!(self.turn, Turn::Command) {
                        break;
                    }
                }
                // A number of 0 begins a command, which has to wait for the server's verdict.
                Turn::Authentication
                    if self.scanner.is_between_messages()
                        && Header::first_of(&bytes[at..]).is_none_or(|next| next.sequence == 0) =>
                {
                    break;
                }
                Turn::Sending { .. } | Turn::File { .. } | Turn::Authentication => {
                    self.forward(bytes, &mut at)?;
                }
                Turn::Dropping(_) => {
                    self.send(context, &mut bytes[sent..at]);
                    self.drop_command(context, bytes, &mut at);
                    sent = at;
                }
                Turn::Stream => at = bytes.len(),
                Turn::Waiting | Turn::Replying => break,
            }
        }
        self.send(context, &mut bytes[sent..at]);
        self.mind_reply();
        Ok(at)
    }

    fn send(&mut self, context: &mut Context<'_>, bytes: &mut [u8]) {
        if self.client.is_compressed() && self.turn != Turn::Stream {
            self.renumbering.apply(bytes);
        }
        self.server.send(context, bytes);
    }

    /// Moves `at` over what goes on to the backend, up to the end of a message at most.
    fn forward(&mut self, bytes: &[u8], at: &mut usize) -> Result<(), Complaint> {
        let message_bytes_max = u64::from(self.shared.config.limits.message_bytes_max);
        let is_end = loop {
            match self.scanner.next(bytes, at) {
                None => break false,
                Some(Found::End) => break true,
                Some(Found::Start { payload_bytes, .. }) => {
                    if let Turn::File { is_empty } = &mut self.turn {
                        *is_empty = payload_bytes == 0;
                    }
                }
            }
        };
        if self.scanner.message_bytes() > message_bytes_max {
            return Err(Complaint::too_long(message_bytes_max));
        }
        if is_end {
            self.turn = match std::mem::replace(&mut self.turn, Turn::Replying) {
                Turn::Sending { has_response: true } if self.reply.is_authentication() => {
                    Turn::Authentication
                }
                Turn::Sending {
                    has_response: false,
                } => Turn::Command,
                Turn::Sending { .. } | Turn::File { is_empty: true } => Turn::Replying,
                other => other,
            };
        }
        Ok(())
    }

    /// Drops the rest of a refused command, and says why when it has come whole.
    fn drop_command(&mut self, context: &mut Context<'_>, bytes: &[u8], at: &mut usize) {
        while let Some(found) = self.scanner.next(bytes, at) {
            if found != Found::End {
                continue;
            }
            if let Turn::Dropping(complaint) = std::mem::replace(&mut self.turn, Turn::Command) {
                let sequence = self.scanner.sequence().wrapping_add(1);
                self.client.send(context, &complaint.packet(sequence));
            }
            return;
        }
    }

    // Commands.

    /// Reads the command at the front of `bytes` and decides what becomes of it. Nothing, if it has
    /// not come as far as is needed for that.
    fn begin(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Result<(), Complaint> {
        let Some(header) = Header::first_of(bytes) else {
            return Ok(());
        };
        let limits = &self.shared.config.limits;
        if header.payload_bytes > limits.message_bytes_max {
            return Err(Complaint::too_long(limits.message_bytes_max.into()));
        }
        let payload_bytes = header.payload_bytes as usize;
        let body = &bytes[HEADER_BYTES..];
        let start = match body.first() {
            None if payload_bytes > 0 => return Ok(()),
            None => body,
            Some(_) if payload_bytes == 0 => &[],
            Some(&command) => {
                let wanted = wanted_bytes(command, limits.held_bytes_max).min(payload_bytes);
                match body.get(..wanted) {
                    Some(start) => start,
                    None => return Ok(()),
                }
            }
        };
        match Command::read(start, self.has_query_attributes) {
            Command::Query(_) | Command::Execute(_) if self.unit.is_running() => {
                self.go(Some(Shape::Results));
            }
            Command::Query(text) => {
                let name = self.shared.name_of(text, &self.names.client());
                self.work(context, &name);
            }
            Command::Execute(statement) => match self.statements.get(statement) {
                Some(Prepared::Control) => self.go(Some(Shape::Results)),
                Some(Prepared::Work(name)) => self.work(context, &name),
                None => {
                    let name = Arc::clone(&self.shared.unknown);
                    self.work(context, &name);
                }
            },
            Command::Prepare(text) => {
                self.afterwards.prepares = Some(match control::read(text) {
                    Control::Transaction => Prepared::Control,
                    _ => Prepared::Work(self.shared.name_of(text, &self.names.client())),
                });
                self.go(Some(Shape::Prepare));
            }
            Command::Kill { thread_id, shape } => {
                self.afterwards.kills = Some(thread_id);
                self.go(Some(shape));
            }
            Command::Reset(shape) => {
                self.afterwards.resets = true;
                self.go(Some(shape));
            }
            Command::Close(statement) => {
                self.statements.close(statement);
                self.go(None);
            }
            Command::Control => self.go(Some(Shape::Results)),
            Command::Other(shape) => self.go(Some(shape)),
            Command::Unanswered => self.go(None),
            Command::Stream => self.turn = Turn::Stream,
        }
        Ok(())
    }

    /// The command goes to the server.
    fn go(&mut self, shape: Option<Shape>) {
        if let Some(shape) = shape {
            self.reply.expect(shape);
        }
        self.renumbering.begin(0);
        self.turn = Turn::Sending {
            has_response: shape.is_some(),
        };
    }

    /// The command is work, which goes to the server when it is admitted.
    fn work(&mut self, context: &mut Context<'_>, type_name: &str) {
        let request_type = self.shared.gate.type_of(type_name);
        match Admission::ask(&self.shared.gate, request_type, context) {
            Ok(Answer::Runs(running)) => {
                self.unit = Unit::Running(running);
                self.go(Some(Shape::Results));
            }
            Ok(Answer::Waits(admission)) => {
                self.handle.begin_waiting();
                self.unit = Unit::Waiting(admission);
                self.turn = Turn::Waiting;
            }
            Err(refused) => self.turn = Turn::Dropping(Complaint::from(&refused)),
        }
    }

    /// Minds what the gate has decided. False if nothing has changed.
    fn advance_unit(&mut self, context: &mut Context<'_>) -> bool {
        let Unit::Waiting(admission) = &mut self.unit else {
            return false;
        };
        let is_cancelled = !self.handle.is_waiting();
        let answer = match admission.poll(context) {
            _ if is_cancelled => Err(Complaint::interrupted()),
            Poll::Pending => return false,
            Poll::Ready(_) if !self.handle.end_waiting() => Err(Complaint::interrupted()),
            Poll::Ready(answer) => answer.map_err(|refused| Complaint::from(&refused)),
        };
        self.unit = Unit::None;
        match answer {
            Ok(admitted) => {
                self.unit = Unit::Running(Running::new(admitted));
                self.go(Some(Shape::Results));
            }
            Err(complaint) => self.turn = Turn::Dropping(complaint),
        }
        true
    }
}
