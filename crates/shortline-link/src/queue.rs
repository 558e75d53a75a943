//! The queue of the uplink: the jobs, their order, the connections they are on, and what decides when a grant is due.
//!
//! It does no I/O. The time is an argument; what only the kernel knows of a connection is asked through [`Sockets`];
//! what follows from a change it answers with [`Actions`], which the link carries out, and with the time to
//! look again. Everything here happens under the
//! link's lock.

#![deny(clippy::disallowed_methods)]

use std::sync::Arc;
use std::task::Waker;

use shortline_sched::units::Rate;
use shortline_sched::{
    Client, Job, JobId, JobSpec, PathView, QueueFull, Scheduler, SchedulerConfig,
};

use crate::bands::BandMap;
use crate::config::{LinkConfig, LinkMode};
use crate::connections::{Charge, ConnectionId, Connections, Marks, Packets};
use crate::regulator::{Pacing, Regulator};

mod actions;
mod banded;
mod charges;
mod facts;
mod grants;
mod job;
mod newcomers;
mod watched;
mod whole;

pub(crate) use actions::{Actions, Setting};
pub(crate) use facts::SAMPLES_MAX;
pub use job::Length;
pub(crate) use job::LinkJob;
use newcomers::Newcomers;
pub(crate) use watched::Watched;
pub(crate) use whole::Whole;

/// Payload bytes of a full segment on Ethernet with TCP timestamps, until a socket says.
pub(crate) const SEGMENT_BYTES_DEFAULT: u32 = 1448;
/// Payload bytes of a quantum in mode `writers` (001 3.1).
const WRITER_BLOCK_BYTES: u32 = 32 * 1024;
/// Payload bytes of a quantum in mode `bands`: so often its band is looked at (004 3.2).
const BANDS_QUANTUM_BYTES: u32 = 8192;
/// Payload bytes of a quantum in mode `auto` while nothing is held back: large enough to cost nothing,
/// small enough that soon after a rate is found all responses wait for grants.
const FREE_QUANTUM_BYTES: u32 = 64 * 1024;
/// A paced quantum as time on the link, in whole segments, at least one (at 10 Mbit/s that is one): a small
/// response waits so long behind a large one, and the pacer wakes up as often.
const PACED_QUANTUM_NS: f64 = 350_000.0;
/// The same where more than [`PACED_SEGMENTS_FEW`] pass in that time. At 1 Gbit/s a small response takes a hundredth of a
/// millisecond by itself, so that 350 us would be most of its time.
const PACED_QUANTUM_NS_FAST: f64 = 100_000.0;
/// Segments of a quantum that are not made fewer for that.
const PACED_SEGMENTS_FEW: f64 = 3.0;
/// What a response of unknown length is taken to have left at least: a segment.
const UNKNOWN_BYTES_MIN: u64 = SEGMENT_BYTES_DEFAULT as u64;
/// After so long without a response what clients got before no longer counts.
const REST_NS: u64 = 1_000_000_000;
/// Segments of a paced quantum at most: what the kernel sends as one burst.
const PACED_SEGMENTS_MAX: f64 = 44.0;

/// The queue; see the module's text.
pub(crate) struct Queue {
    pub scheduler: Scheduler,
    pub connections: Connections,
    pub regulator: Regulator,
    jobs: Vec<Option<LinkJob>>,
    quantum_bytes: Option<u32>,
    quantum_bytes_asked: Option<u32>,
    slots_max: usize,
    newcomers: Newcomers,
    rate: Option<Rate>,
    actions: Actions,
    look_again_ns: Option<u64>,
    pub grants_total: u64,
    pub refunds_total: u64,
    /// Times that a connection was moved to another band.
    pub band_changes_total: u64,
    /// The connections that discovery asks next, in mode `auto`.
    recent: Option<Vec<ConnectionId>>,
    /// Discovery while it sleeps: woken by the next grant.
    pub waits_for_grant: Option<Waker>,
    /// Wire bytes charged, corrections by `TCP_INFO` included.
    pub charged_total: u64,
    /// When something was submitted or granted last.
    active_ns: u64,
    /// The grants since the last look at them, if somebody looks.
    pub watched: Option<Vec<Watched>>,
}

