//! The admin endpoint of the commands that run until they are told to end.
//!
//! It has a listener of its own and is never scheduled, so that it answers when the uplink or the
//! backend is busiest. It has no TLS and no password. It tells how the server does to whoever can reach it: keep
//! it on a private address, or in the file system ([`AdminSocket`]). By TCP it answers to no foreign name ([`Hosts`]).
//!
//! GET and HEAD change nothing. A command may take POST ([`Pages::post`]); it then looks at who asks, and what
//! a browser sends for a page of another site is refused before (`Origin`, `Sec-Fetch-Site`).

mod hosts;
pub mod prometheus;
mod socket;

use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use shortline_base::accept::{self, Accepts, Listening};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::sockets::Address;
pub use hosts::{HostName, Hosts};
pub use socket::AdminSocket;

const CONNECTIONS_MAX_DEFAULT: usize = 64;
/// Time for a request's head, and for all of a connection: scrapes are short.
const HEADER_TIME_MAX: Duration = Duration::from_secs(10);
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(300);

/// The longest body of a POST, in bytes.
const BODY_BYTES_MAX: usize = 16 << 10;

/// What an endpoint has beside `/healthz`.
pub trait Pages: Send + Sync + 'static {
    /// The paths there are, for whoever asks for another.
    const PATHS: &'static str;

    /// The page at a path.
    fn page(&self, path: &str) -> Option<Page>;

    /// The page at a path that takes a while.
    fn slow_page(&self, _path: &str) -> Option<Later> {
        None
    }

    /// Does what is posted to a path. None where nothing is taken.
    fn post(&self, _path: &str, _body: String, _asker: Asker) -> Option<Later> {
        None
    }
}

/// A page that takes a while.
pub type Later = Pin<Box<dyn Future<Output = Page> + Send>>;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Somebody by TCP.
    Tcp {
        /// From where.
        peer: SocketAddr,
        /// At which address of ours.
        local: SocketAddr,
    },
    /// A user of this machine, by a socket in the file system.
    User(u32),
}

/// A page as it is now.
#[derive(Debug)]
pub struct Page {
    status: StatusCode,
    content_type: &'static str,
    body: String,
}

impl Page {
    /// A line of text with a status.
    pub fn line(status: StatusCode, line: impl Display) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{line}\n"),
        }
    }

    /// Prometheus text, exposition format 0.0.4.
    pub fn metrics(body: String) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            body,
        }
    }

    /// A page of HTML.
    pub fn html(body: String) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: "text/html; charset=utf-8",
            body,
        }
    }

    /// A value as JSON.
    pub fn json(value: &impl Serialize) -> Self {
        let body = serde_json::to_string_pretty(value);
        Self {
            status: StatusCode::OK,
            content_type: "application/json",
            // Our own values have no map with keys that are no text.
            body: body.unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")) + "\n",
        }
    }
}

/// Answers on `socket` from now on, by TCP to requests that ask by one of `hosts`, at most
/// `connections_max` (64) connections at once, and says the address. The task that accepts them is returned.
///
/// # Errors
/// When the socket cannot be put on the runtime's poller.
pub fn start(
    socket: AdminSocket,
    connections_max: Option<NonZeroUsize>,
    hosts: Hosts,
    pages: impl Pages,
) -> std::io::Result<JoinHandle<()>> {
    let address = socket.address()?;
    let connections_max = connections_max.map_or(CONNECTIONS_MAX_DEFAULT, NonZeroUsize::get);
    tracing::info!("admin on {address}");
    if let Address::Tcp(address) = address
        && !is_private(address.ip())
    {
        tracing::warn!(
            "admin: {address} is open to every network that reaches this machine, and has no \
             password: a loopback or private address, such as 127.0.0.1:{}, is not",
            address.port()
        );
    }
    Ok(match socket {
        AdminSocket::Tcp(socket) => {
            socket.set_nonblocking(true)?;
            let listener = Listening::<TcpStream>::new(socket)?;
            let served = Arc::new((Some(hosts), pages));
            tokio::spawn(run(listener, connections_max, by_tcp, served))
        }
        AdminSocket::Unix(socket) => {
            socket.set_nonblocking(true)?;
            let listener = Listening::<UnixStream>::new(socket)?;
            // No page of a browser gets there.
            let served = Arc::new((None, pages));
            tokio::spawn(run(listener, connections_max, by_user, served))
        }
    })
}

