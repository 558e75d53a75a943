//! Backends that speak HTTP/2: streams of one connection, and what may go wrong with them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use parking_lot::Mutex;
use shortline_web::proxy::{HttpVersion, UpstreamOptions};
use tokio::sync::Notify;

use crate::backend::Backend;
use crate::client::{connect, get, post, read_to_end, wait_for};
use crate::front::Front;
use crate::http2::{self, drop_outside, read, request};

/// What a test looks at from outside.
#[derive(Default)]
struct Observed {
    connections: AtomicUsize,
    requests: AtomicUsize,
    /// The most streams of one connection at a time.
    streams_most: AtomicUsize,
    reset: Mutex<Option<Reason>>,
    sent_bytes: AtomicUsize,
    go: Notify,
    ended: AtomicUsize,
}

type Exchange = (Request<RecvStream>, SendResponse<Bytes>);

/// A backend that allows `streams_max` streams and leaves each request to `answer`, until the process ends.
fn backend<F>(
    streams_max: u32,
    answer: impl Fn(Exchange, Arc<Observed>) -> F + Send + Sync + 'static,
) -> (SocketAddr, Arc<Observed>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen: Arc<Observed> = Arc::default();
    let known = Arc::clone(&seen);
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                known.connections.fetch_add(1, Ordering::SeqCst);
                let (seen, answer) = (Arc::clone(&known), Arc::clone(&answer));
                tokio::spawn(async move {
                    let mut builder = h2::server::Builder::new();
                    builder.max_concurrent_streams(streams_max);
                    let mut h2 = builder.handshake(socket).await.unwrap();
                    let streams = Arc::new(AtomicUsize::new(0));
                    while let Some(Ok(exchange)) = h2.accept().await {
                        seen.requests.fetch_add(1, Ordering::SeqCst);
                        let now = streams.fetch_add(1, Ordering::SeqCst) + 1;
                        seen.streams_most.fetch_max(now, Ordering::SeqCst);
                        let answered = answer(exchange, Arc::clone(&seen));
                        let streams = Arc::clone(&streams);
                        tokio::spawn(async move {
                            answered.await;
                            streams.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                    seen.ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
    });
    (address, seen)
}

fn head() -> Response<()> {
    Response::new(())
}

/// A front before backends of HTTP/2.
fn front(backends: &[SocketAddr], change: impl FnOnce(&mut UpstreamOptions)) -> Front {
    Front::with(backends, |options| {
        options.http = HttpVersion::Two;
        change(options);
    })
}

/// Sends as the window opens; `None` when the stream is reset.
async fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes, seen: &Observed) -> Option<()> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        while stream.capacity() == 0 {
            let capacity = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
            capacity?.ok()?;
        }
        let piece = bytes.split_to(stream.capacity().min(bytes.len()));
        seen.sent_bytes.fetch_add(piece.len(), Ordering::SeqCst);
        stream.send_data(piece, false).ok()?;
    }
    Some(())
}

/// Answers with the request's body as it comes, and with trailers at its end.
async fn echo((request, mut respond): Exchange, seen: Arc<Observed>) {
    let (request, mut body) = request.into_parts();
    let mut response = head();
    let fields = response.headers_mut();
    for name in ["te", "connection", "host", "x-forwarded-for"] {
        if let Some(value) = request.headers.get(name) {
            fields.insert(
                http::HeaderName::from_bytes(format!("saw-{name}").as_bytes()).unwrap(),
                value.clone(),
            );
        }
    }
    let target = HeaderValue::from_str(&request.uri.to_string()).unwrap();
    fields.insert("saw-target", target);
    let mut stream = respond.send_response(response, false).unwrap();
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        send(&mut stream, data, &seen).await.unwrap();
    }
    let trailers = body.trailers().await.unwrap().unwrap_or_default();
    let mut last = HeaderMap::new();
    last.insert("grpc-status", HeaderValue::from_static("0"));
    last.extend(trailers);
    stream.send_trailers(last).unwrap();
}

/// Answers when the test says so.
async fn wait((_request, mut respond): Exchange, seen: Arc<Observed>) {
    seen.go.notified().await;
    let _ = respond.send_response(head(), true);
}

