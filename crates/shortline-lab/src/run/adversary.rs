//! One client that attacks beside honest users: the users' response times, and what the attacker gets.
//!
//! The uplink has 10 Mbit/s. The users are at a load of 0.6, open loop, with W1's files, from [`USERS`]
//! addresses. One further address is the [`attacker`](shortline_testbed::attacker)'s. It begins [`LEAD_S`] before
//! the users and goes on until the last of them is served or has given up. Every server meets every attack
//! with the same arrivals, in a new bed. The attacker's bytes count while users arrive.
//!
//! The results' folder keeps `adversary.json` with all runs, and for each attack and seed a folder with the
//! generator's records. A kept run is not repeated. `report` shows and judges the runs.

mod backend;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use shortline_load::record::read_records;
use shortline_load::summary::Summary;
use shortline_load::trace::write_csv;
use shortline_load::workload::SiteFiles;

use super::study::{Choices, Data, Findings, Job, Study};
use crate::LabError;
use crate::report::adversary;
use crate::run::uplink::{PORT, QUEUE_PACKETS, arrivals};
use crate::study::KeptError;
use crate::study::adversary::Surface;
use crate::study::adversary::attacks::{ATTACKS, Attack};
use crate::study::adversary::results::{LOAD, Measured, RESULTS, Results, USERS};
use crate::study::design::Experiment;
use crate::study::kept::records_file;
use crate::study::plan::{read_json, write_json};
use crate::study::point::{Arrivals, Point, Setup as PointSetup};
use shortline_testbed::attacker::{AttackConfig, AttackReport, Way};
use shortline_testbed::bed::native::SERVER_ADDRESS;
use shortline_testbed::bed::{BedConfig, NativeBed};
use shortline_testbed::command;
use shortline_testbed::generator::{self, LoadSetup, Work};
use shortline_testbed::process::Process;
use shortline_testbed::server::{self, Running, Server, ServerSetup, Source};
use shortline_testbed::{Testbed, TestbedError};

/// The default seconds of arrivals and number of seeds.
const SECONDS: u64 = 20;
const SEEDS: u64 = 1;
/// How long before the users the attacker begins.
const LEAD_S: u64 = 2;
/// How long the generator waits for responses after the last arrival.
const DRAIN_S: u64 = 30;
/// How much longer the generator and the attacker may take.
const SPARE_S: u64 = 30;
/// The file that the attacker asks for, besides the users' files.
const LARGE: &str = "large-for-the-attacker";
/// Its size, in multiples of what the link could carry during a run.
const ENDLESS: f64 = 4.0;

/// The options of the command line.
#[derive(Clone, Debug)]
struct Setup {
    surface: Surface,
    seconds: u64,
    seeds: u64,
    servers: Vec<Server>,
}

impl Setup {
    /// Reads the command line's options.
    fn new(surface: Surface, seconds: Option<u64>, seeds: Option<u64>, servers: &[Server]) -> Self {
        let usual = || {
            let server = |name: &&str| name.parse().expect("invariant: a server's name");
            surface.servers().iter().map(server).collect()
        };
        Self {
            surface,
            seconds: seconds.unwrap_or(SECONDS),
            seeds: seeds.unwrap_or(SEEDS),
            servers: match servers {
                [] => usual(),
                named => named.to_vec(),
            },
        }
    }
}

impl Study for Surface {
    fn length(&self) -> String {
        let (attacks, servers) = (ATTACKS.len() as u64, self.servers().len() as u64);
        let least_s = attacks * servers * (SECONDS + LEAD_S + 2);
        let minutes = least_s.div_ceil(60);
        format!("{attacks} attacks, {servers} servers, {minutes} min and what is left then")
    }

    fn has_bed(&self) -> bool {
        true
    }

    fn job(&self, _id: &str, asked: &Choices) -> Result<Job, LabError> {
        let setup = Setup::new(*self, asked.seconds, asked.seeds, &asked.servers()?);
        Ok(Box::new(move |testbed| run(testbed, &setup)))
    }

    fn has_results(&self, folder: &Path) -> Result<bool, LabError> {
        Ok(folder.join(RESULTS).exists())
    }

    fn report(&self, _experiment: &Experiment, folder: &Path) -> Result<Findings, LabError> {
        Ok(Findings {
            text: adversary::report(folder)?,
            void_runs: adversary::void_runs(folder)?,
            data: Data::Text,
        })
    }
}

