//! A backend on the other end of a pipe, and a connection to it.

#![allow(clippy::unwrap_used)]

use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::super::backend_socket::Dialed;
use super::*;

fn connection() -> (Http1, DuplexStream) {
    let (ours, backend) = duplex(1 << 16);
    let socket = Dialed::Other(Box::new(ours));
    let socket = BackendSocket::new(socket, Arc::default(), Arc::default());
    let connection = Http1::new(socket, &UpstreamOptions::default());
    (connection, backend)
}

fn get() -> Box<Request<RequestBody>> {
    let request = Request::get("/a").header("host", "b");
    Box::new(request.body(RequestBody::none()).unwrap())
}

fn post(body: &'static [u8]) -> Box<Request<RequestBody>> {
    let request = Request::post("/a").header("content-length", body.len());
    Box::new(request.body(RequestBody::whole(body.into())).unwrap())
}

/// The next bytes that the backend gets.
async fn gets(backend: &mut DuplexStream) -> String {
    let mut bytes = vec![0; 1 << 16];
    let read = backend.read(&mut bytes).await.unwrap();
    String::from_utf8(bytes[..read].to_vec()).unwrap()
}

async fn whole(
    response: Response<ResponseBody>,
) -> Result<(StatusCode, Bytes, HeaderMap), BodyError> {
    let status = response.status();
    let collected = response.into_body().collect().await?;
    let trailers = collected.trailers().cloned().unwrap_or_default();
    Ok((status, collected.to_bytes(), trailers))
}

/// The head of the answer `text`, which the backend sends once it has the request, and what it got.
async fn answered(
    connection: &Http1,
    backend: &mut DuplexStream,
    request: Box<Request<RequestBody>>,
    text: &str,
) -> (Response<ResponseBody>, String) {
    let answers = async {
        let got = gets(backend).await;
        backend.write_all(text.as_bytes()).await.unwrap();
        got
    };
    let (sent, got) = tokio::join!(connection.send(request), answers);
    let response = sent.unwrap_or_else(|unsent| panic!("{}", unsent.error));
    (response, got)
}

#[tokio::test]
async fn requests_follow_each_other_on_a_connection() {
    let (connection, mut backend) = connection();
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc",
        "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
         1 \r\na\r\n2;x=y\r\nbc\r\n0\r\ncheck: sum\r\n\r\n",
        "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 3\r\n\r\nabc",
    ] {
        assert!(connection.is_ready());
        let (response, got) = answered(&connection, &mut backend, get(), text).await;
        assert!(!connection.is_ready());
        let (status, body, trailers) = whole(response).await.unwrap();
        assert_eq!((status, &body[..]), (StatusCode::OK, &b"abc"[..]), "{text}");
        assert_eq!(trailers.contains_key("check"), text.contains("check"));
        assert_eq!(got, "GET /a HTTP/1.1\r\nhost: b\r\n\r\n");
    }
    assert!(connection.is_ready() && !connection.is_closed());
}

#[tokio::test]
async fn a_connection_ends_with_a_body_that_goes_to_its_end() {
    let (connection, mut backend) = connection();
    let text = "HTTP/1.1 200 OK\r\n\r\nabc";
    let (response, _) = answered(&connection, &mut backend, get(), text).await;
    drop(backend);
    assert_eq!(response.body().size_hint().exact(), None);
    assert_eq!(whole(response).await.unwrap().1, "abc");
    assert!(connection.is_closed());
}

#[tokio::test]
async fn what_is_cut_short_is_an_error() {
    let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc";
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc",
        &format!("{chunks}\r\n"),
        &format!("{chunks}\r\n0\r\na: b\r\n"),
        &format!("{chunks}d\r\n"),
    ] {
        let (connection, mut backend) = connection();
        let (response, _) = answered(&connection, &mut backend, get(), text).await;
        drop(backend);
        assert!(whole(response).await.is_err(), "{text}");
        assert!(connection.is_closed());
    }
}

#[tokio::test]
async fn a_connection_that_has_ended_gives_the_request_back() {
    let (connection, backend) = connection();
    assert!(connection.is_ready());
    drop(backend);
    let unsent = connection.send(get()).await.err().unwrap();
    assert!(unsent.request.is_some() && !unsent.has_begun);
    assert!(connection.is_closed());
}

