//! The new process's part of a handover: it takes the listening sockets, and then the sessions as they come.

use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::wire::{self, WireError};
use super::{Blob, Listening, Message, Receiver, Sender, VERSION};
use crate::pool::Shown;
use crate::relay::Registry;

/// The old process has so long for its part of a step.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// A thread has so long to say whether it can go on with a session.
const ENTER_TIME_MAX: Duration = Duration::from_secs(10);

/// Why nothing was taken over.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The connection's end, or what is no message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It is silent.
    #[error("the running process has not answered for {} s", ANSWER_TIME_MAX.as_secs())]
    Silent,
    /// It says no.
    #[error("the running process hands nothing over: {0}")]
    Refused(String),
    /// A message out of order.
    #[error("the running process says something out of turn")]
    OutOfTurn,
    /// A socket without a file, or the other way round.
    #[error("the running process names {named} sockets and gives {given}")]
    Sockets {
        /// How many it names.
        named: usize,
        /// How many came.
        given: usize,
    },
}

/// A handover whose sockets have come.
#[derive(Debug)]
pub struct Taker {
    sender: Sender,
    receiver: Receiver,
    pool_size: Option<usize>,
}

/// What a handover acts on.
pub struct Taking<'a> {
    /// The sessions.
    pub clients: &'a Registry,
    /// The pool, if there is one.
    pub pool: Option<&'a dyn Shown>,
    /// Connections that it may have in the end.
    pub pool_size: usize,
}

impl Taker {
    /// Asks the running process for its listening sockets.
    ///
    /// # Errors
    /// [`TakeError`]
    pub async fn ask(
        stream: UnixStream,
        kind: &str,
    ) -> Result<(Self, Vec<(Listening, OwnedFd)>), TakeError> {
        let (mut sender, mut receiver) = wire::split(stream);
        let hello = Message::Hello {
            version: VERSION,
            kind: kind.to_owned(),
        };
        sender.send(&hello, &[]).await?;
        let answer = timeout(ANSWER_TIME_MAX, receiver.receive()).await;
        let (sockets, pool_size, files) = match answer.map_err(|_| TakeError::Silent)?? {
            (Message::Sockets { sockets, pool_size }, files) => (sockets, pool_size, files),
            (Message::Refused(reason), _) => return Err(TakeError::Refused(reason)),
            _ => return Err(TakeError::OutOfTurn),
        };
        if sockets.len() != files.len() {
            return Err(TakeError::Sockets {
                named: sockets.len(),
                given: files.len(),
            });
        }
        let taker = Self {
            sender,
            receiver,
            pool_size,
        };
        Ok((taker, sockets.into_iter().zip(files).collect()))
    }

    /// Connections of the running gate's pool, if it has one.
    pub fn pool_size(&self) -> Option<usize> {
        self.pool_size
    }

    /// Says that clients are accepted here. There are no sessions to take.
    ///
    /// # Errors
    /// [`TakeError`]
    pub async fn ready(&mut self) -> Result<(), TakeError> {
        Ok(self.sender.send(&Message::Ready, &[]).await?)
    }

    /// Waits until the running process has ended.
    pub async fn left(mut self) {
        // What it says meanwhile is of no use.
        while self.receiver.receive().await.is_ok() {}
    }

    /// Says that clients are accepted here, and takes sessions until the running process has ended. Returns how many.
    ///
    /// # Errors
    /// [`TakeError`]; but the end of the other process is none.
    pub async fn take(mut self, taking: &Taking<'_>) -> (usize, Result<(), TakeError>) {
        let cancels = taking.clients.cancels().open();
        let mut taken = 0;
        let ended = self.take_all(taking, cancels, &mut taken).await;
        taking.clients.cancels().close();
        if let Some(pool) = taking.pool {
            pool.share(taking.pool_size);
        }
        let ended = match ended {
            Err(TakeError::Wire(WireError::Left)) => Ok(()),
            ended => ended,
        };
        (taken, ended)
    }

