//! Cancel requests. A separate connection names another connection by the key that the backend gave
//! to that one (PostgreSQL's documentation, 55.2.8).
//!
//! If the connection's statement still waits at the gate, that wait ends ([`crate::relay::Waits`]).
//! The client gets the error that the backend would send. Otherwise the request is forwarded.
//!
//! There is no response. A client treats the close of its connection as the end of the request, and
//! may then send its next statement. The backend closes its connection after it has passed the
//! request on. So the gate closes the client's connection after the backend's. If it closed earlier,
//! the request could hit the next statement.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Shared;
use super::backend::{BackendError, connect_at};
use super::startup::PACKET_BYTES_MAX;
use crate::relay::{Stream, Upstream};

/// The position of the key in a CancelRequest, after length and code.
const KEY_AT: usize = 8;

/// The longest key of a BackendKeyData that is kept, in bytes (256 since protocol 3.2).
pub const KEY_BYTES_MAX: usize = PACKET_BYTES_MAX - KEY_AT;

/// Serves the cancel request `packet` of `client`. Closes the client's connection when the backend has
/// closed its own, or after the time limit for connecting.
///
/// # Errors
/// [`BackendError`]: the request did not reach the backend.
pub async fn serve(shared: &Shared, packet: &[u8], mut client: Stream) -> Result<(), BackendError> {
    let ends_wait = key_of(packet).is_some_and(|key| shared.waits.cancel(key));
    let passed = match (ends_wait, &shared.config.pool) {
        (true, _) => Ok(()),
        (false, None) => {
            let upstream = &shared.config.relay.upstream;
            pass_on(shared, upstream, packet, client.is_secure()).await
        }
        (false, Some(pool)) => match key_of(packet).and_then(|key| pool.target_of(key)) {
            Some((key, upstream, cancelling)) => {
                let packet = [&packet[..KEY_AT], &key].concat();
                let passed = pass_on(shared, &upstream, &packet, client.is_secure()).await;
                drop(cancelling);
                passed
            }
            // It has no connection, so nothing runs.
            None => Ok(()),
        },
    };
    // It may have gone.
    let _ = client.shutdown().await;
    passed
}

async fn pass_on(
    shared: &Shared,
    upstream: &Upstream,
    packet: &[u8],
    client_is_secure: bool,
) -> Result<(), BackendError> {
    let mut server = connect_at(&shared.config, upstream, client_is_secure).await?;
    let limit: Duration = shared.config.relay.limits.connect_time_max;
    let passing = async {
        server.write_all(packet).await?;
        server.flush().await?;
        // The backend only closes the connection.
        server.read_u8().await
    };
    // The client learns no result; its connection is closed in any case.
    let _ = tokio::time::timeout(limit, passing).await;
    Ok(())
}

/// The key in a CancelRequest: the body of the connection's BackendKeyData.
fn key_of(packet: &[u8]) -> Option<&[u8]> {
    packet.get(KEY_AT..)
}
