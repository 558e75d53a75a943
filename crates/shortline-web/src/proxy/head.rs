//! Header fields of a proxied exchange, in both directions.
//!
//! - Fields for one connection end here (RFC 9110 7.6.1): those that `Connection` names, `TE`,
//!   `Transfer-Encoding`, `Upgrade` and the like. We ask the backend anew for `TE: trailers` and
//!   for an upgrade other than to `h2c`.
//! - The length of a body is not copied. We send what the parser found, as `Content-Length` or as
//!   chunks.
//! - `Host` is the client's. `Forwarded` (RFC 7239) and `X-Forwarded-For`, `-Host`, `-Proto` name
//!   the client. What a client claims in these fields is dropped unless the route trusts it.
//! - Cookies that HTTP/2 has split become one field again (RFC 9113 8.2.3).
//! - A path with `.` or `..`, however it is spelt, is refused as ambiguous. If a request has both
//!   `Transfer-Encoding` and `Content-Length`, `hyper` drops the latter and closes the client's
//!   connection after the response (RFC 9112 6.3). `request` has already refused what is not a
//!   valid request.

use std::net::IpAddr;

use http::header::{self, Entry, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, Method, StatusCode, Version};
use http_body::Body;
use percent_encoding::percent_decode_str;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Fields for one connection only.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    KEEP_ALIVE,
    PROXY_CONNECTION,
];
/// Fields that a client must not send. Only a proxy knows their values.
const CLAIMS: [&str; 8] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
];
/// The host for HTTP/1.0 clients that name none.
const HOST_DEFAULT: HeaderValue = HeaderValue::from_static("localhost");

/// What a backend is told about the client.
pub struct Forwarding {
    /// The client's address.
    pub peer: IpAddr,
    /// Whether it came over TLS.
    pub secure: bool,
    /// Whether the request's own forwarding fields are kept.
    pub trust: bool,
}

/// A request that a backend might read differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ambiguous request: {0}")]
pub struct Ambiguous(&'static str);

/// Refuses a request that a backend might read differently.
///
/// # Errors
/// [`Ambiguous`] says why.
pub fn refuse_ambiguous(head: &Parts) -> Result<(), Ambiguous> {
    if climbs(head.uri.path()) {
        return Err(Ambiguous("a dot segment in the path"));
    }
    Ok(())
}

/// Whether a backend that decodes a path once may see `.` or `..` in it. Some read `..;x` as `..`.
fn climbs(path: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    decoded
        .split(|byte| matches!(byte, b'/' | b'\\'))
        .filter_map(|segment| segment.split(|byte| *byte == b';').next())
        .any(|name| name == b"." || name == b"..")
}

/// The host that a request names, without a port.
pub fn host_name(head: &Parts) -> Option<&str> {
    let host = match head.uri.host() {
        Some(host) => host,
        None => head.headers.get(header::HOST)?.to_str().ok()?,
    };
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    match host.rsplit_once(':') {
        Some((name, port)) if digits(port) => Some(name),
        _ => Some(host),
    }
}

/// The protocol that the client asks to switch to, if it may.
pub fn upgrade_asked(head: &Parts) -> Option<HeaderValue> {
    let asked = head.headers.get(header::UPGRADE)?;
    let named = connection_options(&head.headers).any(|option| option == header::UPGRADE);
    // Inside h2c a client could talk to the backend without our control.
    let text = asked.to_str().ok()?.to_ascii_lowercase();
    let allowed = head.version == Version::HTTP_11 && named && !text.contains("h2c");
    allowed.then(|| asked.clone())
}

/// The request as the backend gets it. `body_bytes` is `None` if only the end of the body tells its
/// length.
pub fn to_backend(
    mut head: Parts,
    body_bytes: Option<u64>,
    upgrade: Option<&HeaderValue>,
    forwarding: &Forwarding,
) -> Parts {
    let headers = &mut head.headers;
    let host = host(&head.uri, headers);
    let takes_trailers = takes_trailers(headers);
    let said_length = headers.contains_key(header::CONTENT_LENGTH);
    strip(headers);
    if head.version == Version::HTTP_2 {
        join_cookies(headers);
    }
    if !forwarding.trust {
        drop_claims(headers);
    }
    forward(headers, &host, forwarding);
    headers.insert(header::HOST, host);
    headers.remove(header::CONTENT_LENGTH);
    match body_bytes {
        Some(0) if !said_length => {}
        Some(bytes) => {
            headers.insert(header::CONTENT_LENGTH, bytes.into());
        }
        None => {
            let chunked = HeaderValue::from_static("chunked");
            headers.insert(header::TRANSFER_ENCODING, chunked);
        }
    }
    if let Some(upgrade) = upgrade {
        headers.insert(header::UPGRADE, upgrade.clone());
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    } else if takes_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
    head.uri = origin_form(&head.uri);
    head.version = Version::HTTP_11;
    head
}

/// The response's fields as the client gets them.
pub fn to_client(
    mut headers: HeaderMap,
    body: &impl Body,
    method: &Method,
    status: StatusCode,
) -> HeaderMap {
    let chunked = headers.contains_key(header::TRANSFER_ENCODING);
    strip(&mut headers);
    // The length may be given even for a body that is not sent.
    if *method == Method::HEAD || status == StatusCode::NOT_MODIFIED {
        if chunked {
            headers.remove(header::CONTENT_LENGTH);
        }
        return headers;
    }
    headers.remove(header::CONTENT_LENGTH);
    if status != StatusCode::NO_CONTENT
        && let Some(bytes) = body.size_hint().exact()
    {
        headers.insert(header::CONTENT_LENGTH, bytes.into());
    }
    headers
}

/// Drops the fields for one connection.
pub fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = connection_options(headers)
        // A client that names these in `Connection` wants to change the request that the backend
        // sees.
        .filter(|name| *name != header::HOST && *name != header::CONTENT_LENGTH)
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Joins the pieces of a cookie into one field before they leave HTTP/2 (RFC 9113 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let pieces = headers.get_all(header::COOKIE).iter();
    let pieces: Vec<&[u8]> = pieces.map(HeaderValue::as_bytes).collect();
    if pieces.len() > 1
        && let Ok(cookie) = HeaderValue::from_bytes(&pieces.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, cookie);
    }
}

