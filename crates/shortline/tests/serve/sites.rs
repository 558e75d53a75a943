//! Several sites: which of them answers, by name, certificate and protocol; and what a reload changes.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustix::process::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{Response, connect, exchange, parse, read_to_end};
use crate::process::{PROGRAM, Server, Site};

/// Starts a server with this file, in which `FOLDER` is the folder of the test.
pub fn start(site: &Site, file: &str) -> Server {
    write(site, file);
    let mut command = Command::new(PROGRAM);
    command
        .args(["serve", "--config"])
        .arg(site.beside("a.toml"));
    Server::spawn(&mut command)
}

/// Writes the file that a server reads at its start and at SIGHUP.
pub fn write(site: &Site, file: &str) {
    let folder = site.beside("").display().to_string();
    let text = file.replace("FOLDER/", &folder);
    std::fs::write(site.beside("a.toml"), text).unwrap();
}

/// What the server says of a file that it refuses.
pub fn refused(site: &Site, file: &str) -> String {
    write(site, file);
    let mut command = Command::new(PROGRAM);
    let ran = command
        .args(["serve", "--config"])
        .arg(site.beside("a.toml"));
    let output = ran.output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// A folder with a page that says which it is.
fn folder(site: &Site, name: &str) {
    std::fs::create_dir(site.beside(name)).unwrap();
    std::fs::write(site.beside(name).join("index.html"), name).unwrap();
}

/// A certificate `name.crt` with its key, for these names.
fn certificate(site: &Site, name: &str, names: &[&str]) {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    std::fs::write(site.beside(&format!("{name}.crt")), made.cert.pem()).unwrap();
    let key = made.signing_key.serialize_pem();
    std::fs::write(site.beside(&format!("{name}.key")), key).unwrap();
}

fn get(address: SocketAddr, host: &str, target: &str) -> Response {
    let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    parse(&exchange(address, text))
}

fn page(address: SocketAddr, host: &str) -> (u16, String) {
    let response = get(address, host, "/");
    (response.status, String::from_utf8(response.body).unwrap())
}

/// Asks by TLS for `name` in the handshake and `host` in the request. `Err`: there was no handshake.
pub fn over_tls(
    address: SocketAddr,
    certificate: &Path,
    (name, host): (&str, &str),
) -> Result<Response, String> {
    let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    over_tls_for(address, certificate, name, &text)
}

/// The same with a request of one's own.
pub fn over_tls_for(
    address: SocketAddr,
    certificate: &Path,
    name: &str,
    text: &str,
) -> Result<Response, String> {
    let mut roots = RootCertStore::empty();
    let trusted = CertificateDer::from_pem_file(certificate).unwrap();
    roots.add(trusted).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, connect(address));
    stream
        .write_all(text.as_bytes())
        .map_err(|error| error.to_string())?;
    Ok(parse(&read_to_end(&mut stream)))
}

#[test]
fn the_host_decides_and_the_site_without_names_answers_for_all_others() {
    let site = Site::new();
    for name in ["one", "below", "rest"] {
        folder(&site, name);
    }
    let named = "[[listen]]\naddress = \"127.0.0.1:0\"\n\
        [[site]]\nnames = [\"one.example\", \"192.0.2.7\"]\nroot = \"FOLDER/one\"\n\
        [[site]]\nnames = [\"*.one.example\"]\nroot = \"FOLDER/below\"\n";
    let mut server = start(&site, &format!("{named}[[site]]\nroot = \"FOLDER/rest\"\n"));
    let line = server.line_with("3 sites");
    assert!(line.contains("uplink"), "{line}");
    for (host, page_of) in [
        ("one.example", "one"),
        ("ONE.example.:8080", "one"),
        ("192.0.2.7", "one"),
        ("www.one.example", "below"),
        ("a.b.one.example", "rest"),
        ("two.example", "rest"),
        ("", "rest"),
    ] {
        assert_eq!(
            page(server.address(), host),
            (200, page_of.to_owned()),
            "{host}"
        );
    }
    // The target's host goes before the field.
    let absolute = get(server.address(), "two.example", "http://one.example/");
    assert_eq!(absolute.body, b"one");

    let without_default = start(&site, named);
    assert_eq!(page(without_default.address(), "two.example").0, 404);
    assert_eq!(page(without_default.address(), "one.example").0, 200);
}

