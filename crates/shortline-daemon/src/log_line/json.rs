//! One access log line as a JSON object (RFC 8259):
//!
//! ```text
//! {"time":"2026-11-21T10:00:00.123Z","client":"192.0.2.7","host":"example.org","site":"example.org","method":"GET",
//!  "target":"/a","version":"HTTP/1.1","status":200,"bytes":512,"user_agent":"curl/8","request_id":"9f…","wait_ms":3.0,
//!  "queue_ms":2.0,"send_ms":120.0,"complete":true}
//! ```
//!
//! What is not known is left out. Where a backend was asked there are `backend` and its times: `backend_head_ms` until its
//! response's head and `backend_ms` until its last byte. They are the application's. `queue_ms` is the wait in the uplink's
//! queue, and `send_ms` the sending; while a large response is sent the backend may still be at work on it.
//!
//! A text of a client that is not UTF-8 is read as ISO-8859-1. So each line is valid, and no byte is lost.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use shortline_web::AccessRecord;

use super::text::{decoded, iso_time};
use super::{request_field, response_field};

/// The members in their order.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<&'a str>,
    method: &'a str,
    target: &'a str,
    version: &'a str,
    status: u16,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    referer: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<Cow<'a, str>>,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<&'a str>,
    wait_ms: f64,
    queue_ms: f64,
    send_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connect_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend_head_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_subject: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_fingerprint: Option<&'a str>,
    complete: bool,
}

/// Appends the line of one response, with its line break.
pub fn write_line(line: &mut String, record: &AccessRecord) {
    let backend = record.backend.as_ref();
    let certificate = record.certificate.as_ref();
    let of_backend = Line {
        time: iso_time(record.time),
        client: record.peer.to_string(),
        user: record.user.as_deref().map(decoded),
        host: record.host.as_deref(),
        site: record.site.as_deref(),
        method: &record.method,
        target: &record.target,
        version: record.version,
        status: record.status,
        bytes: record.body_bytes,
        referer: request_field(record, 0).map(decoded),
        user_agent: request_field(record, 1).map(decoded),
        request_id: &record.request_id,
        trace_id: record.trace_id.as_deref(),
        wait_ms: ms(record.wait),
        queue_ms: ms(record.queue),
        send_ms: ms(record.send),
        backend: backend.and_then(|backend| backend.address.as_deref()),
        gate_ms: backend.and_then(|backend| backend.admission).map(ms),
        connect_ms: backend.and_then(|backend| backend.connect).map(ms),
        backend_head_ms: backend.and_then(|backend| backend.head).map(ms),
        backend_ms: backend.and_then(|backend| backend.whole).map(ms),
        encoding: response_field(record, 0).map(decoded),
        tls: record.tls,
        client_subject: certificate.map(|certificate| certificate.subject.as_str()),
        client_fingerprint: certificate.map(|certificate| certificate.fingerprint.as_str()),
        complete: record.complete,
    };
    let text = serde_json::to_string(&of_backend);
    line.push_str(&text.expect("invariant: texts and numbers are JSON"));
    line.push('\n');
}

/// Milliseconds with three places.
fn ms(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::testing::{proxied, record};
    use super::*;

    fn read(record: &AccessRecord) -> Value {
        let mut line = String::new();
        write_line(&mut line, record);
        assert_eq!(line.matches('\n').count(), 1);
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        assert_eq!(
            read(&record()),
            json!({
                "time": "2000-02-29T12:34:56.789Z", "client": "192.0.2.7", "host": "example.org",
                "site": "example.org", "method": "GET", "target": "/a?b", "version": "HTTP/1.1",
                "status": 200, "bytes": 512, "user_agent": "curl/8",
                "request_id": "0123456789abcdef0123456789abcdef",
                "wait_ms": 3.0, "queue_ms": 2.0, "send_ms": 120.0, "complete": true
            })
        );
    }

    #[test]
    fn a_backend_has_its_times() {
        let read = read(&proxied());
        for (member, value) in [
            ("user", json!("aladdin")),
            ("backend", json!("127.0.0.1:9000")),
            ("connect_ms", json!(0.25)),
            ("backend_head_ms", json!(0.95)),
            ("backend_ms", json!(40.0)),
            ("encoding", json!("gzip")),
            ("tls", json!("TLSv1.3")),
            ("client_subject", json!("CN=backup")),
            ("client_fingerprint", json!("00ff")),
            ("referer", json!("https://a.example/")),
            ("trace_id", json!("4bf92f3577b34da6a3ce929d0e0e4736")),
        ] {
            assert_eq!(read[member], value, "{member}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(
            agent in proptest::collection::vec(any::<u8>(), 0..60),
            target in any::<String>(),
        ) {
            let mut record = AccessRecord { target: target.clone(), ..record() };
            record.fields.request[1] = Some(agent.clone());
            let read = read(&record);
            prop_assert_eq!(read["target"].as_str().unwrap(), target);
            let told = read["user_agent"].as_str().unwrap();
            let latin_1: Option<Vec<u8>> = told.chars().map(|char| u8::try_from(char).ok()).collect();
            prop_assert!(told.as_bytes() == agent || latin_1 == Some(agent));
        }
    }
}
