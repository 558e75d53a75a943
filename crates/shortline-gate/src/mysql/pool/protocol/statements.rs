//! A client's prepared statements, and those of them that its connection has.
//!
//! A PREPARE always goes to the server, because its answer depends on the tables as they are now. A statement that the
//! connection lacks is prepared there before its execution, in the database and with the variables of the time when
//! the client prepared it. The client sees nothing of that, unless it fails: then that error answers the execution.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Phase, Pooled, Then, Turn, UnderWay, error, query, take_packet};
use crate::classify::Class;
use crate::mysql::complaint::Complaint;
use crate::mysql::packet::packet;
use crate::mysql::pool::leaving::{TOO_LONG, names_database, reads_what_is_left};
use crate::mysql::pool::prepared::{COM_STMT_CLOSE, Meaning, Mine, Own, Statement};
use crate::mysql::pool::settings::{MEANING, of_meaning};
use crate::mysql::reply::Shape;
use crate::mysql::statements::Prepared;
use crate::mysql::value;
use crate::pool::Pins;
use crate::relay::Exchange;

const INIT_DB: u8 = 0x02;
const STMT_PREPARE: u8 = 0x16;
const READS_LEFT: &str = "it has prepared what reads the results of another statement";
const NAMES_DATABASE: &str = "it has prepared what names its database while it was in none";

/// A statement that the client prepares.
#[derive(Debug)]
pub(super) struct Preparing {
    pub statement: Arc<Statement>,
    pub class: Class,
    /// Why the server's statement is this session's alone.
    pub keeps: Option<&'static str>,
    pub answer: Option<Answer>,
}

/// The server's answer to it.
#[derive(Debug)]
pub(super) struct Answer {
    /// The client's number for the statement.
    number: u32,
    /// The server's.
    there: u32,
    parameters: u16,
}

/// A statement that the connection gets for the client's next command.
#[derive(Debug)]
pub(super) struct Providing {
    /// The client's number for it.
    number: u32,
    statement: Arc<Statement>,
    /// It gets long data, and is this session's alone.
    is_own: bool,
    /// The commands whose answers have not come whole.
    awaited: VecDeque<Awaited>,
    /// The server's number for it.
    there: Option<u32>,
    /// The payload of the error that answers the client.
    failed: Option<Vec<u8>>,
}

/// A command of the pool's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// Puts the connection into the statement's database, or sets its variables.
    Put,
    Prepare,
    /// Puts the connection back.
    PutBack,
}

impl Awaited {
    fn shape(self) -> Shape {
        match self {
            Self::Prepare => Shape::Prepare,
            Self::Put | Self::PutBack => Shape::Results,
        }
    }
}

