//! Heads as clients send them and as they get them.

#![allow(clippy::unwrap_used)]

use http::header::{CONTENT_LENGTH, HOST};
use proptest::prelude::*;

use super::*;

const LIMITS: (usize, usize) = (1000, 8);

fn head(text: &str) -> Result<Option<Head>, Refusal> {
    read(&mut text.as_bytes().into(), LIMITS, &mut Memory::default())
}

fn whole(fields: &str) -> Head {
    head(&format!("GET /a?b HTTP/1.1\r\n{fields}\r\n"))
        .unwrap()
        .unwrap()
}

fn refused(fields: &str) -> Refusal {
    head(&format!("GET / HTTP/1.1\r\n{fields}\r\n")).unwrap_err()
}

#[test]
fn a_head_is_read_as_it_is() {
    let head = whole("Host: a\r\nX-A: b\r\nx-a:  c \r\n");
    assert_eq!(head.parts.method, Method::GET);
    assert_eq!(head.parts.uri, "/a?b");
    assert_eq!(head.parts.version, Version::HTTP_11);
    assert_eq!(head.parts.headers[HOST], "a");
    let values: Vec<_> = head.parts.headers.get_all("x-a").iter().collect();
    assert_eq!(values, ["b", "c"]);
    assert_eq!(head.extent, Extent::Length(0));
    assert!(head.keeps && !head.expects);
}

#[test]
fn a_body_goes_as_far_as_its_head_says() {
    for (fields, extent, keeps) in [
        ("Content-Length: 12\r\n", Extent::Length(12), true),
        (
            "Content-Length: 3\r\nContent-Length: 3\r\n",
            Extent::Length(3),
            true,
        ),
        ("Transfer-Encoding: Chunked\r\n", Extent::Chunks, true),
        // The length means nothing then, in whichever order they come, and others may have believed it.
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            Extent::Chunks,
            false,
        ),
        (
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            Extent::Chunks,
            false,
        ),
    ] {
        let head = whole(fields);
        assert_eq!((head.extent, head.keeps), (extent, keeps), "{fields}");
        let lengths = head.parts.headers.get_all(CONTENT_LENGTH).iter().count();
        assert_eq!(lengths, usize::from(extent != Extent::Chunks), "{fields}");
    }
}

#[test]
fn a_body_whose_end_is_not_told_is_refused() {
    for wrong in ["-1", "+1", "", "1 2", "1, 1", "0x1", "99999999999999999999"] {
        let why = refused(&format!("Content-Length: {wrong}\r\n"));
        assert_eq!(why, HeadError::Length.into(), "{wrong}");
    }
    let two = refused("Content-Length: 1\r\nContent-Length: 2\r\n");
    assert_eq!(two, HeadError::Length.into());
    for coding in ["gzip", "chunked, gzip", "identity", ""] {
        let why = refused(&format!("Transfer-Encoding: {coding}\r\n"));
        assert_eq!(why, Refusal::Coding, "{coding}");
    }
    let old = head("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(old.unwrap_err(), HeadError::Coded.into());
}

#[test]
fn a_connection_is_kept_as_both_versions_say() {
    for (version, fields, keeps) in [
        ("1.1", "", true),
        ("1.1", "Connection: x, Close\r\n", false),
        (
            "1.1",
            "Connection: close\r\nConnection: keep-alive\r\n",
            false,
        ),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let head = head(&format!("GET / HTTP/{version}\r\n{fields}\r\n"));
        assert_eq!(head.unwrap().unwrap().keeps, keeps, "{version} {fields}");
    }
}

#[test]
fn only_a_client_of_http_1_1_with_a_body_waits_for_word() {
    let length = "Content-Length: 1\r\n";
    assert!(whole(&format!("Expect: 100-Continue\r\n{length}")).expects);
    assert!(!whole("Expect: 100-continue\r\n").expects);
    assert!(!whole(&format!("Expect: something\r\n{length}")).expects);
    let old = head(&format!(
        "PUT / HTTP/1.0\r\nExpect: 100-continue\r\n{length}\r\n"
    ));
    assert!(!old.unwrap().unwrap().expects);
}

#[test]
fn what_is_too_long_or_malformed_is_refused_with_its_status() {
    let long = format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(1000));
    for text in [&long, &format!("{long}\r\n\r\n")] {
        let why = head(text).unwrap_err();
        assert_eq!(why, HeadError::TooLarge(1000).into());
        assert_eq!(why.status(), 431);
    }
    let many = refused(&"A: b\r\n".repeat(9));
    assert_eq!(
        (many, many.status().as_u16()),
        (HeadError::TooMany(8).into(), 431)
    );
    for (text, why) in [
        ("G\x01T / HTTP/1.1\r\n\r\n", Refusal::Method),
        ("GET /\x01 HTTP/1.1\r\n\r\n", Refusal::Target),
        ("GET http://[ HTTP/1.1\r\n\r\n", Refusal::Target),
    ] {
        let refusal = head(text).unwrap_err();
        assert_eq!((refusal, refusal.status().as_u16()), (why, 400), "{text:?}");
    }
    for wrong in [
        "GET / HTTP/2.0\r\n\r\n",
        "GET / HTTP/1.1 x\r\n\r\n",
        "GET / HTTP/1.1\r\na b: c\r\n\r\n",
        "GET / HTTP/1.1\r\na : c\r\n\r\n",
        "GET / HTTP/1.1\r\n b: c\r\n\r\n",
        "GET / HTTP/1.1\r\na: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\na: \0\r\n\r\n",
    ] {
        assert_eq!(head(wrong).unwrap_err().status(), 400, "{wrong:?}");
    }
}

