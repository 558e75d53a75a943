//! Where jobs come from, checked as soon as it is said.

use std::num::NonZeroU64;
use std::path::PathBuf;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use shortline_load::trace::SECONDS_MAX;
use shortline_load::workload::Workload;
use shortline_scenario::{self as scenario, Random, Requests, TraceFile, Traffic, trace_options};
use shortline_sim::Phases;
use shortline_sim::arrivals::{Gaps, Job, LoadProfile};
use shortline_sim::wire::WireModel;

use crate::columns::numbers;
use crate::distribution::Distribution;
use crate::refused;

/// A load lasts a day at most.
const SECONDS_LIMIT: u32 = 86_400;

/// What the link carries beside bodies: the bytes of a segment, and beside each packet and each request.
#[derive(FromPyObject)]
pub struct Wire(u64, u64, u64);

impl Wire {
    /// The costs, if a segment has any bytes.
    pub fn model(&self) -> PyResult<WireModel> {
        let segment_bytes = NonZeroU64::new(self.0);
        Ok(WireModel {
            segment_bytes: segment_bytes
                .ok_or_else(|| refused("segment 0: want bytes above 0, such as 1448"))?,
            per_packet_bytes: self.1,
            per_request_bytes: self.2,
        })
    }
}

/// Where jobs come from.
#[pyclass(frozen, module = "shortline._core")]
pub struct Source(pub scenario::Source);

#[pymethods]
impl Source {
    #[staticmethod]
    fn trace(path: PathBuf, spread_seed: Option<u64>, wire: Wire) -> PyResult<Self> {
        Ok(Self(scenario::Source::Trace(TraceFile {
            path,
            options: trace_options(spread_seed),
            wire: wire.model()?,
        })))
    }

    #[staticmethod]
    fn requests(workload: &str, seconds: u32, wire: Wire) -> PyResult<Self> {
        Ok(Self(scenario::Source::Requests(Requests {
            workload: workload.parse().map_err(refused)?,
            seconds: checked_seconds(seconds)?,
            wire: wire.model()?,
        })))
    }

    #[staticmethod]
    fn steady(
        sizes: &Distribution,
        load: f64,
        jobs: u64,
        arrivals_c2: f64,
        preload: u64,
    ) -> PyResult<Self> {
        LoadProfile::steady(load).map_err(refused)?;
        if jobs == 0 {
            return Err(refused("jobs 0: want at least 1"));
        }
        random(sizes, Traffic::Steady { load, jobs }, arrivals_c2, preload)
    }

    #[staticmethod]
    fn alternating(
        sizes: &Distribution,
        schedule: Schedule,
        seconds: u32,
        arrivals_c2: f64,
        preload: u64,
    ) -> PyResult<Self> {
        let traffic = Traffic::Alternating {
            phases: schedule.phases()?,
            seconds: checked_seconds(seconds)?,
        };
        random(sizes, traffic, arrivals_c2, preload)
    }

    /// Jobs by their arrival in seconds and their size in bytes.
    #[staticmethod]
    fn jobs(py: Python<'_>, arrivals: PyBuffer<f64>, sizes: PyBuffer<f64>) -> PyResult<Self> {
        let arrivals = numbers(py, &arrivals)?;
        let sizes = numbers(py, &sizes)?;
        if arrivals.len() != sizes.len() {
            return Err(refused(format!(
                "{} arrivals and {} sizes: want as many of each",
                arrivals.len(),
                sizes.len()
            )));
        }
        let mut previous_s = 0.0;
        let job = |(index, (&at_s, &bytes)): (usize, (&f64, &f64))| {
            if !(0.0..=SECONDS_MAX).contains(&at_s) {
                return Err(refused(format!(
                    "arrival[{index}] = {at_s}: want seconds from 0 to {SECONDS_MAX}"
                )));
            }
            if at_s < previous_s {
                return Err(refused(format!(
                    "arrival[{index}] = {at_s}: is before the one before it ({previous_s}); sort jobs by arrival"
                )));
            }
            if !(bytes.is_finite() && bytes > 0.0) {
                return Err(refused(format!(
                    "size[{index}] = {bytes}: want finite bytes above 0"
                )));
            }
            previous_s = at_s;
            Ok(Job {
                at_ns: (at_s * 1e9).round() as u64,
                bytes,
            })
        };
        let jobs = arrivals.iter().zip(&sizes).enumerate().map(job);
        Ok(Self(scenario::Source::Jobs(jobs.collect::<PyResult<_>>()?)))
    }
}

/// A load that alternates: a name of paper 000's Table I, or the four numbers.
#[derive(FromPyObject)]
pub enum Schedule {
    /// `w1` to `w10`, or phases as text.
    Name(String),
    /// Seconds of low and of high load, then the two loads.
    Numbers(f64, f64, f64, f64),
}

impl Schedule {
    /// The phases, in seconds.
    pub fn phases(&self) -> PyResult<Phases> {
        match self {
            Self::Name(name) => {
                let workload: Workload = name.parse().map_err(refused)?;
                scenario::phases(&workload).map_err(refused)
            }
            &Self::Numbers(low_s, high_s, low, high) => {
                Phases::new(low_s, high_s, low, high).map_err(refused)
            }
        }
    }
}

fn random(
    sizes: &Distribution,
    traffic: Traffic,
    arrivals_c2: f64,
    preloaded: u64,
) -> PyResult<Source> {
    Ok(Source(scenario::Source::Random(Random {
        sizes: sizes.0.clone(),
        traffic,
        gaps: Gaps::new(arrivals_c2).map_err(refused)?,
        preloaded,
    })))
}

fn checked_seconds(seconds: u32) -> PyResult<u32> {
    match (1..=SECONDS_LIMIT).contains(&seconds) {
        true => Ok(seconds),
        false => Err(refused(format!(
            "seconds {seconds}: want 1 to {SECONDS_LIMIT}"
        ))),
    }
}
