//! What a site has of its own: an access log, and limits.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::process::Signal;

use crate::client::{Response, connect, exchange, parse, read_head, read_one};
use crate::process::{Server, Site, wait_for};
use crate::sites::{refused, start, write};

fn get(address: SocketAddr, host: &str, target: &str) -> Response {
    let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    parse(&exchange(address, text))
}

/// The lines of a log once there are so many.
fn lines(site: &Site, name: &str, count: usize) -> Vec<String> {
    wait_for("the lines of a log", || {
        let text = fs::read_to_string(site.beside(name)).ok()?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert!(lines.len() <= count, "{name}: {lines:?}");
        (lines.len() == count).then_some(lines)
    })
}

const LOGS: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n\
    [log]\naccess = \"FOLDER/all.log\"\nformat = \"$host $request_uri\"\n\
    [[site]]\nroot = \"FOLDER/site\"\n\
    [[site]]\nnames = [\"a.example\"]\nroot = \"FOLDER/site\"\n[site.log]\naccess = \"FOLDER/a.log\"\n\
    [[site]]\nnames = [\"b.example\"]\nroot = \"FOLDER/site\"\n[site.log]\naccess = \"FOLDER/b.log\"\nformat = \"json\"\n\
    [[site]]\nnames = [\"c.example\"]\nroot = \"FOLDER/site\"\n[site.log]\naccess = \"off\"\n";

#[test]
fn a_site_has_a_log_of_its_own_or_none() {
    let site = Site::new();
    let mut server = start(&site, LOGS);
    let at = server.address();
    for host in ["a.example", "b.example", "c.example", "d.example"] {
        assert_eq!(get(at, host, "/hello.txt").status, 200);
    }
    assert_eq!(lines(&site, "a.log", 1), ["a.example /hello.txt"]);
    assert_eq!(lines(&site, "all.log", 1), ["d.example /hello.txt"]);
    let json: serde_json::Value = serde_json::from_str(&lines(&site, "b.log", 1)[0]).unwrap();
    assert_eq!(
        (&json["host"], &json["status"]),
        (&"b.example".into(), &200.into())
    );

    // They are rotated together.
    for name in ["a.log", "all.log", "b.log"] {
        fs::rename(site.beside(name), site.beside(&format!("{name}.1"))).unwrap();
    }
    server.signal(Signal::HUP);
    server.line_with("reload");
    wait_for("the new files", || {
        site.beside("b.log").exists().then_some(())
    });
    for host in ["a.example", "b.example", "d.example"] {
        get(at, host, "/");
    }
    for name in ["a.log", "all.log", "b.log"] {
        lines(&site, name, 1);
        lines(&site, &format!("{name}.1"), 1);
    }

    // A reload gives a site another, for connections that are open, too.
    let mut open = connect(at);
    open.write_all(b"GET /hello.txt HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .unwrap();
    read_one(&mut open);
    lines(&site, "a.log", 2);
    write(&site, &LOGS.replace("FOLDER/a.log", "FOLDER/other.log"));
    server.signal(Signal::HUP);
    wait_for("the new log", || {
        site.beside("other.log").exists().then_some(())
    });
    wait_for("a line in it", || {
        open.write_all(b"GET /hello.txt HTTP/1.1\r\nHost: a.example\r\n\r\n")
            .unwrap();
        read_one(&mut open);
        let text = fs::read_to_string(site.beside("other.log")).unwrap();
        (!text.is_empty()).then_some(())
    });
    server.signal(Signal::TERM);
    drop(open);
    assert!(server.wait().success());
}

/// A backend that says how many body bytes came, once it is told to.
struct Backend {
    address: SocketAddr,
    heads: Receiver<String>,
    release: Sender<()>,
}

impl Backend {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, heads) = channel();
        let (release, released) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                answer(stream, &sender, &released);
            }
        });
        Self {
            address,
            heads,
            release,
        }
    }

    fn serve(&self, site: &Site, limits: &str) -> Server {
        let file = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n\
             [[site]]\nnames = [\"a.example\"]\nroot = \"FOLDER/site\"\n[site.limits]\n{limits}\
             [[site.route]]\npath = \"/app\"\nupstream = [\"{0}\"]\n\
             [[site]]\nroot = \"FOLDER/site\"\n[[site.route]]\npath = \"/app\"\nupstream = [\"{0}\"]\n",
            self.address
        );
        start(site, &file)
    }
}

