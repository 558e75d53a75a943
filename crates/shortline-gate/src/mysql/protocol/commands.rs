//! Decides for each command whether it goes to the server, waits or is refused.

use super::{Mysql, Turn};
use crate::classify::Class;
use crate::mysql::command::{Command, wanted_bytes};
use crate::mysql::complaint::Complaint;
use crate::mysql::control::{self, Control};
use crate::mysql::packet::{HEADER_BYTES, Header};
use crate::mysql::reply::Shape;
use crate::mysql::statements::Prepared;
use crate::relay::{Denied, Exchange};

impl Mysql {
    /// Reads the command at the front of `bytes` and decides what happens to it. Does nothing if
    /// too little of it has come to decide.
    pub(super) fn begin(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<(), Complaint> {
        let Some(header) = Header::first_of(bytes) else {
            return Ok(());
        };
        let limits = &self.shared.config.limits;
        if header.payload_bytes > limits.message_bytes_max {
            return Err(Complaint::too_long(limits.message_bytes_max.into()));
        }
        let payload_bytes = header.payload_bytes as usize;
        let body = &bytes[HEADER_BYTES..];
        let start = match body.first() {
            None if payload_bytes > 0 => return Ok(()),
            None => body,
            Some(_) if payload_bytes == 0 => &[],
            Some(&command) => {
                let wanted = wanted_bytes(command, limits.held_bytes_max).min(payload_bytes);
                match body.get(..wanted) {
                    Some(start) => start,
                    None => return Ok(()),
                }
            }
        };
        match Command::read(start, self.has_query_attributes) {
            Command::Query(_) | Command::Execute(_) if exchange.work.is_running() => {
                self.go(Some(Shape::Results));
            }
            Command::Query(text) => {
                let class = self.shared.class_of(text, &self.names.client());
                self.begin_unit(exchange, &class);
            }
            Command::Execute(statement) => match self.statements.get(statement) {
                Some(Prepared::Control) => self.go(Some(Shape::Results)),
                Some(Prepared::Work(class)) => self.begin_unit(exchange, &class),
                None => {
                    let class = self.shared.unknown.clone();
                    self.begin_unit(exchange, &class);
                }
            },
            Command::Prepare(text) => {
                self.afterwards.prepares = Some(match control::read(text) {
                    Control::Transaction => Prepared::Control,
                    _ => Prepared::Work(self.shared.class_of(text, &self.names.client())),
                });
                self.go(Some(Shape::Prepare));
            }
            Command::Kill { thread_id, shape } => {
                self.afterwards.kills = Some(thread_id);
                self.go(Some(shape));
            }
            Command::Reset(shape) => {
                self.afterwards.resets = true;
                self.go(Some(shape));
            }
            Command::Close(statement) => {
                self.statements.close(statement);
                self.go(None);
            }
            Command::Control => self.go(Some(Shape::Results)),
            Command::Other(shape) => self.go(Some(shape)),
            Command::Unanswered => self.go(None),
            Command::Stream => self.turn = Turn::Stream,
        }
        Ok(())
    }

    /// Sends the command to the server.
    pub(super) fn go(&mut self, shape: Option<Shape>) {
        if let Some(shape) = shape {
            self.reply.expect(shape);
        }
        self.renumbering.begin(0);
        self.turn = Turn::Sending {
            has_response: shape.is_some(),
        };
    }

    /// Submits the command, which is work. It goes to the server when it is admitted.
    fn begin_unit(&mut self, exchange: &mut Exchange<'_, '_>, class: &Class) {
        match exchange.work.ask(exchange.context, class) {
            Ok(()) if exchange.work.is_running() => self.go(Some(Shape::Results)),
            Ok(()) => self.turn = Turn::Waiting,
            Err(refused) => {
                self.turn = Turn::Dropping(Complaint::from(&Denied::Refused(refused)));
            }
        }
    }
}
