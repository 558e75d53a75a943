//! A session that waits for a connection. As soon as there is room it opens one. It takes whichever comes first: the
//! one that it opens, or one that comes back. What it does not take goes to the next.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::runtime;
use tokio::sync::mpsc;

use super::state::Lent;
use super::{Connections, Lending, Room};
use crate::pool::Backend;

/// A connection that is being opened.
type Opening<B> = Pin<Box<dyn Future<Output = Result<Lending<B>, <B as Backend>::Refusal>> + Send>>;

/// See the module's text.
pub(super) struct Turn<B: Backend> {
    pool: Arc<Connections<B>>,
    kind: Arc<B::Kind>,
    lent: mpsc::Receiver<Lent<B>>,
    room: Option<Room<B>>,
    opening: Option<Opening<B>>,
}

/// What it got.
pub(super) struct Got<B: Backend> {
    pub lending: Lending<B>,
    /// Whether it was opened for this session.
    pub is_new: bool,
}

impl<B: Backend> Turn<B> {
    /// Queues up for a connection of this kind. `None` if one is idle.
    pub fn begin(pool: &Arc<Connections<B>>, kind: &Arc<B::Kind>) -> Option<Self> {
        let lent = pool.state.lock().enter(pool, kind)?;
        Some(Self {
            pool: Arc::clone(pool),
            kind: Arc::clone(kind),
            lent,
            room: None,
            opening: None,
        })
    }

    /// Waits for the connection.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn lent(mut self, login: &B::Login) -> Result<Got<B>, B::Refusal> {
        loop {
            let pool = Arc::clone(&self.pool);
            tokio::select! {
                biased;
                lent = self.lent.recv() => match lent {
                    Some(Lent::Ready(held, stream)) => {
                        return Ok(Got { lending: (held, stream), is_new: false });
                    }
                    Some(Lent::Room(room)) => self.room = Some(room),
                    None => unreachable!("a session leaves the queue only with a connection"),
                },
                turn = pool.turn_to_open(), if self.room.is_some() => {
                    if let Some(room) = self.room.take() {
                        let (kind, login) = (Arc::clone(&self.kind), login.clone());
                        self.opening = Some(Box::pin(async move {
                            pool.open(room, turn, &kind, &login).await
                        }));
                    }
                }
                opened = poll_opening(&mut self.opening) => {
                    self.opening = None;
                    return opened.map(|lending| Got { lending, is_new: true });
                }
            }
        }
    }
}

/// Ready when the connection is open. Never, if none is being opened.
async fn poll_opening<B: Backend>(
    opening: &mut Option<Opening<B>>,
) -> Result<Lending<B>, B::Refusal> {
    poll_fn(|context| match opening {
        Some(opening) => opening.as_mut().poll(context),
        None => Poll::Pending,
    })
    .await
}

impl<B: Backend> Drop for Turn<B> {
    fn drop(&mut self) {
        self.lent.close();
        while let Ok(lent) = self.lent.try_recv() {
            match lent {
                Lent::Ready(held, stream) => held.give_back(stream),
                Lent::Room(room) => drop(room),
            }
        }
        // The backend has begun to work for it. Broken off, the next session would have to begin anew.
        let opening = self.opening.take();
        if let (Some(opening), Ok(runtime)) = (opening, runtime::Handle::try_current()) {
            runtime.spawn(async move {
                match opening.await {
                    Ok((held, stream)) => held.give_back(stream),
                    Err(error) => {
                        tracing::debug!("no connection for a session that has gone: {error}")
                    }
                }
            });
        }
    }
}
