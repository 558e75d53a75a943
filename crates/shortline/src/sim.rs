//! `shortline sim`: the bound, or what the best order could do on a trace's own arrivals.
//!
//! Each request becomes an arrival of as many bytes as the link carries for it
//! ([`WireModel`]); [`fluid`] gives their times in the system under each policy. The table
//! relates every mean to that under `srpt`, the optimum, whether it was asked for or not.

use std::io::Write;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use shortline_load::trace::{Request, Spread, TraceOptions, read_trace};
use shortline_load::workload::{FILES_DEFAULT, Schedule, arrivals, world_cup_like};
use shortline_sched::Policy;
use shortline_sched::units::Rate;
use shortline_sim::wire::WireModel;
use shortline_sim::{Arrival, Summary, fluid};

use crate::error::CommandError;

/// Flags of `shortline sim`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,

    /// How long the workload lasts, in seconds
    #[arg(
        long,
        value_name = "S",
        default_value_t = 100,
        conflicts_with = "trace",
        value_parser = clap::value_parser!(u32).range(1..=86_400)
    )]
    seconds: u32,

    /// Rate of the link, such as 10mbit
    #[arg(long)]
    rate: Rate,

    /// Policies to compare, separated by commas: srpt (the optimum), fair, fifo, sjf, psjf
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "srpt,fair"
    )]
    policy: Vec<Policy>,

    /// Seed of what is random: the workload's arrivals, or where in its second a request
    /// comes whose trace has whole seconds only [default: 1 for a workload; without a seed
    /// the requests of a second are spread evenly over it]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Print JSON, times in seconds
    #[arg(long)]
    json: bool,

    /// Bytes of body in a full packet
    #[arg(long, value_name = "BYTES", default_value_t = WireModel::default().segment_bytes)]
    wire_segment: NonZeroU64,

    /// Bytes the link carries for each packet of a response beside its body
    #[arg(long, value_name = "BYTES", default_value_t = WireModel::default().per_packet_bytes)]
    wire_per_packet: u64,

    /// Bytes the link carries for each request beside its body's packets: handshake,
    /// acknowledgements, head
    #[arg(long, value_name = "BYTES", default_value_t = WireModel::default().per_request_bytes)]
    wire_per_request: u64,
}

/// Where the requests come from.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// Trace of the requests: CSV `seconds,path,bytes`, or World Cup 98 records
    #[arg(long, value_name = "F")]
    trace: Option<PathBuf>,

    /// Requests made up after paper 000, Table I: w1 to w10
    #[arg(long, value_name = "NAME", value_parser = Schedule::by_name)]
    workload: Option<Schedule>,
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(args: Args) -> Result<(), CommandError> {
    let arrivals = args.arrivals()?;
    let simulate = |policy| simulate(&arrivals, args.rate, policy);
    let results = args
        .policy
        .iter()
        .map(|&policy| simulate(policy))
        .collect::<Result<Vec<_>, _>>()?;
    let text = if args.json {
        json(results)?
    } else {
        let optimum = simulate(Policy::Srpt)?;
        table(&arrivals, args.rate, &results, &optimum)
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| CommandError::Failure(format!("standard output: {error}")))
}

impl Args {
    fn arrivals(&self) -> Result<Vec<Arrival>, CommandError> {
        let wire = self.wire();
        let requests = match (&self.source.trace, &self.source.workload) {
            (Some(path), _) => self.read(path)?,
            (None, Some(schedule)) => self.make_up(schedule, &wire)?,
            (None, None) => {
                return Err(CommandError::usage(
                    "either --trace or --workload is needed",
                ));
            }
        };
        let arrivals = requests.iter().map(|request| Arrival {
            at_ns: request.at_ns,
            bytes: wire.wire_bytes(request.bytes),
        });
        Ok(arrivals.collect())
    }

    fn wire(&self) -> WireModel {
        WireModel {
            per_packet_bytes: self.wire_per_packet,
            segment_bytes: self.wire_segment,
            per_request_bytes: self.wire_per_request,
        }
    }

