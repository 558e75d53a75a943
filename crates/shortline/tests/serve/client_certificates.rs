//! Clients that show a certificate: who gets in, what others get, what backends and the log are told, and that no session or
//! connection of one site leads into another.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use rustix::process::Signal;
use rustls::{HandshakeKind, version};

use crate::certificates::plain;
use crate::certified::{Authority, Client};
use crate::client::Response;
use crate::process::{Server, Site, wait_for};
use crate::sites::{refused, start, write};

/// A backend that answers with the head that it got, in small letters.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n")
                    && socket.read(&mut byte).is_ok_and(|read| read == 1)
                {
                    head.extend(byte);
                }
                let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
                let length = text.len();
                let fields = format!(
                    "Content-Length: {length}\r\nCache-Control: max-age=60\r\nConnection: close"
                );
                // A client that has gone is not this test's matter.
                let _ = write!(socket, "HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{text}");
            });
        }
    });
    address
}

/// Three sites: `one` and `same` want clients of the first authority, `two` of the second, `open` none. All have one certificate.
fn file(backend: SocketAddr, keys: &str) -> String {
    let site = |name: &str, keys: &str| {
        format!(
            "[[site]]\nnames = [\"{name}.example\"]\n{keys}[[site.route]]\npath = \"/\"\nupstream = [\"{backend}\"]\n\
             [site.route.cache]\n"
        )
    };
    let head = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls-cert = \"FOLDER/site.crt\"\ntls-key = \"FOLDER/site.key\"\n\
                [log]\naccess = \"FOLDER/access.log\"\nformat = \"json\"\n";
    let one = format!("client-ca = \"FOLDER/one.pem\"\n{keys}");
    [
        head.to_owned(),
        site("one", &one),
        site("same", &one),
        site("two", "client-ca = \"FOLDER/two.pem\"\n"),
        site("open", ""),
    ]
    .concat()
}

fn serve(site: &Site, keys: &str) -> (Server, [Authority; 2]) {
    crate::tls::write_certificate(site);
    let authorities = ["one", "two"].map(Authority::new);
    for (name, authority) in ["one.pem", "two.pem"].iter().zip(&authorities) {
        std::fs::write(site.beside(name), &authority.pem).unwrap();
    }
    (start(site, &file(echo(), keys)), authorities)
}

fn body(response: &Response) -> String {
    String::from_utf8(response.body.clone()).unwrap()
}

const ONE: (&str, &str) = ("one.example", "one.example");
const TWO: (&str, &str) = ("two.example", "two.example");
const OPEN: (&str, &str) = ("open.example", "open.example");

#[test]
fn a_client_with_a_certificate_gets_in_and_is_named_and_others_do_not() {
    let site = Site::new();
    let (mut server, [one, two]) = serve(&site, "");
    let at = server.address();
    let shown = one.client("backup", 7);
    for versions in [&[&version::TLS12], &[&version::TLS13]] {
        let client = Client::new(Some(&shown), versions);
        let (response, _) = client.ask(at, ONE).unwrap();
        assert_eq!(response.status, 200);
        let told = body(&response);
        assert!(
            told.contains("\r\nx-client-cert-subject: cn=backup,o=example\\, ltd\r\n"),
            "{told}"
        );
        assert_eq!(told.matches("cert").count(), 2, "{told}");
        assert!(!told.contains("forged"), "{told}");
        // What is told to a backend is not kept for others.
        assert_eq!(
            response.field("cache-status"),
            Some("Shortline; fwd=bypass")
        );
        assert_eq!(Client::new(None, versions).status(at, ONE), None);
    }
    let stranger = two.client("backup", 7);
    assert_eq!(Client::any(&stranger).status(at, ONE), None);
    server.line_with("a client's certificate is refused: it is from no authority in client-ca");
    assert_eq!(Client::any(&stranger).status(at, TWO), Some(200));
    // A site without the key asks nobody, and believes nobody.
    let (response, _) = Client::any(&shown).ask(at, OPEN).unwrap();
    assert!(response.status == 200 && !body(&response).contains("cert"));
    let line = wait_for("the log", || {
        let log = std::fs::read_to_string(site.beside("access.log")).ok()?;
        log.lines()
            .find(|line| line.contains("\"host\":\"one.example\""))
            .map(str::to_owned)
    });
    assert!(
        line.contains(r#""client_subject":"CN=backup,O=Example\\, Ltd""#),
        "{line}"
    );
    assert!(line.contains("\"client_fingerprint\":\""), "{line}");
}

#[test]
fn no_connection_for_one_site_leads_into_another() {
    let site = Site::new();
    let (server, [one, two]) = serve(&site, "");
    let at = server.address();
    let (mine, other) = (one.client("a", 1), two.client("b", 2));
    let known = |shown, names| Client::any(shown).status(at, names);
    // A connection that was asked for nothing, or for another authority's.
    assert_eq!(
        Client::nobody().status(at, ("open.example", "one.example")),
        Some(421)
    );
    assert_eq!(
        Client::any(&mine).status(at, ("open.example", "one.example")),
        Some(421)
    );
    assert_eq!(known(&other, ("two.example", "one.example")), Some(421));
    // A name of no site gets the listener's certificate, and is asked for nothing.
    assert_eq!(
        Client::nobody().status(at, ("none.example", "one.example")),
        Some(421)
    );
    // The same authority in the same way is as good, and a site that wants nothing is told nothing.
    assert_eq!(known(&mine, ("one.example", "same.example")), Some(200));
    let (response, _) = Client::any(&mine)
        .ask(at, ("one.example", "open.example"))
        .unwrap();
    assert!(response.status == 200 && !body(&response).contains("cert"));
}

#[tokio::test]
async fn a_connection_of_http_2_is_shared_only_by_sites_that_want_the_same() {
    let site = Site::new();
    let (server, [one, _]) = serve(&site, "");
    let stream = tokio::net::TcpStream::connect(server.address()).await;
    let shown = one.client("a", 1);
    let connector = tokio_rustls::TlsConnector::from(Client::any(&shown).with_http_2());
    let name = "one.example".try_into().unwrap();
    let stream = connector.connect(name, stream.unwrap()).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(async move {
        // It ends with the client.
        let _ = connection.await;
    });
    for (host, status) in [
        ("one.example", 200),
        ("two.example", 421),
        ("same.example", 200),
        ("open.example", 200),
    ] {
        let request = http::Request::get(format!("https://{host}/"));
        client = client.ready().await.unwrap();
        let (response, _) = client
            .send_request(request.body(()).unwrap(), true)
            .unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), status, "{host}");
        let mut body = response.into_body();
        let mut told = Vec::new();
        while let Some(data) = body.data().await {
            told.extend_from_slice(&data.unwrap());
        }
        let told = String::from_utf8(told).unwrap();
        let is_named = ["one.example", "same.example"].contains(&host);
        let names = "x-client-cert-subject: cn=a,";
        assert_eq!(told.contains(names), is_named, "{told}");
    }
}

