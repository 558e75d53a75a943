//! The queue of the uplink: the jobs, their order, and what decides when a grant is due.
//! Everything here happens under the link's lock, with the time as an argument.

use std::sync::Arc;
use std::task::Waker;

use shortline_sched::units::Rate;
use shortline_sched::uplink::Limit;
use shortline_sched::{
    Client, Job, JobId, JobSpec, PathView, QueueFull, Scheduler, SchedulerConfig,
};

use crate::bands::BandMap;
use crate::config::{LinkConfig, LinkMode};
use crate::discovery::{Facts, Recent};
use crate::regulator::{Pacing, Regulator};
use crate::transport::{SEGMENT_BYTES_DEFAULT, Transport};

mod banded;
mod charges;
mod newcomers;
mod watched;
mod whole;

use charges::Charge;
use newcomers::Newcomers;
pub(crate) use watched::Watched;
pub(crate) use whole::Whole;

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
/// What a response of unknown length is taken to have left at least: a segment.
const UNKNOWN_BYTES_MIN: u64 = SEGMENT_BYTES_DEFAULT as u64;
/// After so long without a response what clients got before no longer counts.
const REST_NS: u64 = 1_000_000_000;
/// Segments of a paced quantum at most: what the kernel sends as one burst.
const PACED_SEGMENTS_MAX: f64 = 44.0;

/// What is known of how much a response sends: payload bytes, its head and framing included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// All of it.
    Known(u64),
    /// Nothing, as of a response that is being made while it is sent. It is taken to have as much
    /// left as it has sent, so that under `srpt` it ranks by the bytes sent so far, as under `las`:
    /// what a long tail leaves to expect grows with what there was already.
    Unknown,
}

/// A job's side of the link.
pub(crate) struct LinkJob {
    pub transport: Arc<Transport>,
    pub waker: Option<Waker>,
    /// Payload bytes granted and not yet taken.
    pub granted_bytes: Option<u32>,
    /// The job wants a grant: it waits in the scheduler, or is parked on its connection.
    pub wanting: bool,
    /// The name of whoever asks.
    client: u128,
    /// Its place among those that wait because their connection is new.
    held: Option<u64>,
    /// Whether its length is known only at its end.
    unknown: bool,
    /// Payload bytes that it has to hand over now, where it waits for more to be made.
    at_hand_bytes: Option<u32>,
    /// What its last grant was charged.
    charge: Charge,
}

impl LinkJob {
    /// Whether it waits apart because its connection is new.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }
}

