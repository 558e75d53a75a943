//! A client on the other end of a pipe.

#![allow(clippy::unwrap_used)]

use std::future::poll_fn;
use std::sync::Arc;

use http_body_util::BodyExt;
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::super::body::Body;
use super::*;

type Shared = Arc<Mutex<Wire<DuplexStream>>>;

fn connection() -> (Shared, DuplexStream) {
    let (ours, client) = duplex(1 << 16);
    let wire = Wire::new(ours, Bytes::new(), (1000, 8));
    (Arc::new(Mutex::new(wire)), client)
}

async fn next(wire: &Shared) -> Option<Head> {
    poll_fn(|context| wire.lock().poll_head(context))
        .await
        .unwrap()
}

/// The next request's head, and its body.
async fn request(wire: &Shared) -> (Head, Body) {
    let head = next(wire).await.unwrap();
    let request = wire.lock().body_begins(&head);
    let source: Arc<dyn super::super::body::Source> = wire.clone();
    (head, Body::of(source, request))
}

async fn rest(wire: &Shared) -> Rest {
    poll_fn(|context| Poll::Ready(wire.lock().rest(context))).await
}

#[tokio::test]
async fn a_body_is_read_as_it_is_asked_for_and_the_next_head_follows() {
    let (wire, mut client) = connection();
    let first = b"PUT /a HTTP/1.1\r\nContent-Length: 4\r\n\r\nbodyGET /b HTTP/1.1\r\n\r\n";
    client.write_all(first).await.unwrap();
    let (_, body) = request(&wire).await;
    assert_eq!(rest(&wire).await, Rest::Read);
    assert_eq!(body.collect().await.unwrap().to_bytes(), "body");
    assert_eq!(rest(&wire).await, Rest::Nothing);
    let (head, body) = request(&wire).await;
    assert_eq!(head.parts.uri, "/b");
    assert!(http_body::Body::is_end_stream(&body));
    drop(client);
    assert!(next(&wire).await.is_none());
}

#[tokio::test]
async fn chunks_are_taken_apart_and_their_trailers_follow() {
    let (wire, mut client) = connection();
    let text =
        b"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n0\r\nX-A: b\r\n\r\n";
    client.write_all(text).await.unwrap();
    let (_, body) = request(&wire).await;
    let collected = body.collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["x-a"], "b");
    assert_eq!(collected.to_bytes(), "hi");
    assert_eq!(rest(&wire).await, Rest::Nothing);
    for wrong in ["2\r\nhi!\r\n", "2;\r\nhi\r\n", "0\r\nX A: b\r\n\r\n"] {
        let (wire, mut client) = connection();
        let text = format!("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{wrong}");
        client.write_all(text.as_bytes()).await.unwrap();
        let (_, body) = request(&wire).await;
        let error = body.collect().await.unwrap_err();
        assert!(matches!(error, Broken::Chunks(_)), "{wrong:?}: {error}");
        assert_eq!(rest(&wire).await, Rest::Unknown);
    }
}

#[tokio::test]
async fn a_client_that_waits_is_told_once_its_body_is_wanted() {
    let (wire, mut client) = connection();
    let head = b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    client.write_all(head).await.unwrap();
    let (_, body) = request(&wire).await;
    let (got, ()) = tokio::join!(body.collect(), async {
        let mut told = [0; CONTINUE.len()];
        client.read_exact(&mut told).await.unwrap();
        assert_eq!(told, CONTINUE);
        client.write_all(b"hi").await.unwrap();
    });
    assert_eq!(got.unwrap().to_bytes(), "hi");
}

/// Such a client may send its next request instead of the body.
#[tokio::test]
async fn what_follows_a_client_that_was_not_told_is_unknown() {
    for begins in [false, true] {
        let (wire, mut client) = connection();
        let head = b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        client.write_all(head).await.unwrap();
        let (_, body) = request(&wire).await;
        if begins {
            wire.lock().response_begins();
        }
        assert_eq!(rest(&wire).await, Rest::Read);
        drop(body);
        assert_eq!(rest(&wire).await, Rest::Unknown);
    }
}

