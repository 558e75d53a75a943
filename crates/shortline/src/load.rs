//! `shortline load`: requests the files of a trace or of a generated workload from a server and
//! reports response times.
//!
//! The generator, the workloads and the summary are in `shortline-load`. This module has only the
//! flags. The summary goes to standard output, progress to standard error.

mod critical;
mod source;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use shortline_load::generator::{
    self, LoadError, LoadOptions, LoadReport, Part, Protocol, SourceAddress, Target, Trust, Work,
};
use shortline_load::record::write_records_as;
use shortline_load::summary::{KnownLink, Summary};
use shortline_load::workload::SiteName;
use shortline_sched::units::{Rate, Span};

use shortline_command::CommandError;
use shortline_command::output::{check_writable, print, print_beside, write};
use source::{Source, wire_bytes};

/// Flags of `shortline load`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server: `http://HOST[:PORT]` or `https://HOST[:PORT]`
    #[arg(long, value_name = "URL", required_unless_present = "write_site")]
    target: Option<Target>,

    #[command(flatten)]
    source: Source,

    /// Write a line per request: at,path,size,received,ok,tries,lag,connect,first_byte,
    /// response_time,error; with --source also source, with --users user and request. Times are in
    /// seconds from the intended start. With - the lines go to standard output and the summary to
    /// standard error. If the name ends in .zst, the lines are packed with zstd
    #[arg(long, value_name = "FILE.csv")]
    out: Option<PathBuf>,

    /// Measure the arrival rate above which not every request is served, that is a load of 1, for
    /// --surge or --twin. Each rate tried takes --seconds (30) [003, 4.2.3]
    #[arg(
        long,
        conflicts_with_all = ["trace", "users", "schedule", "out", "part", "write_site", "drain"]
    )]
    critical_rate: bool,

    /// Give up a try after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    abort_after: Option<Duration>,

    /// Retry an abandoned request up to this many times
    #[arg(long, value_name = "N", default_value_t = 0, requires = "abort_after")]
    retries: u32,

    /// Requests per connection. An idle connection with requests left is used before a new one is
    /// opened [default: 1, with --http2 and --http3 no limit]
    #[arg(long, value_name = "N")]
    requests_per_connection: Option<NonZeroU32>,

    /// Take responses in these codings (Accept-Encoding), such as `zstd, br, gzip`. Sizes are then those of the coded bodies
    #[arg(long, value_name = "CODINGS")]
    accept_encoding: Option<HeaderValue>,

    /// Speak HTTP/2: by prior knowledge, over TLS by ALPN
    #[arg(long, group = "multiplexed")]
    http2: bool,

    /// Speak HTTP/3, at the UDP port of an https target
    #[arg(long, group = "multiplexed")]
    http3: bool,

    /// HTTP/2 or HTTP/3 connections that share the streams. More are opened only when each has as many
    /// streams as the server allows [default: 6]
    #[arg(long, value_name = "N", requires = "multiplexed")]
    connections: Option<NonZeroUsize>,

    /// Connect from these addresses of this machine, equally or by shares (10.0.0.1=3,10.0.0.2).
    /// They share no connections
    #[arg(
        long = "source",
        value_name = "ADDR[=SHARE],...",
        value_delimiter = ','
    )]
    source_addresses: Vec<SourceAddress>,

    /// Make only part K of N of the requests, or be only that part of the users. N such processes
    /// together make them all
    #[arg(long, value_name = "K/N")]
    part: Option<Part>,

    /// Trust servers whose certificate is signed by a certificate in this PEM file
    #[arg(long, value_name = "FILE", conflicts_with = "tls_insecure")]
    tls_ca: Option<PathBuf>,

    /// Trust any certificate
    #[arg(long)]
    tls_insecure: bool,

    /// The most requests in flight. At the limit they start late, which makes the run void (exit
    /// code 3) [default: 16000, or what `ulimit -n` allows]
    #[arg(long, value_name = "N")]
    in_flight_max: Option<NonZeroUsize>,

    /// Time to wait for outstanding requests after the last one has started; the rest count as
    /// failed
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    drain: Duration,
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line. Bad usage: a flag is wrong. Failure: the trace is wrong, a file
/// cannot be written, the run could not be made, or no request finished. Void: the run is void.
pub fn run(args: Args) -> Result<(), CommandError> {
    if let Some(folder) = &args.source.write_site {
        return write_site(args.source.site()?, folder);
    }
    let target = args
        .target
        .clone()
        .ok_or_else(|| CommandError::usage("no server: want --target URL"))?;
    check_trust(&args, &target)?;
    if args.critical_rate {
        return critical::run(&args, &target);
    }
    let work = args.source.work()?;
    if let Some(file) = &args.out {
        check_writable("--out", file)?;
    }
    let options = options(&args, target, work);
    let runtime = tokio::runtime::Runtime::new().map_err(CommandError::failure)?;
    let report = runtime
        .block_on(generator::run(options))
        .map_err(from_load_error)?;
    if let Some(file) = &args.out {
        write("--out", file, |mut out| {
            write_records_as(file, &mut out, &report.records)
        })?;
    }
    print_summary(&report, args.source.uplink, args.out.as_deref())
}