#[test]
fn a_target_that_no_uri_can_be_is_refused_by_its_length() {
    let text = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(TARGET_BYTES_MAX));
    let why = read(
        &mut text.as_bytes().into(),
        (1 << 20, 8),
        &mut Memory::default(),
    )
    .unwrap_err();
    assert_eq!((why, why.status().as_u16()), (Refusal::TargetTooLong, 414));
}

/// The head of a response, without its date, how its body is delimited, and whether the connection is kept.
fn written(
    request: &str,
    status: u16,
    fields: &[(&'static str, &'static str)],
    body: Body,
) -> (String, Framing, bool) {
    let form = Form::of(&head(&format!("{request}\r\n\r\n")).unwrap().unwrap().parts);
    let fields = fields.iter().map(|(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    });
    let (mut text, mut keeps) = (Vec::new(), true);
    let status = StatusCode::from_u16(status).unwrap();
    let framing = write(
        &mut text,
        status,
        &SharedFields::from(fields.collect::<HeaderMap>()),
        (form, body),
        &mut keeps,
    );
    let text = String::from_utf8(text).unwrap();
    let lines = text.split_inclusive("\r\n");
    let others: String = lines.filter(|line| !line.starts_with("date: ")).collect();
    assert_ne!(text, others, "the date is missing");
    (others, framing, keeps)
}

