//! The neighbour: another server that sends through the same narrow link, with a generator of its own. It
//! runs beside the measured server, and its records are kept as `SERVER.neighbour.csv.zst`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shortline_load::trace::{Request, write_csv};

use crate::LabError;
use crate::study::course::Neighbour;
use crate::study::kept::neighbour_file;
use crate::study::point::Point;
use shortline_testbed::Place;
use shortline_testbed::Testbed;
use shortline_testbed::bed::NativeBed;
use shortline_testbed::bed::hop::NEIGHBOUR_ADDRESS;
use shortline_testbed::generator::{self, Generator, LoadSetup, Work};
use shortline_testbed::server::{Running, Server, ServerSetup};

/// Its port. It could have the other server's on its own machine, but the names of files contain the port.
const PORT: u16 = 8081;
/// The seed of a twin's arrivals is the other's plus this.
const SEED_STEP: u64 = 1_000_000;
/// The size of the endless file, in multiples of what the link could carry.
const ENDLESS: f64 = 4.0;
const DOWNLOAD: &str = "bulk";
/// A short file that is requested too, because a generator without finished requests counts as failed.
const SHORT: &str = "short";
const SHORT_BYTES: u64 = 1;

/// The neighbour while it runs.
#[derive(Debug)]
pub struct Beside {
    // Ended when dropped.
    _running: Running,
    generator: Generator,
    limit: Duration,
}

/// The run that a neighbour belongs to.
pub struct Setting<'a> {
    /// Where the requests go.
    pub bed: &'a NativeBed,
    /// The point.
    pub point: &'a Point,
    /// The server that is measured, and how it is set up.
    pub server: (Server, &'a ServerSetup),
    /// The point's folder for the seed.
    pub folder: &'a Path,
}

/// The seed that a twin's arrivals are drawn with.
pub fn seed_of_twin(seed: u64) -> u64 {
    seed + SEED_STEP
}

/// The file of the neighbour's requests.
pub fn trace_file(folder: &Path) -> PathBuf {
    folder.join("neighbour.csv")
}

/// Writes the requests of all downloads.
///
/// # Errors
/// If they cannot be written.
pub fn write_downloads(
    folder: &Path,
    point: &Point,
    number: u32,
    from: f64,
) -> Result<(), LabError> {
    let request = |name: &str, bytes| Request {
        at_ns: point.length().mul_f64(from).as_nanos() as u64,
        path: format!("/{name}"),
        bytes,
    };
    let mut requests = vec![request(DOWNLOAD, download_bytes(point)); number as usize];
    requests.insert(0, request(SHORT, SHORT_BYTES));
    write_csv(&trace_file(folder), &requests).map_err(LabError::refused)
}

fn download_bytes(point: &Point) -> u64 {
    (point.rate.bps() as f64 / 8.0 * point.length().as_secs_f64() * ENDLESS) as u64
}

impl Beside {
    /// Starts the neighbour's server and generator, if the point has a neighbour.
    ///
    /// # Errors
    /// If one of them does not start.
    pub fn start(
        testbed: &Testbed,
        neighbour: Neighbour,
        asked: &Setting<'_>,
    ) -> Result<Self, LabError> {
        let Setting {
            bed, point, folder, ..
        } = asked;
        let (server, usual) = asked.server;
        let kind = match neighbour {
            Neighbour::Downloads { .. } => Server::Nginx,
            Neighbour::Twin => server,
        };
        let setup = ServerSetup {
            place: bed.neighbour_place()?,
            address: NEIGHBOUR_ADDRESS.to_string(),
            port: PORT,
            root: match neighbour {
                Neighbour::Downloads { .. } => endless_file(testbed, point)?,
                Neighbour::Twin => usual.root.clone(),
            },
            admin_port: None,
            ..usual.clone()
        };
        let running = Running::start(testbed, kind, &setup)?;
        let (trace, records) = (
            trace_file(folder),
            neighbour_file(folder, &server.to_string()),
        );
        let patience = match neighbour {
            Neighbour::Downloads { from, to, .. } => Some(point.length().mul_f64(to - from)),
            Neighbour::Twin => None,
        };
        let load = LoadSetup {
            work: Work::Trace(&trace),
            records: &records,
            requests_per_connection: point.setup.environment.requests_per_connection,
            sources: None,
            abort: patience.map(|after| shortline_testbed::bed::setup::Abort {
                after: shortline_sched::units::Span::from_duration(after),
                retries: 0,
            }),
            drain_s: point.setup.drain_s,
            processes: 1,
        };
        let place: Place = bed.client_place();
        Ok(Self {
            generator: generator::start(testbed, &place, &setup, &load)?,
            _running: running,
            limit: point.length() + Duration::from_secs(point.setup.drain_s + 30),
        })
    }

    /// Waits until all of its requests are over.
    ///
    /// # Errors
    /// If its generator fails.
    pub fn finish(self) -> Result<(), LabError> {
        Ok(self.generator.finish(self.limit)?)
    }
}

/// A folder with a sparse file that is longer than what the link carries.
fn endless_file(testbed: &Testbed, point: &Point) -> Result<PathBuf, LabError> {
    let folder = testbed.scratch().join("downloads");
    fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
    for (name, length) in [(DOWNLOAD, download_bytes(point)), (SHORT, SHORT_BYTES)] {
        let path = folder.join(name);
        let file = fs::File::create(&path).map_err(LabError::file(&path))?;
        file.set_len(length).map_err(LabError::file(&path))?;
    }
    Ok(folder)
}
