//! What holds of the queue over every regulator, whatever happens in whatever order.
//!
//! A model beside the queue keeps each charge by itself, where the queue keeps sums. It plays the driver, too: sets the
//! alarm, and says what is in the sockets. After each step the sums have to be the model's, and the audit of
//! the simulated worlds has to find nothing. In the end all clients take what they get: then every job has to end.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::queue::Whole;
use charges::{Charged, Fate};
use steps::{Step, step};

mod charges;
mod steps;

const MS: u64 = 1_000_000;
const MODES: [LinkMode; 6] = [
    LinkMode::Off,
    LinkMode::Paced,
    LinkMode::Slots,
    LinkMode::Writers,
    LinkMode::Bands,
    LinkMode::Auto,
];
const CONNECTIONS: usize = 4;
/// Within so many alarms all jobs have ended: each is one grant at least, or a look at slots.
const ALARMS_MAX: u32 = 20_000;

enum Place {
    Queued(JobId),
    Whole(Whole),
}

struct Job {
    connection: ConnectionId,
    place: Place,
    left_bytes: u64,
    /// It has asked for a grant.
    asks: bool,
    /// Payload bytes that it may hand over.
    granted_bytes: Option<u32>,
    /// Its last charge.
    charge: Option<usize>,
}

struct Connected {
    id: ConnectionId,
    marks: Arc<Marks>,
    /// Handed over, and not in the socket.
    pending_bytes: u32,
    unacknowledged_bytes: u32,
    priority: Option<u32>,
}

struct Model {
    mode: LinkMode,
    queue: Queue,
    sockets: FakeSockets,
    now_ns: u64,
    armed_ns: u64,
    connections: Vec<Connected>,
    jobs: Vec<Job>,
    charges: Vec<Charged>,
    /// A slot may have been lost to a stall, and its grant with it.
    may_have_stalled: bool,
    grants: u64,
    opened: usize,
    gone: Vec<ConnectionId>,
}

impl Model {
    fn new(mode: LinkMode) -> Self {
        let bed = match mode {
            LinkMode::Bands => Bed::banded(),
            mode => Bed::of(mode),
        };
        let mut model = Self {
            mode,
            queue: bed.queue,
            sockets: bed.sockets,
            now_ns: SECOND,
            armed_ns: 0,
            connections: Vec::new(),
            jobs: Vec::new(),
            charges: Vec::new(),
            may_have_stalled: false,
            grants: 0,
            opened: 1,
            gone: Vec::new(),
        };
        model
            .gone
            .extend(model.queue.close(bed.id).then_some(bed.id));
        for _ in 0..CONNECTIONS {
            let connected = model.open();
            model.connections.push(connected);
        }
        model
    }

    fn open(&mut self) -> Connected {
        self.opened += 1;
        let (id, marks) = self.queue.open(PACKETS, 0);
        Connected {
            id,
            marks,
            pending_bytes: 0,
            unacknowledged_bytes: 0,
            priority: None,
        }
    }

