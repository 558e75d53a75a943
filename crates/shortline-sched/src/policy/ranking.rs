//! A policy at work. It ranks each job from the job itself and from what the policy keeps beside
//! the jobs (bands, paths, a twin server), and applies growing.
//!
//! Growing needs ranks as times of service ([`Growing`]). Work counts as the service expected for
//! it, a band as that of its smallest size, a time as itself. Within a band the order is then by
//! age instead of by turns. `fair`, `fifo`, `fsp`, `boost` and `shares` pass no job for ever, so
//! growing leaves them as they are.

use super::bands::Bands;
use super::boost::Boosts;
use super::fsp::Twin;
use super::gittins::Errors;
use super::{Cutoffs, Policy};
use super::{bands, fair, fcf, fifo, las, psjf, quickfix, shares, sjf, srpt, srrt, stert, swift};
use crate::job::{Job, JobSpec};
use crate::path::PathView;
use crate::urgency::Growing;

/// Gives ranks.
#[derive(Clone, Debug)]
pub(crate) struct Ranking {
    rule: Rule,
    growing: Option<Growing>,
}

/// A policy with its state.
#[derive(Clone, Debug)]
enum Rule {
    Fair,
    Fifo,
    Sjf,
    Psjf,
    Srpt,
    Bands(Bands),
    QuickFix(Bands),
    Swift(Paths),
    Fcf(Paths),
    Srrt(Paths),
    Stert(Paths),
    Las,
    Fsp(Twin),
    Boost(Boosts),
    Gittins(Errors),
    Shares,
}

impl Ranking {
    pub(crate) fn new(policy: Policy, growing: Option<Growing>, jobs_max: usize) -> Self {
        let rule = match policy {
            Policy::Fair => Rule::Fair,
            Policy::Fifo => Rule::Fifo,
            Policy::Sjf => Rule::Sjf,
            Policy::Psjf => Rule::Psjf,
            Policy::Srpt => Rule::Srpt,
            Policy::Bands(cutoffs) => Rule::Bands(Bands::new(&cutoffs)),
            Policy::QuickFix { small_max } => {
                Rule::QuickFix(Bands::new(&Cutoffs::around(small_max)))
            }
            Policy::Swift => Rule::Swift(Paths::default()),
            Policy::Fcf => Rule::Fcf(Paths::default()),
            Policy::Srrt => Rule::Srrt(Paths::default()),
            Policy::Stert => Rule::Stert(Paths::default()),
            Policy::Las => Rule::Las,
            Policy::Fsp => Rule::Fsp(Twin::new(jobs_max)),
            Policy::Boost => Rule::Boost(Boosts::default()),
            Policy::Gittins => Rule::Gittins(Errors::default()),
            Policy::Shares => Rule::Shares,
        };
        Self { rule, growing }
    }

    /// Notes a job that arrives; `alone` if no other is held.
    pub(crate) fn submit(&mut self, slot: u32, job: &Job, spec: &JobSpec, alone: bool) {
        match &mut self.rule {
            Rule::Bands(bands) | Rule::QuickFix(bands) => bands.see(job.work_estimate),
            Rule::Fsp(twin) => twin.submit(slot, job, alone),
            Rule::Boost(boosts) => boosts.submit(slot, job),
            _ => self.update_path(slot, spec.path.unwrap_or(PathView::UNKNOWN)),
        }
    }

    /// Notes a job's path.
    pub(crate) fn update_path(&mut self, slot: u32, path: PathView) {
        if let Rule::Swift(paths) | Rule::Fcf(paths) | Rule::Srrt(paths) | Rule::Stert(paths) =
            &mut self.rule
        {
            paths.set(slot, path);
        }
    }

    /// Notes the time.
    pub(crate) fn advance_to(&mut self, now_ns: u64) {
        if let Rule::Fsp(twin) = &mut self.rule {
            twin.advance_to(now_ns);
        }
    }

