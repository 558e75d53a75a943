//! Lends a connection to a session. It is acquired when the unit is admitted, gets the session's database and
//! variables, and is given back after the server was asked for variables that have changed.

use std::sync::Arc;
use std::task::Poll;

use tokio::time::Instant;

use super::to_client::unasked;
use super::{AUTOCOMMIT, Look, Phase, Pooled, Reasons, Then, Turn, UnderWay, ok, query};
use crate::BackendConnection;
use crate::mysql::ask::Row;
use crate::mysql::complaint::Complaint;
use crate::mysql::login::error_of;
use crate::mysql::packet::packet;
use crate::mysql::pool::Meant;
use crate::mysql::pool::backend::{Held, Kind, Login, clean, give_back};
use crate::mysql::pool::entry::complaint_of;
use crate::mysql::pool::settings::{Names, Settings, complete, look};
use crate::mysql::reply::{Follower, Status, status_of_ok};
use crate::pool::Pins;
use crate::relay::{Exchange, Side, Stream};

/// What makes the next transaction read only, whatever special rights its user has: those may write on a server with
/// `read_only`.
const READ_ONLY: &str = "SET TRANSACTION READ ONLY";
/// What is left of that after a statement that began no transaction, or failed, ends with an empty one.
const FORGETS_READ_ONLY: [&str; 2] = ["START TRANSACTION", "COMMIT"];
const INIT_DB: u8 = 0x02;
const ERR: u8 = 0xff;

impl Pooled {
    /// Gets a connection for the admitted unit, now or as soon as one is free.
    pub(super) fn acquire(&mut self, exchange: &mut Exchange<'_, '_>) {
        if let Some(held) = &self.held {
            if self.member.pool.common.nodes.is_left(held.node) {
                self.refusal = Some(moved());
                return;
            }
            if let Some(pin) = &mut self.pin {
                pin.set_resting(false);
            }
            self.phase = Phase::Relaying;
            return;
        }
        let (kind, login) = self.place();
        let nodes = Arc::clone(&self.member.pool.common.nodes);
        match nodes.try_take(self.replica, &kind) {
            Some((held, stream)) => self.attach(exchange, held, stream),
            None => {
                let acquiring = nodes.acquire(self.replica, kind, login);
                self.phase = Phase::Acquiring(Box::pin(acquiring));
                self.poll_acquire(exchange);
            }
        }
    }

    /// The kind of connection that the session needs now, and the login for it.
    fn place(&mut self) -> (Arc<Kind>, Login) {
        let has_database = self.schema.is_some();
        if self.member.kind.has_database != has_database {
            self.member.kind = Arc::new(Kind {
                has_database,
                ..(*self.member.kind).clone()
            });
        }
        let login = Login {
            database: self
                .schema
                .as_deref()
                .map(|name| String::from_utf8_lossy(name).into_owned()),
            ..self.member.login.clone()
        };
        (Arc::clone(&self.member.kind), login)
    }

    /// Takes the connection that the unit waits for. Returns false if nothing has changed.
    pub(super) fn poll_acquire(&mut self, exchange: &mut Exchange<'_, '_>) -> bool {
        let Phase::Acquiring(acquiring) = &mut self.phase else {
            return false;
        };
        match acquiring.as_mut().poll(exchange.context) {
            Poll::Pending => false,
            Poll::Ready(Ok((held, stream))) => {
                self.attach(exchange, held, stream);
                true
            }
            Poll::Ready(Err(error)) => {
                self.phase = Phase::Resting;
                exchange.work.fail();
                exchange.work.finish();
                match self.class.take() {
                    // The primary does what a replica does not.
                    Some(class) => self.submit(exchange, &class, None),
                    None => self.refuse(&complaint_of(&error)),
                }
                true
            }
        }
    }

    /// Answers a KILL that is done. Returns false if nothing has changed.
    pub(super) fn poll_kill(&mut self, exchange: &mut Exchange<'_, '_>) -> bool {
        let Phase::Killing(killing) = &mut self.phase else {
            return false;
        };
        let Poll::Ready(killed) = killing.as_mut().poll(exchange.context) else {
            return false;
        };
        self.phase = match exchange.work.is_running() {
            true => Phase::Relaying,
            false => Phase::Resting,
        };
        let said = match killed {
            Ok(()) => packet(1, &ok(AUTOCOMMIT)),
            Err(complaint) => complaint.packet(1),
        };
        exchange.to_client(&said);
        true
    }

