//! Opens connections to the backend. TLS depends on the configuration and on the client.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::PostgresConfig;
use crate::relay::tls::{Connector, UpstreamTls};
use crate::relay::{ConnectError, Stream, Upstream};

/// The SSLRequest: length and code.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Why there is no connection to the backend.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// It cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// TLS is required, and the backend has none.
    #[error("the backend offers no TLS")]
    NoTls,
    /// The handshake failed, or the certificate was not accepted.
    #[error("TLS with the backend: {0}")]
    Tls(io::Error),
}

/// Opens a connection for a client. `client_is_secure` says whether the client has TLS to the gate.
///
/// # Errors
/// [`BackendError`]
pub async fn connect(
    config: &PostgresConfig,
    client_is_secure: bool,
) -> Result<Stream, BackendError> {
    connect_at(config, &config.relay.upstream, client_is_secure).await
}

/// The same, to this server of several.
///
/// # Errors
/// [`BackendError`]
pub async fn connect_at(
    config: &PostgresConfig,
    upstream: &Upstream,
    client_is_secure: bool,
) -> Result<Stream, BackendError> {
    let limit = config.relay.limits.connect_time_max;
    let connector = config.relay.upstream_tls.connector(client_is_secure);
    let is_optional = config.relay.upstream_tls.is_optional();
    let connected = connect_with(upstream, connector, is_optional, limit).await;
    config.relay.registry.note_backend(connected.is_ok());
    connected
}

/// Opens a connection of the gate's own to any backend, with TLS if `tls` allows it.
///
/// # Errors
/// [`BackendError`]
pub(crate) async fn connect_to(
    upstream: &Upstream,
    tls: &UpstreamTls,
    limit: Duration,
) -> Result<Stream, BackendError> {
    connect_with(upstream, tls.connector(true), tls.is_optional(), limit).await
}

async fn connect_with(
    upstream: &Upstream,
    connector: Option<&Connector>,
    is_optional: bool,
    limit: Duration,
) -> Result<Stream, BackendError> {
    let mut socket = upstream.connect(limit).await?;
    // A Unix socket has no name to check, and needs no secrecy.
    let Some(connector) = connector.filter(|_| !upstream.is_path()) else {
        return Ok(Stream::Plain(socket));
    };
    let tls = async {
        socket.write_all(&TLS_REQUEST).await?;
        // Exactly one byte: bytes after it in the clear are not part of the handshake.
        match socket.read_u8().await? {
            b'S' => connector.connect(socket, &upstream.host).await.map(Some),
            // A server that does not know TLS sends an ErrorResponse.
            _ => Ok(None),
        }
    };
    let begun = tokio::time::timeout(limit, tls)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match begun.map_err(BackendError::Tls)? {
        Some(stream) => Ok(stream),
        None if is_optional => Ok(Stream::Plain(upstream.connect(limit).await?)),
        None => Err(BackendError::NoTls),
    }
}
