//! Sessions that have come to the new process: each waits for a thread, which says whether it can go on with it,
//! and then for the word that the session is its own.

use std::os::fd::OwnedFd;

use shortline_sched::admission::Refusal;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::SessionState;
use crate::relay::Socket;

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

/// Why this process cannot go on with a session.
#[derive(Debug, thiserror::Error)]
pub enum ArrivalError {
    /// It would need a connection of its own.
    #[error("this gate has no pool")]
    NoPool,
    /// There is no room.
    #[error("this gate has as many clients as it may")]
    TooMany,
    /// It speaks what this gate does not.
    #[error("the session is of another protocol")]
    Protocol,
    /// More than a session may have.
    #[error("the session has more than {0} prepared statements")]
    Statements(usize),
    /// What it has set cannot be set here.
    #[error("the session has set what this gate does not follow")]
    Settings,
    /// A session here has the key, or the number, already.
    #[error("another session has the same key")]
    Key,
    /// Its tenant has no room.
    #[error(transparent)]
    Tenant(#[from] Refusal),
    /// Its socket is of no use.
    #[error("its socket: {0}")]
    Socket(#[from] std::io::Error),
}

impl Arrival {
    /// Opens the session here, and waits until it is this process's. None if the old one goes on with it.
    pub async fn enter<T>(
        self,
        open: impl FnOnce(SessionState, Socket) -> Result<T, ArrivalError>,
    ) -> Option<T> {
        let arrived = Socket::arrived(self.socket).map_err(ArrivalError::from);
        match arrived.and_then(|socket| open(self.state, socket)) {
            Ok(opened) => self.welcome.accept().await.then_some(opened),
            Err(error) => {
                self.welcome.refuse(error.to_string());
                None
            }
        }
    }
}
