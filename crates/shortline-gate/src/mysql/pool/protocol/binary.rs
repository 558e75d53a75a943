//! The commands of the binary protocol from the client: their statements' numbers are the gate's, and become the
//! server's on the way.

use super::statements::Preparing;
use super::to_server::Step;
use super::{Pooled, Turn, UnderWay, ok};
use crate::classify::Class;
use crate::mysql::complaint::Complaint;
use crate::mysql::packet::{HEADER_BYTES, Header, PAYLOAD_BYTES_MAX};
use crate::mysql::pool::execute::Execute;
use crate::mysql::pool::longer::Longer;
use crate::mysql::pool::prepared::{
    COM_STMT_BULK_EXECUTE, COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_FETCH, COM_STMT_PREPARE,
    COM_STMT_RESET, COM_STMT_SEND_LONG_DATA, Mine, Notes,
};
use crate::mysql::reply::Shape;
use crate::mysql::statements::Prepared;
use crate::relay::Exchange;

/// The most prepared statements of a session: a server's default limit. Their number on its connection has another.
pub const STATEMENTS_MAX: usize = 16_382;
/// The type of preparing without executing.
const PREPARATION: &str = "prepare";
/// The command and the statement's number.
const NAMED_BYTES: usize = 5;

/// A command, as far as it has come.
pub(super) struct Incoming<'a> {
    pub header: Header,
    pub payload: &'a [u8],
    pub is_whole: bool,
}

/// Whether a command is one of the binary protocol.
pub(super) fn is_of_statements(command: u8) -> bool {
    matches!(
        command,
        COM_STMT_PREPARE..=COM_STMT_RESET | COM_STMT_FETCH | COM_STMT_BULK_EXECUTE
    )
}

impl Pooled {
    /// Handles a command of the binary protocol.
    pub(super) fn of_statement(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        incoming: &Incoming<'_>,
    ) -> Result<Step, Complaint> {
        let command = incoming.payload[0];
        if command == COM_STMT_PREPARE {
            return Ok(self.prepare(exchange, incoming));
        }
        if command == COM_STMT_BULK_EXECUTE {
            let message = "bulk execution is not offered through a pool";
            return Ok(self.refuse_command(&Complaint::new(1235, "42000", message)));
        }
        let named = incoming.payload[1..].first_chunk();
        let named = named.map(|named| u32::from_le_bytes(*named));
        let Some(number) = named.and_then(|named| self.prepared.number(named)) else {
            return Ok(match command {
                COM_STMT_CLOSE | COM_STMT_SEND_LONG_DATA => self.drop_unanswered(),
                _ => {
                    let message = "Unknown prepared statement";
                    self.refuse_command(&Complaint::new(1243, "HY000", message))
                }
            });
        };
        Ok(match command {
            COM_STMT_EXECUTE => self.execute(exchange, incoming, number),
            COM_STMT_SEND_LONG_DATA => self.send_long_data(exchange, incoming, number),
            COM_STMT_CLOSE => self.close(exchange, incoming, number),
            COM_STMT_FETCH => self.fetch(exchange, incoming, number),
            _ => self.reset_statement(exchange, incoming, number),
        })
    }

    fn prepare(&mut self, exchange: &mut Exchange<'_, '_>, incoming: &Incoming<'_>) -> Step {
        if self.prepared.len() >= STATEMENTS_MAX {
            let message =
                format!("a session prepares {STATEMENTS_MAX} statements at most through a pool");
            return self.refuse_command(&Complaint::new(1461, "42000", message));
        }
        let (text, is_whole) = (&incoming.payload[1..], incoming.is_whole);
        if !self.is_ready(exchange) {
            return self.ask(exchange, &PREPARATION.into(), None);
        }
        if !is_whole {
            self.note_long();
        }
        let keeps = self.why_own(text, is_whole);
        if keeps.is_none() && self.is_meaning_unknown() {
            self.inquire(exchange);
            return Step::Wait;
        }
        // Only the start of a long one has come, which is no statement's name.
        let meaning = self.meaning_of(if is_whole { text } else { b"" });
        let statement = self.member.pool.statements.enter(meaning, Notes::of);
        if keeps.is_none() {
            self.make_room(exchange, Some(statement.id));
        }
        self.under_way = UnderWay::Prepare(Box::new(Preparing {
            statement,
            class: self.shared.class_of(text, &self.names.client()),
            keeps,
            answer: None,
        }));
        self.go(Some(Shape::Prepare))
    }

