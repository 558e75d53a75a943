//! A pooled session ([`crate::relay::Session`]): it has a connection from the moment its unit of work is
//! admitted until its transaction is over.
//!
//! A unit goes through these phases: it is admitted, a connection is acquired, the session's settings are put on
//! it where they differ, what the client says goes on and what the backend says comes back; then the backend
//! is asked what the session has left, if that may be anything, and the connection is given back.
//!
//! A bare BEGIN is answered here, as it says nothing of the work to come: it goes on with the first statement
//! behind it. Where that is refused, the session ends, for the client was told that it has a transaction.

mod lending;
mod statements;
mod to_client;
mod to_server;

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
use crate::classify::ClientNames;
use crate::pool::Keeping;
use crate::relay::{Denied, End, Exchange, Protocol, Side, Stream, Work};

/// One of the two sides does not speak the protocol, or asks for what a pool has not.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Opening(#[from] OpeningError),
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The session ends by this.
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

/// Who the client is to the pool.
#[derive(Debug)]
pub struct Member {
    /// The pool.
    pub pool: Arc<Pool>,
    /// The connections that can serve it.
    pub kind: Arc<Kind>,
    /// What one is opened with.
    pub login: Login,
    /// What a cancel request of its meets.
    pub target: Arc<Target>,
    /// The key that it was given for that.
    pub key: Box<[u8]>,
}

/// Where the session's connection is.
enum Phase {
    /// It has no unit.
    Resting,
    /// Its unit is admitted and waits for a connection.
    Acquiring(Acquiring),
    /// The connection is given its settings; so many Queries are to be answered.
    Applying(usize),
    /// It has a unit and a connection.
    Relaying,
    /// The backend is asked what the session has left.
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

/// What is gathered for one write, in bytes.
const GATHERED_BYTES_MAX: usize = 16 * 1024;

/// What becomes of the client's messages because it was told of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropping {
    Nothing,
    /// The next message.
    Message,
    /// Everything up to the Sync, which is answered here.
    UntilSync,
}

/// See the module's text.
#[derive(Debug)]
pub struct Pooled {
    shared: Arc<Shared>,
    names: Arc<ClientNames>,
    member: Member,
    phase: Phase,
    /// The connection it has: during a unit, and longer while it is pinned.
    held: Option<Box<Held>>,
    /// Why it keeps its connection, and whether admission knows of it.
    pin: Option<Keeping>,
    conversation: Conversation,
    pipeline: Pipeline,
    /// What it has prepared: texts, and types.
    prepared: OfClient,
    types: Statements,
    settings: Settings,
    /// What it began with, which is what RESET means to it.
    began_with: Settings,
    /// Something of the unit has gone to the backend.
    has_sent: bool,
    /// Something of the unit may outlast it.
    may_leave_state: bool,
    /// Parameters of the user's own that the unit may have set.
    own_names: BTreeSet<Box<[u8]>>,
    /// It has set something that nobody can name, and keeps its connection for that.
    is_beyond_following: bool,
    /// A BEGIN that was answered here, whole.
    begun: Option<Vec<u8>>,
    /// Of the message that goes on, or is dropped, so many bytes are still to come from the client.
    client_body_left: usize,
    is_body_dropped: bool,
    dropping: Dropping,
    /// The unit that was asked for last begins with a message of the extended protocol.
    is_extended: bool,
    /// The session ends by this.
    refusal: Option<Complaint>,
    /// What must come of the client's next message before it can be dealt with.
    wanted_bytes: usize,
    /// What is to go to the backend at once.
    to_server: Vec<u8>,
    /// The start of a message of the backend that has not come whole.
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

    /// What the client takes its transaction for.
    fn status(&self) -> Status {
        match self.begun {
            Some(_) => Status::Open,
            None => self.conversation.status(),
        }
    }

    /// Sends the backend this, with what else goes there in the same turn: each write wakes the backend.
    fn send(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &[u8]) {
        if self.to_server.len() + bytes.len() > GATHERED_BYTES_MAX {
            self.flush(exchange);
            exchange.to_server(bytes);
        } else {
            self.to_server.extend_from_slice(bytes);
        }
    }

    fn flush(&mut self, exchange: &mut Exchange<'_, '_>) {
        if !self.to_server.is_empty() {
            exchange.to_server(&std::mem::take(&mut self.to_server));
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
        self.is_relaying() && !self.is_throttled || self.client_body_left > 0
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
        // In the middle of a message they would be part of it.
        if self.server_body_left > 0 {
            return None;
        }
        Complaint::of_end(end).map(|complaint| complaint.fatal())
    }

    fn retire(&mut self, server: Side) {
        self.give_up(server);
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.member.pool.targets.lock().remove(&self.member.key);
    }
}
