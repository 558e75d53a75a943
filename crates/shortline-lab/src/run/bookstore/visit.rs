//! One run: the application, the door before its database, the browsers, and the measurements meanwhile.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use shortline_bookstore::Statements;
use shortline_bookstore::application::{Application, Execution, Options};
use shortline_bookstore::bed::{Bed, Speed};
use shortline_bookstore::browser::{self, Mix, Summary};
use shortline_bookstore::population::Scale;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::counters::Reading;
use super::outcome::{ExecutionTimes, MadeWith, Outcome, seconds_of};
use super::watch::{self, Look};
use super::{Run, door};
use crate::LabError;
use crate::study::shop::counters::Counters;
use crate::study::shop::load::{Load, Pace, SLOWED};
use shortline_testbed::Testbed;

/// The most executions kept of a run, more than any has.
const EXECUTIONS_MAX: usize = 2_000_000;

/// What all runs of an experiment on one database share.
pub struct Visit<'a> {
    pub testbed: &'a Testbed,
    pub bed: &'a Bed,
    pub pace: Pace,
    pub statements: Statements,
    /// The highest throughput of the database so far, in interactions per second.
    pub capacity_per_s: Option<f64>,
    pub connections_max: u32,
    pub made_with: &'a MadeWith,
}

/// The measurements besides the browsers' own records.
struct Observations {
    counters: Counters,
    looks: Vec<Look>,
}

impl Visit<'_> {
    /// Makes the run, and keeps every interaction in a CSV.
    pub fn run(&self, runtime: &Runtime, run: Run) -> Result<Outcome, LabError> {
        let (door, database) = door::open(self, run)?;
        let application = Application::new(database, self.application())
            .map_err(|error| LabError::failed("the bookstore", &error))?;
        let warm_up = run.load.warm_up();
        let lasts = warm_up + Duration::from_secs(run.seconds);
        let visitors = run
            .load
            .visitors(self.pace, self.capacity_per_s, run.seconds)
            .ok_or_else(|| LabError::failed("the open loop", &"wants a closed run before it"))?;
        let half = warm_up + Duration::from_secs(run.seconds) / 2;
        let options = |shop| browser::Options {
            shop,
            arrivals: visitors.arrivals.clone(),
            mix: Mix::Shopping,
            mix_later: run.load.later_mix().map(|mix| (half, mix)),
            times: visitors.times,
            scale: Scale::PAPER,
            pictures: true,
            patience: run.load.patience(),
            lasts,
            seed: run.seed,
        };
        let speed = self.speed(run.load)?;
        let admin = door.as_ref().and_then(|door| door.admin);
        let (results, seen) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| self.watch(admin, speed.as_ref(), warm_up, half, lasts));
            let results = runtime
                .block_on(come_and_go(application.clone(), options))
                .map_err(|error| LabError::failed("the bookstore", &error));
            let seen = watching.join();
            (results, seen)
        });
        drop(speed);
        let results = results?;
        let seen =
            seen.map_err(|_| LabError::failed("the run", &"what watched it ended early"))??;
        if let Some(door) = door {
            door.close()?;
        }
        self.keep_records(run, &results)?;
        let end = results.took.max(lasts);
        let executions = counted(application.executions(), warm_up, lasts);
        Ok(Outcome {
            run,
            summary: Summary::of(&results.records, warm_up, end),
            counters: seen.counters,
            gate: admin.map(|_| watch::gate_seen(&seen.looks, warm_up.as_secs_f64())),
            executions: ExecutionTimes::by_type(&executions),
            by_second: seconds_of(&results.records),
            late_mean_s: mean(results.records.iter().map(|record| record.lag_s)),
            turned_away: results.turned_away,
            phase_s: visitors.phase_s,
            made_with: Some(self.made_with.clone()),
        })
    }

    /// Watches the machine and the gate from the end of the warm-up to the end of arrivals, and slows the
    /// database down half way if the load says so.
    fn watch(
        &self,
        admin: Option<SocketAddr>,
        speed: Option<&Speed>,
        warm_up: Duration,
        half: Duration,
        lasts: Duration,
    ) -> Result<Observations, LabError> {
        let begin = Instant::now();
        let database = i32::try_from(self.bed.pid()).unwrap_or(-1);
        let (mut looks, mut first, mut slowed) = (Vec::new(), None, false);
        let mut next = Duration::ZERO;
        while begin.elapsed() < lasts {
            if first.is_none() && begin.elapsed() >= warm_up {
                first = Some(Reading::take(database));
            }
            if let Some(speed) = speed.filter(|_| !slowed && begin.elapsed() >= half) {
                speed
                    .set(SLOWED)
                    .map_err(|error| LabError::failed("slowing the database down", &error))?;
                slowed = true;
            }
            if let Some(admin) = admin {
                looks.push(Look::take(admin, begin.elapsed().as_secs_f64())?);
            }
            next += watch::EVERY;
            std::thread::sleep(next.min(lasts).saturating_sub(begin.elapsed()));
        }
        let last = Reading::take(database);
        let first = first.unwrap_or(last);
        Ok(Observations {
            counters: last.since(&first, database),
            looks,
        })
    }

    fn speed(&self, load: Load) -> Result<Option<Speed>, LabError> {
        if !matches!(load, Load::SlowsDown(_)) {
            return Ok(None);
        }
        let speed = self.bed.speed();
        speed
            .map(Some)
            .map_err(|error| LabError::failed("slowing the database down", &error))
    }

    fn application(&self) -> Options {
        Options {
            locking: self.pace.locking,
            statements: self.statements,
            // Lets the gate see where an interaction begins and ends.
            tags: true,
            database_connections_max: self.connections_max as usize,
            items: Scale::PAPER.items,
            executions_max: EXECUTIONS_MAX,
            ..Options::default()
        }
    }

    fn keep_records(&self, run: Run, results: &browser::Results) -> Result<(), LabError> {
        let path = run.records_file(self.testbed.out());
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).map_err(LabError::file(folder))?;
        shortline_load::record::write_records(&path, &results.records)
            .map_err(|error| LabError::failed("keeping the records", &error))
    }
}

/// Opens the shop, lets the visitors come and go, and closes it.
async fn come_and_go(
    application: Application,
    visitors: impl FnOnce(SocketAddr) -> browser::Options,
) -> std::io::Result<browser::Results> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let shop = listener.local_addr()?;
    let (close, closing) = oneshot::channel::<()>();
    let open = tokio::spawn(async move {
        let closing = async { closing.await.unwrap_or(()) };
        application.serve(listener, closing).await;
    });
    let results = browser::run(visitors(shop)).await;
    close.send(()).ok();
    open.await.ok();
    Ok(results)
}

/// The interactions that began between warm-up and end.
fn counted(executions: Vec<Execution>, warm_up: Duration, end: Duration) -> Vec<Execution> {
    let window = warm_up.as_secs_f64()..end.as_secs_f64();
    let mut executions = executions;
    executions.retain(|execution| window.contains(&execution.at_s));
    executions
}

/// Keeps this thread, and all that it starts, on the first processor, and returns the database's
/// processor. `None` on a machine with one.
pub fn share_processors() -> Option<u32> {
    if available_parallelism().map_or(1, usize::from) < 2 {
        return None;
    }
    let mut first = CpuSet::new();
    first.set(0);
    sched_setaffinity(None, &first).ok()?;
    Some(1)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}