/// The names that `Connection` has.
pub fn connection_options(headers: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|option| HeaderName::from_bytes(option.trim_ascii()).ok())
}

fn takes_trailers(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::TE)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

/// The host that the client named: in the target (RFC 9112 3.2.2), or else in `Host`.
fn host(uri: &Uri, headers: &HeaderMap) -> HeaderValue {
    let in_target = uri
        .authority()
        .and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    in_target
        .or_else(|| headers.get(header::HOST).cloned())
        .unwrap_or(HOST_DEFAULT)
}

/// The target in origin form (RFC 9112 3.2.1). An absolute target may have no path
/// (`http://host?query`, `http://host#fragment`); without its authority it would be empty. Printed
/// alone, a path begins with a slash.
fn origin_form(uri: &Uri) -> Uri {
    let path = match uri.path_and_query() {
        Some(path) if uri.authority().is_some() => path.to_string().try_into().ok(),
        path => path.cloned(),
    };
    Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")))
}

/// Drops the fields that a client must not send, also in the spelling that CGI treats as the same,
/// and what CGI would take for the length of the body.
fn drop_claims(headers: &mut HeaderMap) {
    for name in CLAIMS {
        headers.remove(name);
    }
    let disguised: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().contains('_'))
        .filter(|name| {
            let plain = name.as_str().replace('_', "-");
            let framing = plain == "content-length" || plain == "transfer-encoding";
            framing || CLAIMS.contains(&plain.as_str())
        })
        .cloned()
        .collect();
    for name in disguised {
        headers.remove(name);
    }
}

fn forward(headers: &mut HeaderMap, host: &HeaderValue, forwarding: &Forwarding) {
    let protocol = if forwarding.secure { "https" } else { "http" };
    let peer = forwarding.peer;
    append(headers, X_FORWARDED_FOR, &peer.to_string());
    if let Entry::Vacant(field) = headers
        .try_entry(X_FORWARDED_PROTO)
        .expect("invariant: a request has few fields")
    {
        field.insert(HeaderValue::from_static(protocol));
    }
    if !headers.contains_key(X_FORWARDED_HOST) {
        headers.insert(X_FORWARDED_HOST, host.clone());
    }
    let node = match peer {
        IpAddr::V4(address) => format!("for={address}"),
        IpAddr::V6(address) => format!("for=\"[{address}]\""),
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:[]".contains(byte);
    let host = match host.to_str() {
        Ok(text) if text.as_bytes().iter().all(plain) => format!(";host=\"{text}\""),
        _ => String::new(),
    };
    append(
        headers,
        header::FORWARDED,
        &format!("{node}{host};proto={protocol}"),
    );
}

/// Appends an element to a list, all in one field.
fn append(headers: &mut HeaderMap, name: HeaderName, element: &str) {
    let mut list = Vec::new();
    for value in headers.get_all(&name) {
        list.extend_from_slice(value.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(element.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&list) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
    fn cookies_that_http_2_split_are_one_field_again() {
        let cookies = |version| -> Vec<HeaderValue> {
            let fields = [("cookie", "a=b"), ("cookie", "c=d"), ("cookie", "e=f; g=h")];
            let mut head = parts("http://a/", &fields);
            head.version = version;
            let forwarding = Forwarding {
                peer: "192.0.2.7".parse().unwrap(),
                secure: true,
                trust: false,
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
}
