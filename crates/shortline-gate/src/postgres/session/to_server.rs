//! From the client to the backend: what goes on, what is held, and what is dropped because the
//! client has been told of an error.

use std::task::{Context, Poll};

use super::{Dropping, Fault, Session};
use crate::postgres::conversation::Status;
use crate::postgres::messages::{Parse, closed_statement};
use crate::postgres::opening::{Opening, Reader, Work};
use crate::postgres::reply::{Complaint, ready_for_query};
use crate::postgres::unit::Unit;
use crate::postgres::{PREPARATION, UNKNOWN};
use crate::relay::{Admission, Answer, SCRATCH_BYTES, with_scratch};

/// A Close's kind and name, with a name of the longest that is kept.
const NAME_BYTES: usize = 65;

impl Session {
    pub(super) fn relay_to_server(&mut self, context: &mut Context<'_>) -> Result<bool, Fault> {
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
                    let taken = self.take_from_client(context, &scratch[..read])?;
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
        let taken = self.take_from_client(context, &held)?;
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
    pub(super) fn take_from_client(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Result<usize, Fault> {
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
        // Throttled, it could not begin: it would be over before it did.
        if !matches!(self.unit, Unit::None) || self.is_throttled {
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
        let name: &str = match &work {
            Work::Statement(text) => &self.shared.name_of(text, &self.names.client()),
            Work::Prepared(name) => name,
            Work::Preparation => PREPARATION,
            Work::Unknown => UNKNOWN,
        };
        let request_type = self.shared.gate.type_of(name);
        let account = self.account.as_ref();
        self.unit = match Admission::ask(&self.shared.gate, request_type, account, context) {
            Ok(Answer::Runs(running)) => Unit::Running(running),
            Ok(Answer::Waits(admission)) => {
                self.handle.begin_waiting();
                Unit::Waiting(admission)
            }
            Err(refused) => Unit::Refused(Complaint::from(&refused)),
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
            self.from_client.skip_body(bytes, at);
            self.is_throttled |= self.conversation.is_full();
            if self.is_throttled && self.from_client.is_between_messages() {
                return Ok(());
            }
            let Some(message) = self.from_client.next(bytes, at, wanted)? else {
                self.from_client.forget();
                return Ok(());
            };
            self.conversation.sent(message.tag)?;
            match message.tag {
                b'P' => {
                    let Parse { name, text } = Parse::read(message.start);
                    let prepared = self.shared.prepared(text, &self.names.client());
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
        while self.from_client.skip_body(bytes, at) {
            if self.dropping == Dropping::Rest {
                self.dropping = Dropping::Nothing;
                return Ok(());
            }
            let Some(message) = self.from_client.next(bytes, at, |_| 0)? else {
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
}
