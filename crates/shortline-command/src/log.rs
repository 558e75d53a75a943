//! The log of every command: what it says while it is at work. A line on standard error is the time, the level,
//! `shortline:` and the words; or an object, where that is asked for.
//!
//! What a command answers to whoever started it is not logged: a refusal is `shortline:` and the words, without a time.

use std::fmt;
use std::io;

use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object a line.
    Json,
}

/// Logs whatever all rooms say, to `out`.
pub fn start<W>(format: LogFormat, out: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt()
        .with_writer(out)
        .with_max_level(Level::INFO)
        .with_ansi(false)
        .with_target(false)
        // If standard error is closed, nobody is left to report it to.
        .log_internal_errors(false);
    // A second log would be a mistake of ours, and the first is as good.
    let _ = match format {
        LogFormat::Text => {
            tracing::subscriber::set_global_default(lines.event_format(Line).finish())
        }
        LogFormat::Json => {
            tracing::subscriber::set_global_default(lines.json().flatten_event(true).finish())
        }
    };
}

/// Logs what a command says that ends by itself, to standard error. What rooms say that only serve is left out: in a lab
/// they run a thousand times.
pub fn start_for_tools(tools: &[&'static str]) {
    let said = tools.iter().map(|room| (*room, LevelFilter::INFO));
    let lines = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(false)
        .log_internal_errors(false)
        .event_format(Line)
        .finish()
        .with(Targets::new().with_targets(said));
    // As above.
    let _ = tracing::subscriber::set_global_default(lines);
}

/// The form of a line.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        about: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut out)?;
        write!(out, " {:>5} shortline: ", event.metadata().level())?;
        about.format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}
