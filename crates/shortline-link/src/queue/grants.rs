//! The grants: which job gets the next one, and when it is due.

use shortline_sched::{Job, JobId};

use super::facts::SAMPLES_MAX;
use super::{Queue, Setting, newcomers};
use crate::connections::{ConnectionId, Sockets};

impl Queue {
    /// Makes every grant that is due. If jobs wait then, the link is to look again
    /// ([`Queue::take_look_again_ns`]).
    pub fn dispatch(&mut self, sockets: &dyn Sockets, now_ns: u64) {
        let (newcomers, connections) = (&mut self.newcomers, &self.connections);
        for id in newcomers.take_ready(connections, sockets, now_ns) {
            self.job_mut(id).held = None;
            self.scheduler.resume(id);
        }
        let due_ns = self.grant_due(sockets, now_ns);
        let look_ns = self.newcomers.hold_any().then_some(newcomers::LOOK_NS);
        self.look_again_ns = due_ns.into_iter().chain(look_ns).min();
    }

    fn grant_due(&mut self, sockets: &dyn Sockets, now_ns: u64) -> Option<u64> {
        while let Some(id) = self.scheduler.peek(now_ns) {
            let connection = self.job_mut(id).connection;
            if !self.connections.of(connection).can_send() {
                self.park(id, now_ns);
                continue;
            }
            if !self.may_begin(id, sockets, now_ns) {
                continue;
            }
            if !self.is_due(sockets, now_ns) {
                return Some(self.regulator.look_again_ns(now_ns));
            }
            self.watch(id);
            let taken = self.scheduler.take(now_ns);
            debug_assert_eq!(taken, Some(id));
            self.grant(id, now_ns);
        }
        None
    }

    /// Whether a grant is due, for somebody who waits until it is.
    pub(super) fn is_due(&mut self, sockets: &dyn Sockets, now_ns: u64) -> bool {
        self.regulator
            .is_due(&mut self.connections, sockets, now_ns)
    }

    /// Whether the job may be granted something on its connection; if not, it waits apart.
    fn may_begin(&mut self, id: JobId, sockets: &dyn Sockets, now_ns: u64) -> bool {
        let job = self.job_mut(id);
        let (client, connection) = (job.client, job.connection);
        if self.has_room(client, connection, sockets, now_ns) {
            return true;
        }
        self.job_mut(id).held = Some(self.newcomers.hold(client, id));
        self.scheduler.suspend(id);
        false
    }

    /// Whether the client may get something on the connection: on new ones it has few at a time.
    pub(super) fn has_room(
        &mut self,
        client: u128,
        connection: ConnectionId,
        sockets: &dyn Sockets,
        now_ns: u64,
    ) -> bool {
        !self.regulator.bounds_newcomers()
            || self.connections.of(connection).is_known
            || self
                .newcomers
                .has_room(client, &self.connections, sockets, now_ns)
    }

    fn grant(&mut self, id: JobId, now_ns: u64) {
        let remaining = self.scheduler.job(id).map_or(0, Job::remaining);
        let quantum = self.quantum();
        let job = self.job_mut(id);
        let granted = quantum.min(job.at_hand_bytes.unwrap_or(u32::MAX));
        let bytes = u32::try_from(remaining).unwrap_or(u32::MAX).min(granted);
        job.granted_bytes = Some(granted);
        job.wanting = false;
        let (client, connection) = (job.client, job.connection);
        let waker = job.waker.take();
        self.actions.wake.extend(waker);
        self.note_grant(connection, client, now_ns);
        if self.regulator.bands().is_some() {
            // Nothing is charged: the qdisc has the rate. Others of this connection may hold a
            // grant, too, and not have used it yet.
            let band = self.connections.of(connection).jobs_bands.most_urgent();
            self.move_to_band(connection, band);
            return;
        }
        self.job_mut(id).charge = self.charge(connection, bytes, now_ns);
    }

    /// A grant is made on a connection: what is counted of it, and what the connection is told.
    pub(super) fn note_grant(&mut self, id: ConnectionId, client: u128, now_ns: u64) {
        self.grants_total += 1;
        let connection = self.connections.of_mut(id);
        let is_first = !std::mem::replace(&mut connection.is_known, true);
        if let Some(recent) = &mut self.recent {
            let is_new = recent.len() < SAMPLES_MAX && !connection.is_watched;
            // The regulator may be another than when the connection was accepted.
            let unsent_bytes_max = self.regulator.unsent_bytes_max();
            if connection.unsent_bytes_max != unsent_bytes_max {
                connection.unsent_bytes_max = unsent_bytes_max;
                self.actions
                    .set
                    .push((id, Setting::UnsentBytesMax(unsent_bytes_max)));
            }
            if is_new {
                connection.is_watched = true;
                recent.push(id);
                self.connections.hold(id);
            }
            self.actions.wake.extend(self.waits_for_grant.take());
        }
        if is_first && self.regulator.bounds_newcomers() {
            self.newcomers.note(client, id, &self.connections, now_ns);
        }
    }

    /// The connection's handshake, which was granted to the client, is done: it is new once more.
    pub fn handshake_done(&mut self, id: ConnectionId, client: u128) {
        self.newcomers.leave(client, id);
        self.connections.of_mut(id).is_known = false;
    }

    fn park(&mut self, id: JobId, now_ns: u64) {
        self.scheduler.suspend(id);
        let connection_id = self.job_mut(id).connection;
        self.wait_behind_own(connection_id);
        let connection = self.connections.of_mut(connection_id);
        connection.parked.push(id);
        // The connection may have drained since the look: then nobody else would come back for this job.
        if connection.marks.wait() {
            self.drained(connection_id, now_ns);
        }
    }
}
