//! What is told of each response elsewhere: the access log, and the spans that a collector gets.

use std::num::NonZeroUsize;
use std::sync::Arc;

use shortline_web::AccessLog;
use shortline_web::trace_context::Sampling;

use super::options::LogOptions;
use shortline_command::CommandError;
use shortline_daemon::access_log::LogWriter;
#[cfg(feature = "otel")]
use shortline_daemon::spans::{Both, Spans};

const LOG_LINES_MAX: usize = 8192;

/// The logs in force.
#[derive(Default)]
pub struct Logs {
    writer: Option<Arc<LogWriter>>,
    #[cfg(feature = "otel")]
    spans: Option<Arc<Spans>>,
}

impl Logs {
    /// Opens what these options name.
    ///
    /// # Errors
    /// [`CommandError::Failure`]: a file cannot be opened, or the exporter cannot be made.
    pub fn open(options: &LogOptions) -> Result<Self, CommandError> {
        let lines_max = options.lines_max.map_or(LOG_LINES_MAX, NonZeroUsize::get);
        let path = options.access.as_deref();
        let format = options.format.clone().unwrap_or_default();
        let writer = path.map(|path| LogWriter::open(path, format, lines_max));
        Ok(Self {
            writer: writer.transpose().map_err(CommandError::failure)?,
            #[cfg(feature = "otel")]
            spans: spans(options)?,
        })
    }

    /// What the server tells of each response. `None`: nobody hears it.
    #[cfg(feature = "otel")]
    pub fn access_log(&self) -> Option<Arc<dyn AccessLog>> {
        let writer = self.lines();
        match &self.spans {
            None => writer,
            Some(spans) => Some(Arc::new(Both {
                spans: Arc::clone(spans),
                log: writer,
            })),
        }
    }

    /// What the server tells of each response. `None`: nobody hears it.
    #[cfg(not(feature = "otel"))]
    pub fn access_log(&self) -> Option<Arc<dyn AccessLog>> {
        self.lines()
    }

    fn lines(&self) -> Option<Arc<dyn AccessLog>> {
        let writer = self.writer.as_ref();
        writer.map(|writer| Arc::clone(writer) as Arc<dyn AccessLog>)
    }

    /// Opens the file anew, once all earlier lines are written.
    pub fn reopen(&self) {
        if let Some(writer) = &self.writer {
            writer.reopen();
        }
    }

    /// Lines lost.
    pub fn dropped_total(&self) -> u64 {
        self.writer
            .as_ref()
            .map_or(0, |writer| writer.dropped_total())
    }
}

/// Which spans are recorded, if any are exported.
pub fn sampling(options: &LogOptions) -> Option<Sampling> {
    let share = options.otlp_sample.unwrap_or_default();
    options.otlp.as_ref().map(|_| share.0)
}

#[cfg(feature = "otel")]
fn spans(options: &LogOptions) -> Result<Option<Arc<Spans>>, CommandError> {
    let spans = options.otlp.as_ref().map(Spans::start).transpose();
    let spans = spans.map_err(|error| CommandError::failure(format!("otlp: {error}")))?;
    Ok(spans.map(Arc::new))
}
