//! `shortline_gate::http` over real sockets: who waits, who goes first, when a place is given back.
//! The client and the backend are those of the proxy's own tests.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../shortline-web/tests/proxy/backend.rs"]
mod backend;
#[allow(dead_code)]
#[path = "../../shortline-web/tests/proxy/client.rs"]
mod client;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;
use shortline_gate::classify::{Classifier, ClassifierConfig, Protocol};
use shortline_gate::http::{HttpConfig, HttpRelay};
use shortline_gate::{Gate, GateConfig};
use shortline_link::{LinkConfig, LinkMode};
use shortline_sched::admission::{AdmissionConfig, OldestShare};
use shortline_web::Limits;
use shortline_web::proxy::UpstreamOptions;
use tokio::sync::oneshot;

use backend::Backend;
use client::{connect, get, read_one, wait_for};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// `gate http` in front of a backend, admitting one request at a time.
struct Gated {
    runtime: Option<tokio::runtime::Runtime>,
    stop: Option<oneshot::Sender<()>>,
    running: Option<tokio::task::JoinHandle<()>>,
    gate: Gate,
    address: SocketAddr,
}

impl Gated {
    fn start(backend: SocketAddr, queue_max: usize, wait_max: Duration) -> Self {
        let plain = ClassifierConfig::new(Protocol::Http);
        Self::start_with(backend, queue_max, wait_max, &plain)
    }

