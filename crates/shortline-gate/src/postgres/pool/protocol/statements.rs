//! A client's prepared statements, and those of them that its connection has.

use std::sync::Arc;

use super::{Fault, Pooled};
use crate::postgres::conversation::Status;
use crate::postgres::frame::{HEADER_BYTES, Header};
use crate::postgres::messages::text;
use crate::postgres::pool::pipeline::{Effect, Lost, Pending, Prepares, Unnamed};
use crate::postgres::pool::prepared::{Notes, SHARED, Statement};
use crate::postgres::reply::{Complaint, message, ready_for_query};
use crate::relay::Exchange;

/// A whole Sync.
const SYNC: [u8; 5] = *b"S\0\0\0\x04";
/// The most prepared statements of a session. Their number on its connection has another limit.
pub const NAMED_MAX: usize = 16_384;

impl Pooled {
    /// Handles the client's Parse. Nothing is sent if the connection already has the same statement.
    pub(super) fn parse(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        name: &[u8],
        body: &[u8],
    ) -> Result<(), Fault> {
        if !name.is_empty() && self.prepared.get(name).is_some() {
            // The backend reports the error, with its own name for the statement.
            let there = self.provide(exchange, name)?;
            self.pipeline.send();
            self.send(exchange, &message(b'P', &[&there, b"\0", body]));
            return Ok(());
        }
        if !name.is_empty() && self.prepared.named() >= NAMED_MAX {
            let message =
                format!("the session has {NAMED_MAX} prepared statements, the most allowed");
            return Err(Complaint::new("53400", message).into());
        }
        let statement = self.member.pool.statements.enter(body, Notes::of);
        self.prepared.prepare(name, statement.clone());
        let is_unnamed = name.is_empty();
        let prepares = Prepares {
            id: statement.id,
            is_unnamed,
            client_name: Some(name.into()),
        };
        if is_unnamed {
            self.held().known.prepared.unnamed = Some(statement.id);
            self.send(exchange, &statement.parse(b""));
            self.pipeline.send_parse(prepares, Some(statement));
        } else if !self.may_have_failed()
            && self
                .held()
                .known
                .prepared
                .named
                .uses(statement.id)
                .is_some()
        {
            let effect = Effect::Prepared(name.into());
            self.pipeline.put(message(b'1', &[]), effect);
            self.put_in(exchange);
        } else {
            self.send_parse(exchange, &statement, prepares);
        }
        Ok(())
    }

    /// Whether there may be a transaction that has failed. Then only the backend knows how it answers. What is not
    /// answered yet may have begun one.
    fn may_have_failed(&self) -> bool {
        self.pipeline.has_unanswered_segment() || self.conversation.status() == Status::Failed
    }

