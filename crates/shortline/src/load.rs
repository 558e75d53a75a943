//! `shortline load`: replays a trace against a server and reports response times.
//!
//! The generator and the summary are `shortline-load`'s; here are only the flags. The
//! summary goes to standard output, progress to standard error.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use shortline_load::generator::{
    self, LoadError, LoadOptions, LoadReport, Protocol, Target, Trust,
};
use shortline_load::record::write_records;
use shortline_load::summary::{KnownLink, Summary};
use shortline_load::trace::{Request, Spread, TraceOptions, read_trace};
use shortline_sched::units::{Rate, Span};
use shortline_sim::wire::WireModel;

use crate::error::CommandError;
use crate::output::check_writable;

const LATER: &str = "Later";

/// Flags of `shortline load`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server: `http://HOST[:PORT]` or `https://HOST[:PORT]`
    #[arg(long, value_name = "URL")]
    target: Target,

    /// What to request and when: CSV lines `seconds,path,bytes` (header optional), a log in
    /// Common or Combined Log Format, or World Cup 98 binary records, told apart by content
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Arrivals come this many times as fast as in the trace
    #[arg(
        long,
        value_name = "X",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    speed: f64,

    /// Leave out requests that would start later than this
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,

    /// Spread the arrivals of a second at random from this seed where the trace has whole
    /// seconds only (logs, World Cup); without it they are spread evenly
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Write a line per request: at,path,size,received,ok,tries,lag,connect,first_byte,
    /// response_time,error; seconds from the intended start
    #[arg(long, value_name = "FILE.csv")]
    out: Option<PathBuf>,

    /// Give up a try after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    abort_after: Option<Duration>,

    /// Try a given-up request again up to this many times
    #[arg(long, value_name = "N", default_value_t = 0, requires = "abort_after")]
    retries: u32,

    /// Requests a connection serves; an idle one with uses left is taken before a new one is
    /// opened [default: 1, with --http2 no limit]
    #[arg(long, value_name = "N")]
    requests_per_connection: Option<NonZeroU32>,

    /// Speak HTTP/2: by prior knowledge, over TLS by ALPN
    #[arg(long)]
    http2: bool,

    /// HTTP/2 connections that share the streams; more are opened only when all have as many
    /// as the server allows [default: 6]
    #[arg(long, value_name = "N", requires = "http2")]
    connections: Option<NonZeroUsize>,

    /// Trust servers whose certificate is signed by one in this PEM file
    #[arg(long, value_name = "FILE", conflicts_with = "tls_insecure")]
    tls_ca: Option<PathBuf>,

    /// Trust any certificate
    #[arg(long)]
    tls_insecure: bool,

    /// Requests in flight at most; at the limit they start late, which makes the run void
    /// [default: 16000, or what `ulimit -n` allows]
    #[arg(long, value_name = "N")]
    in_flight_max: Option<NonZeroUsize>,

    /// After the last start wait this long for what is outstanding; the rest counts as failed
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    drain: Duration,

    /// The uplink's rate, for the slowdown: response time over wire time at this rate.
    /// Without it over the least time measured for that size or larger
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,

    /// Open loop: requests leave whatever the server does (what this release always does)
    #[arg(long)]
    open: bool,

    #[arg(long, hide = true, help_heading = LATER)]
    surge: bool,

    #[arg(long, hide = true, help_heading = LATER, value_name = "S")]
    schedule: Option<String>,

    #[arg(long, hide = true, help_heading = LATER, value_name = "N")]
    users: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line: bad usage where a flag is wrong, failure where the trace is or a
/// file cannot be written, the run could not be made or not one request finished.
pub fn run(args: Args) -> Result<(), CommandError> {
    let requests = requests(&args)?;
    check_trust(&args)?;
    if let Some(file) = &args.out {
        check_writable("--out", file)?;
    }
    let options = options(&args, requests);
    let runtime = tokio::runtime::Runtime::new().map_err(CommandError::failure)?;
    let report = runtime
        .block_on(generator::run(options))
        .map_err(from_load_error)?;
    if let Some(file) = &args.out {
        write_records(file, &report.records).map_err(CommandError::failure)?;
    }
    print_summary(&report, args.rate)
}

fn requests(args: &Args) -> Result<Vec<Request>, CommandError> {
    let later = [
        ("--surge", args.surge),
        ("--schedule", args.schedule.is_some()),
        ("--users", args.users.is_some()),
    ];
    if let Some((flag, _)) = later.iter().find(|(_, given)| *given) {
        return Err(CommandError::Usage(format!(
            "`{flag}` comes in a later release; this one replays a trace: --trace FILE"
        )));
    }
    let Some(trace) = &args.trace else {
        return Err(CommandError::Usage(
            "no workload: want --trace FILE".to_owned(),
        ));
    };
    let options = TraceOptions {
        spread: args
            .seed
            .map_or(Spread::Even, |seed| Spread::Random { seed }),
        ..TraceOptions::default()
    };
    read_trace(trace, &options).map_err(CommandError::failure)
}

