//! Services that DNS names (SRV): `upstream = ["srv+http://_http._tcp.example.test"]`, with dnsmasq as the name server.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};

use crate::admin::status;
use crate::client::get;
use crate::nginx::free;
use crate::process::{Server, Site, assert_route_is_refused, wait_for};
use crate::routes::application;

/// A name server; killed when the test lets go of it.
struct NameServer {
    child: Child,
    address: SocketAddr,
}

impl NameServer {
    /// One with these records, as dnsmasq takes them, that hold for so many seconds. `None`, with a line that says so, if there is no
    /// dnsmasq.
    fn start(address: SocketAddr, ttl_s: u32, records: &[String]) -> Option<Self> {
        let records = records.iter().map(|record| format!("--srv-host={record}"));
        let port = format!("--port={}", address.port());
        let ttl = format!("--local-ttl={ttl_s}");
        let arguments: Vec<String> = records.collect();
        let programs = ["dnsmasq", "/usr/sbin/dnsmasq"].into_iter();
        let mut started = programs.map(|program| {
            Command::new(program)
                .args([
                    "--keep-in-foreground",
                    "--conf-file=/dev/null",
                    "--no-resolv",
                    "--no-hosts",
                ])
                .args([
                    "--listen-address=127.0.0.1",
                    "--bind-interfaces",
                    "--pid-file=",
                    "--user=",
                ])
                .args([&port, &ttl])
                .args(&arguments)
                .stderr(Stdio::null())
                .spawn()
        });
        let Some(child) = started.find_map(Result::ok) else {
            eprintln!("skipped: no dnsmasq; scripts/setup installs it");
            return None;
        };
        let server = Self { child, address };
        wait_for("dnsmasq", || server.answers().then_some(()));
        Some(server)
    }

