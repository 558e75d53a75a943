//! `shortline model`: what theory expects of a queue, by formula ([`shortline_sim::model`]).
//!
//! Every combination of sizes, load and policy is a result. Times are in mean service times:
//! an empty system takes 1 for the mean job. What is infinite is `null` in JSON.

mod plot;
mod table;

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use shortline_sim::dist::Distribution;
use shortline_sim::model::{Analysis, Form, Queue};

use crate::error::CommandError;

/// Flags of `shortline model`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Sizes of the jobs: exp:MEAN, bp:LOW,HIGH,ALPHA (Bounded Pareto), det:SIZE,
    /// weibull:SHAPE,MEAN, uniform:LOW,HIGH, lognormal-pareto:MU,SIGMA,CUT,HIGH,ALPHA or
    /// surge-001 (paper 001, Table 1); may be given more than once
    #[arg(long, value_name = "D", required = true)]
    dist: Vec<Distribution>,

    /// Loads, above 0 and below 1, separated by commas
    #[arg(
        long,
        value_name = "RHO",
        required = true,
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    load: Vec<f64>,

    /// Policies to compare, separated by commas: srpt, psjf, sjf, las, fair, fifo
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "srpt,fair"
    )]
    policy: Vec<Form>,

    /// Print JSON, times in mean service times
    #[arg(long)]
    json: bool,

    /// Draw an SVG: slowdown by size, or, of several loads, the means by load
    #[arg(long, value_name = "F.svg")]
    plot: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(args: Args) -> Result<(), CommandError> {
    let results = args.results()?;
    if let Some(path) = &args.plot {
        plot::draw(path, &results)?;
    }
    let text = if args.json {
        json(results)?
    } else {
        table::table(&results)
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| CommandError::Failure(format!("standard output: {error}")))
}

/// One entry of the JSON.
#[derive(Debug, Serialize)]
struct ModelResult {
    dist: Distribution,
    load: f64,
    #[serde(flatten)]
    analysis: Analysis,
}

impl Args {
    fn results(&self) -> Result<Vec<ModelResult>, CommandError> {
        let mut results = Vec::new();
        for dist in &self.dist {
            for &load in &self.load {
                let queue = Queue::new(dist.clone(), load).map_err(CommandError::usage)?;
                for &policy in &self.policy {
                    let analysis = queue.solve(policy).map_err(CommandError::usage)?;
                    results.push(ModelResult {
                        dist: dist.clone(),
                        load,
                        analysis: analysis.in_units_of(queue.mean()),
                    });
                }
            }
        }
        Ok(results)
    }
}

fn json(results: Vec<ModelResult>) -> Result<String, CommandError> {
    #[derive(Serialize)]
    struct Results {
        results: Vec<ModelResult>,
    }
    let mut text = serde_json::to_string_pretty(&Results { results })
        .map_err(|error| CommandError::Failure(format!("results as JSON: {error}")))?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests;
