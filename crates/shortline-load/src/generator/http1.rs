//! HTTP/1.1: one request at a time on a connection, at most K requests.
//!
//! An idle connection with uses left is taken before a new one is opened (paper 000, 2.4), the last
//! used first. The last request of a connection says `Connection: close`. An exchange drives its
//! connection itself, so giving up an exchange closes the connection, as a browser's stop button
//! does. If the server has closed a kept connection meanwhile, that costs another try on the next
//! connection, but no failure.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONNECTION, HOST};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;

use super::connect::{Connector, Wire};
use super::exchange::{Broken, Observed, is_connection_lost};
use crate::record::Failure;

/// A finished connection has this long to close.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(1);

type Body = Empty<Bytes>;

/// The idle connections to a server.
pub(super) struct Http1 {
    connector: Arc<Connector>,
    authority: HeaderValue,
    accept_encoding: Option<HeaderValue>,
    uses_max: NonZeroU32,
    /// At most as many as requests were ever in flight, because a new connection is opened only
    /// when none is idle.
    idle: Mutex<Vec<Connection>>,
}

struct Connection {
    sender: http1::SendRequest<Body>,
    /// Reads and writes; gone when the connection has ended.
    driver: Option<Driver>,
    uses: u32,
}

type Driver = Pin<Box<http1::Connection<TokioIo<Box<dyn Wire>>, Body>>>;

impl Http1 {
    pub(super) fn new(
        connector: Arc<Connector>,
        authority: HeaderValue,
        accept_encoding: Option<HeaderValue>,
        uses_max: NonZeroU32,
    ) -> Self {
        Self {
            connector,
            authority,
            accept_encoding,
            uses_max,
            idle: Mutex::default(),
        }
    }

    /// Whether a connection serves more than one request.
    pub(super) fn keeps_connections(&self) -> bool {
        self.uses_max > NonZeroU32::MIN
    }

    /// Fetches `path` to its last byte.
    pub(super) async fn fetch(
        self: &Arc<Self>,
        path: &str,
        bytes_expected: u64,
        seen: &mut Observed,
    ) -> Result<(), Failure> {
        loop {
            let mut connection = self.connection().await?;
            seen.connected();
            connection.uses += 1;
            match self.exchange(&mut connection, path, seen).await {
                Ok(status) => {
                    let verdict = seen.judge(status, bytes_expected);
                    self.put_away(connection);
                    return verdict;
                }
                // Every round uses up an idle connection, so this ends.
                Err(Broken::Stale) if connection.uses > 1 => seen.begin_try(),
                Err(Broken::Stale) => return Err(Failure::Reset),
                Err(Broken::Failed(failure)) => return Err(failure),
            }
        }
    }

    async fn connection(&self) -> Result<Connection, Failure> {
        while let Some(mut connection) = self.pop_idle() {
            if connection.is_usable().await {
                return Ok(connection);
            }
        }
        let wire = self.connector.connect().await?;
        let (sender, driver) = http1::handshake(TokioIo::new(wire))
            .await
            .map_err(|_| Failure::Protocol)?;
        Ok(Connection {
            sender,
            driver: Some(Box::pin(driver)),
            uses: 0,
        })
    }

    fn pop_idle(&self) -> Option<Connection> {
        self.idle.lock().pop()
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        path: &str,
        seen: &mut Observed,
    ) -> Result<StatusCode, Broken> {
        let request = self.request(path, connection.uses == self.uses_max.get());
        let Connection { sender, driver, .. } = connection;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(before_head)?;
            seen.head_arrived();
            let status = response.status();
            count_body(response.into_body(), seen).await?;
            Ok(status)
        };
        tokio::pin!(exchange);
        if let Some(live) = driver {
            tokio::select! {
                result = &mut exchange => return result,
                _ = live => {}
            }
            *driver = None;
        }
        // The exchange already has what the connection read before it ended.
        exchange.await
    }

    fn request(&self, path: &str, last: bool) -> Request<Body> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = path
            .parse()
            .expect("invariant: a trace's paths are request targets");
        let headers = request.headers_mut();
        headers.insert(HOST, self.authority.clone());
        if let Some(codings) = &self.accept_encoding {
            headers.insert(ACCEPT_ENCODING, codings.clone());
        }
        if last {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        request
    }

    fn put_away(&self, connection: Connection) {
        let Some(driver) = connection.driver else {
            return;
        };
        if connection.uses < self.uses_max.get() {
            self.idle.lock().push(Connection {
                driver: Some(driver),
                ..connection
            });
        } else {
            drop(connection.sender);
            tokio::spawn(tokio::time::timeout(GOODBYE_TIME_MAX, driver));
        }
    }
}

impl Connection {
    /// Lets the connection notice what happened while it was idle.
    async fn is_usable(&mut self) -> bool {
        let Some(driver) = &mut self.driver else {
            return false;
        };
        let ended =
            std::future::poll_fn(|context| Poll::Ready(driver.as_mut().poll(context).is_ready()));
        !ended.await && self.sender.is_ready()
    }
}

async fn count_body(mut body: Incoming, seen: &mut Observed) -> Result<(), Broken> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(in_body)?;
        seen.received += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(())
}

fn before_head(error: hyper::Error) -> Broken {
    let unanswered = error.is_canceled() || error.is_closed() || error.is_incomplete_message();
    if unanswered || is_connection_lost(&error) {
        Broken::Stale
    } else {
        Broken::Failed(Failure::Protocol)
    }
}

fn in_body(error: hyper::Error) -> Broken {
    Broken::Failed(if error.is_incomplete_message() || is_eof(&error) {
        Failure::Short
    } else if is_connection_lost(&error) {
        Failure::Reset
    } else {
        Failure::Protocol
    })
}

/// The connection ended in order, but too early.
fn is_eof(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    source
        .and_then(|source| source.downcast_ref::<std::io::Error>())
        .is_some_and(|io| io.kind() == std::io::ErrorKind::UnexpectedEof)
}
