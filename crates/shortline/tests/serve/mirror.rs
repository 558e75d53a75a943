//! `mirror`: another server gets copies of a route's requests, and nobody its responses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::admin::status;
use crate::client::{connect, get, parse, read_head, read_to_end, request};
use crate::nginx::{Nginx, free};
use crate::process::{Server, Site, assert_route_is_refused, pattern, wait_for};

/// A server that keeps the requests that it gets, and answers each with a text of its own.
struct Keeper {
    address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
}

/// The head and the body of a request.
type Got = (String, Vec<u8>);

impl Keeper {
    fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let got: Arc<Mutex<Vec<_>>> = Arc::default();
        let kept = Arc::clone(&got);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || {
                    while let Some(head) = read_head(&mut stream) {
                        let body = read_body(&mut stream, &head);
                        kept.lock().unwrap().push((head, body));
                        let head = format!(
                            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                            answer.len()
                        );
                        let _ = stream.write_all(format!("{head}{answer}").as_bytes());
                    }
                });
            }
        });
        Self { address, got }
    }

    fn wait_for(&self, count: usize) -> Vec<Got> {
        wait_for("requests", || {
            let got = self.got.lock().unwrap();
            (got.len() >= count).then(|| got.clone())
        })
    }
}

fn read_body(stream: &mut impl Read, head: &str) -> Vec<u8> {
    let field = |name: &str| {
        let mut lines = head.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    if field("transfer-encoding:").is_some() {
        let mut body = Vec::new();
        while !body.ends_with(b"0\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            body.push(byte[0]);
        }
        return body;
    }
    let length = field("content-length:").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    body
}

fn start(site: &Site, upstream: SocketAddr, mirror: &str) -> Server {
    let file = site.beside("shortline.toml");
    let text =
        format!("[[route]]\npath = \"/app\"\nupstream = [\"{upstream}\"]\nmirror = {mirror}\n");
    std::fs::write(&file, text).unwrap();
    Server::start(site, &["--config", file.to_str().unwrap()])
}

fn state(server: &Server) -> Value {
    status(server)["mirrors"][0].clone()
}

fn post(server: &Server, framing: &str, body: &[u8]) -> u16 {
    let mut stream = connect(server.address());
    let head = format!(
        "POST /app/form?x=1 HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n{framing}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    parse(&read_to_end(&mut stream)).status
}

#[test]
fn another_server_gets_the_requests_and_nobody_its_responses() {
    let (real, other) = (Keeper::start("real"), Keeper::start("copy"));
    let site = Site::new();
    let server = start(&site, real.address, &format!("\"{}\"", other.address));
    let answer = request(server.address(), "GET", "/app/a?b", "Cookie: a=b\r\n");
    assert_eq!((answer.status, &answer.body[..]), (200, &b"real"[..]));
    assert_eq!(post(&server, "Content-Length: 4", b"body"), 200);
    assert_eq!(
        post(
            &server,
            "Transfer-Encoding: chunked",
            b"4\r\nbody\r\n0\r\n\r\n"
        ),
        200
    );
    let (asked, copied) = (real.wait_for(3), other.wait_for(3));
    let find = |got: &[Got], start: &str| {
        let mut got = got.iter().filter(|(head, _)| head.starts_with(start));
        got.next().unwrap().clone()
    };
    // As the backend got it.
    assert_eq!(
        find(&asked, "GET /app/a?b "),
        find(&copied, "GET /app/a?b ")
    );
    let posts: Vec<_> = copied
        .iter()
        .filter(|(head, _)| head.starts_with("POST /app/form?x=1 "))
        .collect();
    assert_eq!(posts.len(), 2);
    for (head, body) in posts {
        assert_eq!(body, b"body");
        for line in [
            "content-length: 4\r\n",
            "host: shop.example\r\n",
            "x-forwarded-for: 127.0.0.1\r\n",
        ] {
            assert!(head.contains(line), "{head}");
        }
        assert!(!head.contains("transfer-encoding"), "{head}");
    }
    let now = wait_for("answers", || {
        Some(state(&server)).filter(|now| now["answered_total"] == 3)
    });
    assert_eq!(
        (&now["route"], &now["failed_total"]),
        (&"/app".into(), &0.into())
    );
    let metrics = String::from_utf8(get(server.admin.unwrap(), "/metrics").body).unwrap();
    assert!(
        metrics.contains("shortline_mirror_answered_total{route=\"/app\"} 3"),
        "{metrics}"
    );
}

#[test]
fn nginx_gets_a_share_of_the_requests() {
    let address = free();
    let block = format!("server {{ listen {address}; location / {{ return 200; }} }}");
    let Some(nginx) = Nginx::start(address, "$request_method", &block) else {
        return;
    };
    let real = Keeper::start("real");
    let site = Site::new();
    let mirror = format!("{{ url = \"http://{address}\", share = 0.5 }}");
    let server = start(&site, real.address, &mirror);
    for _ in 0..40 {
        assert_eq!(get(server.address(), "/app").body, b"real");
    }
    let copied = wait_for("the last copy", || {
        let now = state(&server);
        (now["in_flight"] == 0).then_some(now["answered_total"].as_u64().unwrap())
    });
    assert!((5..=35).contains(&copied), "{copied}");
    wait_for("nginx's log", || {
        let of_app = |line: &&String| **line == "/app GET";
        (nginx.logged().iter().filter(of_app).count() as u64 == copied).then_some(())
    });
}

#[test]
fn a_mirror_that_is_slow_or_away_harms_no_request() {
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let real = Keeper::start("real");
    let site = Site::new();
    let mirror = format!(
        "{{ url = \"{}\", in-flight-max = 2, body-size-max = \"1KiB\", time-max = \"1h\" }}",
        silent.local_addr().unwrap()
    );
    let server = start(&site, real.address, &mirror);
    for _ in 0..10 {
        assert_eq!(get(server.address(), "/app").body, b"real");
    }
    let now = state(&server);
    assert_eq!(
        (&now["in_flight"], &now["dropped_total"]),
        (&2.into(), &8.into())
    );

    // What is too long gets to the backend whole.
    let site = Site::new();
    let mirror = format!("{{ url = \"{}\", body-size-max = \"1KiB\" }}", free());
    let mut server = start(&site, real.address, &mirror);
    let body = pattern(100_000);
    assert_eq!(post(&server, "Content-Length: 100000", &body), 200);
    let chunked = [b"186a0\r\n", &body[..], b"\r\n0\r\n\r\n"].concat();
    assert_eq!(post(&server, "Transfer-Encoding: chunked", &chunked), 200);
    let got = real.wait_for(12);
    let bodies: Vec<usize> = got[10..].iter().map(|(_, body)| body.len()).collect();
    assert!(bodies[0] == 100_000 && bodies[1] > 100_000, "{bodies:?}");
    assert_eq!(state(&server)["dropped_total"], 2);
    assert_eq!(get(server.address(), "/app").body, b"real");
    wait_for("the failure", || {
        (state(&server)["failed_total"] == 1).then_some(())
    });
    server.line_with("a request failed");
}

#[test]
fn what_cannot_be_copied_is_refused() {
    let site = Site::new();
    for (lines, expected) in [
        ("upstream = [\"a:1\"]\nmirror = \"a\"", "write a:9000"),
        (
            "upstream = [\"a:1\"]\nmirror = 7",
            "must be an address such as",
        ),
        (
            "upstream = [\"a:1\"]\nmirror = { url = \"b:1\", share = 2.0 }",
            "2 is out of range: must be from 0.0 to 1.0",
        ),
        (
            "upstream = [\"a:1\"]\nmirror = { url = \"b:1\", ca = \"a.pem\" }",
            "mirror.ca: is for a server with TLS",
        ),
        (
            "upstream = [\"a:1\"]\nmirror = \"fastcgi://b:1\"",
            "mirror: fastcgi://b:1 speaks FastCGI",
        ),
        (
            "upstream = [\"fastcgi://a:1\"]\nmirror = \"b:1\"",
            "mirror: copies are of HTTP",
        ),
    ] {
        assert_route_is_refused(&site, lines, expected);
    }
}
