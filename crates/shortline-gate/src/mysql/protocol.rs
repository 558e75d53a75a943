//! MySQL's side of a session ([`crate::relay::Session`]): commands and responses in turn. Each
//! command that is work is held until its unit is admitted.
//!
//! A unit of work begins with the first command that is work ([`Command`]) while none is admitted.
//! It ends with the response whose status flags show no open transaction ([`Follower`]). An ERR
//! packet has no flags; then the transaction is taken to be as it was.
//!
//! A client may send further commands before it has its response. They are read only as far as they
//! fit ([`crate::relay::Limits::held_bytes_max`]), and are sent when it is their turn.
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
    /// The rest of a command is to come, then the server's response, if it has one.
    Sending { has_response: bool },
    /// The server's response.
    Replying,
    /// The server waits for a local file, in packets that end with an empty one.
    File { is_empty: bool },
    /// The client authenticates again. It is either side's turn.
    Authentication,
    /// The rest of a refused command is to come. Then the client gets the error.
    Dropping(Complaint),
    /// Either side's turn, from now on.
    Stream,
}

/// What to do when a command has been answered.
#[derive(Debug, Default)]
struct Afterwards {
    /// It prepares a statement, which is this.
    prepares: Option<Prepared>,
    /// It resets the session.
    resets: bool,
    /// It kills this connection, or its statement.
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
    /// Begins after the server's OK, which had this status.
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

    /// Takes what the client has already sent, and returns the part that is to be read as it is.
    pub fn decode_ahead(&mut self, ahead: Vec<u8>) -> Vec<u8> {
        match &mut self.frames {
            Some(frames) => {
                frames.take(&ahead);
                Vec::new()
            }
            None => ahead,
        }
    }

    /// The bytes to the client, in frames if it compresses.
    fn encoded(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        match &mut self.frames {
            Some(frames) => frames.encode(&bytes),
            None => bytes,
        }
    }

    /// The number of the packet in which the gate may report its end. An error fits only as the
    /// answer to a command that is to come, that waits, or whose response is at the end of a
    /// packet.
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

    /// A statement is read with its header and the command byte.
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

    /// A command that waits for admission is not under way.
    fn is_idle(&self, _work: &Work) -> bool {
        matches!(self.turn, Turn::Command | Turn::Waiting)
            && !self.reply.status().is_in_transaction()
    }

    /// Only a complete statement at the server is worth waiting for. Its load stays until it ends,
    /// as without a gate, where the server does not notice either.
    fn is_owed(&self) -> bool {
        self.turn == Turn::Replying
    }

    /// Paused between two statements of a transaction, while waiting for a local file, or until the
    /// client takes what it asked for.
    fn is_paused(&self, client: &Side, server: &Side) -> bool {
        match self.turn {
            Turn::Replying => !client.has_taken_all(),
            Turn::File { .. } => server.has_taken_all(),
            _ => true,
        }
    }

    fn is_idle_in_transaction(&self, work: &Work) -> bool {
        work.is_running() && matches!(self.turn, Turn::Command)
    }

    /// Drivers report a connection closed in the middle as lost. The outcome is unknown, and no
    /// error of the gate could say more.
    fn was_told(&self) -> bool {
        false
    }

    fn last_words(&mut self, end: &End<Complaint>) -> Option<Vec<u8>> {
        let packet = match end {
            End::ClientLeft | End::ServerLeft { .. } | End::Departed => return None,
            End::Refused(complaint) => complaint.packet(self.scanner.sequence().wrapping_add(1)),
            End::Stopped | End::IdleInTransaction => {
                let sequence = self.place_of_end()?;
                if let (Turn::Command, Some(frames)) = (&self.turn, &mut self.frames) {
                    frames.answer_first();
                }
                let complaint = match end {
                    End::IdleInTransaction => Complaint::idle_in_transaction(),
                    _ => Complaint::shutting_down(),
                };
                complaint.packet(sequence)
            }
        };
        Some(self.encoded(packet))
    }
}
