//! `[route.gate]`: requests wait for an application that does them one after the other, and the
//! short ones go first.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::admin::status;
use crate::client::get;
use crate::process::{PATIENCE, Server, Site, shortline, wait_for};

/// How much longer a long request takes than a short one, which on a busy machine is not short.
const LONG: Duration = Duration::from_millis(500);

/// An application that tells which requests it gets, and keeps `/app/hold` until it is told.
struct Application {
    address: SocketAddr,
    asked: Receiver<String>,
    release: Sender<()>,
}

impl Application {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asking, asked) = channel();
        let (release, released) = channel();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut head = [0; 4096];
                let length = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                // The test may be over.
                let _ = asking.send(path.clone());
                match path.as_str() {
                    "/app/hold" => released.recv().unwrap_or_default(),
                    "/app/long" => std::thread::sleep(LONG),
                    _ => {}
                }
                let _ = stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
                );
            }
        });
        Self {
            address,
            asked,
            release,
        }
    }

    fn next_asked(&self) -> String {
        self.asked.recv_timeout(PATIENCE).unwrap()
    }
}

fn write_config(site: &Site, application: &Application, gate: &str) -> String {
    let file = site.beside("shortline.toml");
    let upstream = application.address;
    let text = format!(
        "[[route]]\npath = \"/app\"\nupstream = [\"{upstream}\"]\n[route.gate]\n{gate}\n\
         [[route]]\npath = \"/open\"\nupstream = [\"{upstream}\"]\n"
    );
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn ask(server: &Server, path: &'static str) -> JoinHandle<u16> {
    let address = server.address();
    std::thread::spawn(move || get(address, path).status)
}

fn gate(server: &Server) -> Value {
    status(server)["gates"][0].clone()
}

fn wait_for_waiting(server: &Server, count: u64) {
    wait_for("requests to wait", || {
        (gate(server)["admission"]["waiting"] == count).then_some(())
    });
}

#[test]
fn the_short_go_first_when_the_application_is_the_bottleneck() {
    let site = Site::new();
    let application = Application::start();
    let config = write_config(
        &site,
        &application,
        "capacity = \"1ms\"\noldest-share = \"0%\"",
    );
    let server = Server::start(&site, &["--config", &config]);
    // Twice each: a type of which one request has ended is still new, and is tried early.
    for path in ["/app/long", "/app/short", "/app/long", "/app/short"] {
        assert_eq!(get(server.address(), path).status, 200);
        assert_eq!(application.next_asked(), path);
    }

    let first = ask(&server, "/app/hold");
    assert_eq!(application.next_asked(), "/app/hold");
    let mut waiting = Vec::new();
    for (count, path) in [(1, "/app/long"), (2, "/app/short")] {
        waiting.push(ask(&server, path));
        wait_for_waiting(&server, count);
    }
    // Files do not wait for the application.
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
    application.release.send(()).unwrap();
    assert_eq!(application.next_asked(), "/app/short");
    assert_eq!(application.next_asked(), "/app/long");
    for asked in waiting.into_iter().chain([first]) {
        assert_eq!(asked.join().unwrap(), 200);
    }

    // A route to the same server without a gate is not counted by it.
    assert_eq!(get(server.address(), "/open").status, 200);
    let told = gate(&server);
    assert_eq!(told["routes"], serde_json::json!(["/app"]));
    assert_eq!(told["settings"]["capacity"], "1ms");
    assert_eq!(told["admission"]["totals"]["completed"], 7);
    let metrics = String::from_utf8(get(server.admin.unwrap(), "/metrics").body).unwrap();
    for line in [
        "shortline_gate_capacity_seconds{route=\"/app\"} 0.001\n",
        "shortline_gate_ended_total{route=\"/app\",how=\"completed\"} 7\n",
        "shortline_gate_type_completed_total{route=\"/app\",type=\"GET /app/long\"} 3\n",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
}

#[test]
fn a_reload_keeps_who_waits_and_what_was_learnt() {
    let site = Site::new();
    let application = Application::start();
    let config = write_config(&site, &application, "capacity = \"1ms\"");
    let mut server = Server::start(&site, &["--config", &config]);
    let first = ask(&server, "/app/hold");
    application.next_asked();
    let second = ask(&server, "/app/short");
    wait_for_waiting(&server, 1);
    // Rules may change under them: the gate is the same.
    let rule = "capacity = \"1ms\"\n[[route.gate.rule]]\ntype = \"all\"\npath = \".\"\n";
    write_config(&site, &application, rule);
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert_eq!(gate(&server)["admission"]["waiting"], 1);
    application.release.send(()).unwrap();
    for asked in [first, second] {
        assert_eq!(asked.join().unwrap(), 200);
    }

    // Another capacity is another gate, which knows what the old one knew.
    write_config(&site, &application, "capacity = \"2s\"");
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    let admission = &gate(&server)["admission"];
    assert_eq!(admission["capacity_ns"], 2_000_000_000_u64);
    let types = admission["types"].as_array().unwrap();
    let known = types.iter().find(|each| each["name"] == "GET /app/hold");
    assert!(known.unwrap()["estimate_ns"].as_u64().unwrap() > 0);
}

#[test]
fn a_gate_that_cannot_be_had_is_refused_in_a_line() {
    let site = Site::new();
    let application = Application::start();
    for (gate, expected) in [
        (
            "listen = [\"127.0.0.1:1\"]",
            "route /app: gate.listen: means nothing",
        ),
        (
            "capacity = \"0s\"",
            "shortline.toml:5: route.gate.capacity:",
        ),
        (
            "policy = \"fifo\"\naging = 3.0",
            "route /app: gate.aging: is for policy sjf and contradicts policy fifo",
        ),
        (
            "capacity = \"1s\"\n[[route]]\npath = \"/b\"\nupstream = [\"SAME\"]\n\
             gate = { capacity = \"2s\" }",
            "is behind the gate of route /app, too",
        ),
    ] {
        let gate = gate.replace("SAME", &application.address.to_string());
        let config = write_config(&site, &application, &gate);
        let ended = shortline(&site.root(), &["serve", "--config", &config]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(
            ended.stderr.trim_end().lines().count(),
            1,
            "{}",
            ended.stderr
        );
    }
}
