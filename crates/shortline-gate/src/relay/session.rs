//! A session after its authentication, whatever protocol it is in: bytes go from side to side in large
//! pieces, and the start of each unit of work is held until the gate has admitted it.
//!
//! The session has the sockets and the unit of work ([`Work`]); a [`Protocol`] reads the bytes and says
//! what becomes of them. It knows no socket, no task and no time: it acts on an [`Exchange`] alone.
//!
//! One task polls both directions. A read takes what there is into the thread's scratch buffer;
//! the messages in it are found in place, and what may go on is written at once. What is kept per
//! session is what a socket did not take, and the held start of a unit.
//!
//! A unit of work begins with the first message that asks for work while there is none, and ends when
//! the protocol says so. Until then everything goes through unheld: an admitted transaction is never
//! queued again. While the backend waits for the client the unit is paused. A client that leaves in the
//! middle of a statement keeps its load until the backend has noticed, as it would without a gate.

use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::{
    Denied, Handle, Order, Registration, Registry, RelayConfig, SCRATCH_BYTES, Side, Stream, Work,
    with_scratch,
};

/// What a backend may go on sending to a client that has left, before it is left too; so that a
/// statement that only produces rows does not go on for nobody.
const UNREAD_BYTES_MAX: usize = 64 * 1024;

/// What the two sides of a session say to each other: a machine for each direction.
pub trait Protocol {
    /// What the gate tells a client of an error. As an error it ends the session.
    type Complaint: Error + 'static;

    /// The backend sent this. What of it goes to the client is sent.
    ///
    /// # Errors
    /// The backend does not speak the protocol.
    fn take_from_server(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<(), Self::Complaint>;

    /// The client sent this, and it is the next that was not dealt with. Returns how many bytes are done
    /// with; the rest is held. The protocol may change the bytes, of those that are done with only.
    ///
    /// # Errors
    /// The client does not speak the protocol, or does what it may not.
    fn take_from_client(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &mut [u8],
    ) -> Result<usize, Self::Complaint>;

    /// Reads what the client says to the end of `plain`, which may have `plain_bytes_max` bytes then.
    /// None where its bytes are what it means: the session reads them.
    fn poll_decode(
        &mut self,
        _exchange: &mut Exchange<'_, '_>,
        _plain: &mut Vec<u8>,
        _plain_bytes_max: usize,
    ) -> Option<Poll<Result<(), Self::Complaint>>> {
        None
    }

    /// The unit that waited runs now, after so long, or is not to run.
    fn decided(&mut self, exchange: &mut Exchange<'_, '_>, decision: Result<Duration, Denied>);

    /// Does what had to wait for something else. False if there is nothing.
    fn advance(&mut self, _exchange: &mut Exchange<'_, '_>) -> bool {
        false
    }

    /// The most that is held of what a client says ahead of its turn, in bytes.
    fn held_bytes_max(&self) -> usize;

    /// Whether the client's next bytes need no decision.
    fn goes_through(&self, work: &Work) -> bool;

    /// Whether nothing is under way that an end of the session would break off.
    fn is_idle(&self, work: &Work) -> bool;

    /// Whether the backend works on something of the client's.
    fn is_owed(&self) -> bool;

    /// Whether the backend waits for the client.
    fn is_paused(&self, client: &Side, server: &Side) -> bool;

    /// Whether the client knows why the backend leaves.
    fn was_told(&self) -> bool;

    /// What the client is told at such an end.
    fn last_words(&mut self, end: &End<Self::Complaint>) -> Option<Vec<u8>>;

    /// The session is over: what becomes of the backend's side.
    fn retire(&mut self, _server: Side) {}
}

/// What a protocol acts on.
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
    /// Sends the client this.
    pub fn to_client(&mut self, bytes: &[u8]) {
        self.client.send(self.context, bytes);
    }

    /// Sends the backend this.
    pub fn to_server(&mut self, bytes: &[u8]) {
        self.server.send(self.context, bytes);
    }
}

/// How a session ended.
#[derive(Debug)]
pub enum End<Complaint> {
    /// The client has left, and the backend has nothing of it to do any more.
    ClientLeft,
    /// The backend has left. If it did not say why, the gate must.
    ServerLeft {
        /// Whether it did, or the client wants to know of nothing more.
        was_told: bool,
    },
    /// One of the two did something that ends the connection.
    Refused(Complaint),
    /// The gate ends: the session had nothing under way, or was told to close at once.
    Stopped,
}

/// The backend has closed a connection.
#[derive(Debug, thiserror::Error)]
#[error("the backend closed the connection")]
struct ServerLeft;