    /// Answers a Parse and its Sync without a connection. The statement must have been prepared before, on a
    /// connection of the same kind. Returns how many bytes are done, or None if a connection is needed. Drivers wait
    /// for this answer, and a connection held meanwhile would delay other clients.
    pub(super) fn prepare_known(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<Option<usize>, Fault> {
        let body_bytes_max = self.shared.config.relay.limits.message_bytes_max;
        let Some(header) =
            Header::first_of(bytes, body_bytes_max)?.filter(|header| header.tag == b'P')
        else {
            return Ok(None);
        };
        let Some((parse, rest)) = bytes.split_at_checked(header.message_bytes()) else {
            return Ok(None);
        };
        let body = &parse[HEADER_BYTES..];
        let (name, statement) = text(body);
        let is_free = !name.is_empty()
            && self.prepared.get(name).is_none()
            && self.prepared.named() < NAMED_MAX;
        if !is_free || !rest.starts_with(&SYNC) {
            return Ok(None);
        }
        let known = self.member.pool.statements.get(statement);
        let Some(known) = known.filter(|known| known.notes.is_proven(&self.member.kind)) else {
            return Ok(None);
        };
        let prepared = self
            .shared
            .prepared(text(statement).0, &self.names.client());
        self.types.prepare(name, prepared);
        self.prepared.prepare(name, known);
        exchange.to_client(&message(b'1', &[]));
        exchange.to_client(&ready_for_query(self.status()));
        Ok(Some(parse.len() + SYNC.len()))
    }

    /// Makes sure that the connection has the client's statement of this name. Returns its name on the connection. An
    /// unknown name passes, so the backend reports the error.
    pub(super) fn provide(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        name: &[u8],
    ) -> Result<Vec<u8>, Fault> {
        let Some(statement) = self.prepared.get(name).cloned() else {
            // It must not match a name that all clients share, nor the unnamed statement of another session.
            let is_anothers = match name {
                b"" => self.held().known.prepared.unnamed.is_some(),
                name => name.starts_with(SHARED),
            };
            return Ok(match is_anothers {
                true => [b"unknown ", name].concat(),
                false => name.to_vec(),
            });
        };
        if statement.notes.leaves_state {
            self.note_statement(statement.text(), true);
        }
        let prepares = Prepares {
            id: statement.id,
            is_unnamed: name.is_empty(),
            client_name: None,
        };
        if name.is_empty() {
            let there = &mut self.held().known.prepared.unnamed;
            if there.replace(statement.id) != Some(statement.id) {
                self.send(exchange, &statement.parse(b""));
                self.pipeline.send_parse(prepares, None);
            }
            return Ok(Vec::new());
        }
        if self
            .held()
            .known
            .prepared
            .named
            .uses(statement.id)
            .is_none()
        {
            self.send_parse(exchange, &statement, prepares);
        }
        Ok(statement.name())
    }

    fn send_parse(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        statement: &Arc<Statement>,
        prepares: Prepares,
    ) {
        let statements_max = self.member.pool.common.limits.statements_max;
        let closed = self.held().known.prepared.give(statement, statements_max);
        if let Some(closed) = closed {
            self.send(exchange, &message(b'C', &[b"S", &closed.name(), b"\0"]));
            self.pipeline.send_hidden_close(closed);
        }
        self.send(exchange, &statement.parse(&statement.name()));
        self.pipeline.send_parse(prepares, None);
    }

    /// Forgets a statement that the client closes. It stays on the connection, because other clients may use it.
    pub(super) fn close(&mut self, name: &[u8]) {
        self.prepared.close(name);
        self.types.close(name);
    }

    /// Notes that the backend has prepared a statement.
    pub(super) fn was_prepared(&mut self, prepares: &Prepares) {
        let held = self
            .held
            .as_ref()
            .expect("invariant: whoever prepares has a connection");
        if let Some(statement) = held.known.prepared.named.get(prepares.id) {
            statement.notes.prove(&held.kind);
        }
    }

    /// Undoes what was not done because of an earlier error.
    pub(super) fn undo(&mut self, lost: Vec<Lost>) {
        for lost in lost.into_iter().rev() {
            match lost {
                Lost::Parse(prepares) => self.not_prepared(&prepares),
                Lost::Close(statement) => self.held().known.prepared.named.keep(statement, ()),
                Lost::Effect(Effect::Prepared(name)) => self.close(&name),
                Lost::Effect(Effect::Closed(_, None)) => {}
                Lost::Effect(Effect::Closed(name, Some(statement))) => self.know(&name, statement),
            }
        }
        self.correct_unnamed();
    }

    /// The unnamed one is another matter ([`Self::correct_unnamed`]).
    fn not_prepared(&mut self, prepares: &Prepares) {
        if prepares.is_unnamed {
            return;
        }
        self.held().known.prepared.named.forget(prepares.id);
        if let Some(name) = &prepares.client_name {
            self.close(name);
        }
    }

    /// Whether a Parse of this name and text has to wait for an answer. Without a pool the backend would know whether an
    /// earlier one of that name fails; and the same text may be there by another name, or fail again.
    pub(super) fn parse_waits(&mut self, name: &[u8], body: &[u8]) -> bool {
        if name.is_empty() || !self.may_wait() {
            return false;
        }
        let id = self.member.pool.statements.get(body).map(|known| known.id);
        let is_it = |pending: Pending<'_>| match pending {
            Pending::Parse(parse) => {
                Some(parse.id) == id || parse.client_name.as_deref() == Some(name)
            }
            Pending::Close(closed) => Some(closed) == id,
            Pending::Put(put) => put == name,
        };
        self.pipeline.awaits(is_it) || self.use_waits(name)
    }

    /// Whether a use of the client's statement of this name has to wait for an answer. What it is may depend on that, and
    /// so may whether the connection has it.
    pub(super) fn use_waits(&mut self, name: &[u8]) -> bool {
        if !self.may_wait() {
            return false;
        }
        if name.is_empty() && self.pipeline.awaits_unnamed() {
            return true;
        }
        let id = self.prepared.get(name).map(|statement| statement.id);
        let is_there = id.is_some_and(|id| self.held().known.prepared.named.has(id));
        self.pipeline.awaits(|pending| match pending {
            // The error for a statement that its own Parse has not made is the right one.
            Pending::Parse(parse) => {
                Some(parse.id) == id && !(is_there && parse.client_name.as_deref() == Some(name))
            }
            Pending::Close(closed) => Some(closed) == id,
            Pending::Put(put) => put == name,
        })
    }

    /// Whether a Close has to wait. It undoes nothing that fails.
    pub(super) fn close_waits(&self, name: &[u8]) -> bool {
        let is_it = |pending: Pending<'_>| match pending {
            Pending::Parse(parse) => parse.client_name.as_deref() == Some(name),
            Pending::Close(_) => false,
            Pending::Put(put) => put == name,
        };
        !name.is_empty() && self.may_wait() && self.pipeline.awaits(is_it)
    }

    /// Whether there is an answer to wait for. In a COPY the backend answers only when the client has sent more.
    fn may_wait(&self) -> bool {
        self.pipeline.has_unanswered_segment() && !self.conversation.is_copying()
    }

    /// Sets the unnamed statements to what they are after an error.
    pub(super) fn correct_unnamed(&mut self) {
        let Unnamed { client, there } = self.pipeline.unnamed();
        self.held().known.prepared.unnamed = there;
        match client {
            Some(statement) => self.know(b"", statement),
            None => self.close(b""),
        }
    }

    /// Notes that the client's statement of this name is this one.
    pub(super) fn know(&mut self, name: &[u8], statement: Arc<Statement>) {
        let prepared = self.shared.prepared(statement.text(), &self.names.client());
        self.types.prepare(name, prepared);
        self.prepared.prepare(name, statement);
    }

    /// Notes that one of the client's statements cannot be executed any more. If the client prepares it again, the
    /// connections must not answer with what they have.
    pub(super) fn retire_prepared(&mut self) {
        for (_, statement) in self.prepared.all_named() {
            self.member.pool.statements.retire(statement);
        }
    }

    /// Notes that the client has no named statements any more. Its connection may have kept some that it got since.
    pub(super) fn forget_prepared(&mut self) {
        self.held().known.prepared.named.doubt();
        self.prepared.close_named();
    }
}
