//! One run: the application, the gate if there is one, and the browsers.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use shortline_bookstore::application::{Application, Options};
use shortline_bookstore::bed::Bed;
use shortline_bookstore::browser::{self, Mix, Summary};
use shortline_bookstore::population::Scale;
use shortline_bookstore::{Database, Kind, Locking};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::Run;
use super::results::Kept;
use crate::bed::Place;
use crate::experiment::uplink::free_port;
use crate::lab::Lab;
use crate::process::Process;
use crate::{LabError, proc_fs};

/// The load that the gate lets in: the sum of the expected service times of what runs. 002 (3.1)
/// finds it by trying; so does `shortline gate --capacity auto`.
const CAPACITY: &str = "auto";
/// How long a visitor waits for a page.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the gate may take to listen.
const GATE_START_MAX: Duration = Duration::from_secs(10);

/// What all runs of an experiment share.
pub struct Visit<'a> {
    pub lab: &'a Lab,
    pub bed: &'a Bed,
    pub locking: Locking,
    /// The most that the database did so far without a gate, in interactions per second.
    pub peak_per_s: Option<f64>,
    pub warm_up: Duration,
    pub connections_max: u32,
}

impl Visit<'_> {
    /// Runs it, and keeps every interaction in a CSV.
    pub fn run(&self, runtime: &Runtime, run: Run) -> Result<Kept, LabError> {
        let (gate, database) = self.open_door(run)?;
        let application = Application::new(database, self.application())
            .map_err(|error| failed("the bookstore", &error))?;
        let warm_up = if run.load.counts_all() {
            Duration::ZERO
        } else {
            self.warm_up
        };
        let lasts = warm_up + Duration::from_secs(run.seconds);
        let (arrivals, times) = run.load.arrivals(self.locking, self.peak_per_s)?;
        let visitors = move |shop| browser::Options {
            shop,
            arrivals,
            mix: Mix::Shopping,
            times,
            scale: Scale::PAPER,
            pictures: true,
            patience: PATIENCE,
            lasts,
            seed: run.seed,
        };
        let before = self.processor_times();
        let begin = Instant::now();
        let results = runtime.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let shop = listener.local_addr()?;
            let (close, closing) = oneshot::channel::<()>();
            let open = tokio::spawn(async move {
                let closing = async { closing.await.unwrap_or(()) };
                application.serve(listener, closing).await;
            });
            let results = browser::run(visitors(shop)).await;
            // Before the database's processes for our connections are gone.
            let after = self.processor_times();
            close.send(()).ok();
            open.await.ok();
            Ok::<_, std::io::Error>((results, after))
        });
        let (results, after) = results.map_err(|error| failed("the bookstore", &error))?;
        let wall_s = begin.elapsed().as_secs_f64();
        if let Some(gate) = gate {
            gate.stop("gate", GATE_START_MAX)?;
        }
        self.keep_records(run, &results)?;
        Ok(Kept {
            run,
            summary: Summary::of(&results.records, warm_up, results.took.max(lasts)),
            database_cpu_share: (after.database_s - before.database_s) / wall_s,
            own_cpu_share: (after.others_s - before.others_s) / wall_s,
            late_mean_s: mean(results.records.iter().map(|record| record.lag_s)),
        })
    }

    /// The database is a descendant of this process, as the gate is.
    fn processor_times(&self) -> ProcessorTimes {
        let pid = |id: u32| i32::try_from(id).unwrap_or(-1);
        let database_s = proc_fs::cpu_s(pid(self.bed.pid()));
        let all_s = proc_fs::cpu_s(pid(std::process::id()));
        ProcessorTimes {
            database_s,
            others_s: all_s - database_s,
        }
    }

    fn open_door(&self, run: Run) -> Result<(Option<Process>, Database), LabError> {
        let behind = self.bed.database().clone();
        let Some(policy) = run.door.gate_flags() else {
            return Ok((None, behind));
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let protocol = match run.database {
            Kind::Postgres => "postgres",
            Kind::MariaDb => "mysql",
        };
        let mut words = vec!["gate".to_owned(), protocol.to_owned()];
        words.extend(["--listen".to_owned(), address.to_string()]);
        words.extend(["--upstream".to_owned(), behind.address.to_string()]);
        words.extend(["--capacity".to_owned(), CAPACITY.to_owned()]);
        words.extend(policy);
        let log = self.lab.log("gate");
        let mut gate = Process::start(self.lab, &Place::Here, self.lab.program(), &words, &log)?;
        let deadline = Instant::now() + GATE_START_MAX;
        while !proc_fs::is_listening(gate.pid(), address.port()) {
            if gate.ended().is_some() || Instant::now() > deadline {
                return Err(failed("the gate", &gate.last_words()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok((Some(gate), Database { address, ..behind }))
    }

    fn application(&self) -> Options {
        Options {
            locking: self.locking,
            // What tells the gate where an interaction begins and ends.
            tags: true,
            database_connections_max: self.connections_max as usize,
            items: Scale::PAPER.items,
            ..Options::default()
        }
    }

    fn keep_records(&self, run: Run, results: &browser::Results) -> Result<(), LabError> {
        let folder = self.lab.out().join("records");
        fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
        let name = format!(
            "{}-{}-{}-{}.csv",
            run.database, run.door, run.load, run.seed
        );
        let path = folder.join(name);
        shortline_load::record::write_records(&path, &results.records)
            .map_err(|error| failed("keeping the records", &error))
    }
}

/// Processor time used so far.
#[derive(Clone, Copy, Debug)]
struct ProcessorTimes {
    database_s: f64,
    /// Browsers, application and gate.
    others_s: f64,
}

/// Keeps this thread, and all it starts, on the first processor and says which is the database's;
/// nothing on a machine with one.
pub fn share_processors() -> Option<u32> {
    if available_parallelism().map_or(1, usize::from) < 2 {
        return None;
    }
    let mut first = CpuSet::new();
    first.set(0);
    sched_setaffinity(None, &first).ok()?;
    Some(1)
}

/// What failed, and why.
pub fn failed(what: &str, problem: &dyn std::fmt::Display) -> LabError {
    LabError::Command {
        command: what.to_owned(),
        problem: problem.to_string(),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}