    fn is_paced(&self) -> bool {
        matches!(self.queue.regulator, Regulator::Paced(_))
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Submit(at, length) => self.submit(at.index(CONNECTIONS), length),
            Step::HandOver(at) => self.with_job(at, Self::hand_over),
            Step::Decline(at) => self.with_job(at, Self::decline),
            Step::Ask(at) => self.with_job(at, Self::ask),
            Step::Abort(at) => self.with_job(at, Self::abort),
            Step::Drain(at) => self.drain(at.index(CONNECTIONS)),
            Step::Block(at) => self.block(at.index(CONNECTIONS)),
            Step::Acknowledge(at) => self.acknowledge(at.index(CONNECTIONS)),
            Step::End(at) => self.end(at.index(CONNECTIONS)),
            Step::Wait(ns) => self.wait(ns),
            Step::Pace(pacing) if self.mode == LinkMode::Auto => {
                self.queue.pace(pacing, self.now_ns);
            }
            Step::Pace(_) => {}
        }
        self.dispatch();
        self.check();
    }

    fn with_job(&mut self, at: Index, change: fn(&mut Self, usize)) {
        if !self.jobs.is_empty() {
            change(self, at.index(self.jobs.len()));
        }
    }

    /// As `TransportHandle::submit`.
    fn submit(&mut self, at: usize, length: u64) {
        let (id, now_ns) = (self.connections[at].id, self.now_ns);
        let connected = &self.connections[at];
        let arrived = !connected.marks.has_unwritten() && connected.unacknowledged_bytes == 0;
        let slots_arrived = if arrived { connected.marks.slots() } else { 0 };
        self.queue.release_last_response(id, slots_arrived);
        let known = Length::Known(length);
        let whole = self
            .queue
            .grant_whole(id, client(), known, &self.sockets, now_ns);
        let is_whole = whole.is_some();
        let place = match whole {
            Some(whole) => Place::Whole(whole),
            None => Place::Queued(
                self.queue
                    .submit(id, client(), known, None, now_ns)
                    .unwrap(),
            ),
        };
        self.jobs.push(Job {
            connection: id,
            place,
            left_bytes: length,
            asks: true,
            granted_bytes: None,
            charge: None,
        });
        if is_whole {
            self.granted(self.jobs.len() - 1, u32::MAX);
        }
    }

    /// A job got a grant.
    fn granted(&mut self, at: usize, quantum_bytes: u32) {
        let job = &mut self.jobs[at];
        assert!(job.asks && job.granted_bytes.is_none(), "granted twice");
        let bytes = job.left_bytes.min(u64::from(quantum_bytes)) as u32;
        job.asks = false;
        job.granted_bytes = Some(bytes);
        self.grants += 1;
        if self.mode != LinkMode::Bands {
            job.charge = Some(self.charges.len());
            self.charges.push(Charged {
                connection: job.connection,
                wire_bytes: PACKETS.wire_bytes(bytes),
                charged_ns: self.now_ns,
                fate: Fate::Unwritten,
            });
        }
    }

    fn hand_over(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        let Some(bytes) = job.granted_bytes.take() else {
            return;
        };
        job.left_bytes -= u64::from(bytes);
        let (is_over, connection) = (job.left_bytes == 0, job.connection);
        let connected = self.connections.iter_mut().find(|one| one.id == connection);
        let connected = connected.expect("a job's connection is open");
        connected.pending_bytes += bytes;
        match &mut job.place {
            Place::Whole(whole) => {
                whole.hand_over(&connected.marks, bytes);
                connected.marks.whole_ended();
            }
            Place::Queued(id) => {
                self.queue.take_grant(*id);
                self.queue.hand_over(*id, bytes);
                if is_over {
                    self.queue.complete(*id);
                    self.queue.remove(*id);
                }
            }
        }
        if is_over {
            self.jobs.swap_remove(at);
        } else {
            self.ask(at);
        }
    }

    fn decline(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        if job.granted_bytes.take().is_none() {
            return;
        }
        match &mut job.place {
            Place::Whole(whole) => self.queue.cancel_whole(job.connection, whole),
            Place::Queued(id) => self.queue.decline(*id),
        }
        self.cancel(at);
    }

    /// As `JobHandle::poll_grant`.
    fn ask(&mut self, at: usize) {
        let (job, now_ns) = (&mut self.jobs[at], self.now_ns);
        if job.asks || job.granted_bytes.is_some() {
            return;
        }
        job.asks = true;
        match &job.place {
            Place::Whole(whole) => {
                let id = self.queue.submit_whole(job.connection, whole, None);
                job.place = Place::Queued(id.unwrap());
            }
            Place::Queued(id) => self.queue.want(*id, None, now_ns),
        }
    }

    fn abort(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        match &mut job.place {
            Place::Whole(whole) => {
                self.queue.cancel_whole(job.connection, whole);
                let connection = self.queue.connections.of(job.connection);
                connection.marks.whole_ended();
            }
            Place::Queued(id) => {
                self.queue.remove(*id);
            }
        }
        self.cancel(at);
        self.jobs.swap_remove(at);
    }

    /// A job's last charge is cancelled, unless its bytes are in the socket.
    fn cancel(&mut self, at: usize) {
        if let Some(charge) = self.jobs[at].charge.take() {
            let fate = &mut self.charges[charge].fate;
            if matches!(fate, Fate::Unwritten | Fate::Refunded) {
                *fate = Fate::Cancelled;
            }
        }
    }

    fn change_fates(&mut self, of: ConnectionId, change: impl Fn(Fate) -> Fate) {
        let charges = self.charges.iter_mut();
        for charge in charges.filter(|charge| charge.connection == of) {
            charge.fate = change(charge.fate);
        }
    }

    /// As `Transport::drained`.
    fn drain(&mut self, at: usize) {
        let report = match (self.mode, self.is_paced()) {
            (LinkMode::Writers, _) => Report::Always,
            (_, true) => Report::IfCharged,
            (_, false) => Report::IfAwaited,
        };
        let connected = &mut self.connections[at];
        let id = connected.id;
        let Some(has_to_be_told) = connected.marks.drain(report) else {
            return;
        };
        connected.unacknowledged_bytes += std::mem::take(&mut connected.pending_bytes);
        self.sockets.holds(id, connected.unacknowledged_bytes);
        if has_to_be_told {
            self.queue.drained(id, self.now_ns);
        }
        self.change_fates(id, |fate| match fate {
            Fate::Cancelled => Fate::Cancelled,
            Fate::Refunded | Fate::RefundedAndWritten if !has_to_be_told => {
                Fate::RefundedAndWritten
            }
            _ => Fate::Written,
        });
    }

    /// As `Transport::blocked`, where bytes wait for the socket.
    fn block(&mut self, at: usize) {
        let connected = &self.connections[at];
        let id = connected.id;
        if self.is_paced() && !connected.marks.can_send() && connected.marks.has_unwritten() {
            self.queue.blocked_by_socket(id);
            self.change_fates(id, |fate| match fate {
                Fate::Unwritten => Fate::Refunded,
                other => other,
            });
        }
    }

    fn acknowledge(&mut self, at: usize) {
        let connected = &mut self.connections[at];
        connected.unacknowledged_bytes = 0;
        self.sockets.holds(connected.id, 0);
    }

    /// A connection ends with all its jobs, and another takes its place.
    fn end(&mut self, at: usize) {
        let id = self.connections[at].id;
        while let Some(job) = self.jobs.iter().position(|job| job.connection == id) {
            self.abort(job);
        }
        if self.connections[at].marks.is_charged() {
            self.queue.ended(id);
        }
        self.change_fates(id, |fate| match fate {
            Fate::Written => Fate::Written,
            _ => Fate::Cancelled,
        });
        let connection = self.queue.connections.of(id);
        let owed = (connection.unwritten(), connection.refunded());
        assert_eq!(owed, (0, 0), "a connection that is over owes nothing");
        let written = self.charges.iter().filter(|one| one.connection == id);
        let written = written.filter(|one| one.fate == Fate::Written);
        let written: u64 = written.map(|one| u64::from(one.wire_bytes)).sum();
        assert_eq!(connection.charged(), written);
        if self.queue.close(id) {
            self.gone.push(id);
        }
        self.connections[at] = self.open();
    }

    fn wait(&mut self, ns: u64) {
        let until_ns = self.now_ns + ns;
        while self.armed_ns > self.now_ns && self.armed_ns <= until_ns {
            self.ring();
        }
        self.now_ns = until_ns;
    }

    /// The alarm goes off.
    fn ring(&mut self) {
        self.now_ns = std::mem::take(&mut self.armed_ns);
        self.dispatch();
    }

    /// As `Link::with_queue` and `Link::leave`.
    fn dispatch(&mut self) {
        self.queue.dispatch(&self.sockets, self.now_ns);
        let actions = self.queue.take_actions().unwrap_or_default();
        for (id, setting) in actions.set {
            let connected = self.connections.iter_mut().find(|one| one.id == id);
            if let (Some(connected), Setting::Priority(priority)) = (connected, setting) {
                let before = connected.priority.replace(priority);
                assert_ne!(before, Some(priority), "a system call for nothing");
            }
        }
        for id in actions.gone {
            assert!(!self.gone.contains(&id), "gone twice");
            self.gone.push(id);
        }
        for at in 0..self.jobs.len() {
            if let (true, Place::Queued(id)) = (self.jobs[at].asks, &self.jobs[at].place)
                && let Some(bytes) = self.queue.link_job(*id).and_then(|job| job.granted_bytes)
            {
                self.granted(at, bytes);
            }
        }
        if let Some(delay_ns) = self.queue.take_look_again_ns() {
            let due_ns = self.now_ns + delay_ns;
            if self.armed_ns <= self.now_ns || due_ns < self.armed_ns {
                self.armed_ns = due_ns;
            }
        }
    }

    fn charged(&self, fates: &[Fate]) -> u64 {
        let counted = self.charges.iter().filter(|one| fates.contains(&one.fate));
        counted.map(|one| u64::from(one.wire_bytes)).sum()
    }

    fn check(&mut self) {
        assert_eq!(self.queue.audit(self.armed_ns, self.now_ns), Ok(()));
        assert_eq!(self.queue.grants_total, self.grants);
        let charged = self.charged(&[Fate::Unwritten, Fate::Written]);
        assert_eq!(self.queue.charged_total, charged);
        let unwritten = self.charged(&[Fate::Unwritten]);
        let by_connection = self.connections.iter();
        let by_connection = by_connection.map(|one| self.queue.connections.of(one.id).unwritten());
        assert_eq!(by_connection.map(u64::from).sum::<u64>(), unwritten);
        let unwritten_grants = self
            .charges
            .iter()
            .filter(|one| one.fate == Fate::Unwritten);
        let stalls = |one: &Charged| one.may_stall(self.now_ns);
        self.may_have_stalled |= self.charges.iter().any(stalls);
        let held = self.queue.regulator.slots_held().unwrap_or(0);
        match self.mode {
            LinkMode::Paced => assert_eq!(self.queue.regulator.unwritten_bytes(), unwritten),
            LinkMode::Auto => assert!(self.queue.regulator.unwritten_bytes() <= unwritten),
            LinkMode::Writers => assert_eq!(held, unwritten_grants.count()),
            LinkMode::Slots => {
                assert!(self.may_have_stalled || held >= unwritten_grants.count().min(1));
            }
            LinkMode::Off | LinkMode::Bands => assert_eq!(held, 0),
        }
        if self.queue.regulator.slots_held().is_some() && self.mode != LinkMode::Writers {
            let known = self.connections.iter().map(|one| one.marks.slots());
            // Connections that are over hold some, too.
            assert!(known.sum::<u32>() as usize <= held);
        }
        assert_eq!(
            self.queue.connections.len() + self.gone.len(),
            self.opened,
            "a connection is there or has gone"
        );
    }

    /// From now on clients take all that they get, and ask for more: every job ends, and then all connections.
    fn settle(&mut self) {
        for _ in 0..ALARMS_MAX {
            while let Some(job) = self.jobs.iter().position(|job| job.granted_bytes.is_some()) {
                self.hand_over(job);
            }
            (0..self.jobs.len()).for_each(|job| self.ask(job));
            for at in 0..CONNECTIONS {
                self.drain(at);
                self.acknowledge(at);
            }
            self.dispatch();
            self.check();
            if self.jobs.is_empty() {
                break;
            }
            if self.jobs.iter().all(|job| job.granted_bytes.is_none()) {
                assert!(self.armed_ns > self.now_ns, "nobody comes back");
                self.ring();
            }
        }
        assert!(self.jobs.is_empty(), "a job waits for ever");
        for at in 0..CONNECTIONS {
            self.end(at);
        }
        let recent = self.queue.facts().recent;
        self.queue.let_go(recent);
        self.dispatch();
        self.check();
        let held = self.queue.regulator.slots_held().unwrap_or(0);
        let left = self.queue.connections.len() - CONNECTIONS;
        assert!(left <= held, "{left} connections are held by {held} slots");
        assert_eq!(self.queue.regulator.unwritten_bytes(), 0);
        assert_eq!(self.queue.charged_total, self.charged(&[Fate::Written]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn over_every_regulator_nothing_is_lost_granted_twice_or_owed(
        mode in select(&MODES[..]),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut model = Model::new(mode);
        for step in steps {
            model.take(step);
        }
        model.settle();
    }
}