    fn attach(&mut self, exchange: &mut Exchange<'_, '_>, mut held: Box<Held>, stream: Stream) {
        exchange.server.attach(stream);
        exchange.work.set_backend(Some(BackendConnection {
            server: held.node,
            number: held.known.thread_id,
        }));
        *self.member.target.current.lock() = Some(Meant {
            thread_id: held.known.thread_id,
            cancels: Arc::clone(&held.cancels),
            node: held.node,
        });
        let (pool, handle) = (&self.member.pool, exchange.work.handle());
        let connections = pool.common.nodes.connections(held.node);
        let now = exchange.work.statement_since();
        let now = now.unwrap_or_else(Instant::now);
        connections.servers().lend(&held.server, handle.id(), now);
        handle.set_link(Some(held.server.id()));
        self.reply = Follower::new(held.known.capabilities, Status(self.status()));
        let commands = self.commands_for(&mut held);
        self.held = Some(held);
        if !self.member.is_of_transactions && self.pin.is_none() {
            self.pin = self.member.pool.common.pins.keep_for_session();
            if self.pin.is_none() {
                self.refusal = Some(too_many_keep(Pins::OF_SESSIONS));
            }
        }
        if commands.is_empty() {
            self.phase = Phase::Relaying;
            return;
        }
        exchange.to_server(&commands.concat());
        self.phase = Phase::Preparing(commands.len());
    }

    /// The commands that set a connection to the session's database and variables, and begin its transaction.
    fn commands_for(&mut self, held: &mut Held) -> Vec<Vec<u8>> {
        let mut commands = Vec::new();
        // A server that was a replica may be the primary now.
        let is_read_only =
            std::mem::replace(&mut held.known.may_be_read_only, self.replica.is_some());
        if is_read_only && self.replica.is_none() {
            commands.extend(FORGETS_READ_ONLY.map(query));
        }
        if let Some(schema) = self
            .schema
            .as_ref()
            .filter(|_| self.schema != held.known.schema)
        {
            commands.push(packet(0, &[&[INIT_DB], &schema[..]].concat()));
        }
        let changes = self
            .settings
            .changes_from(&held.known.settings, &held.known.base);
        commands.extend(changes.map(|changes| query(&changes)));
        if std::mem::take(&mut self.clears) {
            commands.push(query("DO 0"));
        }
        if self.replica.is_some() {
            commands.push(query(READ_ONLY));
        }
        commands.extend(self.begun.clone());
        commands
    }

    /// Handles the answer to one of these commands.
    pub(super) fn prepared(&mut self, exchange: &mut Exchange<'_, '_>, answer: &[u8]) {
        let Phase::Preparing(left) = &mut self.phase else {
            return;
        };
        *left -= 1;
        let is_last = *left == 0;
        if answer.first() == Some(&ERR) {
            // Its state is unknown, so it is closed.
            let (code, reason) = error_of(answer);
            self.phase = Phase::Resting;
            self.pin = None;
            self.partial.clear();
            *self.member.target.current.lock() = None;
            exchange.work.handle().set_link(None);
            exchange.work.set_backend(None);
            drop((self.held.take(), exchange.server.detach()));
            exchange.work.fail();
            exchange.work.finish();
            self.replica = None;
            self.refuse(&Complaint::new(code, "HY000", reason));
            return;
        }
        if is_last {
            let (schema, settings) = (self.schema.clone(), self.settings.clone());
            let has_begun = self.begun.take().is_some();
            let known = &mut self.held().known;
            (known.schema, known.settings) = (schema, settings);
            if has_begun {
                let capabilities = known.capabilities;
                self.reply = Follower::new(capabilities, status_of_ok(answer));
            }
            self.phase = Phase::Relaying;
        }
    }

    /// Ends the unit behind a statement, unless a transaction is open or long data waits for its execution.
    pub(super) fn end_statement(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
    ) -> Result<(), Complaint> {
        match self.reply.status().is_in_transaction() || self.prepared.have_long_data() {
            true => Ok(()),
            false => self.finish_unit(exchange),
        }
    }

    /// Ends the unit after its transaction. A pinned session is not asked for its variables. They are not needed
    /// elsewhere, and the query would change the results of its last statement.
    pub(super) fn finish_unit(&mut self, exchange: &mut Exchange<'_, '_>) -> Result<(), Complaint> {
        let is_kept = self.reason().is_some() || !self.member.is_of_transactions;
        if self.changed.is_empty() || is_kept {
            return self.release(exchange);
        }
        self.look(exchange, Then::Release);
        Ok(())
    }

    /// Asks the server for the variables that have changed.
    pub(super) fn look(&mut self, exchange: &mut Exchange<'_, '_>, then: Then) {
        let changed = std::mem::take(&mut self.changed);
        self.look_for(exchange, changed, then);
    }

    /// Asks the server for these variables.
    pub(super) fn look_for(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        mut names: Names,
        then: Then,
    ) {
        complete(&mut names);
        exchange.to_server(&query(&look(&names)));
        self.phase = Phase::Looking(names, Look::default(), then);
    }

