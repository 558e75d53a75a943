//! What every request must satisfy before anything else looks at it: a file, a route or a gate
//! alike.
//!
//! - It names one host (RFC 9112 3.2), in `Host`, in an absolute target and in HTTP/2's
//!   `:authority`: a name or an address, with a port up to 65535 or none (RFC 3986 3.2.2, 3.2.3).
//!   User information is not part of the host (RFC 9110 4.2.4, RFC 9113 8.3.1). An empty `Host`
//!   counts as a host (RFC 9110 7.2). HTTP/1.0 may leave `Host` out.
//! - Its target begins with a slash, is a whole `http://host/path`, or is the `*` of `OPTIONS` (RFC
//!   9112 3.2). `CONNECT` names an authority.
//! - Its only transfer coding is `chunked`, named once (RFC 9112 6.1). We know no other.
//!
//! Departures: a comma is refused although RFC 3986 allows it in a name, because some read `Host:
//! a, b` as two hosts. An address with a zone (RFC 6874) is refused because it means nothing on
//! another machine.

use std::net::Ipv6Addr;

use http::header::{HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Method, Version};

/// What a name may contain besides letters and digits (RFC 3986 2.2, 2.3), without the comma.
const NAME_MARKS: &[u8] = b"-._~!$&'()*+;=";

/// Why a request gets 400 and no other answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// No `Host`, or several.
    #[error("the request names no host or several: want one field Host")]
    Hosts,
    /// `Host` is not a host.
    #[error("Host is not a host: want a name or an address, and a port up to 65535 or none")]
    Host,
    /// The host in the target or in `:authority` is not a host.
    #[error(
        "the target's host is not a host: want a name or an address, and a port up to 65535 or none"
    )]
    Authority,
    /// `Host` and `:authority` differ.
    #[error("Host and :authority name different hosts: want one of them, or the same")]
    HostsDiffer,
    /// The target is not a path.
    #[error("the target is not a path: want /path or http://host/path, and * with OPTIONS only")]
    Target,
    /// An unknown transfer coding.
    #[error("unknown transfer coding: want chunked, once")]
    Coding,
}

/// Refuses a malformed request.
///
/// # Errors
/// [`Malformed`] says what is wrong with it.
pub fn check(head: &Parts) -> Result<(), Malformed> {
    check_host(head)?;
    if !is_target(head) {
        return Err(Malformed::Target);
    }
    let mut codings = head.headers.get_all(TRANSFER_ENCODING).iter();
    match codings.next() {
        None => Ok(()),
        Some(coding) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            codings.next().map_or(Ok(()), |_| Err(Malformed::Coding))
        }
        Some(_) => Err(Malformed::Coding),
    }
}

fn check_host(head: &Parts) -> Result<(), Malformed> {
    let mut fields = head.headers.get_all(HOST).iter();
    let field = fields.next();
    let missing = field.is_none() && head.version == Version::HTTP_11;
    if missing || fields.next().is_some() {
        return Err(Malformed::Hosts);
    }
    if field.is_some_and(|field| !is_host(field.as_bytes())) {
        return Err(Malformed::Host);
    }
    let Some(authority) = head.uri.authority() else {
        return Ok(());
    };
    let authority = authority.as_str().as_bytes();
    if !is_host(authority) {
        return Err(Malformed::Authority);
    }
    // RFC 9113 8.3.1, RFC 9114 4.3.1. In HTTP/1.1 the target counts and the field does not (RFC 9112 3.2.2).
    let same = |field: &[u8]| field.eq_ignore_ascii_case(authority);
    let has_both = [Version::HTTP_2, Version::HTTP_3].contains(&head.version);
    if has_both && field.is_some_and(|field| !same(field.as_bytes())) {
        return Err(Malformed::HostsDiffer);
    }
    Ok(())
}

fn is_target(head: &Parts) -> bool {
    if head.method == Method::CONNECT {
        return true;
    }
    match head.uri.path_and_query() {
        // `http` takes a relative target for an authority.
        None => false,
        Some(path) if path.as_str() == "*" => head.method == Method::OPTIONS,
        Some(path) => path.path().starts_with('/'),
    }
}

