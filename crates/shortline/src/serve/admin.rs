//! The admin endpoint: `/metrics` (Prometheus), `/status` (JSON), `/healthz`.
//!
//! It has a listener of its own and is never scheduled, so that it answers when the uplink
//! is busiest. It tells how the server does to whoever can reach it: keep it private.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use shortline_link::LinkSnapshot;
use shortline_web::server::ServerSnapshot;
use tokio::sync::Semaphore;

use super::metrics;

/// Time for a request's head, and for all of a connection: scrapes are short.
const HEADER_TIME_MAX: Duration = Duration::from_secs(10);
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(300);
/// How long to wait where the machine lets no further connection in.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Everything the endpoint tells.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The program's version.
    pub version: &'static str,
    /// Time since the start.
    pub uptime_seconds: f64,
    /// The uplink.
    pub link: LinkSnapshot,
    /// The server.
    pub server: ServerSnapshot,
    /// Access log lines lost.
    pub access_log_dropped_total: u64,
}

/// Tells the state now.
pub type StatusSource = Arc<dyn Fn() -> Status + Send + Sync>;

/// Answers on `listener` until it is dropped, at most `connections_max` connections at once.
///
/// # Errors
/// When the listener cannot be put on the runtime's poller.
pub async fn run(
    listener: TcpListener,
    connections_max: usize,
    source: StatusSource,
) -> std::io::Result<Infallible> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let permits = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
    loop {
        let permit = Arc::clone(&permits)
            .acquire_owned()
            .await
            .expect("invariant: the semaphore is never closed");
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let source = Arc::clone(&source);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let response = answer(&request, &source);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIME_MAX)
                .serve_connection(TokioIo::new(stream), service);
            // How a scraper's connection ends is its own affair.
            let _ = tokio::time::timeout(CONNECTION_TIME_MAX, connection).await;
            drop(permit);
        });
    }
}

fn answer(request: &Request<Incoming>, source: &StatusSource) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD\n");
        let allowed = header::HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(header::ALLOW, allowed);
        return response;
    }
    match request.uri().path() {
        "/healthz" => text(StatusCode::OK, "ok\n"),
        "/metrics" => page(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            metrics::render(&source()),
        ),
        "/status" => match serde_json::to_string_pretty(&source()) {
            Ok(json) => page(StatusCode::OK, "application/json", json + "\n"),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
        },
        _ => text(StatusCode::NOT_FOUND, "try /metrics, /status or /healthz\n"),
    }
}

fn text(status: StatusCode, body: &str) -> Response<Full<Bytes>> {
    page(status, "text/plain; charset=utf-8", body.to_owned())
}

fn page(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static(content_type),
    );
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-store"),
    );
    response
}
