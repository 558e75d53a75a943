//! The open loop: every request at its time.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use shortline_link::timer::Alarm;
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
    let alarm = Alarm::new()?;
    let clients = setup.clients();
    shared.begin(Instant::now() + HEAD_START);
    for (order, request) in schedule {
        sleep_until(&alarm, shared.instant(request.at_ns)).await?;
        let slot = Arc::clone(&slots)
            .acquire_owned()
            .await
            .expect("invariant: the semaphore is never closed");
        let client = clients[setup.source_of(order)].clone();
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            visit(&shared, &client, &request, order).await;
            drop(slot);
        });
    }
    Ok(())
}

async fn sleep_until(alarm: &Alarm, instant: Instant) -> io::Result<()> {
    loop {
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // Behind, many starts follow each other: the runtime must get its turn.
            tokio::task::consume_budget().await;
            return Ok(());
        }
        alarm.set(left)?;
        alarm.wait().await?;
    }
}
