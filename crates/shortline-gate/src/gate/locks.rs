//! The backend's connections that are at work now. The monitor ([`crate::locks`]) asks the backend which
//! of them wait for a lock there.
//!
//! The monitor only samples. A connection that is found waiting is assumed to have waited since the
//! previous look, or since its statement began. On average that is right.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shortline_sched::admission::RequestId;
use tokio::time::Instant;

use super::Gate;

/// The most connections that one look covers: those whose statements have run longest.
const LOOKED_AT_MAX: usize = 1000;

/// A connection to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BackendConnection {
    /// The number of the server in its cluster.
    pub server: usize,
    /// The server's own number for the connection.
    pub number: u32,
}

impl BackendConnection {
    /// A connection to the only server.
    pub fn of_one(number: u32) -> Self {
        Self { server: 0, number }
    }
}

/// All connections to the backends.
#[derive(Debug, Default)]
pub(super) struct Locks(Mutex<HashMap<BackendConnection, Arc<Slot>>>);

/// The work of a connection, if it has any.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Option<Work>>);

#[derive(Clone, Copy, Debug)]
struct Work {
    id: RequestId,
    /// The start of its statement.
    since: Instant,
    /// The time up to which its waits are known.
    known_until: Instant,
}

impl Locks {
    pub(super) fn enter(&self, backend: BackendConnection, slot: &Arc<Slot>) {
        self.0.lock().insert(backend, Arc::clone(slot));
    }

    pub(super) fn leave(&self, backend: BackendConnection, slot: &Arc<Slot>) {
        let mut slots = self.0.lock();
        // A restarted backend may have given the number to another connection.
        if slots
            .get(&backend)
            .is_some_and(|other| Arc::ptr_eq(other, slot))
        {
            slots.remove(&backend);
        }
    }

    /// The connections of a server that have work, at most [`LOOKED_AT_MAX`] of them, by its numbers.
    fn longest_at_work(&self, server: usize) -> Vec<(u32, Work)> {
        let work = |slot: &Slot| *slot.0.lock();
        let mut at_work: Vec<(u32, Work)> = {
            let slots = self.0.lock();
            let of_server = slots.iter().filter(|(backend, _)| backend.server == server);
            let at_work =
                of_server.filter_map(|(backend, slot)| Some((backend.number, work(slot)?)));
            at_work.collect()
        };
        if at_work.len() > LOOKED_AT_MAX {
            at_work.select_nth_unstable_by_key(LOOKED_AT_MAX, |(_, work)| work.since);
            at_work.truncate(LOOKED_AT_MAX);
        }
        at_work
    }
}

impl Slot {
    /// The backend works on a statement of this request from `now` on.
    pub(super) fn begin(&self, id: RequestId, now: Instant) {
        let work = Work {
            id,
            since: now,
            known_until: now,
        };
        *self.0.lock() = Some(work);
    }

    /// It works on none.
    pub(super) fn end(&self) {
        *self.0.lock() = None;
    }
}

impl Gate {
    /// The connections of a server whose statement has run for `at_least` or longer, here and at the gates beside.
    /// Only these are worth asking about.
    pub fn long_at_work(&self, server: usize, at_least: Duration) -> Vec<u32> {
        let now = Instant::now();
        let mut long = Vec::new();
        self.for_each(|gate| {
            let longest = gate.longest_at_work(server).into_iter();
            let ran = longest.filter(|(_, work)| now.duration_since(work.since) >= at_least);
            long.extend(ran.map(|(number, _)| number));
        });
        long
    }

    /// The connections of a server whose statement is to be cancelled, here and at the gates beside. Each comes with a
    /// lower bound on the statement's running time, in whole seconds. With it the cancel does not hit the next
    /// statement.
    pub fn runaways(&self, server: usize) -> Vec<(u32, u64)> {
        let mut runaways = Vec::new();
        self.for_each(|gate| runaways.extend(gate.runaways_here(server)));
        runaways
    }

    /// Records a look at a server: of the connections in `asked`, those in `locked` wait for a lock now.
    pub fn note_locked(&self, server: usize, asked: &[u32], locked: &[u32]) {
        self.for_each(|gate| gate.note_locked_here(server, asked, locked));
    }

    fn longest_at_work(&self, server: usize) -> Vec<(u32, Work)> {
        let locks = self.0.locks.as_ref();
        locks.map_or_else(Vec::new, |locks| locks.longest_at_work(server))
    }

    fn runaways_here(&self, server: usize) -> Vec<(u32, u64)> {
        let at_work = self.longest_at_work(server);
        let now = Instant::now();
        let state = self.0.state.lock();
        let is_one = |(number, work): (u32, Work)| {
            let (after_ns, service_ns) = state.admission.cancel_after_ns(self.ns(now), work.id)?;
            let runs = now.duration_since(work.since);
            let is_beyond = service_ns > after_ns && runs.as_nanos() > u128::from(after_ns);
            // The backend started its clock later than the gate.
            is_beyond.then(|| (number, runs.as_secs().saturating_sub(1)))
        };
        at_work.into_iter().filter_map(is_one).collect()
    }

    fn note_locked_here(&self, server: usize, asked: &[u32], locked: &[u32]) {
        let Some(locks) = &self.0.locks else {
            return;
        };
        let now = Instant::now();
        let mut waited = Vec::new();
        {
            let slots = locks.0.lock();
            for &number in asked {
                let Some(slot) = slots.get(&BackendConnection { server, number }) else {
                    continue;
                };
                let mut work = slot.0.lock();
                let Some(work) = work.as_mut() else { continue };
                let span = now.duration_since(work.known_until);
                work.known_until = now;
                if locked.contains(&number) {
                    waited.push((work.id, span));
                }
            }
        }
        let mut state = self.0.state.lock();
        for (id, span) in waited {
            let span_ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
            state.admission.waited_for_lock(id, span_ns);
        }
    }
}
