//! Header fields of a proxied exchange, in both directions.
//!
//! - Fields for one connection end here (RFC 9110 7.6.1): those that `Connection` names, `TE`,
//!   `Transfer-Encoding`, `Upgrade` and the like. We ask the backend anew for `TE: trailers` and
//!   for an upgrade other than to `h2c`.
//! - The length of a body is not copied. We send what the parser found, as `Content-Length` or as
//!   chunks.
//! - `Host` is the client's. `Forwarded` (RFC 7239) and `X-Forwarded-For`, `-Host`, `-Proto` name
//!   the client. What a client claims in these fields is dropped unless the route trusts it.
//! - [`CERTIFICATE_SUBJECT`] and [`CERTIFICATE_FINGERPRINT`] say who the client is, if it has shown a certificate that the
//!   site wanted. From elsewhere they are always dropped: a backend must be able to believe them.
//! - Cookies that HTTP/2 has split become one field again (RFC 9113 8.2.3).
//! - A path with `.` or `..`, however it is spelt, is refused as ambiguous. If a request has both
//!   `Transfer-Encoding` and `Content-Length`, `http1` has dropped the latter and closes the client's
//!   connection after the response (RFC 9112 6.3). `request` has already refused what is not a
//!   valid request.

use std::net::IpAddr;

use http::header::{self, Entry, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, Method, StatusCode, Version};
use http_body::Body;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use shortline_tls::ClientIdentity;

use crate::message::head::listed;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The subject of the client's certificate (RFC 4514).
pub const CERTIFICATE_SUBJECT: HeaderName = HeaderName::from_static("x-client-cert-subject");
/// The SHA-256 of the client's certificate.
pub const CERTIFICATE_FINGERPRINT: HeaderName =
    HeaderName::from_static("x-client-cert-fingerprint");
/// Those of them that name the client and what it asked for.
pub const FORWARDED: [HeaderName; 4] = [
    header::FORWARDED,
    X_FORWARDED_FOR,
    X_FORWARDED_HOST,
    X_FORWARDED_PROTO,
];
/// The host for HTTP/1.0 clients that name none.
const HOST_DEFAULT: HeaderValue = HeaderValue::from_static("localhost");

/// What a backend is told about the client.
pub struct Forwarding<'a> {
    /// The client's address.
    pub peer: IpAddr,
    /// Whether it came over TLS.
    pub secure: bool,
    /// Whether the request's own forwarding fields are kept.
    pub trust: bool,
    /// Who the client is, by its certificate.
    pub certificate: Option<&'a ClientIdentity>,
    /// What was told of the connection's last request.
    pub last: Option<&'a LastIntroduction>,
}

/// How a connection's client was introduced to a backend last. It mostly asks for the same host again, and is introduced
/// with the same words.
#[derive(Default)]
pub struct LastIntroduction(Mutex<Option<Introduction>>);

/// Who a client is, and what it asked for.
#[derive(Clone)]
struct Introduction {
    host: HeaderValue,
    /// The element of `Forwarded`.
    element: HeaderValue,
    address: HeaderValue,
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
    let host = match head.uri.authority() {
        Some(authority) => without_user(authority.as_str()),
        None => head.headers.get(header::HOST)?.to_str().ok()?,
    };
    let bytes = host.as_bytes();
    let digits = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let name_bytes = bytes.len() - digits.count();
    match bytes[..name_bytes].last() {
        Some(b':') => Some(&host[..name_bytes - 1]),
        _ => Some(host),
    }
}