#[test]
fn no_session_of_one_site_is_resumed_at_another() {
    let site = Site::new();
    let (server, [one, two]) = serve(&site, "");
    let at = server.address();
    for versions in [&[&version::TLS12], &[&version::TLS13]] {
        let kind = |client: &Client, names| {
            client
                .ask(at, names)
                .map(|(response, kind)| (response.status, kind))
        };
        let (full, resumed) = (
            Ok((200, HandshakeKind::Full)),
            Ok((200, HandshakeKind::Resumed)),
        );
        // The client has one session, and offers it wherever it goes.
        let nobody = Client::new(None, versions);
        assert_eq!(kind(&nobody, OPEN), full);
        assert_eq!(kind(&nobody, OPEN), resumed);
        assert!(kind(&nobody, ONE).is_err());
        assert!(kind(&nobody, TWO).is_err());
        let mine = Client::new(Some(&one.client("a", 1)), versions);
        assert_eq!(kind(&mine, ONE), full);
        let (response, resumed_kind) = mine.ask(at, ONE).unwrap();
        assert_eq!(resumed_kind, HandshakeKind::Resumed);
        assert!(
            body(&response).contains("x-client-cert-subject: cn=a,"),
            "it is still known"
        );
        assert!(
            kind(&mine, TWO).is_err(),
            "what it has shown is not of this authority"
        );
        // One of the same authority is asked anew, because the name is another.
        let mine = Client::new(Some(&one.client("a", 1)), versions);
        assert_eq!(kind(&mine, ONE), full);
        assert_eq!(kind(&mine, ("same.example", "same.example")), full);
        let other = Client::new(Some(&two.client("b", 1)), versions);
        assert_eq!(kind(&other, TWO), full);
        assert!(kind(&other, ONE).is_err());
    }
}

