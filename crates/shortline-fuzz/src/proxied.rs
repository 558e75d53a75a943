//! Heads of requests on their way to a backend. Whatever a client says, the backend must see one
//! host, one length, and our proxy's own word on who the client is.

use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Request, Uri};
use shortline_web::proxy::head::{
    CERTIFICATE_FINGERPRINT, CERTIFICATE_SUBJECT, Forwarding, LastIntroduction, host_name,
    refuse_ambiguous, to_backend, upgrade_asked,
};
use shortline_web::request;

const FIELDS_MAX: usize = 100;
const PEER: &str = "192.0.2.7";

/// A target, and below it lines of fields.
pub fn head(bytes: &[u8]) {
    let Some(head) = parse(bytes) else { return };
    let _host = host_name(&head);
    // No route takes `*`, which names no file (RFC 9112 3.2.4).
    let sound = request::check(&head).is_ok() && refuse_ambiguous(&head).is_ok();
    if head.uri.path() == "*" || !sound {
        return;
    }
    let upgrade = upgrade_asked(&head);
    let last = LastIntroduction::default();
    for body_bytes in [None, Some(0), Some(7)] {
        for trust in [false, true] {
            let forwarding = Forwarding {
                peer: PEER.parse().expect("invariant: an address"),
                secure: false,
                trust,
                certificate: None,
                last: Some(&last),
            };
            let sent = to_backend(head.clone(), body_bytes, upgrade.as_ref(), &forwarding);
            hold(&sent, body_bytes, trust);
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Parts> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let uri = Uri::try_from(lines.next()?).ok()?;
    let mut request = Request::new(());
    *request.uri_mut() = uri;
    for line in lines.take(FIELDS_MAX) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        request.headers_mut().append(name, value);
    }
    Some(request.into_parts().0)
}

fn hold(sent: &Parts, body_bytes: Option<u64>, trust: bool) {
    let host = sent.headers[header::HOST].as_bytes();
    assert!(request::is_host(host) && !host.contains(&b'@') && !host.contains(&b','));
    let all = |name: &HeaderName| sent.headers.get_all(name).iter().collect::<Vec<_>>();
    assert_eq!(all(&header::HOST).len(), 1);
    assert!(sent.uri.authority().is_none() && sent.uri.path().starts_with('/'));
    let (lengths, codings) = (
        all(&header::CONTENT_LENGTH),
        all(&header::TRANSFER_ENCODING),
    );
    match body_bytes {
        None => assert!(lengths.is_empty() && codings == ["chunked"]),
        Some(0) => assert!(codings.is_empty() && lengths.iter().all(|length| *length == "0")),
        Some(bytes) => assert!(codings.is_empty() && lengths == [&*bytes.to_string()]),
    }
    for name in ["keep-alive", "proxy-connection", "proxy-authorization"] {
        assert!(!sent.headers.contains_key(name), "{name}");
    }
    let says_who = |name: &HeaderName| {
        let plain = name.as_str().replace('_', "-");
        CERTIFICATE_SUBJECT == *plain || CERTIFICATE_FINGERPRINT == *plain
    };
    assert!(
        !sent.headers.keys().any(says_who),
        "nobody has shown a certificate"
    );
    let forwarded_for = all(&HeaderName::from_static("x-forwarded-for"));
    if trust {
        assert!(forwarded_for[0].as_bytes().ends_with(PEER.as_bytes()));
    } else {
        assert_eq!(forwarded_for, [PEER]);
        let forwarded = all(&header::FORWARDED);
        assert_eq!(forwarded.len(), 1);
        let bytes = forwarded[0].as_bytes();
        assert!(bytes.starts_with(b"for=192.0.2.7;") || bytes == b"for=192.0.2.7");
        assert!(bytes.iter().filter(|byte| **byte == b'"').count() % 2 == 0);
        assert!(!bytes.contains(&b','), "one element, whatever the host");
    }
}
