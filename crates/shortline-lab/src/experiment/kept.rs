//! What an experiment kept of a seed, and the bound for its arrivals.
//!
//! A run's device counters say what the link carried: bodies, packet heads, and the rest,
//! which is each request's share of handshakes, acknowledgements and heads. The lowest
//! such share among the servers compared (among those without failures, if there are any)
//! makes the size of every job; with these sizes the very same arrivals are put through
//! the fluid SRPT (the optimum) and the fluid PS at the uplink's rate.

use std::path::Path;

use shortline_load::record::{RequestRecord, read_records};
use shortline_load::trace::{Request, TraceOptions, read_trace};
use shortline_sched::Policy;
use shortline_sim::wire::WireModel;
use shortline_sim::{Arrival, fluid};

use super::plan::{Plan, read_json};
use super::uplink::{Carried, seed_folder};
use crate::LabError;

/// What was kept of a seed.
pub struct Kept {
    /// The arrivals.
    pub requests: Vec<Request>,
    /// The servers, in the order they ran.
    pub runs: Vec<KeptRun>,
}

/// What was kept of a server.
pub struct KeptRun {
    /// Its name.
    pub server: String,
    /// The generator's records.
    pub records: Vec<RequestRecord>,
    /// What the link carried.
    pub carried: Carried,
}

impl Kept {
    /// What was kept of `seed` in the results' folder `out`.
    ///
    /// # Errors
    /// If a kept file is missing or wrong.
    pub fn read(out: &Path, plan: &Plan, seed: u64) -> Result<Self, LabError> {
        let folder = seed_folder(out, seed);
        let trace = folder.join("trace.csv");
        let requests = read_trace(&trace, &TraceOptions::default()).map_err(LabError::workload)?;
        let run = |server: &String| {
            let records =
                read_records(&folder.join(format!("{server}.csv"))).map_err(LabError::workload)?;
            let carried = read_json(&folder.join(format!("{server}.json")))?;
            Ok(KeptRun {
                server: server.clone(),
                records,
                carried,
            })
        };
        let runs = plan
            .servers
            .iter()
            .map(run)
            .collect::<Result<_, LabError>>()?;
        Ok(Self { requests, runs })
    }

    /// The cost of a request that the bound is computed with.
    pub fn lowest_per_request_bytes(&self) -> u64 {
        let without_failures = self
            .runs
            .iter()
            .filter(|run| run.records.iter().all(RequestRecord::ok));
        let lowest = without_failures
            .filter_map(KeptRun::per_request_bytes)
            .min();
        let lowest = lowest.or_else(|| {
            self.runs
                .iter()
                .filter_map(KeptRun::per_request_bytes)
                .min()
        });
        // Without any counters: what is usual.
        lowest.unwrap_or(WireModel::default().per_request_bytes)
    }

    /// The records that a fluid link under `policy` would have left.
    ///
    /// # Errors
    /// If the simulator refuses the arrivals.
    pub fn bound(
        &self,
        plan: &Plan,
        model: WireModel,
        policy: Policy,
    ) -> Result<Vec<RequestRecord>, LabError> {
        let arrivals: Vec<Arrival> = self
            .requests
            .iter()
            .map(|request| Arrival {
                at_ns: request.at_ns,
                bytes: model.wire_bytes(request.bytes),
            })
            .collect();
        let sojourns_ns = fluid(&arrivals, plan.rate.bps(), policy).map_err(LabError::workload)?;
        let record = |(request, sojourn_ns): (&Request, u64)| {
            let (at_s, response_time_s) = (request.at_ns as f64 / 1e9, sojourn_ns as f64 / 1e9);
            RequestRecord::finished(at_s, &request.path, request.bytes, response_time_s)
        };
        Ok(self.requests.iter().zip(sojourns_ns).map(record).collect())
    }
}

impl KeptRun {
    /// Wire bytes of a request beside its body and packets; none if bodies were sent again
    /// and again in vain, so that less was received than the link must have carried.
    pub fn per_request_bytes(&self) -> Option<u64> {
        let bodies: Vec<u64> = self.records.iter().map(|record| record.received).collect();
        let model = WireModel::default().calibrate(&bodies, self.carried.total.bytes);
        model.ok().map(|model| model.per_request_bytes)
    }

    /// Bytes that the link carried while the schedule was in overload.
    pub fn overload_bytes(&self, plan: &Plan) -> f64 {
        let begin_s = self.generator_begin_s();
        let until = |at_s: f64| bytes_until(&self.carried.samples, begin_s + at_s);
        plan.overloads_s
            .iter()
            .map(|(begin_s, end_s)| until(*end_s) - until(*begin_s))
            .sum()
    }

    /// When the schedule began, on the samples' clock: the first bytes were sent a moment
    /// after the first arrival.
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

/// Bytes carried until `at_s`, between two samples on a straight line.
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
    use super::*;

    #[test]
    fn bytes_between_samples_lie_on_a_straight_line() {
        let samples = [(1.0, 100), (2.0, 300), (3.0, 300)];
        assert_eq!(bytes_until(&samples, 0.5), 0.0);
        assert_eq!(bytes_until(&samples, 1.5), 200.0);
        assert_eq!(bytes_until(&samples, 2.0), 300.0);
        assert_eq!(bytes_until(&samples, 9.0), 300.0);
    }
}
