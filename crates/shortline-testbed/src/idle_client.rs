//! A client that opens many connections, makes one request on each, and then keeps them open and idle:
//! HTTP/1.1 in the clear, or HTTP/2 over TLS.

use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::{TestbedError, tls};

/// The most connections being opened at a time.
const OPENING: u32 = 64;
/// Connections from one source address.
const PER_ADDRESS: u32 = 50;
/// How long a connection and its request may take.
const REQUEST_MAX: Duration = Duration::from_secs(60);

type Problem = Box<dyn std::error::Error + Send + Sync>;

/// What to open.
#[derive(Clone, Debug)]
pub struct IdleClient {
    /// The server, on a loopback address.
    pub server: SocketAddr,
    /// What each connection asks for.
    pub path: &'static str,
    /// How long the answer's body is, in bytes.
    pub body_bytes: usize,
    /// How many connections.
    pub connections: u32,
    /// The certificate to trust over TLS and HTTP/2. `None`: HTTP/1.1 in the clear.
    pub certificate: Option<PathBuf>,
}

/// Opens all connections, calls `meanwhile` while they are idle, and closes them.
///
/// # Errors
/// The first connection or request that fails.
pub fn hold<T>(client: &IdleClient, meanwhile: impl FnOnce() -> T) -> Result<T, TestbedError> {
    let failed = |problem: &dyn Display| {
        let what = format!("{} connections to {}", client.connections, client.server);
        TestbedError::command(what, problem)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| failed(&error))?;
    let connections = runtime
        .block_on(open_all(client))
        .map_err(|error| failed(&error))?;
    let result = meanwhile();
    // A connection that closed in the meantime was not measured.
    let closed = connections
        .iter()
        .filter(|connection| connection.is_closed())
        .count();
    if closed > 0 {
        return Err(failed(&format!("the server closed {closed} of them")));
    }
    Ok(result)
}

/// An open connection.
enum Connection {
    Http1(TcpStream),
    Http2 {
        /// Keeps the connection open.
        _requests: h2::client::SendRequest<bytes::Bytes>,
        driver: tokio::task::JoinHandle<()>,
    },
}

impl Connection {
    fn is_closed(&self) -> bool {
        match self {
            // Idle means that there is nothing to read, not even the end.
            Self::Http1(stream) => {
                !matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
            }
            Self::Http2 { driver, .. } => driver.is_finished(),
        }
    }
}

async fn open_all(client: &IdleClient) -> Result<Vec<Connection>, Problem> {
    let certificate = client.certificate.as_deref();
    let tls = certificate.map(|certificate| tls::connector(certificate, "h2"));
    let tls = tls.transpose()?;
    let mut open = Vec::new();
    let mut opening = JoinSet::new();
    for number in 0..client.connections {
        if opening.len() >= OPENING as usize {
            open.extend(opening.join_next().await.transpose()?.transpose()?);
        }
        let (client, tls) = (client.clone(), tls.clone());
        opening.spawn(async move {
            let opened = tokio::time::timeout(REQUEST_MAX, open_one(&client, tls, number)).await;
            opened.unwrap_or_else(|_| Err(format!("connection {number} took too long").into()))
        });
    }
    while let Some(opened) = opening.join_next().await {
        open.push(opened??);
    }
    Ok(open)
}

async fn open_one(
    client: &IdleClient,
    tls: Option<TlsConnector>,
    number: u32,
) -> Result<Connection, Problem> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((source_address(number), 0)))?;
    let stream = socket.connect(client.server).await?;
    stream.set_nodelay(true)?;
    match tls {
        None => request_http1(client, stream).await,
        Some(tls) => request_http2(client, tls, stream).await,
    }
}

/// 127.0.1.1 for the first connections, 127.0.1.2 for the next, and so on.
fn source_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 0, 1, 1)) + number / PER_ADDRESS)
}

async fn request_http1(client: &IdleClient, mut stream: TcpStream) -> Result<Connection, Problem> {
    let request = format!("GET {} HTTP/1.1\r\nHost: lab\r\n\r\n", client.path);
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err("the server closed instead of answering".into());
        }
        let head = answer.windows(4).position(|window| window == b"\r\n\r\n");
        if head.is_some_and(|head| answer.len() >= head + 4 + client.body_bytes) {
            break;
        }
    }
    if !answer.starts_with(b"HTTP/1.1 200") {
        return Err(String::from_utf8_lossy(&answer[..answer.len().min(60)]).into());
    }
    Ok(Connection::Http1(stream))
}

async fn request_http2(
    client: &IdleClient,
    tls: TlsConnector,
    stream: TcpStream,
) -> Result<Connection, Problem> {
    let name = ServerName::IpAddress(client.server.ip().into());
    let stream = tls.connect(name, stream).await?;
    let (requests, connection) = h2::client::handshake(stream).await?;
    let driver = tokio::spawn(async move {
        connection.await.ok();
    });
    let mut requests = requests.ready().await?;
    let uri = format!("https://{}{}", client.server, client.path);
    let request = http::Request::get(uri).body(())?;
    let (response, _) = requests.send_request(request, true)?;
    let response = response.await?;
    if response.status() != http::StatusCode::OK {
        return Err(response.status().to_string().into());
    }
    let mut body = response.into_body();
    while let Some(chunk) = body.data().await {
        let length = chunk?.len();
        body.flow_control().release_capacity(length)?;
    }
    Ok(Connection::Http2 {
        _requests: requests,
        driver,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_addresses_stay_on_loopback_and_change() {
        assert_eq!(source_address(0), Ipv4Addr::new(127, 0, 1, 1));
        assert_eq!(source_address(PER_ADDRESS), Ipv4Addr::new(127, 0, 1, 2));
        assert!(source_address(9_999).is_loopback());
    }
}
