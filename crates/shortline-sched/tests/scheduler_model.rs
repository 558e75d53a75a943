//! The scheduler compared with a model that keeps its jobs in a list and searches it.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use shortline_sched::{
    Aging, Growing, Job, JobId, JobSpec, PathView, Policy, QueueFull, Scheduler, SchedulerConfig,
    Urgency,
};

const JOBS_MAX: usize = 40;
/// Of aging and of growing.
const FACTOR: f64 = 3.0;
const CUTOFFS: [u64; 3] = [5, 20, 40];
const SMALL_MAX: u64 = 25;

/// What a driver may do. Jobs are named by the number submitted before them, so that steps also
/// name removed jobs.
#[derive(Clone, Debug)]
enum Step {
    Submit {
        work: u64,
        estimate: Option<u64>,
        path: Option<PathView>,
    },
    Take,
    Record {
        job: usize,
        work_done: u64,
    },
    Resume {
        job: usize,
    },
    Suspend {
        job: usize,
    },
    Remove {
        job: usize,
    },
    UpdatePath {
        job: usize,
        path: PathView,
    },
    Pass {
        elapsed_ns: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let job = || 0..120usize;
    prop_oneof![
        4 => (0..60u64, prop::option::of(0..60u64), prop::option::of(path()))
            .prop_map(|(work, estimate, path)| Step::Submit { work, estimate, path }),
        1 => (job(), path()).prop_map(|(job, path)| Step::UpdatePath { job, path }),
        4 => Just(Step::Take),
        3 => (job(), 0..30u64).prop_map(|(job, work_done)| Step::Record { job, work_done }),
        3 => job().prop_map(|job| Step::Resume { job }),
        2 => job().prop_map(|job| Step::Suspend { job }),
        2 => job().prop_map(|job| Step::Remove { job }),
        2 => (0..40u64).prop_map(|elapsed_ns| Step::Pass { elapsed_ns }),
    ]
}

/// Paths on which all times are whole.
fn path() -> impl Strategy<Value = PathView> {
    let cwnd_bytes = prop::sample::select(&[1_000, 2_000, 4_000]);
    let rate_bps_past = prop::option::of(prop::sample::select(&[8_000_000, 16_000_000]));
    (1..5u64, cwnd_bytes, rate_bps_past).prop_map(|(rtt_ms, cwnd_bytes, rate_bps_past)| PathView {
        rtt_ns: rtt_ms * 1_000_000,
        cwnd_bytes,
        rate_bps_past,
    })
}

/// Their order depends on jobs that have gone.
const HIDDEN: [Policy; 4] = [Policy::Fsp, Policy::Boost, Policy::Gittins, Policy::Shares];

/// All policies but `fsp`, `boost`, `gittins` and `shares`, whose order no job shows by itself, with cutoffs
/// that divide the sizes.
fn policies() -> Vec<Policy> {
    let parted = |policy: Policy| match policy.name() {
        "bands" => "bands:5B,20B,40B".parse().unwrap(),
        "quickfix" => "quickfix:25B".parse().unwrap(),
        _ => policy,
    };
    let policies = Policy::ALL
        .into_iter()
        .filter(|policy| !HIDDEN.contains(policy));
    policies.map(parted).collect()
}

#[derive(Clone, Copy, Debug)]
struct ModelJob {
    arrival_ns: u64,
    work: u64,
    estimate: u64,
    path: PathView,
    done: u64,
    started: bool,
    passes: bool,
    waiting: bool,
    removed: bool,
    turn: u64,
}

impl ModelJob {
    /// Class, then place in the class.
    fn rank(&self, policy: Policy) -> (u64, i64) {
        let band = |size| CUTOFFS.partition_point(|&cutoff| cutoff < size) as u64;
        let whole = |place: u64| (0, i64::try_from(place).unwrap());
        match policy {
            Policy::Fair => whole(self.turn),
            Policy::Fifo => whole(self.arrival_ns),
            Policy::Sjf => (u64::from(!self.started), self.estimate as i64),
            Policy::Psjf => whole(self.estimate),
            Policy::Srpt => whole(self.remaining()),
            Policy::Bands(_) => (band(self.remaining()), self.turn as i64),
            Policy::QuickFix { .. } => (u64::from(self.estimate > SMALL_MAX), self.turn as i64),
            Policy::Swift => whole(self.service_ns(self.remaining()) + self.path.rtt_ns),
            Policy::Fcf => (0, self.sending_ns(1.0).round() as i64),
            Policy::Srrt => (0, self.response_ns(0.0).round() as i64),
            Policy::Stert => (
                0,
                self.response_ns(0.9).round() as i64 - self.arrival_ns as i64,
            ),
            Policy::Las => whole(self.done),
            Policy::Fsp | Policy::Boost | Policy::Gittins | Policy::Shares => {
                unreachable!("left out of the policies")
            }
        }
    }

