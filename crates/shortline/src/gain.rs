//! `shortline gain`: what another order would have given the visitors in a site's own log, or those who ask a database.

use std::fs;
use std::io::{IsTerminal, stderr};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use shortline_command::CommandError;
use shortline_command::output::{
    check_one_on_standard_output, check_writable, print_beside, results_json, write,
};
use shortline_gain::live::{LENGTH_S, LiveError};
use shortline_gain::{
    Content, DatabaseGain, Gain, GainError, Mix, Past, Reading, Server, Statements,
};
use shortline_load::trace::LogInput;
use shortline_sched::units::{Rate, Span};
use shortline_sim::wire::WireModel;

/// Flags of `shortline gain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Access logs, in any order: Common or Combined Log Format, JSON of Caddy, nginx or Shortline, World Cup 98 records. Or a
    /// database's: PostgreSQL's log (stderr, CSV or JSON), MySQL's or MariaDB's slow query log, rows of pg_stat_statements. Each
    /// optionally packed with gzip or zstd. - is standard input. Lines that cannot be read are skipped and counted
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    /// Your uplink's rate, such as 100mbit [default: what the busiest hour would just fill]
    #[arg(long, value_name = "RATE")]
    uplink: Option<Rate>,

    /// How many statements your database works on at once: its processors [default: what the busiest hour would just keep busy]
    #[arg(long, value_name = "N")]
    processors: Option<NonZeroUsize>,

    /// Write the report as a page. With - it goes to standard output and the words to standard error
    #[arg(long, value_name = "F.html")]
    html: Option<PathBuf>,

    /// Replay the busiest 60s, or so, for real, and say how far the prediction is from it: on loopback, with servers of our own, once
    /// for each of the three orders; 1s to 300s
    #[arg(long, value_name = "TIME", value_parser = length)]
    live: Option<Duration>,

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
    let inputs = args.logs.iter().map(|path| LogInput::open(path));
    let mut inputs: Vec<LogInput> = inputs
        .collect::<Result<_, _>>()
        .map_err(CommandError::failure)?;
    let progress = Progress::new(&args.logs);
    let report = match content(&mut inputs)? {
        Content::Responses => Report::Site(Box::new(site(&args, inputs, &progress)?)),
        of_database => {
            refuse_options_of_a_link(&args)?;
            match of_database {
                Content::Mix => Report::Mix(mix(inputs)?),
                _ => Report::Database(Box::new(database(&args, inputs, &progress)?)),
            }
        }
    };
    if let Some(path) = &args.html {
        let page = report.page().map_err(told)?;
        write("--html", path, |out| out.write_all(page.as_bytes()))?;
    }
    let text = report.text(args.json)?;
    print_beside(&[args.html.as_deref()], &text)
}

/// What came out.
enum Report {
    Site(Box<Gain>),
    Database(Box<DatabaseGain>),
    Mix(Mix),
}

impl Report {
    fn page(&self) -> Result<String, GainError> {
        match self {
            Self::Site(gain) => gain.page(),
            Self::Database(gain) => gain.page(),
            Self::Mix(mix) => Ok(mix.page()),
        }
    }

    fn text(&self, json: bool) -> Result<String, CommandError> {
        match self {
            Self::Site(gain) if json => results_json(&[gain], &[]),
            Self::Database(gain) if json => results_json(&[gain], &[]),
            Self::Mix(mix) if json => results_json(&[mix], &[]),
            Self::Site(gain) => Ok(gain.words()),
            Self::Database(gain) => Ok(gain.words()),
            Self::Mix(mix) => Ok(mix.words()),
        }
    }
}

/// What all logs are of.
fn content(inputs: &mut [LogInput]) -> Result<Content, CommandError> {
    let mut first: Option<(Content, String)> = None;
    for input in inputs {
        let (content, name) = (Content::of(input), input.name().display().to_string());
        match &first {
            None => first = Some((content, name)),
            Some((of_first, named)) if *of_first != content => {
                let about = |content: &Content| match content {
                    Content::Responses => "a web server's log",
                    Content::Statements => "a database's log",
                    Content::Mix => "a table of pg_stat_statements",
                };
                return Err(CommandError::Usage(format!(
                    "{named} is {}, {name} {}: give those of one kind at a time",
                    about(of_first),
                    about(&content)
                )));
            }
            Some(_) => {}
        }
    }
    Ok(first.map_or(Content::Responses, |(content, _)| content))
}

fn site(args: &Args, inputs: Vec<LogInput>, progress: &Progress) -> Result<Gain, CommandError> {
    if args.processors.is_some() {
        return Err(CommandError::Usage(
            "--processors is for a database's log: give --uplink for a web server's".to_owned(),
        ));
    }
    let wire = WireModel {
        per_request_bytes: args.wire_per_request,
        segment_bytes: args.wire_segment,
        ..WireModel::default()
    };
    let past = Past::read(inputs, wire, |told| progress.show(told, "responses"));
    progress.end();
    let past = past.map_err(told)?;
    let mut gain = past.gain(args.uplink).map_err(told)?;
    if let Some(length) = args.live {
        let is_terminal = stderr().is_terminal();
        let begun = |server: Server| {
            if is_terminal {
                tracing::info!("replaying {} under {server}", Span::from_duration(length));
            }
        };
        let rate = Rate::from_bps(gain.rate_bps);
        gain.live = Some(
            past.replay(rate, length, begun, is_terminal)
                .map_err(told)?,
        );
    }
    Ok(gain)
}

fn database(
    args: &Args,
    inputs: Vec<LogInput>,
    progress: &Progress,
) -> Result<DatabaseGain, CommandError> {
    let read = Statements::read(inputs, |told| progress.show(told, "statements"));
    progress.end();
    let gain = read.and_then(|statements| statements.gain(args.processors));
    gain.map_err(told)
}

/// Two tables would count what was before the first twice.
fn mix(mut inputs: Vec<LogInput>) -> Result<Mix, CommandError> {
    match (inputs.pop(), inputs.pop()) {
        (Some(one), None) => Mix::read(one).map_err(told),
        _ => Err(CommandError::Usage(
            "several tables of pg_stat_statements: give one at a time".to_owned(),
        )),
    }
}

/// A database has no uplink.
fn refuse_options_of_a_link(args: &Args) -> Result<(), CommandError> {
    let given = [
        ("--uplink", args.uplink.is_some()),
        ("--live", args.live.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(CommandError::Usage(format!(
            "{option} is for a web server's log: give --processors for a database's"
        ))),
        None => Ok(()),
    }
}

/// A length that can be replayed.
fn length(text: &str) -> Result<Duration, String> {
    let length = text.parse::<Span>().ok().map(Span::duration);
    let length = length.filter(|length| LENGTH_S.contains(&length.as_secs()));
    length.ok_or_else(|| {
        format!(
            "want a time of {} s to {} s, such as 60s",
            LENGTH_S.start(),
            LENGTH_S.end()
        )
    })
}

fn told(error: GainError) -> CommandError {
    match error {
        GainError::TooSlow { .. } | GainError::Live(LiveError::Rate { .. }) => {
            CommandError::usage(error)
        }
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

    fn show(&self, told: Reading, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.before[told.log] + told.read_bytes);
            bar.set_message(format!("{} {what}", told.responses));
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
