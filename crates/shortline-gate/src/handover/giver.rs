//! The old process's part of a handover: it lets the sessions go that rest, one by one, and the places of its pool
//! as they become free.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::{self, timeout};

use super::wire::{self, WireError};
use super::{Listening, Message, Offer, Receiver, Sender, SessionState, Stay, Stays, VERSION};
use crate::pool::Shown;
use crate::relay::{ClientState, Registry};

/// The other process has so long to say what is expected of it.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// How often it is looked whether places have become free.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Why nothing is handed over, or no more.
#[derive(Debug, thiserror::Error)]
pub enum GiveError {
    /// The connection's end, or what is no message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It is silent.
    #[error("the new process has not answered for {} s", ANSWER_TIME_MAX.as_secs())]
    Silent,
    /// Another version of all this.
    #[error("the new process speaks version {0} of the handover, this one {VERSION}")]
    Version(u32),
    /// One that serves something else.
    #[error("the new process serves something else: {0:?}")]
    Kind(String),
    /// This one cannot now.
    #[error("{0}")]
    NotNow(&'static str),
    /// A message out of order.
    #[error("the new process says something out of turn")]
    OutOfTurn,
}

/// A handover that has begun.
#[derive(Debug)]
pub struct Giver {
    sender: Sender,
    receiver: Receiver,
    moved: Arc<AtomicUsize>,
}

/// What a handover acts on.
pub struct Given<'a> {
    /// The sessions.
    pub clients: &'a Registry,
    /// The pool, if there is one.
    pub pool: Option<&'a dyn Shown>,
}

impl Giver {
    /// Hears who comes. A process that does not fit is told so.
    ///
    /// # Errors
    /// [`GiveError`]
    pub async fn greet(stream: UnixStream, kind: &str) -> Result<Self, GiveError> {
        let (sender, receiver) = wire::split(stream);
        let mut giver = Self {
            sender,
            receiver,
            moved: Arc::default(),
        };
        let error = match giver.answer().await? {
            Message::Hello { version, .. } if version != VERSION => GiveError::Version(version),
            Message::Hello { kind: of, .. } if of != kind => GiveError::Kind(of),
            Message::Hello { .. } => return Ok(giver),
            _ => GiveError::OutOfTurn,
        };
        giver.refuse(&error).await;
        Err(error)
    }

    /// Tells the new process that it gets nothing.
    pub async fn refuse(&mut self, reason: &impl ToString) {
        let refused = Message::Refused(reason.to_string());
        // It may have gone, and is told nothing then.
        let _ = timeout(ANSWER_TIME_MAX, self.sender.send(&refused, &[])).await;
    }

    /// Gives the listening sockets away, and waits until the new process accepts clients.
    ///
    /// # Errors
    /// [`GiveError`]
    pub async fn give_sockets(
        &mut self,
        sockets: Vec<(Listening, BorrowedFd<'_>)>,
        pool_size: Option<usize>,
    ) -> Result<(), GiveError> {
        let (sockets, files): (Vec<_>, Vec<_>) = sockets.into_iter().unzip();
        let message = Message::Sockets { sockets, pool_size };
        self.send(&message, &files).await?;
        match self.answer().await? {
            Message::Ready => Ok(()),
            _ => Err(GiveError::OutOfTurn),
        }
    }

    /// Waits until the new process has ended.
    pub async fn left(&mut self) {
        // What it says meanwhile is of no use.
        while self.receiver.receive().await.is_ok() {}
    }

    /// How many sessions have gone, now and later.
    pub fn moved(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.moved)
    }

    /// Lets sessions go until none is left, or for ever.
    ///
    /// # Errors
    /// [`GiveError`]: the new process has died. What is left goes on here.
    pub async fn give(&mut self, given: &Given<'_>) -> Result<(), GiveError> {
        let mut offered = given.clients.begin_departures();
        let mut places = given.pool.map(|pool| Places::of(pool, given.clients));
        let given_away = self.give_all(given, &mut offered, places.as_mut()).await;
        if given_away.is_err() {
            given.clients.end_departures();
            if let Some(places) = &places {
                places.take_back();
            }
        }
        given_away
    }

