//! Backends and clients that fail: what the other side gets, what is sent again, and what never is.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use crate::backend::Backend;
use crate::client::{
    connect, connect_from, exchange, get, post, read_head, read_one, read_to_end, refusing,
};
use crate::front::Front;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_backend_that_refuses_or_says_nonsense_is_a_bad_gateway() {
    let front = Front::start(&[refusing()]);
    assert_eq!(get(front.address, "/", "").status, 502);
    for nonsense in [
        &b"HTTP/1.1 nonsense\r\n\r\n"[..],
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: a\r\n b\r\n\r\n0\r\n\r\n",
        b"",
    ] {
        let backend = Backend::start(move |mut conversation| {
            conversation.read_head();
            conversation.write(nonsense);
        });
        let front = Front::start(&[backend.address]);
        let response = get(front.address, "/", "");
        let text = String::from_utf8_lossy(nonsense);
        assert_eq!(response.status, 502, "{text:?}");
    }
}

#[test]
fn a_backend_that_is_silent_is_given_up() {
    let (say, heard) = mpsc::channel();
    let backend = Backend::start(move |mut conversation| {
        conversation.read_head();
        say.send(conversation.is_left()).unwrap();
    });
    let front = Front::with(&[backend.address], |options| {
        options.first_byte_time_max = Duration::from_millis(200);
    });
    assert_eq!(get(front.address, "/", "").status, 504);
    assert!(heard.recv().unwrap(), "and hears of it");
}

#[test]
fn a_client_that_stops_in_its_body_is_given_up_and_its_backend_hears_of_it() {
    let (say, heard) = mpsc::channel();
    let backend = Backend::start(move |mut conversation| {
        conversation.read_head();
        say.send(conversation.is_left()).unwrap();
    });
    let front = Front::with(&[backend.address], |options| {
        options.upload_time_max = Duration::from_millis(200);
    });
    let stopped = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf";
    assert_eq!(exchange(front.address, stopped).status, 408);
    assert!(heard.recv().unwrap());
}

#[test]
fn a_response_that_breaks_off_is_never_a_clean_end() {
    let with_length = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    for (version, answer) in [("1.1", with_length), ("1.1", chunked), ("1.0", chunked)] {
        let (die, dies) = mpsc::channel();
        let dies = parking_lot::Mutex::new(dies);
        let backend = Backend::start(move |mut conversation| {
            conversation.read_head();
            conversation.write(answer.as_bytes());
            dies.lock().recv().unwrap();
        });
        let front = Front::start(&[backend.address]);
        let mut client = connect(front.address);
        write!(client, "GET / HTTP/{version}\r\nHost: a\r\n\r\n").unwrap();
        read_head(&mut client);
        die.send(()).unwrap();
        let mut body = Vec::new();
        let error = client.read_to_end(&mut body).unwrap_err();
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::ConnectionReset,
            "{answer}"
        );
        assert!(!body.ends_with(b"0\r\n\r\n"));
    }
}

#[test]
fn a_response_that_only_a_reset_ends_is_not_complete() {
    let (die, dies) = mpsc::channel();
    let dies = parking_lot::Mutex::new(dies);
    let backend = Backend::start(move |mut conversation| {
        conversation.read_head();
        conversation.write(b"HTTP/1.0 200 OK\r\n\r\nhello");
        dies.lock().recv().unwrap();
        conversation.reset();
    });
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address);
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    read_head(&mut client);
    die.send(()).unwrap();
    assert!(client.read_to_end(&mut Vec::new()).is_err());
}

/// A backend that answers the first request of its first connection. It reads the second one and
/// closes.
fn closes_on_the_second() -> Backend {
    Backend::start(|mut conversation| {
        conversation.read_request();
        conversation.write(OK);
        if conversation.number == 0 {
            conversation.read_request();
            return;
        }
        while conversation.read_request().is_some() {
            conversation.write(OK);
        }
    })
}

#[test]
fn a_get_is_sent_again_where_a_kept_connection_was_closed() {
    let backend = closes_on_the_second();
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address);
    for _ in 0..2 {
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        assert_eq!(read_one(&mut client).status, 200);
    }
    assert_eq!((backend.connections(), backend.heads().len()), (2, 3));
}

