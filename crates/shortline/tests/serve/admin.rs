//! The admin endpoint and the access log.

use std::io::Write;

use serde_json::Value;

use crate::client::{connect, exchange, get, parse, read_to_end, request};
use crate::process::{Server, Site, wait_for};

/// `/status` as JSON.
pub fn status(server: &Server) -> Value {
    let got = get(server.admin.unwrap(), "/status");
    assert_eq!(got.status, 200);
    serde_json::from_slice(&got.body).unwrap()
}

#[test]
fn status_tells_the_cutoffs_that_were_learnt() {
    let site = Site::new();
    let server = Server::start(&site, &["--policy", "bands:3", "--uplink-loopback"]);
    let cutoffs = || status(&server)["link"]["cutoffs_bytes"].clone();
    assert_eq!(cutoffs(), serde_json::json!([]));
    for _ in 0..16 {
        assert_eq!(get(server.address(), "/large.bin").body.len(), 1_000_000);
    }
    let learnt: Vec<u64> = serde_json::from_value(cutoffs()).unwrap();
    assert_eq!(learnt.len(), 2);
    let close = |cutoff: &u64| (1_000_000..1_032_000).contains(cutoff);
    assert!(learnt.iter().all(close), "{learnt:?}");
}

#[test]
fn a_page_that_rebinds_its_name_reads_nothing_of_the_admin_address() {
    let site = Site::new();
    let server = Server::start(&site, &["--admin-host", "web.example"]);
    let asked_as = |host: &str| {
        let request = format!("GET /status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        parse(&exchange(server.admin.unwrap(), request))
    };
    assert_eq!(asked_as("evil.example").status, 421);
    for host in ["localhost:9090", "127.0.0.1", "web.example"] {
        assert_eq!(asked_as(host).status, 200, "{host}");
    }
}

#[test]
fn what_is_found_out_of_the_uplink_is_told() {
    let site = Site::new();
    let server = Server::start(&site, &["--uplink", "auto", "--uplink-loopback"]);
    assert_eq!(get(server.address(), "/large.bin").body.len(), 1_000_000);
    let link = &status(&server)["link"];
    assert_eq!(link["mode"], "auto");
    let found = &link["discovered"];
    // Nothing is narrow on loopback: no rate is ever measured there.
    assert!(found["estimate_bps"].is_null(), "{found}");
    let states = ["starting", "open", "blind"];
    assert!(
        states.contains(&found["state"].as_str().unwrap()),
        "{found}"
    );
    let metrics = get(server.admin.unwrap(), "/metrics");
    let text = String::from_utf8(metrics.body).unwrap();
    assert!(text.contains("shortline_uplink_state{state=\""), "{text}");
    assert!(text.contains("shortline_uplink_confidence 0"), "{text}");
}

#[test]
fn status_and_metrics_tell_the_queue_while_it_is_there() {
    let site = Site::new();
    let server = Server::start(&site, &["--uplink", "1mbit", "--uplink-loopback"]);
    let mut stream = connect(server.address());
    stream
        .write_all(b"GET /large.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let told = wait_for("a response under way", || {
        let told = status(&server);
        (told["link"]["jobs"] == 1).then_some(told)
    });
    assert_eq!(told["link"]["mode"], "paced");
    assert_eq!(told["link"]["policy"], "shares");
    assert_eq!(told["link"]["rate_bps"], 1_000_000);
    assert_eq!(told["server"]["connections"]["response"], 1);
    let classes = told["link"]["size_classes"].as_array().unwrap();
    let jobs: u64 = classes
        .iter()
        .map(|class| class["jobs"].as_u64().unwrap())
        .sum();
    assert_eq!(jobs, 1);

    let metrics = get(server.admin.unwrap(), "/metrics");
    let text = String::from_utf8(metrics.body).unwrap();
    assert!(
        text.contains("shortline_link_info{mode=\"paced\",policy=\"shares\"} 1\n"),
        "{text}"
    );
    assert!(text.contains("shortline_link_wire_bytes_total "), "{text}");
    assert!(
        text.contains("shortline_requests_total{status=\"2xx\"} "),
        "{text}"
    );
    let line_is_sound = |line: &str| {
        let value = line.rsplit_once(' ').map(|(_, value)| value.parse::<f64>());
        line.starts_with("# ") || matches!(value, Some(Ok(_)))
    };
    assert!(text.lines().all(line_is_sound), "{text}");
    assert_eq!(get(server.admin.unwrap(), "/healthz").body, b"ok\n");
}

