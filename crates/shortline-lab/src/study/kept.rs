//! The kept results of a point with one seed, and the bound for its arrivals.
//!
//! A run's device counters say what the link carried: bodies, heads of packets, and the rest. The rest,
//! divided by the requests, is each request's share of handshakes, acknowledgements and heads. The size
//! of every job includes the lowest such share among the servers compared (among those without failures,
//! if there are any). With these sizes the very same arrivals go through fluid SRPT (the optimum) and
//! fluid PS at the uplink's rate. That is a bound only where the share is that of packets sent once:
//! [`NoBound`] says where there is none.

use std::fs;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shortline_load::input;
use shortline_load::record::{PACKED, RequestRecord, read_records};
use shortline_load::trace::{Request, TraceOptions, read_trace};
use shortline_sched::Policy;
use shortline_sim::wire::WireModel;
use shortline_sim::{Arrival, fluid};

use super::KeptError;
use super::offered::Offered;
use super::plan::{Plan, read_json};
use super::point::Point;
use shortline_testbed::bed::Counters;
use shortline_testbed::instruments::Cost;
use shortline_testbed::instruments::sample::Samples;
use shortline_testbed::wan::loss::Loss;
use shortline_testbed::wan::path::Way;
use shortline_testbed::wan::report::WanReport;

/// The content of `SERVER.json`. It is written last, so a run that has it is whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Carried {
    /// The server's version, as it reports it.
    pub version: String,
    /// The kernel of the machine.
    pub kernel: String,
    /// Congestion control at both ends, as the kernel had it.
    pub congestion_control: String,
    /// How the clients' timeouts of a SYN grow, in words. `None` in results of before this was kept, and on loopback.
    #[serde(default)]
    pub syn_backoff: Option<String>,
    /// The commit that the lab was built from. `None` in results of before this was kept.
    #[serde(default)]
    pub commit: Option<String>,
    /// What the uplink carried in all.
    pub total: Counters,
    /// Samples: seconds after the generator was started, and bytes carried until then.
    pub samples: Vec<(f64, u64)>,
    /// The report of the emulated networks, if there were any.
    pub wan: Option<WanReport>,
    /// What the setup asked for and the bed could not do.
    pub notes: Vec<String>,
    /// The cost of the instruments, whose samples are in `SERVER.samples.csv`. `None` on loopback.
    pub sampling: Option<Cost>,
}

/// The kept results of a point with one seed.
pub struct Kept<'a> {
    point: &'a Point,
    /// The arrivals. `None` in a closed loop.
    pub requests: Vec<Request>,
    /// The load that they offer. `None` in results of before it was kept.
    pub offered: Option<Offered>,
    /// The servers with whole runs, in the order they ran.
    pub runs: Vec<KeptRun>,
}

/// The kept results of a server.
pub struct KeptRun {
    /// Its name.
    pub server: String,
    /// The generator's records.
    pub records: Vec<RequestRecord>,
    /// What the link carried.
    pub carried: Carried,
    /// The instruments' samples. `None` on loopback.
    pub seen: Option<Samples>,
    /// The records of the requests to the neighbour, if there was one.
    pub neighbour: Option<Vec<RequestRecord>>,
}

/// The folder with the results of a point with one seed.
pub fn seed_folder(out: &Path, point: &Point, seed: u64) -> PathBuf {
    out.join(&point.label).join(format!("seed-{seed}"))
}

/// The file whose presence means that a server's run is whole.
pub fn whole_file(folder: &Path, server: &str) -> PathBuf {
    folder.join(format!("{server}.json"))
}

/// The file with the records of a server's run.
pub fn records_file(folder: &Path, server: &str) -> PathBuf {
    packed(folder.join(format!("{server}.csv")))
}

/// The file of records that are packed with zstd, or those themselves where an older lab has kept them.
pub fn packed(plain: PathBuf) -> PathBuf {
    let packed = plain.with_extension(format!("csv.{PACKED}"));
    if plain.exists() && !packed.exists() {
        plain
    } else {
        packed
    }
}

/// The file with the samples of a server's run.
pub fn samples_file(folder: &Path, server: &str) -> PathBuf {
    folder.join(format!("{server}.samples.csv"))
}

/// The file with the records of the requests to the neighbour.
pub fn neighbour_file(folder: &Path, server: &str) -> PathBuf {
    packed(folder.join(format!("{server}.neighbour.csv")))
}

/// The number of the plan's runs that are whole in `out`.
pub fn whole_runs(out: &Path, plan: &Plan) -> usize {
    whole_files(out, plan).len()
}

/// `SERVER.json` of each whole run of the plan, without the records.
///
/// # Errors
/// If a file of a whole run is wrong.
pub fn carried(out: &Path, plan: &Plan) -> Result<Vec<Carried>, KeptError> {
    let files = whole_files(out, plan);
    files.iter().map(|file| read_json(file)).collect()
}

