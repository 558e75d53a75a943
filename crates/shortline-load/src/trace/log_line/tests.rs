//! Log lines: both formats, what becomes a request, and each error.

#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

fn entry(text: &str) -> Entry {
    parse_line(1, text.as_bytes(), 100).unwrap()
}

fn error(text: &str) -> String {
    parse_line(7, text.as_bytes(), 100).unwrap_err().to_string()
}

/// A line with this request line, answered 200 with 5 bytes.
fn path_of(request: &str) -> String {
    let line = format!("h - - [01/Jul/1995:00:00:01 -0400] \"{request}\" 200 5");
    entry(&line).request.unwrap().0
}

#[test]
fn both_formats_are_read() {
    let common = "h - - [01/Jul/1995:00:00:01 -0400] \"GET /a.html HTTP/1.0\" 200 6245";
    let want = Entry {
        unix_s: 804_571_201,
        after_ns: 0,
        request: Ok(("/a.html".into(), 6245)),
    };
    assert_eq!(entry(common), want);
    assert_eq!(entry(&format!("{common} \"-\" \"a \\\" b\"")), want);
    // As `shortline serve --access-log` writes it.
    let ours = format!("{common} \"-\" \"curl/8\" wait=0.003 send=0.120 complete=1");
    assert_eq!(entry(&ours), want);
}

#[test]
fn only_a_get_answered_200_is_a_request() {
    let of = |request: &str, status: u32, bytes: &str| {
        let line =
            format!("h - a user [01/Jul/1995:00:00:01 +0000] \"{request}\" {status} {bytes}");
        entry(&line).request
    };
    assert_eq!(of("GET /a HTTP/1.0", 200, "-"), Ok(("/a".into(), 0)));
    for (request, status, kind) in [
        ("GET /a HTTP/1.0", 304, LeftOut::NotModified),
        ("GET /a HTTP/1.0", 404, LeftOut::ClientError),
        ("GET /a HTTP/1.0", 206, LeftOut::Piece),
        ("HEAD /a HTTP/1.0", 200, LeftOut::Head),
        ("POST /a HTTP/1.0", 200, LeftOut::Post),
        ("PROPFIND /a HTTP/1.1", 200, LeftOut::OtherMethod),
        ("GET /a HTTP/1.0", 301, LeftOut::Redirect),
        ("GET /a HTTP/1.0", 503, LeftOut::ServerError),
        ("GET /a HTTP/1.0", 204, LeftOut::OtherStatus),
        ("-", 408, LeftOut::NoRequest),
        ("\\x16\\x03\\x01", 400, LeftOut::NoRequest),
    ] {
        assert_eq!(of(request, status, "0"), Err(kind), "{request} {status}");
    }
}

#[test]
fn targets_become_sendable() {
    assert_eq!(path_of("GET /a"), "/a");
    assert_eq!(path_of("GET /a b?c=d HTTP/1.0"), "/a%20b?c=d");
    assert_eq!(path_of("GET /a%20b#c HTTP/1.1"), "/a%20b%23c");
    assert_eq!(path_of("GET http://h:80/a HTTP/1.1"), "/a");
    assert_eq!(path_of("GET HTTPS://h HTTP/1.1"), "/");
    assert_eq!(
        path_of("GET /\\\"a\\\\\\xc3\\xa4 HTTP/1.1"),
        "/%22a%5C%C3%A4"
    );
    assert_eq!(path_of("GET /a\"b HTTP/1.0"), "/a%22b");
    assert_eq!(path_of("GET /ä HTTP/1.0"), "/%C3%A4");
}

#[test]
fn zones_count() {
    let at = |zone: &str| {
        let line = format!("h - - [29/Feb/2000:23:59:59 {zone}] \"GET /\" 200 1");
        entry(&line).unix_s
    };
    assert_eq!(at("+0000"), 951_868_799);
    assert_eq!(at("+0530"), 951_868_799 - 19_800);
    assert_eq!(at("-0930"), 951_868_799 + 34_200);
}

