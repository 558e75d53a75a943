//! Each job of a simulation, kept for Python, and the end of the run at Ctrl-C.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyList};
use shortline_sim::{JobEnd, Observer};

use crate::columns::column;
use crate::refused;

/// The most jobs that are kept of all replications.
pub const KEPT_MAX: usize = 20_000_000;

/// What the observers of a run share.
#[derive(Default)]
pub struct Shared {
    /// Somebody wants the run to end.
    pub cancel: AtomicBool,
    kept: AtomicUsize,
}

impl Shared {
    /// Why the run was ended from here, if it was.
    pub fn is_full(&self) -> bool {
        self.kept.load(Ordering::Relaxed) > KEPT_MAX
    }

    /// The refusal of a run that is full.
    pub fn full() -> PyErr {
        refused(format!(
            "keep_jobs: more than {KEPT_MAX} jobs, the limit; want fewer jobs or keep_jobs=False, which keeps the summaries"
        ))
    }
}

/// The jobs of one replication.
pub struct Kept<'a> {
    shared: &'a Shared,
    replication: u32,
    /// `None` if the jobs are not wanted.
    jobs: Option<Vec<Job>>,
    /// The times in the system of each job, by policy, in the order of `jobs`.
    sojourns_ns: Vec<f64>,
}

struct Job {
    number: u64,
    at_ns: u64,
    bytes: f64,
    alone_ns: f64,
}

impl<'a> Kept<'a> {
    /// Keeps each job if `is_wanted`.
    pub fn new(shared: &'a Shared, replication: u32, is_wanted: bool) -> Self {
        Self {
            shared,
            replication,
            jobs: is_wanted.then(Vec::new),
            sojourns_ns: Vec::new(),
        }
    }
}

impl Observer for Kept<'_> {
    fn job(&mut self, job: &JobEnd<'_>) {
        let Some(jobs) = &mut self.jobs else {
            return;
        };
        if self.shared.kept.fetch_add(1, Ordering::Relaxed) >= KEPT_MAX {
            return;
        }
        jobs.push(Job {
            number: job.number,
            at_ns: job.at_ns,
            bytes: job.bytes,
            alone_ns: job.alone_ns,
        });
        self.sojourns_ns.extend_from_slice(job.sojourns_ns);
    }

    fn is_cancelled(&self) -> bool {
        self.shared.cancel.load(Ordering::Relaxed) || self.shared.is_full()
    }
}

/// A job's columns of all replications, one after the other, each in the order of arrival; the last one, by policy,
/// has how long it was in the system, below 0 if its user gave up. `None` if no job was kept.
pub fn columns<'py>(
    py: Python<'py>,
    replications: &[Kept<'_>],
    policies: usize,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let mut ordered: Vec<(&Job, &[f64], u32)> = Vec::new();
    for kept in replications {
        let Some(jobs) = &kept.jobs else {
            return Ok(None);
        };
        let begin = ordered.len();
        let sojourns_ns = kept.sojourns_ns.chunks_exact(policies);
        let both = jobs.iter().zip(sojourns_ns);
        ordered.extend(both.map(|(job, sojourns_ns)| (job, sojourns_ns, kept.replication)));
        ordered[begin..].sort_unstable_by_key(|(job, ..)| job.number);
    }
    let of_job = |value: fn(&Job) -> f64| column(py, ordered.iter().map(|(job, ..)| value(job)));
    let by_policy = |policy: usize| -> PyResult<Bound<'py, PyByteArray>> {
        let sojourn_s = |sojourns_ns: &[f64]| sojourns_ns[policy] / 1e9;
        column(py, ordered.iter().map(|(_, ns, _)| sojourn_s(ns)))
    };
    let sojourns: PyResult<Vec<_>> = (0..policies).map(by_policy).collect();
    let columns = PyDict::new(py);
    columns.set_item("arrival", of_job(|job| job.at_ns as f64 / 1e9)?)?;
    columns.set_item("size", of_job(|job| job.bytes)?)?;
    columns.set_item("alone", of_job(|job| job.alone_ns / 1e9)?)?;
    let replication = ordered.iter().map(|&(.., number)| f64::from(number));
    columns.set_item("replication", column(py, replication)?)?;
    columns.set_item("sojourn", PyList::new(py, sojourns?)?)?;
    Ok(Some(columns))
}
