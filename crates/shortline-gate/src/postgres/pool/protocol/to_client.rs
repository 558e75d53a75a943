//! From the backend to the client. Answers to the pool's own messages are dropped. The gate adds the answers to
//! messages that the backend never received. This also finds the end of the unit.

use super::{Fault, Phase, Pooled};
use crate::postgres::conversation::Status;
use crate::postgres::frame::{HEADER_BYTES, Header};
use crate::postgres::messages::text;
use crate::postgres::pool::leaving::tag_leaves_state;
use crate::postgres::pool::login::{error_field, parameter};
use crate::postgres::pool::pipeline::Fate;
use crate::postgres::reply::Complaint;
use crate::relay::Exchange;

/// The longest body that is read whole, in bytes. A RowDescription of 1,600 columns with names of 63 bytes fits.
const LOOKED_AT_BYTES_MAX: u32 = 1 << 20;

/// Whether messages of this type come unasked: notifications, errors that end the connection, notices, parameters.
fn is_unasked(tag: u8) -> bool {
    matches!(tag, b'A' | b'E' | b'N' | b'S')
}

/// Whether they are others of a backend, after login (PostgreSQL's documentation, 55.7).
fn is_answer(tag: u8) -> bool {
    matches!(
        tag,
        b'1' | b'2'
            | b'3'
            | b'C'
            | b'D'
            | b'G'
            | b'H'
            | b'I'
            | b'T'
            | b'V'
            | b'W'
            | b'Z'
            | b'c'
            | b'd'
            | b'n'
            | b's'
            | b't'
    )
}

/// The SQLSTATE of what a cancel request has ended.
const CANCELLED: &str = "57014";
/// The SQLSTATE for a prepared statement that the connection does not have. It may be one of the pool's own, or any
/// that a client names.
const NO_SUCH_STATEMENT: &str = "26000";

/// The server's function that refuses a statement whose table has changed since it was prepared (SQLSTATE 0A000,
/// which others have too).
const PLAN_HAS_CHANGED: &str = "RevalidateCachedQuery";

impl Pooled {
    pub(super) fn pass_to_client(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let joined;
        let bytes = match self.partial.is_empty() {
            true => bytes,
            false => {
                let mut partial = std::mem::take(&mut self.partial);
                partial.extend_from_slice(bytes);
                joined = partial;
                &joined
            }
        };
        let (mut sent, mut at) = (0, 0);
        while at < bytes.len() {
            if self.server_body_left > 0 {
                let passed = self.server_body_left.min(bytes.len() - at);
                self.server_body_left -= passed;
                at += passed;
                continue;
            }
            let rest = &bytes[at..];
            let body_bytes_max = self.shared.config.relay.limits.message_bytes_max;
            let header = Header::first_of(rest, body_bytes_max)?;
            if let Some(&tag) = rest.first().filter(|tag| !self.may_come(**tag)) {
                return Err(Fault::Tag(tag));
            }
            let Some(header) = header.filter(|header| self.has_come(*header, rest)) else {
                self.partial = rest.to_vec();
                break;
            };
            let come = header.message_bytes().min(rest.len());
            let is_passed = self.receive(exchange, header, &rest[HEADER_BYTES..come])?;
            if !is_passed {
                exchange.to_client(&bytes[sent..at]);
                sent = at + come;
            }
            at += come;
            self.server_body_left = header.message_bytes() - come;
            if self.pipeline.has_put() {
                exchange.to_client(&bytes[sent..at]);
                sent = at;
                self.put_in(exchange);
            }
        }
        exchange.to_client(&bytes[sent..at]);
        self.finish_if_over(exchange);
        Ok(())
    }

    /// Whether the backend may send a message of this type now. Bytes that are no message at all must not be taken for
    /// the beginning of a long one.
    fn may_come(&self, tag: u8) -> bool {
        // Before the unit has sent anything, nothing is answered but what the gate itself has sent.
        match self.is_relaying() && !self.has_sent && self.pipeline.is_empty() {
            true => is_unasked(tag),
            false => is_unasked(tag) || is_answer(tag),
        }
    }

    /// Whether enough of a message has come to handle it. Rows and similar messages pass in pieces.
    fn has_come(&self, header: Header, bytes: &[u8]) -> bool {
        let goes_through = matches!(header.tag, b'D' | b'd' | b'N' | b'A' | b't' | b'V');
        let goes_through = goes_through && self.is_relaying() && !self.pipeline.is_hidden();
        let is_long = header.body_bytes > LOOKED_AT_BYTES_MAX;
        goes_through || is_long || bytes.len() >= header.message_bytes()
    }

