//! A pooled session ([`crate::relay::Session`]). It has a connection from the admission of its unit of work to the
//! end of its transaction.
//!
//! A unit goes through these phases. It is admitted. It acquires a connection. The connection gets the session's
//! settings, if they differ. Messages pass in both directions. If the unit may have changed the session, the backend
//! is asked about that. Then the connection is given back.
//!
//! The gate answers a bare BEGIN itself, because it does not show the work to come. The BEGIN goes to the backend with
//! the first statement after it. If that statement is refused, the session ends, because the client already has an
//! open transaction.

mod lending;
mod moving;
mod reads;
mod statements;
mod to_client;
mod to_server;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::super::Shared;
use super::super::conversation::{Conversation, CopyError, Status};
use super::super::frame::FrameError;
use super::super::opening::OpeningError;
use super::super::reply::{Complaint, notice};
use super::super::statements::Statements;
use super::backend::{AcquireError, Held};
use super::login::{Kind, Login};
use super::pipeline::Pipeline;
use super::prepared::OfClient;
use super::settings::{Found, Settings};
use super::{Pool, Target};
use crate::classify::{Class, ClientNames};
use crate::handover::{ProtocolState, Stay};
use crate::pool::Keeping;
use crate::relay::{Denied, End, Exchange, Protocol, Side, Stream, Work};

pub(super) use reads::begins_read_only;

/// One side broke the protocol, or the client asks for something that a pool cannot do.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Opening(#[from] OpeningError),
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error("message `{}`", char::from(*.0).escape_default())]
    Tag(u8),
    /// The session ends with this error.
    #[error(transparent)]
    Complaint(#[from] Complaint),
}

impl Fault {
    fn into_complaint(self, of: &str) -> Complaint {
        match self {
            Self::Complaint(complaint) => complaint,
            fault => Complaint::new("08P01", format!("{of}{fault}")),
        }
    }
}

/// The client's identity in the pool.
#[derive(Debug)]
pub struct Member {
    /// The pool.
    pub pool: Arc<Pool>,
    /// The kind of connection that can serve it.
    pub kind: Arc<Kind>,
    /// The login for a new connection.
    pub login: Login,
    /// The connection that its cancel requests are forwarded to.
    pub target: Arc<Target>,
    /// The key that it got for cancel requests.
    pub key: Box<[u8]>,
    /// Its transactions only read where they do not say anything else.
    pub begins_read_only: bool,
    /// Whether it is lent a connection for a transaction at a time.
    pub is_of_transactions: bool,
}

/// The phase of the session's unit.
enum Phase {
    /// It has no unit.
    Resting,
    /// Its unit is admitted and waits for a connection.
    Acquiring(Acquiring),
    /// The connection gets the session's settings. This many Queries are not answered yet.
    Applying(usize),
    /// It has a unit and a connection.
    Relaying,
    /// The backend is asked about the session's state.
    Looking(Found),
}

type Acquired = Result<(Box<Held>, Stream), AcquireError>;
type Acquiring = Pin<Box<dyn Future<Output = Acquired> + Send>>;

impl std::fmt::Debug for Phase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Resting => "Resting",
            Self::Acquiring(_) => "Acquiring",
            Self::Applying(_) => "Applying",
            Self::Relaying => "Relaying",
            Self::Looking(_) => "Looking",
        })
    }
}

/// The most bytes that are gathered for one write.
const GATHERED_BYTES_MAX: usize = 16 * 1024;

thread_local! {
    /// The memory in which the thread's sessions gather in turn.
    static GATHERED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The client's messages that are dropped after an error that the gate sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropping {
    Nothing,
    /// The next message.
    Message,
    /// Everything up to the Sync, which the gate answers.
    UntilSync,
}

/// See the module's text.
#[derive(Debug)]
pub struct Pooled {
    shared: Arc<Shared>,
    names: Arc<ClientNames>,
    member: Member,
    phase: Phase,
    /// The replica that its unit goes to, and what it is to the primary, should there be no connection.
    replica: Option<usize>,
    class: Option<Class>,
    /// The statement that the gate was just asked for, by its place among the bytes that are handled now, and its class.
    asked: Option<((usize, usize), Class)>,
    /// The connection it has: during a unit, and for longer if it is pinned.
    held: Option<Box<Held>>,
    /// The pin, if it keeps its connection between units.
    pin: Option<Keeping>,
    conversation: Conversation,
    pipeline: Pipeline,
    /// Its prepared statements, and their types.
    prepared: OfClient,
    types: Statements,
    settings: Settings,
    /// Its settings at the beginning, to which RESET returns.
    began_with: Settings,
    /// Part of the unit has gone to the backend.
    has_sent: bool,
    /// The unit may have changed session state.
    may_leave_state: bool,
    /// The unit has reset parameters to what they are at login.
    has_reset: bool,
    /// How often the unit's state was asked for again.
    looks: u8,
    /// The names of custom parameters that it may have set since it last kept no connection. A statement of SQL's
    /// PREPARE or a cursor may set one later.
    own_names: BTreeSet<Box<[u8]>>,
    /// It has set a parameter whose name is unknown, and keeps its connection for that.
    is_beyond_following: bool,
    /// A whole BEGIN message that the gate has answered.
    begun: Option<Vec<u8>>,
    /// The bytes of the client's current message that are still to come. The message passes or is dropped.
    client_body_left: usize,
    is_body_dropped: bool,
    dropping: Dropping,
    /// The last requested unit begins with a message of the extended protocol.
    is_extended: bool,
    /// The session ends with this error.
    refusal: Option<Complaint>,
    /// The bytes of the client's next message that are needed to handle it.
    wanted_bytes: usize,
    /// Bytes that are gathered for the backend.
    to_server: Vec<u8>,
    /// The start of an incomplete message from the backend.
    partial: Vec<u8>,
    server_body_left: usize,
    is_throttled: bool,
    /// The last message to the client was an error.
    was_told: bool,
    is_leaving: bool,
}

