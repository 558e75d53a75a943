//! Response times over a saturated uplink: each server in turn, the same files, the same
//! arrivals.
//!
//! Kept in the results' folder: `plan.json`; for each seed a folder with `trace.csv` and
//! for each server `SERVER.csv` (the generator's records), `SERVER.txt` (its summary) and
//! `SERVER.json` (what the uplink carried, at the end and over time, and what the emulated
//! networks did), `SERVER.samples.csv` (what the [`instruments`](crate::instruments) saw).
//! Everything reported is computed from these, by [`Figures`].

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use shortline_load::trace::{Request, write_csv};
use shortline_load::workload::{self, FILES_DEFAULT, SiteFiles};
use shortline_sim::wire::WireModel;

use super::figures::Figures;
use super::plan::{Plan, Variant, write_json};
use super::uplink_table;
use crate::bed::native::{CONGESTION_CONTROL, SERVER_ADDRESS};
use crate::bed::{BedConfig, Counters, NativeBed, Place, Setup};
use crate::instruments::{Cost, Instruments, sample};
use crate::lab::Lab;
use crate::load::{self, DRAIN_MAX, LoadSetup};
use crate::server::{self, Running, Server, ServerSetup};
use crate::wan::report::WanReport;
use crate::{LabError, plot, proc_fs};

/// The FIFO before the uplink, as in the papers' FAIR.
const QUEUE_PACKETS: u32 = 100;
/// The port that servers listen on in the bed, where all ports are free.
const PORT: u16 = 8080;
/// How often the device's counters are read.
const SAMPLE_DEVICE: Duration = Duration::from_millis(20);
/// How often the server is asked on loopback: each time is a request.
const SAMPLE_METRICS: Duration = Duration::from_millis(200);
/// What is still under way after the generator's end: the last FINs.
const SETTLE: Duration = Duration::from_millis(300);

/// What the uplink carried in one server's run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Carried {
    /// In all.
    pub total: Counters,
    /// Seconds after the generator was started, and bytes carried until then.
    pub samples: Vec<(f64, u64)>,
    /// What the emulated networks did, if there were any.
    #[serde(default)]
    pub wan: Option<WanReport>,
    /// What the setup asked for and the bed could not do.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What the instruments took; what they saw is in `SERVER.samples.csv`.
    #[serde(default)]
    pub sampling: Option<Cost>,
}

/// Runs the plan and keeps what was measured.
///
/// # Errors
/// A bed, server or generator that fails.
pub fn run(lab: &Lab, variant: &Variant, mut plan: Plan) -> Result<(), LabError> {
    let servers = plan
        .servers
        .iter()
        .map(|name| name.parse())
        .collect::<Result<Vec<Server>, _>>()?;
    for server in &servers {
        plan.versions.push(server::version(lab, *server)?);
    }
    plan.kernel = read_line(Path::new("/proc/sys/kernel/osrelease"))?;
    plan.congestion_control = if variant.loopback {
        read_line(Path::new("/proc/sys/net/ipv4/tcp_congestion_control"))?
    } else {
        CONGESTION_CONTROL.into()
    };
    plan.write(lab.out())?;
    let root = lab.scratch().join("site");
    let site = workload::world_cup_like(FILES_DEFAULT).map_err(LabError::workload)?;
    site.write_site(&root).map_err(LabError::workload)?;
    if variant.speech.tls {
        server::make_certificate(lab, SERVER_ADDRESS)?;
    }
    for seed in &plan.seeds {
        let folder = seed_folder(lab.out(), *seed);
        fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
        let requests = arrivals(variant, &plan, *seed, &site);
        let trace = folder.join("trace.csv");
        write_csv(&trace, &requests).map_err(LabError::workload)?;
        for server in &servers {
            eprintln!(
                "{}: seed {seed}, {server}: {} requests in {} s",
                plan.experiment,
                requests.len(),
                plan.seconds
            );
            let run = Run {
                lab,
                variant,
                plan: &plan,
                seed: *seed,
                folder: &folder,
                root: &root,
            };
            run.measure(*server)?;
        }
    }
    Ok(())
}

/// The report on the results in `folder`; draws the plots anew too.
///
/// # Errors
/// If `folder` does not hold what [`run`] keeps.
pub fn report(folder: &Path, experiment: &str) -> Result<String, LabError> {
    let plan = Plan::read(folder)?;
    if plan.experiment != experiment {
        let plan_file = folder.join("plan.json");
        return Err(LabError::kept(&plan_file)(format!(
            "is of experiment `{}`",
            plan.experiment
        )));
    }
    let figures = Figures::of(folder, &plan)?;
    write_json(&folder.join("summary.json"), &figures)?;
    let plot_file = folder.join("plot.svg");
    plot::draw(
        &plot_file,
        &plan,
        &figures.first_seed_series(folder, &plan)?,
    )?;
    Ok(format!(
        "{}\nplot: {}\n",
        uplink_table::table(&plan, &figures),
        plot_file.display()
    ))
}

/// Where the results of a seed are.
pub fn seed_folder(out: &Path, seed: u64) -> PathBuf {
    out.join(format!("seed-{seed}"))
}