/// Whether `text` is a host with or without a port, as in `Host`.
pub fn is_host(text: &[u8]) -> bool {
    let (host, port) = if text.starts_with(b"[") {
        let Some(end) = text.iter().position(|byte| *byte == b']') else {
            return false;
        };
        let (literal, after) = text.split_at(end + 1);
        match after {
            [] => (literal, &[][..]),
            [b':', port @ ..] => (literal, port),
            _ => return false,
        }
    } else {
        match text.iter().position(|byte| *byte == b':') {
            Some(colon) => (&text[..colon], &text[colon + 1..]),
            None => (text, &[][..]),
        }
    };
    is_port(port)
        && match host {
            [b'[', literal @ .., b']'] => is_literal(literal),
            name => is_name(name),
        }
}

/// Digits, up to 65535. No digits are a port too (RFC 3986 3.2.3).
fn is_port(digits: &[u8]) -> bool {
    let value = digits.iter().try_fold(0u32, |value, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        let value = value * 10 + digit;
        (value <= u32::from(u16::MAX)).then_some(value)
    });
    value.is_some()
}

/// What may stand in brackets (RFC 3986 3.2.2): an IPv6 address, or one of a future version.
fn is_literal(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    if let Some(future) = text.strip_prefix(['v', 'V']) {
        return future.split_once('.').is_some_and(|(version, address)| {
            let hex = |byte: u8| byte.is_ascii_hexdigit();
            let part = |byte: u8| is_name_byte(byte) || byte == b':';
            !version.is_empty()
                && version.bytes().all(hex)
                && !address.is_empty()
                && address.bytes().all(part)
        });
    }
    text.parse::<Ipv6Addr>().is_ok()
}

/// A name, which may be empty. An IPv4 address looks like one.
fn is_name(text: &[u8]) -> bool {
    let is_plain = |part: &[u8]| part.iter().all(|byte| is_name_byte(*byte));
    let mut parts = text.split(|byte| *byte == b'%');
    parts.next().is_some_and(is_plain)
        && parts.all(|part| match part {
            [high, low, after @ ..] => {
                high.is_ascii_hexdigit() && low.is_ascii_hexdigit() && is_plain(after)
            }
            _ => false,
        })
}

