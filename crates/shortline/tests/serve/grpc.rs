//! gRPC through a route, with gRPC's own library on both sides (`calls.py`).

use std::process::Command;

use crate::admin::status;
use crate::client::get;
use crate::process::{Server, Site, shortline};
use crate::routes::application;
use crate::service::{Service, python, script};

fn config(site: &Site, lines: &str) -> String {
    let file = site.beside("shortline.toml");
    std::fs::write(&file, format!("[[route]]\npath = \"/\"\n{lines}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn every_kind_of_call_goes_through() {
    let Some(python) = python() else { return };
    let site = Site::new();
    for uplink in [
        &["--uplink", "off"][..],
        &["--uplink", "20mbit", "--uplink-loopback"],
    ] {
        let service = Service::start(python);
        let upstream = format!("upstream = [\"h2c://{}\"]", service.address);
        let config = config(&site, &upstream);
        let server = Server::start(&site, &[&["--config", &config], uplink].concat());
        let ended = Command::new(python)
            .arg(script())
            .args(["client", &server.address().to_string()])
            .status()
            .unwrap();
        assert!(ended.success(), "{uplink:?}");
        let backend = &status(&server)["server"]["backends"][0];
        assert_eq!(backend["failures_total"], 0);
        assert_eq!(backend["connections_total"], 1);
    }
}

#[test]
fn a_backend_that_does_not_speak_http_2_leaves_a_line() {
    let site = Site::new();
    let config = config(&site, &format!("upstream = [\"h2c://{}\"]", application()));
    let mut server = Server::start(&site, &["--config", &config]);
    assert_eq!(get(server.address(), "/").status, 502);
    let line = server.line_with("a request failed");
    assert!(line.contains("it does not speak HTTP/2"), "{line}");
    assert!(line.contains("give http"), "{line}");
}

#[test]
fn what_contradicts_the_version_of_http_is_refused_in_a_line() {
    let site = Site::new();
    for (lines, expected) in [
        (
            "upstream = [\"h2c://app:1\"]\nhttp = \"1\"",
            "http: \"1\" contradicts upstream h2c://app:1, which is HTTP/2: give http:// instead of h2c://",
        ),
        (
            "upstream = [\"app:1\"]\nstreams-max = 7",
            "streams-max: is for servers with HTTP/2",
        ),
        (
            "upstream = [\"app:1\"]\nhttp = \"3\"",
            "`3` is no version of HTTP: give \"1\", \"2\" or \"auto\"",
        ),
        (
            "upstream = [\"h2c://app\"]",
            "has no port: write h2c://app:9000",
        ),
    ] {
        let config = config(&site, lines);
        let ended = shortline(&site.root(), &["serve", "--config", &config]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(ended.stderr.trim().lines().count(), 1, "{}", ended.stderr);
    }
}
