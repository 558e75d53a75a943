//! What is told of each response elsewhere: the access logs, and the spans that a collector gets.
//!
//! A site without a log of its own has that of `[log]`.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shortline_web::trace_context::Sampling;
use shortline_web::{AccessLog, AccessLogs};

use super::options::LogOptions;
use super::sites::SiteSettings;
use shortline_command::CommandError;
use shortline_daemon::access_log::LogWriter;
use shortline_daemon::log_line::LineFormat;
#[cfg(feature = "otel")]
use shortline_daemon::spans::{Both, Spans};

const LOG_LINES_MAX: usize = 8192;
/// The file's name of a site whose responses are not logged.
const OFF: &str = "off";

/// The logs in force.
#[derive(Default)]
pub struct Logs {
    /// All that are open, each once.
    writers: Vec<Arc<LogWriter>>,
    /// The place of the server's own among them.
    main: Option<usize>,
    /// By the site's label. `None`: it is not logged.
    by_site: HashMap<String, Option<usize>>,
    #[cfg(feature = "otel")]
    spans: Option<Arc<Spans>>,
}

/// The files to open.
#[derive(Default)]
struct Files(Vec<(PathBuf, LineFormat)>);

impl Files {
    /// The place of a file, which is opened once for each format.
    fn place(&mut self, path: &Path, format: &LineFormat) -> usize {
        let is_it = |(known, way): &(PathBuf, LineFormat)| known == path && way == format;
        self.0.iter().position(is_it).unwrap_or_else(|| {
            self.0.push((path.to_owned(), format.clone()));
            self.0.len() - 1
        })
    }
}

impl Logs {
    /// Opens what these options and sites name.
    ///
    /// # Errors
    /// [`CommandError::Failure`]: a file cannot be opened, or the exporter cannot be made.
    pub fn open(options: &LogOptions, sites: &[SiteSettings]) -> Result<Self, CommandError> {
        let lines_max = options.lines_max.map_or(LOG_LINES_MAX, NonZeroUsize::get);
        let format = options.format.clone().unwrap_or_default();
        let mut files = Files::default();
        let main = options
            .access
            .as_deref()
            .map(|path| files.place(path, &format));
        let mut by_site = HashMap::new();
        for site in sites {
            if let Some(log) = &site.log {
                let format = log.format.as_ref().unwrap_or(&format);
                let is_on = log.access != Path::new(OFF);
                by_site.insert(
                    site.label(),
                    is_on.then(|| files.place(&log.access, format)),
                );
            }
        }
        let writers = match files.0.is_empty() {
            true => Ok(Vec::new()),
            false => LogWriter::open_all(&files.0, lines_max),
        };
        Ok(Self {
            writers: writers.map_err(CommandError::failure)?,
            main,
            by_site,
            #[cfg(feature = "otel")]
            spans: spans(options)?,
        })
    }

    /// What the server tells of each response.
    pub fn access_logs(&self) -> AccessLogs {
        let by_site = self.by_site.iter();
        AccessLogs {
            main: self.access_log(self.main),
            by_site: by_site
                .map(|(site, place)| (site.clone(), self.access_log(*place)))
                .collect(),
        }
    }

    #[cfg(feature = "otel")]
    fn access_log(&self, place: Option<usize>) -> Option<Arc<dyn AccessLog>> {
        let log = self.lines(place);
        match &self.spans {
            None => log,
            Some(spans) => Some(Arc::new(Both {
                spans: Arc::clone(spans),
                log,
            })),
        }
    }

    #[cfg(not(feature = "otel"))]
    fn access_log(&self, place: Option<usize>) -> Option<Arc<dyn AccessLog>> {
        self.lines(place)
    }

    fn lines(&self, place: Option<usize>) -> Option<Arc<dyn AccessLog>> {
        let writer = self.writers.get(place?)?;
        Some(Arc::clone(writer) as Arc<dyn AccessLog>)
    }

    /// Opens the files anew, once all earlier lines are written.
    pub fn reopen(&self) {
        // One thread writes them all.
        if let Some(writer) = self.writers.first() {
            writer.reopen();
        }
    }

    /// Lines lost.
    pub fn dropped_total(&self) -> u64 {
        self.writers
            .first()
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
