//! `shortline model`: what theory expects of a queue, by formula ([`shortline_sim::model`]).
//!
//! Every combination of sizes, load and policy is a result. Times are in mean service times: in an
//! empty system the mean job takes 1. Infinite values are `null` in JSON. With `--simulate`, the
//! simulator's result for the same queue stands beside each.

mod plot;
mod queues;
mod simulated;
mod table;
mod tails;

use std::path::PathBuf;

use serde::Serialize;
use shortline_load::workload::Schedule;
use shortline_sched::units::Rate;
use shortline_sim::Phases;
use shortline_sim::dist::Distribution;
use shortline_sim::model::{Analysis, Form};

use self::queues::Setting;
use self::simulated::{JOBS_MAX, Simulated};
use crate::sim::phases_of;
use shortline_command::CommandError;
use shortline_command::output::{
    check_one_on_standard_output, check_plot_file, print_beside, results_json,
};

/// Flags of `shortline model`.
#[derive(Debug, clap::Args)]
pub struct Args {
    // The forms of a distribution are listed only once, beside their parser.
    #[arg(long, value_name = "D", help = format!(
        "Sizes of the jobs: {}; may be given more than once [default for a workload: responses \
         like those of the World Cup 98 site]",
        Distribution::FORMS
    ))]
    dist: Vec<Distribution>,

    #[command(flatten)]
    traffic: Traffic,

    /// Rate of the link, such as 10mbit, for a schedule or workload, whose sizes are in bytes
    #[arg(long)]
    rate: Option<Rate>,

    /// Policies to compare, separated by commas: srpt, psjf, sjf, las, fair, fifo; with a schedule
    /// or workload only srpt and fair
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "srpt,fair"
    )]
    policy: Vec<Form>,

    /// Instead of means tell how the tails of fifo and boost fall, for light-tailed sizes: the share of jobs that
    /// take longer than t is about C e^(-g t)
    #[arg(long, requires = "load", conflicts_with_all = ["policy", "plot", "simulate", "rate"])]
    tail: bool,

    /// Print JSON, times in mean service times
    #[arg(long)]
    json: bool,

    /// Draw slowdown by size or, for several loads, the means by load, as SVG or as a page, by the
    /// file's ending. With - the SVG goes to standard output and the table to standard error
    #[arg(long, value_name = "F.svg|F.html")]
    plot: Option<PathBuf>,

    /// Also simulate this many jobs of each queue, and show the results beside the formula's
    #[arg(
        long,
        value_name = "JOBS",
        value_parser = clap::value_parser!(u64).range(1000..=JOBS_MAX)
    )]
    simulate: Option<u64>,

    /// Seed of the simulation
    #[arg(long, value_name = "N", default_value_t = 1, requires = "simulate")]
    seed: u64,
}

/// The traffic: how much work arrives.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Traffic {
    /// Loads, above 0 and below 1, separated by commas
    #[arg(
        long,
        value_name = "RHO",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    load: Vec<f64>,

    /// A load that alternates forever: seconds of low load, seconds of high load, and the two loads
    #[arg(
        long,
        value_name = "LOW_S,HIGH_S,LOW,HIGH",
        requires = "rate",
        allow_hyphen_values = true
    )]
    schedule: Option<Phases>,

    /// The alternating load of paper 000, Table I: w1 to w10
    #[arg(long, value_name = "NAME", value_parser = Schedule::by_name, requires = "rate")]
    workload: Option<Schedule>,
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(args: Args) -> Result<(), CommandError> {
    let plot = args.plot.as_deref();
    check_one_on_standard_output(args.json, &[("--plot", plot)])?;
    plot.map_or(Ok(()), check_plot_file)?;
    if args.tail {
        return print_beside(&[], &tails::told(&args.settings()?, args.json)?);
    }
    let results = args.results()?;
    if let Some(path) = plot {
        plot::draw(path, &results)?;
    }
    let text = if args.json {
        results_json(&results, &[])?
    } else {
        table::table(&results)
    };
    print_beside(&[plot], &text)
}

/// One entry of the JSON.
#[derive(Debug, Serialize)]
struct ModelResult {
    #[serde(flatten)]
    setting: Setting,
    #[serde(flatten)]
    analysis: Analysis,
    /// The simulator's result for the same queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<Simulated>,
}

impl Args {
    fn results(&self) -> Result<Vec<ModelResult>, CommandError> {
        let mut results = Vec::new();
        for setting in self.settings()? {
            let queue = setting.queue()?;
            let solved: Result<Vec<Analysis>, CommandError> = self
                .policy
                .iter()
                .map(|&policy| queue.solve(policy))
                .collect();
            let solved = solved?;
            let mut simulated = match self.simulate {
                Some(jobs) => setting.simulate(&self.policy, jobs, self.seed)?,
                None => Vec::new(),
            }
            .into_iter();
            results.extend(solved.into_iter().map(|analysis| ModelResult {
                setting: setting.clone(),
                analysis: analysis.in_units_of(setting.dist.mean()),
                simulated: simulated.next(),
            }));
        }
        Ok(results)
    }

    /// Every combination of sizes and traffic.
    fn settings(&self) -> Result<Vec<Setting>, CommandError> {
        let dists = match (&self.dist[..], &self.traffic.workload) {
            ([], Some(_)) => vec![queues::world_cup_responses()?],
            ([], None) => {
                let problem = "--dist: missing; want the sizes of the jobs, such as --dist exp:1";
                return Err(CommandError::usage(problem));
            }
            (dists, _) => dists.to_vec(),
        };
        if self.rate.is_some() && !self.traffic.load.is_empty() {
            let problem = "--rate: with --load times are in mean service times; want it with \
                           --schedule or --workload only";
            return Err(CommandError::usage(problem));
        }
        let phases = match (self.traffic.schedule, &self.traffic.workload) {
            (None, Some(schedule)) => Some(phases_of(schedule)?),
            (given, _) => given,
        };
        let alternating = phases.zip(self.rate);
        let settings = dists.iter().flat_map(|dist| match alternating {
            Some((phases, rate)) => vec![Setting::alternating(dist, phases, rate)],
            None => {
                let loads = self.traffic.load.iter();
                loads.map(|&load| Setting::steady(dist, load)).collect()
            }
        });
        Ok(settings.collect())
    }
}

#[cfg(test)]
mod tests;
