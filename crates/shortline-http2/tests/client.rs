//! Conversations with a client that shares no code with us: the h2 crate's.

#![allow(clippy::unwrap_used)]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Poll, ready};

use bytes::Bytes;
use h2::client;
use http::header::{HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body::Body as _;
use shortline_http2::{self as http2, Answer, Body, Limits, Room, Server};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// What passes between both at a time: little, so that everything comes in pieces.
const PIPE_BYTES: usize = 3000;

type Exchange = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves a connection until its client goes: `answer` answers each request.
async fn serve(mut pipe: DuplexStream, answer: fn(http2::Request) -> Exchange) {
    let server = Server::new(Limits {
        streams_max: 100,
        header_bytes_max: 16 * 1024,
        resets_max: 10,
    });
    let mut exchanges: Vec<Exchange> = Vec::new();
    poll_fn(|context| {
        server.begin();
        loop {
            exchanges.retain_mut(|exchange| exchange.as_mut().poll(context).is_pending());
            let mut space = [0; 1000];
            let mut buffer = ReadBuf::new(&mut space);
            if let Poll::Ready(read) = Pin::new(&mut pipe).poll_read(context, &mut buffer) {
                read.unwrap();
                if buffer.filled().is_empty() {
                    return Poll::Ready(());
                }
                server.receive(buffer.filled()).unwrap();
                exchanges.extend(std::iter::from_fn(|| server.next_request()).map(answer));
                continue;
            }
            let waker = context.waker().clone();
            let written = server.poll_write(&waker, |slices| {
                Pin::new(&mut pipe).poll_write_vectored(context, slices)
            });
            ready!(written).unwrap();
            if !server.wake_next() {
                return Poll::Pending;
            }
        }
    })
    .await;
}

/// Sends data as far as it may be sent.
async fn send(answer: &Answer, mut data: Bytes) {
    while !data.is_empty() {
        match answer.room().unwrap() {
            Room::Bytes(bytes) => {
                let piece = data.split_to(data.len().min(bytes as usize));
                answer.send_data(piece, false).unwrap();
            }
            Room::NoOutput => answer.output().await.unwrap(),
            // Whoever serves polls everything whenever something has come.
            Room::NoWindow => {
                let mut waits = true;
                poll_fn(|_| match std::mem::take(&mut waits) {
                    true => Poll::Pending,
                    false => Poll::Ready(()),
                })
                .await;
            }
        }
    }
}

/// Answers with the request's body and trailers, and its head as fields.
fn echo(request: http2::Request) -> Exchange {
    Box::pin(async move {
        let http2::Request {
            head,
            mut body,
            answer,
        } = request;
        let mut fields = head.headers.clone();
        fields.insert(
            "x-method",
            HeaderValue::from_str(head.method.as_str()).unwrap(),
        );
        fields.insert(
            "x-target",
            HeaderValue::from_str(&head.uri.to_string()).unwrap(),
        );
        answer
            .send_head(StatusCode::OK, &fields, None, false)
            .unwrap();
        let mut trailers = HeaderMap::new();
        while let Some(frame) = next(&mut body).await {
            match frame.into_data() {
                Ok(data) => send(&answer, data).await,
                Err(frame) => trailers = frame.into_trailers().unwrap(),
            }
        }
        answer.send_trailers(&trailers).unwrap();
    })
}

async fn next(body: &mut Body) -> Option<http_body::Frame<Bytes>> {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context))
        .await
        .transpose()
        .unwrap()
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 7 % 251) as u8).collect()
}

/// Sends a body and trailers, and returns what comes back.
async fn ask(client: client::SendRequest<Bytes>, bytes: usize) -> (HeaderMap, Vec<u8>, HeaderMap) {
    let mut client = client.ready().await.unwrap();
    let request = Request::builder()
        .method(Method::PUT)
        .uri(format!("http://a.example/{bytes}?x=%20"))
        .header("x-same", "in every request")
        .header("x-number", bytes.to_string())
        .body(())
        .unwrap();
    let (response, mut sending) = client.send_request(request, false).unwrap();
    let sent = tokio::spawn(async move {
        let mut data = Bytes::from(pattern(bytes));
        while !data.is_empty() {
            sending.reserve_capacity(data.len());
            let capacity = poll_fn(|context| sending.poll_capacity(context)).await;
            let piece = data.split_to(capacity.unwrap().unwrap().min(data.len()));
            sending.send_data(piece, false).unwrap();
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from(bytes));
        sending.send_trailers(trailers).unwrap();
    });
    let response = response.await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let (head, mut body) = response.into_parts();
    let mut received = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        received.extend_from_slice(&data);
    }
    sent.await.unwrap();
    let trailers = body.trailers().await.unwrap().unwrap_or_default();
    (head.headers, received, trailers)
}

#[tokio::test]
async fn bodies_and_fields_come_back_whole_side_by_side() {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let serving = tokio::spawn(serve(ours, echo));
    let (client, connection) = client::Builder::new()
        .initial_window_size(5000)
        .header_table_size(200)
        .handshake::<_, Bytes>(theirs)
        .await
        .unwrap();
    let driving = tokio::spawn(connection);
    let mut asking = tokio::task::JoinSet::new();
    for bytes in [0, 1, 5000, 16_384, 65_535, 300_000, 40_000, 3, 200_000] {
        let client = client.clone();
        asking.spawn(async move {
            let (fields, received, trailers) = ask(client, bytes).await;
            assert_eq!(received, pattern(bytes));
            assert_eq!(fields["x-method"], "PUT");
            assert_eq!(
                fields["x-target"],
                format!("http://a.example/{bytes}?x=%20")
            );
            assert_eq!(fields["x-same"], "in every request");
            assert_eq!(fields["x-number"], bytes.to_string());
            assert_eq!(trailers["x-sum"], bytes.to_string());
        });
    }
    asking.join_all().await;
    drop(client);
    driving.await.unwrap().unwrap();
    serving.await.unwrap();
}