    fn read(&self, path: &Path) -> Result<Vec<Request>, CommandError> {
        let options = TraceOptions {
            spread: self
                .seed
                .map_or(Spread::Even, |seed| Spread::Random { seed }),
            ..TraceOptions::default()
        };
        read_trace(path, &options).map_err(CommandError::failure)
    }

    fn make_up(&self, schedule: &Schedule, wire: &WireModel) -> Result<Vec<Request>, CommandError> {
        let site = world_cup_like(FILES_DEFAULT).map_err(CommandError::failure)?;
        let files = site.files();
        let mean_bytes = files
            .iter()
            .map(|file| wire.wire_bytes(file.bytes) as f64)
            .sum::<f64>()
            / files.len() as f64;
        let bytes_expected =
            schedule.mean_load() * self.rate.bps() as f64 / 8.0 * f64::from(self.seconds);
        let requests_max = TraceOptions::default().requests_max;
        if bytes_expected / mean_bytes > requests_max as f64 {
            return Err(CommandError::Usage(format!(
                "--seconds {}: at {} that is more than {requests_max} requests, the limit",
                self.seconds, self.rate
            )));
        }
        Ok(arrivals(
            schedule,
            self.rate,
            |body_bytes| wire.wire_bytes(body_bytes),
            Duration::from_secs(u64::from(self.seconds)),
            self.seed.unwrap_or(1),
            &site,
        ))
    }
}

/// One line of the table, one entry of the JSON.
#[derive(Debug, Serialize)]
struct PolicyResult {
    policy: Policy,
    #[serde(flatten)]
    summary: Summary,
}

fn simulate(
    arrivals: &[Arrival],
    rate: Rate,
    policy: Policy,
) -> Result<PolicyResult, CommandError> {
    let sojourns_ns = fluid(arrivals, rate.bps(), policy).map_err(CommandError::failure)?;
    let summary = Summary::new(arrivals, rate.bps(), &sojourns_ns)
        .expect("invariant: fluid refuses arrivals that are none");
    Ok(PolicyResult { policy, summary })
}

fn json(results: Vec<PolicyResult>) -> Result<String, CommandError> {
    let mut text = serde_json::to_string_pretty(&Results { results })
        .map_err(|error| CommandError::Failure(format!("results as JSON: {error}")))?;
    text.push('\n');
    Ok(text)
}

#[derive(Debug, Serialize)]
struct Results {
    results: Vec<PolicyResult>,
}

