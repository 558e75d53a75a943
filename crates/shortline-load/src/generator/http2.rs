//! HTTP/2 on the h2 crate: one connection, and one exchange. [`super::multiplexed`] says which connection a request goes to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use h2::client::{self, SendRequest};
use http::{Request, StatusCode, Version};

use super::connect::Connector;
use super::exchange::{Broken, Observed, is_connection_lost};
use super::multiplexed::{CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES, Speaks};
use crate::record::Failure;

/// How HTTP/2 is spoken.
pub(super) struct Http2(pub(super) Arc<Connector>);

impl Speaks for Http2 {
    type Sender = SendRequest<Bytes>;

    async fn open(&self, closed: Arc<AtomicBool>) -> Result<SendRequest<Bytes>, Failure> {
        let wire = self.0.connect().await?;
        let (sender, driver) = client::Builder::new()
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .enable_push(false)
            .handshake(wire)
            .await
            .map_err(|_| Failure::Connect)?;
        tokio::spawn(async move {
            // Each stream sees an error itself.
            let _ = driver.await;
            closed.store(true, Ordering::Relaxed);
        });
        Ok(sender)
    }

    fn streams_max(sender: &SendRequest<Bytes>) -> usize {
        sender.current_max_send_streams()
    }

    async fn exchange(
        &self,
        sender: SendRequest<Bytes>,
        mut request: Request<()>,
        seen: &mut Observed,
    ) -> Result<StatusCode, Broken> {
        *request.version_mut() = Version::HTTP_2;
        let mut sender = sender.ready().await.map_err(before_head)?;
        let (response, _) = sender.send_request(request, true).map_err(before_head)?;
        let response = response.await.map_err(before_head)?;
        seen.head_arrived();
        let status = response.status();
        let mut body = response.into_body();
        while let Some(data) = body.data().await {
            let bytes = data.map_err(|_| Failure::Reset)?.len();
            seen.received += bytes as u64;
            // Fails only on a stream that has ended, which the next read shows.
            let _ = body.flow_control().release_capacity(bytes);
        }
        Ok(status)
    }
}

/// Whether the server has not begun to answer because the connection ended, or because it refused
/// the stream, which promises the same; else it failed in another way.
fn before_head(error: h2::Error) -> Broken {
    let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
    if refused || error.is_go_away() || error.is_io() || is_connection_lost(&error) {
        Broken::Stale
    } else if error.is_reset() {
        Broken::Failed(Failure::Reset)
    } else {
        Broken::Failed(Failure::Protocol)
    }
}
