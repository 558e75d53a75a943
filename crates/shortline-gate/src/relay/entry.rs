//! The time before a session: a client has so long to log in.

use std::error::Error;
use std::pin::Pin;

use super::{Order, Registration, RelayConfig};

/// A client did not log in within the time limit.
#[derive(Debug, thiserror::Error)]
#[error("the client's authentication took too long")]
struct TooSlow;

/// Returns the value of `opening`, if it is ready in time. `None` if it fails, takes too long, or the
/// connection is ordered to close. The first two are counted as failures.
///
/// `opening` is in a box of its own, which is freed before the session. A task has room for all that it ever awaits, for as
/// long as it lives, and a login needs several kilobytes.
pub async fn open_in_time<T, E: Error + 'static>(
    mut opening: Pin<Box<impl Future<Output = Result<T, E>>>>,
    registration: &Registration,
    config: &RelayConfig,
) -> Option<T> {
    let opened = loop {
        let limit = tokio::time::sleep(config.limits.authentication_time_max);
        tokio::select! {
            opened = &mut opening => break Some(opened),
            // A client whose database is paused is not slow.
            () = limit => if !registration.handle.is_kept_out() { break None },
            () = registration.handle.ordered(Order::Close) => return None,
        }
    };
    match opened {
        Some(Ok(opened)) => return Some(opened),
        Some(Err(error)) => config.registry.count_failure(&error),
        None => config.registry.count_failure(&TooSlow),
    }
    None
}
