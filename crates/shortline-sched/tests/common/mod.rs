//! A single server in virtual time that does one unit of work at a step.
//!
//! Sizes and arrivals are whole, so no policy can use preemption at other than whole times, and the
//! schedule is exact.

use proptest::prelude::*;
use shortline_sched::{JobId, JobSpec, PathView, Policy, Scheduler, SchedulerConfig};

/// A job as it comes in: arrival and size, both in nanoseconds.
pub type Incoming = (u64, u64);

/// Random jobs in the order of their arrival, overloaded for a while.
pub fn incoming_jobs() -> impl Strategy<Value = Vec<Incoming>> {
    prop::collection::vec((0..120u64, 1..25u64), 1..25).prop_map(|mut jobs| {
        jobs.sort_by_key(|&(arrival_ns, _)| arrival_ns);
        jobs
    })
}

/// One unit of work: when, for whom, and who else was there.
pub struct Step<'a> {
    pub now_ns: u64,
    pub served: JobId,
    /// All jobs present before this unit, including the served one.
    pub scheduler: &'a Scheduler,
}

/// Serves all jobs; returns when each of them ended, and lets `observe` see every step.
pub fn serve(
    config: SchedulerConfig,
    incoming: &[Incoming],
    mut observe: impl FnMut(&Step<'_>),
) -> Vec<u64> {
    let mut scheduler = Scheduler::new(config);
    let mut ids = Vec::new();
    let mut ended_ns = vec![0; incoming.len()];
    let mut now_ns = 0;
    while ids.len() < incoming.len() || !scheduler.is_empty() {
        while let Some(&(arrival_ns, size)) = incoming.get(ids.len())
            && arrival_ns <= now_ns
        {
            let id = scheduler.submit(spec(arrival_ns, size));
            ids.push(id.expect("the queue has room for all"));
        }
        if let Some(served) = scheduler.take(now_ns) {
            observe(&Step {
                now_ns,
                served,
                scheduler: &scheduler,
            });
            scheduler.record(served, 1);
            let job = scheduler.job(served).expect("the job taken is held");
            if job.remaining() == 0 {
                let index = ids.iter().position(|&id| id == served);
                ended_ns[index.expect("the job was submitted")] = now_ns + 1;
                scheduler.remove(served);
            } else {
                scheduler.resume(served);
            }
        }
        now_ns += 1;
    }
    ended_ns
}

/// Serves all jobs, each as long as nothing happens: until it ends or another one arrives. Exact
/// for sizes of any scale under policies whose order changes only then.
pub fn serve_by_events(policy: Policy, incoming: &[Incoming]) -> Vec<u64> {
    let mut scheduler = Scheduler::new(config(policy));
    let mut ids = Vec::new();
    let mut ended_ns = vec![0; incoming.len()];
    let mut now_ns = 0;
    loop {
        while let Some(&(arrival_ns, size)) = incoming.get(ids.len())
            && arrival_ns <= now_ns
        {
            let id = scheduler.submit(spec(arrival_ns, size));
            ids.push(id.expect("the queue has room for all"));
        }
        let next_ns = incoming.get(ids.len()).map(|&(arrival_ns, _)| arrival_ns);
        let Some(served) = scheduler.take(now_ns) else {
            match next_ns {
                Some(next_ns) => now_ns = next_ns,
                None => return ended_ns,
            }
            continue;
        };
        let remaining = scheduler.job(served).map_or(0, |job| job.remaining());
        let until_ns = next_ns.unwrap_or(u64::MAX).min(now_ns + remaining);
        scheduler.record(served, until_ns - now_ns);
        if until_ns - now_ns == remaining {
            let index = ids.iter().position(|&id| id == served);
            ended_ns[index.expect("the job was submitted")] = until_ns;
            scheduler.remove(served);
        } else {
            scheduler.resume(served);
        }
        now_ns = until_ns;
    }
}

/// A job that takes as long as it is large, on a path that depends on its size and arrival.
fn spec(arrival_ns: u64, size: u64) -> JobSpec {
    JobSpec {
        arrival_ns,
        work: size,
        service_ns_expected: size,
        work_estimate: None,
        path: Some(PathView {
            rtt_ns: 1 + arrival_ns % 7,
            cwnd_bytes: 1 + size % 5,
            rate_bps_past: (!size.is_multiple_of(3)).then_some(1_000_000_000 * (size % 4)),
        }),
        client: None,
    }
}

/// A scheduler that holds whatever the tests submit.
pub fn config(policy: Policy) -> SchedulerConfig {
    SchedulerConfig::new(policy, 10_000)
}
