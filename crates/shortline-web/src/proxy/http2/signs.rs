//! Whether a backend is alive. It is asked by `PING` (RFC 9113 6.7) when an answer is late and, if the
//! route says so, when it is silent for a while. A connection without streams is not asked: servers of
//! gRPC take that for an attack.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::timeout;

use super::State;

/// Ends when the backend gives no sign of life within `time_max`.
pub async fn watch(
    mut ping: PingPong,
    state: Arc<State>,
    every: Option<Duration>,
    time_max: Duration,
) {
    loop {
        if is_doubtful(&state, every).await
            && !matches!(
                timeout(time_max, ping.ping(Ping::opaque())).await,
                Ok(Ok(_))
            )
        {
            return;
        }
    }
}

/// Waits until there is a reason to ask; `false` if there is none after all.
async fn is_doubtful(state: &State, every: Option<Duration>) -> bool {
    let received = || state.received_bytes.load(Ordering::Relaxed);
    let before = received();
    let doubted = state.doubts.notified();
    let Some(every) = every else {
        doubted.await;
        return true;
    };
    let has_doubts = timeout(every, doubted).await.is_ok();
    has_doubts || (received() == before && state.streams.load(Ordering::Relaxed) > 0)
}
