//! A session after its authentication: bytes go from side to side in large pieces, and the first
//! messages of each transaction are held until it is admitted.
//!
//! One task polls both directions. A read takes what there is into the thread's scratch buffer;
//! the messages in it are found in place, and what may go on is written at once. What is kept per
//! session is what a socket did not take, and the held start of a transaction.
//!
//! A unit of work begins with the first message that asks for work while none is admitted
//! ([`Reader`]), and ends when the client is owed nothing and no transaction is open
//! ([`Conversation::is_over`]). Until then everything goes through unheld: an admitted transaction
//! is never queued again. While the backend waits for the client the unit is paused.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::Shared;
use super::conversation::{Conversation, CopyError, Status};
use super::frame::{FrameError, HEADER_BYTES, Header};
use super::messages::{Parse, closed_statement};
use super::opening::{Opening, OpeningError, Reader, Work};
use super::reply::{Complaint, notice, query, ready_for_query};
use super::side::Side;
use super::statements::Statements;
use super::unit::{Admission, FAILING_STATEMENT, Failing, Running, Unit};
use crate::relay::{Handle, Order, SCRATCH_BYTES, Stream, with_scratch};

/// What a backend may go on sending to a client that has left, before it is left too; so that a
/// statement that only produces rows does not go on for nobody.
const UNREAD_BYTES_MAX: usize = 64 * 1024;
/// What a backend may send in answer to [`FAILING_STATEMENT`].
const FAILING_BYTES_MAX: usize = 64 * 1024;

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

/// See the module's text.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    handle: Arc<Handle>,
    application_name: Option<Box<str>>,
    /// Replication connections are not.
    is_gated: bool,
    client: Side,
    server: Side,
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
}

