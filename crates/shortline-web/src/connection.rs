//! One connection from accept to close: TLS (or plain text on a TLS port), the choice of protocol,
//! and the times when it is parked.

use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use rustls::server::ClientHello;
use shortline_base::socket::ReceiveHalf;
use shortline_link::Length;
use shortline_sched::Client;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::server::TlsStream;

use crate::context::Connection;
use crate::http1::{self, After};
use crate::http2;
use crate::plaintext;
use crate::server::ALPN;
use crate::session::{self, Begun};
use crate::sites::Waiting;
use crate::socket::{ClientSocket, Rewound};
use crate::watch::Watch;

/// The size charged for our side of a TLS handshake: a chain of two RSA certificates, and two
/// tickets.
const HANDSHAKE_BYTES: u64 = 3 * 1024;
/// What an HTTP/2 client with prior knowledge sends first (RFC 9113 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The most bytes of a stage's future. rustls keeps buffers of 4 KiB and more, and an idle connection
/// has touched only their first page. A buffer that takes the place of a finished stage has all its
/// pages.
#[cfg(test)]
const STAGE_BYTES_MAX: usize = 3_584;
/// The size of the first read of a connection, and of a parked one. Most heads fit.
const FIRST_READ_BYTES: usize = 1024;

/// Plain HTTP came on a port that speaks TLS.
#[derive(Debug, thiserror::Error)]
#[error("plain HTTP on a TLS port: want https://")]
struct PlainHttp;

/// Serves a connection until it closes.
pub async fn serve(
    connection: Arc<Connection>,
    receiving: ReceiveHalf,
    tls: Option<Arc<rustls::ServerConfig>>,
) {
    let socket = ClientSocket::new(receiving, Arc::clone(&connection.watch));
    // Each stage is boxed and freed before the next begins, so that 10,000 idle connections hold
    // only what the last stage needs. A stage must be smaller than the buffers that stay
    // (`STAGE_BYTES_MAX`).
    let protocol = match tls {
        None => Box::pin(begin_plain(connection, socket)).await,
        Some(tls) => Box::pin(begin_tls(connection, socket, tls)).await,
    };
    if let Some(protocol) = protocol {
        protocol.await;
    }
}

/// A connection whose protocol is known.
type Protocol = Pin<Box<dyn Future<Output = ()> + Send>>;

async fn begin_tls(
    connection: Arc<Connection>,
    mut socket: ClientSocket,
    tls: Arc<rustls::ServerConfig>,
) -> Option<Protocol> {
    connection.watch.handshake_begins();
    connection.watch.transport().handshake_begins();
    let reading = first_bytes(&connection.watch, &mut socket, plaintext::is_request);
    let (first, plain) = reading.await?;
    if plain {
        connection.server.count_connection_error(&PlainHttp);
        let refusing = Box::pin(plaintext::refuse(socket, first));
        // A client that has gone needs no answer.
        let _ = connection.watch.obeying(refusing).await;
        return None;
    }
    let socket = Rewound::new(first, socket);
    let asks = connection.asks(&HeaderMap::new());
    let client = connection.settings.clients.client(asks);
    let answer = |hello: &ClientHello<'_>| {
        let sites = &connection.settings.sites;
        let (mut certificate, mut auth) = (None, None);
        if wants_http(hello) {
            let name = hello.server_name();
            certificate = name.and_then(|name| sites.certificate_on_demand(name));
            auth = sites.client_auth(name).cloned();
        }
        (auth, turn(&connection, client, certificate))
    };
    let handshake = Box::pin(session::accept(socket, tls, answer));
    let stream = match connection.watch.obeying(handshake).await {
        Some(Ok(begun)) => note(&connection, begun),
        Some(Err(error)) => {
            connection.server.count_connection_error(&error);
            connection.report_certificate(&error);
            return None;
        }
        None => return None,
    };
    connection.watch.transport().handshake_done(client);
    connection.watch.waits_for_request();
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Some(Box::pin(http2::serve(connection, stream))),
        None | Some(b"http/1.1") => Some(Box::pin(serve_http1(connection, stream, Bytes::new()))),
        // The handshake has said all.
        Some(_) => {
            let end = Box::pin(close(stream));
            let _ = connection.watch.obeying(end).await;
            None
        }
    }
}

/// Notes what a handshake has told.
fn note<S>(connection: &Connection, begun: Begun<S>) -> TlsStream<S> {
    let Begun {
        stream,
        session,
        certified,
    } = begun;
    if let Some(session) = session {
        connection.session.get_or_init(|| session);
    }
    if let Some(certified) = certified {
        connection.certified.get_or_init(|| certified.into());
    }
    let tls = stream.get_ref().1;
    let shown = connection.settings.sites.shown(tls.server_name());
    connection.shown.get_or_init(|| shown);
    connection
        .tls_version
        .get_or_init(|| tls.protocol_version());
    stream
}