/// The digest of the records of the plan's whole runs.
///
/// # Errors
/// If a file of records cannot be read.
pub fn digest(out: &Path, plan: &Plan) -> Result<String, KeptError> {
    let files = whole_files(out, plan);
    let records = files.iter().map(|file| packed(file.with_extension("csv")));
    digest_of(records.collect())
}

/// The SHA-256 of files of records, unpacked and one after the other in the order of their paths. It tells whether
/// records that are kept elsewhere are those that a page was made from.
///
/// # Errors
/// If a file cannot be read.
pub fn digest_of(mut files: Vec<PathBuf>) -> Result<String, KeptError> {
    files.sort();
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for file in &files {
        context.update(&unpacked(file).map_err(KeptError::file(file))?);
    }
    let digest = context.finish();
    Ok(digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn unpacked(file: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let file = BufReader::new(fs::File::open(file)?);
    input::unpacked(file)?.read_to_end(&mut content)?;
    Ok(content)
}

/// The files of the plan's whole runs in `out`.
fn whole_files(out: &Path, plan: &Plan) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for point in &plan.points {
        for seed in &plan.seeds {
            let folder = seed_folder(out, point, *seed);
            let servers = plan.servers.iter();
            files.extend(servers.map(|server| whole_file(&folder, server)));
        }
    }
    files.retain(|file| file.exists());
    files
}

impl<'a> Kept<'a> {
    /// The results of `point` with `seed` in the results' folder `out`.
    ///
    /// # Errors
    /// If a file of a whole run is missing or wrong.
    pub fn read(out: &Path, plan: &Plan, point: &'a Point, seed: u64) -> Result<Self, KeptError> {
        let folder = seed_folder(out, point, seed);
        let whole = plan
            .servers
            .iter()
            .filter(|server| whole_file(&folder, server).exists());
        let run = |server: &String| {
            let records =
                read_records(&records_file(&folder, server)).map_err(KeptError::refused)?;
            let carried: Carried = read_json(&whole_file(&folder, server))?;
            let seen = carried
                .sampling
                .map(|_| Samples::read(&samples_file(&folder, server)));
            let neighbour = point.setup.course.neighbour.map(|_| {
                read_records(&neighbour_file(&folder, server)).map_err(KeptError::refused)
            });
            Ok(KeptRun {
                server: server.clone(),
                records,
                carried,
                seen: seen.transpose()?,
                neighbour: neighbour.transpose()?,
            })
        };
        let runs = whole.map(run).collect::<Result<Vec<_>, KeptError>>()?;
        let trace = folder.join("trace.csv");
        let requests = if runs.is_empty() || point.arrivals.is_closed() {
            Vec::new()
        } else {
            read_trace(&trace, &TraceOptions::default()).map_err(KeptError::refused)?
        };
        Ok(Self {
            offered: Offered::read(&folder)?,
            point,
            requests,
            runs,
        })
    }

    /// The lowest cost of a request among the servers, among those without failures if there are any.
    pub fn lowest_per_request_bytes(&self) -> u64 {
        self.lowest_among(|_| true)
    }

    fn lowest_among(&self, counts: impl Fn(&KeptRun) -> bool) -> u64 {
        let lowest = |counts: &dyn Fn(&KeptRun) -> bool| {
            let runs = self.runs.iter().filter(|run| counts(run));
            runs.filter_map(|run| run.per_request_bytes(self.point))
                .min()
        };
        let without_failures = |run: &KeptRun| run.records.iter().all(RequestRecord::ok);
        lowest(&|run| counts(run) && without_failures(run))
            .or_else(|| lowest(&counts))
            // The usual cost, without any counters.
            .unwrap_or(WireModel::default().per_request_bytes)
    }

    /// The cost of responses that the bound is computed with.
    ///
    /// # Errors
    /// If there is no bound: the link's bytes then say nothing of what the requests alone cost, or
    /// they would not be the link's alone.
    pub fn bound_model(&self) -> Result<WireModel, NoBound> {
        let environment = &self.point.setup.environment;
        let loses = |way: &Way| way.loss != Loss::None;
        let mut groups = environment.groups.iter();
        if self.point.arrivals.is_closed() {
            return Err(NoBound::ClosedLoop);
        }
        if !self.point.setup.course.is_empty() {
            return Err(NoBound::Course);
        }
        if groups.any(|group| loses(&group.down) || loses(&group.up)) {
            return Err(NoBound::Loss);
        }
        if environment.abort.is_some() {
            return Err(NoBound::Aborts);
        }
        let sent_once = |run: &KeptRun| run.carried.total.drops == 0;
        if !self.runs.iter().any(sent_once) {
            return Err(NoBound::SentAgain);
        }
        Ok(self.point.wire(self.lowest_among(sent_once)))
    }

    /// The records that a fluid link under `policy` would have left, with responses of this cost.
    ///
    /// # Errors
    /// If the simulator refuses the arrivals.
    pub fn bound(&self, model: WireModel, policy: Policy) -> Result<Vec<RequestRecord>, KeptError> {
        let arrivals: Vec<Arrival> = self
            .requests
            .iter()
            .map(|request| Arrival {
                at_ns: request.at_ns,
                bytes: model.wire_bytes(request.bytes),
            })
            .collect();
        let rate_bps = self.point.rate.bps();
        let sojourns_ns = fluid(&arrivals, rate_bps, policy).map_err(KeptError::refused)?;
        let record = |(request, sojourn_ns): (&Request, u64)| {
            let (at_s, response_time_s) = (request.at_ns as f64 / 1e9, sojourn_ns as f64 / 1e9);
            RequestRecord::finished(at_s, &request.path, request.bytes, response_time_s)
        };
        Ok(self.requests.iter().zip(sojourns_ns).map(record).collect())
    }
}

/// Why there is no bound for a point's response times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum NoBound {
    /// Each server has arrivals of its own.
    #[error("in a closed loop no two servers get the same arrivals")]
    ClosedLoop,
    /// The bound is for a link of one rate that the server has to itself.
    #[error("the link changes or is shared")]
    Course,
    /// Lost packets are sent again.
    #[error("the networks lose packets")]
    Loss,
    /// A try that was given up has had its bytes.
    #[error("users give up and try again")]
    Aborts,
    /// Nothing says what the responses cost if each packet is sent once.
    #[error("every server had packets dropped and sent them again")]
    SentAgain,
}