fn arrivals(variant: &Variant, plan: &Plan, seed: u64, site: &SiteFiles) -> Vec<Request> {
    let model = WireModel {
        per_request_bytes: variant.per_request_bytes,
        ..WireModel::default()
    };
    workload::arrivals(
        &variant.schedule(),
        plan.rate,
        |body_bytes| model.wire_bytes(body_bytes),
        plan.length(),
        seed,
        site,
    )
}

fn read_line(path: &Path) -> Result<String, LabError> {
    let text = fs::read_to_string(path).map_err(LabError::file(path))?;
    Ok(text.trim().to_owned())
}

/// One seed's runs.
struct Run<'a> {
    lab: &'a Lab,
    variant: &'a Variant,
    plan: &'a Plan,
    seed: u64,
    folder: &'a Path,
    root: &'a Path,
}

impl Run<'_> {
    fn measure(&self, server: Server) -> Result<(), LabError> {
        let mut meter = if self.variant.loopback {
            Meter::Admin(free_port()?)
        } else {
            let config = BedConfig {
                rate: self.plan.rate,
                queue_packets: QUEUE_PACKETS,
                setup: Setup::today(),
                seed: self.seed,
            };
            Meter::Bed(Box::new(NativeBed::make(self.lab, &config)?))
        };
        let setup = self.server_setup(&meter)?;
        let mut running = Running::start(self.lab, server, &setup)?;
        let name = server.to_string();
        let records = self.folder.join(format!("{name}.csv"));
        let load = LoadSetup {
            trace: &self.folder.join("trace.csv"),
            records: &records,
            requests_per_connection: self.plan.requests_per_connection,
        };
        let before = meter.total(running.pid())?;
        let generator = load::start(self.lab, &meter.client_place(), &setup, &load)?;
        let limit = self.plan.length() + DRAIN_MAX + Duration::from_secs(30);
        let instruments = meter.instruments(running.pid(), generator.pid())?;
        let samples = meter.samples_while(running.pid(), || generator.finish("load", limit))?;
        let seen = instruments.map(Instruments::stop).transpose()?;
        if let Some(seen) = &seen {
            let path = self.folder.join(format!("{name}.samples.csv"));
            sample::write_csv(&path, &seen.samples)?;
        }
        std::thread::sleep(SETTLE);
        running.still_runs()?;
        let total = meter.total(running.pid())?;
        let carried = Carried {
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
        };
        write_json(&self.folder.join(format!("{name}.json")), &carried)
    }

    fn server_setup(&self, meter: &Meter) -> Result<ServerSetup, LabError> {
        let (place, address, port, admin_port) = match meter {
            Meter::Bed(bed) => (bed.server_place(), SERVER_ADDRESS, PORT, None),
            Meter::Admin(admin_port) => (Place::Here, "127.0.0.1", free_port()?, Some(*admin_port)),
        };
        Ok(ServerSetup {
            place,
            address: address.into(),
            port,
            root: self.root.into(),
            rate: Some(self.plan.rate),
            speech: self.variant.speech,
            uplink_loopback: self.variant.loopback,
            admin_port,
        })
    }
}

/// A port of 127.0.0.1 that was free a moment ago.
///
/// # Errors
/// If there is none.
pub fn free_port() -> Result<u16, LabError> {
    let port = || TcpListener::bind("127.0.0.1:0")?.local_addr();
    port()
        .map(|address| address.port())
        .map_err(LabError::file(Path::new("127.0.0.1")))
}

/// What counts the bytes on the wire.
enum Meter {
    /// The bed's device.
    Bed(Box<NativeBed>),
    /// Our server itself, asked at its admin port: on loopback there is no uplink's device.
    Admin(u16),
}

impl Meter {
    fn client_place(&self) -> Place {
        match self {
            Self::Bed(bed) => bed.client_place(),
            Self::Admin(_) => Place::Here,
        }
    }

    /// On loopback there is no namespace whose sockets are the server's.
    fn instruments(
        &self,
        server_pid: i32,
        generator_pid: i32,
    ) -> Result<Option<Instruments>, LabError> {
        match self {
            Self::Bed(bed) => Instruments::start(bed.subject(server_pid, generator_pid)).map(Some),
            Self::Admin(_) => Ok(None),
        }
    }

    fn wan_report(&mut self) -> Result<Option<WanReport>, LabError> {
        match self {
            Self::Bed(bed) => bed.wan_report(),
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
            Self::Bed(bed) => bed.counters(server_pid),
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
            Self::Bed(bed) => {
                proc_fs::device_sent(server_pid, bed.device()).map(|(bytes, _)| bytes)
            }
            Self::Admin(port) => wire_bytes_of(*port).ok(),
        }
    }

    /// Runs `work` and meanwhile reads the bytes sent again and again.
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

/// The wire bytes that our server counted, as its admin address tells them.
fn wire_bytes_of(admin_port: u16) -> std::io::Result<u64> {
    const NAME: &str = "shortline_link_wire_bytes_total";
    let mut connection = TcpStream::connect(("127.0.0.1", admin_port))?;
    connection.set_read_timeout(Some(Duration::from_secs(5)))?;
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    connection.read_to_string(&mut text)?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(NAME)?.trim().parse::<f64>().ok());
    let missing = || std::io::Error::other(format!("no {NAME} in what the server told"));
    value.map(|value| value as u64).ok_or_else(missing)
}
