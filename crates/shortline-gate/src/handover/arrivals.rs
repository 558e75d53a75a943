//! Sessions that have come to the new process: each waits for a thread, which says whether it can go on with it,
//! and then for the word that the session is its own.

use std::os::fd::OwnedFd;

use tokio::sync::{Mutex, mpsc, oneshot};

use super::SessionState;

/// Sessions that wait for a thread. They come one at a time.
const ARRIVALS_MAX: usize = 1;

/// A session that has come, and is not this process's yet.
#[derive(Debug)]
pub struct Arrival {
    /// What is known of it.
    pub state: SessionState,
    /// Its client's socket.
    pub socket: OwnedFd,
    /// Where the old process hears of it.
    pub welcome: Welcome,
}

/// Answers for a session that has come.
#[derive(Debug)]
pub struct Welcome {
    verdict: oneshot::Sender<Result<(), String>>,
    go: oneshot::Receiver<()>,
}

impl Welcome {
    /// Says that this process can go on with the session. False if it is not to: the old process does.
    pub async fn accept(self) -> bool {
        self.verdict.send(Ok(())).is_ok() && self.go.await.is_ok()
    }

    /// Says that it cannot.
    pub fn refuse(self, reason: String) {
        // The handover may have ended meanwhile; then nobody is to be told.
        let _ = self.verdict.send(Err(reason));
    }
}

/// The queue for all threads.
#[derive(Debug)]
pub struct Arrivals {
    sender: mpsc::Sender<Arrival>,
    /// Threads take in turn.
    receiver: Mutex<mpsc::Receiver<Arrival>>,
}

impl Default for Arrivals {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(ARRIVALS_MAX);
        Self {
            sender,
            receiver: Mutex::new(receiver),
        }
    }
}

impl Arrivals {
    /// The next session for whichever thread asks.
    pub async fn next(&self) -> Arrival {
        let arrived = self.receiver.lock().await.recv().await;
        arrived.expect("invariant: the sender is here")
    }

    /// Hands a session to a thread. What is returned lets it begin, once it is this process's.
    ///
    /// # Errors
    /// Why this process cannot go on with it.
    pub async fn enter(
        &self,
        state: SessionState,
        socket: OwnedFd,
    ) -> Result<oneshot::Sender<()>, String> {
        let (verdict, decided) = oneshot::channel();
        let (begin, go) = oneshot::channel();
        let welcome = Welcome { verdict, go };
        let arrival = Arrival {
            state,
            socket,
            welcome,
        };
        let ends = |_| "the gate ends".to_owned();
        self.sender.send(arrival).await.map_err(|_| ends(()))?;
        decided.await.unwrap_or_else(|_| Err(ends(())))?;
        Ok(begin)
    }
}