/// A host and its port, without who asks it (RFC 3986 3.2.1).
fn without_user(authority: &str) -> &str {
    let at = authority.bytes().rposition(|byte| byte == b'@');
    at.map_or(authority, |at| &authority[at + 1..])
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
    forwarding: &Forwarding<'_>,
) -> Parts {
    let headers = &mut head.headers;
    let host = host(&head.uri, headers);
    let takes_trailers = takes_trailers(headers);
    let said_length = headers.contains_key(header::CONTENT_LENGTH);
    strip(headers);
    if [Version::HTTP_2, Version::HTTP_3].contains(&head.version) {
        join_cookies(headers);
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
    match body.size_hint().exact() {
        Some(bytes) if status != StatusCode::NO_CONTENT => {
            headers.insert(header::CONTENT_LENGTH, bytes.into());
        }
        _ => {
            headers.remove(header::CONTENT_LENGTH);
        }
    }
    headers
}

/// Drops the fields for one connection: to look through the few that are there takes less than to look each of these up.
pub fn strip(headers: &mut HeaderMap) {
    let options = options(headers, &header::CONNECTION);
    // What nearly all say, and names no other field.
    let is_usual = |option: &[u8]| [&b"keep-alive"[..], b"close"].contains(&option);
    let named: Vec<&[u8]> = options.filter(|option| !is_usual(option)).collect();
    let is_named = |name: &HeaderName| {
        let text = name.as_str().as_bytes();
        named.iter().any(|option| option.eq_ignore_ascii_case(text))
            // A client that names these in `Connection` wants to change the request that the backend sees.
            && *name != header::HOST
            && *name != header::CONTENT_LENGTH
    };
    let is_dropped = |name: &&HeaderName| is_hop_by_hop(name) || is_named(name);
    let dropped: Vec<HeaderName> = headers.keys().filter(is_dropped).cloned().collect();
    remove(headers, dropped);
}

/// Whether a field is for one connection only.
fn is_hop_by_hop(name: &HeaderName) -> bool {
    match *name {
        header::CONNECTION
        | header::PROXY_AUTHENTICATE
        | header::PROXY_AUTHORIZATION
        | header::TE
        | header::TRANSFER_ENCODING
        | header::UPGRADE => true,
        _ => ["keep-alive", "proxy-connection"].contains(&name.as_str()),
    }
}

/// Removes the fields whose names are so.
pub fn remove_where(headers: &mut HeaderMap, is_removed: impl Fn(&HeaderName) -> bool) {
    let names = headers.keys().filter(|name| is_removed(name));
    let names = names.cloned().collect();
    remove(headers, names);
}

fn remove(headers: &mut HeaderMap, names: Vec<HeaderName>) {
    for name in names {
        headers.remove(name);
    }
}

/// Joins the pieces of a cookie into one field before they leave HTTP/2 (RFC 9113 8.2.3).
pub fn join_cookies(headers: &mut HeaderMap) {
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
    options(headers, &header::CONNECTION).filter_map(|option| HeaderName::from_bytes(option).ok())
}

fn takes_trailers(headers: &HeaderMap) -> bool {
    says(headers, &header::TE, b"trailers")
}

/// Whether a field that lists options has this one.
pub fn says(headers: &HeaderMap, name: &HeaderName, option: &[u8]) -> bool {
    options(headers, name).any(|said| said.eq_ignore_ascii_case(option))
}

/// What a field lists.
fn options<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    headers.get_all(name).iter().flat_map(listed)
}

