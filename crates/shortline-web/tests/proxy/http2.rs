//! HTTP/2 in front of HTTP/1.1: the same exchanges on streams.

use std::net::SocketAddr;
use std::sync::mpsc;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request, Response};
use tokio::net::TcpStream;

use crate::backend::Backend;
use crate::client::field;
use crate::front::Front;

/// A connection of HTTP/2.
pub async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    sender.ready().await.unwrap()
}

/// A request without a body.
pub fn request(method: &str, path: &str) -> Request<()> {
    let uri = format!("http://shop.example{path}");
    Request::builder().method(method).uri(uri).body(()).unwrap()
}

/// The whole response, or the error that ended it.
pub async fn read(
    response: h2::client::ResponseFuture,
) -> Result<(Response<()>, Vec<u8>, Option<HeaderMap>), h2::Error> {
    let (parts, mut body) = response.await?.into_parts();
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        bytes.extend_from_slice(&data);
    }
    let trailers = body.trailers().await?;
    Ok((Response::from_parts(parts, ()), bytes, trailers))
}

#[tokio::test]
async fn streams_share_a_connection_and_each_is_an_exchange() {
    let backend = Backend::echoing();
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address).await;
    let mut responses = Vec::new();
    for at in 0..20 {
        let path = format!("/{at}");
        let (response, _) = client.send_request(request("GET", &path), true).unwrap();
        responses.push((path, response));
    }
    for (path, response) in responses {
        let (head, body, _) = read(response).await.unwrap();
        assert_eq!(head.status(), 200);
        let seen = String::from_utf8(body).unwrap();
        assert!(
            seen.starts_with(&format!("GET {path} HTTP/1.1\r\n")),
            "{seen}"
        );
        assert_eq!(field(&seen, "host"), Some("shop.example"));
    }
    drop_outside(front).await;
}

#[tokio::test]
async fn bodies_and_trailers_come_through_both_ways() {
    let backend = Backend::start(|mut conversation| {
        let (_, body) = conversation.read_request().unwrap();
        let size = body.len();
        let text = String::from_utf8(body).unwrap();
        assert!(
            text.ends_with("0\r\nx-sum: 300000\r\n\r\n"),
            "{}",
            &text[text.len() - 40..]
        );
        conversation.write(
            format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                 {:x}\r\n{}\r\n0\r\nX-Sum: 7\r\n\r\n",
                size,
                "y".repeat(size)
            )
            .as_bytes(),
        );
    });
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address).await;
    let mut head = request("POST", "/");
    head.headers_mut()
        .insert("trailer", "x-sum".parse().unwrap());
    let (response, mut body) = client.send_request(head, false).unwrap();
    // More than a window, so that window must be returned.
    for _ in 0..300 {
        body.reserve_capacity(1000);
        let capacity = std::future::poll_fn(|context| body.poll_capacity(context)).await;
        assert!(capacity.unwrap().unwrap() > 0);
        body.send_data(Bytes::from(vec![b'x'; 1000]), false)
            .unwrap();
    }
    let sum = HeaderMap::from_iter([(
        http::HeaderName::from_static("x-sum"),
        "300000".parse().unwrap(),
    )]);
    body.send_trailers(sum).unwrap();
    let (head, body, trailers) = read(response).await.unwrap();
    assert_eq!(head.status(), 200);
    assert!(body.len() > 300_000 && body.iter().all(|byte| *byte == b'y'));
    assert_eq!(trailers.unwrap()["x-sum"], "7");
    drop_outside(front).await;
}

#[tokio::test]
async fn a_response_that_breaks_off_resets_its_stream() {
    let (die, dies) = mpsc::channel();
    let dies = parking_lot::Mutex::new(dies);
    let backend = Backend::start(move |mut conversation| {
        conversation.read_head();
        conversation.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
        dies.lock().recv().unwrap();
    });
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address).await;
    let (response, _) = client.send_request(request("GET", "/"), true).unwrap();
    let (_, mut body) = response.await.unwrap().into_parts();
    assert_eq!(body.data().await.unwrap().unwrap(), "hello");
    die.send(()).unwrap();
    assert!(body.data().await.unwrap().unwrap_err().is_reset());
    drop_outside(front).await;
}

