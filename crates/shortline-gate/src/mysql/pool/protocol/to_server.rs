//! From the client to the pool. A command waits for admission, is answered by the gate, or passes to the session's
//! connection.

use std::sync::Arc;

use super::binary::{Incoming, is_of_statements};
use super::{AUTOCOMMIT, Phase, Pooled, STATEMENT_BYTES_MAX, Then, Turn, error, ok};
use crate::Gate;
use crate::classify::Class;
use crate::mysql::command::Command;
use crate::mysql::complaint::Complaint;
use crate::mysql::packet::{Found, HEADER_BYTES, Header, packet};
use crate::mysql::pool::ID_BIT;
use crate::mysql::pool::kill::{Kill, kill};
use crate::mysql::pool::leaving::{TOO_LONG, may_set_role, reads_what_is_left};
use crate::mysql::pool::prepared::Notes;
use crate::mysql::pool::settings::INSERT_ID;
use crate::mysql::reply::Shape;
use crate::relay::{Denied, Exchange};

const PING: u8 = 0x0e;
const SET_OPTION: u8 = 0x1b;
const QUIT: u8 = 0x01;
const CHANGE_USER: u8 = 0x11;
const RESET: u8 = 0x1f;
/// Status flags of a transaction that is open.
const IN_TRANSACTION: u16 = 1;
const IN_TRANSACTION_READ_ONLY: u16 = 0x2000;

/// The result of handling the client's bytes.
pub(super) enum Step {
    /// More bytes must come, or another event must happen first.
    Wait,
    /// This many bytes are done.
    Done(usize),
    /// The turn has changed. Handle the bytes again.
    Again,
}

