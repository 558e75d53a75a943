//! From the server to the client. Responses pass, with session changes removed from OK packets. Answers to the pool's
//! own commands are dropped.

use super::{Look, Phase, Pooled, Turn, UnderWay, take_packet};
use crate::mysql::ask::row;
use crate::mysql::capability::DEPRECATE_EOF;
use crate::mysql::complaint::Complaint;
use crate::mysql::packet::{HEADER_BYTES, Header, PAYLOAD_BYTES_MAX, START_BYTES, packet};
use crate::mysql::pool::settings::{INSERT_ID, followed, is_result};
use crate::mysql::pool::track::{Ok as OkPacket, Tracked};
use crate::relay::Exchange;

const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// ER_UNKNOWN_STMT_HANDLER (1243), as in an ERR packet.
const UNKNOWN_STATEMENT: [u8; 2] = 1243_u16.to_le_bytes();
/// An end of rows without changes is shorter than this.
const EOF_BYTES_MAX: usize = 9;
/// The longest packet that is read whole.
const OK_BYTES_MAX: usize = 1 << 20;

impl Pooled {
    pub(super) fn pass_to_client(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<(), Complaint> {
        let joined;
        let data = match self.partial.is_empty() {
            true => bytes,
            false => {
                joined = [&std::mem::take(&mut self.partial), bytes].concat();
                &joined
            }
        };
        let before = std::mem::discriminant(&self.phase);
        match self.phase {
            Phase::Preparing(_) => self.take_prepared(exchange, data),
            Phase::Providing(_) => self.take_provided(exchange, data),
            Phase::Looking(..) => self.take_look(exchange, data),
            Phase::Relaying if !self.reply.is_done() => self.relay(exchange, data)?,
            // No answer is due.
            _ if data.is_empty() => {}
            _ => return Err(unasked()),
        }
        // What is left belongs to nothing that is sent from here on.
        let has_moved_on = std::mem::discriminant(&self.phase) != before;
        if has_moved_on && !self.partial.is_empty() {
            return Err(unasked());
        }
        self.check_reply(exchange)?;
        self.refusal.take().map_or(Ok(()), Err)
    }

    /// Reads the answers to the commands that set the connection to the session's state.
    fn take_prepared(&mut self, exchange: &mut Exchange<'_, '_>, data: &[u8]) {
        self.partial = data.to_vec();
        while let Phase::Preparing(_) = self.phase {
            let Some(packet) = take_packet(&mut self.partial) else {
                break;
            };
            self.prepared(exchange, &packet);
        }
    }

    /// Reads the values of variables: a number of columns, their definitions, a row, and an end.
    fn take_look(&mut self, exchange: &mut Exchange<'_, '_>, data: &[u8]) {
        self.partial = data.to_vec();
        let has_end = self.member.kind.capabilities & DEPRECATE_EOF == 0;
        while let Phase::Looking(names, look, then) = &mut self.phase {
            let Some(packet) = take_packet(&mut self.partial) else {
                break;
            };
            // One for each variable, and one for the database.
            let columns = names.len() + 1;
            let before = 1 + columns + usize::from(has_end);
            let is_failed = packet.first() == Some(&ERR);
            let has_no_row = look.packets == before && is_end_of_rows(&packet);
            let is_end = look.packets > before || has_no_row;
            if look.packets == before && !has_no_row {
                look.row = Some(packet);
            }
            look.packets += 1;
            if is_failed || is_end {
                let Look { row: values, .. } = std::mem::take(look);
                let (names, then) = (std::mem::take(names), *then);
                let values = values
                    .filter(|_| !is_failed)
                    .and_then(|values| row(&values, columns as u64));
                self.looked(exchange, &names, values, then);
            }
        }
    }

    /// Relays the response to the client's command.
    fn relay(&mut self, exchange: &mut Exchange<'_, '_>, data: &[u8]) -> Result<(), Complaint> {
        let (mut sent, mut at) = (0, 0);
        while at < data.len() && !self.reply.is_done() {
            if self.server_body_left > 0 {
                let taken = self.server_body_left.min(data.len() - at);
                self.reply.follow(&data[at..at + taken]);
                self.server_body_left -= taken;
                at += taken;
                continue;
            }
            let rest = &data[at..];
            let Some(header) = Header::first_of(rest) else {
                break;
            };
            let payload_bytes = header.payload_bytes as usize;
            if rest.len() < HEADER_BYTES + payload_bytes.min(START_BYTES) {
                break;
            }
            let whole = HEADER_BYTES + payload_bytes;
            let first = rest
                .get(HEADER_BYTES)
                .copied()
                .filter(|_| payload_bytes > 0);
            let is_prepared = !self.goes_on && self.reply.is_prepared(first);
            if first == Some(ERR)
                && !self.reply.has_begun()
                && rest[HEADER_BYTES + 1..].starts_with(&UNKNOWN_STATEMENT)
                && let UnderWay::Execute(number, _) = self.under_way
            {
                self.was_unknown(number);
            }
            if self.goes_on || !is_prepared && !self.reply.is_ok(header.payload_bytes, first) {
                self.goes_on = header.payload_bytes == PAYLOAD_BYTES_MAX;
                self.server_body_left = whole;
                continue;
            }
            if payload_bytes > OK_BYTES_MAX {
                return Err(unread());
            }
            if rest.len() < whole {
                break;
            }
            let payload = &rest[HEADER_BYTES..whole];
            let said = match is_prepared {
                true => self.name_prepared(payload),
                false => self.take_ok(payload),
            };
            exchange.to_client(&data[sent..at]);
            self.reply.follow(&rest[..whole]);
            exchange.to_client(&packet(header.sequence, &said.ok_or_else(unread)?));
            at += whole;
            sent = at;
        }
        exchange.to_client(&data[sent..at]);
        self.partial = data[at..].to_vec();
        if self.reply.take_file_wanted() && self.turn == Turn::Replying {
            self.turn = Turn::File { is_empty: false };
        }
        Ok(())
    }

    /// Notes what an OK packet reports. Returns it without that. None if it is malformed.
    fn take_ok(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let read = OkPacket::read(payload)?;
        if read.insert_id != 0 {
            self.changed.insert(INSERT_ID);
        }
        self.follow(&read.tracked);
        Some(read.plain)
    }

    /// Notes the changes that the server reports for a statement.
    fn follow(&mut self, tracked: &Tracked) {
        let mut is_named = tracked.schema.is_some();
        let mut beyond = false;
        for name in &tracked.variables {
            match followed(name) {
                Some(name) => drop(self.changed.insert(name)),
                None => beyond |= !is_result(name),
            }
            is_named = true;
        }
        if let Some(schema) = &tracked.schema {
            self.schema = (!schema.is_empty()).then(|| schema.clone());
            let schema = self.schema.clone();
            self.held().known.schema = schema;
        }
        if let Some(has_locks) = tracked.has_locks {
            self.reasons.has_locks = has_locks;
        }
        if let Some(has_characteristics) = tracked.has_characteristics {
            self.reasons.has_characteristics = has_characteristics;
        }
        if beyond {
            self.reasons.lasting = self
                .reasons
                .lasting
                .or(Some("it has set a variable that is not followed"));
        }
        if tracked.state && !is_named {
            self.reasons.lasting = self
                .reasons
                .lasting
                .or(Some("it has changed what the server does not name"));
        }
    }

    /// Handles a response that may be complete.
    pub(super) fn check_reply(&mut self, exchange: &mut Exchange<'_, '_>) -> Result<(), Complaint> {
        if self.turn == Turn::Replying && self.reply.is_done() {
            if !self.partial.is_empty() {
                return Err(unasked());
            }
            self.turn = Turn::Command;
            let has_failed = self.reply.has_failed();
            match std::mem::take(&mut self.under_way) {
                UnderWay::Nothing => {}
                UnderWay::Prepare(preparing) => self.was_prepared(*preparing, has_failed),
                UnderWay::Execute(number, had_cursor) => {
                    self.was_executed(exchange, number, has_failed.then_some(had_cursor));
                }
                UnderWay::Fetch(number) => {
                    let is_over = !has_failed && self.reply.status().has_sent_last_row();
                    self.let_go(exchange, number, |own| own.has_cursor &= !is_over);
                }
                UnderWay::Reset(number) => {
                    self.let_go(exchange, number, |own| {
                        own.has_cursor &= has_failed;
                        own.has_long_data &= has_failed;
                        own.has_failed &= has_failed;
                    });
                }
            }
            let may_set_and_fail = std::mem::take(&mut self.may_set_and_fail);
            if has_failed {
                exchange.work.fail();
                if may_set_and_fail {
                    let reason = Some("it may have set what the server has not reported");
                    self.reasons.lasting = self.reasons.lasting.or(reason);
                    self.reply.doubt_autocommit();
                }
            }
            let status = self.reply.status();
            self.flags = status.of_session();
            exchange.work.next_statement();
            // An error has no status. Without autocommit, what failed may have begun a transaction.
            let may_have_begun = has_failed && status.is_autocommit_off();
            return match may_have_begun {
                true => Ok(()),
                false => self.end_statement(exchange),
            };
        }
        Ok(())
    }
}

/// Whether a packet ends rows. A row that begins like it is longer.
fn is_end_of_rows(packet: &[u8]) -> bool {
    packet.first() == Some(&EOF) && packet.len() < EOF_BYTES_MAX
}

/// A server that ends says so at any time. It is no answer to what comes next.
pub(super) fn unasked() -> Complaint {
    Complaint::malformed("the backend says what nobody has asked for")
}

fn unread() -> Complaint {
    Complaint::malformed("an OK packet of the backend's")
}