/// The queue; see the module's text.
pub(crate) struct Queue {
    pub scheduler: Scheduler,
    pub regulator: Regulator,
    jobs: Vec<Option<LinkJob>>,
    quantum_bytes: Option<u32>,
    quantum_bytes_asked: Option<u32>,
    slots_max: usize,
    newcomers: Newcomers,
    rate: Option<Rate>,
    pub to_wake: Vec<Waker>,
    pub grants_total: u64,
    pub refunds_total: u64,
    /// Times that a connection was moved to another band.
    pub band_changes_total: u64,
    /// The connections that discovery asks next, in mode `auto`.
    pub recent: Option<Recent>,
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
            regulator,
            jobs: Vec::new(),
            quantum_bytes,
            quantum_bytes_asked: config.quantum_bytes,
            slots_max: config.slots_max,
            newcomers: Newcomers::default(),
            rate: config.rate,
            waits_for_grant: None,
            recent: (config.mode == LinkMode::Auto).then(Recent::default),
            to_wake: Vec::new(),
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
            Pacing::Free if self.regulator.regulates() && self.scheduler.waiting() > 0 => {
                Pacing::Few
            }
            asked => asked,
        };
        let (slots_max, quantum_bytes) = (self.slots_max, self.quantum_bytes_asked);
        self.regulator
            .follow(pacing, slots_max, quantum_bytes, now_ns);
        self.rate = match pacing {
            Pacing::Rate(rate) => Some(rate),
            Pacing::Slots | Pacing::Few | Pacing::Free => None,
        };
        self.quantum_bytes = self
            .quantum_bytes_asked
            .or(self.rate.map(paced_quantum_bytes))
            .or((pacing == Pacing::Free).then_some(FREE_QUANTUM_BYTES));
    }

    /// The rate that grants follow.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// What discovery goes by, but for the device's counters; the list of recent connections begins
    /// anew.
    pub fn facts(&mut self, now_ns: u64) -> Facts {
        Facts {
            now_ns,
            charged_bytes_total: self.charged_total,
            limited_by: self.limited_by(),
            recent: self.recent.as_mut().map(Recent::take).unwrap_or_default(),
            reading: None,
        }
    }

    /// What keeps more from being sent now: work that waits for the pacer, connections that take no
    /// more, or nothing to send.
    fn limited_by(&self) -> Limit {
        if self.scheduler.waiting() > 0 {
            Limit::Pacing
        } else if self.blocked() > 0 {
            Limit::Network
        } else {
            Limit::Application
        }
    }

    pub fn submit(
        &mut self,
        transport: &Arc<Transport>,
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
        transport.job_began();
        if self.jobs.len() <= id.index() {
            self.jobs.resize_with(id.index() + 1, || None);
        }
        self.jobs[id.index()] = Some(LinkJob {
            transport: Arc::clone(transport),
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
        if payload_bytes > 0 {
            job.transport.set_busy();
        }
        let unknown = job.unknown;
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
        let unwritten_bytes = job.take_unwritten();
        let transport = Arc::clone(&job.transport);
        if self.regulator.bands().is_some() {
            // Its window is closed: it does not make its connection urgent until it asks again.
            transport.jobs_bands.lock().remove(id);
        }
        self.cancel_charge(&transport, unwritten_bytes);
    }

    /// The job is done, or its client has gone.
    pub fn remove(&mut self, id: JobId) -> Option<Job> {
        let mut job = self.jobs.get_mut(id.index())?.take()?;
        job.transport.job_ended();
        if let Some(place) = job.held {
            self.newcomers.forget(job.client, place);
        }
        if self.regulator.bands().is_some() {
            job.transport.jobs_bands.lock().remove(id);
        }
        let unfinished = self
            .scheduler
            .job(id)
            .is_some_and(|job| job.remaining() > 0);
        if unfinished {
            // Aborted: neither its unused grant nor what the connection still has of it will be
            // sent. What other streams of the connection were charged stays.
            let unwritten_bytes = job.take_unwritten();
            self.cancel_charge(&job.transport, unwritten_bytes);
        }
        if job.transport.readiness.is_awaited() {
            job.transport.parked.lock().retain(|parked| *parked != id);
        }
        self.scheduler.remove(id)
    }

    /// Makes every grant that is due. Returns the delay after which to look again, if jobs wait.
    pub fn dispatch(&mut self, now_ns: u64) -> Option<u64> {
        for id in self.newcomers.take_ready(now_ns) {
            self.job_mut(id).held = None;
            self.scheduler.resume(id);
        }
        let due_ns = self.grant_due(now_ns);
        let look_ns = self.newcomers.hold_any().then_some(newcomers::LOOK_NS);
        due_ns.into_iter().chain(look_ns).min()
    }

    fn grant_due(&mut self, now_ns: u64) -> Option<u64> {
        while let Some(id) = self.scheduler.peek(now_ns) {
            if !self.job_mut(id).transport.can_send() {
                self.park(id, now_ns);
                continue;
            }
            if !self.may_begin(id, now_ns) {
                continue;
            }
            if !self.regulator.is_due(now_ns) {
                return Some(self.regulator.look_again_ns(now_ns));
            }
            self.watch(id);
            let taken = self.scheduler.take(now_ns);
            debug_assert_eq!(taken, Some(id));
            self.grant(id, now_ns);
        }
        None
    }

    /// Time the link would need for `bytes`; without a rate, the bytes themselves as a measure.
    fn link_ns(&self, bytes: u64) -> u64 {
        match self.rate {
            Some(rate) => (bytes as f64 * 8e9 / rate.bps() as f64) as u64,
            None => bytes,
        }
    }

    /// Whether the job may be granted something on its connection; if not, it waits apart.
    fn may_begin(&mut self, id: JobId, now_ns: u64) -> bool {
        if !self.regulator.bounds_newcomers() {
            return true;
        }
        let job = self.jobs[id.index()].as_mut();
        let job = job.expect("invariant: a job lives until the scheduler forgets it");
        let (newcomers, client) = (&mut self.newcomers, job.client);
        if newcomers.has_room(client, &job.transport, now_ns) {
            return true;
        }
        job.held = Some(newcomers.hold(client, id));
        self.scheduler.suspend(id);
        false
    }

    fn grant(&mut self, id: JobId, now_ns: u64) {
        let remaining = self.scheduler.job(id).map_or(0, Job::remaining);
        let quantum = self.quantum();
        let job = self.job_mut(id);
        let granted = quantum.min(job.at_hand_bytes.unwrap_or(u32::MAX));
        let bytes = u32::try_from(remaining).unwrap_or(u32::MAX).min(granted);
        job.granted_bytes = Some(granted);
        job.wanting = false;
        let waker = job.waker.take();
        self.to_wake.extend(waker);
        let transport = Arc::clone(&self.job_mut(id).transport);
        let client = self.job_mut(id).client;
        self.note_grant(&transport, client, now_ns);
        if let Some(map) = self.regulator.bands() {
            // Nothing is charged: the qdisc has the rate. Others of this connection may hold a
            // grant, too, and not have used it yet.
            let map = Arc::clone(map);
            let band = transport.jobs_bands.lock().most_urgent();
            self.move_to_band(&map, &transport, band);
            return;
        }
        self.job_mut(id).charge = self.charge(&transport, bytes, now_ns);
    }

    /// A grant is made on a connection: what is counted of it, and what the connection is told.
    fn note_grant(&mut self, transport: &Arc<Transport>, client: u128, now_ns: u64) {
        self.grants_total += 1;
        if self.regulator.bounds_newcomers() {
            self.newcomers.note(client, transport, now_ns);
        }
        if let Some(recent) = &mut self.recent {
            recent.note(transport);
            self.to_wake.extend(self.waits_for_grant.take());
            // The regulator may be another than when the connection was accepted.
            transport.set_unsent_bytes_max(self.regulator.unsent_bytes_max());
        }
    }

    /// The client has sent another request, so it probably has the last response: one look frees its slot.
    pub fn release_last_response(&mut self, transport: &Arc<Transport>) {
        if !transport.carries_jobs() {
            self.regulator.asked_again(transport);
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

    fn park(&mut self, id: JobId, now_ns: u64) {
        self.scheduler.suspend(id);
        let transport = Arc::clone(&self.job_mut(id).transport);
        if let Some(map) = self.regulator.bands() {
            // It waits behind what the connection is sending, which is as urgent now as itself.
            let map = Arc::clone(map);
            let band = transport.jobs_bands.lock().most_urgent();
            let band = band.filter(|&band| transport.waits_below(band));
            self.move_to_band(&map, &transport, band);
        }
        transport.parked.lock().push(id);
        // The connection may have drained since the look: then nobody else would come back for this job.
        if transport.readiness.wait() {
            self.transport_drained(&transport, now_ns);
        }
    }
}

fn paced_quantum_bytes(rate: Rate) -> u32 {
    let bytes = rate.bps() as f64 / 8e9 * PACED_QUANTUM_NS;
    let segments = (bytes / f64::from(SEGMENT_BYTES_DEFAULT)).round();
    segments.clamp(1.0, PACED_SEGMENTS_MAX) as u32 * SEGMENT_BYTES_DEFAULT
}

#[cfg(test)]
mod tests;