    async fn give_all(
        &mut self,
        given: &Given<'_>,
        offered: &mut mpsc::Receiver<Offer>,
        mut places: Option<&mut Places<'_>>,
    ) -> Result<(), GiveError> {
        let mut look = time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(offer) = offered.recv() => self.transfer(offer, given).await?,
                said = self.receiver.receive() => match said?.0 {
                    Message::Cancel(key) => given.clients.cancels().arrive(key),
                    _ => return Err(GiveError::OutOfTurn),
                },
                _ = look.tick() => {
                    if let Some(free) = places.as_mut().and_then(|places| places.free(given.clients)) {
                        self.send(&Message::Places(free), &[]).await?;
                    }
                }
                () = given.clients.deserted() => return Ok(()),
            }
        }
    }

    async fn transfer(&mut self, offer: Offer, given: &Given<'_>) -> Result<(), GiveError> {
        let verdict = self.try_transfer(&offer.state, &offer.socket, given).await;
        match verdict {
            Ok(verdict) => {
                self.moved
                    .fetch_add(usize::from(verdict.is_ok()), Ordering::Relaxed);
                offer.decide(verdict);
                Ok(())
            }
            Err(error) => {
                offer.decide(Err(Stay::Busy));
                Err(error)
            }
        }
    }

    async fn try_transfer(
        &mut self,
        state: &SessionState,
        socket: &OwnedFd,
        given: &Given<'_>,
    ) -> Result<Result<(), Stay>, GiveError> {
        let session = Message::Session(Box::new(state.clone()));
        match self.send(&session, &[socket.as_fd()]).await {
            Err(GiveError::Wire(WireError::TooLarge(_))) => return Ok(Err(Stay::TooLarge)),
            sent => sent?,
        }
        loop {
            match self.answer().await? {
                Message::Taken => break,
                Message::Refused(reason) => {
                    tracing::debug!("a session is refused: {reason}");
                    return Ok(Err(Stay::Refused));
                }
                Message::Cancel(key) => given.clients.cancels().arrive(key),
                _ => return Err(GiveError::OutOfTurn),
            }
        }
        self.send(&Message::Go, &[]).await?;
        Ok(Ok(()))
    }

    async fn send(&mut self, message: &Message, files: &[BorrowedFd<'_>]) -> Result<(), GiveError> {
        let sent = timeout(ANSWER_TIME_MAX, self.sender.send(message, files)).await;
        Ok(sent.map_err(|_| GiveError::Silent)??)
    }

    async fn answer(&mut self) -> Result<Message, GiveError> {
        let said = timeout(ANSWER_TIME_MAX, self.receiver.receive()).await;
        Ok(said.map_err(|_| GiveError::Silent)??.0)
    }
}

/// How the pool's places are divided: those that are given away never come back while the new process lives.
struct Places<'a> {
    pool: &'a dyn Shown,
    /// Of both processes together.
    size: usize,
    /// What this one may have.
    kept: usize,
    given_away: usize,
    /// That were here at the beginning.
    sessions: usize,
}

impl<'a> Places<'a> {
    fn of(pool: &'a dyn Shown, clients: &Registry) -> Self {
        Self {
            sessions: clients.open(),
            size: pool.size(),
            kept: pool.size(),
            given_away: 0,
            pool,
        }
    }

    /// How many places the new process may have, if they have become more.
    fn free(&mut self, clients: &Registry) -> Option<usize> {
        let counts = self.pool.counts();
        let lent = counts.total.saturating_sub(counts.idle);
        let needed = lent.max(clients.at_work());
        let kept = share(self.size, needed, clients.open(), self.sessions);
        if kept < self.kept {
            self.kept = kept;
            self.pool.share(kept);
        }
        // Those that are closed when they are given back are still open.
        let free = self.size - self.pool.counts().total.max(self.kept).min(self.size);
        (free > self.given_away).then(|| {
            self.given_away = free;
            free
        })
    }