const TWO_CERTIFICATES: &str = "\
[[listen]]
address = \"127.0.0.1:0\"
[[listen]]
address = \"127.0.0.1:0\"
tls = true
[[site]]
names = [\"one.example\"]
root = \"FOLDER/one\"
tls-cert = \"FOLDER/one.crt\"
tls-key = \"FOLDER/one.key\"
hsts = \"max-age=600\"
[[site]]
names = [\"two.example\"]
root = \"FOLDER/two\"
tls-cert = \"FOLDER/two.crt\"
tls-key = \"FOLDER/two.key\"
plain-http = \"serve\"
[[site]]
names = [\"also.one.example\"]
root = \"FOLDER/two\"
tls-cert = \"FOLDER/one.crt\"
tls-key = \"FOLDER/one.key\"
";

fn with_two_certificates(site: &Site) -> (Server, SocketAddr) {
    certificate(site, "one", &["one.example", "also.one.example"]);
    certificate(site, "two", &["two.example"]);
    for name in ["one", "two"] {
        folder(site, name);
    }
    let mut server = start(site, TWO_CERTIFICATES);
    let line = server.line_with("(https)");
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "on").unwrap();
    let secure = words[at + 1].parse().unwrap();
    (server, secure)
}

#[test]
fn the_name_in_the_handshake_chooses_the_certificate_and_others_get_421() {
    let site = Site::new();
    let (_server, secure) = with_two_certificates(&site);
    let (one, two) = (site.beside("one.crt"), site.beside("two.crt"));
    let asked = over_tls(secure, &one, ("one.example", "one.example")).unwrap();
    assert_eq!((asked.status, &asked.body[..]), (200, &b"one"[..]));
    assert_eq!(
        asked.field("strict-transport-security"),
        Some("max-age=600")
    );
    let asked = over_tls(secure, &two, ("two.example", "two.example")).unwrap();
    assert_eq!((asked.status, &asked.body[..]), (200, &b"two"[..]));
    assert_eq!(asked.field("strict-transport-security"), None);
    // One certificate of two sites is one.
    let asked = over_tls(secure, &one, ("one.example", "also.one.example")).unwrap();
    assert_eq!((asked.status, &asked.body[..]), (200, &b"two"[..]));
    // A client may take one connection for all names of its certificate, but not for others'.
    let asked = over_tls(secure, &one, ("one.example", "two.example")).unwrap();
    assert_eq!(asked.status, 421);
    let asked = over_tls(secure, &one, ("one.example", "three.example")).unwrap();
    assert_eq!(asked.status, 404);
    // Nobody has a certificate for this name.
    assert!(over_tls(secure, &one, ("three.example", "one.example")).is_err());
}

#[test]
fn a_site_with_a_certificate_sends_plain_http_to_https() {
    let site = Site::new();
    let (server, secure) = with_two_certificates(&site);
    let moved = get(server.address(), "one.example:80", "/a%20b?c=d");
    assert_eq!(moved.status, 308);
    let there = format!("https://one.example:{}/a%20b?c=d", secure.port());
    assert_eq!(moved.field("location"), Some(&*there));
    assert_eq!(moved.field("strict-transport-security"), None);
    assert_eq!(
        page(server.address(), "two.example"),
        (200, "two".to_owned())
    );
}

#[test]
fn a_reload_adds_sites_and_certificates() {
    let site = Site::new();
    let (mut server, secure) = with_two_certificates(&site);
    certificate(&site, "three", &["three.example"]);
    let more = "[[site]]\nnames = [\"three.example\"]\nroot = \"FOLDER/one\"\n\
        tls-cert = \"FOLDER/three.crt\"\ntls-key = \"FOLDER/three.key\"\n";
    write(&site, &format!("{TWO_CERTIFICATES}{more}"));
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    let three = site.beside("three.crt");
    let asked = over_tls(secure, &three, ("three.example", "three.example")).unwrap();
    assert_eq!(asked.status, 200);

    // What is wrong changes nothing.
    let wrong = more
        .replace("three.crt", "two.crt")
        .replace("three.key", "two.key");
    write(&site, &format!("{TWO_CERTIFICATES}{wrong}"));
    server.signal(Signal::HUP);
    let line = server.line_with("not reloaded");
    assert!(
        line.contains("two.crt: is for two.example, and not for three.example"),
        "{line}"
    );
    let asked = over_tls(secure, &three, ("three.example", "three.example")).unwrap();
    assert_eq!(asked.status, 200);
}

#[test]
fn a_configuration_is_checked_without_being_served() {
    let site = Site::new();
    certificate(&site, "one", &["one.example"]);
    folder(&site, "one");
    let file = "[[listen]]\naddress = \"127.0.0.1:1\"\ntls = true\n[[site]]\nnames = [\"one.example\"]\n\
        root = \"FOLDER/one\"\ntls-cert = \"FOLDER/one.crt\"\ntls-key = \"FOLDER/one.key\"\n";
    let check = |file: &str| {
        write(&site, file);
        let mut command = Command::new(PROGRAM);
        command
            .args(["serve", "--check", "--config"])
            .arg(site.beside("a.toml"));
        let output = command.output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap(), said)
    };
    let (code, said) = check(file);
    assert!(
        code == 0 && said.starts_with("sound: ") && said.contains("files of "),
        "{code}: {said}"
    );
    let (code, said) = check(&file.replace("root", "rooot"));
    assert!(
        code == 2 && said.contains("did you mean `root`?"),
        "{code}: {said}"
    );
    let (code, said) = check(&file.replace("FOLDER/one\"", "FOLDER/none\""));
    assert!(code == 1 && said.contains("none"), "{code}: {said}");
    let (code, said) = check(&file.replace("one.example", "two.example"));
    assert!(
        code == 1 && said.contains("not for two.example"),
        "{code}: {said}"
    );
}

#[test]
fn sites_that_contradict_each_other_are_refused_with_a_remedy() {
    let site = Site::new();
    let listen = "[[listen]]\naddress = \"127.0.0.1:0\"\n";
    let root = "root = \"FOLDER/site\"\n";
    certificate(&site, "one", &["one.example"]);
    let pair = "tls-cert = \"FOLDER/one.crt\"\ntls-key = \"FOLDER/one.key\"\n";
    for (file, told) in [
        (
            format!("[[site]]\nnames = [\"a.b\"]\n{root}[[site]]\nnames = [\"A.b\"]\n{root}"),
            "two sites have the name a.b: give it to one of them",
        ),
        (
            format!("[[site]]\n{root}[[site]]\n{root}"),
            "another site has no names either",
        ),
        (format!("[[site]]\nnames = []\n{root}"), "names: is empty"),
        (
            format!("[[site]]\nnames = [\"a:1\"]\n{root}"),
            "a.toml:4: site.names: `a:1`: a site has a name, and no port",
        ),
        (
            format!("[[site]]\nnames = [\"one.example\"]\n{root}{pair}"),
            "no address speaks TLS: add tls = true to a [[listen]]",
        ),
        (
            format!("[[site]]\n{root}[[route]]\npath = \"/a\"\nupstream = [\"a:1\"]\n"),
            "give each route below its site, as [[site.route]]",
        ),
        (
            format!("[[site]]\n{root}tls-key = \"a\"\n"),
            "tls-cert: belongs together with tls-key",
        ),
        (
            format!("[[site]]\n{root}cache-size-max = \"1MB\"\n"),
            "a.toml:5: site.cache-size-max: unknown field `cache-size-max`: here it is `size-max` of `[cache]`",
        ),
        (
            "[[site]]\nnames = [\"a\"]\n".to_owned(),
            "names neither a folder nor a route",
        ),
    ] {
        let error = refused(&site, &format!("{listen}{file}"));
        assert!(error.contains(told), "{error}");
    }
    let bare =
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[site]\nroot = \"FOLDER/site\"\n";
    let error = refused(&site, bare);
    assert!(
        error.contains("tls = true: there is no certificate"),
        "{error}"
    );
}