impl Pooled {
    /// Why the server's statement of this text would be this session's alone, if it is prepared now.
    pub(super) fn why_own(&self, text: &[u8], is_whole: bool) -> Option<&'static str> {
        if !is_whole {
            return Some(TOO_LONG);
        }
        if !self.member.is_of_transactions {
            return Some(Pins::OF_SESSIONS);
        }
        let reads = reads_what_is_left(text).then_some(READS_LEFT);
        let names = (self.schema.is_none() && names_database(text)).then_some(NAMES_DATABASE);
        self.reasons.lasting.or(reads).or(names)
    }

    /// Whether it is not known what a text would mean: the transaction has set a variable, or the session may have
    /// done so in a way that the server does not report.
    pub(super) fn is_meaning_unknown(&self) -> bool {
        let may_differ = self.reasons.lasting.is_some()
            || !self.member.is_of_transactions
            || self.changed.iter().any(|name| of_meaning(name));
        may_differ && !self.has_inquired
    }

    /// Asks the server for the variables that a meaning depends on. The client's command comes again behind that.
    pub(super) fn inquire(&mut self, exchange: &mut Exchange<'_, '_>) {
        self.look_for(exchange, MEANING.into_iter().collect(), Then::GoOn);
    }

    /// What this text means now.
    pub(super) fn meaning_of(&self, text: &[u8]) -> Meaning {
        Meaning {
            text: text.into(),
            schema: self.schema.clone(),
            settings: self.settings.of_meaning(),
        }
    }

    /// Makes room on the connection for a statement that is to be prepared, which is the shared one of this number.
    pub(super) fn make_room(&mut self, exchange: &mut Exchange<'_, '_>, id: Option<u64>) {
        let statements_max = self.member.pool.common.limits.statements_max;
        let known_max = statements_max
            .saturating_sub(self.prepared.own_len())
            .max(1);
        if let Some((_, there)) = self.held().known.prepared.make_room(id, known_max) {
            close_there(exchange, there);
        }
    }

    /// Reads the server's answer to the client's PREPARE. Returns it with the client's number. None if it is malformed.
    pub(super) fn name_prepared(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let mut rest = payload.get(1..)?;
        let there = value::integer(&mut rest, 4)? as u32;
        let behind = rest;
        let _columns = value::integer(&mut rest, 2)?;
        let parameters = value::integer(&mut rest, 2)? as u16;
        let number = self.prepared.next_number();
        if let UnderWay::Prepare(preparing) = &mut self.under_way {
            preparing.answer = Some(Answer {
                number,
                there,
                parameters,
            });
        }
        Some([&payload[..1], &number.to_le_bytes(), behind].concat())
    }

    /// Notes that the client's PREPARE was answered.
    pub(super) fn was_prepared(&mut self, preparing: Preparing, has_failed: bool) {
        let Preparing {
            statement,
            class,
            keeps,
            answer,
        } = preparing;
        let Some(answer) = answer.filter(|_| !has_failed) else {
            self.prepared.set_last(None);
            return;
        };
        let own = keeps.is_some().then(|| Own::new(answer.there, keeps));
        if own.is_none() {
            let there = Arc::clone(&statement);
            self.held().known.prepared.give(there, answer.there);
        }
        self.statements
            .prepared(answer.number, Prepared::Work(class));
        self.prepared
            .add(answer.number, Mine::new(statement, answer.parameters, own));
    }

    /// The server's number for the client's statement, if the connection has it. Otherwise it is prepared there, or
    /// that has failed. Long data gets a statement of its own, because what a server makes of it (MariaDB 10.11) depends
    /// on the types of the execution before, which may be another session's.
    pub(super) fn provide(&mut self, exchange: &mut Exchange<'_, '_>, number: u32) -> Option<u32> {
        let mine = self.prepared.get(number)?;
        if let Some(own) = mine.own() {
            return Some(own.there);
        }
        let statement = Arc::clone(&mine.statement);
        let is_own = self.long_data.is_some();
        if !is_own && let Some(there) = self.held().known.prepared.uses(statement.id) {
            return Some(*there);
        }
        if self.is_meaning_unknown() {
            self.inquire(exchange);
            return None;
        }
        let meaning = statement.body();
        if meaning.schema.is_some() && self.schema.is_none() {
            let complaint = Complaint::new(1046, "3D000", "No database selected");
            self.cannot_provide(exchange, number, error(&complaint));
            return None;
        }
        self.make_room(exchange, (!is_own).then_some(statement.id));
        let (mut commands, mut back) = (Vec::new(), Vec::new());
        let other = meaning.schema.as_ref().zip(self.schema.as_ref());
        if let Some((there, here)) = other.filter(|(there, here)| there != here) {
            commands.push(packet(0, &[&[INIT_DB], &there[..]].concat()));
            back.push(packet(0, &[&[INIT_DB], &here[..]].concat()));
        }
        let base = &self.held.as_ref()?.known.base;
        let there = self.settings.with_meaning(&meaning.settings);
        commands.extend(
            there
                .changes_from(&self.settings, base)
                .map(|set| query(&set)),
        );
        back.extend(
            self.settings
                .changes_from(&there, base)
                .map(|set| query(&set)),
        );
        let mut awaited = VecDeque::from(vec![Awaited::Put; commands.len()]);
        awaited.push_back(Awaited::Prepare);
        awaited.extend(vec![Awaited::PutBack; back.len()]);
        commands.push(packet(0, &[&[STMT_PREPARE], &meaning.text[..]].concat()));
        commands.extend(back);
        exchange.to_server(&commands.concat());
        self.reply.expect(awaited[0].shape());
        self.phase = Phase::Providing(Box::new(Providing {
            number,
            statement,
            is_own,
            awaited,
            there: None,
            failed: None,
        }));
        None
    }

    /// Reads the answers to the commands that prepare a statement on the connection.
    pub(super) fn take_provided(&mut self, exchange: &mut Exchange<'_, '_>, data: &[u8]) {
        self.partial = data.to_vec();
        while let Phase::Providing(providing) = &mut self.phase {
            let Some(payload) = take_packet(&mut self.partial) else {
                break;
            };
            self.reply.follow(&packet(0, &payload));
            if !self.reply.is_done() {
                continue;
            }
            let Some(answered) = providing.awaited.pop_front() else {
                break;
            };
            if answered == Awaited::Prepare {
                providing.there = self.reply.prepared();
            }
            if self.reply.has_failed() {
                if answered == Awaited::PutBack {
                    let message = "a session's own database or variables are refused";
                    self.refusal = Some(Complaint::malformed(message));
                    break;
                }
                providing.failed.get_or_insert(payload);
            }
            match providing.awaited.front() {
                Some(next) => self.reply.expect(next.shape()),
                None => self.provided(exchange),
            }
        }
    }

    /// All those commands are answered.
    fn provided(&mut self, exchange: &mut Exchange<'_, '_>) {
        let Phase::Providing(providing) = std::mem::replace(&mut self.phase, Phase::Relaying)
        else {
            return;
        };
        let Providing {
            number,
            statement,
            is_own,
            there,
            failed,
            ..
        } = *providing;
        match (there, failed) {
            (Some(there), None) if is_own => {
                // The long data comes next.
                self.prepared
                    .set_own(number, there, |own| own.has_long_data = true);
            }
            (Some(there), None) => self.held().known.prepared.give(statement, there),
            (there, failed) => {
                if let Some(there) = there {
                    // It was prepared elsewhere than it should.
                    close_there(exchange, there);
                }
                self.cannot_provide(exchange, number, failed.unwrap_or_default());
            }
        }
    }

    /// The connection does not get the statement for the client's next command, which is answered with this error.
    fn cannot_provide(&mut self, exchange: &mut Exchange<'_, '_>, number: u32, failed: Vec<u8>) {
        exchange.work.fail();
        self.fail(number, failed);
        if let Err(complaint) = self.end_statement(exchange) {
            self.refusal = Some(complaint);
        }
    }

    /// Answers the client's next command with this error. Long data has no answer, so the execution gets it.
    pub(super) fn fail(&mut self, number: u32, failed: Vec<u8>) {
        self.turn = match self.long_data.take() {
            Some(_) => {
                if let Some(mine) = self.prepared.get_mut(number) {
                    mine.failed = Some(failed);
                }
                Turn::Dropping(Vec::new())
            }
            None => Turn::Dropping(failed),
        };
    }

    /// Takes the server's statement for the session's own, as long as something of it is open.
    pub(super) fn take_over(&mut self, number: u32, there: u32, change: impl FnOnce(&mut Own)) {
        if let Some(mine) = self.prepared.get(number) {
            let id = mine.statement.id;
            if mine.own().is_none() {
                self.held().known.prepared.forget(id);
            }
            self.prepared.set_own(number, there, change);
        }
    }

    /// Changes what of the server's statement is open. If nothing is, other sessions may use it again.
    pub(super) fn let_go(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        number: u32,
        change: impl FnOnce(&mut Own),
    ) {
        let Some(own) = self.prepared.get(number).and_then(Mine::own) else {
            return;
        };
        if self.prepared.set_own(number, own.there, change).is_none() {
            return;
        }
        let Some(statement) = self.prepared.get(number).map(|mine| &mine.statement) else {
            return;
        };
        let statement = Arc::clone(statement);
        let known = &mut self.held().known.prepared;
        // What may be left of long data is not for another session.
        if own.has_long_data || known.has(statement.id) {
            close_there(exchange, own.there);
        } else {
            known.give(statement, own.there);
        }
    }

    /// Notes that the client's execution was answered. `failed` is whether a cursor was open before, if it has failed.
    pub(super) fn was_executed(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        number: u32,
        failed: Option<bool>,
    ) {
        // An execution may fail before it closes the cursor of the last one.
        let has_cursor = failed.unwrap_or(self.reply.status().has_cursor());
        self.let_go(exchange, number, |own| {
            own.has_failed = failed.is_some() && (own.has_long_data || own.has_failed);
            own.has_long_data = false;
            own.has_cursor = has_cursor;
        });
    }

    /// Notes that the server does not know a statement that it should.
    pub(super) fn was_unknown(&mut self, number: u32) {
        if let Some(id) = self.prepared.get(number).map(|mine| mine.statement.id) {
            self.held().known.prepared.forget(id);
        }
    }
}

/// Has the server close a statement.
fn close_there(exchange: &mut Exchange<'_, '_>, there: u32) {
    let payload = [&[COM_STMT_CLOSE], &there.to_le_bytes()[..]].concat();
    exchange.to_server(&packet(0, &payload));
}
