//! Lending, in virtual time, with a backend that hangs or ends connections as it is told.

#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU32;

use shortline_base::world;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::pool::{Names, PoolMode};
use crate::relay::Socket;

/// Opens connections in a millisecond. While `hangs` is above 0, that many logins are never answered.
#[derive(Debug, Default)]
struct Fake {
    hangs: AtomicU32,
    opened: AtomicU32,
    /// The other ends.
    ends: Mutex<Vec<DuplexStream>>,
}

#[derive(Debug)]
struct Shared(Arc<Fake>);

impl Backend for Shared {
    type Kind = &'static str;
    type Login = ();
    type Known = ();
    type Refusal = Infallible;

    async fn open(&self, _: &&'static str, (): &()) -> Result<((), Stream), Infallible> {
        let more = |hangs: u32| hangs.checked_sub(1);
        let hangs = self
            .0
            .hangs
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        if hangs.is_ok() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.0.opened.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = duplex(64);
        self.0.ends.lock().push(theirs);
        let ours: Box<dyn world::Stream> = Box::new(ours);
        Ok(((), Stream::Plain(Socket::from(ours))))
    }

    fn is_unreachable(refusal: &Infallible) -> bool {
        match *refusal {}
    }

    fn names(&self, kind: &&'static str, (): &()) -> Names {
        Names {
            user: (*kind).to_owned(),
            database: String::new(),
            process: None,
        }
    }
}

fn pool(size: usize) -> (Arc<Connections<Shared>>, Arc<Fake>) {
    let fake = Arc::<Fake>::default();
    let limits = PoolLimits {
        mode: PoolMode::Transaction,
        size: NonZeroUsize::new(size).unwrap(),
        idle_time_max: Duration::from_secs(60),
        wait_max: Duration::from_secs(5),
        statements_max: 10,
    };
    let backend = Shared(Arc::clone(&fake));
    (Connections::new(backend, 0, &limits, &Arc::default()), fake)
}

type Lent = Result<Lending<Shared>, AcquireError<Infallible>>;

/// Acquires in a task of its own.
fn acquire(pool: &Arc<Connections<Shared>>, kind: &'static str) -> tokio::task::JoinHandle<Lent> {
    tokio::spawn(Arc::clone(pool).acquire(Arc::new(kind), ()))
}

async fn ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_login_hangs_takes_a_connection_that_comes_back() {
    let (pool, fake) = pool(2);
    let (held, stream) = acquire(&pool, "a").await.unwrap().unwrap();
    ms(10).await;
    let ahead = pool.try_take(&Arc::new("a")).unwrap();
    pool.resize(3);
    fake.hangs.store(9, Ordering::Relaxed);
    let waits = acquire(&pool, "a");
    ms(100).await;
    assert_eq!(pool.counts().opening, 1);
    held.give_back(stream);
    let (held, stream) = waits.await.unwrap().unwrap();
    assert_eq!(pool.counts().opening, 0);
    assert_eq!(fake.opened.load(Ordering::Relaxed), 2);
    held.give_back(stream);
    drop(ahead);
}

#[tokio::test(start_paused = true)]
async fn those_behind_logins_that_hang_take_what_comes_back_in_order() {
    let (pool, fake) = pool(2);
    let (held, stream) = acquire(&pool, "a").await.unwrap().unwrap();
    ms(10).await;
    let ahead = pool.try_take(&Arc::new("a")).unwrap();
    pool.resize(5);
    fake.hangs.store(9, Ordering::Relaxed);
    // Two logins hang, and the third has room and no turn.
    let waiting: Vec<_> = (0..3).map(|_| acquire(&pool, "a")).collect();
    ms(100).await;
    let counts = pool.counts();
    assert_eq!((counts.total, counts.opening, counts.waiting), (5, 3, 0));
    held.give_back(stream);
    let mut lent = Vec::new();
    for waits in waiting {
        // Each gives back what it got.
        let (held, stream) = waits.await.unwrap().unwrap();
        held.give_back(stream);
        lent.push(tokio::time::Instant::now());
    }
    assert_eq!(lent.first(), lent.last(), "nobody has waited for a login");
    drop(ahead);
}

#[tokio::test(start_paused = true)]
async fn what_was_opened_for_a_session_that_left_goes_to_the_next() {
    let (pool, fake) = pool(1);
    let leaves = acquire(&pool, "a");
    tokio::task::yield_now().await;
    let next = acquire(&pool, "a");
    tokio::task::yield_now().await;
    assert_eq!((pool.counts().opening, pool.counts().waiting), (1, 1));
    leaves.abort();
    let (held, stream) = next.await.unwrap().unwrap();
    assert_eq!(fake.opened.load(Ordering::Relaxed), 1);
    held.give_back(stream);
    assert_eq!((pool.counts().total, pool.counts().idle), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_ended_is_lent_to_nobody() {
    let (pool, fake) = pool(1);
    let (held, stream) = acquire(&pool, "a").await.unwrap().unwrap();
    let waits = acquire(&pool, "a");
    tokio::task::yield_now().await;
    // It ends right behind its last answer.
    let mut end = fake.ends.lock().remove(0);
    end.shutdown().await.unwrap();
    held.give_back(stream);
    let (held, stream) = waits.await.unwrap().unwrap();
    assert_eq!(fake.opened.load(Ordering::Relaxed), 2);
    held.give_back(stream);
    // An idle one, too, and the sweep closes it.
    drop(fake.ends.lock().remove(0));
    assert_eq!(pool.counts().idle, 1);
    pool.sweep();
    assert_eq!((pool.counts().total, pool.counts().idle), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_closes_the_one_idle_longest_for_another_kind() {
    let (pool, _fake) = pool(2);
    let first = acquire(&pool, "a").await.unwrap().unwrap();
    let second = acquire(&pool, "b").await.unwrap().unwrap();
    first.0.give_back(first.1);
    ms(10).await;
    second.0.give_back(second.1);
    let third = acquire(&pool, "c").await.unwrap().unwrap();
    assert!(pool.try_take(&Arc::new("a")).is_none());
    let second = pool.try_take(&Arc::new("b")).unwrap();
    // It waits for room, and gets that of the next that comes back, of whatever kind.
    let waits = acquire(&pool, "a");
    tokio::task::yield_now().await;
    assert_eq!(pool.counts().waiting, 1);
    third.0.give_back(third.1);
    let fourth = waits.await.unwrap().unwrap();
    drop((second, fourth));
    assert_eq!(pool.counts().total, 0);
}

#[tokio::test(start_paused = true)]
async fn a_smaller_pool_closes_what_is_idle_and_what_comes_back() {
    let (pool, _fake) = pool(3);
    let lent = [acquire(&pool, "a").await, acquire(&pool, "b").await];
    let [first, second] = lent.map(|lent| lent.unwrap().unwrap());
    ms(10).await;
    pool.resize(1);
    assert!(pool.counts().total >= 2);
    first.0.give_back(first.1);
    assert_eq!(pool.counts().total, 1);
    second.0.give_back(second.1);
    assert_eq!((pool.counts().total, pool.counts().idle), (1, 1));
    let waits = acquire(&pool, "c");
    let lent = waits.await.unwrap().unwrap();
    let busy = acquire(&pool, "c").await.unwrap();
    assert!(matches!(busy, Err(AcquireError::Busy { size: 1, .. })));
    drop(lent);
}
