//! Certificates by themselves: ordered from a real ACME server (Pebble), kept, renewed, shared; and authorities that lie.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustix::process::Signal;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use shortline_base::port::free_port;

use crate::admin::status;
use crate::client::{Response, exchange, get, parse};
use crate::pebble::{Pebble, kept, listen};
use crate::process::{PROGRAM, Server, Site, wait_for};
use crate::sites::{over_tls, refused, start, write};

/// An address of the loopback interface.
pub fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// A page in plain HTTP.
pub fn plain(port: u16, host: &str) -> Response {
    parse(&exchange(
        at(port),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
    ))
}

/// A site with certificates by themselves.
pub fn auto(names: &str) -> String {
    format!("[[site]]\nnames = [{names}]\nroot = \"FOLDER/site\"\ntls = \"auto\"\n")
}

/// Starts a server that is told of, with its admin endpoint.
pub fn begin(site: &Site, file: &str) -> Server {
    let mut server = start(site, file);
    server.line_with("uplink");
    server
}

/// The orders that brought a certificate, and those that did not.
pub fn orders(server: &Server) -> (u64, u64) {
    let orders = &status(server)["certificates"]["orders"];
    let count = |key: &str| orders[key].as_u64().unwrap();
    (count("got_total"), count("failed_total"))
}

