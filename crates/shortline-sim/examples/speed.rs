//! How many jobs a minute one core simulates under SRPT at load 0.9: from an empty system, and
//! with 1,000,000 jobs in it at the start.
//!
//!     cargo run --release -p shortline-sim --example speed

use std::num::NonZeroU32;
use std::time::Instant;

use shortline_sched::Policy;
use shortline_sim::arrivals::{Gaps, Generated, LoadProfile};
use shortline_sim::dist::Distribution;
use shortline_sim::{SimError, Simulation};

const RATE_BPS: u64 = 10_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for sizes in ["exp:5000", "bp:300,2000000,1.2"] {
        let sizes: Distribution = sizes.parse()?;
        measure(&sizes, 0, 20_000_000)?;
        measure(&sizes, 1_000_000, 5_000_000)?;
    }
    Ok(())
}

fn measure(sizes: &Distribution, preloaded: u64, jobs: u64) -> Result<(), SimError> {
    let arrivals = Generated {
        gaps: Gaps::new(1.0)?,
        full_load_jobs_per_s: Generated::jobs_per_s(sizes, RATE_BPS, 1, 0)?,
        sizes: sizes.clone(),
        profile: LoadProfile::steady(0.9)?,
        preloaded,
        end_s: f64::INFINITY,
    };
    let simulation = Simulation {
        warmup_jobs: preloaded,
        jobs: Some(jobs),
        ..Simulation::new(vec![Policy::Srpt], RATE_BPS)
    };
    let begin = Instant::now();
    let results = simulation.run(NonZeroU32::MIN, |replication| {
        Ok(arrivals.jobs(simulation.seed, replication).map(Ok))
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let per_minute = (jobs + preloaded) as f64 / seconds * 60.0;
    println!(
        "{sizes}, {preloaded} preloaded: {:.0} million jobs a minute (mean {:.4} s)",
        per_minute / 1e6,
        results[0].sojourn_mean
    );
    Ok(())
}