/// Makes the runs that are not kept yet, and keeps `adversary.json`.
///
/// # Errors
/// If a bed, server, generator or attacker fails. Earlier runs are kept.
fn run(testbed: &Testbed, setup: &Setup) -> Result<(), LabError> {
    command::find("tc", "iproute2")?;
    let file = testbed.out().join(RESULTS);
    let mut results = match file.exists() {
        true => read_json(&file)?,
        false => Results::default(),
    };
    if !results.runs.is_empty() && results.seconds != setup.seconds {
        return Err(KeptError::OtherPlan(testbed.out().into(), "adversary".into()).into());
    }
    results.surface = setup.surface;
    results.seconds = setup.seconds;
    results.left_out.clear();
    let speaks = |point: &mut PointSetup| point.speech = setup.surface.speech();
    let point = Point::new("adversary", Arrivals::steady(LOAD), setup.seconds).with(speaks);
    if point.setup.speech.tls {
        server::make_certificate(testbed, SERVER_ADDRESS)?;
    }
    let site = point.files.site();
    let root = write_site(testbed, &point, &site)?;
    for seed in 1..=setup.seeds {
        for attack in ATTACKS {
            for server in &setup.servers {
                let case = Case {
                    testbed,
                    surface: setup.surface,
                    point: &point,
                    root: &root,
                    server: *server,
                    attack,
                    seed,
                };
                case.unless_kept(&site, &mut results)?;
                write_json(&file, &results)?;
            }
        }
    }
    Ok(())
}

/// The users' files, and the attacker's, which is sparse and takes no room on the disk.
fn write_site(testbed: &Testbed, point: &Point, site: &SiteFiles) -> Result<PathBuf, LabError> {
    let root = testbed.scratch().join("site");
    site.write_site(&root).map_err(LabError::refused)?;
    let path = root.join(LARGE);
    let file = fs::File::create(&path).map_err(LabError::file(&path))?;
    file.set_len(large_bytes(point))
        .map_err(LabError::file(&path))?;
    Ok(root)
}

fn large_bytes(point: &Point) -> u64 {
    let longest_s = LEAD_S + point.seconds + DRAIN_S;
    (point.rate.bps() as f64 / 8.0 * longest_s as f64 * ENDLESS) as u64
}

/// A server under an attack, with a seed.
struct Case<'a> {
    testbed: &'a Testbed,
    surface: Surface,
    point: &'a Point,
    root: &'a Path,
    server: Server,
    attack: Attack,
    seed: u64,
}

