//! What operators see of single requests: the forms of the access log, and the ids that a request has everywhere.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use serde_json::Value;
use shortline_load::trace::{TraceOptions, read_trace};

use crate::admin::status;
use crate::client::{Response, get, request};
use crate::process::{PROGRAM, Server, Site, wait_for};
use crate::routes::application;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A server with files, a route `/app` and an access log, and the log's path.
fn start(site: &Site, application: SocketAddr, flags: &[&str]) -> (Server, std::path::PathBuf) {
    let file = site.beside("shortline.toml");
    let text = format!("[[route]]\npath = \"/app\"\nupstream = [\"{application}\"]\n");
    std::fs::write(&file, text).unwrap();
    let log = site.beside("access.log");
    let common = [
        "--config",
        file.to_str().unwrap(),
        "--access-log",
        log.to_str().unwrap(),
    ];
    (Server::start(site, &[&common[..], flags].concat()), log)
}

fn lines(log: &Path, count: usize) -> Vec<String> {
    wait_for("the lines of the log", || {
        let text = std::fs::read_to_string(log).ok()?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (lines.len() == count).then_some(lines)
    })
}

fn objects(log: &Path, count: usize) -> Vec<Value> {
    let read = |line: String| {
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    lines(log, count).into_iter().map(read).collect()
}

fn body(response: Response) -> String {
    String::from_utf8(response.body).unwrap()
}

/// The value of a field in a request that the application has told.
fn told<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines();
    lines.find_map(|line| {
        let (known, value) = line.split_once(": ")?;
        known.eq_ignore_ascii_case(name).then_some(value)
    })
}

#[test]
fn json_tells_the_application_from_the_uplink_and_can_be_replayed() {
    let site = Site::new();
    let application = application();
    let (server, log) = start(&site, application, &["--log-format", "json"]);
    let agent = "User-Agent: a \"b\" \\ \té\r\n";
    assert_eq!(
        request(server.address(), "GET", "/hello.txt?q", agent).status,
        200
    );
    let traced = format!("traceparent: {PARENT}\r\n");
    assert_eq!(
        request(server.address(), "GET", "/app/large", &traced).status,
        200
    );
    let read = objects(&log, 2);
    let file = &read[0];
    assert_eq!(file["client"], "127.0.0.1");
    assert_eq!(file["host"], "127.0.0.1");
    assert_eq!(file["site"], "default");
    assert_eq!(file["target"], "/hello.txt?q");
    assert_eq!((&file["status"], &file["bytes"]), (&200.into(), &6.into()));
    assert_eq!(file["user_agent"], "a \"b\" \\ \té");
    assert_eq!(file["complete"], true);
    assert!(file["queue_ms"].as_f64() <= file["wait_ms"].as_f64());
    for absent in [
        "backend",
        "backend_ms",
        "backend_head_ms",
        "tls",
        "user",
        "encoding",
        "trace_id",
    ] {
        assert!(file[absent].is_null(), "{absent}: {file}");
    }
    let proxied = &read[1];
    assert_eq!(proxied["backend"], application.to_string());
    assert_eq!(proxied["bytes"], 1_000_000);
    assert_eq!(proxied["trace_id"], PARENT[3..35]);
    let head_ms = proxied["backend_head_ms"].as_f64().unwrap();
    assert!(head_ms <= proxied["backend_ms"].as_f64().unwrap());
    assert!(head_ms <= proxied["wait_ms"].as_f64().unwrap());
    assert!(proxied["connect_ms"].is_number());
    assert_ne!(file["request_id"], proxied["request_id"]);

    let trace = read_trace(&log, &TraceOptions::default()).unwrap();
    let replayed = trace
        .iter()
        .map(|request| (request.path.as_str(), request.bytes));
    assert_eq!(
        replayed.collect::<Vec<_>>(),
        [("/hello.txt?q", 6), ("/app/large", 1_000_000)]
    );
}

#[test]
fn a_format_of_nginx_is_written() {
    let site = Site::new();
    let format = "$remote_addr $remote_user \"$request\" $status $upstream_addr [$http_x_a] $sent_http_content_type";
    let flags = ["--log-format", format];
    let (server, log) = start(&site, application(), &flags);
    let fields = "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\nX-A: 1\r\nX-A: 2\"\r\n";
    assert_eq!(
        request(server.address(), "GET", "/hello.txt", fields).status,
        200
    );
    assert_eq!(
        lines(&log, 1)[0],
        "127.0.0.1 Aladdin \"GET /hello.txt HTTP/1.1\" 200 - [1, 2\\x22] text/plain; charset=utf-8"
    );
}

#[test]
fn a_wrong_format_is_refused_with_what_would_be_right() {
    let mut command = std::process::Command::new(PROGRAM);
    let refused = command.args(["serve", "--log-format", "$body_bytes"]);
    let output = refused.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("did you mean `$body_bytes_sent`?"), "{said}");
}

#[test]
fn an_id_is_the_same_for_the_client_the_backend_and_the_log() {
    let site = Site::new();
    let flags = ["--log-format", "json", "--send-request-id"];
    let (server, log) = start(&site, application(), &flags);
    let forged = "X-Request-Id: forged\r\nX_Request_Id: forged\r\n";
    let answer = request(server.address(), "GET", "/app/echo", forged);
    let id = answer.field("x-request-id").unwrap().to_owned();
    assert!(id.len() == 32 && id != "forged", "{id}");
    let head = body(answer);
    assert_eq!(told(&head, "x-request-id"), Some(id.as_str()));
    assert_eq!(told(&head, "x_request_id"), None);
    assert_eq!(objects(&log, 1)[0]["request_id"], id);
    // Of a file, too.
    let file = get(server.address(), "/hello.txt");
    assert_eq!(
        file.field("x-request-id").unwrap(),
        objects(&log, 2)[1]["request_id"]
    );
}