/// Orders a certificate for each of two names, checked by `challenge`.
fn order_by(challenge: &str) {
    let site = Site::new();
    let Some(pebble) = Pebble::start(&site, 86_400) else {
        return;
    };
    let acme = pebble.table(&format!(
        "challenges = [\"{challenge}\"]\ncontact = [\"a@example.org\"]"
    ));
    let names = "\"one.example\", \"www.one.example\"";
    let file = format!("{}{acme}{}", pebble.listen(), auto(names));
    let mut server = begin(&site, &file);
    server.line_with("no certificate yet for one.example, www.one.example: until there is one");
    let root = pebble.root(&site);
    for name in ["one.example", "www.one.example"] {
        wait_for("a certificate", || {
            over_tls(at(pebble.tls), &root, (name, name)).ok()
        });
        // From now on there is HTTPS to be sent to.
        assert_eq!(plain(pebble.http, name).status, 308);
    }
    assert!(over_tls(at(pebble.tls), &root, ("two.example", "two.example")).is_err());
    wait_for("both orders", || (orders(&server).0 == 2).then_some(()));
    let told = status(&server)["certificates"]["all"].clone();
    assert_eq!(told[0]["name"], "one.example");
    let left_s = told[0]["expires_in_seconds"].as_i64().unwrap();
    assert!((80_000..=86_400).contains(&left_s), "{told}");
    let metrics = get(server.admin.unwrap(), "/metrics").body;
    let metrics = String::from_utf8(metrics).unwrap();
    for line in [
        "shortline_certificate_expires_seconds{name=\"www.one.example\"} 8",
        "shortline_certificate_late{name=\"one.example\"} 0",
        "shortline_certificate_orders_total{result=\"got\"} 2",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    // Challenges are gone, and keys are nobody else's.
    let folder = std::fs::read_dir(site.beside("state"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    assert_eq!(
        std::fs::read_dir(folder.join("challenges"))
            .unwrap()
            .count(),
        0
    );
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("certificates/one.example.pem")), 0o600);
    assert_eq!(mode(&folder.join("account.json")), 0o600);

    // A restart has what it needs, even if the authority is gone; a reload orders for the new name only.
    drop(server);
    let mut server = begin(&site, &file);
    let asked = over_tls(at(pebble.tls), &root, ("one.example", "one.example")).unwrap();
    assert_eq!(asked.body, b"<p>index\n");
    write(&site, &format!("{file}{}", auto("\"two.example\"")));
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    wait_for("the new name", || {
        over_tls(at(pebble.tls), &root, ("two.example", "two.example")).ok()
    });
    wait_for("its order", || (orders(&server).0 == 1).then_some(()));
    let asked = over_tls(at(pebble.tls), &root, ("one.example", "two.example")).unwrap();
    assert_eq!(asked.status, 421);
}

#[test]
fn a_text_over_http_brings_a_certificate_for_each_name() {
    order_by("http-01");
}

#[test]
fn a_certificate_in_a_handshake_brings_a_certificate_for_each_name() {
    order_by("tls-alpn-01");
}

#[test]
fn a_certificate_is_renewed_in_time_and_the_old_one_revoked_if_asked() {
    let site = Site::new();
    let Some(pebble) = Pebble::start(&site, 12) else {
        return;
    };
    let acme = pebble.table("revoke-replaced = true\nkey-type = \"p384\"");
    let file = format!("{}{acme}{}", pebble.listen(), auto("\"one.example\""));
    let mut server = begin(&site, &file);
    let first = wait_for("a certificate", || kept(&site, "one.example"));
    server.line_with("the one before is revoked");
    assert!(pebble.has_revoked(&first));
    let now = kept(&site, "one.example").unwrap();
    assert!(now != first && !pebble.has_revoked(&now));
    let root = pebble.root(&site);
    let asked = over_tls(at(pebble.tls), &root, ("one.example", "one.example"));
    assert_eq!(asked.unwrap().status, 200);
}

#[test]
fn the_authoritys_advice_brings_a_renewal_at_once() {
    let site = Site::new();
    let Some(pebble) = Pebble::start(&site, 86_400) else {
        return;
    };
    if !pebble.has_advice() {
        println!(
            "skipped: this pebble gives no advice on renewal; `scripts/pebble/build` builds one that does, with go"
        );
        return;
    }
    let file = format!(
        "{}{}{}",
        pebble.listen(),
        pebble.table(""),
        auto("\"one.example\"")
    );
    let server = begin(&site, &file);
    let first = wait_for("a certificate", || kept(&site, "one.example"));
    drop(server);
    let path = std::fs::read_dir(site.beside("state"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let pem = std::fs::read_to_string(path.join("certificates/one.example.pem")).unwrap();
    let chain = &pem[pem.find("-----BEGIN CERTIFICATE-----").unwrap()..];
    let end = chain.find("-----END CERTIFICATE-----").unwrap();
    let leaf = format!("{}-----END CERTIFICATE-----\n", &chain[..end]);
    pebble.advise(&leaf, "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z");
    let server = begin(&site, &file);
    let second = wait_for("a renewal", || {
        kept(&site, "one.example").filter(|now| *now != first)
    });
    let root = pebble.root(&site);
    wait_for("its use", || {
        let asked = over_tls(at(pebble.tls), &root, ("one.example", "one.example"));
        (asked.is_ok() && orders(&server).0 == 1).then_some(())
    });
    // What it advises for the new one is not yet.
    assert_eq!(kept(&site, "one.example"), Some(second));
}

#[test]
fn of_two_processes_on_one_folder_one_orders_and_both_serve_it() {
    let site = Site::new();
    let Some(pebble) = Pebble::start(&site, 86_400) else {
        return;
    };
    // Whichever orders: the authority looks at the first, which answers for the other.
    let acme = pebble.table("challenges = [\"http-01\"]");
    let names = auto("\"one.example\", \"two.example\"");
    let [http, tls] = [(); 2].map(|()| free_port().unwrap());
    let one = begin(&site, &format!("{}{acme}{names}", pebble.listen()));
    let two = begin(&site, &format!("{}{acme}{names}", listen(http, tls)));
    let root = pebble.root(&site);
    for name in ["one.example", "two.example"] {
        for port in [pebble.tls, tls] {
            wait_for("a certificate", || {
                over_tls(at(port), &root, (name, name)).ok()
            });
        }
    }
    wait_for("the orders", || {
        (orders(&one).0 + orders(&two).0 == 2).then_some(())
    });
    assert_eq!((orders(&one).1, orders(&two).1), (0, 0));
}

#[test]
fn a_name_that_cannot_be_checked_is_told_and_the_rest_goes_on() {
    let site = Site::new();
    let Some(pebble) = Pebble::start(&site, 86_400) else {
        return;
    };
    // The authority looks where nobody is.
    let [http, tls] = [(); 2].map(|()| free_port().unwrap());
    let file = format!(
        "{}{}{}",
        listen(http, tls),
        pebble.table(""),
        auto("\"one.example\"")
    );
    let mut server = begin(&site, &file);
    let line = server.line_with("certificate for one.example: ");
    assert!(
        line.contains("there is none yet; next attempt in "),
        "{line}"
    );
    assert!(line.contains("onnect"), "{line}");
    assert_eq!(plain(http, "one.example").body, b"<p>index\n");
    let told = status(&server)["certificates"]["all"][0].clone();
    assert!(told["is_there"] == false && told["failures"] == 1, "{told}");
    assert!(
        told["failure"].as_str().unwrap().contains("onnect"),
        "{told}"
    );
    assert!(over_tls(at(tls), &pebble.ca, ("one.example", "one.example")).is_err());
    // A restart in a loop does not ask more often.
    drop(server);
    let mut server = begin(&site, &file);
    server.line_with("no certificate yet");
    let told = status(&server)["certificates"]["all"][0].clone();
    assert_eq!(told["failures"], 1, "{told}");
    assert_eq!(orders(&server), (0, 0));
}

/// An authority that answers each connection with these bytes, and again and again with others.
fn liar(site: &Site, answer: &'static [u8], again: &'static [u8]) -> u16 {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(site.beside("liar.crt"), made.cert.pem()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap();
    let chain = vec![made.cert.der().clone()];
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, socket);
            // A client that has gone is what this is for.
            let _ = stream.read(&mut [0; 4096]);
            let mut sent = stream.write_all(answer);
            while sent.is_ok() && !again.is_empty() {
                sent = stream.write_all(again);
            }
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    port
}

#[test]
fn an_authority_that_lies_costs_a_line_and_nothing_else() {
    const ENDLESS: &[u8] = &[b'7'; 16 << 10];
    for (answer, again, told) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nnonsense"[..], &b""[..], "does not answer as ACME servers do"),
        (b"HTTP/1.1 200 OK\r\n\r\n{\"newNonce\":\"", ENDLESS, "limit exceeded"),
        (b"HTTP/1.1 200 OK\r\nX: ", ENDLESS, "too large"),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\n<p>\n", b"", "answers 500"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 78\r\n\r\n\
              {\"newNonce\":\"http://127.0.0.1:1/\",\"newAccount\":\"http://a/\",\"newOrder\":\"http://a/\"}",
            b"",
            "localhost",
        ),
        (b"", b"", "localhost: "),
    ] {
        let site = Site::new();
        let port = liar(&site, answer, again);
        let [http, tls] = [(); 2].map(|()| free_port().unwrap());
        let acme = format!(
            "[acme]\ndirectory = \"https://localhost:{port}/dir\"\nca = \"FOLDER/liar.crt\"\nstate = \"FOLDER/state\"\n"
        );
        let mut server = begin(&site, &format!("{}{acme}{}", listen(http, tls), auto("\"one.example\"")));
        let line = server.line_with("certificate for one.example: ");
        assert!(line.contains("next attempt in"), "{line}");
        assert!(line.contains(told) || told == "localhost", "{line}");
        assert_eq!(plain(http, "one.example").status, 200);
    }
}

#[test]
fn the_server_answers_an_authoritys_handshake_only_while_there_is_an_order() {
    let site = Site::new();
    let server = crate::tls::start(&site, &[]);
    let config = crate::tls::client_config(&site, rustls::ALL_VERSIONS, "acme-tls/1");
    assert!(crate::tls::handshake(server.address(), config).is_err());
    let token = get(server.address(), "/.well-known/acme-challenge/abc");
    assert_eq!(token.status, 400, "plain HTTP on a TLS port");
}

#[test]
fn what_cannot_be_ordered_is_refused_with_a_remedy() {
    let site = Site::new();
    let head =
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[acme]\nstate = \"FOLDER/state\"\n";
    for (file, told) in [
        (
            format!("{head}[[site]]\nroot = \"FOLDER/site\"\ntls = \"auto\"\n"),
            "tls: \"auto\" needs to know for which names",
        ),
        (
            format!("{head}{}", auto("\"*.one.example\"")),
            "(dns-01), which are not made here: give the names one by one",
        ),
        (
            format!("{head}{}", auto("\"192.0.2.1\"")),
            "192.0.2.1: clients that ask for an address name none",
        ),
        (
            format!(
                "{head}{}tls-cert = \"a\"\ntls-key = \"b\"\n",
                auto("\"a.b\"")
            ),
            "tls: contradicts tls-cert",
        ),
        (
            format!("{head}{}", auto("\"a.b\"").replace("auto", "on")),
            "`on`: write \"auto\" or \"on-demand\" for certificates",
        ),
        (
            format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{}", auto("\"a.b\"")),
            "tls = \"auto\" for a.b: no address speaks TLS: add tls = true",
        ),
        (
            format!("{head}directory = \"http://a/\"\n{}", auto("\"a.b\"")),
            "write its https URL",
        ),
        (
            format!("{head}contact = [\"a\"]\n{}", auto("\"a.b\"")),
            "acme.contact: `a` is no mail address",
        ),
        (
            format!(
                "{head}staging = true\ndirectory = \"https://a/\"\n{}",
                auto("\"a.b\"")
            ),
            "staging: is Let's Encrypt's",
        ),
        (
            format!("{head}key-type = \"rsa\"\n{}", auto("\"a.b\"")),
            "`rsa` is not known: write p256 or p384",
        ),
        (
            format!("{head}challenges = [\"dns-01\"]\n{}", auto("\"a.b\"")),
            "write http-01 or tls-alpn-01",
        ),
        (
            format!("{head}challenges = []\n{}", auto("\"a.b\"")),
            "challenges: is empty",
        ),
        (
            format!("{head}ca = \"FOLDER/none\"\n{}", auto("\"a.b\"")),
            "none: No such file",
        ),
        (
            format!("{head}{}", auto("\"a.b\"")).replace("FOLDER/state", "FOLDER/site/index.html"),
            "index.html: File exists (os error 17); make it writable",
        ),
    ] {
        let error = refused(&site, &file);
        assert!(error.contains(told), "{error}");
    }
    let check = |folder: &str| {
        write(
            &site,
            &format!("{head}{}", auto("\"a.b\"")).replace("FOLDER/state", folder),
        );
        let mut command = Command::new(PROGRAM);
        command
            .args(["serve", "--check", "--config"])
            .arg(site.beside("a.toml"));
        command.output().unwrap().status.code().unwrap()
    };
    assert_eq!(check("FOLDER/state"), 0);
    assert!(!site.beside("state").exists());
    assert_eq!(check("FOLDER/site/index.html/state"), 1);
}

#[test]
fn a_damaged_or_foreign_certificate_is_not_served() {
    let site = Site::new();
    let folder = site.beside("state").join("localhost-1-dir/certificates");
    std::fs::create_dir_all(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["two.example".to_owned()]).unwrap();
    let foreign = made.signing_key.serialize_pem() + &made.cert.pem();
    std::fs::write(folder.join("one.example.pem"), foreign).unwrap();
    std::fs::write(folder.join("two.example.pem"), "nonsense").unwrap();
    let [http, tls] = [(); 2].map(|()| free_port().unwrap());
    let acme = "[acme]\ndirectory = \"https://localhost:1/dir\"\nstate = \"FOLDER/state\"\n";
    let names = auto("\"one.example\", \"two.example\"");
    let mut server = start(&site, &format!("{}{acme}{names}", listen(http, tls)));
    let line = server.line_with("no certificate yet for one.example, two.example");
    let said = server.said.join("\n");
    assert!(
        said.contains("what is kept is not used: is for two.example, and not for one.example"),
        "{said}"
    );
    assert!(
        said.contains("two.example.pem: no PEM section"),
        "{said} {line}"
    );
}