    /// Handles a message whose body, or its start, has come. Returns whether it goes to the client.
    fn receive(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        header: Header,
        body: &[u8],
    ) -> Result<bool, Fault> {
        match &mut self.phase {
            Phase::Applying(_) => {
                match header.tag {
                    b'E' => return Err(unset(body).into()),
                    b'Z' => self.applied(exchange),
                    _ => {}
                }
                Ok(header.tag == b'A')
            }
            Phase::Looking(found) => {
                match header.tag {
                    b'D' => found.take_row(body),
                    b'E' => {
                        found.is_unknown = true;
                        found.is_cancelled = error_field(body, b'C') == CANCELLED;
                    }
                    b'Z' => self.looked(exchange)?,
                    // Notifications and notices.
                    b'A' | b'N' => return Ok(true),
                    _ => {}
                }
                Ok(false)
            }
            Phase::Relaying if header.tag == b'E' && self.pipeline.is_hidden() => {
                Err(not_begun(body).into())
            }
            Phase::Relaying => Ok(self.receive_answer(exchange, header, body)),
            Phase::Resting | Phase::Acquiring(_) => {
                if header.tag == b'S' && self.held.is_some() {
                    let (name, value) = parameter(body);
                    self.report(name, value);
                }
                // The last words of a connection that the session keeps.
                self.was_told = header.tag == b'E';
                Ok(true)
            }
        }
    }

    fn receive_answer(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        header: Header,
        body: &[u8],
    ) -> bool {
        self.was_told = header.tag == b'E';
        match header.tag {
            b'Z' => {
                let status = body
                    .first()
                    .map_or(Status::Open, |status| Status::parse(*status));
                self.conversation.received_ready(status);
                if self.conversation.is_quiet() {
                    self.is_throttled = false;
                }
                self.pipeline.ready(self.conversation.is_answered())
            }
            b'E' => {
                exchange.work.fail();
                self.conversation.failed(self.pipeline.is_extended());
                if self.pipeline.is_extended() {
                    let lost = self.pipeline.fail();
                    self.undo(lost);
                }
                if error_field(body, b'C') == NO_SUCH_STATEMENT {
                    self.held().known.prepared.named.doubt();
                }
                if error_field(body, b'R') == PLAN_HAS_CHANGED {
                    self.retire_prepared();
                }
                true
            }
            b'S' => {
                let (name, value) = parameter(body);
                self.report(name, value);
                true
            }
            tag => {
                self.conversation.received(tag);
                if tag == b'C' {
                    self.note_command(exchange, body);
                }
                let fate = self.pipeline.receive(tag);
                self.is_throttled &= self.conversation.is_full() || self.pipeline.is_full();
                match fate {
                    Fate::Passed => true,
                    Fate::Hidden => false,
                    Fate::Prepared(prepares) => {
                        self.was_prepared(&prepares);
                        prepares.client_name.is_some()
                    }
                }
            }
        }
    }

    fn note_command(&mut self, exchange: &mut Exchange<'_, '_>, body: &[u8]) {
        exchange.work.next_statement();
        self.may_leave_state |= tag_leaves_state(body);
        match text(body).0 {
            b"RESET" => self.has_reset = true,
            b"DISCARD ALL" => {
                self.has_reset = true;
                // What was sent behind it may have set something.
                self.is_beyond_following &= !self.pipeline.is_last();
                self.forget_prepared();
            }
            b"LOAD" => self.is_beyond_following = true,
            b"DEALLOCATE ALL" => self.forget_prepared(),
            b"DEALLOCATE" => self.held().known.prepared.named.doubt(),
            _ => {}
        }
    }

    /// Sends the answers of the gate that are now due.
    pub(super) fn put_in(&mut self, exchange: &mut Exchange<'_, '_>) {
        while let Some(answer) = self.pipeline.take_put() {
            exchange.to_client(&answer);
        }
    }
}

/// The error for a transaction that the client was told is open, and the server does not begin. What the client has sent
/// in it must not count as done.
fn not_begun(body: &[u8]) -> Complaint {
    let reason = error_field(body, b'M');
    Complaint::new("08006", format!("the transaction was not begun: {reason}"))
}

/// The error for settings that cannot be put on the connection. The session must not run with other settings.
fn unset(body: &[u8]) -> Complaint {
    let reason = error_field(body, b'M');
    Complaint::new(
        "08006",
        format!("the session's settings cannot be put on another connection: {reason}"),
    )
}
