//! A session after its authentication, for all protocols. Bytes go from side to side in large pieces.
//! The start of each unit of work is held until the gate has admitted it.
//!
//! The session has the sockets and the unit of work ([`Work`]). A [`Protocol`] parses the bytes and
//! decides what to send. It has no socket, no task and no clock, and acts only on an [`Exchange`].
//!
//! One task polls both directions. A read fills the thread's scratch buffer. The protocol finds the
//! messages in place, and bytes that may go on are written at once. A session keeps only the bytes
//! that a socket did not take, and the held start of a unit.
//!
//! A unit of work begins with the first message that asks for work while there is none. The protocol
//! ends it. Until then nothing is held: an admitted transaction is never queued again. While the
//! backend waits for the client, the unit is paused. If a client leaves in the middle of a statement,
//! its load stays until the backend notices, as it would without a gate.

mod departing;

use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::idle::Idle;
use super::{Denied, Handle, Order, Registry, SCRATCH_BYTES, Side, Stream, Work, with_scratch};
use crate::handover::{ProtocolState, Stay};

/// The most bytes that are read from the backend for a client that has left. Then the session ends, so
/// that a statement does not go on producing rows for no client.
const UNREAD_BYTES_MAX: usize = 64 * 1024;

/// The protocol of a session: a state machine for each direction.
pub trait Protocol {
    /// An error that ends the session. The gate reports it to the client.
    type Complaint: Error + 'static;

    /// Takes bytes of the backend, and sends the client its part of them.
    ///
    /// # Errors
    /// The backend does not speak the protocol.
    fn take_from_server(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<(), Self::Complaint>;

    /// Takes the client's next bytes. Returns how many of them are done with. The rest is held, and comes
    /// again. The protocol may change only bytes that are done with.
    ///
    /// # Errors
    /// The client does not speak the protocol, or does something that is not allowed.
    fn take_from_client(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &mut [u8],
    ) -> Result<usize, Self::Complaint>;

    /// Reads from the client and appends the decoded bytes to `plain`, up to `plain_bytes_max` bytes in
    /// all. `None` if the client's bytes need no decoding. The session then reads them itself.
    fn poll_decode(
        &mut self,
        _exchange: &mut Exchange<'_, '_>,
        _plain: &mut Vec<u8>,
        _plain_bytes_max: usize,
    ) -> Option<Poll<Result<(), Self::Complaint>>> {
        None
    }

    /// The waiting unit was decided on: it runs now, after this wait, or may not run.
    fn decided(&mut self, exchange: &mut Exchange<'_, '_>, decision: Result<Duration, Denied>);

    /// Does work that was put off. Returns false if there is none.
    fn advance(&mut self, _exchange: &mut Exchange<'_, '_>) -> bool {
        false
    }

    /// The most bytes of a client that are held.
    fn held_bytes_max(&self) -> usize;

    /// Whether the client's next bytes need no decision of the gate.
    fn goes_through(&self, work: &Work) -> bool;

    /// Whether the session can end without breaking anything off.
    fn is_idle(&self, work: &Work) -> bool;

    /// Whether the backend owes the client an answer.
    fn is_owed(&self) -> bool;

    /// Whether the backend waits for the client.
    fn is_paused(&self, client: &Side, server: &Side) -> bool;

    /// Whether a transaction is open and no statement of it is under way.
    fn is_idle_in_transaction(&self, work: &Work) -> bool;

    /// Whether the client was told why the backend closes the connection.
    fn was_told(&self) -> bool;

    /// The last message to the client at this end, if any.
    fn last_words(&mut self, end: &End<Self::Complaint>) -> Option<Vec<u8>>;

    /// The session is over. Closes the backend's side, or gives its connection back.
    fn retire(&mut self, _server: Side) {}

    /// Why another process cannot go on with the session while it rests.
    fn stays(&self) -> Option<Stay> {
        Some(Stay::Unpooled)
    }

    /// What another process needs for that. `None` if none can.
    fn state(&self) -> Option<ProtocolState> {
        None
    }
}

/// The parts of a session that a protocol acts on.
pub struct Exchange<'a, 'task> {
    /// The session's task.
    pub context: &'a mut Context<'task>,
    /// The client.
    pub client: &'a mut Side,
    /// The backend.
    pub server: &'a mut Side,
    /// The unit of work.
    pub work: &'a mut Work,
}

impl Exchange<'_, '_> {
    /// Sends bytes to the client.
    pub fn to_client(&mut self, bytes: &[u8]) {
        self.client.send(self.context, bytes);
    }

