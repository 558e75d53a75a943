//! `shortline gain`: what another order would have given the visitors in a site's own log.

use std::fs;
use std::io::{IsTerminal, stderr};
use std::num::NonZeroU64;
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use shortline_command::CommandError;
use shortline_command::output::{
    check_one_on_standard_output, check_writable, print_beside, results_json, write,
};
use shortline_gain::{GainError, Past, Reading};
use shortline_sched::units::Rate;
use shortline_sim::wire::WireModel;

/// Flags of `shortline gain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Access logs, in any order: Common or Combined Log Format, JSON of Caddy, nginx or Shortline, World Cup 98 records; each
    /// optionally packed with gzip or zstd. - is standard input. Lines that cannot be read are skipped and counted
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    /// Your uplink's rate, such as 100mbit [default: what the busiest hour would just fill]
    #[arg(long, value_name = "RATE")]
    uplink: Option<Rate>,

    /// Write the report as a page. With - it goes to standard output and the words to standard error
    #[arg(long, value_name = "F.html")]
    html: Option<PathBuf>,

    /// Print JSON, times in seconds
    #[arg(long)]
    json: bool,

    /// Bytes the link carries for each request beside its body's packets: handshake, acknowledgements, head. About 200 where
    /// connections are kept
    #[arg(long, value_name = "BYTES", default_value_t = WireModel::default().per_request_bytes)]
    wire_per_request: u64,

    /// Bytes of body in a full packet
    #[arg(long, value_name = "BYTES", default_value_t = WireModel::default().segment_bytes)]
    wire_segment: NonZeroU64,
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(args: Args) -> Result<(), CommandError> {
    check_one_on_standard_output(args.json, &[("--html", args.html.as_deref())])?;
    if let Some(path) = &args.html {
        check_writable("--html", path)?;
    }
    let wire = WireModel {
        per_request_bytes: args.wire_per_request,
        segment_bytes: args.wire_segment,
        ..WireModel::default()
    };
    let progress = Progress::new(&args.logs);
    let past = Past::read(&args.logs, wire, |told| progress.show(told));
    progress.end();
    let gain = past.and_then(|past| past.gain(args.uplink)).map_err(told)?;
    if let Some(path) = &args.html {
        let page = gain.page().map_err(CommandError::failure)?;
        write("--html", path, |out| out.write_all(page.as_bytes()))?;
    }
    let text = if args.json {
        results_json(&[&gain], &[])?
    } else {
        gain.words()
    };
    print_beside(&[args.html.as_deref()], &text)
}

fn told(error: GainError) -> CommandError {
    match error {
        GainError::TooSlow { .. } => CommandError::usage(error),
        _ => CommandError::failure(error),
    }
}

/// A bar on a terminal; nothing elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    /// The bytes of the logs before each.
    before: Vec<u64>,
}

impl Progress {
    fn new(logs: &[PathBuf]) -> Self {
        let mut sum = 0;
        let before = logs.iter().map(|log| {
            let before = sum;
            sum += fs::metadata(log).map_or(0, |about| about.len());
            before
        });
        let before = before.collect();
        let bar = stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{wide_bar} {percent} %  {msg}")
                .expect("invariant: the template is right");
            ProgressBar::new(sum).with_style(style)
        });
        Self { bar, before }
    }

    fn show(&self, told: Reading) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.before[told.log] + told.read_bytes);
            bar.set_message(format!("{} responses", told.responses));
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