fn answer(mut stream: TcpStream, heads: &Sender<String>, released: &Receiver<()>) {
    let Some(head) = read_head(&mut stream) else {
        return;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    // The test may be over, and the client may have gone.
    let _ = stream.read_exact(&mut body);
    if head.contains("chunked") {
        // It is cut off before its end.
        let _ = stream.read_to_end(&mut body);
        return;
    }
    let is_held = head.contains("/app/held");
    let _ = heads.send(head);
    if is_held {
        let _ = released.recv();
    }
    let text = format!("{} bytes", body.len());
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
}

fn post(address: SocketAddr, host: &str, bytes: usize) -> Response {
    let head = format!(
        "POST /app HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\n"
    );
    parse(&exchange(address, head + &"x".repeat(bytes)))
}

#[test]
fn a_site_limits_the_bodies_of_its_requests() {
    let (site, backend) = (Site::new(), Backend::start());
    let server = backend.serve(&site, "request-size-max = \"1KiB\"\n");
    let at = server.address();
    assert_eq!(post(at, "a.example", 1024).status, 200);
    assert_eq!(post(at, "a.example", 1025).status, 413);
    assert_eq!(post(at, "other.example", 1025).status, 200);
    let chunk = format!("400\r\n{}\r\n", "x".repeat(1024));
    let chunked = format!(
        "POST /app HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n"
    );
    assert_eq!(parse(&exchange(at, chunked)).status, 413);
    // What no backend gets is not too large for it, but is for the site.
    let file = "PUT /hello.txt HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nContent-Length: 2000\r\n\r\n";
    assert_eq!(parse(&exchange(at, file)).status, 413);
}

#[test]
fn a_site_answers_so_many_requests_at_a_time() {
    let (site, backend) = (Site::new(), Backend::start());
    let mut server = backend.serve(&site, "requests-max = 1\n");
    let at = server.address();
    let held = std::thread::spawn(move || get(at, "a.example", "/app/held"));
    backend
        .heads
        .recv_timeout(crate::process::PATIENCE)
        .unwrap();
    let refused = get(at, "a.example", "/hello.txt");
    assert_eq!(
        (refused.status, refused.field("retry-after")),
        (503, Some("1"))
    );
    server.line_with("requests-max of the site");
    // A reload does not forget those that are there.
    server.signal(Signal::HUP);
    server.line_with("reload");
    assert_eq!(get(at, "a.example", "/hello.txt").status, 503);
    assert_eq!(get(at, "other.example", "/hello.txt").status, 200);
    backend.release.send(()).unwrap();
    assert_eq!(held.join().unwrap().status, 200);
    wait_for("the place to be free", || {
        (get(at, "a.example", "/hello.txt").status == 200).then_some(())
    });
}

#[test]
fn a_response_begins_in_the_time_of_its_site() {
    let (site, backend) = (Site::new(), Backend::start());
    let mut server = backend.serve(&site, "request-time-max = \"200ms\"\n");
    let late = get(server.address(), "a.example", "/app/held");
    assert_eq!(late.status, 504);
    server.line_with("request-time-max of the site");
    assert_eq!(get(server.address(), "a.example", "/hello.txt").status, 200);
}

#[test]
fn what_holds_before_the_site_is_known_is_no_limit_of_a_site() {
    let site = Site::new();
    for key in [
        "connections-max = 5",
        "idle-time-max = \"5s\"",
        "header-size-max = \"16KiB\"",
    ] {
        let told = refused(
            &site,
            &format!("[[site]]\nroot = \"FOLDER/site\"\n[site.limits]\n{key}\n"),
        );
        let name = key.split(' ').next().unwrap();
        assert!(
            told.contains(&format!("here it is `{name}` of `[limits]`: it holds")),
            "{told}"
        );
    }
}