fn table(
    arrivals: &[Arrival],
    rate: Rate,
    results: &[PolicyResult],
    optimum: &PolicyResult,
) -> String {
    let wire_bytes: f64 = arrivals.iter().map(|arrival| arrival.bytes as f64).sum();
    let span_s = arrivals.last().map_or(0, |arrival| arrival.at_ns) as f64 / 1e9;
    let mut text = format!(
        "{} requests in {span_s:.1} s, {:.1} MB on a link of {rate}; times in the system in ms\n\n",
        arrivals.len(),
        wire_bytes / 1e6,
    );
    text += &format!(
        "{:<6} {:>10} {:>9} {:>10} {:>10} {:>10} {:>11} {:>9} {:>9}\n",
        "policy", "mean", "p50", "p99", "p99.9", "longest", "largest 1%", "slowdown", "x optimum"
    );
    for PolicyResult { policy, summary } in results {
        text += &format!(
            "{:<6} {:>10.2} {:>9.2} {:>10.1} {:>10.1} {:>10.1} {:>11.1} {:>9.2} {:>9.2}\n",
            policy,
            summary.sojourn_mean * 1e3,
            summary.sojourn_p50 * 1e3,
            summary.sojourn_p99 * 1e3,
            summary.sojourn_p999 * 1e3,
            summary.sojourn_max * 1e3,
            summary.largest_percent_sojourn_mean * 1e3,
            summary.slowdown_mean,
            summary.sojourn_mean / optimum.summary.sojourn_mean,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;
    use shortline_load::workload::wire_bytes_default;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(flags: &str) -> Result<Args, clap::Error> {
        let words = std::iter::once("sim").chain(flags.split_whitespace());
        Line::try_parse_from(words).map(|line| line.args)
    }

    fn trace(lines: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(lines.as_bytes()).unwrap();
        file
    }

    /// Arrivals of a trace where the link carries only the bodies.
    fn bare(lines: &str) -> Result<Vec<Arrival>, CommandError> {
        let file = trace(lines);
        let flags = format!(
            "--trace {} --rate 8gbit --wire-per-packet 0 --wire-per-request 0",
            file.path().display()
        );
        args(&flags).unwrap().arrivals()
    }

    #[test]
    fn a_known_schedule_gives_its_known_times() {
        // At 8 Mbit/s a byte takes a microsecond: SRPT ends at 45, 10, 20 and 30 ms.
        let arrivals = bare("0,/a,15000\n0,/b,10000\n0.010,/c,10000\n0.020,/d,10000\n").unwrap();
        let rate = Rate::from_bps(8_000_000);
        let result = simulate(&arrivals, rate, Policy::Srpt).unwrap();
        assert!((result.summary.sojourn_mean - 0.01875).abs() < 1e-12);

        let text = json(vec![result]).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["results"][0]["policy"], "srpt");
        assert_eq!(value["results"][0]["sojourn_mean"], 0.01875);
        assert_eq!(value["results"][0]["slowdown_mean"], 1.5);
    }

    #[test]
    fn the_table_relates_every_policy_to_the_optimum() {
        let arrivals = bare("0,/a,20\n0,/b,20\n").unwrap();
        let rate = Rate::from_bps(8_000_000_000);
        let fair = simulate(&arrivals, rate, Policy::Fair).unwrap();
        let optimum = simulate(&arrivals, rate, Policy::Srpt).unwrap();
        let text = table(&arrivals, rate, &[fair], &optimum);
        // Both end at 40 ns, instead of at 20 and 40.
        assert!(text.lines().last().unwrap().ends_with("1.33"), "{text}");
    }

    #[test]
    fn a_workload_counts_the_wire_as_the_generator_does() {
        let args = args("--workload w1 --rate 10mbit --seconds 10").unwrap();
        let arrivals = args.arrivals().unwrap();
        assert!(arrivals.len() > 100);
        for body_bytes in [0, 1, 1448, 1449, 1_000_000] {
            assert_eq!(
                args.wire().wire_bytes(body_bytes),
                wire_bytes_default(body_bytes)
            );
        }
    }

    #[test]
    fn bad_input_is_told_with_its_place() {
        let told = |lines| bare(lines).unwrap_err().to_string();
        assert!(told("").contains("no request"));
        assert!(told("2,/a,1\n1,/b,1\n").contains("line 2"));
        assert!(told("0,/a,one\n").contains("line 1"));

        let too_much = args("--workload w1 --rate 100gbit --seconds 86400").unwrap();
        assert!(
            too_much
                .arrivals()
                .unwrap_err()
                .to_string()
                .contains("--seconds 86400")
        );
        let las = simulate(&bare("0,/a,1\n").unwrap(), Rate::from_bps(1), Policy::Las);
        assert!(las.unwrap_err().to_string().contains("`las`"));
    }

    #[test]
    fn wrong_flags_are_refused() {
        for flags in [
            "--rate 10mbit",
            "--trace t.csv",
            "--trace t.csv --workload w1 --rate 10mbit",
            "--trace t.csv --rate 0mbit",
            "--trace t.csv --rate 10",
            "--trace t.csv --rate 10mbit --policy sprt",
            "--trace t.csv --rate 10mbit --seconds 5",
            "--workload w11 --rate 10mbit",
            "--workload w1 --rate 10mbit --wire-segment 0",
            "--workload w1 --rate 10mbit --load 0.5",
        ] {
            assert!(args(flags).is_err(), "{flags}");
        }
    }
}
