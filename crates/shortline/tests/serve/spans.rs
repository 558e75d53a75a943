//! Spans for an OpenTelemetry collector (feature `otel`): what arrives at one, read from the protobuf itself, and what a real one
//! makes of it (`scripts/otelcol/build`).

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;
use shortline_base::port::free_port;

use crate::client::{get, request};
use crate::process::{PATIENCE, Server, Site, wait_for};
use crate::routes::application;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

/// A field of a message: its number and its bytes, or its number alone as eight bytes.
type Field = (u64, Vec<u8>);

/// The fields of a protobuf message (encoding: protobuf.dev/programming-guides/encoding).
fn fields(mut bytes: &[u8]) -> Vec<Field> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => varint(&mut bytes).to_le_bytes().to_vec(),
            1 => take(&mut bytes, 8),
            2 => {
                let length = varint(&mut bytes);
                take(&mut bytes, length as usize)
            }
            5 => take(&mut bytes, 4),
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn take(bytes: &mut &[u8], length: usize) -> Vec<u8> {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken.to_vec()
}

/// All that is at this path of field numbers.
fn at(message: &[u8], path: &[u64]) -> Vec<Vec<u8>> {
    let Some((number, rest)) = path.split_first() else {
        return vec![message.to_vec()];
    };
    let inner = fields(message).into_iter();
    let inner = inner.filter(|(known, _)| known == number);
    inner.flat_map(|(_, value)| at(&value, rest)).collect()
}

fn text(message: &[u8], path: &[u64]) -> String {
    let found = at(message, path);
    String::from_utf8(found.first().cloned().unwrap_or_default()).unwrap()
}

fn hex(message: &[u8], number: u64) -> String {
    let found = at(message, &[number]);
    let bytes = found.first().cloned().unwrap_or_default();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The attributes of a span or a resource, as text.
fn attributes(message: &[u8], number: u64) -> BTreeMap<String, String> {
    let of = |attribute: Vec<u8>| {
        let value = fields(&at(&attribute, &[2])[0]).remove(0);
        let value = match value {
            (1, text) => String::from_utf8(text).unwrap(),
            (2 | 3, whole) => i64::from_le_bytes(whole.try_into().unwrap()).to_string(),
            (4, double) => f64::from_le_bytes(double.try_into().unwrap()).to_string(),
            (other, _) => panic!("a value of kind {other}"),
        };
        (text(&attribute, &[1]), value)
    };
    at(message, &[number]).into_iter().map(of).collect()
}

/// A collector: what is posted to it, by path.
fn collector() -> (SocketAddr, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, posted) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            std::thread::spawn(move || {
                while let Some(request) = read_request(&mut stream) {
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
                    let _ = stream.write_all(answer);
                    let _ = sender.send(request);
                }
            });
        }
    });
    (address, posted)
}

fn read_request(stream: &mut impl Read) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some((head.split(' ').nth(1).unwrap().to_owned(), body))
}

/// The collector's own program. It ends with the test.
struct RealCollector(Child);

impl RealCollector {
    /// Starts one that writes what it gets to `spans.json` beside the site. `None`: it is not built, and why the test is skipped is
    /// told.
    fn start(site: &Site) -> Option<(Self, SocketAddr)> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/otelcol");
        if !program.exists() {
            println!(
                "skipped: no OpenTelemetry collector; scripts/otelcol/build builds it with go"
            );
            return None;
        }
        let address = SocketAddr::from(([127, 0, 0, 1], free_port().unwrap()));
        let config = site.beside("otelcol.yaml");
        let text = format!(
            "receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: {address}\n\
             exporters:\n  file:\n    path: {}\n\
             service:\n  telemetry:\n    metrics:\n      level: none\n\
             \x20 pipelines:\n    traces:\n      receivers: [otlp]\n      exporters: [file]\n",
            site.beside("spans.json").display()
        );
        std::fs::write(&config, text).unwrap();
        let child = Command::new(program)
            .arg(format!("--config=file:{}", config.display()))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Self(child);
        wait_for("the collector", || TcpStream::connect(address).ok());
        Some((started, address))
    }
}

impl Drop for RealCollector {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The value of an attribute in OTLP's JSON.
fn attribute<'a>(of: &'a Value, name: &str) -> &'a Value {
    let all = of["attributes"].as_array().unwrap();
    let found = all.iter().find(|one| one["key"] == name);
    &found.unwrap_or_else(|| panic!("no {name} in {of}"))["value"]
}