impl Queue {
    /// A queue as `config` says; `bands` in mode `bands`.
    pub fn new(config: &LinkConfig, bands: Option<Arc<BandMap>>, now_ns: u64) -> Self {
        let regulator = match (config.mode, config.rate) {
            (LinkMode::Bands, _) => bands.map_or(Regulator::Off, Regulator::Bands),
            (LinkMode::Paced, Some(rate)) => Regulator::paced(rate, now_ns),
            (LinkMode::Writers, _) => Regulator::writers(config.slots_max),
            (LinkMode::Slots, _) => Regulator::slots(config.slots_max, config.quantum_bytes),
            (LinkMode::Paced | LinkMode::Off | LinkMode::Auto, _) => Regulator::Off,
        };
        let quantum_bytes = config.quantum_bytes.or_else(|| match config.mode {
            LinkMode::Bands => Some(BANDS_QUANTUM_BYTES),
            LinkMode::Writers => Some(WRITER_BLOCK_BYTES),
            LinkMode::Auto => Some(FREE_QUANTUM_BYTES),
            _ => config.rate.map(paced_quantum_bytes),
        });
        Self {
            scheduler: Scheduler::new(SchedulerConfig {
                policy: config.policy,
                urgency: config.urgency,
                jobs_max: config.jobs_max,
                burst: config.burst_bytes,
            }),
            active_ns: now_ns,
            connections: Connections::default(),
            regulator,
            jobs: Vec::new(),
            quantum_bytes,
            quantum_bytes_asked: config.quantum_bytes,
            slots_max: config.slots_max,
            newcomers: Newcomers::new(config.mode == LinkMode::Auto, config.rate),
            rate: config.rate,
            waits_for_grant: None,
            recent: (config.mode == LinkMode::Auto).then(Vec::new),
            actions: Actions::default(),
            look_again_ns: None,
            grants_total: 0,
            refunds_total: 0,
            band_changes_total: 0,
            charged_total: 0,
            watched: None,
        }
    }

    /// Grants are due as `pacing` says from now on (mode `auto`). What was granted before stays
    /// granted; what of it is unwritten a new pacer does not know, and it forgets no more than it was
    /// charged.
    pub fn pace(&mut self, pacing: Pacing, now_ns: u64) {
        let pacing = match pacing {
            // What waited for a rate does not go all at once.
            Pacing::Free | Pacing::Unknown
                if self.regulator.regulates() && self.scheduler.waiting() > 0 =>
            {
                Pacing::Few
            }
            asked => asked,
        };
        self.newcomers.acknowledge_all(pacing == Pacing::Unknown);
        let (slots_max, quantum_bytes) = (self.slots_max, self.quantum_bytes_asked);
        let connections = &mut self.connections;
        self.regulator
            .follow(pacing, slots_max, quantum_bytes, connections, now_ns);
        self.rate = match pacing {
            Pacing::Rate(rate) => Some(rate),
            Pacing::Slots | Pacing::Few | Pacing::Free | Pacing::Unknown => None,
        };
        self.newcomers.set_rate(self.rate);
        let is_at_once = matches!(pacing, Pacing::Free | Pacing::Unknown);
        self.quantum_bytes = self
            .quantum_bytes_asked
            .or(self.rate.map(paced_quantum_bytes))
            .or(is_at_once.then_some(FREE_QUANTUM_BYTES));
    }

    /// The rate that grants follow.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// A new connection, and the marks that its own thread shares with the queue.
    pub fn open(&mut self, packets: Packets, unsent_bytes_max: u32) -> (ConnectionId, Arc<Marks>) {
        self.connections.open(packets, unsent_bytes_max)
    }