/// Who is connected. `None`: the connection was reset already.
fn by_tcp(stream: &TcpStream) -> Option<Asker> {
    let (peer, local) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
    Some(Asker::Tcp { peer, local })
}

fn by_user(stream: &UnixStream) -> Option<Asker> {
    let peer = stream.peer_cred().ok()?;
    Some(Asker::User(peer.uid()))
}

/// Whether an address is for this machine or its own network only.
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

async fn run<L: Accepts>(
    listener: L,
    connections_max: usize,
    asker: fn(&L::Stream) -> Option<Asker>,
    served: Arc<(Option<Hosts>, impl Pages)>,
) where
    L::Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let permits = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
    let has_room = || permits.available_permits() > 0;
    let take = |stream: L::Stream, _| {
        let permit = Arc::clone(&permits).try_acquire_owned();
        let permit = permit.expect("invariant: nobody else takes permits");
        let served = Arc::clone(&served);
        let Some(asker) = asker(&stream) else {
            return;
        };
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let served = Arc::clone(&served);
                async move {
                    let (hosts, pages) = &*served;
                    Ok::<_, Infallible>(answer(request, hosts.as_ref(), pages, asker).await)
                }
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

async fn answer<P: Pages>(
    request: Request<Incoming>,
    hosts: Option<&Hosts>,
    pages: &P,
    asker: Asker,
) -> Response<Full<Bytes>> {
    if let Some(reason) = hosts.and_then(|hosts| hosts.refusal(&request)) {
        return response(Page {
            body: reason,
            ..Page::line(StatusCode::MISDIRECTED_REQUEST, "")
        });
    }
    let path = request.uri().path().to_owned();
    let missing = || Page::line(StatusCode::NOT_FOUND, format!("try {}", P::PATHS));
    match *request.method() {
        Method::GET | Method::HEAD if path == "/healthz" => {
            response(Page::line(StatusCode::OK, "ok"))
        }
        Method::GET | Method::HEAD => response(match pages.slow_page(&path) {
            Some(later) => later.await,
            None => pages.page(&path).unwrap_or_else(missing),
        }),
        Method::POST => response(posted(request, &path, pages, asker).await),
        _ => not_allowed(),
    }
}

/// What comes of a POST.
async fn posted<P: Pages>(request: Request<Incoming>, path: &str, pages: &P, asker: Asker) -> Page {
    let is_of_a_page = |name: &str| request.headers().contains_key(name);
    if is_of_a_page("origin") || is_of_a_page("sec-fetch-site") {
        return Page::line(StatusCode::FORBIDDEN, "no page of a browser may post here");
    }
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX);
    let body = match tokio::time::timeout(HEADER_TIME_MAX, body.collect()).await {
        Ok(Ok(body)) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Ok(Err(_)) | Err(_) => {
            let told = format!("the body must come whole, with {BODY_BYTES_MAX} bytes at most");
            return Page::line(StatusCode::BAD_REQUEST, told);
        }
    };
    match pages.post(path, body, asker) {
        Some(later) => later.await,
        None => Page::line(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD"),
    }
}

fn not_allowed() -> Response<Full<Bytes>> {
    response(Page::line(
        StatusCode::METHOD_NOT_ALLOWED,
        "GET, HEAD or POST",
    ))
}

fn response(page: Page) -> Response<Full<Bytes>> {
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
    *response.status_mut() = page.status;
    let headers = response.headers_mut();
    if page.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
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