    /// The same once the rank falls with age.
    fn rank_growing(&self, policy: Policy) -> (u64, i64) {
        let floor = |cutoffs: &[u64], size: u64| {
            let below = cutoffs.iter().copied().filter(|&cutoff| cutoff < size);
            self.service_ns(below.max().unwrap_or(0)) as f64
        };
        let (class, place) = self.rank(policy);
        let time_ns = match policy {
            Policy::Fair | Policy::Fifo => return (class, place),
            Policy::Sjf | Policy::Psjf => self.service_ns(self.estimate) as f64,
            Policy::Srpt => self.service_ns(self.remaining()) as f64,
            Policy::Bands(_) => floor(&CUTOFFS, self.remaining()),
            Policy::QuickFix { .. } => floor(&[SMALL_MAX], self.estimate),
            Policy::Las => self.service_ns(self.done) as f64,
            Policy::Stert => self.response_ns(0.9) - self.arrival_ns as f64,
            _ => place as f64,
        };
        let class = if policy == Policy::Sjf { class } else { 0 };
        (
            class,
            (FACTOR * time_ns + self.arrival_ns as f64).round() as i64,
        )
    }

    fn remaining(&self) -> u64 {
        if self.done >= self.work {
            return 0;
        }
        self.estimate.saturating_sub(self.done).max(1)
    }

    /// Work takes a nanosecond a unit, if any is expected.
    fn service_ns(&self, work: u64) -> u64 {
        if self.estimate == 0 { 0 } else { work }
    }

    /// What remains at the past rate, which counts by its share beside the window's.
    fn sending_ns(&self, past_share: f64) -> f64 {
        let window_bps = self.path.cwnd_bytes as f64 * 8e9 / self.path.rtt_ns as f64;
        let rate_bps = match self.path.rate_bps_past {
            None => window_bps,
            Some(past_bps) => past_share * past_bps as f64 + (1.0 - past_share) * window_bps,
        };
        self.remaining() as f64 * 8e9 / rate_bps
    }

    fn response_ns(&self, past_share: f64) -> f64 {
        self.path.rtt_ns as f64 + self.sending_ns(past_share)
    }

    fn deadline_ns(&self) -> u64 {
        self.arrival_ns + FACTOR as u64 * self.estimate
    }
}

struct Model {
    policy: Policy,
    urgency: Urgency,
    /// All jobs ever submitted, in that order.
    jobs: Vec<ModelJob>,
    turns: u64,
    now_ns: u64,
    /// Work in the order of ranks that is owed for what overdue jobs got.
    in_order_due: u64,
}

impl Model {
    fn waiting(&self) -> impl Iterator<Item = usize> {
        (0..self.jobs.len()).filter(|&job| self.jobs[job].waiting)
    }

    fn overdue(&self) -> Option<usize> {
        let ages = self.urgency.aging().is_some() && self.in_order_due == 0;
        self.waiting()
            .filter(|&job| ages && self.jobs[job].deadline_ns() <= self.now_ns)
            .min_by_key(|&job| (self.jobs[job].deadline_ns(), job))
    }

    fn next(&self) -> Option<usize> {
        let rank = |job: &ModelJob| match self.urgency.growing() {
            Some(_) => job.rank_growing(self.policy),
            None => job.rank(self.policy),
        };
        self.overdue().or_else(|| {
            self.waiting()
                .min_by_key(|&job| (rank(&self.jobs[job]), job))
        })
    }

    fn held(&self) -> usize {
        self.jobs.iter().filter(|job| !job.removed).count()
    }

    fn held_job(&mut self, job: usize) -> Option<&mut ModelJob> {
        self.jobs.get_mut(job).filter(|job| !job.removed)
    }

