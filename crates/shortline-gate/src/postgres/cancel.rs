//! Cancel requests: a connection of its own names another one by the key that the backend gave it
//! (PostgreSQL's documentation, 55.2.8).
//!
//! A request is forwarded, unless the connection's statement still waits here: then that wait is
//! ended ([`crate::relay::Waits`]), and the client gets the error that the backend would have given.
//!
//! There is no answer. A client takes the end of its connection for the request's, and sends its
//! next statement then; the backend closes its own once it has passed the request on. So the
//! client's is closed behind the backend's: sooner, and the request could meet the next statement.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Shared;
use super::backend::{BackendError, connect};
use super::startup::PACKET_BYTES_MAX;
use crate::relay::Stream;

/// Where the key begins in a CancelRequest: behind length and code.
const KEY_AT: usize = 8;

/// The longest key of a BackendKeyData that is kept, in bytes (256 since protocol 3.2).
pub const KEY_BYTES_MAX: usize = PACKET_BYTES_MAX - KEY_AT;

/// Does what the request `packet` of `client` asks for, and closes the client's connection when the
/// backend has closed its own, or has not within the time to connect to it.
///
/// # Errors
/// [`BackendError`]: the request has not reached the backend.
pub async fn serve(shared: &Shared, packet: &[u8], mut client: Stream) -> Result<(), BackendError> {
    let ends_wait = key_of(packet).is_some_and(|key| shared.waits.cancel(key));
    let passed = match (ends_wait, &shared.config.pool) {
        (true, _) => Ok(()),
        (false, None) => pass_on(shared, packet, client.is_secure()).await,
        (false, Some(pool)) => match key_of(packet).and_then(|key| pool.target_of(key)) {
            Some((key, cancelling)) => {
                let packet = [&packet[..KEY_AT], &key].concat();
                let passed = pass_on(shared, &packet, client.is_secure()).await;
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
    packet: &[u8],
    client_is_secure: bool,
) -> Result<(), BackendError> {
    let mut server = connect(&shared.config, client_is_secure).await?;
    let limit: Duration = shared.config.relay.limits.connect_time_max;
    let passing = async {
        server.write_all(packet).await?;
        server.flush().await?;
        // Nothing comes but the end.
        server.read_u8().await
    };
    // However that went, the client is told by nothing but its connection's end.
    let _ = tokio::time::timeout(limit, passing).await;
    Ok(())
}

/// The key in a CancelRequest: what the body of a BackendKeyData was.
fn key_of(packet: &[u8]) -> Option<&[u8]> {
    packet.get(KEY_AT..)
}
