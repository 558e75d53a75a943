//! A pooled session ([`crate::relay::Session`]). It has a connection from the admission of its unit of work to the end
//! of its transaction.
//!
//! A unit goes through these phases. It is admitted. It acquires a connection. The connection gets the session's
//! database and variables, if they differ. Commands and responses pass in turn, as in the relay without a pool
//! ([`crate::mysql`]). If the session has set a variable, the server is asked for the values. Then the connection is
//! given back.
//!
//! The gate answers a bare BEGIN itself, because it does not show the work to come. The BEGIN goes to the server with
//! the first statement after it. If that statement is refused, the session ends, because the client already has an
//! open transaction.

mod binary;
mod lending;
mod moving;
mod reads;
mod statements;
mod to_client;
mod to_server;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::backend::{AcquireError, Held, Kind, Login};
use super::longer::Longer;
use super::prepared::OfClient;
use super::settings::{Names, Settings};
use super::{Pool, Target};
use crate::classify::{Class, ClientNames};
use crate::handover::{ProtocolState, Stay};
use crate::mysql::Shared;
use crate::mysql::complaint::Complaint;
use crate::mysql::packet::{HEADER_BYTES, Scanner, packet};
use crate::mysql::reply::{Follower, Status};
use crate::mysql::statements::Statements;
use crate::pool::Keeping;
use crate::pool::connections::Lending;
use crate::relay::{Denied, End, Exchange, Protocol, Side, Work};
use statements::{Preparing, Providing};

const QUERY: u8 = 0x03;
/// The most bytes of a command that are waited for and read.
const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// The status flag of autocommit.
const AUTOCOMMIT: u16 = 2;

/// The client's identity in the pool.
#[derive(Debug)]
pub struct Member {
    /// The pool.
    pub pool: Arc<Pool>,
    /// The kind of connection that can serve it.
    pub kind: Arc<Kind>,
    /// The login for a new connection.
    pub login: Login,
    /// The session as KILL finds it.
    pub target: Arc<Target>,
    /// The number that its client got for KILL.
    pub thread_id: u32,
    /// Whether it is lent a connection for a transaction at a time.
    pub is_of_transactions: bool,
}

/// The phase of the session's unit.
enum Phase {
    /// It has no unit.
    Resting,
    /// Its unit is admitted and waits for a connection.
    Acquiring(Acquiring),
    /// The connection gets the session's state. This many answers have not come yet.
    Preparing(usize),
    /// It has a unit and a connection.
    Relaying,
    /// The connection gets a statement that the client executes next.
    Providing(Box<Providing>),
    /// The server is asked for these variables.
    Looking(Names, Look, Then),
    /// It waits for a KILL of its own.
    Killing(Killing),
}

type Acquired = Result<Lending<super::backend::Backend>, AcquireError>;
type Acquiring = Pin<Box<dyn Future<Output = Acquired> + Send>>;
type Killing = Pin<Box<dyn Future<Output = Result<(), Complaint>> + Send>>;

/// What follows an answer about variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The unit ends.
    Release,
    /// The session is reset.
    Reset,
    /// The client's next command goes on.
    GoOn,
}

/// The received part of an answer about variables.
#[derive(Debug, Default)]
struct Look {
    /// Packets before the row.
    packets: usize,
    row: Option<Vec<u8>>,
}

impl std::fmt::Debug for Phase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Resting => "Resting",
            Self::Acquiring(_) => "Acquiring",
            Self::Preparing(_) => "Preparing",
            Self::Relaying => "Relaying",
            Self::Providing(_) => "Providing",
            Self::Looking(..) => "Looking",
            Self::Killing(_) => "Killing",
        })
    }
}

/// Whose turn it is.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// The client's next command.
    Command,
    /// The rest of a command is to come, then the server's response, if it has one.
    Sending { has_response: bool },
    /// The server's response.
    Replying,
    /// The server waits for a local file, in packets that end with an empty one.
    File { is_empty: bool },
    /// The rest of a command is to come. Then the client gets this payload, unless it is empty.
    Dropping(Vec<u8>),
}