#[test]
fn the_admin_endpoint_refuses_what_it_does_not_have() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let admin = server.admin.unwrap();
    assert_eq!(get(admin, "/nothing").status, 404);
    assert_eq!(
        request(admin, "POST", "/status", "Content-Length: 0\r\n").status,
        405
    );
}

#[test]
fn a_line_tells_each_response_also_one_that_was_cut_short() {
    let site = Site::new();
    let log = site.beside("access.log");
    let flags = [
        "--access-log",
        log.to_str().unwrap(),
        "--uplink",
        "1mbit",
        "--uplink-loopback",
    ];
    let server = Server::start(&site, &flags);
    assert_eq!(get(server.address(), "/hello.txt?q").status, 200);
    let mut stream = connect(server.address());
    stream
        .write_all(b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    wait_for("the response to begin", || {
        (status(&server)["link"]["grants_total"].as_u64() > Some(2)).then_some(())
    });
    drop(stream);
    let text = wait_for("two lines", || {
        let text = std::fs::read_to_string(&log).unwrap();
        (text.lines().count() == 2).then_some(text)
    });
    let mut lines = text.lines();
    let whole = lines.next().unwrap();
    assert!(
        whole.contains("\"GET /hello.txt?q HTTP/1.1\" 200 6 "),
        "{whole}"
    );
    assert!(whole.ends_with("complete=1"), "{whole}");
    let cut = lines.next().unwrap();
    assert!(
        cut.contains("\"GET /large.bin HTTP/1.1\" 200 ") && cut.ends_with("complete=0"),
        "{cut}"
    );
}

#[test]
fn a_line_names_whom_a_trusted_proxy_asks_for() {
    let site = Site::new();
    let log = site.beside("access.log");
    let flags = ["--access-log", log.to_str().unwrap()];
    let told = |trusted: &[&str]| {
        let server = Server::start(&site, &[&flags[..], trusted].concat());
        let field = "X-Forwarded-For: 203.0.113.9, 192.0.2.1\r\n";
        assert_eq!(
            request(server.address(), "GET", "/hello.txt", field).status,
            200
        );
        wait_for("a line", || {
            let text = std::fs::read_to_string(&log).unwrap();
            text.lines().last().map(str::to_owned)
        })
    };
    assert!(told(&[]).starts_with("127.0.0.1 "), "nobody is trusted");
    std::fs::remove_file(&log).unwrap();
    let line = told(&["--trusted-proxy", "127.0.0.1"]);
    assert!(line.starts_with("192.0.2.1 "), "{line}");
}

#[test]
fn too_many_connections_of_one_address_are_refused() {
    let site = Site::new();
    let server = Server::start(&site, &["--connections-per-address-max", "2"]);
    let held = [connect(server.address()), connect(server.address())];
    wait_for("two connections", || {
        (status(&server)["server"]["connections"]["open"] == 2).then_some(())
    });
    assert_eq!(read_to_end(&mut connect(server.address())), b"");
    // The client may see the end before the server has counted it.
    wait_for("the refusal to be counted", || {
        (status(&server)["server"]["connections_refused_total"] == 1).then_some(())
    });
    drop(held);
    wait_for("room", || {
        (status(&server)["server"]["connections"]["open"] == 0).then_some(())
    });
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
}