#[tokio::test]
async fn a_request_that_was_written_and_not_answered_is_told_apart() {
    let (connection, mut backend) = connection();
    let unanswered = async {
        let mut got = [0; 1024];
        assert!(backend.read(&mut got).await.unwrap() > 0);
        drop(backend);
    };
    let (sent, ()) = tokio::join!(connection.send(get()), unanswered);
    let unsent = sent.err().unwrap();
    assert!(unsent.request.is_some() && unsent.has_begun);
}

#[tokio::test]
async fn a_connection_with_what_nobody_asked_for_takes_no_request() {
    let (connection, mut backend) = connection();
    let late = b"HTTP/1.1 408 Request Timeout\r\n\r\n";
    backend.write_all(late).await.unwrap();
    assert!(!connection.is_ready() && connection.is_closed());
    let (connection, mut backend) = self::connection();
    let text = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200";
    let (response, _) = answered(&connection, &mut backend, get(), text).await;
    assert_eq!(whole(response).await.unwrap().1, "a");
    assert!(connection.is_closed());
}

#[tokio::test]
async fn an_answer_before_the_whole_request_is_passed_on() {
    const BODY: &[u8] = &[b'x'; 1 << 20];
    let (connection, mut backend) = connection();
    let text = "HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n";
    let (response, _) = answered(&connection, &mut backend, post(BODY), text).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert!(
        connection.is_closed(),
        "the rest of the request may still be on its way"
    );
}

#[tokio::test]
async fn a_body_leaves_with_its_head() {
    let (connection, mut backend) = connection();
    let text = "HTTP/1.1 204 None\r\n\r\n";
    let (response, got) = answered(&connection, &mut backend, post(b"abc"), text).await;
    assert_eq!(got, "POST /a HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc");
    assert!(response.body().is_end_stream());
    assert!(connection.is_ready());
}

#[tokio::test]
async fn who_gives_up_ends_the_connection() {
    let (connection, mut backend) = connection();
    let mut sent = Box::pin(connection.send(get()));
    assert!(poll_fn(|context| Poll::Ready(sent.as_mut().poll(context).is_pending())).await);
    drop(sent);
    assert!(connection.is_closed());
    assert_eq!(
        gets(&mut backend).await,
        "GET /a HTTP/1.1\r\nhost: b\r\n\r\n"
    );
    let (connection, mut backend) = self::connection();
    let text = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc";
    let (response, _) = answered(&connection, &mut backend, get(), text).await;
    drop(response);
    assert!(connection.is_closed());
}

#[tokio::test]
async fn a_connection_that_switches_protocols_is_handed_on_with_what_has_come() {
    let (connection, mut backend) = connection();
    let text = "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\nhello";
    let (response, _) = answered(&connection, &mut backend, get(), text).await;
    let ResponseBody::Http1(body) = response.into_body() else {
        panic!("it came over HTTP/1.1");
    };
    let mut switched = body.switch().unwrap();
    let mut hello = [0; 5];
    switched.read_exact(&mut hello).await.unwrap();
    assert_eq!(&hello, b"hello");
    assert!(connection.is_closed());
}

proptest! {
    /// A response is read the same however it is cut into pieces.
    #[test]
    fn the_pieces_do_not_matter(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..300), 0..8),
        is_chunked in any::<bool>(),
        cuts in proptest::collection::vec(1usize..200, 0..20),
    ) {
        let body = chunks.concat();
        let mut text = b"HTTP/1.1 200 OK\r\n".to_vec();
        if is_chunked {
            text.extend(b"transfer-encoding: chunked\r\n\r\n");
            for chunk in &chunks {
                text.extend(format!("{:X}\r\n", chunk.len()).bytes());
                text.extend(chunk);
                text.extend(b"\r\n");
            }
            text.extend(b"0\r\n\r\n");
        } else {
            text.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
            text.extend(&body);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (read, is_ready) = runtime.block_on(async {
            let (connection, mut backend) = connection();
            let writes = async {
                let mut left = &text[..];
                for cut in cuts.iter().copied().chain([text.len()]) {
                    let (piece, rest) = left.split_at(cut.min(left.len()));
                    backend.write_all(piece).await.unwrap();
                    tokio::task::yield_now().await;
                    left = rest;
                }
                backend
            };
            let reads = async {
                let response = connection.send(get()).await.ok().unwrap();
                whole(response).await.unwrap().1
            };
            let (read, _backend) = tokio::join!(reads, writes);
            (read, connection.is_ready())
        });
        prop_assert_eq!(read, body);
        prop_assert!(is_ready);
    }
}