/// Writes a site's files and reports them.
fn write_site(name: SiteName, folder: &Path) -> Result<(), CommandError> {
    let site = name.site();
    site.write_site(folder).map_err(CommandError::failure)?;
    let bytes: u64 = site.files().iter().map(|file| file.bytes).sum();
    let asked = site.mean_wire_bytes(|body_bytes| body_bytes);
    print(&format!(
        "{name}: {} files, {bytes} bytes, in {}; {asked:.0} bytes asked for in the mean\n",
        site.files().len(),
        folder.display()
    ))
}

/// Refuses trust options for a target without TLS: one of the two is a mistake.
fn check_trust(args: &Args, target: &Target) -> Result<(), CommandError> {
    let flag = match (&args.tls_ca, args.tls_insecure) {
        (Some(_), _) => "--tls-ca",
        (None, true) => "--tls-insecure",
        (None, false) => return Ok(()),
    };
    if target.secure() {
        return Ok(());
    }
    Err(CommandError::Usage(format!(
        "{flag} with --target {target}: want an https target or no such flag"
    )))
}

fn options(args: &Args, target: Target, work: Work) -> LoadOptions {
    let defaults = LoadOptions::new(target, work);
    LoadOptions {
        speed: args.source.speed,
        protocol: match (args.http2, args.http3) {
            (_, true) => Protocol::Http3,
            (true, false) => Protocol::Http2,
            (false, false) => Protocol::Http1,
        },
        trust: match &args.tls_ca {
            Some(file) => Some(Trust::Ca(file.clone())),
            None => args.tls_insecure.then_some(Trust::Anyone),
        },
        accept_encoding: args.accept_encoding.clone(),
        requests_per_connection: args.requests_per_connection,
        connections: args.connections.unwrap_or(defaults.connections),
        sources: args.source_addresses.clone(),
        part: args.part.unwrap_or(Part::WHOLE),
        in_flight_max: args.in_flight_max,
        abort_after: args.abort_after,
        retries: args.retries,
        length: args.source.length(),
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

fn print_summary(
    report: &LoadReport,
    rate: Option<Rate>,
    out: Option<&Path>,
) -> Result<(), CommandError> {
    let link = rate.map(|rate| KnownLink {
        rate,
        wire_bytes: &wire_bytes,
    });
    let Some(summary) = Summary::of(&report.records, link, report.interrupted) else {
        return Err(CommandError::Failure(
            "interrupted before the first request".to_owned(),
        ));
    };
    print_beside(&[out], &summary.to_string())?;
    if summary.finished == 0 {
        return Err(CommandError::Failure(format!(
            "none of {} requests finished",
            summary.requests
        )));
    }
    summary
        .void
        .map_or(Ok(()), |why| Err(CommandError::Void(why)))
}

/// Seconds as a plain number, or a time with its unit.
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
mod tests;
