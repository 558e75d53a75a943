//! Each job of a simulation, kept for Python, and the end of the run at Ctrl-C.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
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
    /// When each job was first served and how long it was in the system, by policy, in the order of `jobs`.
    starts_ns: Vec<f64>,
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
            starts_ns: Vec::new(),
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
        self.starts_ns.extend_from_slice(job.starts_ns);
        self.sojourns_ns.extend_from_slice(job.sojourns_ns);
    }

    fn is_cancelled(&self) -> bool {
        self.shared.cancel.load(Ordering::Relaxed) || self.shared.is_full()
    }
}

/// One job of a replication: what it is, when it was first served and how long it was in the system.
type Row<'a> = (&'a Job, &'a [f64], &'a [f64], u32);

/// Columns of the jobs of all replications, one after the other, each in the order of arrival. `start` and `sojourn` have
/// a column a policy; a sojourn is below 0 if the user gave up. `None` if no job was kept.
pub fn columns<'py>(
    py: Python<'py>,
    replications: &[Kept<'_>],
    policies: usize,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for kept in replications {
        let Some(jobs) = &kept.jobs else {
            return Ok(None);
        };
        let begin = rows.len();
        let starts_ns = kept.starts_ns.chunks_exact(policies);
        let times = starts_ns.zip(kept.sojourns_ns.chunks_exact(policies));
        let row = |(job, (starts_ns, sojourns_ns))| (job, starts_ns, sojourns_ns, kept.replication);
        rows.extend(jobs.iter().zip(times).map(row));
        rows[begin..].sort_unstable_by_key(|(job, ..)| job.number);
    }
    let of_row = |value: &dyn Fn(&Row<'_>) -> f64| column(py, rows.iter().map(value));
    let by_policy = |times_ns: fn(&Row<'_>, usize) -> f64| -> PyResult<Bound<'py, PyList>> {
        let one = |policy| of_row(&|row| times_ns(row, policy) / 1e9);
        let columns: PyResult<Vec<_>> = (0..policies).map(one).collect();
        PyList::new(py, columns?)
    };
    let columns = PyDict::new(py);
    columns.set_item("arrival", of_row(&|(job, ..)| job.at_ns as f64 / 1e9)?)?;
    columns.set_item("size", of_row(&|(job, ..)| job.bytes)?)?;
    columns.set_item("alone", of_row(&|(job, ..)| job.alone_ns / 1e9)?)?;
    columns.set_item("replication", of_row(&|row| f64::from(row.3))?)?;
    columns.set_item("start", by_policy(|row, policy| row.1[policy])?)?;
    columns.set_item("sojourn", by_policy(|row, policy| row.2[policy])?)?;
    Ok(Some(columns))
}
