//! The scheduler against a model that keeps its jobs in a list and searches it.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use shortline_sched::{Aging, Job, JobId, JobSpec, Policy, QueueFull, Scheduler, SchedulerConfig};

const JOBS_MAX: usize = 40;
const AGING_FACTOR: f64 = 3.0;

/// What a driver may do; jobs are named by how many were submitted before them, so that
/// steps also name jobs that were removed.
#[derive(Clone, Debug)]
enum Step {
    Submit { work: u64 },
    Take,
    Record { job: usize, work_done: u64 },
    Resume { job: usize },
    Suspend { job: usize },
    Remove { job: usize },
    Pass { elapsed_ns: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let job = || 0..120usize;
    prop_oneof![
        4 => (0..60u64).prop_map(|work| Step::Submit { work }),
        4 => Just(Step::Take),
        3 => (job(), 0..30u64).prop_map(|(job, work_done)| Step::Record { job, work_done }),
        3 => job().prop_map(|job| Step::Resume { job }),
        2 => job().prop_map(|job| Step::Suspend { job }),
        2 => job().prop_map(|job| Step::Remove { job }),
        2 => (0..40u64).prop_map(|elapsed_ns| Step::Pass { elapsed_ns }),
    ]
}

#[derive(Clone, Copy, Debug)]
struct ModelJob {
    arrival_ns: u64,
    work: u64,
    done: u64,
    started: bool,
    waiting: bool,
    removed: bool,
    turn: u64,
}

impl ModelJob {
    fn rank(&self, policy: Policy) -> (bool, u64) {
        match policy {
            Policy::Fair => (false, self.turn),
            Policy::Fifo => (false, self.arrival_ns),
            Policy::Sjf => (!self.started, self.work),
            Policy::Psjf => (false, self.work),
            Policy::Srpt => (false, self.work.saturating_sub(self.done)),
            Policy::Las => (false, self.done),
        }
    }

    fn deadline_ns(&self) -> u64 {
        self.arrival_ns + AGING_FACTOR as u64 * self.work
    }
}

struct Model {
    policy: Policy,
    aging: bool,
    /// All jobs ever submitted, in that order.
    jobs: Vec<ModelJob>,
    turns: u64,
    now_ns: u64,
}

impl Model {
    fn next(&self) -> Option<usize> {
        let waiting = || (0..self.jobs.len()).filter(|&job| self.jobs[job].waiting);
        let overdue = waiting()
            .filter(|&job| self.aging && self.jobs[job].deadline_ns() <= self.now_ns)
            .min_by_key(|&job| (self.jobs[job].deadline_ns(), job));
        overdue.or_else(|| waiting().min_by_key(|&job| (self.jobs[job].rank(self.policy), job)))
    }

    fn held(&self) -> usize {
        self.jobs.iter().filter(|job| !job.removed).count()
    }

    fn held_job(&mut self, job: usize) -> Option<&mut ModelJob> {
        self.jobs.get_mut(job).filter(|job| !job.removed)
    }

    fn submit(&mut self, work: u64) {
        self.jobs.push(ModelJob {
            arrival_ns: self.now_ns,
            work,
            done: 0,
            started: false,
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
        Step::Submit { work } => {
            let submitted = real.submit(JobSpec {
                arrival_ns: model.now_ns,
                work,
                service_ns_expected: work,
            });
            if model.held() == JOBS_MAX {
                assert_eq!(submitted, Err(QueueFull { jobs_max: JOBS_MAX }));
            } else {
                ids.push(submitted.unwrap());
                model.submit(work);
            }
        }
        Step::Take => {
            let expected = model.next();
            let taken = real.take(model.now_ns);
            assert_eq!(taken, expected.map(|job| ids[job]));
            if let Some(job) = expected.and_then(|job| model.held_job(job)) {
                job.waiting = false;
                job.started = true;
            }
        }
        Step::Pass { elapsed_ns } => model.now_ns += elapsed_ns,
        Step::Record { job, .. }
        | Step::Resume { job }
        | Step::Suspend { job }
        | Step::Remove { job } => {
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
        aging: bool,
        policy in prop::sample::select(&Policy::ALL),
    ) {
        let mut real = Scheduler::new(SchedulerConfig {
            policy,
            aging: aging.then(|| Aging::new(AGING_FACTOR).unwrap()),
            jobs_max: JOBS_MAX,
        });
        let mut ids = Vec::new();
        let mut model = Model {
            policy,
            aging,
            jobs: Vec::new(),
            turns: 0,
            now_ns: 0,
        };
        for step in &steps {
            apply(step, &mut real, &mut ids, &mut model);
            check(&real, &ids, &model);
        }
    }
}

#[test]
fn a_stale_id_never_names_the_job_that_took_the_place() {
    let mut scheduler = Scheduler::new(SchedulerConfig {
        policy: Policy::Srpt,
        aging: None,
        jobs_max: 1,
    });
    let spec = JobSpec {
        arrival_ns: 0,
        work: 10,
        service_ns_expected: 10,
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
