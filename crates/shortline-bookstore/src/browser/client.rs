//! A browser's single connection: a page and its pictures over a persistent HTTP/1.1 connection
//! (002, 4.4).

use std::collections::HashSet;
use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use shortline_load::Failure;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::reading::Reading;
use super::session::Click;

/// The longest page or picture, in bytes.
const BODY_BYTES_MAX: usize = 4 << 20;
/// The most pictures a browser caches.
const CACHED_MAX: usize = 20_000;

/// A browser.
pub(super) struct Client {
    address: SocketAddr,
    pictures: bool,
    connection: Option<Connection>,
    cached: HashSet<String>,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// When each part of a click had arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub connected: Option<Instant>,
    pub first_byte: Option<Instant>,
    /// Body bytes of the page and its pictures.
    pub received: u64,
}

impl Client {
    /// A browser of the shop at `address`. With `pictures` it fetches pictures too.
    pub fn new(address: SocketAddr, pictures: bool) -> Self {
        Self {
            address,
            pictures,
            connection: None,
            cached: HashSet::new(),
        }
    }

    /// Fetches a page and those of its pictures that are not cached yet.
    pub async fn fetch(
        &mut self,
        click: &Click,
        progress: &mut Progress,
    ) -> Result<Reading, Failure> {
        let (method, target, form) = if click.interaction.writes() {
            let form = Bytes::from(click.fields.clone());
            (Method::POST, format!("/{}", click.interaction), form)
        } else {
            let target = format!("/{}?{}", click.interaction, click.fields);
            (Method::GET, target, Bytes::new())
        };
        let page = self.exchange(method, &target, form, progress).await?;
        let reading = Reading::of(&String::from_utf8_lossy(&page));
        if self.pictures {
            for picture in &reading.pictures {
                if self.cached.len() >= CACHED_MAX {
                    self.cached.clear();
                }
                if self.cached.contains(picture) {
                    continue;
                }
                self.exchange(Method::GET, picture, Bytes::new(), progress)
                    .await?;
                self.cached.insert(picture.clone());
            }
        }
        Ok(reading)
    }

    /// Drops a connection in an unknown state. The next request opens a new one.
    pub fn forget_connection(&mut self) {
        self.connection = None;
    }

    async fn exchange(
        &mut self,
        method: Method,
        target: &str,
        form: Bytes,
        progress: &mut Progress,
    ) -> Result<Bytes, Failure> {
        let host = self.address.to_string();
        let connection = self.connected().await?;
        progress.connected.get_or_insert_with(Instant::now);
        let mut request = Request::builder()
            .method(&method)
            .uri(target)
            .header(HOST, host);
        if method == Method::POST {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        let request = request
            .body(Full::new(form))
            .map_err(|_| Failure::Protocol)?;
        let sent = connection.sender.send_request(request).await;
        let response = sent.map_err(|error| kind(&error))?;
        progress.first_byte.get_or_insert_with(Instant::now);
        let status = response.status();
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX);
        let body = body.collect().await.map_err(|_| Failure::Short)?.to_bytes();
        progress.received += body.len() as u64;
        if status != StatusCode::OK {
            return Err(Failure::Status(status.as_u16()));
        }
        Ok(body)
    }

    async fn connected(&mut self) -> Result<&mut Connection, Failure> {
        let dead = self
            .connection
            .as_ref()
            .is_none_or(|open| open.sender.is_closed());
        if dead {
            let stream = TcpStream::connect(self.address).await;
            let stream = stream.map_err(|_| Failure::Connect)?;
            stream.set_nodelay(true).ok();
            let shaken = handshake(TokioIo::new(stream)).await;
            let (sender, driver) = shaken.map_err(|_| Failure::Connect)?;
            let driver = tokio::spawn(async move {
                // Whatever ends it fails the request too.
                driver.await.ok();
            });
            self.connection = Some(Connection { sender, driver });
        }
        let connection = self.connection.as_mut().ok_or(Failure::Connect)?;
        connection
            .sender
            .ready()
            .await
            .map_err(|error| kind(&error))?;
        Ok(connection)
    }
}

fn kind(error: &hyper::Error) -> Failure {
    if error.is_parse() {
        Failure::Protocol
    } else {
        Failure::Reset
    }
}