#[test]
fn each_error_names_line_field_and_what_would_be_right() {
    let time = "[01/Jul/1995:00:00:01 -0400]";
    for (text, want) in [
        ("h - [x", "line 7: line `h - [x`: want `host ident user"),
        (
            "h - - [32/Jul/1995:00:00:01 -0400] \"GET /\" 200 1",
            "line 7: time `32/Jul/1995:00:00:01 -0400`: want [day/Mon/year:",
        ),
        (
            "h - - [01/Jul/1995:00:00:01] \"GET /\" 200 1",
            "line 7: time `01/Jul/1995:00:00:01`: want",
        ),
        (
            &format!("h - - {time} GET / 200 1"),
            "line 7: request ` GET / 200 1`: want it in quotes",
        ),
        (
            &format!("h - - {time} \"GET / HTTP/1.0"),
            "line 7: request ` \\\"GET / HTTP/1.0`: want it in quotes",
        ),
        (
            &format!("h - - {time} \"GET a HTTP/1.0\" 200 1"),
            "line 7: request `GET a HTTP/1.0`: want GET /path HTTP/1.1",
        ),
        (
            &format!("h - - {time} \"GET /\" 20 1"),
            "line 7: status `20`: want three digits",
        ),
        (
            &format!("h - - {time} \"GET /\" 200"),
            "line 7: bytes ``: want a whole number, or - for none",
        ),
        (
            &format!("h - - {time} \"GET /\" 200 -1"),
            "line 7: bytes `-1`: want",
        ),
        (
            &format!("h - - {time} \"GET /\" 200 1 \"-"),
            "line 7: referer ` \\\"-`: want it in quotes",
        ),
        (
            &format!("h - - {time} \"GET /\" 200 1 \"-\" agent"),
            "line 7: user agent ` agent`: want it in quotes",
        ),
    ] {
        let error = error(text);
        assert!(error.starts_with(want), "{error}");
    }
    let long = format!("h - - {time} \"GET /{}\" 200 1", "a".repeat(100));
    assert_eq!(error(&long), "line 7: path of 101 bytes: want 100 at most");
}

proptest! {
    #[test]
    fn no_line_panics(text in "[-a-zA-Z0-9:/ \\[\\]\"\\\\]{0,80}") {
        let _ = parse_line(1, text.as_bytes(), 50).is_ok();
    }

    #[test]
    fn what_a_server_writes_reads_back(
        target in proptest::collection::vec(any::<u8>(), 0..20),
        bytes: u64,
        second in 0i64..4_000_000_000,
    ) {
        let time = OffsetDateTime::from_unix_timestamp(second).unwrap();
        let month = &time.month().to_string()[..3];
        let (day, year) = (time.day(), time.year());
        let (h, m, s) = time.to_hms();
        let escaped: String = target.iter().map(|byte| match byte {
            b'"' => "\\\"".into(),
            b'\\' => "\\\\".into(),
            b if b.is_ascii_graphic() || *b == b' ' => char::from(*b).to_string(),
            b => format!("\\x{b:02x}"),
        }).collect();
        let line = format!(
            "h - - [{day:02}/{month}/{year}:{h:02}:{m:02}:{s:02} +0000] \
             \"GET /{escaped} HTTP/1.1\" 200 {bytes} \"-\" \"-\""
        );
        let read = parse_line(1, line.as_bytes(), 100).unwrap();
        prop_assert_eq!(read.unix_s, second);
        let (path, read_bytes) = read.request.unwrap();
        prop_assert_eq!(read_bytes, bytes);
        let decoded: Vec<u8> = percent_encoding::percent_decode_str(&path).collect();
        // Spaces at the end of a target cannot be told from those around it; what was
        // encoded already stays so.
        if !target.contains(&b'%') {
            let mut want = b"/".to_vec();
            want.extend(&target);
            prop_assert_eq!(decoded, want.trim_ascii_end());
        }
    }
}
