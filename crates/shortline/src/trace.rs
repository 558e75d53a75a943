//! Traces for `sim` and `load`, as [`shortline_load::trace`] reads them. At a trace's end standard
//! error says what of it was passed over: a line of lines that could not be read, a line of
//! requests of a log that are left out.

use std::path::Path;

use shortline_load::trace::{Request, Trace, TraceError, TraceOptions, stream_trace};

use shortline_command::output::note;

/// The requests of a trace, one at a time.
///
/// # Errors
/// If it cannot be opened or its beginning not be read.
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
        note(&format!("{}: {line}", trace.name().display()));
    }
}
