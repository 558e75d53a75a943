//! The admin endpoint of the commands that run until they are told to end.
//!
//! It has a listener of its own and is never scheduled, so that it answers when the uplink or the
//! backend is busiest. It has no TLS and no password, and tells how the server does to whoever can reach it: keep
//! it on a private address. It
//! changes nothing, whatever it is asked (GET and HEAD only), and answers to no foreign name
//! ([`Hosts`]).

mod hosts;
pub mod prometheus;

use std::convert::Infallible;
use std::net::{IpAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use shortline_base::accept;
use tokio::sync::Semaphore;

pub use hosts::{HostName, Hosts};

const CONNECTIONS_MAX_DEFAULT: usize = 64;
/// Time for a request's head, and for all of a connection: scrapes are short.
const HEADER_TIME_MAX: Duration = Duration::from_secs(10);
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(300);

/// What an endpoint has beside `/healthz`.
pub trait Pages: Send + Sync + 'static {
    /// The paths there are, for whoever asks for another.
    const PATHS: &'static str;

    /// The page at a path.
    fn page(&self, path: &str) -> Option<Page>;
}

/// A page as it is now.
#[derive(Debug)]
pub struct Page {
    content_type: &'static str,
    body: String,
}

impl Page {
    /// Prometheus text, exposition format 0.0.4.
    pub fn metrics(body: String) -> Self {
        Self {
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            body,
        }
    }

    /// A page of HTML.
    pub fn html(body: String) -> Self {
        Self {
            content_type: "text/html; charset=utf-8",
            body,
        }
    }

    /// A value as JSON.
    pub fn json(value: &impl Serialize) -> Self {
        let body = serde_json::to_string_pretty(value);
        Self {
            content_type: "application/json",
            // Our own values have no map with keys that are no text.
            body: body.unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")) + "\n",
        }
    }
}

/// Answers on `socket` from now on, to requests that ask by one of `hosts`, at most
/// `connections_max` (64) connections at once, and says the address.
///
/// # Errors
/// When the socket cannot be put on the runtime's poller.
pub fn start(
    socket: TcpListener,
    connections_max: Option<NonZeroUsize>,
    hosts: Hosts,
    pages: impl Pages,
) -> std::io::Result<()> {
    let address = socket.local_addr()?;
    socket.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(socket)?;
    eprintln!("shortline: admin on {address}");
    if !is_private(address.ip()) {
        tracing::warn!(
            "admin: {address} is open to every network that reaches this machine, and has no \
             password: a loopback or private address, such as 127.0.0.1:{}, is not",
            address.port()
        );
    }
    let connections_max = connections_max.map_or(CONNECTIONS_MAX_DEFAULT, NonZeroUsize::get);
    tokio::spawn(run(listener, connections_max, Arc::new((hosts, pages))));
    Ok(())
}

/// Whether an address is for this machine or its own network only.
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

async fn run(
    listener: tokio::net::TcpListener,
    connections_max: usize,
    served: Arc<(Hosts, impl Pages)>,
) {
    let permits = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
    let has_room = || permits.available_permits() > 0;
    let take = |stream, _| {
        let permit = Arc::clone(&permits).try_acquire_owned();
        let permit = permit.expect("invariant: nobody else takes permits");
        let served = Arc::clone(&served);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let (hosts, pages) = &*served;
                let response = answer(&request, hosts, pages);
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
    };
    let warn =
        |error, untold| tracing::warn!(untold, "admin: cannot accept connections now: {error}");
    accept::accept(&listener, has_room, take, warn).await;
}

fn answer<P: Pages>(
    request: &Request<Incoming>,
    hosts: &Hosts,
    pages: &P,
) -> Response<Full<Bytes>> {
    if let Some(reason) = hosts.refusal(request) {
        return text(StatusCode::MISDIRECTED_REQUEST, reason);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD\n".to_owned());
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(header::ALLOW, allowed);
        return response;
    }
    match request.uri().path() {
        "/healthz" => text(StatusCode::OK, "ok\n".to_owned()),
        path => match pages.page(path) {
            Some(page) => response(StatusCode::OK, page),
            None => text(StatusCode::NOT_FOUND, format!("try {}\n", P::PATHS)),
        },
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let content_type = "text/plain; charset=utf-8";
    response(status, Page { content_type, body })
}

fn response(status: StatusCode, page: Page) -> Response<Full<Bytes>> {
    /// Nothing is fetched from elsewhere, and no other page may frame or script this one.
    const HEADERS: [(HeaderName, &str); 4] = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; \
             style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
        ),
    ];
    let mut response = Response::new(Full::from(page.body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(page.content_type),
    );
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_address_open_to_every_network_is_told_from_a_private_one() {
        let is_private = |text: &str| is_private(text.parse().unwrap());
        for private in [
            "127.0.0.1",
            "::1",
            "10.1.2.3",
            "192.168.0.1",
            "fd00::1",
            "fe80::1",
        ] {
            assert!(is_private(private), "{private}");
        }
        for open in [
            "0.0.0.0",
            "::",
            "192.0.2.1",
            "2001:db8::1",
            "::ffff:192.0.2.1",
        ] {
            assert!(!is_private(open), "{open}");
        }
    }
}