    /// Sends bytes to the backend.
    pub fn to_server(&mut self, bytes: &[u8]) {
        self.server.send(self.context, bytes);
    }
}

/// How a session ended.
#[derive(Debug)]
pub enum End<Complaint> {
    /// The client has left, and the backend does nothing for it any more.
    ClientLeft,
    /// The backend has closed the connection. If it did not report why, the gate does.
    ServerLeft {
        /// Whether the backend reported why, or the client needs no report.
        was_told: bool,
    },
    /// The client or the backend broke the protocol or a rule of the gate.
    Refused(Complaint),
    /// The client kept a transaction open without work for too long.
    IdleInTransaction,
    /// An order ended the session: nothing was under way, or it was to close at once.
    Stopped,
    /// The client is another process's now.
    Departed,
}

/// The backend has closed a connection.
#[derive(Debug, thiserror::Error)]
#[error("the backend closed the connection")]
struct ServerLeft;

/// A transaction was open without work for longer than is allowed.
#[derive(Debug, thiserror::Error)]
#[error("the client kept a transaction open without work for too long")]
struct IdleInTransaction;

/// The directions in which bytes may move.
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

/// A session, as described in the module's text.
#[derive(Debug)]
pub struct Session<P> {
    protocol: P,
    handle: Arc<Handle>,
    client: Side,
    server: Side,
    work: Work,
    idle: Idle,
    /// Bytes of the client that were not sent yet.
    held: Vec<u8>,
    /// The number of bytes that the backend sent after the client had left.
    unread_bytes: usize,
    /// Whether the direction to the backend is shut down.
    is_shut: bool,
    /// The handover that the session stayed behind in.
    stayed_in: Option<u64>,
}

impl<P: Protocol> Session<P> {
    /// A session whose backend is ready, or will be lent to it. `ahead` has the bytes that the client already sent.
    pub fn new(
        protocol: P,
        handle: &Arc<Handle>,
        work: Work,
        client: Stream,
        server: Side,
        ahead: Vec<u8>,
    ) -> Self {
        Self {
            protocol,
            handle: Arc::clone(handle),
            client: Side::new(client),
            server,
            work,
            idle: Idle::default(),
            held: ahead,
            unread_bytes: 0,
            is_shut: false,
            stayed_in: None,
        }
    }

    /// Limits how long a transaction may be open without work.
    pub fn limit_idle_transactions(mut self, time_max: Option<Duration>) -> Self {
        self.idle = Idle::new(time_max);
        self
    }

    /// Relays until the session ends. `ahead` has the bytes that the backend already sent.
    pub async fn relay(&mut self, ahead: Vec<u8>) -> End<P::Complaint> {
        let begun = poll_fn(|context| Poll::Ready(self.take_from_server(context, &ahead))).await;
        drop(ahead);
        if let Err(complaint) = begun {
            return End::Refused(complaint);
        }
        loop {
            match poll_fn(|context| self.poll(context)).await {
                // Boxed: hardly ever, and then once.
                End::Departed if !Box::pin(self.depart()).await => {}
                end => return end,
            }
        }
    }

