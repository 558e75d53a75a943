//! Traces, CSV or World Cup records: never a panic, requests in order within the limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shortline_load::trace::{TraceOptions, parse_trace};

fuzz_target!(|bytes: &[u8]| {
    let options = TraceOptions {
        requests_max: 1000,
        path_bytes_max: 64,
        ..TraceOptions::default()
    };
    match parse_trace(bytes, &options) {
        Ok(requests) => {
            assert!(requests.len() <= options.requests_max);
            assert!(
                requests
                    .windows(2)
                    .all(|pair| pair[0].at_ns <= pair[1].at_ns)
            );
            assert!(requests.iter().all(|request| request.path.starts_with('/')));
        }
        Err(problem) => assert!(!problem.to_string().contains('\n'), "{problem}"),
    }
});
