//! From the backend to the client. Every message passes unchanged. This finds the end of the unit.

use super::refusal::Refusing;
use super::{Fault, Postgres};
use crate::postgres::conversation::Status;
use crate::relay::{Exchange, Work};

impl Postgres {
    pub(super) fn pass_to_client(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let others;
        let bytes = match &self.refusal {
            Refusing::Failing(_) => {
                others = self.fail_transaction(exchange, bytes)?;
                &others
            }
            _ => bytes,
        };
        self.note_received(exchange.work, bytes)?;
        exchange.to_client(bytes);
        Ok(())
    }

    /// Looks at the backend's messages as they go to the client.
    fn note_received(&mut self, work: &mut Work, bytes: &[u8]) -> Result<(), Fault> {
        if !self.is_gated {
            return Ok(());
        }
        let mut at = 0;
        // Only ReadyForQuery's status is needed.
        let wanted = |tag| usize::from(tag == b'Z');
        while let Some(message) = self.from_server.next(bytes, &mut at, wanted)? {
            let (tag, status) = (message.tag, message.start.first().copied());
            self.was_told = tag == b'E';
            match (tag, status) {
                (b'Z', Some(status)) => self.received_ready(work, Status::parse(status)),
                (b'E', _) => {
                    self.conversation.received(tag);
                    work.fail();
                }
                (b'C', _) => {
                    self.conversation.received(tag);
                    work.next_statement();
                }
                _ => self.conversation.received(tag),
            }
        }
        self.from_server.forget();
        Ok(())
    }

    fn received_ready(&mut self, work: &mut Work, status: Status) {
        self.conversation.received_ready(status);
        if self.conversation.is_quiet() {
            self.is_throttled = false;
        }
        self.finish_if_over(work);
    }

    /// Ends the unit if it is over. A message that has partly gone to the backend still belongs to
    /// it.
    pub(super) fn finish_if_over(&mut self, work: &mut Work) {
        if work.is_running()
            && self.conversation.is_over()
            && self.from_client.is_between_messages()
        {
            work.finish();
        }
    }
}
