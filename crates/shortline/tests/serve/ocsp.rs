//! Answers of responders in the handshake (OCSP stapling), and certificates from files that end soon: OpenSSL's responder and client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, KeyPair};
use rustix::process::Signal;
use serde_json::Value;

use crate::admin::status;
use crate::certificates::begin;
use crate::client::get;
use crate::process::{Server, Site, wait_for};
use crate::responder::{Responder, openssl, seen};

const STAPLED: &str = "OCSP Response Status: successful";
const NOTHING: &str = "OCSP response: no response sent";

/// Sites with a certificate `NAME.crt` each.
fn file(names: &[&str]) -> String {
    let head =
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[admin]\naddress = \"127.0.0.1:0\"\n";
    let site = |name: &&str| {
        format!(
            "[[site]]\nnames = [\"{name}\"]\nroot = \"FOLDER/site\"\ntls-cert = \"FOLDER/{name}.crt\"\n\
             tls-key = \"FOLDER/{name}.key\"\n"
        )
    };
    let sites: String = names.iter().map(site).collect();
    format!("{head}{sites}")
}

/// What is told of a certificate. A server that has just begun answers before it knows of them.
fn told(server: &Server, name: &str) -> Value {
    wait_for("the certificate in the status", || {
        let status = status(server);
        let all = status["certificates"]["all"].as_array()?;
        all.iter().find(|one| one["name"] == name).cloned()
    })
}

#[test]
fn the_responders_answer_goes_with_the_certificate() {
    let site = Site::new();
    if openssl().is_none() {
        return;
    }
    let mut responder = Responder::new(&site, &["a.example", "b.example"]);
    let ca = site.beside("ca.crt");
    responder.revoke(4097);
    responder.start("ca.crt");
    let mut server = begin(&site, &file(&["a.example", "b.example"]));
    let at = server.address();
    server.line_with(
        "the answer is not used: the certificate is revoked; nothing is stapled; asked again in ",
    );
    let all = wait_for("a stapled answer", || {
        Some(seen(at, "a.example", &ca)).filter(|seen| seen.contains(STAPLED))
    });
    assert!(all.contains("Cert Status: good"), "{all}");
    assert!(seen(at, "b.example", &ca).contains(NOTHING));
    let ocsp = &told(&server, "a.example")["ocsp"];
    let left_s = ocsp["stapled_for_seconds"].as_i64().unwrap();
    assert!((3400..=3600).contains(&left_s), "{ocsp}");
    assert_eq!(
        ocsp["responder"],
        format!("http://127.0.0.1:{}/ocsp", responder.port())
    );
    assert_eq!(told(&server, "b.example")["ocsp"]["failures"], 1);
    let metrics = String::from_utf8(get(server.admin.unwrap(), "/metrics").body).unwrap();
    assert!(
        metrics.contains("shortline_certificate_stapled_seconds{name=\"b.example\"} 0\n"),
        "{metrics}"
    );
    // What is there stays after a reload, at once and without a responder.
    responder.stop();
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert!(seen(at, "a.example", &ca).contains(STAPLED));
    // Another certificate for the name has none of it, and is served all the same.
    responder.issue("a.example", 5000, "server", 90);
    server.signal(Signal::HUP);
    wait_for("the new certificate", || {
        seen(at, "a.example", &ca).contains(NOTHING).then_some(())
    });
    wait_for("the attempt", || {
        let one = told(&server, "a.example");
        let failure = one["ocsp"]["failure"].as_str()?;
        (failure.contains("refused") && one["is_there"] == true).then_some(())
    });
}

#[test]
fn an_answer_outlasts_a_restart_and_is_looked_at_anew() {
    let site = Site::new();
    if openssl().is_none() {
        return;
    }
    let mut responder = Responder::new(&site, &["a.example", "b.example"]);
    let ca = site.beside("ca.crt");
    responder.start("ca.crt");
    let text = file(&["a.example", "b.example"]) + "[acme]\nstate = \"FOLDER/state/acme\"\n";
    std::fs::create_dir(site.beside("state")).unwrap();
    let server = begin(&site, &text);
    for name in ["a.example", "b.example"] {
        wait_for("a stapled answer", || {
            let seen = seen(server.address(), name, &ca);
            seen.contains(STAPLED).then_some(())
        });
    }
    drop(server);
    responder.stop();
    // One is another's now, so it is not used.
    let kept: Vec<_> = std::fs::read_dir(site.beside("state/acme/ocsp"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    std::fs::copy(&kept[0], &kept[1]).unwrap();
    let server = begin(&site, &text);
    let stapled = |name: &str| {
        let told = told(&server, name);
        told["ocsp"]["stapled_for_seconds"].as_i64()
    };
    wait_for("the answer that was kept", || {
        (stapled("a.example").is_some() || stapled("b.example").is_some()).then_some(())
    });
    let names = ["a.example", "b.example"];
    let with: Vec<_> = names
        .iter()
        .filter(|name| stapled(name).is_some())
        .collect();
    assert_eq!(with.len(), 1, "{with:?}");
    assert!(seen(server.address(), with[0], &ca).contains(STAPLED));
}

#[test]
fn who_signs_answers_needs_the_authoritys_word_for_it() {
    let site = Site::new();
    if openssl().is_none() {
        return;
    }
    let mut responder = Responder::new(&site, &["a.example"]);
    responder.issue("signer", 6000, "signer", 90);
    responder.issue("other", 6001, "server", 90);
    let ca = site.beside("ca.crt");
    responder.start("other.leaf");
    let mut server = begin(&site, &file(&["a.example"]));
    server.line_with("it is not signed by the issuer, nor by who may for it; nothing is stapled");
    assert!(seen(server.address(), "a.example", &ca).contains(NOTHING));
    drop(server);
    responder.start("signer.leaf");
    let server = begin(&site, &file(&["a.example"]));
    wait_for("a stapled answer", || {
        seen(server.address(), "a.example", &ca)
            .contains(STAPLED)
            .then_some(())
    });
}

/// Answers each connection at a port with these bytes, without end if they are to be repeated. Counts the connections.
fn liar(port: u16, answer: &'static [u8], is_endless: bool) -> Arc<AtomicUsize> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::Relaxed);
            // A client that has gone is what this is for.
            let _ = socket.read(&mut [0; 4096]);
            while socket.write_all(answer).is_ok() && is_endless {}
        }
    });
    asked
}