/// A client was not let in within its time.
#[derive(Debug, thiserror::Error)]
#[error("the client's authentication took too long")]
struct TooSlow;

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

/// What `opening` ends with, if it does so in time and nobody orders the connection to be closed. Other
/// ends are counted.
pub async fn open_in_time<T, E: Error + 'static>(
    opening: impl Future<Output = Result<T, E>>,
    registration: &Registration,
    config: &RelayConfig,
) -> Option<T> {
    // Boxed, so that what it needs is given back before the session, which may be long.
    let mut opening = Box::pin(opening);
    let opened = loop {
        let limit = tokio::time::sleep(config.limits.authentication_time_max);
        tokio::select! {
            opened = &mut opening => break Some(opened),
            // Whoever is kept out is not slow.
            () = limit => if !registration.handle.is_kept_out() { break None },
            () = registration.handle.ordered(Order::Close) => return None,
        }
    };
    match opened {
        Some(Ok(opened)) => return Some(opened),
        Some(Err(error)) => config.registry.count_failure(&error),
        None => config.registry.count_failure(&TooSlow),
    }
    None
}

/// See the module's text.
#[derive(Debug)]
pub struct Session<P> {
    protocol: P,
    handle: Arc<Handle>,
    client: Side,
    server: Side,
    work: Work,
    /// Of the client, and not sent yet.
    held: Vec<u8>,
    /// Sent by the backend after the client had left.
    unread_bytes: usize,
    /// The backend knows that nothing more will come.
    is_shut: bool,
}

impl<P: Protocol> Session<P> {
    /// A session whose backend is ready, or will be lent to it. `ahead` is what the client has said already.
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
            held: ahead,
            unread_bytes: 0,
            is_shut: false,
        }
    }

    /// Relays until the session ends. `ahead` is what the backend has said already.
    pub async fn relay(&mut self, ahead: Vec<u8>) -> End<P::Complaint> {
        let begun = poll_fn(|context| Poll::Ready(self.take_from_server(context, &ahead))).await;
        drop(ahead);
        match begun {
            Ok(()) => poll_fn(|context| self.poll(context)).await,
            Err(complaint) => End::Refused(complaint),
        }
    }

    /// Lets go of the backend and of the unit of work, counts an end that is an error, and tells the
    /// client of one that it does not know of.
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
            End::ClientLeft | End::ServerLeft { was_told: true } | End::Stopped => {}
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
        Poll::Pending
    }

    /// Moves what can be moved now, once in each of these directions. Returns those in which more
    /// may be moved at once: what comes from the backend may let the client go on, but not the
    /// other way round, since an answer takes longer than this.
    fn turn(
        &mut self,
        context: &mut Context<'_>,
        now: Directions,
    ) -> Result<Directions, P::Complaint> {
        let from_server = now.to_client && self.relay_to_client(context)?;
        let decided = self.advance(context);
        // A client that answers at once would else keep a gate from its end.
        let from_client = (now.to_server || from_server || decided)
            && !self.is_drained()
            && self.relay_to_server(context)?;
        let attached = self.server.take_attached();
        Ok(Directions {
            to_client: from_server || decided || attached,
            to_server: from_client || decided,
        })
    }

    /// Minds what the gate has decided, and what waited for something else. False if nothing has
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

    /// Whether it is over, and how.
    fn end(&mut self, context: &mut Context<'_>) -> Option<End<P::Complaint>> {
        if self.handle.order() == Order::Close || self.is_drained() {
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
        // The backend works on: its load stays until it notices, as it does without a gate, that
        // the client has left.
        self.is_shut = self.is_shut || self.server.poll_shutdown(context).is_ready();
        None
    }

    /// Whether the session was to end as soon as it rests, and does.
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

    /// How much more is taken from the client, in bytes.
    fn room(&self) -> usize {
        if self.held.is_empty() && self.protocol.goes_through(&self.work) {
            return SCRATCH_BYTES;
        }
        let held_bytes_max = self.protocol.held_bytes_max();
        held_bytes_max
            .saturating_sub(self.held.len())
            .min(SCRATCH_BYTES)
    }

    /// Sends of what is held what may go on. False if nothing may.
    fn take_held(&mut self, context: &mut Context<'_>) -> Result<bool, P::Complaint> {
        let mut held = std::mem::take(&mut self.held);
        let (protocol, mut exchange) = self.parts(context);
        let taken = protocol.take_from_client(&mut exchange, &mut held)?;
        if taken < held.len() {
            held.drain(..taken);
            self.held = held;
        }
        // Else it is not only emptied: an idle session keeps no memory.
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