#[test]
fn a_trusted_proxy_gives_the_id() {
    let site = Site::new();
    let flags = ["--log-format", "json", "--trusted-proxy", "127.0.0.1"];
    let (server, log) = start(&site, application(), &flags);
    let answer = request(
        server.address(),
        "GET",
        "/app/echo",
        "X-Request-Id: of-the-proxy/1\r\n",
    );
    assert_eq!(answer.field("x-request-id"), None, "not asked for");
    assert_eq!(told(&body(answer), "x-request-id"), Some("of-the-proxy/1"));
    assert_eq!(objects(&log, 1)[0]["request_id"], "of-the-proxy/1");
}

#[test]
fn a_valid_trace_reaches_the_backend_and_an_invalid_one_is_replaced() {
    let site = Site::new();
    let (server, _log) = start(&site, application(), &[]);
    let sent = |fields: &str| body(request(server.address(), "GET", "/app/echo", fields));
    let head = sent(&format!("traceparent: {PARENT}\r\ntracestate: a=1\r\n"));
    assert_eq!(told(&head, "traceparent"), Some(PARENT));
    assert_eq!(told(&head, "tracestate"), Some("a=1"));
    let head = sent("traceparent: 00-nonsense\r\ntracestate: a=1\r\n");
    let new = told(&head, "traceparent").unwrap();
    assert!(
        new.len() == 55 && new.starts_with("00-") && new.ends_with("-00"),
        "{new}"
    );
    assert_eq!(told(&head, "tracestate"), None);
    assert_eq!(told(&sent(""), "traceparent"), None);
}

#[test]
fn a_failure_is_told_with_the_id_of_its_request() {
    let site = Site::new();
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (mut server, log) = start(&site, nobody, &["--log-format", "json"]);
    assert_eq!(get(server.address(), "/app/x").status, 502);
    let record = &objects(&log, 1)[0];
    assert_eq!(record["backend"], nobody.to_string());
    assert!(record["backend_head_ms"].is_number() && record["backend_ms"].is_null());
    let line = server.line_with("a request failed");
    let id = format!("request_id=\"{}\"", record["request_id"].as_str().unwrap());
    assert!(line.contains(&id), "{line}");
    for field in ["backend=", "status=502", "reason=", "total_ms=", "untold=0"] {
        assert!(line.contains(field), "{field}: {line}");
    }
}

/// All names of metrics in a text, without what the samples of a histogram add.
fn metric_names(text: &str) -> std::collections::BTreeSet<String> {
    let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    let names = words.filter(|word| word.starts_with("shortline_"));
    let names = names.map(|name| {
        let ends = ["_bucket", "_sum", "_count"].iter();
        let plain = ends.filter_map(|end| name.strip_suffix(end)).next();
        plain.unwrap_or(name).to_owned()
    });
    names.collect()
}

#[test]
fn every_metric_of_the_dashboard_exists() {
    let site = Site::new();
    let (server, _log) = start(
        &site,
        application(),
        &["--uplink", "10mbit", "--uplink-loopback"],
    );
    assert_eq!(get(server.address(), "/app/small").status, 200);
    let metrics = metric_names(&body(get(server.admin.unwrap(), "/metrics")));
    let dashboard =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana-dashboard.json");
    let text = std::fs::read_to_string(dashboard).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() >= 10);
    let used = metric_names(&text);
    assert!(used.len() >= 10, "{used:?}");
    let unknown: Vec<_> = used.difference(&metrics).collect();
    assert!(unknown.is_empty(), "{unknown:?} of {metrics:?}");
}

#[test]
fn responses_are_compared_with_fair_sharing() {
    let site = Site::new();
    let (server, _log) = start(
        &site,
        application(),
        &["--uplink", "100mbit", "--uplink-loopback"],
    );
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
    assert_eq!(get(server.address(), "/large.bin").status, 200);
    let compared = wait_for("both responses in both orders", || {
        let compared = status(&server)["comparison"]["by_size"].clone();
        let ended = |index: usize| {
            compared[index]["fair"]["count"] == 1 && compared[index]["ours"]["count"] == 1
        };
        (ended(0) && ended(4)).then_some(compared)
    });
    // A megabyte takes 80 ms at this rate, and more with the headers of its packets.
    let fair = compared[4]["fair"]["seconds"].as_f64().unwrap();
    assert!(fair > 0.08, "{compared}");
    let history = body(get(server.admin.unwrap(), "/history"));
    let history: Vec<Value> = serde_json::from_str(&history).unwrap();
    assert_eq!(history.last().unwrap()["compared"][4][0], 1);
    let metrics = body(get(server.admin.unwrap(), "/metrics"));
    for sample in [
        "shortline_response_seconds_by_site_count{site=\"default\"} 2\n",
        "shortline_response_seconds_by_size_count{size=\"up to 1 MB\"} 1\n",
        "shortline_compared_response_seconds_count{order=\"fair\",size=\"above 1 MB\"} 1\n",
    ] {
        assert!(metrics.contains(sample), "{sample}: {metrics}");
    }
}
