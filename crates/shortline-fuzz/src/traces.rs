//! Traces and logs: CSV, logs or World Cup records, packed or not. Requests must be in order and within the
//! limits. A reader that asks for every line must get all of them, or an error for the first bad
//! one.

use shortline_load::trace::{Request, Requests, SentLog, TraceOptions, TraceProblem, parse_trace};

/// A whole trace, in any format.
pub fn trace(bytes: &[u8]) {
    let options = TraceOptions {
        requests_max: 1000,
        path_bytes_max: 64,
        ..TraceOptions::default()
    };
    sent(bytes);
    let (read, bad) = read(bytes, &options);
    match &read {
        Ok(requests) => {
            assert!(requests.len() <= options.requests_max);
            assert!(requests.is_sorted_by_key(|request| request.at_ns));
            assert!(requests.iter().all(|request| request.path.starts_with('/')));
        }
        Err(problem) => crate::assert_one_line(problem),
    }
    match (parse_trace(bytes, &options), &read) {
        (Ok(all), Ok(requests)) => assert!(bad == 0 && all == *requests),
        (Err(problem), Ok(_)) => {
            assert!(bad > 0);
            crate::assert_one_line(&problem);
        }
        (all, Err(_)) => assert!(all.is_err()),
    }
}

/// A log as `gain` reads it: in whatever order. Nothing but damaged packing ends it.
fn sent(bytes: &[u8]) {
    let Ok(mut log) = SentLog::of_bytes(bytes.to_vec()) else {
        return;
    };
    for sent in log.by_ref() {
        match sent {
            Ok(sent) => assert!(sent.after_ms < 1000),
            Err(error) => crate::assert_one_line(&error),
        }
    }
    for line in log.passed_over().told() {
        crate::assert_one_line(&line);
    }
}

/// The requests that can be read, and how many lines cannot.
fn read(bytes: &[u8], options: &TraceOptions) -> (Result<Vec<Request>, TraceProblem>, usize) {
    let mut requests = match Requests::new(bytes, options) {
        Ok(requests) => requests,
        Err(problem) => return (Err(problem), 0),
    };
    let read = requests.by_ref().collect();
    let passed = requests.passed_over();
    for line in passed.told() {
        crate::assert_one_line(&line);
    }
    (read, passed.bad())
}
