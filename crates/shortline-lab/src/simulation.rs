//! `lab simulate`: worlds of the deterministic simulation, one with its trace or many in a row.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use shortline_command::CommandError;
use shortline_command::output::print;
use shortline_world::{Run, simulate, simulate_gate, simulate_many};

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The web server: files and routes, over HTTP/1.1 and HTTP/2
    Server,
    /// The gate: PostgreSQL and MySQL
    Gate,
}

impl What {
    fn simulate(self) -> fn(u64, bool) -> Run {
        match self {
            Self::Server => simulate,
            Self::Gate => simulate_gate,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Gate => "gate",
        }
    }
}

/// How long many seeds are run by default.
const SECONDS: u64 = 60;

/// Runs one seed and prints what happens in it.
///
/// # Errors
/// Something did not hold.
pub fn trace(what: What, seed: u64) -> Result<(), CommandError> {
    let run = what.simulate()(seed, true);
    let lines: String = run.trace.iter().map(|line| format!("{line}\n")).collect();
    print(&format!("{lines}{run}\n"))?;
    match run.fault {
        Some((_, fault)) => Err(CommandError::Failure(format!("seed {seed}: {fault}"))),
        None => Ok(()),
    }
}

/// Runs seeds until one fails, all are done, or the time is over.
///
/// # Errors
/// Something did not hold: which seed repeats it.
pub fn many(
    what: What,
    first: u64,
    seeds: Option<u64>,
    seconds: Option<u64>,
) -> Result<(), CommandError> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let begun = Instant::now();
    let seconds = seconds.or(seeds.is_none().then_some(SECONDS));
    let until = seconds.map(|seconds| begun + Duration::from_secs(seconds));
    let (mut runs, mut events, mut failed) = (0, 0, None::<Run>);
    simulate_many(what.simulate(), first, threads, |run| {
        runs += 1;
        events += run.events;
        let is_over = seeds.is_some_and(|seeds| runs >= seeds)
            || until.is_some_and(|until| Instant::now() >= until);
        let fails = run.fault.is_some();
        if fails {
            failed = Some(run);
        }
        match is_over || fails {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let took_s = begun.elapsed().as_secs_f64();
    print(&format!(
        "{runs} seeds from {first}, {events} events, {took_s:.1} s: {:.0} seeds/s\n",
        runs as f64 / took_s
    ))?;
    match failed {
        None => Ok(()),
        Some(run) => {
            let seed = run.seed;
            Err(CommandError::Failure(format!(
                "{run}; repeat it with: shortline lab simulate {} --seed {seed}",
                what.name()
            )))
        }
    }
}