#[test]
fn a_real_collector_reads_the_spans() {
    let site = Site::new();
    let Some((_collector, address)) = RealCollector::start(&site) else {
        return;
    };
    let server = start(&site, address, &["--otlp-sample", "1"]);
    let traced = format!("traceparent: {PARENT}\r\n");
    assert_eq!(
        request(server.address(), "GET", "/app/echo?q=1", &traced).status,
        200
    );
    let written = wait_for("the collector's file", || {
        let text = std::fs::read_to_string(site.beside("spans.json")).ok()?;
        serde_json::from_str::<Value>(text.lines().next()?).ok()
    });
    let resource = &written["resourceSpans"][0];
    let service = attribute(&resource["resource"], "service.name");
    assert_eq!(service["stringValue"], "shortline");
    let span = &resource["scopeSpans"][0]["spans"][0];
    assert_eq!(span["name"], "GET");
    assert_eq!(span["traceId"], PARENT[3..35]);
    assert_eq!(span["parentSpanId"], PARENT[36..52]);
    assert_eq!(attribute(span, "url.path")["stringValue"], "/app/echo");
    let status = &attribute(span, "http.response.status_code")["intValue"];
    assert_eq!(status.as_str(), Some("200"), "{status}");
    let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
    assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
}

fn start(site: &Site, collector: SocketAddr, flags: &[&str]) -> Server {
    let file = site.beside("shortline.toml");
    let text = format!(
        "[[route]]\npath = \"/app\"\nupstream = [\"{}\"]\n[log]\notlp = \"http://{collector}\"\n",
        application()
    );
    std::fs::write(&file, text).unwrap();
    let common = ["--config", file.to_str().unwrap()];
    Server::start(site, &[&common[..], flags].concat())
}

#[test]
fn a_span_stands_between_the_client_and_the_backend() {
    let site = Site::new();
    let (address, posted) = collector();
    let server = start(&site, address, &["--otlp-sample", "1"]);
    let traced = format!("traceparent: {PARENT}\r\ntracestate: a=1\r\n");
    let told = request(server.address(), "GET", "/app/echo?q=1", &traced);
    let told = String::from_utf8(told.body).unwrap();
    let forwarded = told
        .lines()
        .find_map(|line| line.strip_prefix("traceparent: "))
        .unwrap();
    assert_eq!(forwarded[..36], PARENT[..36]);
    assert!(forwarded.ends_with("-01"), "{forwarded}");

    let (path, body) = posted.recv_timeout(PATIENCE).unwrap();
    assert_eq!(path, "/v1/traces");
    let resource = &at(&body, &[1, 1])[0];
    assert_eq!(attributes(resource, 1)["service.name"], "shortline");
    let span = &at(&body, &[1, 2, 2])[0];
    assert_eq!(hex(span, 1), PARENT[3..35]);
    assert_eq!(hex(span, 2), forwarded[36..52]);
    assert_eq!(hex(span, 4), PARENT[36..52]);
    assert_eq!(text(span, &[5]), "GET");
    let attributes = attributes(span, 9);
    for (name, value) in [
        ("http.request.method", "GET"),
        ("url.path", "/app/echo"),
        ("url.query", "q=1"),
        ("http.response.status_code", "200"),
        ("client.address", "127.0.0.1"),
        ("network.protocol.version", "1.1"),
    ] {
        assert_eq!(attributes[name], value, "{attributes:?}");
    }
    assert!(
        attributes.contains_key("shortline.backend_ms"),
        "{attributes:?}"
    );
    let time = |number| u64::from_le_bytes(at(span, &[number])[0].clone().try_into().unwrap());
    assert!(time(7) <= time(8));
}

#[test]
fn what_is_not_sampled_is_not_exported_and_the_last_spans_leave_at_the_end() {
    let site = Site::new();
    let (address, posted) = collector();
    let server = start(
        &site,
        address,
        &["--otlp-sample", "0", "--trusted-proxy", "127.0.0.1"],
    );
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
    // A trusted proxy has recorded this one.
    let traced = format!("traceparent: {}1\r\n", &PARENT[..PARENT.len() - 1]);
    assert_eq!(
        request(server.address(), "GET", "/hello.txt", &traced).status,
        200
    );
    server.signal(rustix::process::Signal::TERM);
    let (_, body) = posted.recv_timeout(PATIENCE).unwrap();
    let spans = at(&body, &[1, 2, 2]);
    assert_eq!(spans.len(), 1);
    assert_eq!(hex(&spans[0], 1), PARENT[3..35]);
}

#[test]
fn a_collector_that_is_away_holds_up_nobody() {
    let site = Site::new();
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let log = site.beside("access.log");
    let flags = ["--otlp-sample", "1", "--access-log", log.to_str().unwrap()];
    let server = start(&site, nobody, &flags);
    for _ in 0..20 {
        assert_eq!(get(server.address(), "/hello.txt").status, 200);
    }
    wait_for("the access log's lines", || {
        let text = std::fs::read_to_string(&log).ok()?;
        (text.lines().count() == 20).then_some(())
    });
}