#[test]
fn a_reload_takes_lists_and_authorities_anew_and_no_session_outlives_it() {
    let site = Site::new();
    let lists = |one: &Authority, revoked: &[u64], until| {
        std::fs::write(site.beside("revoked.pem"), one.revokes(revoked, until)).unwrap();
    };
    crate::tls::write_certificate(&site);
    let [one, two] = ["one", "two"].map(Authority::new);
    std::fs::write(site.beside("one.pem"), &one.pem).unwrap();
    std::fs::write(site.beside("two.pem"), &two.pem).unwrap();
    lists(&one, &[8], 2090);
    let text = file(echo(), "client-crl = \"FOLDER/revoked.pem\"\n");
    let mut server = start(&site, &text);
    let at = server.address();
    let (kept, gone) = (one.client("kept", 7), one.client("gone", 8));
    let client = Client::any(&kept);
    assert_eq!(client.status(at, ONE), Some(200));
    assert_eq!(client.ask(at, ONE).unwrap().1, HandshakeKind::Resumed);
    assert_eq!(Client::any(&gone).status(at, ONE), None);
    server.line_with("a client's certificate is refused: it is revoked");
    lists(&one, &[7], 2090);
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert_eq!(client.status(at, ONE), None, "its session is of no use");
    assert_eq!(Client::any(&gone).status(at, ONE), Some(200));
    lists(&one, &[], 2025);
    server.signal(Signal::HUP);
    server.line_with(
        "revoked.pem: one is past its next update: all clients of its authority are refused",
    );
    server.line_with("reloaded");
    assert_eq!(client.status(at, ONE), None);
    server.line_with("is past its next update: get a new one");
    lists(&two, &[], 2090);
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert_eq!(client.status(at, ONE), None);
    server.line_with("no list in client-crl is of its authority");
    std::fs::write(site.beside("revoked.pem"), "nothing").unwrap();
    server.signal(Signal::HUP);
    let line = server.line_with("not reloaded");
    assert!(
        line.contains("revoked.pem: no PEM section `-----BEGIN X509 CRL-----`"),
        "{line}"
    );
    // Now the others are asked for.
    write(
        &site,
        &text
            .replace("one.pem", "two.pem")
            .replace("client-crl", "#"),
    );
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert_eq!(client.status(at, ONE), None);
    assert_eq!(Client::any(&two.client("b", 1)).status(at, ONE), Some(200));
}

#[test]
fn a_client_that_is_only_requested_may_have_none() {
    let site = Site::new();
    let (server, [one, two]) = serve(&site, "client-auth = \"request\"\n");
    let at = server.address();
    let (response, _) = Client::nobody().ask(at, ONE).unwrap();
    assert!(response.status == 200 && !body(&response).contains("cert"));
    let (response, _) = Client::any(&one.client("a", 1)).ask(at, ONE).unwrap();
    assert!(body(&response).contains("x-client-cert-subject: cn=a,"));
    assert_eq!(Client::any(&two.client("a", 1)).status(at, ONE), None);
    assert_eq!(
        Client::nobody().status(at, TWO),
        None,
        "this one requires it"
    );
}

#[test]
fn plain_http_never_leads_to_a_site_whose_clients_need_a_certificate() {
    let site = Site::new();
    crate::tls::write_certificate(&site);
    std::fs::write(site.beside("one.pem"), Authority::new("one").pem).unwrap();
    let [http, tls] = [(); 2].map(|()| shortline_base::port::free_port().unwrap());
    let listen = format!(
        "[[listen]]\naddress = \"127.0.0.1:{http}\"\n[[listen]]\naddress = \"127.0.0.1:{tls}\"\n\
         tls-cert = \"FOLDER/site.crt\"\ntls-key = \"FOLDER/site.key\"\n"
    );
    let keys = "[[site]]\nroot = \"FOLDER/site\"\nclient-ca = \"FOLDER/one.pem\"\n";
    let server = start(&site, &format!("{listen}{keys}"));
    let response = plain(http, "a.example");
    assert_eq!(response.status, 308);
    assert_eq!(
        response.field("location"),
        Some(&*format!("https://a.example:{tls}/"))
    );
    drop(server);
    let server = start(
        &site,
        &format!("{listen}{keys}plain-http = \"serve\"\nclient-auth = \"request\"\n"),
    );
    assert_eq!(plain(http, "a.example").status, 200);
    drop(server);
    for (file, told) in [
        (
            format!("{listen}{keys}plain-http = \"serve\"\n"),
            "plain-http: contradicts client-ca: over plain HTTP no client has a certificate",
        ),
        (
            format!("{listen}{keys}client-auth = \"optional\"\n"),
            "`optional`: write \"require\" (nginx: on, Caddy: require_and_verify) or \"request\" (nginx: optional",
        ),
        (
            format!(
                "{listen}{}client-auth = \"require\"\n",
                keys.replace("client-ca", "#")
            ),
            "client-auth: has no effect without client-ca",
        ),
        (
            format!(
                "{listen}{}client-crl = \"a\"\n",
                keys.replace("client-ca", "#")
            ),
            "client-crl: has no effect without client-ca",
        ),
        (
            format!("{listen}{}", keys.replace("one.pem", "site.key")),
            "site.key: no PEM section `-----BEGIN CERTIFICATE-----`",
        ),
        (
            format!("[[listen]]\naddress = \"127.0.0.1:{http}\"\n{keys}"),
            "client-ca: no address speaks TLS: add tls = true",
        ),
        (
            format!("{listen}{keys}ssl_verify_client = \"on\"\n"),
            "here it is `client-auth` of a `[[site]]`",
        ),
    ] {
        let error = refused(&site, &file);
        assert!(error.contains(told), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