    /// Nobody has a handle of the connection any more. It has no jobs. Whether its socket is to be closed now: else
    /// that is one of the actions later.
    pub fn close(&mut self, id: ConnectionId) -> bool {
        self.regulator.ended(id);
        self.connections.close(id)
    }

    /// What is to be done now, outside of the queue, if anything is.
    pub fn take_actions(&mut self) -> Option<Actions> {
        let is_none = self.actions.is_empty() && !self.connections.has_gone();
        (!is_none).then(|| Actions {
            gone: self.connections.take_gone(),
            ..std::mem::take(&mut self.actions)
        })
    }

    /// In how many nanoseconds somebody has to look again, if jobs wait.
    pub fn take_look_again_ns(&mut self) -> Option<u64> {
        self.look_again_ns.take()
    }

    pub fn submit(
        &mut self,
        connection: ConnectionId,
        client: Client,
        length: Length,
        path: Option<PathView>,
        now_ns: u64,
    ) -> Result<JobId, QueueFull> {
        let payload_bytes = match length {
            Length::Known(payload_bytes) => payload_bytes,
            Length::Unknown => UNKNOWN_BYTES_MIN,
        };
        if self.scheduler.is_empty() && now_ns.saturating_sub(self.active_ns) >= REST_NS {
            self.scheduler.rest();
        }
        self.active_ns = now_ns;
        let id = self.scheduler.submit(JobSpec {
            arrival_ns: now_ns,
            work: payload_bytes,
            service_ns_expected: self.link_ns(payload_bytes),
            path,
            client: Some(client),
            ..JobSpec::default()
        })?;
        self.connections.of_mut(connection).jobs += 1;
        if self.jobs.len() <= id.index() {
            self.jobs.resize_with(id.index() + 1, || None);
        }
        self.jobs[id.index()] = Some(LinkJob {
            connection,
            waker: None,
            granted_bytes: None,
            wanting: true,
            client: client.name,
            held: None,
            unknown: length == Length::Unknown,
            at_hand_bytes: None,
            charge: Charge::default(),
        });
        self.note_band(id, now_ns);
        Ok(id)
    }

    /// The link's side of a job.
    pub fn link_job(&self, id: JobId) -> Option<&LinkJob> {
        self.jobs.get(id.index())?.as_ref()
    }

    /// Jobs that wait apart because their connections are new.
    pub fn held(&self) -> usize {
        self.newcomers.held()
    }

    pub fn job_mut(&mut self, id: JobId) -> &mut LinkJob {
        self.jobs[id.index()]
            .as_mut()
            .expect("invariant: a handle's job lives until the handle removes it")
    }

    /// The job asks for its next grant, on a path that is as told, if the order goes by paths.
    pub fn want(&mut self, id: JobId, path: Option<PathView>, now_ns: u64) {
        let job = self.job_mut(id);
        if !job.wanting {
            job.wanting = true;
            if let Some(path) = path {
                self.scheduler.update_path(id, path);
            }
            self.scheduler.resume(id);
            self.note_band(id, now_ns);
        }
    }

    /// Takes the grant that the job was given, if it was.
    pub fn take_grant(&mut self, id: JobId) -> Option<u32> {
        self.job_mut(id).granted_bytes.take()
    }

    /// The job has so many payload bytes to hand over, and no more until it asks again.
    pub fn offer(&mut self, id: JobId, payload_bytes: u32) {
        self.job_mut(id).at_hand_bytes = Some(payload_bytes);
    }