fn is_name_byte(byte: u8) -> bool {
    static ARE: [bool; 256] = {
        let mut are = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            are[byte] = (byte as u8).is_ascii_alphanumeric();
            byte += 1;
        }
        let mut mark = 0;
        while mark < NAME_MARKS.len() {
            are[NAME_MARKS[mark] as usize] = true;
            mark += 1;
        }
        are
    };
    ARE[usize::from(byte)]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn checked(method: &str, uri: &str, fields: &[(&str, &str)]) -> Result<(), Malformed> {
        of_version(Version::HTTP_11, method, uri, fields)
    }

    fn of_version(
        version: Version,
        method: &str,
        uri: &str,
        fields: &[(&str, &str)],
    ) -> Result<(), Malformed> {
        let mut request = http::Request::builder().version(version).method(method);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        check(&request.uri(uri).body(()).unwrap().into_parts().0)
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_a_port_or_none() {
        for host in [
            "",
            "a",
            "a:",
            "a:80",
            "a:65535",
            "a:000080",
            ":80",
            "shop.example",
            "a_b",
            "a.",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:",
            "[::1]:81",
            "[::ffff:192.0.2.1]",
            "[v1.a:b]:1",
            "xn--bcher-kva.example",
            "%c3%a4.example",
            "a;b",
            "(x)",
        ] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "u@a",
            "u:p@a",
            "a/b",
            "a/",
            "a,b",
            "a, b",
            "a b",
            " a",
            "a\t",
            "a?b",
            "a#b",
            "a\\b",
            "a:65536",
            "a:99999999999999999999",
            "a:80x",
            "a:-1",
            "a:+1",
            "a:80:80",
            "::1",
            "[::1",
            "[::1]x",
            "[::1]80",
            "[::zz]",
            "[]",
            "[fe80::1%25eth0]",
            "[v.a]",
            "[v1.]",
            "[a]",
            "a]",
            "%4",
            "%zz",
            "\u{e4}",
            "a\"b",
            "<a>",
            "a|b",
            "a^b",
            "{a}",
            "a`b",
            "a[b",
            "a%",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
        assert!(!is_host(b"a\xff") && !is_host(b"[\xff]"));
    }

    #[test]
    fn there_is_one_host() {
        assert_eq!(checked("GET", "/", &[("host", "a")]), Ok(()));
        assert_eq!(checked("GET", "/", &[("host", "")]), Ok(()));
        assert_eq!(checked("GET", "/", &[]), Err(Malformed::Hosts));
        let twice = [("host", "a"), ("host", "a")];
        assert_eq!(checked("GET", "/", &twice), Err(Malformed::Hosts));
        let without = of_version(Version::HTTP_10, "GET", "/", &[]);
        assert_eq!(without, Ok(()));
        let odd = [("host", "u@a")];
        assert_eq!(checked("GET", "http://a/", &odd), Err(Malformed::Host));
    }

    #[test]
    fn the_host_of_a_target_is_held_to_the_same() {
        for uri in ["http://a/", "http://a:/", "http://[::1]:81/x", "http://a?x"] {
            assert_eq!(checked("GET", uri, &[("host", "b")]), Ok(()), "{uri}");
        }
        for uri in [
            "http://a:65536/",
            "http://u@a/",
            "http://u:p@a:80/",
            "http://[::zz]/",
        ] {
            let told = checked("GET", uri, &[("host", "b")]);
            assert_eq!(told, Err(Malformed::Authority), "{uri}");
        }
    }

    #[test]
    fn in_http_2_host_and_authority_name_the_same() {
        let told = |host| of_version(Version::HTTP_2, "GET", "http://a:81/", &[("host", host)]);
        assert_eq!((told("a:81"), told("A:81")), (Ok(()), Ok(())));
        assert_eq!(told("b"), Err(Malformed::HostsDiffer));
        let without = of_version(Version::HTTP_2, "GET", "http://a/", &[]);
        assert_eq!(without, Ok(()));
    }

    #[test]
    fn a_target_is_a_path_or_the_star_of_options() {
        let host = [("host", "a")];
        for (method, uri) in [
            ("GET", "/"),
            ("PUT", "/a?b"),
            ("OPTIONS", "*"),
            ("CONNECT", "a:1"),
        ] {
            assert_eq!(checked(method, uri, &host), Ok(()), "{method} {uri}");
        }
        for (method, uri) in [
            ("GET", "*"),
            ("POST", "*"),
            ("GET", "a"),
            ("OPTIONS", "a:80"),
        ] {
            let told = checked(method, uri, &host);
            assert_eq!(told, Err(Malformed::Target), "{method} {uri}");
        }
    }

    #[test]
    fn chunked_is_the_only_transfer_coding() {
        let told = |codings: &[&str]| {
            let fields = codings.iter().map(|coding| ("transfer-encoding", *coding));
            let fields: Vec<_> = fields.chain([("host", "a")]).collect();
            checked("POST", "/", &fields)
        };
        assert_eq!((told(&[]), told(&["Chunked"])), (Ok(()), Ok(())));
        for codings in [
            &["gzip, chunked"][..],
            &["chunked", "chunked"],
            &["identity"],
            &[""],
        ] {
            assert_eq!(told(codings), Err(Malformed::Coding), "{codings:?}");
        }
    }

    proptest! {
        #[test]
        fn a_host_of_a_whole_uri_is_one_here_unless_it_says_for_whom(
            host in "[a-z0-9.-]{1,12}(:[0-9]{0,5})?"
        ) {
            let port = host.split_once(':').map_or("", |(_, port)| port);
            let fits = port.is_empty() || port.parse::<u16>().is_ok();
            prop_assert_eq!(is_host(host.as_bytes()), fits);
        }

        #[test]
        fn no_bytes_are_too_odd_to_be_refused(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let told = is_host(&text);
            let odd = |byte: &u8| !byte.is_ascii_graphic() || b"@/,\\?#<>\"{}|^`".contains(byte);
            prop_assert!(!told || !text.iter().any(odd));
        }
    }
}