#[tokio::test]
async fn a_stream_that_is_reset_ends_the_request_at_its_backend() {
    let (say, heard) = mpsc::channel();
    let backend = Backend::start(move |mut conversation| {
        conversation.read_head();
        say.send(false).unwrap();
        say.send(conversation.is_left()).unwrap();
    });
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address).await;
    let (response, mut stream) = client.send_request(request("GET", "/"), true).unwrap();
    let heard = tokio::task::spawn_blocking(move || {
        assert!(!heard.recv().unwrap());
        heard
    });
    let heard = heard.await.unwrap();
    stream.send_reset(h2::Reason::CANCEL);
    drop(response);
    let left = tokio::task::spawn_blocking(move || heard.recv().unwrap());
    assert!(left.await.unwrap());
    drop_outside(front).await;
}

#[tokio::test]
async fn continue_is_the_backends_word_here_too() {
    let backend = Backend::start(|mut conversation| {
        conversation.read_head();
        conversation.write(b"HTTP/1.1 100 Continue\r\n\r\n");
        let mut body = [0; 4];
        std::io::Read::read_exact(&mut conversation.stream, &mut body).unwrap();
        conversation.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
        conversation.write(&body);
    });
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address).await;
    let mut head = request("POST", "/");
    let fields = head.headers_mut();
    fields.insert("expect", "100-continue".parse().unwrap());
    fields.insert("content-length", "4".parse().unwrap());
    let (mut response, mut body) = client.send_request(head, false).unwrap();
    let interim = std::future::poll_fn(|context| response.poll_informational(context));
    assert_eq!(interim.await.unwrap().unwrap().status(), 100);
    body.send_data(Bytes::from_static(b"body"), true).unwrap();
    let (head, body, _) = read(response).await.unwrap();
    assert_eq!((head.status().as_u16(), &body[..]), (200, &b"body"[..]));
    drop_outside(front).await;
}

/// A runtime cannot be ended inside another.
pub async fn drop_outside(front: Front) {
    tokio::task::spawn_blocking(move || drop(front))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_cookie_that_was_split_is_one_field_before_the_backend() {
    let backend = Backend::echoing();
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address).await;
    let mut head = request("GET", "/");
    for piece in ["a=b", "c=d", "e=f"] {
        head.headers_mut().append("cookie", piece.parse().unwrap());
    }
    let (response, _) = client.send_request(head, true).unwrap();
    let (_, body, _) = read(response).await.unwrap();
    let seen = String::from_utf8(body).unwrap().to_ascii_lowercase();
    assert_eq!(seen.matches("cookie:").count(), 1, "{seen}");
    assert_eq!(field(&seen, "cookie"), Some("a=b; c=d; e=f"));
    drop_outside(front).await;
}

#[tokio::test]
async fn what_is_no_request_is_none_in_http_2_either() {
    let backend = Backend::echoing();
    let front = Front::start(&[backend.address]);
    let client = connect(front.address).await;
    let ask = async |uri: &str, method: &str, host: Option<&str>| {
        let mut head = Request::builder().method(method).uri(uri);
        if let Some(host) = host {
            head = head.header("host", host);
        }
        let mut client = client.clone().ready().await.unwrap();
        let (response, _) = client.send_request(head.body(()).unwrap(), true).unwrap();
        read(response).await.unwrap().0.status().as_u16()
    };
    for uri in ["http://user@a/", "http://a:65536/", "http://[::zz]/"] {
        assert_eq!(ask(uri, "GET", None).await, 400, "{uri}");
    }
    assert_eq!(ask("http://a/", "GET", Some("b")).await, 400);
    assert_eq!(ask("http://a/", "GET", Some("a")).await, 200);
    assert_eq!(ask("http://[::1]:81/", "GET", None).await, 200);
    assert_eq!(backend.heads().len(), 2);
    drop_outside(front).await;
}
