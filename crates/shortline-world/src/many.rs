//! Many seeds, on several threads.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Fault, Run};

/// A task that never rests keeps its world from ever firing an event, so no invariant can notice. A seed that takes this
/// long, of some milliseconds, is taken for such a one. Its thread is left to itself.
const TAKES_MAX: Duration = Duration::from_secs(120);

/// What a thread tells.
enum News {
    Begun(u64),
    Ended(Box<Run>),
}

/// Runs `simulate` with the seeds from `first` on, on several threads. Shows each run to `look`, in
/// no particular order, until `look` says that it has seen enough.
pub fn simulate_many(
    simulate: fn(u64, bool) -> Run,
    first: u64,
    threads: usize,
    mut look: impl FnMut(Run) -> ControlFlow<()>,
) {
    let next = Arc::new(AtomicU64::new(first));
    let enough = Arc::new(AtomicBool::new(false));
    let (tell, told) = channel();
    let work = |index| {
        let (next, enough, tell) = (Arc::clone(&next), Arc::clone(&enough), tell.clone());
        thread::spawn(move || run_seeds(simulate, &next, &enough, &tell, index))
    };
    let workers: Vec<_> = (0..threads).map(work).collect();
    drop(tell);
    let mut under_way = vec![None::<(u64, Instant)>; threads];
    loop {
        let run = match told.recv_timeout(Duration::from_secs(1)) {
            Ok((index, News::Begun(seed))) => {
                under_way[index] = Some((seed, Instant::now()));
                continue;
            }
            Ok((index, News::Ended(run))) => {
                under_way[index] = None;
                *run
            }
            Err(RecvTimeoutError::Timeout) => {
                let mut all = under_way.iter().flatten();
                match all.find(|(_, begun)| begun.elapsed() > TAKES_MAX) {
                    Some((seed, _)) => spinning(*seed),
                    None => continue,
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let spins = matches!(run.fault, Some((_, Fault::Spins)));
        if look(run).is_break() || spins {
            break;
        }
    }
    enough.store(true, Ordering::Release);
    let spins =
        |seed: &Option<(u64, Instant)>| seed.is_some_and(|(_, begun)| begun.elapsed() > TAKES_MAX);
    for (worker, seed) in workers.into_iter().zip(&under_way) {
        if !spins(seed)
            && let Err(panic) = worker.join()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

fn run_seeds(
    simulate: fn(u64, bool) -> Run,
    next: &AtomicU64,
    enough: &AtomicBool,
    tell: &Sender<(usize, News)>,
    index: usize,
) {
    while !enough.load(Ordering::Acquire) {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        // Nobody listens any more once enough was seen.
        if tell.send((index, News::Begun(seed))).is_err() {
            return;
        }
        let run = Box::new(simulate(seed, false));
        if tell.send((index, News::Ended(run))).is_err() {
            return;
        }
    }
}

/// A seed that does not come to an end.
fn spinning(seed: u64) -> Run {
    Run {
        seed,
        scenario: "not known".to_owned(),
        fault: Some((0, Fault::Spins)),
        events: 0,
        lasted_ns: 0,
        responses_whole: 0,
        requests: 0,
        digest: 0,
        trace: Vec::new(),
    }
}