    /// Handles the server's answer about variables. `values` is None if it failed.
    pub(super) fn looked(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        names: &Names,
        values: Option<Row>,
        then: Then,
    ) {
        let held = self
            .held
            .as_mut()
            .expect("invariant: who looks has a connection");
        let followed = values.and_then(|mut values| {
            let schema = values.pop()?.map(Vec::into_boxed_slice);
            self.schema.clone_from(&schema);
            held.known.schema = schema;
            self.settings.follow(names, values, &held.known.base)
        });
        held.known.settings = self.settings.clone();
        if followed.is_none() {
            self.reasons.lasting = Some("it has set a variable to what cannot be followed");
        }
        match then {
            Then::Reset => {
                self.forget(exchange);
                exchange.to_client(&packet(1, &ok(AUTOCOMMIT)));
            }
            Then::Release => self.refusal = self.release(exchange).err(),
            Then::GoOn => {
                self.changed.retain(|name| !names.contains(name));
                self.has_inquired = true;
                self.refusal = followed.is_none().then(unfollowed);
                self.phase = Phase::Relaying;
            }
        }
    }

    /// Ends the unit. Gives the connection back, unless the session is pinned.
    fn release(&mut self, exchange: &mut Exchange<'_, '_>) -> Result<(), Complaint> {
        self.phase = Phase::Resting;
        if self.member.is_of_transactions {
            match self.reason() {
                None => self.pin = None,
                Some(reason) if self.pin.is_none() => self.keep(reason)?,
                Some(_) => {}
            }
        }
        // The server ends, and has said so behind its answer.
        let is_over = !std::mem::take(&mut self.partial).is_empty();
        let now = Instant::now();
        if let Some(pin) = &mut self.pin {
            pin.set_resting(true);
            exchange.work.finish_at(now);
            return if is_over { Err(unasked()) } else { Ok(()) };
        }
        *self.member.target.current.lock() = None;
        exchange.work.handle().set_link(None);
        exchange.work.set_backend(None);
        // The connection goes back before the permit, so the next admitted unit finds it.
        if let (Some(held), Some(stream), false) =
            (self.held.take(), exchange.server.detach(), is_over)
        {
            give_back(now, held, stream);
        }
        self.replica = None;
        exchange.work.finish_at(now);
        Ok(())
    }

    /// Gives back the connection of a session without a unit, if no reason to keep it is left.
    pub(super) fn release_if_free(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
    ) -> Result<(), Complaint> {
        if self.is_relaying() && exchange.work.is_running() {
            return self.end_statement(exchange);
        }
        let is_free = matches!(self.phase, Phase::Resting)
            && self.held.is_some()
            && self.turn == Turn::Command
            && self.reason().is_none()
            && self.member.is_of_transactions;
        match is_free {
            true => self.finish_unit(exchange),
            false => Ok(()),
        }
    }

    /// Pins the session to its connection, for this reason.
    fn keep(&mut self, reason: &str) -> Result<(), Complaint> {
        let user = &self.member.kind.user;
        tracing::debug!(user, reason, "a session keeps its connection");
        if self.replica.is_some() {
            let message = format!(
                "the session would keep a connection to a replica, as {reason}: do that in a transaction that is \
                 not read only"
            );
            return Err(Complaint::new(1235, "42000", message));
        }
        let Some(pin) = self.member.pool.common.pins.keep() else {
            return Err(too_many_keep(reason));
        };
        self.pin = Some(pin);
        Ok(())
    }

    /// Resets the session. Its connection is cleaned and goes back.
    pub(super) fn forget(&mut self, exchange: &mut Exchange<'_, '_>) {
        self.phase = Phase::Resting;
        *self.member.target.current.lock() = None;
        exchange.work.handle().set_link(None);
        exchange.work.set_backend(None);
        let is_over = !std::mem::take(&mut self.partial).is_empty();
        if let (Some(held), Some(stream)) = (self.held.take(), exchange.server.detach())
            && !self.reasons.outlasts_reset
            && !is_over
        {
            tokio::spawn(clean(held, stream));
        }
        self.pin = None;
        self.replica = None;
        self.reasons = Reasons::default();
        self.settings = Settings::default();
        self.flags = AUTOCOMMIT;
        self.changed = Names::new();
        self.under_way = UnderWay::Nothing;
        self.may_set_and_fail = false;
        self.begun = None;
        self.prepared.clear();
        self.statements.clear();
        exchange.work.finish();
    }

    /// Ends the session. Its connection is cleaned and goes back, if nothing is under way on it.
    pub(super) fn give_up(&mut self, mut server: Side) {
        *self.member.target.current.lock() = None;
        let is_clean = matches!(self.phase, Phase::Resting | Phase::Relaying)
            && self.is_between()
            && !self.reasons.outlasts_reset;
        if let (Some(held), Some(stream), true) = (self.held.take(), server.detach(), is_clean) {
            tokio::spawn(clean(held, stream));
        }
    }
}

/// The server that a session's connection is to is not the primary any more.
fn moved() -> Complaint {
    let message =
        "the session keeps a connection to a server that is no longer the primary: connect anew";
    Complaint::new(1053, "08S01", message)
}

/// The session's variables, which the meaning of its statements depends on, cannot be set again.
fn unfollowed() -> Complaint {
    Complaint::malformed("the values of a session's variables")
}

/// Too many sessions keep a connection for this one to keep one for this reason.
fn too_many_keep(reason: &str) -> Complaint {
    Complaint::new(1226, "42000", Pins::too_many_keep(reason))
}