/// The reasons why a session is pinned.
#[derive(Debug, Default)]
struct Reasons {
    /// A reason whose end cannot be seen.
    lasting: Option<&'static str>,
    /// It may have another role, which MariaDB keeps at a reset. Its connection is closed in the end.
    outlasts_reset: bool,
    /// It has locked tables.
    has_locks: bool,
    /// The next transaction has properties of its own.
    has_characteristics: bool,
}

impl Reasons {
    /// One of them, if there is any.
    fn first(&self) -> Option<&'static str> {
        let locks = self.has_locks.then_some("it has locked tables");
        let next = self
            .has_characteristics
            .then_some("it has set its next transaction");
        self.lasting.or(locks).or(next)
    }
}

/// A command of the binary protocol whose answer changes what is known. The numbers are the client's.
#[derive(Debug, Default)]
enum UnderWay {
    #[default]
    Nothing,
    Prepare(Box<Preparing>),
    /// And whether it had an open cursor before.
    Execute(u32, bool),
    Fetch(u32),
    Reset(u32),
}

/// See the module's text.
#[derive(Debug)]
pub struct Pooled {
    shared: Arc<Shared>,
    names: ClientNames,
    member: Member,
    phase: Phase,
    turn: Turn,
    /// The replica that its unit goes to, and what it is to the primary, should there be no connection.
    replica: Option<usize>,
    class: Option<Class>,
    /// The connection it has: during a unit, and for longer if it is pinned.
    held: Option<Box<Held>>,
    pin: Option<Keeping>,
    reasons: Reasons,
    /// The database it is in, and its variables.
    schema: Option<Box<[u8]>>,
    settings: Settings,
    /// Its status flags that last, as the server said last.
    flags: u16,
    /// Variables that the unit may have changed.
    changed: Names,
    under_way: UnderWay,
    /// The command may set something and then fail.
    may_set_and_fail: bool,
    /// A whole BEGIN command that the gate has answered.
    begun: Option<Vec<u8>>,
    /// The unit begins with a statement that reads results of the previous one.
    clears: bool,
    /// Its prepared statements, and their types.
    prepared: OfClient,
    statements: Statements,
    /// The client's number of the statement for which long data waits.
    long_data: Option<u32>,
    /// The server was asked for what the next command's meaning depends on.
    has_inquired: bool,
    /// The first bytes of the client's command that others were sent for.
    replaced_bytes: usize,
    /// The rest of a command that has become longer by that.
    longer: Option<Longer>,
    scanner: Scanner,
    reply: Follower,
    /// The start of an incomplete message from the server.
    partial: Vec<u8>,
    server_body_left: usize,
    /// The server's message continues in another packet.
    goes_on: bool,
    /// The bytes of the client's next command that are needed to handle it.
    wanted_bytes: usize,
    /// The session ends with this error.
    refusal: Option<Complaint>,
    is_leaving: bool,
}

impl Pooled {
    /// A session that has done nothing.
    pub(super) fn new(shared: &Arc<Shared>, names: ClientNames, member: Member) -> Self {
        let schema = member
            .login
            .database
            .as_ref()
            .map(|name| name.as_bytes().into());
        Self {
            names,
            phase: Phase::Resting,
            turn: Turn::Command,
            replica: None,
            class: None,
            held: None,
            pin: None,
            reasons: Reasons::default(),
            schema,
            settings: Settings::default(),
            flags: AUTOCOMMIT,
            changed: Names::new(),
            under_way: UnderWay::Nothing,
            may_set_and_fail: false,
            begun: None,
            clears: false,
            prepared: OfClient::default(),
            statements: Statements::new(shared.config.limits.statements_max),
            long_data: None,
            has_inquired: false,
            replaced_bytes: 0,
            longer: None,
            scanner: Scanner::default(),
            reply: Follower::new(member.kind.capabilities, Status::default()),
            partial: Vec::new(),
            server_body_left: 0,
            goes_on: false,
            wanted_bytes: 0,
            refusal: None,
            is_leaving: false,
            shared: Arc::clone(shared),
            member,
        }
    }

    /// The client's names, by which statements are classified.
    pub fn names_mut(&mut self) -> &mut ClientNames {
        &mut self.names
    }

    fn is_relaying(&self) -> bool {
        matches!(self.phase, Phase::Relaying)
    }

