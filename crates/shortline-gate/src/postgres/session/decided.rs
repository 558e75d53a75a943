//! What becomes of a unit of work once the gate has decided, or its client has cancelled it.

use std::task::{Context, Poll};
use std::time::Duration;

use super::{Dropping, Fault, Session};
use crate::postgres::conversation::Status;
use crate::postgres::frame::{HEADER_BYTES, Header};
use crate::postgres::reply::{Complaint, notice, query, ready_for_query};
use crate::postgres::unit::{FAILING_STATEMENT, Failing, Unit};
use crate::relay::Running;

/// What a backend may send in answer to [`FAILING_STATEMENT`].
const FAILING_BYTES_MAX: u32 = 64 * 1024;

impl Session {
    /// Minds what the gate has decided. False if nothing has changed.
    pub(super) fn advance_unit(&mut self, context: &mut Context<'_>) -> bool {
        match &mut self.unit {
            Unit::Waiting(admission) => {
                if !self.handle.is_waiting() {
                    self.unit = Unit::Refused(cancelled());
                    return true;
                }
                let Poll::Ready(answer) = admission.poll(context) else {
                    return false;
                };
                self.unit = match answer {
                    _ if !self.handle.end_waiting() => Unit::Refused(cancelled()),
                    Err(refused) => Unit::Refused(Complaint::from(&refused)),
                    Ok(admitted) => {
                        self.tell_wait(context, admitted.waited());
                        Unit::Running(Running::new(admitted))
                    }
                };
                true
            }
            Unit::Refused(complaint)
                if self.conversation.is_answered() && self.from_server.is_between_messages() =>
            {
                let complaint = complaint.clone();
                if self.conversation.status() == Status::Open {
                    self.server.send(context, &query(FAILING_STATEMENT));
                    self.unit = Unit::Failing(Failing {
                        complaint,
                        received: Vec::new(),
                    });
                } else {
                    self.say_refused(context, &complaint);
                }
                true
            }
            _ => false,
        }
    }

    /// Tells the client that it had to wait, if that is wanted and it waited for long.
    fn tell_wait(&mut self, context: &mut Context<'_>, waited: Duration) {
        let wanted = self.shared.config.notice_after;
        let is_long = wanted.is_some_and(|notice_after| waited >= notice_after);
        if is_long && self.from_server.is_between_messages() {
            let text = format!("waited {} ms for admission", waited.as_millis());
            self.client.send(context, &notice(&text));
        }
    }

    /// Ends the refused request as the backend ends one that failed.
    fn say_refused(&mut self, context: &mut Context<'_>, complaint: &Complaint) {
        self.unit = Unit::None;
        self.client.send(context, &complaint.error());
        let is_extended = matches!(self.held.first(), Some(b'P' | b'B' | b'E' | b'D' | b'C'));
        if is_extended {
            self.dropping = Dropping::UntilSync;
        } else {
            self.dropping = Dropping::Message;
            let ready = ready_for_query(self.conversation.status());
            self.client.send(context, &ready);
        }
    }

    /// Takes the answer to [`FAILING_STATEMENT`] from what the backend sends. Returns what is not
    /// part of it and goes to the client.
    pub(super) fn fail_transaction(&mut self, context: &mut Context<'_>) -> Result<Vec<u8>, Fault> {
        let Unit::Failing(failing) = &mut self.unit else {
            return Ok(Vec::new());
        };
        let mut received = std::mem::take(&mut failing.received);
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
                    self.client.send(context, &others);
                    others = received.split_off(at);
                    self.say_refused(context, &complaint);
                    return Ok(others);
                }
                _ => others.extend_from_slice(&message[..header.message_bytes()]),
            }
        }
        failing.received = received.split_off(at);
        Ok(others)
    }
}

fn cancelled() -> Complaint {
    Complaint::new("57014", "canceling statement due to user request")
}
