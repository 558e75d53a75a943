//! What clients do wrong, by mistake or not.

use super::*;

#[test]
fn a_client_that_begins_otherwise_is_refused() {
    let begins = [(&b"GET / HTTP/1.1\r\n"[..], Vec::new()), (PREFACE, get(1))];
    for (hello, first) in begins {
        let server = Server::new(limits());
        assert_eq!(
            ended_by(&server, &[hello, &first].concat()),
            Reason::PROTOCOL_ERROR
        );
    }
}

#[test]
fn mistakes_that_end_a_connection() {
    let update = |stream, more: u32| frame(frame::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    let cases = [
        (get(2), Reason::PROTOCOL_ERROR),
        (get(0), Reason::PROTOCOL_ERROR),
        ([get(5), get(3)].concat(), Reason::PROTOCOL_ERROR),
        (frame(frame::DATA, 0, 1, b""), Reason::PROTOCOL_ERROR),
        (reset(1), Reason::PROTOCOL_ERROR),
        (update(1, 1), Reason::PROTOCOL_ERROR),
        (update(0, 0), Reason::PROTOCOL_ERROR),
        (update(0, frame::LARGEST), Reason::FLOW_CONTROL_ERROR),
        (
            settings(frame::INITIAL_WINDOW_SIZE, 1 << 31),
            Reason::FLOW_CONTROL_ERROR,
        ),
        (
            settings(frame::MAX_FRAME_SIZE, 16_383),
            Reason::PROTOCOL_ERROR,
        ),
        (settings(frame::ENABLE_PUSH, 2), Reason::PROTOCOL_ERROR),
        (
            frame(frame::SETTINGS, 0, 0, b"short"),
            Reason::FRAME_SIZE_ERROR,
        ),
        (frame(frame::PING, 0, 0, b"short"), Reason::FRAME_SIZE_ERROR),
        (
            frame(frame::DATA, frame::PADDED, 1, &[9, 1]),
            Reason::PROTOCOL_ERROR,
        ),
        (
            frame(frame::CONTINUATION, 0, 1, GET),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [frame(frame::HEADERS, 0, 1, GET), get(1)].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            frame(frame::HEADERS, frame::END_HEADERS, 1, b"\x80"),
            Reason::COMPRESSION_ERROR,
        ),
        (
            frame(frame::PUSH_PROMISE, 0, 1, &[0; 4]),
            Reason::PROTOCOL_ERROR,
        ),
        (
            frame(frame::DATA, 0, 1, &[0; 16_385]),
            Reason::FRAME_SIZE_ERROR,
        ),
    ];
    for (index, (bytes, reason)) in cases.into_iter().enumerate() {
        assert_eq!(ended_by(&server(), &bytes), reason, "case {index}");
    }
}

#[test]
fn mistakes_that_end_a_stream() {
    let request = |fields: &[u8]| {
        frame(
            frame::HEADERS,
            frame::END_HEADERS | frame::END_STREAM,
            1,
            fields,
        )
    };
    let with = |field: &[u8]| [GET, field].concat();
    let cases = [
        (request(b"\x82\x86\x01\x01a"), Reason::PROTOCOL_ERROR), // no path
        (request(b"\x86\x84\x01\x01a"), Reason::PROTOCOL_ERROR), // no method
        (request(b"\x82\x84\x01\x01a"), Reason::PROTOCOL_ERROR), // no scheme
        (request(&with(b"\x82")), Reason::PROTOCOL_ERROR),       // two methods
        (request(&with(b"\x88")), Reason::PROTOCOL_ERROR),       // a status
        (request(&with(b"\x00\x01A\x01b")), Reason::PROTOCOL_ERROR),
        (
            request(&with(b"\x00\x0aconnection\x05close")),
            Reason::PROTOCOL_ERROR,
        ),
        (
            request(&with(b"\x00\x02te\x04gzip")),
            Reason::PROTOCOL_ERROR,
        ),
        (
            request(&with(b"\x00\x01a\x01b\x84")),
            Reason::PROTOCOL_ERROR,
        ), // a path behind a field
        (request(&with(b"\x0f\x0d\x011")), Reason::PROTOCOL_ERROR), // a length without a body
        ([post(1), post(1)].concat(), Reason::PROTOCOL_ERROR),      // trailers without the end
        ([get(1), get(1)].concat(), Reason::STREAM_CLOSED),
        (
            [get(1), frame(frame::DATA, 0, 1, b"a")].concat(),
            Reason::STREAM_CLOSED,
        ),
        (
            frame(frame::PRIORITY, 0, 1, &[0, 0, 0, 1, 0]),
            Reason::PROTOCOL_ERROR,
        ),
    ];
    for (index, (bytes, reason)) in cases.into_iter().enumerate() {
        let server = server();
        server.receive(&bytes).unwrap();
        assert_eq!(resets(&server), [(1, reason)], "case {index}");
        server.receive(&get(3)).unwrap();
        assert_eq!(
            server
                .next_request()
                .map(|request| request.head.method.to_string())
                .as_deref(),
            Some("GET")
        );
    }
}

#[test]
fn a_body_that_is_not_as_long_as_it_says_ends_its_stream() {
    let post = |length: &[u8]| {
        frame(
            frame::HEADERS,
            frame::END_HEADERS,
            1,
            &[POST, b"\x0f\x0d\x01", length].concat(),
        )
    };
    for data in ["a", "abc"] {
        let server = server();
        server.receive(&post(b"2")).unwrap();
        let request = server.next_request().unwrap();
        server
            .receive(&frame(frame::DATA, frame::END_STREAM, 1, data.as_bytes()))
            .unwrap();
        assert_eq!(resets(&server), [(1, Reason::PROTOCOL_ERROR)]);
        let mut body = request.body;
        assert!(matches!(next(&mut body), Poll::Ready(Some(Err(_)))));
    }
}

#[test]
fn fields_that_are_too_large_are_refused_and_the_connection_goes_on() {
    let server = server();
    let value = [&b"\x00\x01a\x7f\xe9\x06"[..], &[b'v'; 1000]].concat();
    let large = frame(
        frame::HEADERS,
        frame::END_HEADERS,
        1,
        &[POST, &value].concat(),
    );
    server.receive(&large).unwrap();
    assert!(server.next_request().is_none());
    let frames: Vec<_> = written(&server)
        .into_iter()
        .map(|(kind, stream, _)| (kind, stream))
        .collect();
    assert_eq!(frames, [(frame::HEADERS, 1), (frame::RST_STREAM, 1)]);
    // What was under way.
    server
        .receive(&[frame(frame::DATA, frame::END_STREAM, 1, b"body"), get(3)].concat())
        .unwrap();
    assert!(server.next_request().is_some());
}

#[test]
fn a_header_block_without_an_end_is_an_attack() {
    let server = server();
    server.receive(&frame(frame::HEADERS, 0, 1, GET)).unwrap();
    let pieces = frame(frame::CONTINUATION, 0, 1, b"").repeat(100);
    assert_eq!(ended_by(&server, &pieces), Reason::ENHANCE_YOUR_CALM);
}

#[test]
fn requests_that_are_reset_at_once_are_an_attack_and_others_are_not() {
    let pair = |stream| [get(stream), reset(stream)].concat();
    let attacked = server();
    let pairs: Vec<u8> = (0..4).flat_map(|index| pair(2 * index + 1)).collect();
    assert_eq!(ended_by(&attacked, &pairs), Reason::ENHANCE_YOUR_CALM);
    let server = server();
    for index in 0..100 {
        server.receive(&pair(2 * index + 1)).unwrap();
        assert!(server.next_request().is_none());
    }
}

#[test]
fn more_streams_than_allowed_are_refused() {
    let server = server();
    let all: Vec<u8> = (0..5).flat_map(|index| get(2 * index + 1)).collect();
    server.receive(&all).unwrap();
    assert_eq!(resets(&server), [(9, Reason::REFUSED_STREAM)]);
    let requests: Vec<Request> = std::iter::from_fn(|| server.next_request()).collect();
    assert_eq!(requests.len(), 4);
    drop(requests);
    server.receive(&get(11)).unwrap();
    assert!(server.next_request().is_some());
}
