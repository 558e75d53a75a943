//! Sessions of the old process that rest, and wait for their turn to go to the new one.
//!
//! A session asks at each of its turns whether a handover is under way ([`Departures::round`]): one load, as
//! nearly always none is.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::SessionState;

/// Sessions that wait for their turn. Further ones wait for a place here.
const OFFERS_MAX: usize = 64;

/// Why a session stays with the old process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stay {
    /// Something of it is under way, or its client is not let in yet.
    Busy = 0,
    /// Its client has TLS, whose state cannot be moved.
    Tls = 1,
    /// It keeps its connection to the backend.
    Pinned = 2,
    /// It has a connection to the backend of its own, without a pool.
    Unpooled = 3,
    /// There is too much to be known of it.
    TooLarge = 4,
    /// The new process does not take it.
    Refused = 5,
}

impl Stay {
    const ALL: [Self; 6] = [
        Self::Busy,
        Self::Tls,
        Self::Pinned,
        Self::Unpooled,
        Self::TooLarge,
        Self::Refused,
    ];

    /// The reason of this number.
    pub fn of(number: u8) -> Self {
        let found = Self::ALL.into_iter().find(|stay| *stay as u8 == number);
        found.unwrap_or(Self::Busy)
    }
}

impl fmt::Display for Stay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Busy => "at work",
            Self::Tls => "with TLS",
            Self::Pinned => "that keep their connection",
            Self::Unpooled => "without a pool",
            Self::TooLarge => "with too many prepared statements",
            Self::Refused => "that were refused",
        })
    }
}

/// How many stay, by the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stays([usize; Stay::ALL.len()]);

impl Stays {
    /// One more stays.
    pub fn count(&mut self, stay: Stay) {
        self.0[stay as usize] += 1;
    }

    /// How many stay for this reason.
    pub fn of(&self, stay: Stay) -> usize {
        self.0[stay as usize]
    }
}

impl fmt::Display for Stays {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = Stay::ALL
            .into_iter()
            .filter(|stay| self.of(*stay) > 0)
            .map(|stay| format!("{} {stay}", self.of(stay)));
        let some: Vec<_> = some.collect();
        match some.is_empty() {
            true => formatter.write_str("none"),
            false => formatter.write_str(&some.join(", ")),
        }
    }
}

/// A session that rests.
#[derive(Debug)]
pub struct Offer {
    /// What is known of it.
    pub state: SessionState,
    /// Its client's socket.
    pub socket: OwnedFd,
    verdict: oneshot::Sender<Result<(), Stay>>,
}

impl Offer {
    /// Tells it whether it has gone.
    pub fn decide(self, verdict: Result<(), Stay>) {
        // A session that has ended meanwhile needs to know nothing.
        let _ = self.verdict.send(verdict);
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Departures {
    /// The number of the handover that is under way; 0 for none.
    round: AtomicU64,
    rounds: AtomicU64,
    offers: Mutex<Option<mpsc::Sender<Offer>>>,
}

impl Departures {
    /// The number of the handover that is under way.
    pub fn round(&self) -> Option<u64> {
        Some(self.round.load(Ordering::Acquire)).filter(|round| *round > 0)
    }

    /// A handover begins. Sessions that rest come here until it ends.
    pub fn begin(&self) -> mpsc::Receiver<Offer> {
        let (offers, offered) = mpsc::channel(OFFERS_MAX);
        *self.offers.lock() = Some(offers);
        let round = self.rounds.fetch_add(1, Ordering::Relaxed) + 1;
        self.round.store(round, Ordering::Release);
        offered
    }

    /// It is over.
    pub fn end(&self) {
        self.round.store(0, Ordering::Release);
        *self.offers.lock() = None;
    }

    /// Offers a session that rests. It has gone if this is no error.
    ///
    /// # Errors
    /// Why it stays.
    pub async fn offer(&self, state: SessionState, socket: OwnedFd) -> Result<(), Stay> {
        let (verdict, decided) = oneshot::channel();
        let offers = self.offers.lock().clone();
        let offers = offers.ok_or(Stay::Busy)?;
        let offer = Offer {
            state,
            socket,
            verdict,
        };
        offers.send(offer).await.map_err(|_| Stay::Busy)?;
        drop(offers);
        decided.await.unwrap_or(Err(Stay::Busy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_told_by_the_reason() {
        let mut stays = Stays::default();
        assert_eq!(stays.to_string(), "none");
        for stay in [Stay::Tls, Stay::Pinned, Stay::Tls] {
            stays.count(stay);
        }
        assert_eq!(
            stays.to_string(),
            "2 with TLS, 1 that keep their connection"
        );
        assert!(Stay::ALL.iter().all(|stay| Stay::of(*stay as u8) == *stay));
    }
}
