//! `proxy-from`: a proxy says who the client is, by the PROXY protocol, before anything else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::admin::status;
use crate::client::{Response, connect, get, parse, read_to_end};
use crate::process::{PROGRAM, Server, Site, shortline, wait_for};
use crate::routes::application;
use crate::tls;

const CLIENT: &str = "192.0.2.7";

fn line(client: &str) -> Vec<u8> {
    format!("PROXY TCP4 {client} 198.51.100.1 5000 443\r\n").into_bytes()
}

fn binary(client: [u8; 4], more: &[u8]) -> Vec<u8> {
    let length = 12 + more.len() as u8;
    [
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0",
        &[length][..],
        &client,
        &[198, 51, 100, 1, 0x13, 0x88, 1, 0xbb],
        more,
    ]
    .concat()
}

/// What the application was sent, with `header` before the request.
fn told(address: SocketAddr, header: &[u8]) -> String {
    String::from_utf8(ask(address, header, "/app").unwrap().body).unwrap()
}

/// `None`: the connection was closed without an answer.
fn ask(address: SocketAddr, header: &[u8], target: &str) -> Option<Response> {
    let mut stream = connect(address);
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    // The server may close before it has read everything.
    let _ = stream.write_all(&[header, request.as_bytes()].concat());
    let answer = read_to_end(&mut stream);
    (!answer.is_empty()).then(|| parse(&answer))
}

fn serve(site: &Site, from: &str, keys: &str) -> Server {
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nproxy-from = [{from}]\n{keys}\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [log]\naccess = \"{}\"\n[site]\nroot = \"{}\"\n[[site.rule]]\npath = \"/hello.txt\"\ndeny = [\"{CLIENT}\"]\n\
         [[route]]\npath = \"/app\"\nupstream = [\"{}\"]\n",
        site.beside("access.log").display(),
        site.root().display(),
        application()
    );
    let file = site.beside("shortline.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(PROGRAM);
    Server::spawn(command.arg("serve").arg("--config").arg(file))
}

#[test]
fn the_client_that_a_proxy_announces_counts_everywhere() {
    let site = Site::new();
    let server = serve(&site, "\"127.0.0.0/8\"", "");
    let at = server.address();
    for header in [
        line(CLIENT),
        binary([192, 0, 2, 7], &[]),
        binary([192, 0, 2, 7], &[4, 0, 1, 0]),
    ] {
        let head = told(at, &header);
        assert!(
            head.contains(&format!("\r\nx-forwarded-for: {CLIENT}\r\n")),
            "{head}"
        );
        assert_eq!(ask(at, &header, "/hello.txt").unwrap().status, 403);
    }
    for header in [line("192.0.2.8"), b"PROXY UNKNOWN\r\n".to_vec()] {
        assert_eq!(ask(at, &header, "/hello.txt").unwrap().status, 200);
    }
    // A proxy's own check is its own.
    let own = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
    assert!(told(at, own).contains("\r\nx-forwarded-for: 127.0.0.1\r\n"));
    wait_for("the log's lines", || {
        let log = std::fs::read_to_string(site.beside("access.log")).unwrap_or_default();
        let of = |client: &str| {
            log.lines()
                .filter(|line| line.starts_with(&format!("{client} ")))
                .count()
        };
        ((of(CLIENT), of("192.0.2.8")) == (6, 1)).then_some(())
    });
}

