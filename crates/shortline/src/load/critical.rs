//! `shortline load --critical-rate`: the lowest arrival rate at which the load on a server's uplink
//! is 1. It is measured (003, 4.2.3), for sites whose requests have costs that no formula knows.
//!
//! Each rate is tried for `--seconds` (30 by default) with Poisson arrivals of the same seed. It
//! counts as served if 98 % of the requested bytes have come by 2 % of that time after the last
//! request. So the rate found is up to 4 % above the rate at which the link is just full.
//! [`shortline_load::workload::critical_rate`] chooses the rates to try and narrows them to within
//! 2 %. If the generator cannot keep up, its limit is found instead of the server's. The lateness
//! in its summary at a rate near the one found (`--schedule`) shows that.

use std::time::Duration;

use shortline_load::RequestRecord;
use shortline_load::generator::{self, LoadOptions, Target};
use shortline_load::trace::Request;
use shortline_load::workload::{
    CriticalRateError, LoadSchedule, SiteFiles, arrivals_at, critical_rate,
};
use tokio::runtime::Runtime;

use super::source::wire_bytes;
use super::{Args, from_load_error, options};
use shortline_command::CommandError;
use shortline_command::output::print;

/// How long each rate is tried by default.
const LENGTH_USUAL: Duration = Duration::from_secs(30);
/// The first rate tried, in requests per second.
const FROM_PER_S: f64 = 1.0;
/// How closely the rate is found, as a share of it.
const TOLERANCE: f64 = 0.02;
/// The share of the requested bytes that must come.
const SERVED: f64 = 0.98;
/// How much longer than the arrivals they may take, as a share of the arrivals' time.
const DRAIN: f64 = 0.02;

/// Finds the rate and prints it.
pub(super) fn run(args: &Args, target: &Target) -> Result<(), CommandError> {
    let site = args.source.site()?.site();
    let runtime = Runtime::new().map_err(CommandError::failure)?;
    let length = args.source.seconds.unwrap_or(LENGTH_USUAL);
    let rate_per_s = critical_rate(FROM_PER_S, TOLERANCE, |rate_per_s| {
        let requests = requests_at(&site, rate_per_s, length, args.source.seed());
        let served = is_served(&runtime, args, target, requests, length)?;
        let verdict = if served { "served" } else { "too many" };
        tracing::info!(
            "{rate_per_s:.1} requests/s in {} s: {verdict}",
            length.as_secs_f64()
        );
        Ok(served)
    })
    .map_err(|error| match error {
        CriticalRateError::Probe(error) => error,
        other => CommandError::failure(other),
    })?;
    print(&format!(
        "critical rate  {rate_per_s:.1} requests/s, measured\n"
    ))?;
    if let Some(uplink) = args.source.uplink {
        let full_per_s = uplink.bps() as f64 / 8.0 / site.mean_wire_bytes(wire_bytes);
        print(&format!(
            "               {full_per_s:.1} requests/s, of {uplink} by calculation\n"
        ))?;
    }
    Ok(())
}

fn requests_at(site: &SiteFiles, rate_per_s: f64, length: Duration, seed: u64) -> Vec<Request> {
    let always: LoadSchedule = "1".parse().expect("invariant: 1 is a schedule");
    let arrivals = arrivals_at(&always, rate_per_s, length, seed, site);
    arrivals
        .map(|(at_ns, file)| Request {
            at_ns,
            path: file.path.clone(),
            bytes: file.bytes,
        })
        .collect()
}

fn is_served(
    runtime: &Runtime,
    args: &Args,
    target: &Target,
    requests: Vec<Request>,
    length: Duration,
) -> Result<bool, CommandError> {
    if requests.is_empty() {
        return Ok(true);
    }
    let options = LoadOptions {
        progress: false,
        length: Some(length),
        drain: length.mul_f64(DRAIN),
        ..options(args, target.clone(), requests.into())
    };
    let report = runtime
        .block_on(generator::run(options))
        .map_err(from_load_error)?;
    if report.interrupted {
        return Err(CommandError::Failure(
            "interrupted before the rate was found".into(),
        ));
    }
    Ok(is_carried(&report.records))
}

/// Whether nearly all of the requested bytes have come.
fn is_carried(records: &[RequestRecord]) -> bool {
    let bytes = |records: &mut dyn Iterator<Item = &RequestRecord>| -> f64 {
        records.map(|record| wire_bytes(record.size) as f64).sum()
    };
    let asked = bytes(&mut records.iter());
    let carried = bytes(&mut records.iter().filter(|record| record.ok()));
    carried >= SERVED * asked
}

#[cfg(test)]
mod tests {
    use shortline_load::record::Failure;

    use super::*;

    #[test]
    fn a_rate_is_served_if_all_but_two_per_cent_of_the_bytes_came() {
        let record = |size, failure| RequestRecord {
            failure,
            ..RequestRecord::finished(0.0, "/a", size, 0.1)
        };
        let late = Some(Failure::Unfinished);
        assert!(is_carried(&[record(1_000_000, None), record(1_000, late)]));
        assert!(!is_carried(&[record(1_000, None), record(1_000_000, late)]));
    }
}
