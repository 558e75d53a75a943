//! What a backend gets of a request, and a client of a response.

#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

fn parts(uri: &str, fields: &[(&'static str, &str)]) -> Parts {
    let mut request = http::Request::builder().uri(uri);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn sent(uri: &str, fields: &[(&'static str, &str)], trust: bool) -> HeaderMap {
    let forwarding = Forwarding {
        peer: "192.0.2.7".parse().unwrap(),
        secure: true,
        trust,
        certificate: None,
        last: None,
    };
    let head = parts(uri, fields);
    let upgrade = upgrade_asked(&head);
    to_backend(head, Some(0), upgrade.as_ref(), &forwarding).headers
}

fn refused(uri: &str) -> bool {
    refuse_ambiguous(&parts(uri, &[])).is_err()
}

#[test]
fn what_is_for_one_connection_ends_here() {
    let headers = sent(
        "/x",
        &[
            ("host", "a"),
            ("connection", "keep-alive, X-Mine"),
            ("connection", "host, content-length"),
            ("keep-alive", "5"),
            ("x-mine", "1"),
            ("x-other", "1"),
            ("te", "gzip"),
            ("proxy-connection", "close"),
            ("upgrade", "websocket"),
        ],
        false,
    );
    for gone in ["connection", "keep-alive", "x-mine", "te", "upgrade"] {
        assert!(!headers.contains_key(gone), "{gone}");
    }
    assert_eq!(headers["host"], "a");
    assert_eq!(headers["x-other"], "1");
}

#[test]
fn trailers_and_upgrades_are_asked_anew() {
    let headers = sent("/", &[("host", "a"), ("te", "deflate, trailers")], false);
    assert_eq!(
        (&headers["te"], &headers["connection"]),
        (
            &HeaderValue::from_static("trailers"),
            &HeaderValue::from_static("te")
        )
    );
    let upgrade = |protocol| {
        let fields = [("connection", "Upgrade"), ("upgrade", protocol)];
        sent("/", &fields, false).get("upgrade").cloned()
    };
    assert_eq!(upgrade("websocket").unwrap(), "websocket");
    assert_eq!(upgrade("H2C"), None);
}

#[test]
fn the_backend_hears_of_the_client_and_not_what_it_claims() {
    let claims = [
        ("host", "shop.example"),
        ("x-forwarded-for", "10.0.0.1"),
        ("x_forwarded_for", "10.0.0.1"),
        ("x-real-ip", "10.0.0.1"),
        ("x-forwarded-proto", "gopher"),
        ("forwarded", "for=10.0.0.1"),
    ];
    let headers = sent("/", &claims, false);
    assert_eq!(headers["x-forwarded-for"], "192.0.2.7");
    assert_eq!(headers["x-forwarded-proto"], "https");
    assert_eq!(headers["x-forwarded-host"], "shop.example");
    let forwarded = "for=192.0.2.7;host=\"shop.example\";proto=https";
    assert_eq!(headers["forwarded"], forwarded);
    assert!(!headers.contains_key("x_forwarded_for") && !headers.contains_key("x-real-ip"));

    let headers = sent("/", &claims, true);
    assert_eq!(headers["x-forwarded-for"], "10.0.0.1, 192.0.2.7");
    assert_eq!(headers["x-forwarded-proto"], "gopher");
    assert_eq!(headers["forwarded"], format!("for=10.0.0.1, {forwarded}"));
}

#[test]
fn only_a_certificate_says_who_the_client_is() {
    let identity = ClientIdentity {
        subject: "CN=backup".to_owned(),
        fingerprint: "00ff".to_owned(),
    };
    let claims = [
        ("x-client-cert-subject", "CN=admin"),
        ("x_client_cert-subject", "CN=admin"),
        ("x-client-cert-fingerprint", "1"),
        ("x-client_cert_fingerprint", "1"),
    ];
    for certificate in [None, Some(&identity)] {
        for trust in [false, true] {
            let forwarding = Forwarding {
                peer: "192.0.2.7".parse().unwrap(),
                secure: true,
                trust,
                certificate,
                last: None,
            };
            let sent = to_backend(parts("/", &claims), Some(0), None, &forwarding).headers;
            let told = |name| sent.get(name).map(HeaderValue::as_bytes);
            let expected = certificate.map(|_| &b"CN=backup"[..]);
            assert_eq!(told("x-client-cert-subject"), expected);
            let expected = certificate.map(|_| &b"00ff"[..]);
            assert_eq!(told("x-client-cert-fingerprint"), expected);
            assert!(!sent.keys().any(|name| name.as_str().contains('_')));
            let mut trailers = parts("/", &claims).headers;
            drop_certificate(&mut trailers);
            assert!(trailers.is_empty());
        }
    }
}

#[test]
fn the_host_is_that_of_the_target_if_it_has_one() {
    let host = |uri| sent(uri, &[("host", "field")], false)["host"].clone();
    assert_eq!(host("http://target:81/x"), "target:81");
    assert_eq!(host("/x"), "field");
    assert_eq!(sent("/x", &[], false)["host"], "localhost");
}

#[test]
fn a_target_without_a_path_is_the_root() {
    let target = |uri: &str| origin_form(&uri.parse().unwrap()).to_string();
    assert_eq!(target("http://target:8#1/x"), "/");
    assert_eq!(target("http://target?x=1"), "/?x=1");
    assert_eq!(target("http://target/a?x=1"), "/a?x=1");
    assert_eq!(target("/a?x=1"), "/a?x=1");
}

#[test]
fn a_host_is_named_without_its_port() {
    let named = |uri, field| {
        let head = parts(uri, &[("host", field)]);
        host_name(&head).map(str::to_owned)
    };
    assert_eq!(named("/", "shop:81").unwrap(), "shop");
    assert_eq!(named("/", "[::1]").unwrap(), "[::1]");
    assert_eq!(named("http://target:81/", "shop").unwrap(), "target");
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    assert!(!refused("/a/..b/c.d?../x"));
    for uri in [
        "/a/../b",
        "/a/%2e%2E/b",
        "/a/.",
        "/a/..%2fb",
        "/a/..;x/b",
        "/a/..%5cb",
    ] {
        assert!(refused(uri), "{uri}");
    }
}

#[test]
fn each_request_of_a_connection_is_told_with_its_own_host() {
    let last = LastIntroduction::default();
    let forwarding = Forwarding {
        peer: "192.0.2.7".parse().unwrap(),
        secure: false,
        trust: true,
        certificate: None,
        last: Some(&last),
    };
    for host in ["a", "a", "b:81", "a"] {
        for before in ["", "192.0.2.1"] {
            let fields = [("host", host), ("x-forwarded-for", before)];
            let fields = &fields[..if before.is_empty() { 1 } else { 2 }];
            let sent = to_backend(parts("/", fields), Some(0), None, &forwarding).headers;
            let element = format!("for=192.0.2.7;host=\"{host}\";proto=http");
            let list = [before, "192.0.2.7"].join(", ");
            assert_eq!(sent["forwarded"], element);
            assert_eq!(sent["x-forwarded-for"], list.trim_start_matches(", "));
            assert_eq!(
                (sent["x-forwarded-host"].as_bytes(), sent["host"].as_bytes()),
                (host.as_bytes(), host.as_bytes())
            );
        }
    }
}

#[test]
fn cookies_that_http_2_split_are_one_field_again() {
    let cookies = |version| -> Vec<HeaderValue> {
        let fields = [("cookie", "a=b"), ("cookie", "c=d"), ("cookie", "e=f; g=h")];
        let mut head = parts("http://a/", &fields);
        head.version = version;
        let forwarding = Forwarding {
            peer: "192.0.2.7".parse().unwrap(),
            secure: true,
            trust: false,
            certificate: None,
            last: None,
        };
        let sent = to_backend(head, Some(0), None, &forwarding).headers;
        sent.get_all("cookie").iter().cloned().collect()
    };
    assert_eq!(cookies(Version::HTTP_2), ["a=b; c=d; e=f; g=h"]);
    assert_eq!(cookies(Version::HTTP_11).len(), 3);
}

#[test]
fn a_response_tells_its_own_length() {
    let fields = |fields: &[(HeaderName, &str)]| -> HeaderMap {
        let value = |text: &str| HeaderValue::from_str(text).unwrap();
        let fields = fields.iter();
        fields
            .map(|(name, text)| (name.clone(), value(text)))
            .collect()
    };
    let body = http_body_util::Full::new(bytes::Bytes::from_static(b"four"));
    let both = fields(&[
        (header::CONTENT_LENGTH, "9"),
        (header::TRANSFER_ENCODING, "chunked"),
        (header::CONNECTION, "close"),
    ]);
    let told = to_client(both.clone(), &body, &Method::GET, StatusCode::OK);
    assert_eq!(told.len(), 1);
    assert_eq!(told[header::CONTENT_LENGTH], "4");
    let none = http_body_util::Empty::<bytes::Bytes>::new();
    let told = to_client(both, &none, &Method::HEAD, StatusCode::OK);
    assert!(told.is_empty());
    let length = fields(&[(header::CONTENT_LENGTH, "9")]);
    let told = to_client(length, &none, &Method::HEAD, StatusCode::OK);
    assert_eq!(told[header::CONTENT_LENGTH], "9");
}

proptest! {
    #[test]
    fn an_address_is_written_as_it_is_read(address: IpAddr) {
        prop_assert_eq!(super::address(address), address.to_string());
    }
}
