//! From the backend to the client: every message goes on as it is; what ends the unit is noticed.

use std::task::{Context, Poll};

use super::{Fault, Session};
use crate::postgres::conversation::Status;
use crate::postgres::unit::Unit;
use crate::relay::with_scratch;

impl Session {
    pub(super) fn relay_to_client(&mut self, context: &mut Context<'_>) -> Result<bool, Fault> {
        if self.client.poll_flush(context).is_pending() || self.server.is_ended {
            return Ok(false);
        }
        with_scratch(|scratch| match self.server.poll_read(context, scratch) {
            Poll::Pending => Ok(false),
            Poll::Ready(read) => {
                self.take_from_server(context, &scratch[..read])?;
                Ok(true)
            }
        })
    }

    pub(super) fn take_from_server(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        if self.client.is_ended || self.client.is_broken {
            self.unread_bytes += bytes.len();
        }
        let bytes = match &mut self.unit {
            Unit::Failing(failing) => {
                failing.received.extend_from_slice(bytes);
                self.fail_transaction(context)?
            }
            _ => {
                self.note_received(bytes)?;
                self.client.send(context, bytes);
                return Ok(());
            }
        };
        self.note_received(&bytes)?;
        self.client.send(context, &bytes);
        Ok(())
    }

    /// Looks at the backend's messages as they go to the client.
    fn note_received(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if !self.is_gated {
            return Ok(());
        }
        let mut at = 0;
        // Of ReadyForQuery the status is wanted.
        let wanted = |tag| usize::from(tag == b'Z');
        while let Some(message) = self.from_server.next(bytes, &mut at, wanted)? {
            let (tag, status) = (message.tag, message.start.first().copied());
            self.was_told = tag == b'E';
            match (tag, status) {
                (b'Z', Some(status)) => self.received_ready(Status::parse(status)),
                (b'E', _) => {
                    self.conversation.received(tag);
                    if let Unit::Running(running) = &mut self.unit {
                        running.fail();
                    }
                }
                (b'C', _) => {
                    self.conversation.received(tag);
                    if let Unit::Running(running) = &mut self.unit {
                        running.next_statement();
                    }
                }
                _ => self.conversation.received(tag),
            }
        }
        self.from_server.forget();
        Ok(())
    }

    fn received_ready(&mut self, status: Status) {
        self.conversation.received_ready(status);
        if self.conversation.is_quiet() {
            self.is_throttled = false;
        }
        self.finish_if_over();
    }

    /// Ends the unit if nothing of it is left. A message that has begun to go to the backend
    /// belongs to it.
    pub(super) fn finish_if_over(&mut self) {
        if self.unit.is_running()
            && self.conversation.is_over()
            && self.from_client.is_between_messages()
            && let Unit::Running(running) = std::mem::take(&mut self.unit)
        {
            running.finish();
        }
    }
}
