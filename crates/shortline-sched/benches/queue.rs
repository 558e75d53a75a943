//! What the scheduler costs with 100,000 jobs waiting.
//!
//! One operation submits a job, takes the next one, counts a grant's work for it and lets it wait
//! again, and removes a job: in turn the one taken and an arbitrary one, as when clients go away.
//! The number of jobs stays the same. With aging, deadlines lie so that some jobs are overdue and
//! most are not. Sizes are spread over five orders of magnitude, as on the web. A grant is the part
//! that a started response costs: take, count, let wait.
//!
//! For each policy, alone, with aging and with growing, [`criterion`] gives the time of one, with an
//! interval, and says how it differs from the run before.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::{
    Aging, Client, Growing, JobId, JobSpec, PathView, Policy, Scheduler, SchedulerConfig, Urgency,
};

const JOBS_WAITING: usize = 100_000;
/// Operations between two looks at the clock.
const BATCH: u64 = 64;
/// Time passes by this much per operation; the queue is older by then than the deadlines
/// of its small jobs and younger than those of its large ones.
const STEP_NS: u64 = 1_000;
const QUANTUM: u64 = 4_344;
/// Who submits, in turn.
const CLIENTS: u128 = 20_000;

criterion_group! {
    name = benches;
    // There are about a hundred of them.
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600));
    targets = queue
}
criterion_main!(benches);

fn queue(criterion: &mut Criterion) {
    for policy in Policy::ALL {
        for (urgency_name, urgency) in urgencies() {
            let mut group = criterion.benchmark_group(format!("{policy}, urgency {urgency_name}"));
            let mut queue = Queue::filled(policy, urgency);
            group.bench_function("operation", |bencher| {
                bencher.iter_custom(|count| operations(&mut queue, count));
            });
            assert_eq!(queue.scheduler.waiting(), JOBS_WAITING);
            let mut queue = Queue::filled(policy, urgency);
            group.bench_function("grant", |bencher| bencher.iter(|| queue.grant()));
        }
    }
}

fn urgencies() -> [(&'static str, Urgency); 3] {
    let aging = Aging::new(5.0).expect("invariant: above 0");
    let growing = Growing::new(5.0).expect("invariant: above 0");
    [
        ("none", Urgency::None),
        ("aging", Urgency::Aging(aging)),
        ("growing", Urgency::Growing(growing)),
    ]
}

/// What `count` operations take, without what is drawn for them.
fn operations(queue: &mut Queue, count: u64) -> Duration {
    let mut taken = Duration::ZERO;
    let mut left = count;
    while left > 0 {
        let draws = queue.draw(left.min(BATCH));
        left -= draws.len() as u64;
        let begin = Instant::now();
        for draw in &draws {
            queue.operate(draw);
        }
        taken += begin.elapsed();
    }
    taken
}

struct Queue {
    scheduler: Scheduler,
    ids: Vec<JobId>,
    random: ChaCha8Rng,
    now_ns: u64,
}

/// The random choices of one operation, drawn before the clock starts.
struct Draw {
    size: u64,
    /// The job that goes away; `None` to remove the one just taken.
    aborted: Option<usize>,
}

impl Queue {
    fn filled(policy: Policy, urgency: Urgency) -> Self {
        let mut queue = Self {
            scheduler: Scheduler::new(SchedulerConfig {
                urgency,
                ..SchedulerConfig::new(policy, JOBS_WAITING + 1)
            }),
            ids: Vec::with_capacity(JOBS_WAITING + 1),
            random: ChaCha8Rng::seed_from_u64(1),
            now_ns: 0,
        };
        for _ in 0..JOBS_WAITING {
            let size = size(&mut queue.random);
            queue.submit(size);
        }
        queue
    }

    fn submit(&mut self, size: u64) {
        self.now_ns += STEP_NS;
        let spec = JobSpec {
            arrival_ns: self.now_ns,
            work: size,
            service_ns_expected: size * 800,
            work_estimate: None,
            path: Some(PathView {
                rtt_ns: 20_000_000 + self.now_ns % 80_000_000,
                cwnd_bytes: 14_600,
                rate_bps_past: None,
            }),
            client: Some(Client {
                name: u128::from(self.now_ns / STEP_NS) % CLIENTS,
                weight: NonZeroU32::MIN,
            }),
        };
        let id = self.scheduler.submit(spec);
        self.ids.push(id.expect("invariant: one place is free"));
    }

    fn draw(&mut self, count: u64) -> Vec<Draw> {
        // Ids of jobs that were served stay in the list; keep these below a tenth of it.
        if self.ids.len() > JOBS_WAITING + JOBS_WAITING / 10 {
            let scheduler = &self.scheduler;
            self.ids.retain(|&id| scheduler.job(id).is_some());
        }
        (0..count)
            .map(|operation| Draw {
                size: size(&mut self.random),
                aborted: (operation % 2 == 1).then(|| self.random.random_range(0..JOBS_WAITING)),
            })
            .collect()
    }

    /// A grant of a byte, so that few jobs end; these stay.
    fn grant(&mut self) {
        self.now_ns += STEP_NS;
        if let Some(taken) = self.scheduler.take(self.now_ns) {
            self.scheduler.record(taken, 1);
            self.scheduler.resume(black_box(taken));
        }
    }

    fn operate(&mut self, draw: &Draw) {
        self.submit(draw.size);
        let taken = self.scheduler.take(self.now_ns);
        let taken = taken.expect("invariant: jobs are waiting");
        self.scheduler.record(taken, QUANTUM);
        let aborted = draw
            .aborted
            .and_then(|index| self.scheduler.remove(self.ids.swap_remove(index)));
        match black_box(aborted) {
            Some(_) => self.scheduler.resume(taken),
            None => {
                black_box(self.scheduler.remove(taken));
            }
        }
    }
}

/// From 41 bytes to 2 MB, each order of magnitude as likely.
fn size(random: &mut ChaCha8Rng) -> u64 {
    let exponent = random.random_range(41f64.ln()..2.02e6f64.ln());
    exponent.exp() as u64
}
