//! From the backend to the client. Every message passes unchanged. This notes where a response
//! ends, and with it the unit.

use super::{Afterwards, Mysql, Turn};
use crate::relay::{Exchange, Work};

impl Mysql {
    pub(super) fn pass_to_client(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &[u8]) {
        if self.turn != Turn::Stream {
            self.reply.follow(bytes);
            if self.reply.take_file_wanted() && self.turn == Turn::Replying {
                self.turn = Turn::File { is_empty: false };
                self.renumbering
                    .begin(self.reply.sequence().wrapping_add(1));
            }
            if self.turn == Turn::Authentication {
                self.renumbering
                    .begin(self.reply.sequence().wrapping_add(1));
            }
        }
        // The client of a KILL may inform its victim at once. By then the victim's wait must have
        // ended.
        self.check_reply(exchange.work);
        self.send_to_client(exchange, bytes);
    }

    /// Handles a response that may be complete.
    pub(super) fn check_reply(&mut self, work: &mut Work) {
        if !matches!(self.turn, Turn::Replying | Turn::Authentication) || !self.reply.is_done() {
            return;
        }
        self.turn = Turn::Command;
        let has_failed = self.reply.has_failed();
        let Afterwards {
            prepares,
            resets,
            kills,
        } = std::mem::take(&mut self.afterwards);
        if let (Some(statement), Some(prepared)) = (self.reply.prepared(), prepares) {
            self.statements.prepared(statement, prepared);
        }
        if resets && !has_failed {
            self.statements.clear();
        }
        if let (Some(thread_id), false) = (kills, has_failed) {
            // The backend allows the client to do this. It does not know of a statement that still
            // waits here. (It closes a connection that it kills, which ends a wait too.)
            self.shared.waits.cancel(&thread_id);
        }
        if has_failed {
            work.fail();
        }
        work.next_statement();
        if !self.reply.status().is_in_transaction() {
            work.finish();
        }
    }

    /// Sends bytes to the client, in frames if it compresses.
    pub(super) fn send_to_client(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &[u8]) {
        match &mut self.frames {
            Some(frames) => frames.send(exchange, bytes),
            None => exchange.to_client(bytes),
        }
    }
}