/// Whom to trust says nothing about a target without TLS: one of the two is a mistake.
fn check_trust(args: &Args) -> Result<(), CommandError> {
    let flag = match (&args.tls_ca, args.tls_insecure) {
        (Some(_), _) => "--tls-ca",
        (None, true) => "--tls-insecure",
        (None, false) => return Ok(()),
    };
    if args.target.secure() {
        return Ok(());
    }
    Err(CommandError::Usage(format!(
        "{flag} with --target {}: want an https target or no such flag",
        args.target
    )))
}

fn options(args: &Args, requests: Vec<Request>) -> LoadOptions {
    let defaults = LoadOptions::new(args.target.clone(), requests);
    LoadOptions {
        speed: args.speed,
        protocol: if args.http2 {
            Protocol::Http2
        } else {
            Protocol::Http1
        },
        trust: match &args.tls_ca {
            Some(file) => Some(Trust::Ca(file.clone())),
            None => args.tls_insecure.then_some(Trust::Anyone),
        },
        requests_per_connection: args.requests_per_connection,
        connections: args.connections.unwrap_or(defaults.connections),
        in_flight_max: args.in_flight_max,
        abort_after: args.abort_after,
        retries: args.retries,
        length: args.seconds,
        drain: args.drain,
        progress: true,
        ..defaults
    }
}

fn from_load_error(error: LoadError) -> CommandError {
    match error {
        LoadError::Timer(_) | LoadError::Signal(_) | LoadError::Resolve { .. } => {
            CommandError::failure(error)
        }
        _ => CommandError::usage(error),
    }
}

fn print_summary(report: &LoadReport, rate: Option<Rate>) -> Result<(), CommandError> {
    let wire_bytes = |body_bytes| WireModel::default().wire_bytes(body_bytes);
    let link = rate.map(|rate| KnownLink {
        rate,
        wire_bytes: &wire_bytes,
    });
    let Some(summary) = Summary::of(&report.records, link, report.interrupted) else {
        return Err(CommandError::Failure(
            "interrupted before the first request".to_owned(),
        ));
    };
    print!("{summary}");
    if summary.finished == 0 {
        return Err(CommandError::Failure(format!(
            "none of {} requests finished",
            summary.requests
        )));
    }
    Ok(())
}

/// Seconds as a plain number or a time with its unit.
fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "want seconds above 0 such as `30`, or a time such as `500ms`".to_owned();
    let plain = text.parse::<f64>().ok();
    let duration = match plain {
        Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?,
        None => text.parse::<Span>().map_err(|_| wrong())?.duration(),
    };
    if duration.is_zero() {
        return Err(wrong());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(line: &str) -> Result<Args, clap::Error> {
        let words = std::iter::once("load").chain(line.split_whitespace());
        Command::try_parse_from(words).map(|command| command.args)
    }

    #[test]
    fn seconds_read_as_a_number_or_a_time() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(seconds("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "NaN", "inf", "5 parsecs"] {
            assert!(seconds(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn flags_become_options() {
        let line = "--target https://[::1]:8443 --trace t --http2 --connections 3 --speed 2 \
                    --requests-per-connection 5 --abort-after 7 --retries 3 --tls-insecure";
        let options = options(&parsed(line).unwrap(), Vec::new());
        assert_eq!(options.protocol, Protocol::Http2);
        assert_eq!(options.connections.get(), 3);
        assert_eq!(options.requests_per_connection.unwrap().get(), 5);
        assert_eq!(options.abort_after, Some(Duration::from_secs(7)));
        assert_eq!((options.retries, options.speed), (3, 2.0));
        assert_eq!(options.trust, Some(Trust::Anyone));
        assert_eq!(options.drain, Duration::from_secs(60));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for line in [
            "--trace t",
            "--target ftp://x --trace t",
            "--target http://x --trace t --retries 2",
            "--target http://x --trace t --connections 2",
            "--target http://x --trace t --requests-per-connection 0",
            "--target http://x --trace t --tls-insecure --tls-ca f",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn trust_without_tls_is_refused() {
        let args = parsed("--target http://x --trace t --tls-insecure").unwrap();
        assert_eq!(
            check_trust(&args).unwrap_err().to_string(),
            "--tls-insecure with --target http://x: want an https target or no such flag"
        );
        let args = parsed("--target https://x --trace t --tls-insecure").unwrap();
        assert!(check_trust(&args).is_ok());
    }

    #[test]
    fn what_comes_later_is_named() {
        for flag in ["--surge", "--schedule s", "--users 5"] {
            let args = parsed(&format!("--target http://x {flag}")).unwrap();
            let error = requests(&args).unwrap_err().to_string();
            assert!(error.contains("comes in a later release"), "{error}");
        }
        let args = parsed("--target http://x").unwrap();
        let error = requests(&args).unwrap_err().to_string();
        assert_eq!(error, "no workload: want --trace FILE");
    }
}