#[test]
fn a_responder_that_lies_costs_a_line_and_nothing_else() {
    if openssl().is_none() {
        return;
    }
    for (answer, is_endless, told) in [
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"[..],
            false,
            "it is no answer of a responder's",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n0\x03\x0a\x01\x06",
            false,
            "does not answer to just anybody",
        ),
        (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            false,
            "answers 404",
        ),
        (
            b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
            false,
            "answers 302",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n",
            true,
            "larger than 64KiB",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n", true, "length limit exceeded"),
        (b"", false, "responder http://127.0.0.1:"),
    ] {
        let site = Site::new();
        let responder = Responder::new(&site, &["a.example"]);
        let asked = liar(responder.port(), answer, is_endless);
        let mut server = begin(&site, &file(&["a.example"]));
        let line = server.line_with("nothing is stapled; asked again in ");
        assert!(line.contains(told), "{line}");
        assert!(seen(server.address(), "a.example", &site.beside("ca.crt")).contains(NOTHING));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}

/// A certificate `NAME.crt` that began a hundred days ago and ends in so many hours, or did so.
pub fn write_certificate(site: &Site, name: &str, hours: i64) {
    let now = SystemTime::now();
    let far = Duration::from_secs(3600 * hours.unsigned_abs());
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = (now - Duration::from_secs(100 * 86_400)).into();
    params.not_after = if hours < 0 { now - far } else { now + far }.into();
    let key = KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    std::fs::write(site.beside(&format!("{name}.crt")), made.pem()).unwrap();
    std::fs::write(site.beside(&format!("{name}.key")), key.serialize_pem()).unwrap();
}

#[test]
fn a_certificate_from_a_file_that_ends_soon_is_told_of_ahead() {
    let site = Site::new();
    for (name, hours) in [
        ("soon.example", 19 * 24 + 12),
        ("later.example", 23 * 24 + 12),
        ("old.example", -1),
        ("listener", 2 * 24 + 12),
    ] {
        write_certificate(&site, name, hours);
    }
    let names = ["later.example", "old.example", "soon.example"];
    let own = "tls-cert = \"FOLDER/listener.crt\"\ntls-key = \"FOLDER/listener.key\"\n";
    let text = file(&names).replace("tls = true\n", own);
    let mut server = begin(&site, &text);
    let remedy = "put a new one in its place and send SIGHUP";
    server.line_with(&format!(
        "old.example.crt of old.example: is no longer valid: {remedy}"
    ));
    server.line_with(&format!(
        "soon.example.crt of soon.example: ends in 19 days: {remedy}"
    ));
    let address = server.address().to_string();
    server.line_with(&format!(
        "listener.crt of {address}: ends in 2 days: {remedy}"
    ));
    for (name, is_late) in [
        ("later.example", false),
        ("old.example", true),
        ("soon.example", true),
        (&address, true),
    ] {
        let one = told(&server, name);
        assert_eq!(one["is_late"], is_late, "{one}");
        assert!(one["ocsp"].is_null(), "{one}");
        assert!(one["file"].as_str().unwrap().ends_with(".crt"), "{one}");
    }
    let metrics = String::from_utf8(get(server.admin.unwrap(), "/metrics").body).unwrap();
    for line in [
        "shortline_certificate_late{name=\"later.example\"} 0\n",
        "shortline_certificate_late{name=\"soon.example\"} 1\n",
        "shortline_certificate_expires_seconds{name=\"old.example\"} -36",
        "shortline_certificate_expires_seconds{name=\"later.example\"} 20",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    for absent in ["certificate_orders_total", "certificate_stapled_seconds"] {
        assert!(!metrics.contains(absent), "{metrics}");
    }
    // A new one in its place is good again, and the others are not told of again.
    write_certificate(&site, "soon.example", 90 * 24 + 12);
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    wait_for("a look", || {
        (told(&server, "soon.example")["is_late"] == false).then_some(())
    });
    assert!(told(&server, "old.example")["is_late"] == true);
}
