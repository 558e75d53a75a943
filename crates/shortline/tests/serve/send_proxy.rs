//! `send-proxy`: the server of a route is told who the client is, by the PROXY protocol, before anything else.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use crate::admin::status;
use crate::client::{connect, read_one};
use crate::nginx::{Nginx, free};
use crate::process::{PROGRAM, Server, Site, wait_for};
use crate::tls;

/// Who nginx takes for the client, which connection it is of its own, and which request on that.
#[derive(Debug, PartialEq, Eq)]
struct View {
    client: String,
    connection: String,
    request: String,
}

const TELL: &str = "location / {
    return 200 '$proxy_protocol_addr:$proxy_protocol_port>$proxy_protocol_server_addr:$proxy_protocol_server_port \
     $connection $connection_requests';
}";

/// A server that is told by a proxy who its clients are, and tells its own server so.
fn serve(site: &Site, upstream: &str, keys: &str) -> Server {
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nproxy-from = [\"127.0.0.1\"]\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\npath = \"/\"\nupstream = [{upstream}]\n{keys}\n"
    );
    let file = site.beside("shortline.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(PROGRAM);
    Server::spawn(command.arg("serve").arg("--config").arg(file))
}

/// A connection of this client, with what a proxy says of it.
fn connected(server: &Server, client: SocketAddr) -> TcpStream {
    connected_to(server.address(), client)
}

fn connected_to(server: SocketAddr, client: SocketAddr) -> TcpStream {
    let mut stream = connect(server);
    let line = format!(
        "PROXY TCP4 {} 198.51.100.1 {} 443\r\n",
        client.ip(),
        client.port()
    );
    stream.write_all(line.as_bytes()).unwrap();
    stream
}

fn ask(stream: &mut TcpStream) -> View {
    stream
        .write_all(b"GET /who HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let response = read_one(stream);
    assert_eq!(response.status, 200, "{response:?}");
    let text = String::from_utf8(response.body).unwrap();
    let mut words = text.split(' ').map(str::to_owned);
    let mut word = || words.next().unwrap();
    View {
        client: word(),
        connection: word(),
        request: word(),
    }
}

fn of(client: SocketAddr) -> String {
    format!("{client}>198.51.100.1:443")
}

#[test]
fn a_connection_to_nginx_is_for_one_connection_of_one_client() {
    let address = free();
    let block = format!("server {{ listen {address} proxy_protocol; {TELL} }}");
    let Some(_nginx) = Nginx::start(address, "", &block) else {
        return;
    };
    for version in ["v1", "v2"] {
        let site = Site::new();
        let upstream = format!("{{ url = \"{address}\", send-proxy = \"{version}\" }}");
        let server = serve(&site, &upstream, "");
        let [one, other] = ["192.0.2.1:1000", "192.0.2.2:1000"].map(|at| at.parse().unwrap());
        let mut first = connected(&server, one);
        let told = ask(&mut first);
        assert_eq!(
            (told.client.as_str(), told.request.as_str()),
            (&*of(one), "1")
        );
        // It is kept, for this client.
        let again = ask(&mut first);
        assert_eq!(again.connection, told.connection);
        assert_eq!(again.request, "2");
        let another = ask(&mut connected(&server, other));
        assert_eq!(
            (another.client.as_str(), another.request.as_str()),
            (&*of(other), "1")
        );
        // Another connection of a client has another port.
        let later = SocketAddr::new(one.ip(), 1001);
        assert_eq!(ask(&mut connected(&server, later)).client, of(later));
        assert_eq!(ask(&mut first).connection, told.connection);
    }
}

#[test]
fn many_clients_at_once_are_not_taken_for_each_other() {
    let address = free();
    let block = format!("server {{ listen {address} proxy_protocol; {TELL} }}");
    let Some(_nginx) = Nginx::start(address, "", &block) else {
        return;
    };
    let site = Site::new();
    // Fewer connections than clients.
    let upstream = format!("{{ url = \"{address}\", send-proxy = \"v2\", connections-max = 4 }}");
    let server = serve(&site, &upstream, "idle-connections-max = 3");
    std::thread::scope(|scope| {
        for number in 1..=12 {
            let server = server.address();
            scope.spawn(move || {
                let client = SocketAddr::new([192, 0, 2, number].into(), 4000);
                let mut stream = connected_to(server, client);
                for _ in 0..20 {
                    assert_eq!(ask(&mut stream).client, of(client));
                }
            });
        }
    });
    let backend = &status(&server)["server"]["backends"][0];
    assert_eq!(backend["requests_total"], 240);
    assert!(
        backend["connections_open"].as_u64().unwrap() <= 4,
        "{backend}"
    );
}

#[test]
fn the_client_is_announced_before_tls_and_the_health_check_is_our_own() {
    let site = Site::new();
    let (cert, key) = tls::write_certificate(&site);
    let address = free();
    let block = format!(
        "server {{ listen {address} ssl proxy_protocol; ssl_certificate {}; ssl_certificate_key {}; {TELL} }}",
        cert.display(),
        key.display()
    );
    let Some(nginx) = Nginx::start(address, "[$proxy_protocol_addr]", &block) else {
        return;
    };
    for version in ["v1", "v2"] {
        let upstream = format!(
            "{{ url = \"https://localhost:{}\", send-proxy = \"{version}\" }}",
            address.port()
        );
        let keys = format!(
            "upstream-ca = \"{}\"\nhealth-path = \"/{version}\"\nhealth-every = \"1s\"",
            cert.display()
        );
        let server = serve(&site, &upstream, &keys);
        let client = "192.0.2.1:1000".parse().unwrap();
        assert_eq!(ask(&mut connected(&server, client)).client, of(client));
        wait_for("a health check", || {
            let logged = nginx.logged();
            logged
                .iter()
                .find(|line| **line == format!("/{version} [-]"))
                .map(drop)
        });
        assert_eq!(status(&server)["server"]["backends"][0]["state"], "up");
    }
}