    /// Releases the backend and the unit of work. Counts an end by an error, and reports the end to the
    /// client if need be.
    pub async fn close(self, end: End<P::Complaint>, registry: &Registry) {
        let Self {
            mut protocol,
            client,
            server,
            work,
            held,
            ..
        } = self;
        protocol.retire(server);
        drop((work, held));
        match &end {
            End::Refused(complaint) => registry.count_failure(complaint),
            End::ServerLeft { was_told: false } => registry.count_failure(&ServerLeft),
            End::IdleInTransaction => registry.count_failure(&IdleInTransaction),
            End::ClientLeft | End::ServerLeft { was_told: true } | End::Stopped => {}
            End::Departed => return,
        }
        let last_words = protocol.last_words(&end);
        drop((protocol, end));
        client
            .close(last_words.as_deref().unwrap_or_default())
            .await;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End<P::Complaint>> {
        self.handle.register(context.waker());
        let mut next = Directions::BOTH;
        while next != Directions::NONE {
            next = match self.turn(context, next) {
                Ok(next) => next,
                Err(complaint) => return Poll::Ready(End::Refused(complaint)),
            };
            if let Some(end) = self.end(context) {
                return Poll::Ready(end);
            }
        }
        let is_paused = self.protocol.is_paused(&self.client, &self.server);
        self.work.set_paused(is_paused);
        let is_idle =
            self.client.has_taken_all() && self.protocol.is_idle_in_transaction(&self.work);
        if self.idle.is_over(context, is_idle) {
            return Poll::Ready(End::IdleInTransaction);
        }
        Poll::Pending
    }

    /// Moves the bytes that can move now, once in each of these directions. Returns the directions to
    /// try again at once. Bytes from the backend may let the client go on. The reverse is not tried,
    /// since an answer takes longer than this.
    fn turn(
        &mut self,
        context: &mut Context<'_>,
        now: Directions,
    ) -> Result<Directions, P::Complaint> {
        let from_server = now.to_client && self.relay_to_client(context)?;
        let decided = self.advance(context);
        // Otherwise a client that answers at once could keep the gate from ending.
        let from_client = (now.to_server || from_server || decided)
            && !self.is_drained()
            && !self.departs()
            && self.relay_to_server(context)?;
        let attached = self.server.take_attached();
        Ok(Directions {
            to_client: from_server || decided || attached,
            to_server: from_client || decided,
        })
    }

    /// Handles a decision of the gate, or else work that was put off. Returns false if nothing has
    /// changed.
    fn advance(&mut self, context: &mut Context<'_>) -> bool {
        let decision = self.work.decided(context);
        let (protocol, mut exchange) = self.parts(context);
        match decision {
            Some(decision) => protocol.decided(&mut exchange, decision),
            None => return protocol.advance(&mut exchange),
        }
        true
    }

    /// The end of the session, if it is over.
    fn end(&mut self, context: &mut Context<'_>) -> Option<End<P::Complaint>> {
        if self.handle.order() == Order::Close {
            return Some(End::Stopped);
        }
        if self.departs() {
            return Some(End::Departed);
        }
        if self.is_drained() {
            return Some(End::Stopped);
        }
        if self.server.is_ended {
            let was_told = self.protocol.was_told();
            return self
                .client
                .has_taken_all()
                .then_some(End::ServerLeft { was_told });
        }
        if !self.client.is_ended && !self.client.is_broken {
            return None;
        }
        if !self.work.is_running() {
            self.work.forget_waiting();
            self.held = Vec::new();
        }
        if !self.server.has_taken_all() {
            return None;
        }
        if !self.protocol.is_owed() || self.unread_bytes > UNREAD_BYTES_MAX {
            return Some(End::ClientLeft);
        }
        // The backend works on. The load stays until it notices that the client has left, as it
        // does without a gate.
        self.is_shut = self.is_shut || self.server.poll_shutdown(context).is_ready();
        None
    }

    /// Whether the session has the order to drain and nothing is under way.
    fn is_drained(&self) -> bool {
        self.handle.order() == Order::Drain
            && (self.held.is_empty() || self.work.is_waiting())
            && self.client.has_taken_all()
            && self.protocol.is_idle(&self.work)
    }

    fn relay_to_client(&mut self, context: &mut Context<'_>) -> Result<bool, P::Complaint> {
        if self.client.poll_flush(context).is_pending() || self.server.is_ended {
            return Ok(false);
        }
        with_scratch(|scratch| match self.server.poll_read(context, scratch) {
            Poll::Pending => Ok(false),
            Poll::Ready(read) => {
                self.take_from_server(context, &scratch[..read])?;
                Ok(true)
            }
        })
    }

    fn take_from_server(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Result<(), P::Complaint> {
        if self.client.is_ended || self.client.is_broken {
            self.unread_bytes += bytes.len();
        }
        let (protocol, mut exchange) = self.parts(context);
        protocol.take_from_server(&mut exchange, bytes)
    }

    fn relay_to_server(&mut self, context: &mut Context<'_>) -> Result<bool, P::Complaint> {
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
        if let Some(decoded) = self.poll_decode(context, room) {
            return match decoded {
                Poll::Pending => Ok(false),
                Poll::Ready(decoded) => decoded.map(|()| true),
            };
        }
        if self.client.is_ended {
            return Ok(false);
        }
        with_scratch(
            |scratch| match self.client.poll_read(context, &mut scratch[..room]) {
                Poll::Pending => Ok(false),
                Poll::Ready(read) => {
                    let taken = if self.held.is_empty() {
                        let (protocol, mut exchange) = self.parts(context);
                        protocol.take_from_client(&mut exchange, &mut scratch[..read])?
                    } else {
                        0
                    };
                    self.held.extend_from_slice(&scratch[taken..read]);
                    Ok(true)
                }
            },
        )
    }

    fn poll_decode(
        &mut self,
        context: &mut Context<'_>,
        room: usize,
    ) -> Option<Poll<Result<(), P::Complaint>>> {
        let plain_bytes_max = self.held.len() + room;
        let mut held = std::mem::take(&mut self.held);
        let (protocol, mut exchange) = self.parts(context);
        let decoded = protocol.poll_decode(&mut exchange, &mut held, plain_bytes_max);
        self.held = held;
        decoded
    }

    /// The most bytes to read from the client now.
    fn room(&self) -> usize {
        if self.held.is_empty() && self.protocol.goes_through(&self.work) {
            return SCRATCH_BYTES;
        }
        let held_bytes_max = self.protocol.held_bytes_max();
        held_bytes_max
            .saturating_sub(self.held.len())
            .min(SCRATCH_BYTES)
    }

    /// Passes on the held bytes that may go on. Returns false if none may.
    fn take_held(&mut self, context: &mut Context<'_>) -> Result<bool, P::Complaint> {
        let mut held = std::mem::take(&mut self.held);
        let (protocol, mut exchange) = self.parts(context);
        let taken = protocol.take_from_client(&mut exchange, &mut held)?;
        if taken < held.len() {
            held.drain(..taken);
            self.held = held;
        }
        // Otherwise the vector is dropped, so that an idle session keeps no memory.
        Ok(taken > 0)
    }

    fn parts<'a, 'task>(
        &'a mut self,
        context: &'a mut Context<'task>,
    ) -> (&'a mut P, Exchange<'a, 'task>) {
        let exchange = Exchange {
            context,
            client: &mut self.client,
            server: &mut self.server,
            work: &mut self.work,
        };
        (&mut self.protocol, exchange)
    }
}

#[cfg(test)]
mod tests;