#[tokio::test]
async fn a_body_that_nobody_reads_is_passed_over() {
    let (wire, mut client) = connection();
    client
        .write_all(b"PUT / HTTP/1.1\r\nContent-Length: 6\r\n\r\nabc")
        .await
        .unwrap();
    let (_, body) = request(&wire).await;
    drop(body);
    assert_eq!(rest(&wire).await, Rest::Bytes(6));
    let passed = poll_fn(|context| wire.lock().poll_pass(context));
    let sends = client.write_all(b"defGET /b HTTP/1.1\r\n\r\n");
    let (passed, _) = tokio::join!(passed, sends);
    passed.unwrap();
    assert_eq!(next(&wire).await.unwrap().parts.uri, "/b");
}

/// Whoever keeps the body of a request that is over must not touch the next one's.
#[tokio::test]
async fn a_body_that_outlives_its_request_is_empty() {
    let (wire, mut client) = connection();
    let text = "PUT / HTTP/1.1\r\nContent-Length: 1\r\n\r\na";
    client.write_all(text.repeat(2).as_bytes()).await.unwrap();
    let (_, mut first) = request(&wire).await;
    assert_eq!(
        first.frame().await.unwrap().unwrap().data_ref().unwrap(),
        "a"
    );
    let (_, second) = request(&wire).await;
    assert!(first.frame().await.is_none());
    drop(first);
    assert_eq!(rest(&wire).await, Rest::Read);
    assert_eq!(second.collect().await.unwrap().to_bytes(), "a");
}

#[tokio::test]
async fn a_client_that_goes_is_seen_unless_it_has_sent_ahead() {
    let (wire, mut client) = connection();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let _request = request(&wire).await;
    let look = || poll_fn(|context| Poll::Ready(wire.lock().look(context)));
    look().await.unwrap();
    client.write_all(b"GET").await.unwrap();
    look().await.unwrap();
    drop(client);
    look().await.unwrap();
    let (wire, client) = connection();
    drop(client);
    let gone = poll_fn(|context| Poll::Ready(wire.lock().look(context))).await;
    assert!(matches!(gone, Err(Broken::Gone)));
}

#[tokio::test]
async fn what_ends_within_a_request_is_cut_short() {
    let (wire, mut client) = connection();
    client.write_all(b"GET / HT").await.unwrap();
    drop(client);
    let head = poll_fn(|context| wire.lock().poll_head(context)).await;
    assert!(matches!(head, Err(Broken::CutShort)));
    let (wire, mut client) = connection();
    client
        .write_all(b"PUT / HTTP/1.1\r\nContent-Length: 6\r\n\r\nabc")
        .await
        .unwrap();
    let (_, body) = request(&wire).await;
    drop(client);
    let error = body.collect().await.unwrap_err();
    assert!(matches!(error, Broken::CutShort));
}

/// Who reads a body in another task is told that the connection is over.
#[tokio::test]
async fn the_end_of_the_connection_ends_its_body() {
    let (wire, mut client) = connection();
    client
        .write_all(b"PUT / HTTP/1.1\r\nContent-Length: 6\r\n\r\n")
        .await
        .unwrap();
    let (_, body) = request(&wire).await;
    let reads = tokio::spawn(body.collect());
    tokio::task::yield_now().await;
    wire.lock().end();
    assert!(matches!(reads.await.unwrap(), Err(Broken::Over)));
}

proptest! {
    /// Requests behind each other are told apart, however they come in pieces.
    #[test]
    fn requests_are_told_apart(
        bodies in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..40)), 1..5),
        piece in 1usize..60,
    ) {
        let text: Vec<u8> = bodies.iter().flat_map(|(is_chunked, body)| {
            let head = match is_chunked {
                true => "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
                false => format!("PUT / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len()),
            };
            let body = match (is_chunked, body.len()) {
                (false, _) => body.clone(),
                (true, 0) => b"0\r\n\r\n".to_vec(),
                (true, bytes) => [format!("{bytes:x}\r\n").as_bytes(), body, b"\r\n0\r\n\r\n"].concat(),
            };
            [head.into_bytes(), body].concat()
        }).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (wire, mut client) = connection();
            let sends = async {
                for part in text.chunks(piece) {
                    client.write_all(part).await.unwrap();
                    tokio::task::yield_now().await;
                }
            };
            let reads = async {
                for (_, expected) in &bodies {
                    let (_, body) = request(&wire).await;
                    assert_eq!(&body.collect().await.unwrap().to_bytes(), expected);
                }
            };
            tokio::join!(sends, reads);
        });
    }
}
