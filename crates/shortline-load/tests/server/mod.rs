//! Small servers on 127.0.0.1 that misbehave on request: `/BYTES` is answered with so many
//! bytes, other paths by their names. They count connections and requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use shortline_load::trace::Request;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

#[derive(Clone, Default)]
pub struct Counts(Arc<[AtomicUsize; 3]>);

impl Counts {
    pub fn connections(&self) -> usize {
        self.0[0].load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> usize {
        self.0[1].load(Ordering::SeqCst)
    }

    /// Requests that said `Connection: close`.
    pub fn closes(&self) -> usize {
        self.0[2].load(Ordering::SeqCst)
    }

    fn add(&self, which: usize) -> usize {
        self.0[which].fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// What a connection is wrapped in and speaks.
#[derive(Clone)]
pub enum Kind {
    Http1,
    Http1Tls(TlsAcceptor),
    Http2 { streams_max: u32 },
    Http2Tls(TlsAcceptor),
}

/// Serves until the test ends.
pub async fn serve(kind: Kind) -> (SocketAddr, Counts) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let counts = Counts::default();
    let counted = counts.clone();
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            tcp.set_nodelay(true).unwrap();
            counted.add(0);
            tokio::spawn(connection(kind.clone(), tcp, counted.clone()));
        }
    });
    (address, counts)
}

async fn connection(kind: Kind, tcp: TcpStream, counts: Counts) {
    match kind {
        Kind::Http1 => http1(tcp, counts).await,
        Kind::Http1Tls(tls) => match tls.accept(tcp).await {
            Ok(stream) => http1(stream, counts).await,
            Err(_refused) => {}
        },
        Kind::Http2 { streams_max } => http2(tcp, streams_max, counts).await,
        Kind::Http2Tls(tls) => match tls.accept(tcp).await {
            Ok(stream) => http2(stream, 100, counts).await,
            Err(_refused) => {}
        },
    }
}

/// One request after the other, as the path says; ends the connection by returning.
async fn http1(mut stream: impl AsyncRead + AsyncWrite + Unpin, counts: Counts) {
    let mut input = Vec::new();
    loop {
        let Some(head) = next_head(&mut stream, &mut input).await else {
            return;
        };
        let number = counts.add(1);
        let close = head.to_lowercase().contains("connection: close");
        if close {
            counts.add(2);
        }
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let answer = match path.as_str() {
            "/gone" => return,
            "/garbage" => b"this is not HTTP\r\n\r\n".to_vec(),
            "/missing" => b"HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nno!".to_vec(),
            "/cut" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this".to_vec(),
            "/silent" => {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                return;
            }
            "/silent-once" if number == 1 => {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                return;
            }
            "/stall" => {
                let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nfirst";
                let _ = stream.write_all(head).await;
                tokio::time::sleep(Duration::from_secs(3600)).await;
                return;
            }
            path => {
                let bytes: usize = path[1..].parse().unwrap_or(5);
                let mut answer =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n").into_bytes();
                answer.resize(answer.len() + bytes, b'x');
                answer
            }
        };
        let ends = close || matches!(path.as_str(), "/cut" | "/garbage" | "/7");
        if stream.write_all(&answer).await.is_err() || ends {
            let _ = stream.shutdown().await;
            return;
        }
    }
}

async fn next_head(stream: &mut (impl AsyncRead + Unpin), input: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = input.drain(..end + 4).collect();
            return Some(String::from_utf8(head).unwrap());
        }
        if stream.read_buf(input).await.unwrap_or(0) == 0 {
            return None;
        }
    }
}

async fn http2(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    streams_max: u32,
    counts: Counts,
) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(streams_max);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        counts.add(1);
        match request.uri().path() {
            "/reset" => respond.send_reset(h2::Reason::INTERNAL_ERROR),
            "/leave" => connection.graceful_shutdown(),
            "/missing" => {
                let response = Response::builder().status(StatusCode::NOT_FOUND).body(());
                respond.send_response(response.unwrap(), true).unwrap();
            }
            path => {
                let path = path.to_owned();
                tokio::spawn(async move { answer(respond, &path).await });
            }
        }
    }
}

async fn answer(mut respond: h2::server::SendResponse<Bytes>, path: &str) {
    if path == "/silent" {
        let _ = std::future::poll_fn(|context| respond.poll_reset(context)).await;
        return;
    }
    // `/slow-N`: N bytes after a while.
    if path.starts_with("/slow-") {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let digits = path.trim_start_matches(|c: char| !c.is_ascii_digit());
    let bytes: usize = digits.parse().unwrap_or(5);
    let mut body = respond.send_response(Response::new(()), false).unwrap();
    body.send_data(vec![b'x'; bytes].into(), true).unwrap();
}

/// Requests for these paths, `gap_ms` apart; a path `/N` is expected to have N bytes.
pub fn requests(paths: &[&str], gap_ms: u64) -> Vec<Request> {
    let request = |(place, path): (usize, &&str)| Request {
        at_ns: place as u64 * gap_ms * 1_000_000,
        path: (*path).into(),
        bytes: path[1..].parse().unwrap_or(5),
    };
    paths.iter().enumerate().map(request).collect()
}