    fn start_with(
        backend: SocketAddr,
        queue_max: usize,
        wait_max: Duration,
        classes: &ClassifierConfig,
    ) -> Self {
        let gate = Gate::new(GateConfig {
            admission: AdmissionConfig {
                capacity: "1ns".parse().unwrap(),
                oldest_share: OldestShare::NONE,
                queue_max,
                ..AdmissionConfig::default()
            },
            wait_max,
            ..GateConfig::default()
        });
        let config = HttpConfig {
            upstream: UpstreamOptions {
                backends: vec![backend.to_string().parse().unwrap()],
                ..UpstreamOptions::default()
            },
            classifier: Classifier::new(classes).unwrap(),
            limits: Limits::default(),
            link: LinkConfig {
                mode: LinkMode::Off,
                ..LinkConfig::default()
            },
            tls: None,
            access_log: None,
            drain_time_max: Duration::from_secs(5),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let bound = tokio::net::TcpListener::bind("127.0.0.1:0");
        let listener = runtime.block_on(bound).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let running = runtime.spawn({
            let gate = gate.clone();
            async move {
                let shutdown = async { stopped.await.unwrap_or(()) };
                let relay = HttpRelay::new(config, gate).unwrap();
                relay.run(vec![listener], shutdown).await.unwrap();
            }
        });
        Self {
            runtime: Some(runtime),
            stop: Some(stop),
            running: Some(running),
            gate,
            address,
        }
    }

    /// Waits until so many requests run and wait.
    fn wait_until(&self, running: usize, waiting: usize) {
        wait_for("the gate's state", || {
            let snapshot = self.gate.snapshot();
            (snapshot.running == running && snapshot.waiting == waiting).then_some(())
        });
    }

    /// Sends a request and leaves it.
    fn ask(&self, path: &str) -> TcpStream {
        let mut client = connect(self.address);
        write!(client, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        client
    }
}

impl Drop for Gated {
    fn drop(&mut self) {
        let (Some(runtime), Some(stop)) = (self.runtime.take(), self.stop.take()) else {
            return;
        };
        // Without clients it ends at once.
        let _ = stop.send(());
        if let Some(running) = self.running.take() {
            runtime.block_on(running).unwrap();
        }
        runtime.shutdown_timeout(Duration::from_secs(5));
    }
}

/// A backend that answers each request when it is told to.
fn on_command() -> (Backend, mpsc::Sender<()>) {
    let (go, goes) = mpsc::channel();
    let goes = Arc::new(Mutex::new(goes));
    let backend = Backend::start(move |mut conversation| {
        while conversation.read_request().is_some() {
            if goes.lock().recv().is_err() {
                return;
            }
            conversation.write(OK);
        }
    });
    (backend, go)
}

fn paths(backend: &Backend) -> Vec<String> {
    let heads = backend.heads();
    let path = |head: &String| head.split(' ').nth(1).unwrap().to_owned();
    heads.iter().map(path).collect()
}

#[test]
fn a_header_names_a_tenant_if_a_trusted_proxy_sends_it() {
    for (trusted, admitted) in [("127.0.0.0/8", 1), ("192.0.2.0/24", 0)] {
        let (backend, go) = on_command();
        let classes = ClassifierConfig {
            tenant_by: "header:X-Priority".parse().unwrap(),
            tags_from: vec![trusted.parse().unwrap()],
            tenant_names: vec!["high".to_owned()],
            ..ClassifierConfig::new(Protocol::Http)
        };
        let gated = Gated::start_with(backend.address, 100, Duration::from_secs(30), &classes);
        for value in ["high", "none of ours"] {
            let mut client = connect(gated.address);
            let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Priority: {value}\r\n\r\n");
            client.write_all(head.as_bytes()).unwrap();
            go.send(()).unwrap();
            assert_eq!(read_one(&mut client).status, 200);
        }
        gated.wait_until(0, 0);
        let tenants = gated.gate.snapshot().tenants;
        let high = tenants.iter().find(|tenant| tenant.name == "high");
        assert_eq!(high.map_or(0, |high| high.admitted), admitted, "{trusted}");
    }
}

#[test]
fn the_shorter_type_goes_first() {
    let (backend, go) = on_command();
    let gated = Gated::start(backend.address, 100, Duration::from_secs(30));
    // The gate learns: /long takes longer than /short. What it has seen once is still new to it, and is
    // tried early.
    for (path, time_ms) in [("/long", 300), ("/short", 0), ("/long", 300), ("/short", 0)] {
        let mut client = gated.ask(path);
        gated.wait_until(1, 0);
        std::thread::sleep(Duration::from_millis(time_ms));
        go.send(()).unwrap();
        assert_eq!(read_one(&mut client).status, 200);
        gated.wait_until(0, 0);
    }
    let mut first = gated.ask("/first");
    gated.wait_until(1, 0);
    let mut long = gated.ask("/long");
    gated.wait_until(1, 1);
    let mut short = gated.ask("/short");
    gated.wait_until(1, 2);
    for client in [&mut first, &mut short, &mut long] {
        go.send(()).unwrap();
        assert_eq!(read_one(client).status, 200);
    }
    assert_eq!(paths(&backend)[4..], ["/first", "/short", "/long"]);
    let types = gated.gate.snapshot().types;
    assert!(types.iter().any(|view| view.name == "GET /short"));
}

#[test]
fn a_client_that_leaves_the_queue_is_not_sent_on() {
    let (backend, go) = on_command();
    let gated = Gated::start(backend.address, 100, Duration::from_secs(30));
    let mut first = gated.ask("/first");
    gated.wait_until(1, 0);
    let leaving = gated.ask("/leaving");
    gated.wait_until(1, 1);
    drop(leaving);
    gated.wait_until(1, 0);
    go.send(()).unwrap();
    assert_eq!(read_one(&mut first).status, 200);
    gated.wait_until(0, 0);
    assert_eq!(paths(&backend), ["/first"]);
}

#[test]
fn a_client_that_leaves_its_backend_gives_its_place_back() {
    let backend = Backend::start(|mut conversation| {
        let (head, _) = conversation.read_request().unwrap();
        if head.contains("/leaving") {
            conversation.is_left();
        } else {
            conversation.write(OK);
        }
    });
    let gated = Gated::start(backend.address, 100, Duration::from_secs(30));
    let leaving = gated.ask("/leaving");
    gated.wait_until(1, 0);
    let mut second = gated.ask("/second");
    gated.wait_until(1, 1);
    drop(leaving);
    assert_eq!(read_one(&mut second).status, 200);
    gated.wait_until(0, 0);
}

#[test]
fn a_backend_that_dies_gives_the_place_back() {
    let backend = Backend::start(|mut conversation| {
        conversation.read_request();
        if conversation.number == 0 {
            conversation.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello");
        } else {
            conversation.write(OK);
        }
    });
    let gated = Gated::start(backend.address, 100, Duration::from_secs(30));
    let broken = gated.ask("/broken").read_to_end(&mut Vec::new());
    assert!(broken.is_err(), "a reset, with or without what came before");
    gated.wait_until(0, 0);
    assert_eq!(get(gated.address, "/", "").status, 200);
    wait_for("both outcomes", || {
        let types = gated.gate.snapshot().types;
        let failed: u64 = types.iter().map(|view| view.failed).sum();
        let completed: u64 = types.iter().map(|view| view.completed).sum();
        (failed == 1 && completed == 1).then_some(())
    });
}

#[test]
fn who_may_not_wait_is_told_when_to_come_again() {
    let (backend, go) = on_command();
    let gated = Gated::start(backend.address, 1, Duration::from_secs(3));
    let mut first = gated.ask("/first");
    gated.wait_until(1, 0);
    let mut waiting = gated.ask("/waiting");
    gated.wait_until(1, 1);
    for response in [get(gated.address, "/", ""), read_one(&mut waiting)] {
        assert_eq!(response.status, 503);
        assert_eq!(response.field("retry-after"), Some("1"));
    }
    go.send(()).unwrap();
    assert_eq!(read_one(&mut first).status, 200);
    assert_eq!(paths(&backend), ["/first"]);
}

#[test]
fn a_slow_client_does_not_keep_the_place_of_a_response_that_is_here() {
    const BYTES: usize = 200_000;
    let answer = [
        format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n").into_bytes(),
        vec![b'x'; BYTES],
    ]
    .concat();
    let backend = Backend::answering(answer);
    let gated = Gated::start(backend.address, 100, Duration::from_secs(30));
    // None of them reads anything yet; each has its place only while the backend works.
    let mut slow: Vec<TcpStream> = (0..5).map(|_| gated.ask("/")).collect();
    wait_for("all five at the backend", || {
        (backend.heads().len() == 5).then_some(())
    });
    gated.wait_until(0, 0);
    for client in &mut slow {
        assert_eq!(read_one(client).body.len(), BYTES);
    }
}

#[test]
fn a_client_that_is_slow_with_its_body_lets_others_run() {
    let backend = Backend::echoing();
    let gated = Gated::start(backend.address, 100, Duration::from_secs(30));
    let mut slow = connect(gated.address);
    slow.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo")
        .unwrap();
    wait_for("the slow one to be paused", || {
        let snapshot = gated.gate.snapshot();
        (snapshot.running == 1 && snapshot.active == 0).then_some(())
    });
    assert_eq!(get(gated.address, "/other", "").status, 200);
    slow.write_all(b"dy").unwrap();
    assert!(read_one(&mut slow).text().ends_with("body"));
    gated.wait_until(0, 0);
}
