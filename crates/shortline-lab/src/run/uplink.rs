//! Response times over a saturated uplink: at each point each server in turn, with the same files and
//! the same arrivals.
//!
//! The results' folder keeps `plan.json`, and for each point and seed a folder with `load.json`, `trace.csv`
//! (in an open loop) and, for each server,
//!
//! - `SERVER.csv.zst`: the generator's records;
//! - `SERVER.txt`: the generator's summary;
//! - `SERVER.samples.csv`: the samples of the [`instruments`](shortline_testbed::instruments);
//! - `SERVER.json`, written when the run has ended: what the uplink carried, at the end and over time, and
//!   the report of the emulated networks.
//!
//! A run that is kept whole is not repeated. [`crate::study::figures`] computes all that is reported from
//! these files.

mod behind;
mod course;
mod load;
mod neighbour;
mod prepare;
mod site;
mod study;
mod warm_up;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use shortline_base::port;

pub use self::load::arrivals;
use self::neighbour::Beside;
use self::site::{Site, Sites};
use super::made_with;
use crate::LabError;
use crate::study::kept::{Carried, records_file, samples_file, seed_folder, whole_file};
use crate::study::offered::Offered;
use crate::study::plan::{Plan, write_json};
use crate::study::point::{Arrivals, Point, Through};
use shortline_testbed::Place;
use shortline_testbed::Testbed;
use shortline_testbed::bed::native::SERVER_ADDRESS;
use shortline_testbed::bed::setup::Abort;
use shortline_testbed::bed::{BedConfig, Counters, NativeBed};
use shortline_testbed::generator::{self, LoadSetup, Work};
use shortline_testbed::instruments::status::admin_page;
use shortline_testbed::instruments::{Instruments, sample};
use shortline_testbed::server::{self, OursMode, Running, Server, ServerSetup};
use shortline_testbed::wan::report::WanReport;

/// The FIFO before the uplink, as in the papers' FAIR.
pub const QUEUE_PACKETS: u32 = 100;
/// The port that servers listen on in the bed, where all ports are free.
pub const PORT: u16 = 8080;
/// The port of the bed for our server's admin address.
const ADMIN_PORT: u16 = 8079;
/// How often the device's counters are read.
const SAMPLE_DEVICE: Duration = Duration::from_millis(20);
/// How often the server is asked on loopback, where each time is a request.
const SAMPLE_METRICS: Duration = Duration::from_millis(200);
/// Time for what is still under way after the generator's end: the last FINs.
const SETTLE: Duration = Duration::from_millis(300);

/// Makes the runs of the plan that are not kept yet, and keeps their results.
///
/// # Errors
/// If a bed, server or generator fails. Earlier runs are kept.
fn run(testbed: &Testbed, plan: &Plan) -> Result<(), LabError> {
    let servers = plan
        .servers
        .iter()
        .map(|name| name.parse())
        .collect::<Result<Vec<Server>, _>>()?;
    let offered = load::offered(plan)?;
    let mut compared = Vec::new();
    for server in servers {
        compared.push((server, server::version(testbed, server)?));
    }
    plan.add_to(testbed.out())?;
    if plan.points.iter().any(|point| point.setup.speech.tls) {
        server::make_certificate(testbed, SERVER_ADDRESS)?;
    }
    let mut sites = Sites::default();
    let mut offered = offered.iter();
    for point in &plan.points {
        for seed in &plan.seeds {
            let site = sites.of(testbed, point, *seed)?;
            let offered = offered.next();
            let offered = offered.expect("invariant: one for each point and seed");
            let folder = seed_folder(testbed.out(), point, *seed);
            let run = Run {
                testbed,
                point,
                seed: *seed,
                folder: &folder,
                site: &site,
                offered,
            };
            let asked = run.prepare(plan, &site)?;
            let here = compared
                .iter()
                .filter(|(server, _)| point.runs(&server.to_string()));
            for (server, version) in here {
                run.unless_kept(plan, *server, version, &asked)?;
            }
        }
    }
    Ok(())
}

/// The runs of a point with one seed.
struct Run<'a> {
    testbed: &'a Testbed,
    point: &'a Point,
    seed: u64,
    folder: &'a Path,
    site: &'a Site,
    offered: &'a Offered,
}