#[test]
fn a_header_may_come_in_pieces() {
    let site = Site::new();
    let server = serve(&site, "\"127.0.0.1\"", "");
    for header in [line(CLIENT), binary([192, 0, 2, 7], &[4, 0, 1, 0])] {
        let mut stream = connect(server.address());
        stream.set_nodelay(true).unwrap();
        for byte in header {
            stream.write_all(&[byte]).unwrap();
        }
        stream
            .write_all(b"GET /app HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .unwrap();
        let body = parse(&read_to_end(&mut stream)).body;
        let head = String::from_utf8(body).unwrap();
        assert!(head.contains(CLIENT), "{head}");
    }
}

#[test]
fn who_says_nothing_or_something_else_gets_nothing() {
    let site = Site::new();
    let mut server = serve(&site, "\"127.0.0.1\"", "");
    for header in [&b""[..], b"PROXY TCP4 a b 1 2\r\n", b"PROXY TCP4 192.0.2.7"] {
        assert!(ask(server.address(), header, "/app").is_none());
    }
    let failed = &status(&server)["server"]["connections_failed_total"];
    assert_eq!(*failed, 3);

    // An address that is for other proxies is closed to everybody else, whatever they announce.
    let text = std::fs::read_to_string(site.beside("shortline.toml")).unwrap();
    let text = text.replace("[\"127.0.0.1\"]", "[\"10.0.0.0/8\"]");
    std::fs::write(site.beside("shortline.toml"), text).unwrap();
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    wait_for("the new networks", || {
        ask(server.address(), &line(CLIENT), "/app")
            .is_none()
            .then_some(())
    });
    server.line_with("its address is not in proxy-from");
}

#[test]
fn a_proxy_that_is_silent_is_closed() {
    let site = Site::new();
    let keys = "[limits]\nheader-time-max = \"100ms\"";
    let server = serve(&site, "\"127.0.0.1\"", keys);
    let mut stream = connect(server.address());
    stream.write_all(b"PROXY TCP4 ").unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn what_counts_by_address_counts_by_client() {
    let site = Site::new();
    let keys = "[limits]\nconnections-per-address-max = 1";
    let server = serve(&site, "\"127.0.0.1\"", keys);
    let mut held: Vec<TcpStream> = Vec::new();
    for client in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        let mut stream = connect(server.address());
        let request = [
            &line(client),
            &b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        ]
        .concat();
        stream.write_all(&request).unwrap();
        assert!(stream.peek(&mut [0]).unwrap() > 0, "{client}");
        held.push(stream);
    }
    assert!(ask(server.address(), &line("192.0.2.1"), "/hello.txt").is_none());
}

#[test]
fn tls_begins_behind_the_header() {
    let site = Site::new();
    let (cert, key) = tls::write_certificate(&site);
    let keys = format!(
        "tls-cert = \"{}\"\ntls-key = \"{}\"",
        cert.display(),
        key.display()
    );
    let server = serve(&site, "\"127.0.0.1\"", &keys);
    let client = tls::client_config(&site, rustls::ALL_VERSIONS, "http/1.1");
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(client, name).unwrap();
    let mut socket = connect(server.address());
    socket.write_all(&line(CLIENT)).unwrap();
    let mut stream = StreamOwned::new(connection, socket);
    stream
        .write_all(b"GET /app HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let head = String::from_utf8(parse(&read_to_end(&mut stream)).body).unwrap();
    assert!(
        head.contains(&format!("\r\nx-forwarded-for: {CLIENT}\r\n")),
        "{head}"
    );
}

/// HAProxy in front of a server; killed when the test lets go of it.
struct HaProxy {
    child: Child,
    addresses: [SocketAddr; 2],
}

impl HaProxy {
    /// Announces by version 1 at the first address, by version 2 at the second. `None`, with a line that says so, if there is
    /// no HAProxy.
    fn start(site: &Site, server: SocketAddr) -> Option<Self> {
        let free = || {
            TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
        };
        let addresses = [free(), free()];
        let mut text =
            "defaults\n mode tcp\n timeout connect 10s\n timeout client 30s\n timeout server 30s\n"
                .to_owned();
        for (address, option) in addresses.iter().zip(["send-proxy", "send-proxy-v2"]) {
            text += &format!(
                "listen {option}\n bind {address}\n server s {server} {option} source 127.0.0.9\n"
            );
        }
        let file = site.beside("haproxy.cfg");
        std::fs::write(&file, text).unwrap();
        let program = ["/usr/sbin/haproxy", "haproxy"]
            .into_iter()
            .find_map(|program| {
                let mut command = Command::new(program);
                command.arg("-db").arg("-f").arg(&file);
                command
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .ok()
            });
        let Some(child) = program else {
            eprintln!("skipped: no haproxy; scripts/setup installs it");
            return None;
        };
        let haproxy = Self { child, addresses };
        for address in addresses {
            wait_for("haproxy", || TcpStream::connect(address).ok());
        }
        Some(haproxy)
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        // Already gone is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn clients_behind_haproxy_are_known() {
    let site = Site::new();
    let server = serve(&site, "\"127.0.0.9\"", "");
    let Some(haproxy) = HaProxy::start(&site, server.address()) else {
        return;
    };
    for address in haproxy.addresses {
        let head = String::from_utf8(get(address, "/app").body).unwrap();
        assert!(
            head.contains("\r\nx-forwarded-for: 127.0.0.1\r\n"),
            "{head}"
        );
    }
    assert!(
        ask(server.address(), &line(CLIENT), "/app").is_none(),
        "HAProxy alone may connect"
    );
}

#[test]
fn an_address_for_no_proxy_is_refused() {
    let site = Site::new();
    let file = site.beside("a.toml");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\nproxy-from = []\n[site]\nroot = \".\"\n";
    std::fs::write(&file, text).unwrap();
    let ended = shortline(&site.root(), &["serve", "--config", file.to_str().unwrap()]);
    assert_eq!(ended.code, 2);
    assert!(
        ended
            .stderr
            .contains("proxy-from: is empty: name the proxies' networks"),
        "{}",
        ended.stderr
    );
}
