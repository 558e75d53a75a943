//! Lends a connection to a session. It is acquired when the unit is admitted, gets the session's settings, and is
//! given back after the backend was asked about the session's state.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use super::{Dropping, Phase, Pooled};
use crate::BackendConnection;
use crate::pool::Pins;
use crate::postgres::cancel::process_of;
use crate::postgres::pool::Meant;
use crate::postgres::pool::ask::ask_on;
use crate::postgres::pool::backend::Held;
use crate::postgres::pool::entry::complaint_of;
use crate::postgres::pool::leaving::call_leaves_state;
use crate::postgres::pool::own_names::own_names;
use crate::postgres::pool::pipeline::Unnamed;
use crate::postgres::pool::settings::{Found, Settings, look};
use crate::postgres::reply::{Complaint, message, query, ready_for_query};
use crate::relay::{Exchange, Side, Stream};

/// The time for removing a session's state from a connection.
const CLEAN_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a session's state is asked for again, where the question was cancelled.
const LOOKS_MAX: u8 = 5;
/// The most custom parameters that a session is asked about while it keeps its connection.
const OWN_NAMES_MAX: usize = 256;

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
            self.put_settings_on(exchange);
            return;
        }
        let nodes = &self.member.pool.common.nodes;
        match nodes.try_take(self.replica, &self.member.kind) {
            Some((held, stream)) => {
                let now = exchange.work.statement_since();
                self.attach(exchange, held, stream, now.unwrap_or_else(Instant::now));
            }
            None => {
                let (kind, login) = (self.member.kind.clone(), self.member.login.clone());
                let acquiring = Arc::clone(nodes).acquire(self.replica, kind, login);
                self.phase = Phase::Acquiring(Box::pin(acquiring));
                self.poll_acquire(exchange);
            }
        }
    }

    /// Takes the connection that the unit waits for. Returns false if nothing has changed.
    pub(super) fn poll_acquire(&mut self, exchange: &mut Exchange<'_, '_>) -> bool {
        let Phase::Acquiring(acquiring) = &mut self.phase else {
            return false;
        };
        match acquiring.as_mut().poll(exchange.context) {
            Poll::Pending => false,
            Poll::Ready(Ok((held, stream))) => {
                self.attach(exchange, held, stream, Instant::now());
                true
            }
            Poll::Ready(Err(error)) => {
                self.phase = Phase::Resting;
                exchange.work.fail();
                exchange.work.finish();
                match self.class.take() {
                    // The primary does what a replica does not.
                    Some(class) => self.submit(exchange, &class, None),
                    None => self.refuse(exchange, &complaint_of(&error)),
                }
                true
            }
        }
    }

    /// Sends the client an error for its request. If the gate has already answered a BEGIN, the session ends instead.
    pub(super) fn refuse(&mut self, exchange: &mut Exchange<'_, '_>, complaint: &Complaint) {
        if self.begun.is_some() {
            self.refusal = Some(complaint.clone());
            return;
        }
        exchange.to_client(&complaint.error());
        if self.is_extended {
            self.dropping = Dropping::UntilSync;
        } else {
            self.dropping = Dropping::Message;
            // A Query removes the unnamed statement, whoever answers.
            self.close(b"");
            exchange.to_client(&ready_for_query(self.status()));
        }
    }

    fn attach(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        held: Box<Held>,
        stream: Stream,
        now: Instant,
    ) {
        exchange.server.attach(stream);
        let number = held.known.key.as_deref().and_then(process_of);
        let server = held.node;
        let backend = number.map(|number| BackendConnection { server, number });
        exchange.work.set_backend(backend);
        let (pool, handle) = (&self.member.pool, exchange.work.handle());
        let connections = pool.common.nodes.connections(held.node);
        connections.servers().lend(&held.server, handle.id(), now);
        handle.set_link(Some(held.server.id()));
        self.held = Some(held);
        self.put_settings_on(exchange);
    }

    fn put_settings_on(&mut self, exchange: &mut Exchange<'_, '_>) {
        let there = &self
            .held
            .as_ref()
            .expect("invariant: it has a connection now")
            .known
            .settings;
        let changes = self.settings.changes_from(there);
        if changes.is_empty() {
            self.begin_unit(exchange);
            return;
        }
        self.held().known.prepared.note_query();
        for change in &changes {
            self.send(exchange, change);
        }
        self.phase = Phase::Applying(changes.len());
    }

    /// Notes that one of the Queries for the settings is answered.
    pub(super) fn applied(&mut self, exchange: &mut Exchange<'_, '_>) {
        let Phase::Applying(left) = &mut self.phase else {
            return;
        };
        *left -= 1;
        if *left == 0 {
            let settings = self.settings.clone();
            self.held().known.settings = settings;
            self.begin_unit(exchange);
        }
    }

    fn begin_unit(&mut self, exchange: &mut Exchange<'_, '_>) {
        self.phase = Phase::Relaying;
        self.has_sent = false;
        if !self.member.is_of_transactions && self.pin.is_none() {
            self.pin = self.member.pool.common.pins.keep_for_session();
            if self.pin.is_none() {
                self.refusal = Some(too_many_keep(Pins::OF_SESSIONS));
                return;
            }
        }
        let unnamed = Unnamed {
            client: self.prepared.get(b"").cloned(),
            there: self.held().known.prepared.unnamed,
        };
        self.pipeline.begin(unnamed);
        // Before, a cancel request would have ended a Query of the gate's own.
        self.aim();
        if let Some(begin) = self.begun.take() {
            self.held().known.prepared.note_query();
            self.send(exchange, &begin);
            self.conversation
                .sent(b'Q')
                .expect("invariant: it is the first of the unit, so not too many");
            self.pipeline.send_hidden_query();
        }
    }

    /// Lets cancel requests go to its connection.
    fn aim(&mut self) {
        let held = self.held();
        let key = held.known.key.clone();
        let meant = key.map(|key| Meant {
            key,
            cancels: Arc::clone(&held.cancels),
            node: held.node,
        });
        *self.member.target.0.lock() = meant;
    }

    /// Notes a statement that may change session state. If `is_whole` is false, only its start has come.
    pub(super) fn note_statement(&mut self, statement: &[u8], is_whole: bool) {
        self.may_leave_state = true;
        // The missing part may contain another statement.
        let is_seen = is_whole || !statement.contains(&b';');
        match own_names(statement) {
            Some(names) if is_seen => self.own_names.extend(names),
            _ => self.is_beyond_following = true,
        }
        if self.own_names.len() > OWN_NAMES_MAX {
            self.own_names = BTreeSet::new();
            self.is_beyond_following = true;
        }
    }

    /// Notes a FunctionCall. What its function sets is not known.
    pub(super) fn note_call(&mut self, body: &[u8]) {
        if call_leaves_state(body) {
            self.may_leave_state = true;
            self.is_beyond_following = true;
        }
    }

    /// Ends the unit if it is over. A message that the client has partly sent still belongs to it.
    pub(super) fn finish_if_over(&mut self, exchange: &mut Exchange<'_, '_>) {
        let is_over = self.is_relaying()
            && self.has_sent
            && self.conversation.is_over()
            && self.pipeline.is_empty()
            && self.client_body_left == 0
            && self.server_body_left == 0
            && self.partial.is_empty();
        if !is_over {
            return;
        }
        let looks = std::mem::take(&mut self.may_leave_state)
            || self.pin.is_some()
            || self.settings.makes_temporary();
        // Its own connection would have gone back to what the client asked for at login.
        let has_reset =
            std::mem::take(&mut self.has_reset) && self.began_with != Settings::default();
        if has_reset || looks && self.member.is_of_transactions {
            self.looks = 0;
            self.look(exchange);
        } else {
            self.release(exchange);
        }
    }

    fn look(&mut self, exchange: &mut Exchange<'_, '_>) {
        // A cancel request that comes now comes too late.
        *self.member.target.0.lock() = None;
        let before = self.settings.own_names();
        let own = before.chain(self.own_names.iter().map(|name| &**name));
        let query = look(&self.member.kind.user, own);
        self.held().known.prepared.note_query();
        self.send(exchange, &query);
        self.phase = Phase::Looking(Found::default());
    }

    /// Handles the backend's answer about the session's state.
    pub(super) fn looked(&mut self, exchange: &mut Exchange<'_, '_>) -> Result<(), Complaint> {
        let Phase::Looking(found) = std::mem::replace(&mut self.phase, Phase::Relaying) else {
            return Ok(());
        };
        // A cancel request that was under way has met the look.
        if found.is_cancelled && self.looks < LOOKS_MAX {
            self.looks += 1;
            self.look(exchange);
            return Ok(());
        }
        // After a failed look the session keeps its connection, with all that is set there.
        if !found.is_unknown {
            self.take_settings(exchange, &found);
        }
        if !self.member.is_of_transactions {
            self.release(exchange);
            return Ok(());
        }
        let beyond = self
            .is_beyond_following
            .then(|| "it has set what cannot be followed".into());
        match found.into_pin().or(beyond) {
            None => {
                self.pin = None;
                self.own_names = BTreeSet::new();
            }
            Some(reason) if self.pin.is_none() => self.keep(&reason)?,
            Some(_) => {}
        }
        self.release(exchange);
        Ok(())
    }

    fn take_settings(&mut self, exchange: &mut Exchange<'_, '_>, found: &Found) {
        self.settings = Settings::default();
        let login = Arc::clone(&self.held().known.parameters);
        for (name, value) in found.settings.iter() {
            self.settings
                .follow_from(&self.began_with, name, value, &login);
        }
        let settings = self.settings.clone();
        self.held().known.settings = settings;
        // On its own connection, the session would have returned to these values.
        for (name, value) in self
            .began_with
            .iter()
            .filter(|(name, _)| !self.settings.has(name))
        {
            let reported = message(b'S', &[name, b"\0", value, b"\0"]);
            exchange.to_client(&reported);
        }
        self.settings.fill_up(&self.began_with);
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
            return Err(Complaint::new("0A000", message));
        }
        let Some(pin) = self.member.pool.common.pins.keep() else {
            return Err(too_many_keep(reason));
        };
        self.pin = Some(pin);
        Ok(())
    }

    /// Ends the unit. Gives the connection back, unless the session is pinned.
    fn release(&mut self, exchange: &mut Exchange<'_, '_>) {
        let now = Instant::now();
        self.phase = Phase::Resting;
        *self.member.target.0.lock() = None;
        if let Some(pin) = &mut self.pin {
            pin.set_resting(true);
            exchange.work.finish_at(now);
            return;
        }
        exchange.work.handle().set_link(None);
        exchange.work.set_backend(None);
        // The connection goes back before the permit, so the next admitted unit finds it.
        if let (Some(held), Some(stream)) = (self.held.take(), exchange.server.detach()) {
            held.give_back_at(now, stream);
        }
        self.replica = None;
        exchange.work.finish_at(now);
    }

    /// Ends the session. Its connection is cleaned and goes back, if nothing is under way on it.
    pub(super) fn give_up(&mut self, mut server: Side) {
        *self.member.target.0.lock() = None;
        let is_clean = matches!(self.phase, Phase::Resting | Phase::Relaying)
            && self.conversation.is_over()
            && self.pipeline.is_empty()
            && self.partial.is_empty()
            && self.server_body_left == 0
            && self.client_body_left == 0;
        if let (Some(held), Some(stream), true) = (self.held.take(), server.detach(), is_clean) {
            tokio::spawn(clean(held, stream));
        }
    }

    /// Notes a parameter that the backend reports.
    pub(super) fn report(&mut self, name: &[u8], value: &[u8]) {
        let held = self
            .held
            .as_mut()
            .expect("invariant: whoever hears of it has a connection");
        let began = Arc::clone(&held.known.parameters);
        held.known.settings.follow(name, value, &began);
        match self.began_with.has(name) {
            true => self.settings.report(name, value),
            false => self.settings.follow(name, value, &began),
        }
    }
}

/// The server that a session's connection is to is not the primary any more.
fn moved() -> Complaint {
    let message = "terminating connection: the session keeps a connection to a server that is no longer the primary";
    Complaint::new("57P01", message)
}

/// Too many sessions keep a connection for this one to keep one for this reason.
fn too_many_keep(reason: &str) -> Complaint {
    Complaint::new("53300", Pins::too_many_keep(reason))
}

/// Removes all session state from a connection, and gives it back.
async fn clean(mut held: Box<Held>, mut stream: Stream) {
    let query = query("DISCARD ALL");
    let cleaning = ask_on(&mut held, &mut stream, &query);
    if matches!(
        tokio::time::timeout(CLEAN_TIME_MAX, cleaning).await,
        Ok(Ok(_))
    ) {
        held.known.settings = Settings::default();
        held.known.prepared = Default::default();
        held.give_back(stream);
    }
}
