//! Requests that can be read in two ways: they are refused, or passed on so that only one way is
//! left.

use std::io::Write;

use crate::backend::Backend;
use crate::client::{connect, exchange, field, read_to_end};
use crate::front::Front;

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let backend = Backend::echoing();
    let front = Front::start(&[backend.address]);
    let post = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    let smuggled = "\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for (request, why) in [
        (
            format!("{post}Content-Length: 5\r\nContent-Length: 6\r\n{smuggled}"),
            "two lengths",
        ),
        (format!("{post}Content-Length: +5\r\n{smuggled}"), "a sign"),
        (
            format!("{post}Content-Length: 5, 6\r\n{smuggled}"),
            "a list",
        ),
        (
            format!("{post}Content-Length: 0x5\r\n{smuggled}"),
            "not decimal",
        ),
        (
            format!("{post}Transfer-Encoding: gzip, chunked\r\n{smuggled}"),
            "another coding",
        ),
        (
            format!("{post}Transfer-Encoding: chunked, identity\r\n{smuggled}"),
            "chunked is not last",
        ),
        (
            format!("{post}Transfer-Encoding: xchunked\r\n{smuggled}"),
            "unknown",
        ),
        (
            format!("{post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n{smuggled}"),
            "twice",
        ),
        (
            format!("{post}Transfer-Encoding : chunked\r\n{smuggled}"),
            "a space before the colon",
        ),
        (
            format!("{post}X: a\r\n Transfer-Encoding: chunked\r\n{smuggled}"),
            "a folded line",
        ),
        (
            "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
            "chunked in HTTP/1.0",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n".to_owned(),
            "two hosts",
        ),
        (
            "GET /a/../b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_owned(),
            "a path that climbs",
        ),
        (
            "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nConnection: close\r\n\r\n".to_owned(),
            "CONNECT",
        ),
    ] {
        let status = exchange(front.address, request).status;
        assert!((400..=405).contains(&status), "{why}: {status}");
    }
    assert_eq!(backend.heads(), [""; 0], "nothing reached the backend");
}

#[test]
fn of_a_length_and_chunks_the_backend_sees_the_chunks_only() {
    let backend = Backend::echoing();
    let front = Front::start(&[backend.address]);
    for fields in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    ] {
        let mut client = connect(front.address);
        write!(
            client,
            "POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n2\r\nhi\r\n0\r\n\r\n\
             GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        .unwrap();
        // The connection ends after one response. What follows is not read as a request.
        let response = read_to_end(&mut client);
        assert_eq!(response.status, 200);
        assert!(
            !response.text().contains("/smuggled"),
            "{}",
            response.text()
        );
    }
    let heads = backend.heads();
    assert_eq!(heads.len(), 2, "{heads:?}");
    for head in heads {
        assert_eq!(field(&head, "content-length"), None);
        assert_eq!(field(&head, "transfer-encoding"), Some("chunked"));
    }
}

#[test]
fn a_get_with_a_body_keeps_it() {
    let backend = Backend::echoing();
    let front = Front::start(&[backend.address]);
    let seen = exchange(
        front.address,
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\nhi\r\n0\r\n\r\n",
    );
    assert!(
        seen.text().ends_with("2\r\nhi\r\n0\r\n\r\n"),
        "{}",
        seen.text()
    );
}