impl Pooled {
    /// Handles the client's next bytes. Returns how many of them are done; the rest is held.
    pub(super) fn pass_to_server(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<usize, Complaint> {
        if let Some(complaint) = self.refusal.take() {
            return Err(complaint);
        }
        let mut at = 0;
        while at < bytes.len() {
            match &self.turn {
                Turn::Command
                    if matches!(self.phase, Phase::Resting | Phase::Relaying)
                        && !exchange.work.is_waiting() =>
                {
                    match self.begin(exchange, &bytes[at..])? {
                        Step::Wait => break,
                        Step::Done(done) => at += done,
                        Step::Again => {}
                    }
                }
                Turn::Sending { .. } | Turn::File { .. } => {
                    let from = at;
                    self.forward(exchange, bytes, &mut at)?;
                    debug_assert!(at > from);
                }
                Turn::Dropping(_) => self.drop_command(exchange, bytes, &mut at),
                Turn::Command | Turn::Replying => break,
            }
        }
        self.check_reply(exchange)?;
        self.refusal.take().map_or(Ok(at), Err)
    }

    /// Reads the command at the front of `bytes` and decides what happens to it.
    fn begin(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &[u8]) -> Result<Step, Complaint> {
        let Some(header) = Header::first_of(bytes) else {
            return Ok(Step::Wait);
        };
        let limit = self.shared.config.limits.message_bytes_max;
        if header.payload_bytes > limit {
            return Err(Complaint::too_long(limit.into()));
        }
        let payload_bytes = header.payload_bytes as usize;
        let wanted = payload_bytes.min(STATEMENT_BYTES_MAX);
        let Some(payload) = bytes[HEADER_BYTES..].get(..wanted) else {
            self.wanted_bytes = HEADER_BYTES + wanted;
            return Ok(Step::Wait);
        };
        self.wanted_bytes = 0;
        let is_whole = wanted == payload_bytes;
        let whole = HEADER_BYTES + payload_bytes;
        if payload.first().copied().is_some_and(is_of_statements) {
            let incoming = Incoming {
                header,
                payload,
                is_whole,
            };
            return self.of_statement(exchange, &incoming);
        }
        match (payload.first(), Command::read(payload, false)) {
            (Some(&QUIT), _) => {
                self.is_leaving = true;
                exchange.client.is_ended = true;
                Ok(Step::Done(bytes.len()))
            }
            (Some(&PING), _) if !self.is_relaying() => {
                Ok(self.answer(exchange, &ok(self.status()), whole))
            }
            (Some(&RESET), _) => Ok(self.reset(exchange, whole)),
            (Some(&CHANGE_USER), _) => {
                let message = "through a pool a session keeps its user: connect anew";
                Ok(self.refuse_command(&Complaint::new(1235, "42000", message)))
            }
            (_, Command::Stream) => {
                let message =
                    "replication needs a connection of its own: connect to a gate without --pool";
                Ok(self.refuse_command(&Complaint::new(1235, "42000", message)))
            }
            (_, Command::Kill { thread_id, .. }) if thread_id & ID_BIT != 0 => {
                let text = payload.to_ascii_lowercase();
                let what = Kill {
                    thread_id,
                    is_of_statement: text.windows(5).any(|part| part == b"query"),
                };
                Ok(self.kill(exchange, what, whole))
            }
            (_, Command::Query(text)) => self.query(
                exchange,
                text,
                is_whole,
                whole,
                &bytes[..HEADER_BYTES + wanted],
            ),
            (_, Command::Control) => self.query(
                exchange,
                &payload[1..],
                is_whole,
                whole,
                &bytes[..HEADER_BYTES + wanted],
            ),
            (first, command) => Ok(self.other(exchange, first.copied(), &command)),
        }
    }

    /// Handles a statement of the text protocol.
    fn query(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        text: &[u8],
        is_whole: bool,
        whole: usize,
        command: &[u8],
    ) -> Result<Step, Complaint> {
        if !exchange.work.is_running() && is_whole && self.pin.is_none() {
            match boundary(text) {
                // A second BEGIN, or one without autocommit, goes to the server.
                Some(Boundary::Begin)
                    if self.begun.is_none() && !self.settings.is_autocommit_off() =>
                {
                    self.begun = Some(command.to_vec());
                    return Ok(self.answer(exchange, &ok(self.status()), whole));
                }
                Some(Boundary::End) if !self.settings.has_completion() => {
                    self.begun = None;
                    return Ok(self.answer(exchange, &ok(self.status()), whole));
                }
                _ => {}
            }
        }
        if !self.is_ready(exchange) {
            self.clears = reads_what_is_left(text) && self.pin.is_none();
            let class = self.shared.class_of(text, &self.names.client());
            let text = is_whole.then_some(text);
            return Ok(self.ask(exchange, &class, text));
        }
        match is_whole {
            true => self.note(Notes::of_text(text)),
            false => self.note_long(),
        }
        Ok(self.go(Some(Shape::Results)))
    }

    /// Notes a statement of which only the start has come.
    pub(super) fn note_long(&mut self) {
        self.note(Notes {
            reason: Some(TOO_LONG),
            ..Notes::default()
        });
    }

    /// Notes the session state that a statement may change.
    pub(super) fn note(&mut self, notes: Notes) {
        self.reasons.outlasts_reset |= notes.reason.is_some_and(may_set_role);
        self.may_set_and_fail = notes.may_set_and_fail;
        if !self.member.is_of_transactions {
            return;
        }
        self.reasons.lasting = self.reasons.lasting.or(notes.reason);
        if notes.names_insert_id {
            self.changed.insert(INSERT_ID);
        }
    }

    /// Handles any other command.
    fn other(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        first: Option<u8>,
        command: &Command<'_>,
    ) -> Step {
        let shape = match command {
            Command::Kill { shape, .. } | Command::Reset(shape) | Command::Other(shape) => *shape,
            _ => unreachable!("the others are dealt with before"),
        };
        if !self.is_ready(exchange) {
            let class = self.shared.unknown.clone();
            return self.ask(exchange, &class, None);
        }
        // A reset does not undo it.
        self.reasons.outlasts_reset |= first == Some(SET_OPTION);
        if first == Some(SET_OPTION) && self.member.is_of_transactions {
            self.reasons.lasting = self
                .reasons
                .lasting
                .or(Some("it has set an option of its connection"));
        }
        self.go(Some(shape))
    }

    /// Whether the session has a unit and a connection for its next command.
    pub(super) fn is_ready(&self, exchange: &Exchange<'_, '_>) -> bool {
        exchange.work.is_running() && self.is_relaying()
    }

    /// Sends the command to the server.
    pub(super) fn go(&mut self, shape: Option<Shape>) -> Step {
        self.has_inquired = false;
        if let Some(shape) = shape {
            self.reply.expect(shape);
        }
        self.turn = Turn::Sending {
            has_response: shape.is_some(),
        };
        Step::Again
    }

    /// Submits the command, which is work. It goes to the server when it is admitted and has a connection.
    pub(super) fn ask(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        class: &Class,
        statement: Option<&[u8]>,
    ) -> Step {
        let replica = self.replica_for(class, statement);
        self.submit(exchange, class, replica);
        // The session may end by it.
        let goes_on = self.refusal.is_none() && !exchange.work.is_waiting();
        match goes_on && (self.is_relaying() || self.turn != Turn::Command) {
            true => Step::Again,
            false => Step::Wait,
        }
    }

    /// Asks for the unit, at the primary or at a replica.
    pub(super) fn submit(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        class: &Class,
        replica: Option<(usize, Gate)>,
    ) {
        self.replica = replica.as_ref().map(|(at, _)| *at);
        self.class = replica.is_some().then(|| class.clone());
        let gate = replica.as_ref().map(|(_, gate)| gate);
        match exchange.work.ask_at(gate, exchange.context, class) {
            Ok(()) if exchange.work.is_running() => self.acquire(exchange),
            Ok(()) => {}
            Err(refused) => self.refuse(&Complaint::from(&Denied::Refused(refused))),
        }
    }

    /// Sends the client an error for its next command. If the gate has already answered a BEGIN, the session ends
    /// instead.
    pub(super) fn refuse(&mut self, complaint: &Complaint) {
        if self.begun.is_some() {
            self.refusal = Some(complaint.clone());
            return;
        }
        match self.long_data {
            Some(number) => self.fail(number, error(complaint)),
            None => self.turn = Turn::Dropping(error(complaint)),
        }
    }

    pub(super) fn refuse_command(&mut self, complaint: &Complaint) -> Step {
        self.turn = Turn::Dropping(error(complaint));
        Step::Again
    }

    /// Answers a command that has come whole.
    fn answer(&mut self, exchange: &mut Exchange<'_, '_>, payload: &[u8], whole: usize) -> Step {
        exchange.to_client(&packet(1, payload));
        Step::Done(whole)
    }

    /// Resets the session, and its connection if it has one.
    fn reset(&mut self, exchange: &mut Exchange<'_, '_>, whole: usize) -> Step {
        if self.held.is_some() && self.reasons.lasting.is_some() {
            // It may be in a database that the server has not reported. A reset does not change the database.
            self.look(exchange, Then::Reset);
            return Step::Done(whole);
        }
        self.forget(exchange);
        self.answer(exchange, &ok(AUTOCOMMIT), whole)
    }

    /// The status flags of an answer of the gate's.
    pub(super) fn status(&self) -> u16 {
        let transaction = match (self.is_relaying(), &self.begun) {
            (true, _) => self.reply.status().of_transaction(),
            (false, None) => 0,
            (false, Some(_)) if self.settings.is_read_only() => {
                IN_TRANSACTION | IN_TRANSACTION_READ_ONLY
            }
            (false, Some(_)) => IN_TRANSACTION,
        };
        self.flags | transaction
    }

    fn kill(&mut self, exchange: &mut Exchange<'_, '_>, what: Kill, whole: usize) -> Step {
        let member = &self.member;
        let killing = kill(
            Arc::clone(&self.shared),
            Arc::clone(&member.pool),
            member.kind.user.clone(),
            what,
        );
        self.phase = Phase::Killing(Box::pin(killing));
        self.poll_kill(exchange);
        Step::Done(whole)
    }

    /// Moves `at` over what passes to the backend, at most to the end of a message.
    fn forward(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
        at: &mut usize,
    ) -> Result<(), Complaint> {
        let from = *at;
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
        let replaced = self.replaced_bytes.min(*at - from);
        self.replaced_bytes -= replaced;
        let rest = &bytes[from + replaced..*at];
        match &mut self.longer {
            None => exchange.to_server(rest),
            Some(longer) => {
                let rest = longer.take(rest);
                exchange.to_server(&rest.map_err(|_| Complaint::too_long(message_bytes_max))?);
            }
        }
        if is_end {
            self.longer = None;
            let is_unanswered = self.turn
                == Turn::Sending {
                    has_response: false,
                };
            self.turn = match std::mem::replace(&mut self.turn, Turn::Replying) {
                Turn::Sending {
                    has_response: false,
                } => Turn::Command,
                Turn::Sending { .. } | Turn::File { is_empty: true } => Turn::Replying,
                other => other,
            };
            if is_unanswered {
                return self.release_if_free(exchange);
            }
        }
        Ok(())
    }

    /// Drops the rest of a command, and answers it when it is complete.
    fn drop_command(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &[u8], at: &mut usize) {
        while let Some(found) = self.scanner.next(bytes, at) {
            if found != Found::End {
                continue;
            }
            if let Turn::Dropping(payload) = std::mem::replace(&mut self.turn, Turn::Command)
                && !payload.is_empty()
            {
                let sequence = self.scanner.sequence().wrapping_add(1);
                exchange.to_client(&packet(sequence, &payload));
            }
            return;
        }
    }
}

/// A statement that only begins a default transaction, or ends one.
enum Boundary {
    Begin,
    End,
}

fn boundary(text: &[u8]) -> Option<Boundary> {
    let text = std::str::from_utf8(text)
        .ok()?
        .trim_end_matches([';', ' '])
        .trim();
    let is = |known: &&str| text.eq_ignore_ascii_case(known);
    if ["BEGIN", "BEGIN WORK", "START TRANSACTION"].iter().any(is) {
        return Some(Boundary::Begin);
    }
    ["COMMIT", "ROLLBACK", "COMMIT WORK", "ROLLBACK WORK"]
        .iter()
        .any(is)
        .then_some(Boundary::End)
}
