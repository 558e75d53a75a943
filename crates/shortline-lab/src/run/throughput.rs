//! Work per second of the server's processor time when nothing else is scarce: loopback, keep-alive, wrk as
//! the client.
//!
//! Two servers are compared at a time, in rounds A B A B, so that a disturbance of the machine affects both.
//! The figure is the ratio within a round, in the median over the rounds. Processor time is user and system
//! time of the server's processes. The client's does not count, so wrk may share the processors.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_sched::Policy;

use super::study::{Choices, Data, Findings, Job, Study};
use super::uplink::free_port;
use super::versus::generators::{Work, parse_wrk};
use crate::LabError;
use crate::study::design::{Experiment, Throughput};
use crate::study::plan::{read_json, write_json};
use crate::study::stats::Spread;
use shortline_table::{Table, bytes, three_digits};
use shortline_testbed::Place;
use shortline_testbed::Testbed;
use shortline_testbed::command;
use shortline_testbed::proc_fs;
use shortline_testbed::process::Process;
use shortline_testbed::server::{self, OursMode, Running, Server, ServerSetup};

/// The default seconds of one measurement, and number of rounds.
const SECONDS: u64 = 5;
const ROUNDS: u64 = 7;
/// How long each server is warmed up before a measurement.
const WARM_UP: Duration = Duration::from_secs(1);
/// Connections that wrk keeps busy.
const CONNECTIONS: u32 = 64;

/// Shortline with its defaults.
const OURS: Server = Server::Ours(OursMode::Auto(Policy::Srpt));
const OURS_SLOTS: Server = Server::Ours(OursMode::Slots(Policy::Srpt));
const OURS_OFF: Server = Server::Ours(OursMode::Off);

/// One comparison.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    body_bytes: usize,
    /// The servers. The figure is the first over the second.
    servers: [Server; 2],
    /// Whether to count bytes instead of requests.
    in_bytes: bool,
    /// Whether loopback clients are scheduled, so that scheduling is measured.
    uplink_loopback: bool,
}

const CASES: [Case; 9] = [
    case("1 KB", 1_000, [OURS, Server::Nginx]),
    case("10 KB", 10_000, [OURS, Server::Nginx]),
    Case {
        in_bytes: true,
        ..case("1 MB", 1_000_000, [OURS, Server::Nginx])
    },
    case("1 KB by default", 1_000, [OURS, OURS_OFF]),
    case("10 KB by default", 10_000, [OURS, OURS_OFF]),
    scheduled("1 KB scheduled", 1_000, OURS),
    scheduled("10 KB scheduled", 10_000, OURS),
    scheduled("1 KB in slots", 1_000, OURS_SLOTS),
    scheduled("10 KB in slots", 10_000, OURS_SLOTS),
];

const fn case(name: &'static str, body_bytes: usize, servers: [Server; 2]) -> Case {
    Case {
        name,
        body_bytes,
        servers,
        in_bytes: false,
        uplink_loopback: false,
    }
}

const fn scheduled(name: &'static str, body_bytes: usize, how: Server) -> Case {
    Case {
        uplink_loopback: true,
        ..case(name, body_bytes, [how, OURS_OFF])
    }
}

/// The options of the command line.
#[derive(Clone, Copy, Debug)]
struct Setup {
    seconds: u64,
    rounds: u64,
}

impl Setup {
    /// Checks the options.
    ///
    /// # Errors
    /// If servers are named, because each comparison has its own.
    fn new(
        seconds: Option<u64>,
        rounds: Option<u64>,
        servers: &[Server],
    ) -> Result<Self, LabError> {
        if let Some(server) = servers.first() {
            return Err(LabError::ServerNotInExperiment {
                experiment: "throughput".into(),
                server: server.to_string(),
                allowed: "no --servers: ours and nginx, and ours with and without scheduling"
                    .into(),
            });
        }
        Ok(Self {
            seconds: seconds.unwrap_or(SECONDS),
            rounds: rounds.unwrap_or(ROUNDS),
        })
    }
}

impl Study for Throughput {
    fn length(&self) -> String {
        let each_s = SECONDS + WARM_UP.as_secs() + 1;
        let total_s = CASES.len() as u64 * 2 * ROUNDS * each_s;
        format!(
            "{} comparisons, {ROUNDS} rounds, about {} minutes",
            CASES.len(),
            total_s.div_ceil(60)
        )
    }

    fn job(&self, _id: &str, asked: &Choices) -> Result<Job, LabError> {
        let setup = Setup::new(asked.seconds, asked.seeds, &asked.servers()?)?;
        Ok(Box::new(move |testbed| run(testbed, &setup)))
    }

    fn has_results(&self, folder: &Path) -> Result<bool, LabError> {
        Ok(folder.join(RESULTS).exists())
    }

    fn report(&self, _experiment: &Experiment, folder: &Path) -> Result<Findings, LabError> {
        Ok(Findings {
            text: report(folder)?,
            void_runs: 0,
            data: Data::Text,
        })
    }
}

/// The file with all measurements.
const RESULTS: &str = "rounds.json";

/// One measurement, as kept in `rounds.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Measured {
    case: String,
    server: String,
    round: u64,
    requests: u64,
    bytes: u64,
    wall_s: f64,
    cpu_s: f64,
    in_bytes: bool,
}

