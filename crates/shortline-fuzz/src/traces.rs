//! Traces, CSV, logs or World Cup records: requests in order and within the limits.

use shortline_load::trace::{TraceOptions, parse_trace};

/// A whole trace, in whichever format.
pub fn trace(bytes: &[u8]) {
    let options = TraceOptions {
        requests_max: 1000,
        path_bytes_max: 64,
        ..TraceOptions::default()
    };
    match parse_trace(bytes, &options) {
        Ok(requests) => {
            assert!(requests.len() <= options.requests_max);
            assert!(requests.is_sorted_by_key(|request| request.at_ns));
            assert!(requests.iter().all(|request| request.path.starts_with('/')));
        }
        Err(problem) => crate::assert_one_line(&problem),
    }
}