    fn execute(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        incoming: &Incoming<'_>,
        number: u32,
    ) -> Step {
        let Some(mine) = self.prepared.get(number) else {
            return Step::Wait;
        };
        if let Some(failed) = &mine.failed {
            self.turn = Turn::Dropping(failed.clone());
            return Step::Again;
        }
        let execute = Execute::read(incoming.payload, mine.parameters, mine.types.as_ref());
        let Some(execute) = execute else {
            let message = "Incorrect arguments to mysqld_stmt_execute";
            return self.refuse_command(&Complaint::new(1210, "HY000", message));
        };
        if !fits(incoming.header, execute.grows()) {
            let limit = u64::from(PAYLOAD_BYTES_MAX) - execute.grows() as u64;
            return self.refuse_command(&Complaint::too_long(limit));
        }
        if !self.is_ready(exchange) {
            let is_simple = mine.own().is_none() && !execute.wants_cursor;
            let statement = std::sync::Arc::clone(&mine.statement);
            let text = is_simple.then_some(&statement.body().text[..]);
            return self.ask(exchange, &self.class_of_statement(number), text);
        }
        let notes = mine.statement.notes;
        let Some(there) = self.provide(exchange, number) else {
            return self.behind_provide();
        };
        self.note(notes);
        let own = self.prepared.get(number).and_then(Mine::own);
        self.under_way = UnderWay::Execute(number, own.is_some_and(|own| own.has_cursor));
        if execute.wants_cursor {
            self.take_over(number, there, |own| own.has_cursor = true);
        }
        if let (Some(types), Some(mine)) = (&execute.types, self.prepared.get_mut(number)) {
            mine.types = Some(types.clone());
        }
        self.go_as(
            exchange,
            incoming.header,
            &execute.head(there),
            execute.replaced,
            Some(Shape::Results),
        )
    }

    fn send_long_data(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        incoming: &Incoming<'_>,
        number: u32,
    ) -> Step {
        if self
            .prepared
            .get(number)
            .is_some_and(|mine| mine.failed.is_some())
        {
            return self.drop_unanswered();
        }
        self.long_data = Some(number);
        if !self.is_ready(exchange) {
            return self.ask(exchange, &self.class_of_statement(number), None);
        }
        let Some(there) = self.provide(exchange, number) else {
            return self.behind_provide();
        };
        self.long_data = None;
        self.take_over(number, there, |own| own.has_long_data = true);
        self.go_named(exchange, incoming, there, None)
    }

    fn close(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        incoming: &Incoming<'_>,
        number: u32,
    ) -> Step {
        self.statements.close(number);
        match self.prepared.close(number) {
            Some(own) => self.go_named(exchange, incoming, own.there, None),
            // It stays on the connections, because other clients may use it.
            None => self.drop_unanswered(),
        }
    }

    fn fetch(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        incoming: &Incoming<'_>,
        number: u32,
    ) -> Step {
        let own = self.prepared.get(number).and_then(Mine::own);
        let Some(own) = own.filter(|own| own.has_cursor) else {
            let message = format!("The statement ({number}) has no open cursor");
            return self.refuse_command(&Complaint::new(1421, "HY000", message));
        };
        if !self.is_ready(exchange) {
            return self.ask(exchange, &self.class_of_statement(number), None);
        }
        self.under_way = UnderWay::Fetch(number);
        self.go_named(exchange, incoming, own.there, Some(Shape::UntilEnd))
    }

    fn reset_statement(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        incoming: &Incoming<'_>,
        number: u32,
    ) -> Step {
        let Some(mine) = self.prepared.get_mut(number) else {
            return Step::Wait;
        };
        mine.failed = None;
        let Some(own) = mine.own() else {
            // Nothing of it is open at a server.
            let status = self.status();
            self.turn = Turn::Dropping(ok(status));
            return Step::Again;
        };
        if !self.is_ready(exchange) {
            return self.ask(exchange, &self.class_of_statement(number), None);
        }
        self.under_way = UnderWay::Reset(number);
        self.go_named(exchange, incoming, own.there, Some(Shape::Single))
    }

    fn class_of_statement(&self, number: u32) -> Class {
        match self.statements.get(number) {
            Some(Prepared::Work(class)) => class,
            _ => self.shared.unknown.clone(),
        }
    }

    /// What follows a statement that is not provided yet, or cannot be.
    fn behind_provide(&self) -> Step {
        match self.turn {
            Turn::Command => Step::Wait,
            _ => Step::Again,
        }
    }

    fn drop_unanswered(&mut self) -> Step {
        self.turn = Turn::Dropping(Vec::new());
        Step::Again
    }

    /// Sends a command to the server, with the server's number for its statement.
    fn go_named(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        incoming: &Incoming<'_>,
        there: u32,
        shape: Option<Shape>,
    ) -> Step {
        let head = [&incoming.payload[..1], &there.to_le_bytes()].concat();
        self.go_as(exchange, incoming.header, &head, NAMED_BYTES, shape)
    }

    /// Sends a command to the server, with this head in place of the first bytes of its payload.
    fn go_as(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        header: Header,
        head: &[u8],
        replaced: usize,
        shape: Option<Shape>,
    ) -> Step {
        let grows = head.len() - replaced;
        let mut there = header;
        if header.payload_bytes < PAYLOAD_BYTES_MAX {
            there.payload_bytes += grows as u32;
        } else if grows > 0 {
            self.longer = Some(Longer::new(replaced, grows));
        }
        exchange.to_server(&[&there.to_bytes(), head].concat());
        self.replaced_bytes = HEADER_BYTES + replaced;
        self.go(shape)
    }
}

/// Whether a message is as many packets if it is longer by so many bytes, as far as its first packet shows.
fn fits(header: Header, grows: usize) -> bool {
    let is_last = header.payload_bytes < PAYLOAD_BYTES_MAX;
    !is_last || header.payload_bytes as usize + grows < PAYLOAD_BYTES_MAX as usize
}