#[tokio::test]
async fn both_directions_stream_at_once_and_end_in_trailers() {
    let (address, seen) = backend(100, echo);
    let front = front(&[address], |_| ());
    let mut client = http2::connect(front.address).await;
    let mut asked = request("POST", "/chat?x=1");
    asked
        .headers_mut()
        .insert("te", HeaderValue::from_static("trailers"));
    let (response, mut upload) = client.send_request(asked, false).unwrap();
    let (response, mut download) = response.await.unwrap().into_parts();
    assert_eq!(response.headers["saw-te"], "trailers");
    assert_eq!(
        response.headers["saw-target"],
        "http://shop.example/chat?x=1"
    );
    assert_eq!(response.headers["saw-x-forwarded-for"], "127.0.0.1");
    assert!(!response.headers.contains_key("saw-connection"));
    for word in ["one", "two", "three"] {
        upload
            .send_data(Bytes::from_static(word.as_bytes()), false)
            .unwrap();
        let heard = download.data().await.unwrap().unwrap();
        download
            .flow_control()
            .release_capacity(heard.len())
            .unwrap();
        assert_eq!(heard, word);
    }
    let sum = HeaderMap::from_iter([(
        http::HeaderName::from_static("x-sum"),
        HeaderValue::from_static("3"),
    )]);
    upload.send_trailers(sum).unwrap();
    assert!(download.data().await.is_none());
    let trailers = download.trailers().await.unwrap().unwrap();
    assert_eq!(
        (&trailers["grpc-status"], &trailers["x-sum"]),
        (
            &HeaderValue::from_static("0"),
            &HeaderValue::from_static("3")
        )
    );
    // More than a window each way.
    let asked = client
        .send_request(request("POST", "/large"), false)
        .unwrap();
    let (response, mut upload) = asked;
    let large = Bytes::from(vec![b'x'; 3_000_000]);
    let sent = large.clone();
    let sending = tokio::spawn(async move {
        send(&mut upload, sent, &Observed::default()).await.unwrap();
        upload.send_data(Bytes::new(), true).unwrap();
    });
    let (_, body, _) = read(response).await.unwrap();
    sending.await.unwrap();
    assert!(body == large);
    assert_eq!(seen.connections.load(Ordering::SeqCst), 1);
    drop_outside(front).await;
}

#[test]
fn a_connection_carries_as_many_streams_as_the_backend_allows() {
    let (address, seen) = backend(2, wait);
    let front = front(&[address], |_| ());
    let clients: Vec<_> = (0..5)
        .map(|_| {
            let address = front.address;
            std::thread::spawn(move || get(address, "/", "").status)
        })
        .collect();
    wait_for("five requests", || {
        (seen.requests.load(Ordering::SeqCst) == 5).then_some(())
    });
    let backend = front.backend();
    assert_eq!((backend.outstanding, backend.connections_open), (5, 3));
    for _ in 0..5 {
        seen.go.notify_one();
    }
    for client in clients {
        assert_eq!(client.join().unwrap(), 200);
    }
    assert_eq!(seen.streams_most.load(Ordering::SeqCst), 2);
    front.wait_until_idle();
    assert_eq!(front.backend().connections_idle, 3);
}

#[test]
fn a_client_that_takes_nothing_holds_up_its_own_stream_only() {
    const LARGE: usize = 50_000_000;
    let (address, seen) = backend(100, |(request, mut respond), seen| async move {
        let large = request.uri().path() == "/large";
        let mut stream = respond.send_response(head(), false).unwrap();
        let bytes = if large { LARGE } else { 1000 };
        let _ = send(&mut stream, Bytes::from(vec![b'x'; bytes]), &seen).await;
        let _ = stream.send_data(Bytes::new(), true);
    });
    let front = front(&[address], |_| ());
    let mut slow: Vec<TcpStream> = (0..3).map(|_| connect(front.address)).collect();
    for stream in &mut slow {
        stream
            .write_all(b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .unwrap();
        assert!(stream.peek(&mut [0]).unwrap() > 0);
    }
    for _ in 0..20 {
        assert_eq!(get(front.address, "/small", "").status, 200);
    }
    assert!(seen.sent_bytes.load(Ordering::SeqCst) < 3 * LARGE);
    assert_eq!(front.backend().connections_total, 1);
    let whole = read_to_end(&mut slow[0]);
    assert!(!whole.reset && whole.body.len() > LARGE);
}

#[test]
fn a_stream_that_was_refused_goes_to_the_next_backend_with_its_body() {
    let (refusing, refused) = backend(100, |(_, mut respond), _| async move {
        respond.send_reset(Reason::REFUSED_STREAM);
    });
    let (taking, taken) = backend(100, echo);
    let front = front(&[refusing, taking], |_| ());
    for _ in 0..6 {
        let response = post(front.address, "/", "a body");
        assert_eq!(response.status, 200);
        assert!(response.text().contains("a body"));
    }
    assert!(refused.requests.load(Ordering::SeqCst) > 0);
    assert_eq!(taken.requests.load(Ordering::SeqCst), 6);
    assert_eq!(front.backend().failures_total, 0);
}

#[test]
fn a_stream_that_nobody_takes_is_told_of() {
    let (address, _) = backend(100, |(_, mut respond), _| async move {
        respond.send_reset(Reason::REFUSED_STREAM);
    });
    let front = front(&[address], |_| ());
    let response = post(front.address, "/", "a body");
    assert_eq!(response.status, 503);
    assert!(response.field("retry-after").is_some());
}

/// Reads frames up to the headers of a request.
fn read_to_headers(stream: &mut TcpStream) {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).unwrap();
        if head[3] == 1 {
            return;
        }
    }
}

