//! The keeper's thread: finds what is due, does some of it at a time, and sleeps.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinSet;

use super::Shared;
use crate::authority::{Failure, now_s};
use crate::schedule::Due;
use crate::store::Lock;

/// The most orders under way.
const ORDERS_MAX: usize = 4;
/// How often the folder is looked at for what other processes have written.
const LOOK_EVERY_S: u64 = 60;
/// How often to try for the lock that another process holds.
const LOCK_EVERY_S: u64 = 3;

/// Runs until it is to end. Orders under way end with it.
pub async fn run(shared: Arc<Shared>, ends: Arc<AtomicBool>) {
    let mut orders = JoinSet::new();
    let mut lock: Option<Lock> = None;
    while !ends.load(Ordering::Relaxed) {
        let now_s = now_s();
        shared.tell_late(now_s);
        let (due, next_s) = shared.due(now_s, ORDERS_MAX.saturating_sub(orders.len()));
        let mut again_s = next_s.min(now_s + LOOK_EVERY_S);
        if due.is_empty() && orders.is_empty() {
            lock = None;
            shared.look();
        }
        if !due.is_empty() && lock.is_none() {
            lock = shared.lock();
            if lock.is_some() {
                // Another process may just have done what is due.
                shared.look();
                continue;
            }
            again_s = now_s + LOCK_EVERY_S;
        }
        if lock.is_some() {
            for (name, what) in due {
                if let Some(entry) = shared.names.lock().get_mut(&name) {
                    entry.is_taken = true;
                }
                orders.spawn(work(Arc::clone(&shared), name, what));
            }
        }
        let wait = Duration::from_secs(again_s.saturating_sub(now_s).max(1));
        tokio::select! {
            Some(_) = orders.join_next() => {}
            () = shared.changed.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    let mut names = shared.names.lock();
    names.values_mut().for_each(|entry| entry.is_taken = false);
}

/// Does what is due for one name. Whatever happens in there ends here.
async fn work(shared: Arc<Shared>, name: String, what: Due) {
    let worked = AssertUnwindSafe(attempt(&shared, &name, what)).catch_unwind();
    let worked = worked.await.unwrap_or_else(|_| {
        let problem = "the order ended by a fault of this program";
        Err(Failure::of_name(problem.to_owned()))
    });
    if let Err(failure) = worked {
        shared.failed(&name, failure);
    }
    if let Some(entry) = shared.names.lock().get_mut(&name) {
        entry.is_taken = false;
    }
}

async fn attempt(shared: &Shared, name: &str, what: Due) -> Result<(), Failure> {
    let (pattern, attempts, leaf, before) = {
        let names = shared.names.lock();
        let Some(entry) = names.get(name) else {
            return Ok(());
        };
        let attempts = entry.plan.backoff().failures;
        (
            entry.name.clone(),
            attempts,
            entry.leaf.clone(),
            entry.certificate.current(),
        )
    };
    let identifier = leaf.and_then(|leaf| leaf.identifier);
    match what {
        Due::At(_) => {}
        Due::Advice => {
            let advice = match &identifier {
                Some(identifier) => shared.authority.advice(identifier).await,
                None => Default::default(),
            };
            if let Some(entry) = shared.names.lock().get_mut(name) {
                entry.plan.advised(now_s(), advice.window, advice.again_s);
            }
        }
        Due::Order => {
            let challenges = &shared.challenges;
            let got = shared
                .authority
                .order(challenges, &pattern, attempts, identifier)
                .await?;
            shared.got(name, got);
            if let Some(before) = before.filter(|_| shared.config.revoke_replaced) {
                match shared.authority.revoke(&before.cert[0]).await {
                    Ok(()) => tracing::info!("certificate for {name}: the one before is revoked"),
                    Err(failure) => {
                        tracing::warn!(
                            "certificate for {name}: the one before is not revoked: {}",
                            failure.reason
                        );
                    }
                }
            }
        }
    }
    Ok(())
}

impl Shared {
    /// Looks at the folder for what other processes have written.
    fn look(&self) {
        let now_s = now_s();
        let mut names = self.names.lock();
        names.retain(|_, entry| entry.is_taken || !entry.is_forgotten(now_s));
        for (key, entry) in &mut *names {
            if !entry.is_taken {
                self.read_again(key, entry);
            }
        }
    }

    /// The lock, if no other process has it.
    fn lock(&self) -> Option<Lock> {
        match self.store.lock() {
            Ok(lock) => {
                if let Some(lock) = &lock {
                    self.store.clear_challenges(lock);
                }
                lock
            }
            Err(error) => {
                tracing::warn!("acme: the lock of the state folder: {error}");
                None
            }
        }
    }
}
