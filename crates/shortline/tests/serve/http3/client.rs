//! A client of HTTP/3: quinn, h3 and h3-quinn, which are as others use them.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use http::{HeaderMap, Request, StatusCode};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, TransportConfig, VarInt};

use crate::process::{PATIENCE, Server, Site};
use crate::tls;

/// A response as it came.
#[derive(Debug)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
}

/// A connection.
#[derive(Clone)]
pub struct Client {
    pub quic: quinn::Connection,
    pub requests: SendRequest<h3_quinn::OpenStreams, Bytes>,
}

pub type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// Serves `site` with HTTP/3.
pub fn start(site: &Site, flags: &[&str]) -> Server {
    tls::start(site, &[&["--http3"], flags].concat())
}

/// How a client of `site` connects, with a window for each response.
pub fn config(site: &Site, window_bytes: u32) -> ClientConfig {
    let tls = tls::client_config(site, &[&rustls::version::TLS13], "h3");
    let crypto = QuicClientConfig::try_from(tls).unwrap();
    let mut config = ClientConfig::new(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(window_bytes.into())
        .receive_window(VarInt::MAX)
        .max_idle_timeout(Some(PATIENCE.try_into().unwrap()));
    config.transport_config(Arc::new(transport));
    config
}

/// An endpoint of its own, at this address.
pub fn endpoint(own: &str) -> Endpoint {
    Endpoint::client(own.parse().unwrap()).unwrap()
}

/// Shakes hands.
pub async fn shake_hands(
    endpoint: &Endpoint,
    config: ClientConfig,
    address: SocketAddr,
) -> Result<quinn::Connection, quinn::ConnectionError> {
    let connecting = endpoint.connect_with(config, address, "localhost").unwrap();
    tokio::time::timeout(PATIENCE, connecting)
        .await
        .expect("the handshake takes no time")
}

impl Client {
    /// Connects from an endpoint of its own.
    pub async fn connect(site: &Site, address: SocketAddr) -> Self {
        Self::over(&endpoint("127.0.0.1:0"), config(site, 1 << 20), address).await
    }

    pub async fn over(endpoint: &Endpoint, config: ClientConfig, address: SocketAddr) -> Self {
        let quic = shake_hands(endpoint, config, address).await.unwrap();
        let connection = h3_quinn::Connection::new(quic.clone());
        let (mut driver, requests) = h3::client::new(connection).await.unwrap();
        tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await });
        Self { quic, requests }
    }

    /// Sends a request's head.
    pub async fn begin(&self, request: Request<()>) -> Stream {
        self.requests.clone().send_request(request).await.unwrap()
    }

    /// Asks for a target.
    pub async fn get(&self, target: &str) -> Response {
        self.ask(get(target), &[]).await.unwrap()
    }

    /// A whole exchange.
    pub async fn ask(
        &self,
        request: Request<()>,
        body: &[Bytes],
    ) -> Result<Response, h3::error::StreamError> {
        let asked = async {
            let mut stream = self.requests.clone().send_request(request).await?;
            for piece in body {
                stream.send_data(piece.clone()).await?;
            }
            stream.finish().await?;
            rest(&mut stream).await
        };
        tokio::time::timeout(PATIENCE, asked)
            .await
            .expect("an answer comes")
    }
}

/// The response on a stream.
pub async fn rest(stream: &mut Stream) -> Result<Response, h3::error::StreamError> {
    let head = stream.recv_response().await?;
    let mut body = Vec::new();
    while let Some(mut data) = stream.recv_data().await? {
        body.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    Ok(Response {
        status: head.status(),
        headers: head.headers().clone(),
        body,
        trailers: stream.recv_trailers().await?,
    })
}

/// GET.
pub fn get(target: &str) -> Request<()> {
    let uri = format!("https://localhost{target}");
    Request::get(uri).body(()).unwrap()
}

/// Waits for something that must happen.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let turns = PATIENCE.as_millis() / 20;
    for _ in 0..turns {
        if tokio::task::block_in_place(&mut is_so) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("waited in vain for {what}");
}