#[test]
fn a_post_is_never_sent_twice() {
    let backend = closes_on_the_second();
    let front = Front::start(&[backend.address]);
    assert_eq!(post(front.address, "/first", "x").status, 200);
    // Until the first connection is idle. Only then is it used again.
    crate::client::wait_for("an idle connection", || {
        (front.backend().connections_idle == 1).then_some(())
    });
    assert_eq!(post(front.address, "/second", "x").status, 502);
    let heads = backend.heads();
    let second = heads.iter().filter(|head| head.contains("/second"));
    assert_eq!(second.count(), 1);
}

#[test]
fn a_get_whose_response_has_begun_is_not_sent_again() {
    let backend = Backend::start(|mut conversation| {
        conversation.read_request();
        conversation.write(OK);
        conversation.read_request();
        conversation.write(b"HTTP/1.1 200 OK\r\nContent-");
    });
    let front = Front::start(&[backend.address]);
    assert_eq!(get(front.address, "/", "").status, 200);
    crate::client::wait_for("an idle connection", || {
        (front.backend().connections_idle == 1).then_some(())
    });
    assert_eq!(get(front.address, "/", "").status, 502);
    assert_eq!((backend.connections(), backend.heads().len()), (1, 2));
}

#[test]
fn a_client_that_goes_away_ends_the_request_at_its_backend() {
    for answer in ["", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"] {
        let (say, heard) = mpsc::channel();
        let backend = Backend::start(move |mut conversation| {
            conversation.read_head();
            conversation.write(answer.as_bytes());
            say.send(false).unwrap();
            say.send(conversation.is_left()).unwrap();
        });
        let front = Front::start(&[backend.address]);
        let mut client = connect(front.address);
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        assert!(!heard.recv().unwrap());
        drop(client);
        assert!(heard.recv().unwrap(), "after {answer:?}");
        crate::client::wait_for("the request's end", || {
            (front.backend().outstanding == 0).then_some(())
        });
    }
}

#[test]
fn a_backend_that_is_silent_in_the_middle_is_given_up() {
    let backend = Backend::start(|mut conversation| {
        conversation.read_head();
        conversation.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello");
        conversation.is_left();
    });
    let front = Front::with(&[backend.address], |options| {
        options.idle_time_max = Duration::from_secs(2);
    });
    let mut client = connect(front.address);
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let response = read_to_end(&mut client);
    assert_eq!((response.status, response.reset), (200, true));
}

#[test]
fn a_backend_with_all_connections_in_use_is_busy() {
    let backend = Backend::start(|mut conversation| {
        conversation.read_head();
        conversation.is_left();
    });
    let front = Front::with(&[backend.address], |options| {
        options.connections_max = 1;
        options.connect_time_max = Duration::from_secs(2);
    });
    let mut first = connect(front.address);
    first
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    crate::client::wait_for("the first request", || {
        (backend.heads().len() == 1).then_some(())
    });
    let second = get(front.address, "/", "");
    assert_eq!(second.status, 503);
    assert_eq!(second.field("retry-after"), Some("1"));
}

/// A thousand large responses of one client used to take all 256 connections, and everybody else
/// got 503.
#[test]
fn one_client_cannot_take_all_connections_to_a_backend() {
    let backend = Backend::start(|mut conversation| {
        let head = conversation.read_head().unwrap_or_default();
        if head.contains("/small") {
            conversation.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsmall");
        }
        conversation.is_left();
    });
    let front = Front::with(&[backend.address], |options| options.connections_max = 4);
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let mut client = connect(front.address);
            client
                .write_all(b"GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            client
        })
        .collect();
    crate::client::wait_for("its share of the connections", || {
        (backend.heads().len() == 3).then_some(())
    });
    let mut other = connect_from([127, 0, 0, 2].into(), front.address);
    other
        .write_all(b"GET /small HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let response = read_one(&mut other);
    assert_eq!(
        (response.status, response.text()),
        (200, "small".to_owned())
    );
    assert!(
        backend
            .heads()
            .iter()
            .filter(|head| head.contains("/held"))
            .count()
            < 4
    );
    drop(waiting);
    front.wait_until_idle();
}