/// The host that the client named: in the target (RFC 9112 3.2.2), or else in `Host`.
pub fn host(uri: &Uri, headers: &HeaderMap) -> HeaderValue {
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

/// Whether a client must not send this field, as its name is spelt or as CGI spells it. That is also what CGI would take for the
/// length of the body.
fn is_claim(name: &str, is_disguised: bool) -> bool {
    let is_framing = is_disguised && ["content-length", "transfer-encoding"].contains(&name);
    is_framing
        // Only a proxy knows the values of these.
        || matches!(
            name,
            "forwarded"
                | "x-forwarded-for"
                | "x-forwarded-host"
                | "x-forwarded-port"
                | "x-forwarded-prefix"
                | "x-forwarded-proto"
                | "x-forwarded-server"
                | "x-real-ip"
        )
}

/// Drops what would say who the client is by its certificate. Trailers never say that.
pub fn drop_certificate(trailers: &mut HeaderMap) {
    drop_all(trailers, is_of_certificate);
}

/// Whether a field is either of the two.
fn is_claim_or_of_certificate(name: &str, is_disguised: bool) -> bool {
    is_claim(name, is_disguised) || is_of_certificate(name, is_disguised)
}

/// Whether this field says who the client is by its certificate.
fn is_of_certificate(name: &str, _: bool) -> bool {
    CERTIFICATE_SUBJECT == name || CERTIFICATE_FINGERPRINT == name
}

/// Drops fields, also in the spelling that CGI treats as the same.
fn drop_all(headers: &mut HeaderMap, is_dropped: fn(&str, bool) -> bool) {
    remove_where(headers, |name| match name.as_str() {
        disguised if disguised.contains('_') => is_dropped(&disguised.replace('_', "-"), true),
        plain => is_dropped(plain, false),
    });
}

/// Says who the client is and what it asked for: in the place of what it says itself, or behind that if it is trusted.
pub fn forward(headers: &mut HeaderMap, host: &HeaderValue, forwarding: &Forwarding<'_>) {
    let is_dropped = match forwarding.trust {
        true => is_of_certificate,
        false => is_claim_or_of_certificate,
    };
    drop_all(headers, is_dropped);
    let introduction = introduction(host, forwarding);
    append(headers, header::FORWARDED, introduction.element);
    append(headers, X_FORWARDED_FOR, introduction.address);
    if let Some(identity) = forwarding.certificate {
        set(headers, CERTIFICATE_SUBJECT, &identity.subject);
        set(headers, CERTIFICATE_FINGERPRINT, &identity.fingerprint);
    }
    let protocol = HeaderValue::from_static(forwarding.protocol());
    set_if_missing(headers, X_FORWARDED_PROTO, protocol);
    set_if_missing(headers, X_FORWARDED_HOST, introduction.host);
}

fn introduction(host: &HeaderValue, forwarding: &Forwarding<'_>) -> Introduction {
    let Some(last) = forwarding.last else {
        return Introduction::of(host, forwarding);
    };
    let mut last = last.0.lock();
    match &*last {
        Some(same) if same.host == *host => same.clone(),
        _ => last.insert(Introduction::of(host, forwarding)).clone(),
    }
}

impl Introduction {
    fn of(host: &HeaderValue, forwarding: &Forwarding<'_>) -> Self {
        let peer = address(forwarding.peer);
        let node = match forwarding.peer {
            IpAddr::V4(_) => ["for=", &peer, ""],
            IpAddr::V6(_) => ["for=\"[", &peer, "]\""],
        };
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:[]".contains(byte);
        let named = match host.to_str() {
            Ok(text) if text.as_bytes().iter().all(plain) => [";host=\"", text, "\""],
            _ => ["", "", ""],
        };
        let element = [node, named, [";proto=", forwarding.protocol(), ""]]
            .as_flattened()
            .concat();
        let value = |text: String| HeaderValue::try_from(text).expect("invariant: visible ASCII");
        Self {
            host: host.clone(),
            element: value(element),
            address: value(peer),
        }
    }
}

impl Forwarding<'_> {
    fn protocol(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}

/// An address as text. An IPv4 address digit by digit: to format it took a quarter of the instructions of [`to_backend`].
fn address(address: IpAddr) -> String {
    let IpAddr::V4(address) = address else {
        return address.to_string();
    };
    let mut text = String::with_capacity("255.255.255.255".len());
    for (place, octet) in address.octets().into_iter().enumerate() {
        if place > 0 {
            text.push('.');
        }
        for (least, value) in [(100, octet / 100), (10, octet / 10), (0, octet)] {
            if octet >= least {
                text.push(char::from(b'0' + value % 10));
            }
        }
    }
    text
}

/// Sets a field to a text that is printable.
fn set(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// Sets a field that is not there.
fn set_if_missing(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) {
    if let Entry::Vacant(field) = entry(headers, name) {
        field.insert(value);
    }
}

/// Appends an element to a list, all in one field.
fn append(headers: &mut HeaderMap, name: HeaderName, element: HeaderValue) {
    match entry(headers, name) {
        Entry::Vacant(field) => drop(field.insert(element)),
        Entry::Occupied(mut values) => {
            let elements = values.iter().chain([&element]);
            let elements: Vec<&[u8]> = elements.map(HeaderValue::as_bytes).collect();
            if let Ok(list) = HeaderValue::try_from(elements.join(&b", "[..])) {
                values.insert(list);
            }
        }
    }
}

fn entry(headers: &mut HeaderMap, name: HeaderName) -> Entry<'_, HeaderValue> {
    let field = headers.try_entry(name);
    field.expect("invariant: a request has few fields")
}

#[cfg(test)]
mod tests;