impl KeptRun {
    /// Wire bytes of a request besides its body and packets. `None` if bodies were sent again and again in
    /// vain, so that less was received than the link must have carried.
    pub fn per_request_bytes(&self, point: &Point) -> Option<u64> {
        let bodies: Vec<u64> = self.records.iter().map(|record| record.received).collect();
        let model = point.wire(0).calibrate(&bodies, self.carried.total.bytes);
        model.ok().map(|model| model.per_request_bytes)
    }

    /// Bytes that the link carried while the schedule was in overload.
    pub fn overload_bytes(&self, point: &Point) -> f64 {
        let begin_s = self.generator_begin_s();
        let until = |at_s: f64| bytes_until(&self.carried.samples, begin_s + at_s);
        point
            .overloads_s()
            .iter()
            .map(|(begin_s, end_s)| until(*end_s) - until(*begin_s))
            .sum()
    }

    /// When the schedule began, on the samples' clock. The first bytes were sent a moment after the first
    /// arrival.
    fn generator_begin_s(&self) -> f64 {
        let first_at_s = self
            .records
            .iter()
            .map(|record| record.at_s)
            .fold(f64::INFINITY, f64::min);
        let sent = self.carried.samples.iter().find(|(_, bytes)| *bytes > 0);
        sent.map_or(0.0, |(sent_s, _)| (sent_s - first_at_s).max(0.0))
    }
}

/// Bytes carried until `at_s`, interpolated between two samples.
fn bytes_until(samples: &[(f64, u64)], at_s: f64) -> f64 {
    let next = samples.partition_point(|(sample_s, _)| *sample_s < at_s);
    match (
        next.checked_sub(1).map(|before| samples[before]),
        samples.get(next),
    ) {
        (Some((from_s, from)), Some((to_s, to))) => {
            let share = (at_s - from_s) / (to_s - from_s);
            from as f64 + share * to.abs_diff(from) as f64
        }
        (Some((_, last)), None) => last as f64,
        (None, _) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use shortline_load::record::write_records;

    use super::*;

    #[test]
    fn records_are_packed_but_for_those_of_an_older_lab_and_their_digest_is_the_same() {
        let records: Vec<RequestRecord> = (0..500)
            .map(|at| RequestRecord::finished(f64::from(at), "/file", 1000, 0.25))
            .collect();
        let kept = |name: &str, is_older: bool| {
            let folder = tempfile::tempdir().unwrap();
            let plain = folder.path().join(name);
            if is_older {
                write_records(&plain, &records).unwrap();
            }
            let file = packed(plain);
            write_records(&file, &records).unwrap();
            assert_eq!(read_records(&file).unwrap(), records);
            let bytes = fs::metadata(&file).unwrap().len();
            (
                file.extension().unwrap().to_owned(),
                bytes,
                digest_of(vec![file]).unwrap(),
            )
        };
        let (newer, newer_bytes, newer_digest) = kept("srpt.csv", false);
        let (older, older_bytes, older_digest) = kept("srpt.csv", true);
        assert_eq!((&*newer, &*older), ("zst".as_ref(), "csv".as_ref()));
        assert!(
            newer_bytes * 2 < older_bytes,
            "{newer_bytes} of {older_bytes}"
        );
        assert_eq!(newer_digest, older_digest);
    }

    #[test]
    fn bytes_between_samples_lie_on_a_straight_line() {
        let samples = [(1.0, 100), (2.0, 300), (3.0, 300)];
        assert_eq!(bytes_until(&samples, 0.5), 0.0);
        assert_eq!(bytes_until(&samples, 1.5), 200.0);
        assert_eq!(bytes_until(&samples, 2.0), 300.0);
        assert_eq!(bytes_until(&samples, 9.0), 300.0);
    }
}
