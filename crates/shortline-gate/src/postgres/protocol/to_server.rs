//! From the client to the backend. Messages pass, are held, or are dropped after an error that the
//! gate sent.

use super::refusal::Refusing;
use super::{Dropping, Fault, Postgres};
use crate::postgres::conversation::Status;
use crate::postgres::messages::{Parse, closed_statement};
use crate::postgres::opening::{Named, Opening, Reader};
use crate::postgres::reply::{Complaint, ready_for_query};
use crate::postgres::{PREPARATION, UNKNOWN};
use crate::relay::{Denied, Exchange, Work};

/// The length of a Close's body with the longest name that is kept.
const NAME_BYTES: usize = 65;

impl Postgres {
    /// Handles the client's next bytes. Returns how many of them are done. The caller holds the
    /// rest.
    pub(super) fn pass_to_server(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<usize, Fault> {
        let (mut sent, mut at) = (0, 0);
        while at < bytes.len() {
            if self.dropping != Dropping::Nothing {
                exchange.to_server(&bytes[sent..at]);
                self.drop_messages(exchange, bytes, &mut at)?;
                sent = at;
            } else if self.needs_no_unit(exchange.work) {
                let before = at;
                self.forward(exchange.work, bytes, &mut at)?;
                if at == before {
                    break;
                }
            } else if !self.open(exchange, &bytes[at..])? {
                break;
            }
        }
        exchange.to_server(&bytes[sent..at]);
        Ok(at)
    }

    /// Reads what the next bytes ask for. Returns false if nothing passes for now.
    fn open(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &[u8]) -> Result<bool, Fault> {
        // A throttled client cannot send the unit's first message, so the unit would end at once.
        let is_busy = !exchange.work.is_none() || !matches!(self.refusal, Refusing::None);
        if is_busy || self.is_throttled {
            return Ok(false);
        }
        let limits = &self.shared.config.relay.limits;
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
                self.is_extended = matches!(bytes.first(), Some(b'P' | b'B' | b'E' | b'D' | b'C'));
                self.ask(exchange, work);
                Ok(exchange.work.is_running())
            }
        }
    }

    fn ask(&mut self, exchange: &mut Exchange<'_, '_>, work: Named<'_>) {
        let class = match &work {
            Named::Statement(text) => self.shared.class_of(text, &self.names.client()),
            Named::Prepared(class) => class.clone(),
            Named::Preparation => PREPARATION.into(),
            Named::Unknown => UNKNOWN.into(),
        };
        if let Err(refused) = exchange.work.ask(exchange.context, &class) {
            self.refusal = Refusing::Due(Complaint::from(&Denied::Refused(refused)));
        }
    }

    /// Whether the client's next byte needs no admission.
    pub(super) fn needs_no_unit(&self, work: &Work) -> bool {
        !self.is_gated
            || work.is_running()
            || self.passing > 0
            || self.dropping != Dropping::Nothing
    }

    /// Moves `at` past the bytes that go to the backend, and notes their messages.
    fn forward(&mut self, work: &mut Work, bytes: &[u8], at: &mut usize) -> Result<(), Fault> {
        if !self.is_gated {
            *at = bytes.len();
            return Ok(());
        }
        let end = match work.is_running() {
            true => bytes.len(),
            false => bytes.len().min(*at + self.passing),
        };
        let begin = *at;
        let noted = self.note_sent(&bytes[..end], at);
        self.passing = self.passing.saturating_sub(*at - begin);
        // The rest of a failed COPY's data may come after the last answer.
        self.finish_if_over(work);
        noted
    }

    fn note_sent(&mut self, bytes: &[u8], at: &mut usize) -> Result<(), Fault> {
        let statement_bytes_max = self.shared.config.relay.limits.held_bytes_max;
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

    /// Drops the messages of a refused request.
    fn drop_messages(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
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
                (_, b'X') => exchange.client.is_ended = true,
                (Dropping::Message, _) => self.dropping = Dropping::Rest,
                (_, b'S') => {
                    self.dropping = Dropping::Rest;
                    let ready = ready_for_query(self.conversation.status());
                    exchange.to_client(&ready);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