impl Case<'_> {
    fn unless_kept(&self, site: &SiteFiles, results: &mut Results) -> Result<(), LabError> {
        let (server, attack, seed) = (self.server.to_string(), self.attack.name, self.seed);
        let said = format!("adversary: {attack}, seed {seed}, {server}");
        let is_this = |run: &Measured| {
            (run.server.as_str(), run.attack.as_str(), run.seed) == (&server, attack, seed)
        };
        if results.runs.iter().any(is_this) {
            tracing::info!("{said}: kept already");
            return Ok(());
        }
        if results.leaves_out_all_of(&server) {
            return Ok(());
        }
        if let Some(why) = self.attack.cannot_meet(self.server, self.surface) {
            results.leave_out(&server, Some(attack), why);
            return Ok(());
        }
        tracing::info!("{said}: users for {} s", self.point.seconds);
        match self.measure(site) {
            Err(LabError::Testbed(TestbedError::NoQueue(queue))) => {
                let why = format!("this kernel has no queue {queue} (--bed uml has)");
                results.leave_out(&server, None, &why);
            }
            measured => results.runs.push(measured?),
        }
        Ok(())
    }

    fn measure(&self, site: &SiteFiles) -> Result<Measured, LabError> {
        let (testbed, point) = (self.testbed, self.point);
        let version = server::version(testbed, self.server)?;
        let bed = self.bed()?;
        let addresses = bed.add_clients(USERS + 1)?;
        let (attackers, users) = addresses
            .split_last()
            .expect("invariant: there is an attacker");
        let mut backend = backend::start(self.surface, testbed, &bed, self.root)?;
        let server_setup = ServerSetup {
            source: backend.as_ref().map_or(Source::Files, |(_, address)| {
                Source::Backend(address.to_string())
            }),
            ..self.server_setup(&bed)
        };
        let mut running = Running::start(testbed, self.server, &server_setup)?;

        let folder = testbed
            .out()
            .join(self.attack.name)
            .join(format!("seed-{}", self.seed));
        fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
        let trace = self.write_trace(site)?;
        let records = records_file(&folder, &self.server.to_string());

        let attacker = match self.attack.on_the_wire {
            None => None,
            Some((way, connections)) => {
                let attacker = self.start_attacker(&bed, *attackers, way, connections)?;
                std::thread::sleep(Duration::from_secs(LEAD_S));
                Some(attacker)
            }
        };
        let users: Vec<String> = users.iter().map(ToString::to_string).collect();
        let load = LoadSetup {
            work: Work::Trace(&trace),
            records: &records,
            requests_per_connection: point.setup.environment.requests_per_connection,
            sources: Some(users.join(",")),
            abort: None,
            drain_s: DRAIN_S,
            processes: 1,
        };
        let generator = generator::start(testbed, &bed.client_place(), &server_setup, &load)?;
        generator.finish(point.length() + Duration::from_secs(DRAIN_S + SPARE_S))?;
        let attacker = attacker.map(report_of).transpose()?;
        running.still_runs()?;
        if let Some((backend, _)) = &mut backend {
            backend.still_runs()?;
        }

        let records = read_records(&records).map_err(LabError::refused)?;
        let summary =
            Summary::of(&records, None, false).ok_or_else(|| LabError::refused("no user came"))?;
        Ok(Measured {
            server: self.server.to_string(),
            version,
            attack: self.attack.name.into(),
            seed: self.seed,
            requests: summary.requests,
            failed: summary.requests - summary.finished,
            mean_s: summary.response_time.mean,
            median_s: summary.response_time.p50,
            void: summary.void,
            attacker,
        })
    }

    fn bed(&self) -> Result<NativeBed, LabError> {
        let point = self.point;
        let bed = NativeBed::make(
            self.testbed,
            &BedConfig {
                rate: point.rate,
                queue_packets: QUEUE_PACKETS,
                setup: point.setup.environment.clone(),
                seed: self.seed,
                neighbour: false,
            },
        )?;
        if let Server::NginxBehind(queue) = self.server {
            bed.serve_flows_in_turn(queue, point.rate)?;
        }
        Ok(bed)
    }

    /// The users' requests as a file.
    fn write_trace(&self, site: &SiteFiles) -> Result<PathBuf, LabError> {
        let trace = self.testbed.scratch().join("trace.csv");
        let schedule = self.point.arrivals.schedule();
        let schedule = schedule.expect("invariant: a steady load is a schedule");
        let requests = arrivals(self.point, &schedule, self.seed, site);
        write_csv(&trace, &requests).map_err(LabError::refused)?;
        Ok(trace)
    }

    fn server_setup(&self, bed: &NativeBed) -> ServerSetup {
        ServerSetup {
            address: SERVER_ADDRESS.into(),
            rate: Some(self.point.rate),
            speech: self.point.setup.speech,
            ..ServerSetup::new(bed.server_place(), PORT, self.root)
        }
    }

    fn start_attacker(
        &self,
        bed: &NativeBed,
        from: Ipv4Addr,
        way: Way,
        connections: u32,
    ) -> Result<Process, LabError> {
        let address: Ipv4Addr = SERVER_ADDRESS.parse().map_err(LabError::refused)?;
        let config = AttackConfig {
            server: SocketAddr::from((address, PORT)),
            from,
            path: format!("/{LARGE}"),
            file_bytes: large_bytes(self.point),
            connections,
            way,
            certificate: self
                .point
                .setup
                .speech
                .tls
                .then(|| server::certificate_file(self.testbed)),
            lead_s: LEAD_S,
            counted_s: self.point.seconds,
            seconds_max: LEAD_S + self.point.seconds + DRAIN_S + SPARE_S,
        };
        let file = self.testbed.scratch().join("attack.json");
        write_json(&file, &config)?;
        Ok(Process::start(
            self.testbed,
            &bed.client_place(),
            self.testbed.program(),
            &["lab".into(), "attacker".into(), file.display().to_string()],
            &self.testbed.log("attacker"),
        )?)
    }
}

/// Ends the attack and reads its report.
fn report_of(attacker: Process) -> Result<AttackReport, LabError> {
    let said = attacker.stop("lab attacker", Duration::from_secs(SPARE_S))?;
    serde_json::from_str(&said)
        .map_err(|error| LabError::failed("lab attacker", &format!("{error} in `{said}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_servers_have_names() {
        for surface in [Surface::Plain, Surface::Tls, Surface::Route] {
            let setup = Setup::new(surface, None, None, &[]);
            let names = setup.servers.iter().map(ToString::to_string);
            assert_eq!(names.collect::<Vec<_>>(), surface.servers());
            assert_eq!((setup.seconds, setup.seeds), (SECONDS, SEEDS));
        }
    }

    #[test]
    fn the_large_file_outlasts_the_run() {
        let point = Point::new("adversary", Arrivals::steady(LOAD), SECONDS);
        let carried = point.rate.bps() / 8 * (LEAD_S + SECONDS + DRAIN_S);
        assert!(large_bytes(&point) > carried);
    }
}