    /// Whether the server's side of its connection is between two answers.
    fn is_between(&self) -> bool {
        self.turn == Turn::Command && self.partial.is_empty() && self.server_body_left == 0
    }

    /// Why the session is pinned, if it is.
    fn reason(&self) -> Option<&'static str> {
        self.reasons.first().or(self.prepared.reason())
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
        self.pass_to_client(exchange, bytes)
    }

    fn take_from_client(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &mut [u8],
    ) -> Result<usize, Complaint> {
        self.pass_to_server(exchange, bytes)
    }

    fn decided(&mut self, exchange: &mut Exchange<'_, '_>, decision: Result<Duration, Denied>) {
        match decision {
            Ok(_waited) => self.acquire(exchange),
            Err(denied) => self.refuse(&Complaint::from(&denied)),
        }
    }

    fn advance(&mut self, exchange: &mut Exchange<'_, '_>) -> bool {
        self.poll_acquire(exchange) || self.poll_kill(exchange)
    }

    /// A statement is read with its header and the command byte.
    fn held_bytes_max(&self) -> usize {
        (self.shared.config.limits.held_bytes_max + HEADER_BYTES + 1).max(self.wanted_bytes)
    }

    fn goes_through(&self, _work: &Work) -> bool {
        match self.turn {
            Turn::Command => self.is_relaying(),
            Turn::Replying => false,
            _ => true,
        }
    }

    fn is_idle(&self, work: &Work) -> bool {
        work.is_none()
            && matches!(self.phase, Phase::Resting)
            && self.turn == Turn::Command
            && self.begun.is_none()
    }

    fn is_owed(&self) -> bool {
        self.turn == Turn::Replying
    }

    fn is_paused(&self, client: &Side, server: &Side) -> bool {
        match (&self.phase, &self.turn) {
            (Phase::Acquiring(_), _) => true,
            (Phase::Relaying, Turn::Replying) => !client.has_taken_all(),
            (Phase::Relaying, Turn::File { .. }) => server.has_taken_all(),
            (Phase::Relaying, _) => true,
            _ => false,
        }
    }

    /// Between two commands, a running unit always has an open transaction.
    fn is_idle_in_transaction(&self, work: &Work) -> bool {
        work.is_running() && self.is_relaying() && self.turn == Turn::Command
    }

    fn was_told(&self) -> bool {
        self.is_leaving
    }

    fn last_words(&mut self, end: &End<Complaint>) -> Option<Vec<u8>> {
        match end {
            End::ClientLeft | End::ServerLeft { .. } | End::Departed => None,
            End::Refused(complaint) => {
                Some(complaint.packet(self.scanner.sequence().wrapping_add(1)))
            }
            End::Stopped if self.turn == Turn::Command => {
                Some(Complaint::shutting_down().packet(1))
            }
            End::IdleInTransaction => Some(Complaint::idle_in_transaction().packet(1)),
            End::Stopped => None,
        }
    }

    fn retire(&mut self, server: Side) {
        self.give_up(server);
    }

    fn stays(&self) -> Option<Stay> {
        let is_bound = self.pin.is_some() || self.held.is_some();
        is_bound.then_some(Stay::Pinned)
    }

    fn state(&self) -> Option<ProtocolState> {
        Some(ProtocolState::Mysql(self.pack()))
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.member
            .pool
            .targets
            .lock()
            .remove(&self.member.thread_id);
    }
}

/// The payload of an OK packet with this status.
fn ok(status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    vec![0, 0, 0, low, high, 0, 0]
}

/// A whole COM_QUERY.
fn query(text: &str) -> Vec<u8> {
    packet(0, &[&[QUERY], text.as_bytes()].concat())
}

/// The payload of an error's packet.
fn error(complaint: &Complaint) -> Vec<u8> {
    complaint.packet(0).split_off(HEADER_BYTES)
}

/// Removes the first packet from the received bytes, if it is complete. Returns its payload.
fn take_packet(received: &mut Vec<u8>) -> Option<Vec<u8>> {
    let header = crate::mysql::packet::Header::first_of(received)?;
    let length = HEADER_BYTES + header.payload_bytes as usize;
    if received.len() < length {
        return None;
    }
    let rest = received.split_off(length);
    let packet = std::mem::replace(received, rest);
    Some(packet[HEADER_BYTES..].to_vec())
}