#[test]
fn a_response_tells_its_length_or_comes_in_chunks() {
    let get = "GET / HTTP/1.1";
    let wrong_length = [("content-length", "7"), ("a", "b")];
    assert_eq!(
        written(get, 200, &wrong_length, Body::Length(5)),
        (
            "HTTP/1.1 200 OK\r\na: b\r\ncontent-length: 5\r\n\r\n".into(),
            Framing::Plain,
            true
        )
    );
    assert_eq!(
        written(get, 404, &[], Body::Empty).0,
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
    );
    let (text, framing, keeps) = written(get, 200, &wrong_length, Body::Unknown);
    assert_eq!(
        text,
        "HTTP/1.1 200 OK\r\na: b\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    assert_eq!((framing, keeps), (Framing::Chunks(Vec::new()), true));
    let old = written(
        "GET / HTTP/1.0\r\nConnection: keep-alive",
        200,
        &[],
        Body::Unknown,
    );
    assert_eq!(
        old,
        ("HTTP/1.0 200 OK\r\n\r\n".into(), Framing::Plain, false)
    );
}

#[test]
fn some_responses_have_no_body_and_tell_no_length() {
    let fields = [
        ("content-length", "7"),
        ("transfer-encoding", "chunked"),
        ("trailer", "x"),
    ];
    for status in [204, 304] {
        let (text, framing, _) = written("GET / HTTP/1.1", status, &fields, Body::Unknown);
        assert_eq!(
            (text.lines().count(), framing),
            (2, Framing::None),
            "{text}"
        );
    }
    let (text, framing, _) = written("HEAD / HTTP/1.1", 200, &fields, Body::Empty);
    assert_eq!(text, "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n");
    assert_eq!(framing, Framing::None);
    let upgrade = [("connection", "upgrade"), ("upgrade", "x")];
    let (text, ..) = written("GET / HTTP/1.1", 101, &upgrade, Body::Empty);
    let expected = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    assert_eq!(text, expected);
}

#[test]
fn a_response_says_whether_the_connection_is_kept() {
    let close = [("connection", "close")];
    let (text, _, keeps) = written("GET / HTTP/1.1", 200, &close, Body::Empty);
    assert_eq!(
        text,
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    );
    assert!(!keeps);
    let (text, ..) = written(
        "GET / HTTP/1.0\r\nConnection: keep-alive",
        200,
        &[],
        Body::Empty,
    );
    assert_eq!(
        text,
        "HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n"
    );
    let mut text = Vec::new();
    let form = (Form::unknown(), Body::Empty);
    write(
        &mut text,
        StatusCode::OK,
        &SharedFields::default(),
        form,
        &mut false,
    );
    assert!(
        String::from_utf8(text)
            .unwrap()
            .contains("\r\nconnection: close\r\n")
    );
}

#[test]
fn trailers_that_were_announced_follow_for_who_takes_them() {
    let fields = [("trailer", "x-a, content-length")];
    let (_, mut framing, _) = written(
        "GET / HTTP/1.1\r\nTE: trailers",
        200,
        &fields,
        Body::Unknown,
    );
    assert_eq!(
        framing,
        Framing::Chunks(vec![HeaderName::from_static("x-a")])
    );
    let mut output = Output::default();
    framing.push(Frame::data("hi".into()), &mut output);
    framing.push(Frame::data(Bytes::new()), &mut output);
    let fields = [("x-a", "1"), ("x-b", "2")].map(|(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    });
    framing.push(Frame::trailers(fields.into_iter().collect()), &mut output);
    framing.end(&mut output);
    assert_eq!(all(&mut output), "2\r\nhi\r\n0\r\nx-a: 1\r\n\r\n");
    let (_, framing, _) = written("GET / HTTP/1.1", 200, &[("trailer", "x-a")], Body::Unknown);
    assert_eq!(framing, Framing::Chunks(Vec::new()));
}

#[test]
fn a_body_without_trailers_ends_with_the_last_chunk() {
    let (mut output, mut framing) = (Output::default(), Framing::Chunks(Vec::new()));
    framing.push(Frame::data("a".repeat(17).into()), &mut output);
    framing.end(&mut output);
    assert_eq!(
        all(&mut output),
        format!("11\r\n{}\r\n0\r\n\r\n", "a".repeat(17))
    );
    let (mut output, mut framing) = (Output::default(), Framing::Plain);
    framing.push(Frame::data("a".into()), &mut output);
    framing.end(&mut output);
    assert_eq!(all(&mut output), "a");
}

/// All that waits to be written.
fn all(output: &mut Output) -> String {
    let mut written = Vec::new();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let polled = output.poll_write(std::pin::Pin::new(&mut written), &mut context);
    assert!(polled.is_ready() && output.is_empty());
    String::from_utf8(written).unwrap()
}

proptest! {
    /// Whatever comes, in whatever pieces: a head is found when it is whole, and what follows stays.
    #[test]
    fn the_pieces_do_not_matter(cut in 0usize..80, value in "[ -~]{0,20}", after in any::<[u8; 4]>()) {
        let value = value.trim();
        let text = format!("\r\nPUT /a HTTP/1.1\r\nContent-Length: 7\r\nX-A: {value}\r\n\r\n");
        let all = [text.as_bytes(), &after].concat();
        let cut = cut.min(text.len() - 1);
        let mut input = BytesMut::from(&all[..cut]);
        prop_assert!(read(&mut input, LIMITS, &mut Memory::default()).unwrap().is_none());
        input.extend_from_slice(&all[cut..]);
        let head = read(&mut input, LIMITS, &mut Memory::default()).unwrap().unwrap();
        prop_assert_eq!(head.parts.headers["x-a"].as_bytes(), value.as_bytes());
        prop_assert_eq!(head.extent, Extent::Length(7));
        prop_assert_eq!(&input[..], &after[..]);
    }

    #[test]
    fn anything_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut input = BytesMut::from(&bytes[..]);
        match read(&mut input, (100, 4), &mut Memory::default()) {
            Ok(Some(head)) => prop_assert!(head.parts.headers.len() <= 4 && bytes.len() - input.len() <= 100),
            Ok(None) => prop_assert!(input.len() == bytes.len() && input.len() < 100),
            Err(refusal) => prop_assert!(refusal.status().is_client_error()),
        }
    }
}
