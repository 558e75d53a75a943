//! The closed loop: users, each of whom fetches a page, rests, and fetches the next.
//!
//! - A user's connections are its own. The page itself comes first, then its embedded files. Where
//!   a connection serves one request they come over two at a time, as with the browsers of
//!   HTTP/1.0; over a kept connection one after the other; over HTTP/2 as two streams. Before each
//!   embedded file is an active OFF time, after the page an inactive one.
//! - A request's intended start is the end of the pause before it. So its response time counts from
//!   there however busy the generator is. A timerfd ends the pause, as in the open loop.
//! - Nobody starts a page or a file after the run's length.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use shortline_base::alarm;
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;

use super::HEAD_START;
use super::visit::{Client, ClientSetup, Shared, visit};
use crate::record::Turn;
use crate::trace::Request;
use crate::workload::{SiteFile, User, UserModel};

/// The most that one user has open: a connection and a timer each for two requests.
pub(super) const DESCRIPTORS_MAX: NonZeroUsize =
    NonZeroUsize::new(4).expect("invariant: 4 is not 0");

/// Starts the users of these numbers and waits for the end of the run's length.
pub(super) async fn start(
    shared: Arc<Shared>,
    setup: ClientSetup,
    numbers: Vec<u64>,
    model: Arc<UserModel>,
    slots: Arc<Semaphore>,
) -> io::Result<()> {
    shared.begin(Instant::now() + HEAD_START);
    for number in numbers {
        let slot = Arc::clone(&slots)
            .acquire_owned()
            .await
            .expect("invariant: the semaphore is never closed");
        let (shared, model) = (Arc::clone(&shared), Arc::clone(&model));
        let client = setup.client(setup.source_of(number));
        tokio::spawn(async move {
            let user = model.user(number);
            Browser::new(&shared, client, number, user).browse().await;
            drop(slot);
        });
    }
    let end = shared.instant(shared.length().as_nanos() as u64);
    tokio::time::sleep_until(end.into()).await;
    Ok(())
}

/// A user with connections.
struct Browser<'a> {
    shared: &'a Shared,
    client: Client,
    number: u64,
    user: User<'a>,
    /// Turns true when the run is over.
    stopped: Receiver<bool>,
}

impl<'a> Browser<'a> {
    fn new(shared: &'a Shared, client: Client, number: u64, user: User<'a>) -> Self {
        Self {
            stopped: shared.stopped(),
            shared,
            client,
            number,
            user,
        }
    }

    async fn browse(mut self) {
        let mut at_ns = self.user.first_wait().as_nanos() as u64;
        while self.rest_until(at_ns).await {
            let first = self.user.next_request();
            let page = self.user.page();
            self.fetch(first, &page[0], at_ns).await;
            self.embedded(first + 1, &page[1..]).await;
            let pause_ns = self.user.inactive_off().as_nanos() as u64;
            at_ns = self.after(pause_ns);
        }
    }

    /// Fetches what is embedded in a page; the first has the number `first`.
    async fn embedded(&mut self, first: u64, files: &[SiteFile]) {
        // Drawn in the order of the files, so that it does not matter which ends first.
        let files: Vec<(u64, &SiteFile, u64)> = (first..)
            .zip(files)
            .map(|(number, file)| (number, file, self.user.active_off().as_nanos() as u64))
            .collect();
        let next = AtomicUsize::new(0);
        let browser = &*self;
        let lane = async || {
            let take = || next.fetch_add(1, Ordering::Relaxed);
            while let Some((number, file, pause_ns)) = files.get(take()) {
                let at_ns = browser.after(*pause_ns);
                if !browser.rest_until(at_ns).await {
                    return;
                }
                browser.fetch(*number, file, at_ns).await;
            }
        };
        if self.client.keeps_connections() {
            lane().await;
        } else {
            tokio::join!(lane(), lane());
        }
    }

    /// Fetches the file of the user's request of that number.
    async fn fetch(&self, number: u64, file: &SiteFile, at_ns: u64) {
        let request = Request {
            at_ns,
            path: file.path.clone(),
            bytes: file.bytes,
        };
        let turn = Turn {
            user: self.number,
            request: number,
        };
        visit(self.shared, &self.client, &request, at_ns, Some(turn)).await;
    }

    /// The time of the run that much later than now.
    fn after(&self, pause_ns: u64) -> u64 {
        (self.shared.elapsed().as_nanos() as u64).saturating_add(pause_ns)
    }

    /// Whether a time of the run lies before its end.
    async fn rest_until(&self, at_ns: u64) -> bool {
        if u128::from(at_ns) >= self.shared.length().as_nanos() {
            return false;
        }
        let mut stopped = self.stopped.clone();
        tokio::select! {
            () = sleep_until(self.shared.instant(at_ns)) => true,
            _ = stopped.wait_for(|stopped| *stopped) => false,
        }
    }
}

async fn sleep_until(instant: Instant) {
    let left = instant.saturating_duration_since(Instant::now());
    let rung = async {
        let alarm = alarm::alarm()?;
        alarm.set(left)?;
        alarm::wait(&*alarm).await
    };
    if !left.is_zero() && rung.await.is_err() {
        // The runtime's own timer is late by a millisecond, but needs no descriptor, of which there
        // might be none left.
        tokio::time::sleep_until(instant.into()).await;
    }
}
