//! The open loop: every request at its time.
//!
//! A late start waits until the runtime has done everything that is ready and has asked the poller
//! once more. So an answer that has come frees its connection before another is opened. Otherwise a
//! generator that is behind would open ever more connections, each of which would put it further
//! behind. It does not wait for the server: a request without an answer holds up nothing.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use shortline_base::alarm::{self, Alarm};
use tokio::sync::Semaphore;

use super::HEAD_START;
use super::visit::{ClientSetup, Shared, visit};
use crate::trace::Request;

/// Starts every request at its time, each in a slot of its own.
pub(super) async fn start(
    shared: Arc<Shared>,
    setup: ClientSetup,
    schedule: Vec<(u64, Request)>,
    slots: Arc<Semaphore>,
) -> io::Result<()> {
    let alarm = alarm::alarm()?;
    let clients = setup.clients();
    shared.begin(Instant::now() + HEAD_START);
    for (order, request) in schedule {
        sleep_until(&*alarm, shared.instant(request.at_ns)).await?;
        let slot = Arc::clone(&slots)
            .acquire_owned()
            .await
            .expect("invariant: the semaphore is never closed");
        let client = clients[setup.source_of(order)].clone();
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            visit(&shared, &client, &request, order, None).await;
            drop(slot);
        });
    }
    Ok(())
}

async fn sleep_until(alarm: &dyn Alarm, instant: Instant) -> io::Result<()> {
    let left = || instant.saturating_duration_since(Instant::now());
    if left().is_zero() {
        tokio::task::yield_now().await;
        return Ok(());
    }
    while !left().is_zero() {
        alarm.set(left())?;
        alarm::wait(alarm).await?;
    }
    Ok(())
}
