//! From the client to the backend: what goes on, what is held, and what is dropped because the client
//! has been refused.

use std::task::{Context, Poll};

use super::{Session, Turn};
use crate::mysql::complaint::Complaint;
use crate::mysql::packet::{Found, HEADER_BYTES, Header};
use crate::relay::{SCRATCH_BYTES, with_scratch};

impl Session {
    pub(super) fn relay_to_server(&mut self, context: &mut Context<'_>) -> Result<bool, Complaint> {
        if self.server.poll_flush(context).is_pending() {
            return Ok(false);
        }
        if !self.held.is_empty() && self.take_held(context)? {
            return Ok(true);
        }
        let room = self.room();
        if room == 0 {
            return Ok(false);
        }
        if let Some(frames) = &mut self.frames {
            let plain_bytes_max = self.held.len() + room;
            let (client, held) = (&mut self.client, &mut self.held);
            return match frames.poll_decode(client, context, held, plain_bytes_max) {
                Poll::Pending => Ok(false),
                Poll::Ready(decoded) => decoded.map(|()| true).map_err(Complaint::malformed),
            };
        }
        if self.client.is_ended {
            return Ok(false);
        }
        with_scratch(
            |scratch| match self.client.poll_read(context, &mut scratch[..room]) {
                Poll::Pending => Ok(false),
                Poll::Ready(read) if self.held.is_empty() => {
                    let taken = self.pass_to_server(context, &mut scratch[..read])?;
                    self.held.extend_from_slice(&scratch[taken..read]);
                    Ok(true)
                }
                Poll::Ready(read) => {
                    self.held.extend_from_slice(&scratch[..read]);
                    Ok(true)
                }
            },
        )
    }

    /// How much more is taken from the client, in bytes.
    fn room(&self) -> usize {
        let goes_through = match self.turn {
            Turn::Command => self.unit.is_running() && self.held.is_empty(),
            Turn::Waiting | Turn::Replying | Turn::Authentication => false,
            _ => true,
        };
        if goes_through {
            return SCRATCH_BYTES;
        }
        // A statement is read with its header and the byte that says that it is one.
        let held_bytes_max = self.shared.config.limits.held_bytes_max + HEADER_BYTES + 1;
        held_bytes_max
            .saturating_sub(self.held.len())
            .min(SCRATCH_BYTES)
    }

    /// Sends of what is held what may go on. False if nothing may.
    fn take_held(&mut self, context: &mut Context<'_>) -> Result<bool, Complaint> {
        let mut held = std::mem::take(&mut self.held);
        let before = std::mem::discriminant(&self.turn);
        let taken = self.pass_to_server(context, &mut held)?;
        self.held = held;
        if taken == self.held.len() {
            // Not only emptied: an idle session keeps no memory.
            self.held = Vec::new();
        } else if taken > 0 {
            self.held.drain(..taken);
        }
        Ok(taken > 0 || before != std::mem::discriminant(&self.turn))
    }

    /// Deals with the client's next bytes and returns how many of them are done with; the rest is
    /// to be held.
    fn pass_to_server(
        &mut self,
        context: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Result<usize, Complaint> {
        let (mut sent, mut at) = (0, 0);
        while at < bytes.len() {
            match &self.turn {
                Turn::Command => {
                    // Renumbering begins anew with each command.
                    if self.frames.is_some() {
                        self.send(context, &mut bytes[sent..at]);
                        sent = at;
                    }
                    self.begin(context, &bytes[at..])?;
                    if matches!(self.turn, Turn::Command) {
                        break;
                    }
                }
                // A number of 0 begins a command, which has to wait for the server's verdict.
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
                    self.send(context, &mut bytes[sent..at]);
                    self.drop_command(context, bytes, &mut at);
                    sent = at;
                }
                Turn::Stream => at = bytes.len(),
                Turn::Waiting | Turn::Replying => break,
            }
        }
        self.send(context, &mut bytes[sent..at]);
        self.mind_reply();
        Ok(at)
    }

    fn send(&mut self, context: &mut Context<'_>, bytes: &mut [u8]) {
        if self.frames.is_some() && self.turn != Turn::Stream {
            self.renumbering.apply(bytes);
        }
        self.server.send(context, bytes);
    }

    /// Moves `at` over what goes on to the backend, up to the end of a message at most.
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

    /// Drops the rest of a refused command, and says why when it has come whole.
    fn drop_command(&mut self, context: &mut Context<'_>, bytes: &[u8], at: &mut usize) {
        while let Some(found) = self.scanner.next(bytes, at) {
            if found != Found::End {
                continue;
            }
            if let Turn::Dropping(complaint) = std::mem::replace(&mut self.turn, Turn::Command) {
                let sequence = self.scanner.sequence().wrapping_add(1);
                self.send_to_client(context, &complaint.packet(sequence));
            }
            return;
        }
    }
}
