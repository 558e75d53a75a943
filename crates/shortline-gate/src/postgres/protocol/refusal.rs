//! Refuses a unit of work that is not admitted or that its client has cancelled.

use std::time::Duration;

use super::{Dropping, Fault, Postgres};
use crate::postgres::conversation::Status;
use crate::postgres::frame::{HEADER_BYTES, Header};
use crate::postgres::reply::{Complaint, notice, query, ready_for_query};
use crate::relay::Exchange;

/// The longest message in the answer to [`FAILING_STATEMENT`], in bytes of its body.
const FAILING_BYTES_MAX: u32 = 64 * 1024;

/// Makes a transaction fail, and does nothing else. Its error appears in the backend's log.
const FAILING_STATEMENT: &str =
    "ROLLBACK TO SAVEPOINT \"shortline refused a statement of this transaction\"";

/// The progress of a refusal.
#[derive(Debug, Default)]
pub enum Refusing {
    /// Nothing is refused.
    #[default]
    None,
    /// The client gets the error as soon as its earlier requests are answered.
    Due(Complaint),
    /// The unit was refused inside a transaction. The backend must fail that transaction first.
    Failing(Failing),
}

/// A transaction that must fail at the backend before the client gets the error.
#[derive(Debug)]
pub struct Failing {
    /// The error for the client.
    complaint: Complaint,
    /// The start of an incomplete message from the backend.
    received: Vec<u8>,
}

impl Postgres {
    /// Sends the client a notice if it waited at least `notice_after`.
    pub(super) fn tell_wait(&mut self, exchange: &mut Exchange<'_, '_>, waited: Duration) {
        let wanted = self.shared.config.notice_after;
        let is_long = wanted.is_some_and(|notice_after| waited >= notice_after);
        if is_long && self.from_server.is_between_messages() {
            let text = format!("waited {} ms for admission", waited.as_millis());
            exchange.to_client(&notice(&text));
        }
    }

    /// Sends a refusal that is due, once the client has the answers to its earlier requests.
    /// Returns false if there is nothing to do.
    pub(super) fn refuse_when_answered(&mut self, exchange: &mut Exchange<'_, '_>) -> bool {
        let Refusing::Due(complaint) = &self.refusal else {
            return false;
        };
        if !self.conversation.is_answered() || !self.from_server.is_between_messages() {
            return false;
        }
        let complaint = complaint.clone();
        if self.conversation.status() == Status::Open {
            exchange.to_server(&query(FAILING_STATEMENT));
            self.refusal = Refusing::Failing(Failing {
                complaint,
                received: Vec::new(),
            });
        } else {
            self.say_refused(exchange, &complaint);
        }
        true
    }

    /// Ends the refused request as the backend would end a failed one.
    fn say_refused(&mut self, exchange: &mut Exchange<'_, '_>, complaint: &Complaint) {
        self.refusal = Refusing::None;
        exchange.to_client(&complaint.error());
        if self.is_extended {
            self.dropping = Dropping::UntilSync;
        } else {
            self.dropping = Dropping::Message;
            let ready = ready_for_query(self.conversation.status());
            exchange.to_client(&ready);
        }
    }

    /// Removes the answer to [`FAILING_STATEMENT`] from the backend's bytes. Returns the other
    /// messages, which go to the client.
    pub(super) fn fail_transaction(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<Vec<u8>, Fault> {
        let Refusing::Failing(failing) = &mut self.refusal else {
            return Ok(Vec::new());
        };
        let mut received = std::mem::take(&mut failing.received);
        received.extend_from_slice(bytes);
        let mut others = Vec::new();
        let mut at = 0;
        while let Some(header) = Header::first_of(&received[at..], FAILING_BYTES_MAX)? {
            let message = &received[at..];
            if message.len() < header.message_bytes() {
                break;
            }
            at += header.message_bytes();
            match header.tag {
                b'E' => {}
                b'Z' => {
                    let complaint = failing.complaint.clone();
                    let status = message.get(HEADER_BYTES).copied().unwrap_or_default();
                    self.conversation.received_ready(Status::parse(status));
                    exchange.to_client(&others);
                    others = received.split_off(at);
                    self.say_refused(exchange, &complaint);
                    return Ok(others);
                }
                _ => others.extend_from_slice(&message[..header.message_bytes()]),
            }
        }
        failing.received = received.split_off(at);
        Ok(others)
    }
}