    fn take_back(&self) {
        self.pool.share(self.size);
    }
}

/// What the old process keeps of a pool of so many connections: what its sessions need now, and its part by their
/// number, as `before` of them were here at the beginning; one at least while it has any, but never all. A pool of one
/// connection goes over as soon as nothing needs it.
fn share(size: usize, needed: usize, sessions: usize, before: usize) -> usize {
    if size <= 1 {
        return needed.min(size);
    }
    let part = size * sessions.min(before) / before.max(1);
    let least = usize::from(sessions > 0);
    needed.max(part).max(least).min(size - 1)
}

impl Registry {
    /// Clients that have a unit which runs or waits.
    fn at_work(&self) -> usize {
        let clients = self.clients();
        let at_work = clients
            .iter()
            .filter(|view| view.state != ClientState::Idle);
        at_work.count()
    }

    /// Why those stay that are here.
    pub fn stays(&self) -> Stays {
        let mut stays = Stays::default();
        self.for_each(|handle| stays.count(handle.stay()));
        stays
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What becomes of a session whose new process answers this, or nothing.
    async fn offered(answers: Vec<Message>) -> (Result<(), Stay>, Result<(), GiveError>) {
        let (near, far) = UnixStream::pair().unwrap();
        let (sender, receiver) = wire::split(near);
        let mut giver = Giver {
            sender,
            receiver,
            moved: Arc::default(),
        };
        let clients = Registry::default();
        let registration = clients.register(1);
        let given = Given {
            clients: &clients,
            pool: None,
        };
        let new = async move {
            let (mut says, mut hears) = wire::split(far);
            for answer in answers {
                let (message, files) = hears.receive().await.unwrap();
                assert!(matches!(message, Message::Session(_)) && files.len() == 1);
                says.send(&answer, &[]).await.unwrap();
                if answer == Message::Taken {
                    assert_eq!(hears.receive().await.unwrap().0, Message::Go);
                }
            }
        };
        let session = async {
            let (_peer, client) = std::os::unix::net::UnixStream::pair().unwrap();
            let departures = registration.handle.departures();
            while departures.round().is_none() {
                tokio::task::yield_now().await;
            }
            let state = SessionState::example();
            departures.offer(state, client.into()).await
        };
        let (verdict, given, ()) = tokio::join!(session, giver.give(&given), new);
        (verdict, given)
    }

    #[tokio::test]
    async fn a_session_stays_unless_the_new_process_takes_it() {
        let (verdict, given) = offered(vec![Message::Taken]).await;
        assert!(
            verdict.is_ok() && given.is_err(),
            "the new one has left then"
        );
        let refused = Message::Refused("no".to_owned());
        assert_eq!(offered(vec![refused]).await.0, Err(Stay::Refused));
        assert_eq!(
            offered(vec![Message::Hello {
                version: 1,
                kind: String::new()
            }])
            .await
            .0,
            Err(Stay::Busy)
        );
    }

    #[test]
    fn a_share_is_what_is_needed_and_leaves_one_to_the_other() {
        for (size, needed, sessions, before, expected) in [
            (20, 7, 10, 100, 7),
            (20, 1, 50, 100, 10),
            (20, 20, 100, 100, 19),
            (20, 0, 3, 100, 1),
            (20, 0, 0, 100, 0),
            (20, 0, 1, 0, 1),
            (2, 5, 5, 5, 1),
            (1, 1, 5, 5, 1),
            (1, 0, 5, 5, 0),
        ] {
            let kept = share(size, needed, sessions, before);
            assert_eq!(kept, expected, "{size} {needed} {sessions} {before}");
        }
    }
}