impl Run<'_> {
    fn work<'b>(&self, trace: &'b Path) -> Work<'b> {
        match self.point.arrivals {
            Arrivals::Phases { .. } | Arrivals::Trace(_) => Work::Trace(trace),
            Arrivals::Users(users) => Work::Users {
                surge: self.point.files.name(),
                users: self.offered.users.unwrap_or(users.into()),
                seconds: self.point.seconds,
                seed: self.seed,
            },
        }
    }

    fn trace(&self) -> PathBuf {
        self.folder.join("trace.csv")
    }

    fn unless_kept(
        &self,
        plan: &Plan,
        server: Server,
        version: &str,
        asked: &str,
    ) -> Result<(), LabError> {
        let whole = whole_file(self.folder, &server.to_string());
        let (id, label, seed) = (&plan.experiment, &self.point.label, self.seed);
        if whole.exists() {
            tracing::info!("{id}: {label}, seed {seed}, {server}: kept already");
            return Ok(());
        }
        let seconds = self.point.seconds;
        tracing::info!("{id}: {label}, seed {seed}, {server}: {asked} in {seconds} s");
        Ok(write_json(&whole, &self.measure(server, version)?)?)
    }

    fn measure(&self, server: Server, version: &str) -> Result<Carried, LabError> {
        let setup = &self.point.setup;
        let (mut meter, congestion_control) = self.meter(server)?;
        let mut server_setup = self.server_setup(&meter, server)?;
        let through = setup.through;
        let behind = behind::start(through, self.testbed, &server_setup)?;
        server_setup.source = behind.source(through);
        let mut running = Running::start(self.testbed, server, &server_setup)?;
        if matches!(through, Through::Compressed | Through::Kept) {
            let (client, files) = (meter.client_place(), &self.site.files);
            warm_up::run(self.testbed, &client, &server_setup, self.point, files)?;
        }
        let records = records_file(self.folder, &server.to_string());
        let trace = self.trace();
        let load = LoadSetup {
            work: self.work(&trace),
            records: &records,
            requests_per_connection: setup.environment.requests_per_connection,
            sources: meter.sources(),
            abort: setup.environment.abort,
            drain_s: setup.drain_s,
            processes: setup.generators,
        };
        let before = meter.total(running.pid())?;
        let beside = self.start_neighbour(&meter, (server, &server_setup))?;
        let generator =
            generator::start(self.testbed, &meter.client_place(), &server_setup, &load)?;
        // Users who give up and try again may start another try at the very end.
        let tries = |abort: Abort| abort.after.duration() * (abort.retries + 1);
        let patience = setup.environment.abort.map_or(Duration::ZERO, tries);
        let drain = Duration::from_secs(setup.drain_s) + patience;
        let limit = self.point.length() + drain + Duration::from_secs(30);
        let admin_port = server_setup.admin_port;
        let instruments = meter.instruments(running.pid(), generator.pids(), admin_port)?;
        let samples = meter.samples_while(running.pid(), || {
            meter.change_while(self.point, || Ok(generator.finish(limit)?))
        })?;
        beside.map(Beside::finish).transpose()?;
        let seen = instruments.map(Instruments::stop).transpose()?;
        if let Some(seen) = &seen {
            let path = samples_file(self.folder, &server.to_string());
            sample::write_csv(&path, &seen.samples)?;
        }
        std::thread::sleep(SETTLE);
        running.still_runs()?;
        drop(behind);
        let total = meter.total(running.pid())?;
        Ok(Carried {
            version: version.into(),
            kernel: made_with::kernel()?,
            congestion_control,
            syn_backoff: meter.syn_backoff()?,
            commit: Some(made_with::COMMIT.into()),
            total: Counters {
                bytes: total.bytes - before.bytes,
                packets: total.packets - before.packets,
                drops: total.drops - before.drops,
                backlog_packets: total.backlog_packets,
            },
            samples: samples
                .into_iter()
                .map(|(at_s, bytes)| (at_s, bytes.saturating_sub(before.bytes)))
                .collect(),
            wan: meter.wan_report()?,
            notes: meter.notes(),
            sampling: seen.map(|seen| seen.cost),
        })
    }

    /// The meter, on the bed or on loopback, and the congestion control there.
    fn meter(&self, server: Server) -> Result<(Meter, String), LabError> {
        let setup = &self.point.setup;
        if setup.loopback {
            return Ok((Meter::Admin(free_port()?), made_with::congestion_control()?));
        }
        let config = BedConfig {
            rate: self.point.rate,
            queue_packets: QUEUE_PACKETS,
            setup: setup.environment.clone(),
            seed: self.seed,
            neighbour: setup.course.neighbour.is_some(),
        };
        let bed = NativeBed::make(self.testbed, &config)?;
        match server {
            Server::Ours(OursMode::Kernel(_) | OursMode::KernelMixed(_)) => {
                bed.order_in_bands(self.testbed, self.point.rate)?;
            }
            Server::NginxBehind(queue) => {
                bed.serve_flows_in_turn(queue, self.point.rate)?;
            }
            _ => {}
        }
        let name = bed.congestion_control()?;
        Ok((Meter::Bed(Box::new(bed)), name))
    }

    fn start_neighbour(
        &self,
        meter: &Meter,
        server: (Server, &ServerSetup),
    ) -> Result<Option<Beside>, LabError> {
        let (Some(neighbour), Meter::Bed(bed)) = (self.point.setup.course.neighbour, meter) else {
            return Ok(None);
        };
        let asked = neighbour::Setting {
            bed,
            point: self.point,
            server,
            folder: self.folder,
        };
        Beside::start(self.testbed, neighbour, &asked).map(Some)
    }

    fn server_setup(&self, meter: &Meter, server: Server) -> Result<ServerSetup, LabError> {
        let discovers = matches!(server, Server::Ours(OursMode::Auto(_)));
        let (place, address, port, admin_port) = match meter {
            Meter::Bed(bed) => {
                let admin_port = discovers.then_some(ADMIN_PORT);
                (bed.server_place(), SERVER_ADDRESS, PORT, admin_port)
            }
            Meter::Admin(admin_port) => (Place::Here, "127.0.0.1", free_port()?, Some(*admin_port)),
        };
        Ok(ServerSetup {
            address: address.into(),
            rate: Some(self.point.rate),
            speech: self.point.setup.speech,
            uplink_loopback: self.point.setup.loopback,
            admin_port,
            workers: self.point.setup.environment.system.workers,
            writers: self.point.setup.writers,
            ..ServerSetup::new(place, port, &self.site.root)
        })
    }
}

