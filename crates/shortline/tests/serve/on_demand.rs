//! Certificates on demand: got in the first handshake that asks for a name, within bounds.

use std::io::{Read, Write};
use std::net::TcpListener;

use rustix::process::Signal;

use crate::admin::status;
use crate::certificates::{at, auto, begin, orders, plain};
use crate::pebble::Pebble;
use crate::process::Site;
use crate::sites::{over_tls, refused};

/// More time than a busy machine takes for an order.
const PATIENT: &str = "[limits]\nheader-time-max = \"120s\"\n";

#[test]
fn a_name_on_demand_gets_its_certificate_in_the_first_handshake_within_bounds() {
    let site = Site::new();
    let Some(pebble) = Pebble::start(&site, 86_400) else {
        return;
    };
    let acme = pebble.table("on-demand-orders-max = 2");
    let names = auto("\"*.shop.example\"").replace("auto", "on-demand");
    let file = format!("{}{PATIENT}{acme}{names}", pebble.listen());
    let mut server = begin(&site, &file);
    let root = pebble.root(&site);
    // A minute is over at an unlucky moment only if the machine stood still.
    for name in ["a.shop.example", "b.shop.example"] {
        let asked = over_tls(at(pebble.tls), &root, (name, name)).unwrap();
        assert_eq!(asked.body, b"<p>index\n");
    }
    let third = over_tls(at(pebble.tls), &root, ("c.shop.example", "c.shop.example"));
    if third.is_err() {
        server.line_with("c.shop.example: not on demand: there were 2 orders in the last minute");
    }
    for other in ["shop.example", "a.b.shop.example", "two.example"] {
        assert!(over_tls(at(pebble.tls), &root, (other, other)).is_err());
    }
    assert_eq!(plain(pebble.http, "d.shop.example").status, 308);
    let (got, failed) = orders(&server);
    assert!((2..=3).contains(&got) && failed == 0, "{got} {failed}");
    // After a restart they are there without an order, and a reload keeps them.
    drop(server);
    let mut server = begin(&site, &file);
    for _ in 0..2 {
        let asked = over_tls(at(pebble.tls), &root, ("a.shop.example", "a.shop.example"));
        assert_eq!(asked.unwrap().status, 200);
        server.signal(Signal::HUP);
        server.line_with("reloaded");
    }
    assert_eq!(orders(&server), (0, 0));
    assert_eq!(
        status(&server)["certificates"]["all"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// Somebody who knows that one name is allowed.
fn who_knows(allowed: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut asked = [0; 4096];
            let bytes = socket.read(&mut asked).unwrap_or(0);
            let line = format!("GET /allowed?domain={allowed} HTTP/1.1");
            let status = match asked[..bytes].starts_with(line.as_bytes()) {
                true => "200 OK",
                false => "403 Forbidden",
            };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            // Whoever asked may have gone.
            let _ = socket.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn who_knows_the_names_is_asked_before_one_gets_a_certificate() {
    let site = Site::new();
    let Some(pebble) = Pebble::start(&site, 86_400) else {
        return;
    };
    let asked = who_knows("one.example");
    let acme = pebble.table(&format!("ask = \"http://127.0.0.1:{asked}/allowed\""));
    let open = "[[site]]\nroot = \"FOLDER/site\"\ntls = \"on-demand\"\n";
    let mut server = begin(&site, &format!("{}{PATIENT}{acme}{open}", pebble.listen()));
    let root = pebble.root(&site);
    let asked = over_tls(at(pebble.tls), &root, ("one.example", "one.example")).unwrap();
    assert_eq!(asked.status, 200);
    for _ in 0..2 {
        assert!(over_tls(at(pebble.tls), &root, ("two.example", "two.example")).is_err());
    }
    let line = server.line_with("two.example: not on demand: ");
    assert!(
        line.contains("/allowed?domain=two.example answers 403"),
        "{line}"
    );
    assert_eq!(orders(&server), (1, 0));

    let nobody = format!("[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n{open}");
    let error = refused(&site, &nobody);
    assert!(
        error.contains("would get a certificate for any name: give it names"),
        "{error}"
    );
}