    /// The next deadline, if nobody is overdue.
    fn next_change_ns(&self) -> Option<u64> {
        let waiting = self.jobs.iter().filter(|job| job.waiting);
        let earliest_ns = waiting.map(ModelJob::deadline_ns).min()?;
        (self.urgency.aging().is_some() && earliest_ns > self.now_ns).then_some(earliest_ns)
    }

    fn submit(&mut self, work: u64, estimate: u64, path: PathView) {
        self.jobs.push(ModelJob {
            arrival_ns: self.now_ns,
            work,
            estimate,
            path,
            done: 0,
            started: false,
            passes: false,
            waiting: true,
            removed: false,
            turn: self.turns,
        });
        self.turns += 1;
    }

    fn resume(&mut self, job: usize) {
        let turn = self.turns;
        if let Some(job) = self.held_job(job).filter(|job| !job.waiting) {
            job.waiting = true;
            job.turn = turn;
            self.turns += 1;
        }
    }
}

/// Applies a step to both.
fn apply(step: &Step, real: &mut Scheduler, ids: &mut Vec<JobId>, model: &mut Model) {
    match *step {
        Step::Submit {
            work,
            estimate,
            path,
        } => {
            let estimated = estimate.unwrap_or(work);
            let submitted = real.submit(JobSpec {
                arrival_ns: model.now_ns,
                work,
                service_ns_expected: estimated,
                work_estimate: estimate,
                path,
                client: None,
            });
            if model.held() == JOBS_MAX {
                assert_eq!(submitted, Err(QueueFull { jobs_max: JOBS_MAX }));
            } else {
                ids.push(submitted.unwrap());
                model.submit(work, estimated, path.unwrap_or(PathView::UNKNOWN));
            }
        }
        Step::Take => {
            let expected = model.next();
            let passes = model.overdue().is_some();
            let taken = real.take(model.now_ns);
            assert_eq!(taken, expected.map(|job| ids[job]));
            if let Some(job) = expected.and_then(|job| model.held_job(job)) {
                job.waiting = false;
                job.started = true;
                job.passes = passes;
            }
        }
        Step::Pass { elapsed_ns } => model.now_ns += elapsed_ns,
        Step::Record { job, .. }
        | Step::Resume { job }
        | Step::Suspend { job }
        | Step::Remove { job }
        | Step::UpdatePath { job, .. } => {
            if let Some(&id) = ids.get(job) {
                apply_to_job(step, job, id, real, model);
            }
        }
    }
}

fn apply_to_job(step: &Step, job: usize, id: JobId, real: &mut Scheduler, model: &mut Model) {
    match *step {
        Step::Record { work_done, .. } => {
            real.record(id, work_done);
            if let Some(job) = model.held_job(job) {
                job.done += work_done;
                model.in_order_due = match job.passes {
                    true => model.in_order_due + 7 * work_done,
                    false => model.in_order_due.saturating_sub(work_done),
                };
            }
        }
        Step::UpdatePath { path, .. } => {
            real.update_path(id, path);
            if let Some(job) = model.held_job(job) {
                job.path = path;
            }
        }
        Step::Resume { .. } => {
            real.resume(id);
            model.resume(job);
        }
        Step::Suspend { .. } => {
            real.suspend(id);
            if let Some(job) = model.held_job(job) {
                job.waiting = false;
            }
        }
        _ => {
            let removed = real.remove(id);
            let expected = model.held_job(job);
            assert_eq!(
                removed.map(|job| (job.work_total, job.work_done)),
                expected.as_ref().map(|job| (job.work, job.done))
            );
            if let Some(job) = expected {
                job.waiting = false;
                job.removed = true;
            }
        }
    }
}

fn check(real: &Scheduler, ids: &[JobId], model: &Model) {
    let next = model.next().map(|job| ids[job]);
    assert_eq!(real.peek(model.now_ns), next);
    assert_eq!(real.next_change_ns(model.now_ns), model.next_change_ns());
    assert_eq!(real.len(), model.held());
    assert_eq!(real.is_empty(), model.held() == 0);
    let waiting = model.jobs.iter().filter(|job| job.waiting).count();
    assert_eq!(real.waiting(), waiting);
    for (&id, expected) in ids.iter().zip(&model.jobs) {
        assert_eq!(real.is_waiting(id), expected.waiting);
        let seen = real.job(id).map(|job: &Job| (job.work_done, job.started));
        let expected = (!expected.removed).then_some((expected.done, expected.started));
        assert_eq!(seen, expected);
    }
    let mut listed: Vec<_> = real.jobs().map(|(id, job)| (job.arrival_ns, id)).collect();
    assert_eq!(listed.len(), model.held());
    listed.retain(|&(arrival_ns, id)| real.job(id).map(|job| job.arrival_ns) != Some(arrival_ns));
    assert_eq!(listed, []);
}

proptest! {
    #[test]
    fn behaves_as_a_searched_list(
        steps in prop::collection::vec(step(), 0..250),
        policy in prop::sample::select(policies()),
        urgency in prop::sample::select(vec![
            Urgency::None,
            Urgency::Aging(Aging::new(FACTOR).unwrap()),
            Urgency::Growing(Growing::new(FACTOR).unwrap()),
        ]),
    ) {
        let mut real = Scheduler::new(SchedulerConfig {
            urgency,
            ..SchedulerConfig::new(policy, JOBS_MAX)
        });
        let mut ids = Vec::new();
        let mut model = Model {
            policy,
            urgency,
            jobs: Vec::new(),
            turns: 0,
            now_ns: 0,
            in_order_due: 0,
        };
        for step in &steps {
            apply(step, &mut real, &mut ids, &mut model);
            check(&real, &ids, &model);
        }
    }
}

#[test]
fn a_stale_id_never_names_the_job_that_took_the_place() {
    let mut scheduler = Scheduler::new(SchedulerConfig::new(Policy::Srpt, 1));
    let spec = JobSpec {
        work: 10,
        ..JobSpec::default()
    };
    let stale = scheduler.submit(spec).unwrap();
    assert_eq!(scheduler.submit(spec), Err(QueueFull { jobs_max: 1 }));
    assert!(scheduler.remove(stale).is_some());
    let fresh = scheduler.submit(spec).unwrap();

    scheduler.record(stale, 5);
    scheduler.suspend(stale);
    assert_eq!(scheduler.remove(stale), None);
    assert_eq!(scheduler.job(stale), None);
    assert!(!scheduler.is_waiting(stale));
    assert!(scheduler.is_waiting(fresh));
    assert_eq!(scheduler.job(fresh).unwrap().remaining(), 10);
}

fn job_of(work: u64) -> JobSpec {
    JobSpec {
        work,
        service_ns_expected: work,
        ..JobSpec::default()
    }
}

#[test]
fn a_total_revised_moves_a_waiting_job() {
    let mut scheduler = Scheduler::new(SchedulerConfig::new(Policy::Srpt, 2));
    let small = scheduler.submit(job_of(10)).unwrap();
    let large = scheduler.submit(job_of(20)).unwrap();
    assert_eq!(scheduler.peek(0), Some(small));
    scheduler.record(small, 10);
    scheduler.revise(small, 40, 40);
    assert_eq!(scheduler.peek(0), Some(large), "30 are left of the other");
    scheduler.remove(small);
    scheduler.revise(small, 1, 1);
    assert_eq!(scheduler.len(), 1, "a job that is gone is not revised");
}

#[test]
fn a_total_revised_moves_the_deadline() {
    let mut scheduler = Scheduler::new(SchedulerConfig {
        urgency: Urgency::Aging(Aging::new(FACTOR).unwrap()),
        ..SchedulerConfig::new(Policy::Srpt, 2)
    });
    let grown = scheduler.submit(job_of(10)).unwrap();
    scheduler.record(grown, 10);
    scheduler.revise(grown, 1000, 1000);
    let small = scheduler.submit(job_of(500)).unwrap();
    assert_eq!(scheduler.next_change_ns(0), Some(500 * FACTOR as u64));
    assert_eq!(scheduler.peek(10 * FACTOR as u64), Some(small));
    assert_eq!(
        scheduler.peek(1000 * FACTOR as u64),
        Some(small),
        "overdue first"
    );
    scheduler.remove(small);
    assert_eq!(scheduler.next_change_ns(0), Some(1000 * FACTOR as u64));
}