    /// The job's bytes are with its connection now.
    pub fn hand_over(&mut self, id: JobId, payload_bytes: u32) {
        let job = self.job_mut(id);
        let (connection, unknown) = (job.connection, job.unknown);
        if payload_bytes > 0 {
            self.connections.of(connection).marks.begin();
        }
        self.scheduler.record(id, u64::from(payload_bytes));
        if unknown && let Some(job) = self.scheduler.job(id) {
            let sent = job.work_done;
            let total = sent.saturating_add(sent.max(UNKNOWN_BYTES_MIN));
            self.scheduler.revise(id, total, self.link_ns(total));
        }
    }

    /// What the job has handed over was all.
    pub fn complete(&mut self, id: JobId) {
        if let Some(job) = self.scheduler.job(id) {
            let sent = job.work_done;
            self.scheduler.revise(id, sent, self.link_ns(sent));
        }
    }

    /// The job cannot use its grant now.
    pub fn decline(&mut self, id: JobId) {
        let job = self.job_mut(id);
        job.granted_bytes = None;
        let (charge, connection) = (std::mem::take(&mut job.charge), job.connection);
        if self.regulator.bands().is_some() {
            // Its window is closed: it does not make its connection urgent until it asks again.
            self.connections.of_mut(connection).jobs_bands.remove(id);
        }
        self.cancel(connection, charge);
    }

    /// The job is done, or its client has gone.
    pub fn remove(&mut self, id: JobId) -> Option<Job> {
        let job = self.jobs.get_mut(id.index())?.take()?;
        if let Some(place) = job.held {
            self.newcomers.forget(job.client, place);
        }
        let connection = self.connections.of_mut(job.connection);
        connection.jobs -= 1;
        if self.regulator.bands().is_some() {
            connection.jobs_bands.remove(id);
        }
        if connection.marks.is_awaited() {
            connection.parked.retain(|parked| *parked != id);
        }
        let unfinished = self
            .scheduler
            .job(id)
            .is_some_and(|job| job.remaining() > 0);
        if unfinished {
            // Aborted: neither its unused grant nor what the connection still has of it will be
            // sent. What other streams of the connection were charged stays.
            self.cancel(job.connection, job.charge);
        }
        self.scheduler.remove(id)
    }

    /// Time the link would need for `bytes`; without a rate, the bytes themselves as a measure.
    fn link_ns(&self, bytes: u64) -> u64 {
        match self.rate {
            Some(rate) => (bytes as f64 * 8e9 / rate.bps() as f64) as u64,
            None => bytes,
        }
    }

    /// The client has sent another request, and what takes the oldest `slots_arrived` slots of its connection has arrived:
    /// they are free.
    pub fn release_last_response(&mut self, id: ConnectionId, slots_arrived: u32) {
        if !self.connections.of(id).carries_jobs() {
            self.regulator
                .asked_again(&mut self.connections, id, slots_arrived);
        }
    }

    /// Jobs passed over because their connection cannot send.
    pub fn blocked(&self) -> usize {
        let parked = |(id, _): &(JobId, &Job)| {
            let job = self.jobs[id.index()].as_ref();
            job.is_some_and(|job| job.wanting) && !self.scheduler.is_waiting(*id)
        };
        self.scheduler.jobs().filter(parked).count()
    }

    /// Payload bytes that the next grant carries.
    pub fn quantum(&self) -> u32 {
        let quantum_bytes = self.regulator.quantum_bytes().or(self.quantum_bytes);
        quantum_bytes.unwrap_or(u32::MAX)
    }
}

fn paced_quantum_bytes(rate: Rate) -> u32 {
    let segments_in = |time_ns: f64| {
        let bytes = rate.bps() as f64 / 8e9 * time_ns;
        (bytes / f64::from(SEGMENT_BYTES_DEFAULT)).round()
    };
    let few = segments_in(PACED_QUANTUM_NS).min(PACED_SEGMENTS_FEW);
    let segments = segments_in(PACED_QUANTUM_NS_FAST).max(few);
    segments.clamp(1.0, PACED_SEGMENTS_MAX) as u32 * SEGMENT_BYTES_DEFAULT
}

#[cfg(test)]
mod tests;