impl Measured {
    fn work_per_cpu_s(&self) -> f64 {
        let work = if self.in_bytes {
            self.bytes
        } else {
            self.requests
        };
        work as f64 / self.cpu_s.max(0.01)
    }
}

/// Runs all comparisons and keeps `rounds.json`.
///
/// # Errors
/// If a tool is missing, or a server or wrk fails.
fn run(testbed: &Testbed, setup: &Setup) -> Result<(), LabError> {
    let wrk = command::find("wrk", "wrk")?;
    for server in [OURS, Server::Nginx] {
        tracing::info!("throughput: {}", server::version(testbed, server)?);
    }
    let root = testbed.scratch().join("site");
    fs::create_dir_all(&root).map_err(LabError::file(&root))?;
    let mut all = Vec::new();
    for case in CASES {
        let file = root.join(format!("{}.bin", case.body_bytes));
        fs::write(&file, vec![b'x'; case.body_bytes]).map_err(LabError::file(&file))?;
        for round in 1..=setup.rounds {
            for server in case.servers {
                let measured = measure(testbed, &wrk, setup, &case, server, &root, round)?;
                tracing::info!(
                    "throughput: {}, round {round}, {server}: {:.0} {} per CPU second",
                    case.name,
                    measured.work_per_cpu_s(),
                    if case.in_bytes { "bytes" } else { "requests" }
                );
                all.push(measured);
                write_json(&testbed.out().join(RESULTS), &all)?;
            }
        }
    }
    Ok(())
}

fn measure(
    testbed: &Testbed,
    wrk: &Path,
    setup: &Setup,
    case: &Case,
    server: Server,
    root: &Path,
    round: u64,
) -> Result<Measured, LabError> {
    let server_setup = ServerSetup {
        uplink_loopback: case.uplink_loopback,
        ..ServerSetup::new(Place::Here, free_port()?, root)
    };
    let mut running = Running::start(testbed, server, &server_setup)?;
    let url = format!(
        "http://127.0.0.1:{}/{}.bin",
        server_setup.port, case.body_bytes
    );
    drive(testbed, wrk, &url, WARM_UP)?;
    let before_s = proc_fs::cpu_s(running.pid());
    let said = drive(testbed, wrk, &url, Duration::from_secs(setup.seconds))?;
    let cpu_s = proc_fs::cpu_s(running.pid()) - before_s;
    running.still_runs()?;
    let wrong = |problem: &str| {
        let problem = format!("{problem} from {server}: {}", said.replace('\n', " "));
        LabError::failed(format!("wrk {url}"), &problem)
    };
    let Work { requests, wall_s } = parse_wrk(&said).ok_or_else(|| wrong("no count, or errors"))?;
    Ok(Measured {
        case: case.name.into(),
        server: server.to_string(),
        round,
        requests,
        bytes: requests * case.body_bytes as u64,
        wall_s,
        cpu_s,
        in_bytes: case.in_bytes,
    })
}

/// Runs wrk for `length` and returns its output.
fn drive(testbed: &Testbed, wrk: &Path, url: &str, length: Duration) -> Result<String, LabError> {
    let log = testbed.log("wrk");
    let seconds = length.as_secs();
    let arguments = [
        "-t1".to_owned(),
        format!("-c{CONNECTIONS}"),
        format!("-d{seconds}s"),
        url.to_owned(),
    ];
    let process = Process::start(testbed, &Place::Here, wrk, &arguments, &log)?;
    process.finish("wrk", length + Duration::from_secs(30))?;
    fs::read_to_string(log.path()).map_err(LabError::file(log.path()))
}

/// The report on the results in `folder`.
///
/// # Errors
/// If `rounds.json` is missing or wrong.
fn report(folder: &Path) -> Result<String, LabError> {
    let all: Vec<Measured> = read_json(&folder.join(RESULTS))?;
    let mut table = Table::new(&[
        "files",
        "A",
        "B",
        "A per CPU s",
        "B per CPU s",
        "A/B median",
        "lowest",
        "highest",
        "rounds",
    ]);
    for case in CASES {
        let [first, second] = case.servers.map(|server| server.to_string());
        let of = |server: &str| {
            let measured = all
                .iter()
                .filter(|measured| measured.case == case.name && measured.server == server);
            measured.map(Measured::work_per_cpu_s).collect::<Vec<f64>>()
        };
        let (a, b) = (of(&first), of(&second));
        let ratios = a.iter().zip(&b).map(|(a, b)| a / b);
        let (Some(ratio), Some(a), Some(b)) = (
            Spread::of(ratios.clone()),
            Spread::of(a.iter().copied()),
            Spread::of(b.iter().copied()),
        ) else {
            continue;
        };
        let show = |work: f64| {
            if case.in_bytes {
                bytes(work)
            } else {
                three_digits(work)
            }
        };
        let rounds = ratios.count().to_string();
        table.row(vec![
            case.name.into(),
            first,
            second,
            show(a.median),
            show(b.median),
            format!("{:.3}", ratio.median),
            format!("{:.3}", ratio.low),
            format!("{:.3}", ratio.high),
            rounds,
        ]);
    }
    let mut text = String::new();
    writeln!(
        text,
        "throughput: requests (1 MB: bytes) per second of server processor time, loopback, keep-alive, \
         wrk -c{CONNECTIONS}\n"
    )
    .ok();
    text += &table.to_string();
    Ok(text)
}
