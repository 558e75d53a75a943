//! Each file once before a run, so that what our server makes or keeps of it is there: the run is about responses from there.

use std::time::Duration;

use shortline_load::record::read_records;
use shortline_load::trace::{Request, write_csv};
use shortline_load::workload::SiteFiles;
use shortline_testbed::generator::{self, LoadSetup, Work};
use shortline_testbed::server::ServerSetup;
use shortline_testbed::{Place, Testbed};

use crate::LabError;
use crate::study::point::Point;

/// What a request takes on the link beside its body, in bytes, generously.
const HEAD_BYTES: u64 = 2_000;
/// How long the last responses may take, in seconds.
const DRAIN_S: u64 = 30;

/// Asks for each file once, at the link's pace.
///
/// # Errors
/// The generator fails, or a response does.
pub fn run(
    testbed: &Testbed,
    client: &Place,
    server: &ServerSetup,
    point: &Point,
    files: &SiteFiles,
) -> Result<(), LabError> {
    let byte_ns = 8e9 / point.rate.bps() as f64;
    let mut at_ns = 0;
    let requests = files.files().iter().map(|file| {
        let request = Request {
            at_ns,
            path: file.path.clone(),
            bytes: file.bytes,
        };
        at_ns += ((file.bytes + HEAD_BYTES) as f64 * byte_ns) as u64;
        request
    });
    let requests: Vec<Request> = requests.collect();
    let length = Duration::from_nanos(at_ns);
    let trace = testbed.scratch().join("warm-up.csv");
    write_csv(&trace, &requests).map_err(LabError::refused)?;
    let records = testbed.scratch().join("warm-up-records.csv");
    let load = LoadSetup {
        work: Work::Trace(&trace),
        records: &records,
        requests_per_connection: None,
        drain_s: DRAIN_S,
        sources: None,
        abort: None,
        processes: 1,
    };
    let generator = generator::start(testbed, client, server, &load)?;
    generator.finish(length + Duration::from_secs(2 * DRAIN_S))?;
    let records = read_records(&records).map_err(LabError::refused)?;
    match records.iter().find(|record| !record.ok()) {
        None => Ok(()),
        Some(failed) => Err(LabError::failed("warm-up", &failed.path)),
    }
}