impl Session {
    /// A session whose backend is ready.
    pub fn new(
        shared: &Arc<Shared>,
        handle: &Arc<Handle>,
        application_name: Option<Box<str>>,
        is_gated: bool,
        client: Stream,
        server: Stream,
    ) -> Self {
        let limits = &shared.config.limits;
        Self {
            shared: Arc::clone(shared),
            handle: Arc::clone(handle),
            application_name,
            is_gated,
            client: Side::new(client, limits.message_bytes_max),
            server: Side::new(server, limits.message_bytes_max),
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
        if let Err(fault) = self.from_server(context, server) {
            return Some(server_fault(&fault));
        }
        match self.from_client(context, client) {
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
            && self.server.scanner.is_between_messages();
        is_listening.then(|| self.client.into_stream())
    }

    /// Relays until the session ends.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        self.handle.register(context.waker());
        loop {
            let moved = match self.turn(context) {
                Ok(moved) => moved,
                Err(end) => return Poll::Ready(end),
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

    /// Moves what can be moved now, once in each direction. False if nothing could.
    fn turn(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        let from_server = self
            .relay_to_client(context)
            .map_err(|fault| server_fault(&fault))?;
        let decided = self.advance_unit(context);
        let from_client = self
            .relay_to_server(context)
            .map_err(|fault| client_fault(&fault))?;
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

    fn is_idle(&self) -> bool {
        matches!(self.unit, Unit::None)
            && self.held.is_empty()
            && self.passing == 0
            && self.conversation.is_over()
            && self.server.scanner.is_between_messages()
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

    // From the backend to the client.

    fn relay_to_client(&mut self, context: &mut Context<'_>) -> Result<bool, Fault> {
        if self.client.poll_flush(context).is_pending() || self.server.is_ended {
            return Ok(false);
        }
        with_scratch(|scratch| match self.server.poll_read(context, scratch) {
            Poll::Pending => Ok(false),
            Poll::Ready(read) => {
                self.from_server(context, &scratch[..read])?;
                Ok(true)
            }
        })
    }

    fn from_server(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Result<(), Fault> {
        if self.client.is_ended || self.client.is_broken {
            self.unread_bytes += bytes.len();
        }
        let bytes = match &mut self.unit {
            Unit::Failing(failing) => {
                failing.received.extend_from_slice(bytes);
                self.fail_transaction(context)?
            }
            _ => {
                self.note_received(bytes)?;
                self.client.send(context, bytes);
                return Ok(());
            }
        };
        self.note_received(&bytes)?;
        self.client.send(context, &bytes);
        Ok(())
    }

    /// Looks at the backend's messages as they go to the client.
    fn note_received(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if !self.is_gated {
            return Ok(());
        }
        let mut at = 0;
        // Of ReadyForQuery the status is wanted.
        let wanted = |tag| usize::from(tag == b'Z');
        while let Some(message) = self.server.scanner.next(bytes, &mut at, wanted)? {
            let (tag, status) = (message.tag, message.start.first().copied());
            self.was_told = tag == b'E';
            match (tag, status) {
                (b'Z', Some(status)) => self.received_ready(Status::parse(status)),
                (b'E', _) => {
                    self.conversation.received(tag);
                    if let Unit::Running(running) = &mut self.unit {
                        running.fail();
                    }
                }
                _ => self.conversation.received(tag),
            }
        }
        self.server.scanner.forget();
        Ok(())
    }

    fn received_ready(&mut self, status: Status) {
        self.conversation.received_ready(status);
        if self.conversation.is_quiet() {
            self.is_throttled = false;
        }
        self.finish_if_over();
    }

    /// Ends the unit if nothing of it is left. A message that has begun to go to the backend
    /// belongs to it.
    fn finish_if_over(&mut self) {
        if self.unit.is_running()
            && self.conversation.is_over()
            && self.client.scanner.is_between_messages()
            && let Unit::Running(running) = std::mem::take(&mut self.unit)
        {
            running.finish();
        }
    }

    // From the client to the backend.

    fn relay_to_server(&mut self, context: &mut Context<'_>) -> Result<bool, Fault> {
        if self.server.poll_flush(context).is_pending() {
            return Ok(false);
        }
        if !self.held.is_empty() && self.take_held(context)? {
            return Ok(true);
        }
        let room = self.room();
        if self.client.is_ended || room == 0 {
            return Ok(false);
        }
        with_scratch(
            |scratch| match self.client.poll_read(context, &mut scratch[..room]) {
                Poll::Pending => Ok(false),
                Poll::Ready(read) if self.held.is_empty() => {
                    let taken = self.from_client(context, &scratch[..read])?;
                    self.held.extend_from_slice(&scratch[taken..read]);
                    Ok(true)
                }
                Poll::Ready(read) => {
                    self.held.extend_from_slice(&scratch[..read]);
                    self.take_held(context)?;
                    Ok(true)
                }
            },
        )
    }

    /// How much more is taken from the client, in bytes.
    fn room(&self) -> usize {
        if self.goes_through() && !self.is_throttled {
            return SCRATCH_BYTES;
        }
        let held_bytes_max = self.shared.config.limits.held_bytes_max;
        held_bytes_max
            .saturating_sub(self.held.len())
            .min(SCRATCH_BYTES)
    }

    /// Whether the client's next byte needs no admission.
    fn goes_through(&self) -> bool {
        !self.is_gated
            || self.unit.is_running()
            || self.passing > 0
            || self.dropping != Dropping::Nothing
    }

    /// Sends of what is held what may go on. False if nothing may.
    fn take_held(&mut self, context: &mut Context<'_>) -> Result<bool, Fault> {
        let held = std::mem::take(&mut self.held);
        let taken = self.from_client(context, &held)?;
        self.held = held;
        if taken == self.held.len() {
            // Not only emptied: an idle session keeps no memory.
            self.held = Vec::new();
        } else if taken > 0 {
            self.held.drain(..taken);
        }
        Ok(taken > 0)
    }

    /// Deals with the client's next bytes and returns how many of them are done with; the rest is
    /// to be held.
    fn from_client(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Result<usize, Fault> {
        let (mut sent, mut at) = (0, 0);
        while at < bytes.len() {
            if self.dropping != Dropping::Nothing {
                self.server.send(context, &bytes[sent..at]);
                self.drop_messages(context, bytes, &mut at)?;
                sent = at;
            } else if self.goes_through() {
                let before = at;
                self.forward(bytes, &mut at)?;
                if at == before {
                    break;
                }
            } else if !self.open(context, &bytes[at..])? {
                break;
            }
        }
        self.server.send(context, &bytes[sent..at]);
        Ok(at)
    }

    /// Finds out what the next bytes ask for. False if nothing goes on for now.
    fn open(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Result<bool, Fault> {
        if !matches!(self.unit, Unit::None) {
            return Ok(false);
        }
        let limits = &self.shared.config.limits;
        let reader = Reader {
            statements: &self.statements,
            body_bytes_max: limits.message_bytes_max,
            held_bytes_max: limits.held_bytes_max,
            is_open: self.conversation.status() != Status::Idle,
        };
        match reader.read(bytes)? {
            Opening::Incomplete => Ok(false),
            Opening::Passes(length) => {
                self.passing = length;
                Ok(true)
            }
            Opening::Work(work) => {
                self.ask(context, work);
                Ok(self.unit.is_running())
            }
        }
    }

    fn ask(&mut self, context: &mut Context<'_>, work: Work<'_>) {
        let request_type = match work {
            Work::Statement(text) => self.shared.type_of(text, self.application_name.as_deref()),
            Work::Prepared(request_type) => request_type,
            Work::Preparation => self.shared.preparation,
            Work::Unknown => self.shared.unknown,
        };
        let mut admission = Admission::ask(&self.shared.gate, request_type);
        self.unit = match admission.poll(context) {
            Poll::Ready(Ok(admitted)) => Unit::Running(Running::new(admitted)),
            Poll::Ready(Err(complaint)) => Unit::Refused(complaint),
            Poll::Pending => {
                self.handle.begin_waiting();
                Unit::Waiting(admission)
            }
        };
    }

    /// Moves `at` over what goes on to the backend, and notes what that is.
    fn forward(&mut self, bytes: &[u8], at: &mut usize) -> Result<(), Fault> {
        if !self.is_gated {
            *at = bytes.len();
            return Ok(());
        }
        let end = match self.unit {
            Unit::Running(_) => bytes.len(),
            _ => bytes.len().min(*at + self.passing),
        };
        let begin = *at;
        let noted = self.note_sent(&bytes[..end], at);
        self.passing = self.passing.saturating_sub(*at - begin);
        // What a client sends of a COPY that has failed already ends behind the last answer.
        self.finish_if_over();
        noted
    }

    fn note_sent(&mut self, bytes: &[u8], at: &mut usize) -> Result<(), Fault> {
        let statement_bytes_max = self.shared.config.limits.held_bytes_max;
        let wanted = |tag| match tag {
            b'P' => statement_bytes_max,
            b'C' => NAME_BYTES,
            _ => 0,
        };
        loop {
            self.client.scanner.skip_body(bytes, at);
            self.is_throttled |= self.conversation.is_full();
            if self.is_throttled && self.client.scanner.is_between_messages() {
                return Ok(());
            }
            let Some(message) = self.client.scanner.next(bytes, at, wanted)? else {
                self.client.scanner.forget();
                return Ok(());
            };
            self.conversation.sent(message.tag)?;
            match message.tag {
                b'P' => {
                    let Parse { name, text } = Parse::read(message.start);
                    let name_of_client = self.application_name.as_deref();
                    let prepared = self.shared.prepared(text, name_of_client);
                    self.statements.prepare(name, prepared);
                }
                b'C' => {
                    if let Some(name) = closed_statement(message.start) {
                        self.statements.close(name);
                    }
                }
                b'X' => self.is_leaving = true,
                _ => {}
            }
        }
    }

    /// Drops what belongs to a refused request.
    fn drop_messages(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
        at: &mut usize,
    ) -> Result<(), Fault> {
        while self.client.scanner.skip_body(bytes, at) {
            if self.dropping == Dropping::Rest {
                self.dropping = Dropping::Nothing;
                return Ok(());
            }
            let Some(message) = self.client.scanner.next(bytes, at, |_| 0)? else {
                return Ok(());
            };
            match (self.dropping, message.tag) {
                // Terminate.
                (_, b'X') => self.client.is_ended = true,
                (Dropping::Message, _) => self.dropping = Dropping::Rest,
                (_, b'S') => {
                    self.dropping = Dropping::Rest;
                    let ready = ready_for_query(self.conversation.status());
                    self.client.send(context, &ready);
                }
                _ => {}
            }
        }
        Ok(())
    }

    // The unit of work.

    /// Minds what the gate has decided. False if nothing has changed.
    fn advance_unit(&mut self, context: &mut Context<'_>) -> bool {
        match &mut self.unit {
            Unit::Waiting(admission) => {
                if !self.handle.is_waiting() {
                    self.unit = Unit::Refused(cancelled());
                    return true;
                }
                let Poll::Ready(answer) = admission.poll(context) else {
                    return false;
                };
                self.unit = match answer {
                    _ if !self.handle.end_waiting() => Unit::Refused(cancelled()),
                    Err(complaint) => Unit::Refused(complaint),
                    Ok(admitted) => {
                        self.tell_wait(context, admitted.waited());
                        Unit::Running(Running::new(admitted))
                    }
                };
                true
            }
            Unit::Refused(complaint)
                if self.conversation.is_answered() && self.server.scanner.is_between_messages() =>
            {
                let complaint = complaint.clone();
                if self.conversation.status() == Status::Open {
                    self.server.send(context, &query(FAILING_STATEMENT));
                    self.unit = Unit::Failing(Failing {
                        complaint,
                        received: Vec::new(),
                    });
                } else {
                    self.say_refused(context, &complaint);
                }
                true
            }
            _ => false,
        }
    }

    /// Tells the client that it had to wait, if that is wanted and it waited for long.
    fn tell_wait(&mut self, context: &mut Context<'_>, waited: std::time::Duration) {
        let wanted = self.shared.config.notice_after;
        let is_long = wanted.is_some_and(|notice_after| waited >= notice_after);
        if is_long && self.server.scanner.is_between_messages() {
            let text = format!("waited {} ms for admission", waited.as_millis());
            self.client.send(context, &notice(&text));
        }
    }

    /// Ends the refused request as the backend ends one that failed.
    fn say_refused(&mut self, context: &mut Context<'_>, complaint: &Complaint) {
        self.unit = Unit::None;
        self.client.send(context, &complaint.error());
        let is_extended = matches!(self.held.first(), Some(b'P' | b'B' | b'E' | b'D' | b'C'));
        if is_extended {
            self.dropping = Dropping::UntilSync;
        } else {
            self.dropping = Dropping::Message;
            let ready = ready_for_query(self.conversation.status());
            self.client.send(context, &ready);
        }
    }

    /// Takes the answer to [`FAILING_STATEMENT`] from what the backend sends. Returns what is not
    /// part of it and goes to the client.
    fn fail_transaction(&mut self, context: &mut Context<'_>) -> Result<Vec<u8>, Fault> {
        let Unit::Failing(failing) = &mut self.unit else {
            return Ok(Vec::new());
        };
        let mut received = std::mem::take(&mut failing.received);
        let mut others = Vec::new();
        let mut at = 0;
        while let Some(header) = Header::first_of(&received[at..], FAILING_BYTES_MAX as u32)? {
            let message = &received[at..];
            if message.len() < header.message_bytes() {
                break;
            }
            at += header.message_bytes();
            match header.tag {
                b'E' => {}
                b'Z' => {
                    let complaint = failing.complaint.clone();
                    let status = message.get(HEADER_BYTES).copied().unwrap_or_default();
                    self.conversation.received_ready(Status::parse(status));
                    self.client.send(context, &others);
                    others = received.split_off(at);
                    self.say_refused(context, &complaint);
                    return Ok(others);
                }
                _ => others.extend_from_slice(&message[..header.message_bytes()]),
            }
        }
        failing.received = received.split_off(at);
        Ok(others)
    }
}

/// A Close's kind and name, with a name of the longest that is kept.
const NAME_BYTES: usize = 65;

fn cancelled() -> Complaint {
    Complaint::new("57014", "canceling statement due to user request")
}

fn client_fault(fault: &Fault) -> End {
    End::Refused(Complaint::new("08P01", fault.to_string()))
}

fn server_fault(fault: &Fault) -> End {
    let message = format!("the backend does not speak the protocol: {fault}");
    End::Refused(Complaint::new("08P01", message))
}