/// A free port of 127.0.0.1.
///
/// # Errors
/// If there is none.
pub fn free_port() -> Result<u16, LabError> {
    port::free_port().map_err(LabError::file(Path::new("127.0.0.1")))
}

/// The source of the counts of bytes on the wire.
enum Meter {
    /// The bed's device.
    Bed(Box<NativeBed>),
    /// Our server itself, at its admin port, because loopback has no uplink's device.
    Admin(u16),
}

impl Meter {
    fn client_place(&self) -> Place {
        match self {
            Self::Bed(bed) => bed.client_place(),
            Self::Admin(_) => Place::Here,
        }
    }

    /// `None` on loopback, where no namespace has the server's sockets alone.
    fn instruments(
        &self,
        server_pid: i32,
        generator_pids: Vec<i32>,
        admin_port: Option<u16>,
    ) -> Result<Option<Instruments>, LabError> {
        match self {
            Self::Bed(bed) => {
                let subject = bed.subject(server_pid, generator_pids, admin_port);
                Ok(Some(Instruments::start(subject)?))
            }
            Self::Admin(_) => Ok(None),
        }
    }

    /// Does `work` while the link changes by the point's course.
    fn change_while(
        &self,
        point: &Point,
        work: impl FnOnce() -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        match self {
            Self::Bed(bed) => course::change_while(bed, point, work),
            Self::Admin(_) => work(),
        }
    }

    /// `None` on loopback, where all clients have one address.
    fn sources(&self) -> Option<String> {
        match self {
            Self::Bed(bed) => bed.source_argument(),
            Self::Admin(_) => None,
        }
    }

    fn wan_report(&mut self) -> Result<Option<WanReport>, LabError> {
        match self {
            Self::Bed(bed) => Ok(bed.wan_report()?),
            Self::Admin(_) => Ok(None),
        }
    }

    fn syn_backoff(&self) -> Result<Option<String>, LabError> {
        match self {
            Self::Bed(bed) => Ok(Some(bed.syn_backoff()?)),
            Self::Admin(_) => Ok(None),
        }
    }

    fn notes(&self) -> Vec<String> {
        match self {
            Self::Bed(bed) => bed.notes().to_vec(),
            Self::Admin(_) => Vec::new(),
        }
    }

    fn total(&self, server_pid: i32) -> Result<Counters, LabError> {
        match self {
            Self::Bed(bed) => Ok(bed.counters(server_pid)?),
            Self::Admin(port) => {
                let bytes = wire_bytes_of(*port).map_err(LabError::file(Path::new("/metrics")))?;
                Ok(Counters {
                    bytes,
                    ..Counters::default()
                })
            }
        }
    }

    fn bytes(&self, server_pid: i32) -> Option<u64> {
        match self {
            Self::Bed(bed) => bed.sent(server_pid).map(|(bytes, _)| bytes),
            Self::Admin(port) => wire_bytes_of(*port).ok(),
        }
    }

    /// Runs `work`, and meanwhile samples the bytes sent.
    fn samples_while(
        &self,
        server_pid: i32,
        work: impl FnOnce() -> Result<(), LabError>,
    ) -> Result<Vec<(f64, u64)>, LabError> {
        let interval = match self {
            Self::Bed(_) => SAMPLE_DEVICE,
            Self::Admin(_) => SAMPLE_METRICS,
        };
        let begin = Instant::now();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sampler = scope.spawn(|| {
                let mut samples = Vec::new();
                while !ended.load(Ordering::Relaxed) {
                    let at_s = begin.elapsed().as_secs_f64();
                    samples.extend(self.bytes(server_pid).map(|bytes| (at_s, bytes)));
                    std::thread::sleep(interval);
                }
                samples
            });
            let result = work();
            ended.store(true, Ordering::Relaxed);
            let samples = sampler
                .join()
                .expect("invariant: the sampler does not panic");
            result.map(|()| samples)
        })
    }
}

/// The wire bytes that our server counted, from its admin address.
fn wire_bytes_of(admin_port: u16) -> std::io::Result<u64> {
    const NAME: &str = "shortline_link_wire_bytes_total";
    let text = admin_page(admin_port, "/metrics")?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(NAME)?.trim().parse::<f64>().ok());
    let missing = || std::io::Error::other(format!("no {NAME} in what the server told"));
    value.map(|value| value as u64).ok_or_else(missing)
}
