//! Work per second of the server's processor time beside other servers, where nothing else is scarce.
//!
//! Each server has one worker on one processor, its clients and the backend have another. All servers of a [row](Row) run, and get
//! load in turn, round by round, so that a disturbance of the machine affects all. The figure is our work per second of
//! processor time (user and system) over that of the best of the others, in the median over the rounds' ratios. The servers are
//! those in the PATH: `scripts/peers/servers` has this year's.
//!
//! Latency is taken at the same rate from all: half of what the slowest did.

pub mod generators;

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::study::{Choices, Data, Findings, Job, Study};
use super::uplink::free_port;
use crate::LabError;
use crate::report;
use crate::study::design::Experiment;
use crate::study::plan::write_json;
use crate::study::versus::results::{Latency, Measured, RESULTS, Results};
use crate::study::versus::{OURS, Row, Versus};
use generators::{Generators, Work};
use shortline_testbed::proc_fs;
use shortline_testbed::server::{self, Running, Server, ServerSetup, Source, Speech};
use shortline_testbed::two_processors;
use shortline_testbed::{Place, Testbed};

/// The default seconds of one measurement, and number of rounds.
const SECONDS: u64 = 2;
const ROUNDS: u64 = 7;
/// How long each server is warmed up before its rounds.
const WARM_UP: Duration = Duration::from_secs(1);

impl Study for Versus {
    fn length(&self) -> String {
        let servers: usize = self.rows.iter().map(|row| row.servers().len()).sum();
        let seconds = servers as u64 * (ROUNDS + 1) * (SECONDS + 1);
        let rows = self.rows.len();
        format!(
            "{rows} rows, {ROUNDS} rounds, about {} minutes",
            seconds.div_ceil(60)
        )
    }

    fn job(&self, _id: &str, asked: &Choices) -> Result<Job, LabError> {
        let rows = self.rows.clone();
        let only = asked.servers()?;
        let (seconds, rounds) = (
            asked.seconds.unwrap_or(SECONDS),
            asked.seeds.unwrap_or(ROUNDS),
        );
        Ok(Box::new(move |testbed| {
            let bed = Bed::new(testbed, seconds, rounds)?;
            bed.run(&rows, &only)
        }))
    }

    fn has_results(&self, folder: &Path) -> Result<bool, LabError> {
        Ok(folder.join(RESULTS).exists())
    }

    fn report(&self, experiment: &Experiment, folder: &Path) -> Result<Findings, LabError> {
        Ok(Findings {
            text: report::versus::report(&experiment.id, folder)?,
            void_runs: 0,
            data: Data::Text,
        })
    }
}

/// Where servers are measured.
struct Bed<'a> {
    testbed: &'a Testbed,
    /// The processor of the servers, and that of clients and backend.
    processors: (u32, u32),
    generators: Generators<'a>,
    seconds: u64,
    rounds: u64,
}

impl<'a> Bed<'a> {
    fn new(testbed: &'a Testbed, seconds: u64, rounds: u64) -> Result<Self, LabError> {
        let processors = two_processors()?;
        server::make_certificate(testbed, "127.0.0.1")?;
        Ok(Self {
            testbed,
            processors,
            generators: Generators::new(testbed, Place::Processor(processors.1))?,
            seconds,
            rounds,
        })
    }

    /// Measures the servers `only`, or all if there are none, in each row, and keeps `versus.json`.
    fn run(&self, rows: &[Row], only: &[Server]) -> Result<(), LabError> {
        let root = self.testbed.scratch().join("site");
        fs::create_dir_all(&root).map_err(LabError::file(&root))?;
        let mut results = Results::default();
        for row in rows {
            let file = root.join(format!("{}.bin", row.body_bytes));
            fs::write(&file, vec![b'x'; row.body_bytes]).map_err(LabError::file(&file))?;
            let mut servers = row.servers();
            servers.retain(|server| only.is_empty() || *server == OURS || only.contains(server));
            self.measure(row, &servers, &root, &mut results)?;
        }
        Ok(())
    }

    fn measure(
        &self,
        row: &Row,
        servers: &[Server],
        root: &Path,
        results: &mut Results,
    ) -> Result<(), LabError> {
        let path = self.testbed.out().join(RESULTS);
        let backend = row.is_proxied.then(|| self.backend(root)).transpose()?;
        let source = match &backend {
            Some((_, port)) => Source::Backend(format!("http://127.0.0.1:{port}")),
            None => Source::Files,
        };
        let mut running = Vec::new();
        for server in servers {
            let version = server::version(self.testbed, *server)?;
            results.versions.insert(server.to_string(), version);
            let place = Place::Processor(self.processors.0);
            let started = self.start(*server, place, root, row.speech, source.clone())?;
            self.generators.load(row, started.1, WARM_UP)?;
            running.push(started);
        }
        for round in 1..=self.rounds {
            for (server, port) in &mut running {
                let measured = self.round(row, server, *port, round)?;
                tracing::info!(
                    "versus: {}, round {round}, {}: {:.0} requests per CPU second",
                    row.name,
                    measured.server,
                    measured.requests as f64 / measured.cpu_s
                );
                results.measured.push(measured);
                write_json(&path, &results)?;
            }
        }
        let keeps = results.half_of_the_slowest(row).filter(|_| !row.connects);
        for (per_s, (server, port)) in keeps.into_iter().cycle().zip(&running) {
            let (p50_s, p99_s) = self.generators.latency(row, *port, per_s, self.seconds)?;
            results.latencies.push(Latency {
                row: row.name.into(),
                server: server.server.to_string(),
                per_s,
                p50_s,
                p99_s,
            });
            write_json(&path, &results)?;
        }
        Ok(())
    }

    fn round(
        &self,
        row: &Row,
        server: &mut Running,
        port: u16,
        round: u64,
    ) -> Result<Measured, LabError> {
        let before_s = proc_fs::cpu_s(server.pid());
        let length = Duration::from_secs(self.seconds);
        let Work { requests, wall_s } = self.generators.load(row, port, length)?;
        let cpu_s = proc_fs::cpu_s(server.pid()) - before_s;
        server.still_runs()?;
        Ok(Measured {
            row: row.name.into(),
            server: server.server.to_string(),
            round,
            requests,
            wall_s,
            cpu_s: cpu_s.max(0.01),
        })
    }

    /// nginx with the files, beside the clients.
    fn backend(&self, root: &Path) -> Result<(Running, u16), LabError> {
        let place = Place::Processor(self.processors.1);
        self.start(Server::Nginx, place, root, Speech::default(), Source::Files)
    }

    fn start(
        &self,
        server: Server,
        place: Place,
        root: &Path,
        speech: Speech,
        source: Source,
    ) -> Result<(Running, u16), LabError> {
        let port = free_port()?;
        let setup = ServerSetup {
            speech,
            source,
            ..ServerSetup::new(place, port, root)
        };
        Ok((Running::start(self.testbed, server, &setup)?, port))
    }
}