/// Ends TLS in order.
async fn close<S: AsyncWrite + Unpin>(mut stream: S) -> io::Result<()> {
    stream.shutdown().await
}

/// Whether the client offers a protocol of ours, or none at all. Others want the handshake only, perhaps to see that there
/// may be a certificate: they must not wait for it.
fn wants_http(hello: &ClientHello<'_>) -> bool {
    let mut offered = hello.alpn().into_iter().flatten();
    hello.alpn().is_none() || offered.any(|protocol| ALPN.contains(&protocol))
}

/// Ready when there is a certificate, if one is to come, and the link grants the connection its
/// handshake. A handshake is a job of its client, like a response. Otherwise a client that connects
/// a thousand times a second would take the uplink.
pub async fn turn(connection: &Connection, client: Client, certificate: Option<Waiting>) {
    if let Some(certificate) = certificate {
        certificate.await;
    }
    let length = Length::Known(HANDSHAKE_BYTES);
    let transport = connection.watch.transport();
    match transport.submit(client, length) {
        Ok(mut job) => {
            poll_fn(|context| job.poll_grant(context)).await;
            job.finish(HANDSHAKE_BYTES as u32);
        }
        // The first response on the connection meets the same limit and reports it.
        Err(full) => connection.server.report_full(&full, None),
    }
}

async fn begin_plain(connection: Arc<Connection>, mut socket: ClientSocket) -> Option<Protocol> {
    let (first, http2) = first_bytes(&connection.watch, &mut socket, is_preface).await?;
    Some(if http2 {
        Box::pin(http2::serve(connection, Rewound::new(first, socket)))
    } else {
        Box::pin(serve_http1(connection, socket, first))
    })
}

/// Serves HTTP/1.1. The connection is parked while the next request is long in coming.
async fn serve_http1<S>(connection: Arc<Connection>, mut stream: S, mut before: Bytes)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let watch = &connection.watch;
    loop {
        if before.is_empty() {
            watch.set_parked(true);
            let Some(Ok(bytes)) = watch.obeying(read_some(&mut stream, Bytes::new())).await else {
                return;
            };
            before = bytes;
        }
        watch.set_parked(false);
        match Box::pin(http1::serve(&connection, stream, before)).await {
            After::Closed => return,
            After::Open(again) => (stream, before) = (again, Bytes::new()),
        }
    }
}

/// Reads until `tell` recognises the bytes, and returns them with what they are.
async fn first_bytes(
    watch: &Watch,
    socket: &mut ClientSocket,
    tell: impl Fn(&[u8]) -> Option<bool>,
) -> Option<(Bytes, bool)> {
    let mut bytes = Bytes::new();
    loop {
        bytes = watch.obeying(read_some(socket, bytes)).await?.ok()?;
        if let Some(told) = tell(&bytes) {
            return Some((bytes, told));
        }
    }
}

/// Whether the client speaks HTTP/2. `None`: more bytes are needed.
fn is_preface(first: &[u8]) -> Option<bool> {
    let seen = first.len().min(PREFACE.len());
    let so_far = first[..seen] == PREFACE[..seen];
    (!so_far || seen == PREFACE.len()).then_some(so_far)
}

/// `before` and what the next read brings. The end of the stream is an error.
async fn read_some<S: AsyncRead + Unpin>(stream: &mut S, before: Bytes) -> io::Result<Bytes> {
    poll_fn(|context| {
        // On the stack of this call only: a connection that waits must not hold a buffer.
        let mut space = [MaybeUninit::uninit(); FIRST_READ_BYTES];
        let mut buffer = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer))?;
        if buffer.filled().is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        Poll::Ready(Ok([&before, buffer.filled()].concat().into()))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the future that an async function of three arguments returns.
    fn future_bytes<A, B, C, F: Future>(_: fn(A, B, C) -> F) -> usize {
        std::mem::size_of::<F>()
    }

    fn future_bytes_of_two<A, B, F: Future>(_: fn(A, B) -> F) -> usize {
        std::mem::size_of::<F>()
    }

    #[test]
    fn a_stage_leaves_no_place_that_a_lasting_buffer_would_take() {
        assert!(future_bytes(begin_tls) <= STAGE_BYTES_MAX);
        assert!(future_bytes_of_two(begin_plain) <= STAGE_BYTES_MAX);
    }

    #[test]
    fn what_a_connection_waits_in_is_small() {
        let whole = future_bytes(serve);
        assert!(whole <= 512, "{whole} bytes for each connection");
    }
}
