//! The formats of the access log, what lines of them come to, and the field that names a trace.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, SystemTime};

use shortline_daemon::log_line::LineFormat;
use shortline_web::trace_context::TraceParent;
use shortline_web::{AccessRecord, FieldValues};

/// A format, and after a line break what a client sends. Whatever both are, each response is one line, and what the client
/// sends ends no quoted field.
pub fn format(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == b'\n');
    let (format, sent) = bytes.split_at(at.unwrap_or(bytes.len()));
    let Ok(format) = std::str::from_utf8(format) else {
        return;
    };
    let format: LineFormat = match format.parse() {
        Ok(format) => format,
        Err(error) => return crate::assert_one_line(&error),
    };
    let sent = sent.get(1..).unwrap_or_default();
    let written = |sent: &[u8]| {
        let mut line = String::new();
        format.write_line(&mut line, &record(&format, sent));
        line
    };
    let (line, plain) = (written(sent), written(b"x"));
    assert_eq!(line.matches('\n').count(), 1);
    assert!(line.ends_with('\n'));
    if let LineFormat::Combined = format {
        assert_eq!(line.matches('"').count(), plain.matches('"').count());
    }
    if let LineFormat::Json = format {
        let request = shortline_load::trace::parse_trace(line.as_bytes(), &Default::default());
        if let Ok(requests) = request {
            assert_eq!(requests.len(), 1);
        }
    }
}

fn record(format: &LineFormat, sent: &[u8]) -> AccessRecord {
    let fields = format.fields();
    let values = |count: usize| vec![Some(sent.to_vec()); count];
    let text = String::from_utf8_lossy(sent).into_owned();
    AccessRecord {
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        user: Some(sent.to_vec()),
        host: Some(text.clone()),
        site: None,
        method: "GET".to_owned(),
        target: text.clone(),
        version: "HTTP/1.1",
        certificate: None,
        tls: None,
        request_id: text,
        trace_id: None,
        span: None,
        status: 200,
        body_bytes: 0,
        fields: FieldValues {
            request: values(fields.request.len()),
            response: values(fields.response.len()),
        },
        wait: Duration::ZERO,
        queue: Duration::ZERO,
        send: Duration::ZERO,
        backend: None,
        time: SystemTime::UNIX_EPOCH,
        complete: true,
    }
}

/// A value of `traceparent`. A valid one is written as one that is the same.
pub fn trace_parent(bytes: &[u8]) {
    if let Some(read) = TraceParent::read(bytes) {
        let written = read.field();
        assert_eq!(TraceParent::read(written.as_bytes()), Some(read));
        assert_eq!(written.as_bytes()[3..], bytes[3..55]);
    }
}