impl Pooled {
    /// A session that has done nothing.
    pub(super) fn new(
        shared: &Arc<Shared>,
        names: Arc<ClientNames>,
        member: Member,
        settings: Settings,
    ) -> Self {
        let limits = &shared.config.relay.limits;
        Self {
            shared: Arc::clone(shared),
            names,
            member,
            phase: Phase::Resting,
            replica: None,
            class: None,
            asked: None,
            held: None,
            pin: None,
            conversation: Conversation::new(limits.pipelined_max),
            pipeline: Pipeline::default(),
            prepared: OfClient::default(),
            types: Statements::new(limits.statements_max),
            began_with: settings.clone(),
            settings,
            has_sent: false,
            may_leave_state: false,
            has_reset: false,
            looks: 0,
            own_names: BTreeSet::new(),
            is_beyond_following: false,
            begun: None,
            client_body_left: 0,
            is_body_dropped: false,
            dropping: Dropping::Nothing,
            is_extended: false,
            refusal: None,
            wanted_bytes: 0,
            to_server: Vec::new(),
            partial: Vec::new(),
            server_body_left: 0,
            is_throttled: false,
            was_told: false,
            is_leaving: false,
        }
    }

    /// The transaction status as the client sees it.
    fn status(&self) -> Status {
        match self.begun {
            Some(_) => Status::Open,
            None => self.conversation.status(),
        }
    }

    /// Gathers bytes for the backend, because each write wakes it.
    fn send(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.to_server.len() + bytes.len() > GATHERED_BYTES_MAX {
            self.flush(exchange);
            exchange.to_server(bytes);
        } else {
            if self.to_server.capacity() == 0 {
                self.to_server = GATHERED.take();
            }
            self.to_server.extend_from_slice(bytes);
        }
    }

    fn flush(&mut self, exchange: &mut Exchange<'_, '_>) {
        if !self.to_server.is_empty() {
            let mut gathered = std::mem::take(&mut self.to_server);
            exchange.to_server(&gathered);
            gathered.clear();
            GATHERED.set(gathered);
        }
    }

    fn is_relaying(&self) -> bool {
        matches!(self.phase, Phase::Relaying)
    }

    fn held(&mut self) -> &mut Held {
        self.held
            .as_mut()
            .expect("invariant: whoever relays has a connection")
    }
}

impl Protocol for Pooled {
    type Complaint = Complaint;

    fn take_from_server(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<(), Complaint> {
        let passed = self.pass_to_client(exchange, bytes);
        self.flush(exchange);
        passed.map_err(|fault| fault.into_complaint("the backend does not speak the protocol: "))
    }

    fn take_from_client(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &mut [u8],
    ) -> Result<usize, Complaint> {
        let passed = self.pass_to_server(exchange, bytes);
        self.flush(exchange);
        passed.map_err(|fault| fault.into_complaint(""))
    }

    fn decided(&mut self, exchange: &mut Exchange<'_, '_>, decision: Result<Duration, Denied>) {
        match decision {
            Ok(waited) => {
                let wanted = self.shared.config.notice_after;
                if wanted.is_some_and(|notice_after| waited >= notice_after) {
                    let text = format!("waited {} ms for admission", waited.as_millis());
                    exchange.to_client(&notice(&text));
                }
                self.acquire(exchange);
                self.flush(exchange);
            }
            Err(denied) => self.refuse(exchange, &Complaint::from(&denied)),
        }
    }

    fn advance(&mut self, exchange: &mut Exchange<'_, '_>) -> bool {
        let is_changed = self.poll_acquire(exchange);
        self.flush(exchange);
        is_changed
    }

    fn held_bytes_max(&self) -> usize {
        self.shared
            .config
            .relay
            .limits
            .held_bytes_max
            .max(self.wanted_bytes)
    }

    fn goes_through(&self, _work: &Work) -> bool {
        let may_send = !self.is_throttled && !self.waits_for_answer();
        self.is_relaying() && may_send || self.client_body_left > 0
    }

    fn is_idle(&self, work: &Work) -> bool {
        work.is_none()
            && matches!(self.phase, Phase::Resting)
            && self.begun.is_none()
            && self.dropping == Dropping::Nothing
            && self.client_body_left == 0
    }

    fn is_owed(&self) -> bool {
        !self.conversation.is_quiet()
    }

    fn is_paused(&self, client: &Side, server: &Side) -> bool {
        match self.phase {
            Phase::Acquiring(_) => true,
            Phase::Applying(_) | Phase::Looking(_) | Phase::Resting => false,
            Phase::Relaying => {
                self.conversation.is_quiet()
                    || !client.has_taken_all()
                    || self.conversation.is_copying() && server.has_taken_all()
            }
        }
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
        if self.server_body_left > 0 {
            return None;
        }
        Complaint::of_end(end).map(|complaint| complaint.fatal())
    }

    fn retire(&mut self, server: Side) {
        self.give_up(server);
    }

    fn stays(&self) -> Option<Stay> {
        let is_bound = self.pin.is_some() || self.held.is_some() || self.is_beyond_following;
        is_bound.then_some(Stay::Pinned)
    }

    fn state(&self) -> Option<ProtocolState> {
        Some(ProtocolState::Postgres(self.pack()))
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.member.pool.targets.lock().remove(&self.member.key);
    }
}
