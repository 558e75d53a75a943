//! HTTP/3 on the crates h3, h3-quinn and quinn: one connection, and one exchange. [`super::multiplexed`] says which connection a
//! request goes to.
//!
//! All connections of a source are at one UDP port of its own. Congestion control is CUBIC, as for TCP; it matters for
//! requests only. No session is resumed, and nothing is sent before the handshake is done (0-RTT).

use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3::error::{Code, StreamError};
use http::{Request, StatusCode};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBuf;
use parking_lot::Mutex;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ClientConfig, ConnectionError, Endpoint, EndpointConfig, TokioRuntime, TransportConfig,
};

use super::LoadError;
use super::connect::Connector;
use super::exchange::{Broken, Observed};
use super::multiplexed::{CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES, STREAMS_ASSUMED, Speaks};
use crate::record::Failure;

/// What the kernel keeps of packets that were not read yet, if it allows as much.
const RECEIVE_BUFFER_BYTES: usize = 2 << 20;
/// QUIC's codes for what TLS says (RFC 9001, 4.8).
const CRYPTO_ERRORS: std::ops::Range<u64> = 0x100..0x200;

/// How HTTP/3 is spoken.
pub(super) struct Http3 {
    server: SocketAddr,
    source: Option<IpAddr>,
    name: String,
    config: ClientConfig,
    /// Made with the first connection, which is in the runtime.
    endpoint: Mutex<Option<Endpoint>>,
}

type Sender = SendRequest<h3_quinn::OpenStreams, Bytes>;

impl Http3 {
    /// Connections as `connector` would make them.
    ///
    /// # Errors
    /// [`LoadError::Plain`]: without TLS there is none.
    pub(super) fn new(connector: &Connector) -> Result<Self, LoadError> {
        let (tls, name) = connector.tls().ok_or(LoadError::Plain)?;
        let crypto = QuicClientConfig::try_from(tls)
            .expect("invariant: ring has the cipher suite that QUIC begins with");
        let mut transport = TransportConfig::default();
        transport
            .stream_receive_window(STREAM_WINDOW_BYTES.into())
            .receive_window(CONNECTION_WINDOW_BYTES.into())
            // A response may wait for its turn for longer than quinn would.
            .max_idle_timeout(None);
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport));
        Ok(Self {
            server: connector.server(),
            source: connector.source(),
            name,
            config,
            endpoint: Mutex::new(None),
        })
    }

    fn endpoint(&self) -> std::io::Result<Endpoint> {
        let mut endpoint = self.endpoint.lock();
        if let Some(endpoint) = &*endpoint {
            return Ok(endpoint.clone());
        }
        let any = match self.server {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((self.source.unwrap_or(any), 0))?;
        // The kernel gives what it allows.
        let _ = setsockopt(&socket, RcvBuf, &RECEIVE_BUFFER_BYTES);
        let made = Endpoint::new(
            EndpointConfig::default(),
            None,
            socket,
            Arc::new(TokioRuntime),
        )?;
        Ok(endpoint.insert(made).clone())
    }
}

impl Speaks for Http3 {
    type Sender = Sender;

    async fn open(&self, closed: Arc<AtomicBool>) -> Result<Sender, Failure> {
        let endpoint = self.endpoint().map_err(|_| Failure::Connect)?;
        let connecting = endpoint.connect_with(self.config.clone(), self.server, &self.name);
        let quic = connecting.map_err(|_| Failure::Connect)?.await;
        let quic = quic.map_err(|error| not_connected(&error))?;
        let mut builder = h3::client::builder();
        builder.send_grease(false);
        let building = builder.build::<_, _, Bytes>(h3_quinn::Connection::new(quic));
        let (mut driver, sender) = building.await.map_err(|_| Failure::Connect)?;
        tokio::spawn(async move {
            // Each stream sees an error itself.
            let _ = poll_fn(|context| driver.poll_close(context)).await;
            closed.store(true, Ordering::Relaxed);
        });
        Ok(sender)
    }

    /// A stream beyond what the server allows waits inside quinn until another has ended.
    fn streams_max(_: &Sender) -> usize {
        STREAMS_ASSUMED
    }

    async fn exchange(
        &self,
        mut sender: Sender,
        request: Request<()>,
        seen: &mut Observed,
    ) -> Result<StatusCode, Broken> {
        let mut stream = sender.send_request(request).await.map_err(before_head)?;
        stream.finish().await.map_err(before_head)?;
        let response = stream.recv_response().await.map_err(before_head)?;
        seen.head_arrived();
        while let Some(data) = stream.recv_data().await.map_err(|_| Failure::Reset)? {
            seen.received += data.remaining() as u64;
        }
        Ok(response.status())
    }
}

fn not_connected(error: &ConnectionError) -> Failure {
    let code = match error {
        ConnectionError::TransportError(error) => error.code,
        ConnectionError::ConnectionClosed(closed) => closed.error_code,
        _ => return Failure::Connect,
    };
    match CRYPTO_ERRORS.contains(&code.into()) {
        true => Failure::Tls,
        false => Failure::Connect,
    }
}

/// Whether the server has not begun to answer because the connection ended, or because it refused the stream, which promises the
/// same (RFC 9114, 4.1.1); else it failed in another way.
fn before_head(error: StreamError) -> Broken {
    match error {
        StreamError::ConnectionError { .. } | StreamError::RemoteClosing { .. } => Broken::Stale,
        StreamError::RemoteTerminate { code, .. } if code == Code::H3_REQUEST_REJECTED => {
            Broken::Stale
        }
        StreamError::RemoteTerminate { .. } => Broken::Failed(Failure::Reset),
        _ => Broken::Failed(Failure::Protocol),
    }
}