    async fn take_all(
        &mut self,
        taking: &Taking<'_>,
        mut cancels: mpsc::Receiver<Blob>,
        taken: &mut usize,
    ) -> Result<(), TakeError> {
        self.ready().await?;
        loop {
            let (message, files) = tokio::select! {
                said = self.receiver.receive() => said?,
                Some(key) = cancels.recv() => {
                    self.sender.send(&Message::Cancel(key), &[]).await?;
                    continue;
                }
            };
            match message {
                Message::Places(places) => {
                    if let Some(pool) = taking.pool {
                        pool.share(places.min(taking.pool_size));
                    }
                }
                Message::Session(state) => {
                    let socket = files
                        .into_iter()
                        .next()
                        .ok_or(TakeError::Sockets { named: 1, given: 0 })?;
                    let entering = taking.clients.arrivals().enter(*state, socket);
                    let entered = timeout(ENTER_TIME_MAX, entering).await;
                    let entered = entered.unwrap_or_else(|_| Err("no thread takes it".to_owned()));
                    *taken += usize::from(self.go_on(entered).await?);
                }
                _ => return Err(TakeError::OutOfTurn),
            }
        }
    }

    /// Tells the old process whether a session can go on here, and waits for its word that it is to.
    async fn go_on(
        &mut self,
        entered: Result<oneshot::Sender<()>, String>,
    ) -> Result<bool, TakeError> {
        let begin = match entered {
            Ok(begin) => begin,
            Err(reason) => {
                self.sender.send(&Message::Refused(reason), &[]).await?;
                return Ok(false);
            }
        };
        self.sender.send(&Message::Taken, &[]).await?;
        match self.receiver.receive().await?.0 {
            // A session that has ended meanwhile does not begin.
            Message::Go => Ok(begin.send(()).is_ok()),
            _ => Err(TakeError::OutOfTurn),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::fd::AsFd;

    use super::super::SessionState;
    use super::*;

    #[tokio::test]
    async fn a_session_without_the_word_to_go_does_not_begin() {
        for goes in [false, true] {
            let (near, far) = UnixStream::pair().unwrap();
            let (mut says, mut hears) = wire::split(far);
            let (sender, receiver) = wire::split(near);
            let taker = Taker {
                sender,
                receiver,
                pool_size: None,
            };
            let clients = Registry::default();
            let taking = Taking {
                clients: &clients,
                pool: None,
                pool_size: 0,
            };
            let old = async move {
                assert_eq!(hears.receive().await.unwrap().0, Message::Ready);
                let session = Message::Session(Box::new(SessionState::example()));
                let (client, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
                says.send(&session, &[client.as_fd()]).await.unwrap();
                assert_eq!(hears.receive().await.unwrap().0, Message::Taken);
                if goes {
                    says.send(&Message::Go, &[]).await.unwrap();
                }
            };
            let thread = async {
                let arrival = clients.arrivals().next().await;
                arrival.welcome.accept().await
            };
            let (begins, (taken, ended), ()) = tokio::join!(thread, taker.take(&taking), old);
            assert_eq!((begins, taken), (goes, usize::from(goes)));
            ended.unwrap();
        }
    }

    #[tokio::test]
    async fn what_an_old_gate_should_not_say_is_an_error() {
        for (message, expected) in [
            (Message::Refused("no".to_owned()), "hands nothing over: no"),
            (Message::Taken, "out of turn"),
            (
                Message::Sockets {
                    sockets: vec![Listening::Tcp],
                    pool_size: None,
                },
                "names 1 sockets and gives 0",
            ),
        ] {
            let (near, far) = UnixStream::pair().unwrap();
            let (mut says, _hears) = wire::split(far);
            says.send(&message, &[]).await.unwrap();
            let error = Taker::ask(near, "postgres").await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