    fn answers(&self) -> bool {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.address).unwrap();
        let patience = std::time::Duration::from_millis(200);
        socket.set_read_timeout(Some(patience)).unwrap();
        // A question for the root's addresses.
        let question = b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\0\0\x01\0\x01";
        socket.send(question).is_ok() && socket.recv(&mut [0; 512]).is_ok()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        // Already gone is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const NAME: &str = "_http._tcp.example.test";

fn record(server: SocketAddr, priority: u16, weight: u16) -> String {
    format!("{NAME},localhost,{},{priority},{weight}", server.port())
}

fn start(site: &Site, dns: SocketAddr, keys: &str) -> Server {
    let file = site.beside("shortline.toml");
    let text = format!(
        "[[route]]\npath = \"/app\"\nupstream = [\"srv+http://{NAME}\"]\ndns-servers = [\"{dns}\"]\n{keys}\n"
    );
    std::fs::write(&file, text).unwrap();
    Server::start(site, &["--config", file.to_str().unwrap()])
}

/// The servers of the route, with their weights and requests.
fn servers(server: &Server) -> Vec<(String, f64, u64)> {
    let backends = status(server)["server"]["backends"].clone();
    let backends = backends.as_array().unwrap().iter();
    let told = backends.map(|one| {
        (
            one["address"].as_str().unwrap().to_owned(),
            one["weight"].as_f64().unwrap(),
            one["requests_total"].as_u64().unwrap(),
        )
    });
    let mut told: Vec<_> = told.collect();
    told.sort_by(|one, other| one.0.cmp(&other.0));
    told
}

fn requests_to(server: &Server, backend: SocketAddr) -> u64 {
    let label = format!("localhost:{}", backend.port());
    let servers = servers(server);
    let found = servers.iter().find(|(address, _, _)| *address == label);
    found.unwrap_or_else(|| panic!("{label}: {servers:?}")).2
}

#[test]
fn the_servers_that_dns_names_are_asked_by_priority_and_weight() {
    let (heavy, light, reserve) = (application(), application(), application());
    let records = [
        record(heavy, 10, 30),
        record(light, 10, 10),
        record(reserve, 20, 100),
    ];
    let Some(dns) = NameServer::start(free(), 300, &records) else {
        return;
    };
    let site = Site::new();
    let server = start(&site, dns.address, "");
    // The first request, too: it waits for the first lookup.
    for _ in 0..40 {
        assert_eq!(get(server.address(), "/app/small").body, b"small");
    }
    let asked = [heavy, light, reserve].map(|backend| requests_to(&server, backend));
    // How many exactly depends on when the last request ended.
    assert!(asked[0] >= asked[1] && asked[1] > 0, "{asked:?}");
    assert_eq!((asked.iter().sum::<u64>(), asked[2]), (40, 0));
    let mut weights: Vec<f64> = servers(&server).iter().map(|one| one.1).collect();
    weights.sort_by(f64::total_cmp);
    assert_eq!(weights, [333.0, 1000.0, 1000.0]);
}

#[test]
fn those_of_the_next_priority_are_asked_if_none_before_works() {
    let (nobody, reserve) = (free(), application());
    let records = [record(nobody, 1, 1), record(reserve, 2, 1)];
    let Some(dns) = NameServer::start(free(), 300, &records) else {
        return;
    };
    let site = Site::new();
    let server = start(&site, dns.address, "failures-max = 1");
    for _ in 0..5 {
        assert_eq!(get(server.address(), "/app/small").body, b"small");
    }
    assert_eq!(requests_to(&server, reserve), 5);
}

#[test]
fn a_change_counts_when_the_records_no_longer_hold_and_a_failure_changes_nothing() {
    let (before, after) = (application(), application());
    let address = free();
    let Some(dns) = NameServer::start(address, 1, &[record(before, 1, 1)]) else {
        return;
    };
    let site = Site::new();
    let mut server = start(&site, address, "connect-time-max = \"1s\"");
    assert_eq!(get(server.address(), "/app/small").status, 200);
    drop(dns);
    server.line_with("cannot be looked up");
    assert_eq!(
        get(server.address(), "/app/small").status,
        200,
        "the last ones stay"
    );
    let _dns = NameServer::start(address, 1, &[record(after, 1, 1), record(before, 2, 1)]);
    wait_for("the new server", || {
        assert_eq!(get(server.address(), "/app/small").status, 200);
        (servers(&server).len() == 2 && requests_to(&server, after) > 0).then_some(())
    });
}

#[test]
fn many_servers_come_by_tcp() {
    let backend = application();
    // More than a datagram of 512 bytes; nobody listens at the others, which are of a later priority.
    let others = (1..=60).map(|port| format!("{NAME},localhost,{port},7,1"));
    let records: Vec<String> = others.chain([record(backend, 1, 1)]).collect();
    let Some(dns) = NameServer::start(free(), 300, &records) else {
        return;
    };
    let site = Site::new();
    let server = start(&site, dns.address, "");
    assert_eq!(get(server.address(), "/app/small").body, b"small");
    assert_eq!(servers(&server).len(), 61);
    assert_eq!(requests_to(&server, backend), 1);
}

#[test]
fn a_service_that_is_not_there_is_told_and_its_requests_get_503() {
    let Some(dns) = NameServer::start(free(), 1, &[]) else {
        return;
    };
    let site = Site::new();
    let mut server = start(&site, dns.address, "");
    // It may be told before the address is.
    let told = format!("srv+http://{NAME}: cannot be looked up");
    if !server.said.iter().any(|line| line.contains(&told)) {
        server.line_with(&told);
    }
    assert_eq!(get(server.address(), "/app/small").status, 503);
}

#[test]
fn what_is_no_service_is_refused() {
    let site = Site::new();
    for (lines, expected) in [
        (
            "upstream = [\"srv+http://a:80\"]",
            "the records of the name have the port",
        ),
        (
            "upstream = [\"srv+unix:/a\"]",
            "srv+ is for http://, https:// and h2c://",
        ),
        ("upstream = [\"srv+https://a\"]", "give upstream-ca"),
        (
            "upstream = [\"srv+h2c://a\"]\nhttp = \"1\"",
            "http: \"1\" contradicts upstream srv+h2c://a",
        ),
        (
            "upstream = [{ url = \"srv+http://a\", id = \"a\" }]\nsticky-cookie = \"a\"",
            "upstream: id: is for one server",
        ),
        (
            "upstream = [\"a:1\"]\ndns-servers = [\"10.0.0.2\"]",
            "dns-servers: are asked for services",
        ),
        (
            "upstream = [\"srv+http://a\"]\ndns-servers = [\"dns.example\"]",
            "`dns.example` is no address of a name server",
        ),
        (
            "upstream = [\"srv+http://a\"]\ndns-servers = []",
            "dns-servers: names none",
        ),
    ] {
        assert_route_is_refused(&site, lines, expected);
    }
}