const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// The last stream is number 0: none was processed.
const GOAWAY: &[u8] = &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn a_request_on_a_connection_that_goes_away_is_sent_again() {
    let (real, seen) = backend(100, echo);
    let going = Backend::start(|mut conversation| {
        conversation.write(SETTINGS);
        read_to_headers(&mut conversation.stream);
        conversation.write(GOAWAY);
        conversation.is_left();
    });
    let front = front(&[going.address, real], |_| ());
    let response = post(front.address, "/", "a body");
    assert_eq!(
        (response.status, response.text().contains("a body")),
        (200, true)
    );
    assert_eq!(seen.requests.load(Ordering::SeqCst), 1);
}

#[test]
fn a_connection_that_is_gone_is_replaced() {
    let first = AtomicUsize::new(0);
    let (address, seen) = backend(100, move |(request, mut respond), _| {
        let first = first.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            drop(request);
            respond.send_response(head(), true).unwrap();
            if first {
                // The connection ends as soon as its task does.
                panic!("the backend's connection ends here");
            }
        }
    });
    let front = front(&[address], |_| ());
    for _ in 0..3 {
        assert_eq!(get(front.address, "/", "").status, 200);
    }
    assert_eq!(seen.requests.load(Ordering::SeqCst), 3);
}

#[test]
fn a_backend_that_speaks_something_else_is_told_of() {
    let backend = Backend::answering("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let front = front(&[backend.address], |_| ());
    assert_eq!(get(front.address, "/", "").status, 502);
    assert_eq!(front.backend().failures_total, 1);
}

#[tokio::test]
async fn a_stream_that_is_reset_is_reset_at_the_backend_and_a_response_that_breaks_off_at_the_client()
 {
    let (address, seen) = backend(100, |(request, mut respond), seen| async move {
        let breaks = request.uri().path() == "/breaks";
        let mut stream = respond.send_response(head(), false).unwrap();
        stream
            .send_data(Bytes::from_static(b"begun"), false)
            .unwrap();
        if breaks {
            seen.go.notified().await;
            stream.send_reset(Reason::INTERNAL_ERROR);
            return;
        }
        let reason = std::future::poll_fn(|context| stream.poll_reset(context)).await;
        *seen.reset.lock() = Some(reason.unwrap());
    });
    let front = front(&[address], |_| ());
    let mut client = http2::connect(front.address).await;
    // Once with a body that has ended, and once with one that has not.
    for ended in [true, false] {
        let (response, mut upload) = client.send_request(request("POST", "/"), ended).unwrap();
        let (_, mut body) = response.await.unwrap().into_parts();
        assert_eq!(body.data().await.unwrap().unwrap(), "begun");
        upload.send_reset(Reason::CANCEL);
        let seen = Arc::clone(&seen);
        let reason =
            tokio::task::spawn_blocking(move || wait_for("the reset", || seen.reset.lock().take()));
        assert_eq!(reason.await.unwrap(), Reason::CANCEL, "{ended}");
    }
    let (response, _) = client
        .send_request(request("GET", "/breaks"), true)
        .unwrap();
    let (_, mut body) = response.await.unwrap().into_parts();
    assert_eq!(body.data().await.unwrap().unwrap(), "begun");
    seen.go.notify_one();
    assert!(body.data().await.unwrap().unwrap_err().is_reset());
    drop_outside(front).await;
}

#[test]
fn a_backend_that_gives_no_sign_of_life_is_left() {
    let backend = Backend::start(|mut conversation| {
        conversation.write(SETTINGS);
        conversation.is_left();
    });
    let front = front(&[backend.address], |options| {
        options.ping_every = Some(Duration::from_millis(50));
    });
    assert_eq!(get(front.address, "/", "").status, 502);
}

#[test]
fn an_idle_connection_is_closed_in_time_and_all_are_with_the_server() {
    let (address, seen) = backend(100, echo);
    let ended = |count| {
        let seen = Arc::clone(&seen);
        wait_for("the end of a connection", move || {
            (seen.ended.load(Ordering::SeqCst) == count).then_some(())
        });
    };
    let short = front(&[address], |options| {
        options.idle_connection_time_max = Duration::from_millis(50);
    });
    assert_eq!(get(short.address, "/", "").status, 200);
    ended(1);
    wait_for("an empty pool", || {
        (short.backend().connections_open == 0).then_some(())
    });
    let long = front(&[address], |_| ());
    assert_eq!(get(long.address, "/", "").status, 200);
    drop(long);
    ended(2);
}
