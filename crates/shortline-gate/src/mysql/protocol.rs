//! MySQL's side of a session ([`crate::relay::Session`]): commands and responses in turn, each command
//! that is work held until its unit is admitted.
//!
//! A unit of work begins with the first command that is work ([`Command`]) while none is admitted,
//! and ends with the response whose status flags say that no transaction is open ([`Follower`]). An ERR
//! packet has no flags; then the transaction is taken to be as it was.
//!
//! A client that sends further commands before it has its response has them read no further than
//! fits ([`crate::relay::Limits::held_bytes_max`]), and sent when it is their turn.
//!
//! [`Command`]: super::command::Command

mod commands;
mod to_client;
mod to_server;

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::Shared;
use super::capability::{COMPRESS, Capabilities, QUERY_ATTRIBUTES};
use super::complaint::Complaint;
use super::frames::Frames;
use super::packet::{HEADER_BYTES, Renumbering, Scanner};
use super::reply::{Follower, Shape, Status};
use super::statements::{Prepared, Statements};
use crate::classify::ClientNames;
use crate::relay::{Denied, End, Exchange, Protocol, Side, Work};

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
pub struct Mysql {
    shared: Arc<Shared>,
    names: ClientNames,
    /// The client compresses.
    frames: Option<Box<Frames>>,
    scanner: Scanner,
    renumbering: Renumbering,
    reply: Follower,
    has_query_attributes: bool,
    statements: Statements,
    turn: Turn,
    afterwards: Afterwards,
}

impl Mysql {
    /// After the server's OK, which had this status.
    pub fn new(
        shared: &Arc<Shared>,
        names: ClientNames,
        capabilities: Capabilities,
        status: Status,
    ) -> Self {
        let is_compressed = capabilities & COMPRESS != 0;
        Self {
            shared: Arc::clone(shared),
            names,
            frames: is_compressed.then(Box::<Frames>::default),
            scanner: Scanner::default(),
            renumbering: Renumbering::default(),
            reply: Follower::new(capabilities, status),
            has_query_attributes: capabilities & QUERY_ATTRIBUTES != 0,
            statements: Statements::new(shared.config.limits.statements_max),
            turn: Turn::Command,
            afterwards: Afterwards::default(),
        }
    }

    /// Takes what the client has sent already, and returns what of it is to be read as it is.
    pub fn decode_ahead(&mut self, ahead: Vec<u8>) -> Vec<u8> {
        match &mut self.frames {
            Some(frames) => {
                frames.take(&ahead);
                Vec::new()
            }
            None => ahead,
        }
    }

    /// What goes to the client, in frames if it compresses.
    fn encoded(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        match &mut self.frames {
            Some(frames) => frames.encode(&bytes),
            None => bytes,
        }
    }

    /// The number of the packet in which the gate says that it ends, where an error has its place: as
    /// the answer to the command that is to come, that waits, or whose response is at a packet's end.
    fn place_of_end(&self) -> Option<u8> {
        match self.turn {
            Turn::Command | Turn::Waiting => Some(1),
            Turn::Replying if self.reply.takes_error() => Some(match self.reply.has_begun() {
                true => self.reply.sequence().wrapping_add(1),
                false => self.scanner.sequence().wrapping_add(1),
            }),
            _ => None,
        }
    }
}

impl Protocol for Mysql {
    type Complaint = Complaint;

    fn take_from_server(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<(), Complaint> {
        self.pass_to_client(exchange, bytes);
        Ok(())
    }

    fn take_from_client(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &mut [u8],
    ) -> Result<usize, Complaint> {
        self.pass_to_server(exchange, bytes)
    }

    fn poll_decode(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        plain: &mut Vec<u8>,
        plain_bytes_max: usize,
    ) -> Option<Poll<Result<(), Complaint>>> {
        let frames = self.frames.as_mut()?;
        let decoded = frames.poll_decode(exchange, plain, plain_bytes_max);
        Some(decoded.map_err(Complaint::malformed))
    }

    fn decided(&mut self, _exchange: &mut Exchange<'_, '_>, decision: Result<Duration, Denied>) {
        match decision {
            Ok(_waited) => self.go(Some(Shape::Results)),
            Err(denied) => self.turn = Turn::Dropping(Complaint::from(&denied)),
        }
    }

    /// A statement is read with its header and the byte that says that it is one.
    fn held_bytes_max(&self) -> usize {
        self.shared.config.limits.held_bytes_max + HEADER_BYTES + 1
    }

    fn goes_through(&self, work: &Work) -> bool {
        match self.turn {
            Turn::Command => work.is_running(),
            Turn::Waiting | Turn::Replying | Turn::Authentication => false,
            _ => true,
        }
    }

    /// What waits for admission is not under way.
    fn is_idle(&self, _work: &Work) -> bool {
        matches!(self.turn, Turn::Command | Turn::Waiting)
            && !self.reply.status().is_in_transaction()
    }

    /// Only a statement that the server has in full is worth waiting for: its load stays until it
    /// ends, as it does without a gate, where the server does not notice either.
    fn is_owed(&self) -> bool {
        self.turn == Turn::Replying
    }

    /// Between two statements of a transaction, for a local file, or until the client takes what it
    /// asked for.
    fn is_paused(&self, client: &Side, server: &Side) -> bool {
        match self.turn {
            Turn::Replying => !client.has_taken_all(),
            Turn::File { .. } => server.has_taken_all(),
            _ => true,
        }
    }

    /// Drivers report a connection that is closed in the middle as one that was lost: the outcome is
    /// unknown, and no error of the gate's could say more.
    fn was_told(&self) -> bool {
        false
    }

    fn last_words(&mut self, end: &End<Complaint>) -> Option<Vec<u8>> {
        let packet = match end {
            End::ClientLeft | End::ServerLeft { .. } => return None,
            End::Refused(complaint) => complaint.packet(self.scanner.sequence().wrapping_add(1)),
            End::Stopped => {
                let sequence = self.place_of_end()?;
                if let (Turn::Command, Some(frames)) = (&self.turn, &mut self.frames) {
                    frames.answer_first();
                }
                Complaint::shutting_down().packet(sequence)
            }
        };
        Some(self.encoded(packet))
    }
}
