//! From the client to the backend. A message is answered by the gate, begins a unit, or passes. The names of
//! statements are changed in messages that pass.

use super::{Dropping, Fault, Phase, Pooled};
use crate::Gate;
use crate::classify::Class;
use crate::postgres::control::Control;
use crate::postgres::conversation::Status;
use crate::postgres::frame::{HEADER_BYTES, Header};
use crate::postgres::messages::{self, Bind, Parse, closed_statement, text};
use crate::postgres::opening::{Named, Opening, OpeningError, Reader};
use crate::postgres::pool::leaving::leaves_state;
use crate::postgres::pool::pipeline::Effect;
use crate::postgres::reply::{Complaint, command_complete, message, ready_for_query};
use crate::postgres::statements::Prepared;
use crate::postgres::{PREPARATION, UNKNOWN};
use crate::relay::{Denied, Exchange};

/// The most bytes of a statement's message that are waited for and read. Longer statements cannot be prepared.
const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// The result of handling the client's bytes.
enum Step {
    /// This many are done.
    Done(usize),
    /// None are done. Handle them again now.
    Again,
    /// They wait for another event, or for more bytes.
    Wait,
}

impl Pooled {
    /// Handles the client's next bytes. Returns how many of them are done. The caller holds the
    /// rest.
    pub(super) fn pass_to_server(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<usize, Fault> {
        let mut at = 0;
        self.wanted_bytes = 0;
        while at < bytes.len() {
            match self.step(exchange, &bytes[at..])? {
                Step::Done(done) => at += done,
                Step::Again => {}
                Step::Wait => break,
            }
        }
        self.asked = None;
        Ok(at)
    }

    fn step(&mut self, exchange: &mut Exchange<'_, '_>, bytes: &[u8]) -> Result<Step, Fault> {
        if let Some(complaint) = self.refusal.take() {
            return Err(complaint.into());
        }
        if self.client_body_left > 0 {
            let done = self.client_body_left.min(bytes.len());
            self.client_body_left -= done;
            if !self.is_body_dropped {
                self.send(exchange, &bytes[..done]);
            }
            self.finish_if_over(exchange);
            return Ok(Step::Done(done));
        }
        let body_bytes_max = self.shared.config.relay.limits.message_bytes_max;
        let Some(header) = Header::first_of(bytes, body_bytes_max)? else {
            return Ok(Step::Wait);
        };
        match self.phase {
            _ if self.dropping != Dropping::Nothing => {
                Ok(self.drop_message(exchange, header, bytes))
            }
            Phase::Resting if exchange.work.is_none() => self.begin(exchange, header, bytes),
            Phase::Relaying if !self.is_throttled && !self.waits_for_answer() => {
                self.relay_message(exchange, header, bytes)
            }
            _ => Ok(Step::Wait),
        }
    }

    /// Drops a message that belongs to a refused request.
    fn drop_message(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        header: Header,
        bytes: &[u8],
    ) -> Step {
        match (self.dropping, header.tag) {
            (_, b'X') => exchange.client.is_ended = true,
            (Dropping::Message, _) => self.dropping = Dropping::Nothing,
            (_, b'S') => {
                self.dropping = Dropping::Nothing;
                exchange.to_client(&ready_for_query(self.status()));
            }
            _ => {}
        }
        self.skip(header, bytes, true)
    }

    /// Finishes a message. The part that has come and the rest either pass or are dropped.
    fn skip(&mut self, header: Header, bytes: &[u8], is_dropped: bool) -> Step {
        let done = header.message_bytes().min(bytes.len());
        self.client_body_left = header.message_bytes() - done;
        self.is_body_dropped = is_dropped;
        Step::Done(done)
    }

    /// Handles a message of a client without a unit.
    fn begin(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        header: Header,
        bytes: &[u8],
    ) -> Result<Step, Fault> {
        match header.tag {
            b'S' => exchange.to_client(&ready_for_query(self.status())),
            b'H' | b'd' | b'c' | b'f' => {}
            b'X' => self.leave(exchange),
            b'C' => {
                let Some(body) = self.whole(header, bytes)? else {
                    return Ok(Step::Wait);
                };
                if let Some(name) = closed_statement(body) {
                    self.close(name);
                }
                exchange.to_client(&message(b'3', &[]));
            }
            b'Q' => return self.begin_query(exchange, header, bytes),
            b'P' | b'B' | b'E' | b'D' | b'F' => return self.begin_segment(exchange, bytes),
            tag => return Err(OpeningError::Tag(tag).into()),
        }
        Ok(self.skip(header, bytes, true))
    }

    /// Handles a Query of a client without a unit. It needs admission, unless it only begins a transaction, or ends
    /// one that did nothing.
    fn begin_query(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        header: Header,
        bytes: &[u8],
    ) -> Result<Step, Fault> {
        let has_come = bytes.len() >= header.message_bytes();
        if !has_come && bytes.len() < self.shared.config.relay.limits.held_bytes_max {
            return Ok(Step::Wait);
        }
        let statement = messages::query_text(messages::body(header, bytes));
        let control = has_come.then(|| Control::of(statement)).flatten();
        match (control, &self.begun) {
            (Some(Control::Begin(tag)), None) if self.status() == Status::Idle => {
                self.begun = Some(bytes[..header.message_bytes()].to_vec());
                exchange.to_client(&command_complete(tag));
            }
            (Some(Control::End(tag)), Some(_)) => {
                self.begun = None;
                exchange.to_client(&command_complete(tag));
            }
            _ => {
                self.is_extended = false;
                self.ask(exchange, &Named::Statement(statement), bytes);
                return Ok(Step::Again);
            }
        }
        // A Query removes the unnamed statement, whoever answers.
        self.close(b"");
        exchange.to_client(&ready_for_query(self.status()));
        Ok(Step::Done(header.message_bytes()))
    }

    /// Handles messages of the extended protocol, of a client without a unit.
    fn begin_segment(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<Step, Fault> {
        if let Some(done) = self.prepare_known(exchange, bytes)? {
            return Ok(Step::Done(done));
        }
        let limits = &self.shared.config.relay.limits;
        let reader = Reader {
            statements: &self.types,
            body_bytes_max: limits.message_bytes_max,
            held_bytes_max: limits.held_bytes_max,
            is_open: self.status() != Status::Idle,
        };
        let work = match reader.read(bytes)? {
            Opening::Incomplete => return Ok(Step::Wait),
            Opening::Work(work) => work,
            // Without a pool these pass without admission. Here they need a connection.
            Opening::Passes(_) => Named::Unknown,
        };
        self.is_extended = bytes[0] != b'F';
        self.ask(exchange, &work, bytes);
        Ok(Step::Again)
    }

    fn ask(&mut self, exchange: &mut Exchange<'_, '_>, work: &Named<'_>, bytes: &[u8]) {
        let class = match work {
            Named::Statement(text) => {
                let class = self.shared.class_of(text, &self.names.client());
                self.asked = Some((place_of(text), class.clone()));
                class
            }
            Named::Prepared(class) => class.clone(),
            Named::Preparation => PREPARATION.into(),
            Named::Unknown => UNKNOWN.into(),
        };
        let replica = self.replica_for(&class, bytes);
        self.submit(exchange, &class, replica);
    }

    /// Asks for the unit, at the primary or at a replica.
    pub(super) fn submit(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        class: &Class,
        replica: Option<(usize, Gate)>,
    ) {
        self.replica = replica.as_ref().map(|(at, _)| *at);
        self.class = replica.is_some().then(|| class.clone());
        let gate = replica.as_ref().map(|(_, gate)| gate);
        match exchange.work.ask_at(gate, exchange.context, class) {
            Ok(()) if exchange.work.is_running() => self.acquire(exchange),
            Ok(()) => {}
            Err(refused) => self.refuse(exchange, &Complaint::from(&Denied::Refused(refused))),
        }
    }

    /// Handles a message of a client whose unit has a connection.
    fn relay_message(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        header: Header,
        bytes: &[u8],
    ) -> Result<Step, Fault> {
        self.has_sent = true;
        let step = match header.tag {
            // The backend ignores these up to the Sync.
            b'P' | b'B' | b'E' | b'D' | b'C' | b'Q' | b'F' if self.pipeline.is_skipping() => {
                self.skip(header, bytes, false)
            }
            b'Q' | b'F' => return self.relay_query(exchange, header, bytes),
            b'P' => return self.relay_parse(exchange, header, bytes),
            b'B' => return self.relay_bind(exchange, header, bytes),
            b'D' | b'C' => return self.relay_named(exchange, header, bytes),
            b'X' => {
                self.leave(exchange);
                return Ok(self.skip(header, bytes, true));
            }
            b'E' => {
                self.pipeline.send();
                self.skip(header, bytes, false)
            }
            b'S' => {
                self.pipeline.send_sync();
                self.skip(header, bytes, false)
            }
            b'H' | b'd' | b'c' | b'f' => self.skip(header, bytes, false),
            tag => return Err(OpeningError::Tag(tag).into()),
        };
        self.conversation.sent(header.tag)?;
        self.forward(exchange, bytes, step)
    }

    fn forward(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
        step: Step,
    ) -> Result<Step, Fault> {
        if let Step::Done(done) = step {
            self.send(exchange, &bytes[..done]);
        }
        self.is_throttled |= self.conversation.is_full() || self.pipeline.is_full();
        // The rest of a failed COPY's data may come after the last answer.
        self.finish_if_over(exchange);
        Ok(step)
    }

    fn relay_query(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        header: Header,
        bytes: &[u8],
    ) -> Result<Step, Fault> {
        let has_come = bytes.len() >= header.message_bytes();
        if !has_come && bytes.len() < STATEMENT_BYTES_MAX {
            return self.want(header);
        }
        let body = messages::body(header, bytes);
        let statement = messages::query_text(body);
        if header.tag == b'F' {
            self.note_call(body);
        } else if !has_come || leaves_state(statement) {
            self.note_statement(statement, has_come);
        }
        // A Query removes the unnamed statement. Its text may remove others (DEALLOCATE, DISCARD).
        self.prepared.close(b"");
        self.types.close(b"");
        self.held().known.prepared.unnamed = None;
        self.conversation.sent(header.tag)?;
        self.pipeline.send_query();
        let step = self.skip(header, bytes, false);
        self.forward(exchange, bytes, step)
    }

    fn relay_parse(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        header: Header,
        bytes: &[u8],
    ) -> Result<Step, Fault> {
        if header.message_bytes() > STATEMENT_BYTES_MAX {
            let message = format!(
                "statements of more than {STATEMENT_BYTES_MAX} bytes cannot be prepared through a pool"
            );
            return Err(Complaint::new("54000", message).into());
        }
        let Some(body) = self.whole(header, bytes)? else {
            return Ok(Step::Wait);
        };
        let name = text(body).0;
        let rest = &body[(name.len() + 1).min(body.len())..];
        if self.parse_waits(name, rest) {
            return Ok(Step::Wait);
        }
        let parsed = Parse::read(body);
        let prepared = match &self.asked {
            // The gate was asked for this very statement, which is no control then.
            Some((place, class)) if *place == place_of(parsed.text) => {
                Prepared::Work(class.clone())
            }
            _ => self.shared.prepared(parsed.text, &self.names.client()),
        };
        self.types.prepare(name, prepared);
        self.conversation.sent(b'P')?;
        self.parse(exchange, name, rest)?;
        self.forward(exchange, bytes, Step::Done(0))?;
        Ok(Step::Done(header.message_bytes()))
    }

    fn relay_bind(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        header: Header,
        bytes: &[u8],
    ) -> Result<Step, Fault> {
        let body = messages::body(header, bytes);
        let names = body
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == 0)
            .map(|(at, _)| at + 1);
        let Some(names_bytes) = names.take(2).nth(1) else {
            return match bytes.len() >= header.message_bytes() {
                true => Err(Complaint::new("08P01", "invalid Bind message").into()),
                false => self.want(header),
            };
        };
        let portal = text(body).0;
        let name = Bind::read(body).statement;
        if self.use_waits(name) {
            return Ok(Step::Wait);
        }
        let there = self.provide(exchange, name)?;
        let (rest, names) = (&body[names_bytes..], names_bytes - name.len() + there.len());
        let mut head = Vec::with_capacity(HEADER_BYTES + portal.len() + there.len() + 2);
        head.push(b'B');
        head.extend(length_of(header.body_bytes as usize - names_bytes + names)?);
        head.extend_from_slice(portal);
        head.push(0);
        head.extend_from_slice(&there);
        head.push(0);
        self.pipeline.send();
        self.conversation.sent(b'B')?;
        self.send(exchange, &head);
        self.send(exchange, rest);
        let step = self.skip(header, bytes, false);
        self.forward(exchange, &[], Step::Wait)?;
        Ok(step)
    }

    /// Handles a Describe or Close, of a statement or a portal.
    fn relay_named(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        header: Header,
        bytes: &[u8],
    ) -> Result<Step, Fault> {
        let Some(body) = self.whole(header, bytes)? else {
            return Ok(Step::Wait);
        };
        let waits = closed_statement(body).is_some_and(|name| match header.tag {
            b'C' => self.close_waits(name),
            _ => self.use_waits(name),
        });
        if waits {
            return Ok(Step::Wait);
        }
        self.conversation.sent(header.tag)?;
        match (header.tag, closed_statement(body)) {
            (b'C', Some(name)) => {
                let effect = Effect::Closed(name.into(), self.prepared.get(name).cloned());
                self.close(name);
                self.pipeline.put(message(b'3', &[]), effect);
                self.put_in(exchange);
            }
            (b'D', Some(name)) => {
                let there = self.provide(exchange, name)?;
                self.send(exchange, &message(b'D', &[b"S", &there, b"\0"]));
                self.pipeline.send();
            }
            _ => {
                self.send(exchange, &bytes[..header.message_bytes()]);
                self.pipeline.send();
            }
        }
        self.forward(exchange, &[], Step::Wait)?;
        Ok(Step::Done(header.message_bytes()))
    }

    /// The body of a message that is read whole. None if it is incomplete.
    fn whole<'a>(&mut self, header: Header, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Fault> {
        if bytes.len() >= header.message_bytes() {
            return Ok(Some(&bytes[HEADER_BYTES..header.message_bytes()]));
        }
        self.want(header).map(|_| None)
    }

    /// Waits for more of a message.
    fn want(&mut self, header: Header) -> Result<Step, Fault> {
        self.wanted_bytes = header.message_bytes().min(STATEMENT_BYTES_MAX);
        if matches!(header.tag, b'D' | b'C') && header.message_bytes() > STATEMENT_BYTES_MAX {
            let tag = char::from(header.tag);
            return Err(
                Complaint::new("08P01", format!("message `{tag}` is too long for a name")).into(),
            );
        }
        Ok(Step::Wait)
    }

    fn leave(&mut self, exchange: &mut Exchange<'_, '_>) {
        self.is_leaving = true;
        exchange.client.is_ended = true;
    }
}

/// Where a text is, among the bytes that are handled now.
fn place_of(text: &[u8]) -> (usize, usize) {
    (text.as_ptr().addr(), text.len())
}

/// The length field for a body, which includes itself.
pub(super) fn length_of(body_bytes: usize) -> Result<[u8; 4], Fault> {
    let length = u32::try_from(body_bytes + 4);
    let length = length.map_err(|_| Complaint::new("08P01", "invalid message length"))?;
    Ok(length.to_be_bytes())
}
