//! From the client to the backend. Messages pass, are held, or are dropped because the client was
//! refused.

use super::{Mysql, Turn};
use crate::mysql::complaint::Complaint;
use crate::mysql::packet::{Found, Header};
use crate::relay::Exchange;

impl Mysql {
    /// Handles the client's next bytes. Returns how many of them are done; the rest is held.
    pub(super) fn pass_to_server(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &mut [u8],
    ) -> Result<usize, Complaint> {
        let (mut sent, mut at) = (0, 0);
        while at < bytes.len() {
            match &self.turn {
                Turn::Command => {
                    // Renumbering restarts with each command.
                    if self.frames.is_some() {
                        self.send(exchange, &mut bytes[sent..at]);
                        sent = at;
                    }
                    self.begin(exchange, &bytes[at..])?;
                    if matches!(self.turn, Turn::Command) {
                        break;
                    }
                }
                // A number of 0 begins a command, which must wait for the server's verdict.
                Turn::Authentication
                    if self.scanner.is_between_messages()
                        && Header::first_of(&bytes[at..]).is_none_or(|next| next.sequence == 0) =>
                {
                    break;
                }
                Turn::Sending { .. } | Turn::File { .. } | Turn::Authentication => {
                    self.forward(bytes, &mut at)?;
                }
                Turn::Dropping(_) => {
                    self.send(exchange, &mut bytes[sent..at]);
                    self.drop_command(exchange, bytes, &mut at);
                    sent = at;
                }
                Turn::Stream => at = bytes.len(),
                Turn::Waiting | Turn::Replying => break,
            }
        }
        self.send(exchange, &mut bytes[sent..at]);
        self.check_reply(exchange.work);
        Ok(at)
    }

    fn send(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &mut [u8]) {
        if self.frames.is_some() && self.turn != Turn::Stream {
            self.renumbering.apply(bytes);
        }
        exchange.to_server(bytes);
    }

    /// Moves `at` over what passes to the backend, at most to the end of a message.
    fn forward(&mut self, bytes: &[u8], at: &mut usize) -> Result<(), Complaint> {
        let message_bytes_max = u64::from(self.shared.config.limits.message_bytes_max);
        let is_end = loop {
            match self.scanner.next(bytes, at) {
                None => break false,
                Some(Found::End) => break true,
                Some(Found::Start { payload_bytes, .. }) => {
                    if let Turn::File { is_empty } = &mut self.turn {
                        *is_empty = payload_bytes == 0;
                    }
                }
            }
        };
        if self.scanner.message_bytes() > message_bytes_max {
            return Err(Complaint::too_long(message_bytes_max));
        }
        if is_end {
            self.turn = match std::mem::replace(&mut self.turn, Turn::Replying) {
                Turn::Sending { has_response: true } if self.reply.is_authentication() => {
                    Turn::Authentication
                }
                Turn::Sending {
                    has_response: false,
                } => Turn::Command,
                Turn::Sending { .. } | Turn::File { is_empty: true } => Turn::Replying,
                other => other,
            };
        }
        Ok(())
    }

    /// Drops the rest of a refused command. Sends the reason when it is complete.
    fn drop_command(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &[u8], at: &mut usize) {
        while let Some(found) = self.scanner.next(bytes, at) {
            if found != Found::End {
                continue;
            }
            if let Turn::Dropping(complaint) = std::mem::replace(&mut self.turn, Turn::Command) {
                let sequence = self.scanner.sequence().wrapping_add(1);
                self.send_to_client(exchange, &complaint.packet(sequence));
            }
            return;
        }
    }
}
