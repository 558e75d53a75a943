//! Traces for `load`, as [`shortline_load::trace`] reads them. At the end of a trace,
//! standard error says what was skipped: one line about lines that could not be read, and one about
//! requests of a log that are left out.

use std::path::Path;

use shortline_load::trace::{Request, Trace, TraceError, TraceOptions, stream_trace};

/// The requests of a trace, one at a time.
///
/// # Errors
/// It cannot be opened, or its beginning cannot be read.
pub fn requests(
    path: &Path,
    options: &TraceOptions,
) -> Result<impl Iterator<Item = Result<Request, TraceError>> + use<>, TraceError> {
    let mut trace = stream_trace(path, options)?;
    let next = move || {
        let request = trace.next();
        if request.is_none() {
            print_summary(&trace);
        }
        request
    };
    Ok(std::iter::from_fn(next).fuse())
}

fn print_summary(trace: &Trace) {
    for line in trace.passed_over().told() {
        tracing::warn!("{}: {line}", trace.name().display());
    }
}