    /// Notes a job that leaves.
    pub(crate) fn remove(&mut self, slot: u32, job: &Job) {
        match &mut self.rule {
            Rule::Fsp(twin) if job.remaining() > 0 => twin.abandon(slot),
            Rule::Gittins(errors) if job.remaining() == 0 => errors.learn(job),
            _ => {}
        }
    }

    /// The present cutoffs between the bands, if the policy has any.
    pub(crate) fn cutoffs(&self) -> Option<&[u64]> {
        match &self.rule {
            Rule::Bands(bands) | Rule::QuickFix(bands) => Some(bands.cutoffs()),
            _ => None,
        }
    }

    /// How long the job's response takes by the policy's estimate, in nanoseconds; `None` if the
    /// policy uses no estimate.
    pub(crate) fn response_ns(&self, slot: u32, job: &Job, now_ns: u64) -> Option<u64> {
        match &self.rule {
            Rule::Swift(_) | Rule::Fcf(_) | Rule::Srrt(_) => Some(self.rank_plain(slot, job)),
            Rule::Stert(paths) => Some(stert::total_ns(job, paths.get(slot), now_ns)),
            _ => None,
        }
    }

    /// The rank of a job as it stands; the smallest is served first.
    pub(crate) fn rank(&self, slot: u32, job: &Job) -> u64 {
        match self.growing {
            None => self.rank_plain(slot, job),
            Some(growing) => self.rank_growing(slot, job, growing),
        }
    }

    fn rank_plain(&self, slot: u32, job: &Job) -> u64 {
        match &self.rule {
            Rule::Fair => fair::rank(job),
            Rule::Fifo => fifo::rank(job),
            Rule::Sjf => sjf::rank(job),
            Rule::Psjf => psjf::rank(job),
            Rule::Srpt => srpt::rank(job),
            Rule::Bands(bands) => bands::rank(job, bands),
            Rule::QuickFix(bands) => quickfix::rank(job, bands),
            Rule::Swift(paths) => swift::rank(job, paths.get(slot)),
            Rule::Fcf(paths) => fcf::rank(job, paths.get(slot)),
            Rule::Srrt(paths) => srrt::rank(job, paths.get(slot)),
            Rule::Stert(paths) => stert::rank(job, paths.get(slot)),
            Rule::Las => las::rank(job),
            Rule::Fsp(twin) => twin.rank(slot),
            Rule::Boost(boosts) => boosts.rank(slot),
            Rule::Gittins(errors) => errors.rank(job),
            Rule::Shares => shares::rank(job),
        }
    }

    fn rank_growing(&self, slot: u32, job: &Job, growing: Growing) -> u64 {
        let work = |work| growing.rank(job.arrival_ns, job.service_ns(work));
        match &self.rule {
            Rule::Fair | Rule::Fifo | Rule::Fsp(_) | Rule::Boost(_) | Rule::Shares => {
                self.rank_plain(slot, job)
            }
            Rule::Sjf => sjf::never_preempting(job, work(job.work_estimate)),
            Rule::Psjf => work(job.work_estimate),
            Rule::Srpt => work(job.remaining_estimate()),
            Rule::Bands(bands) => work(bands.floor(job.remaining_estimate())),
            Rule::QuickFix(bands) => work(bands.floor(job.work_estimate)),
            Rule::Las => work(job.work_done),
            Rule::Gittins(errors) => work(errors.rank(job)),
            Rule::Swift(_) | Rule::Fcf(_) | Rule::Srrt(_) => {
                growing.rank(job.arrival_ns, self.rank_plain(slot, job) as f64)
            }
            Rule::Stert(paths) => stert::rank_growing(job, paths.get(slot), growing),
        }
    }
}

/// The path of each job, by slot.
#[derive(Clone, Debug, Default)]
struct Paths(Vec<PathView>);

impl Paths {
    fn set(&mut self, slot: u32, path: PathView) {
        let slot = slot as usize;
        if self.0.len() <= slot {
            self.0.resize(slot + 1, PathView::UNKNOWN);
        }
        self.0[slot] = path;
    }

    fn get(&self, slot: u32) -> &PathView {
        &self.0[slot as usize]
    }
}
