//! Certificates on demand: a client's handshake asks for a name, and waits until there is a certificate for it or none will be.
//!
//! Anybody can think up names, so everything is bounded. A name must be allowed by its site, and by whoever is asked if somebody is. There
//! are so many names at most, and so many orders a minute. What was refused, or has failed, is refused again for five minutes. A name
//! whose order fails leaves nothing behind. A name that nobody has asked for in a month is not renewed.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::sign::CertifiedKey;
use shortline_base::throttle::Throttle;
use shortline_tls::names::Pattern;
use tokio::sync::{Notify, Semaphore};

use super::{Keeper, Shared};
use crate::authority::now_s;
use crate::client;

/// The most questions under way whether a name is allowed.
const QUESTIONS_MAX: usize = 16;
/// For how long a name stays refused.
const REFUSED_S: u64 = 300;
/// The most refused names that are remembered.
const REFUSED_MAX: usize = 10_000;
const MINUTE_S: u64 = 60;

/// What is known of names that were asked for.
pub struct Demand {
    tls: Arc<ClientConfig>,
    questions: Semaphore,
    /// Until when each is refused.
    refused: Mutex<HashMap<String, u64>>,
    /// When the last orders were begun.
    orders: Mutex<VecDeque<u64>>,
    /// An order has ended.
    ended: Notify,
    lines: Mutex<Throttle>,
}

impl fmt::Debug for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Demand").finish_non_exhaustive()
    }
}

/// Why there will be no certificate.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("{names_max} names have one already (`on-demand-names-max` of [acme])")]
    Full { names_max: usize },
    #[error("there were {most} orders in the last minute (`on-demand-orders-max` of [acme])")]
    TooOften { most: usize },
    #[error("{url} answers {status}")]
    NotAllowed { url: String, status: u16 },
    #[error("{url}: {problem}")]
    NoAnswer { url: String, problem: String },
}

impl Demand {
    /// Nothing was asked for yet. `tls` is how whoever knows the names is asked.
    pub fn new(tls: Arc<ClientConfig>) -> Self {
        Self {
            tls,
            questions: Semaphore::new(QUESTIONS_MAX),
            refused: Mutex::default(),
            orders: Mutex::default(),
            ended: Notify::new(),
            lines: Mutex::default(),
        }
    }

    /// An order has ended: whoever waits looks again.
    pub fn settled(&self) {
        self.ended.notify_waiters();
    }

    /// There is no certificate for this name, and none for a while.
    pub fn refuse(&self, name: &str, now_s: u64) {
        let mut refused = self.refused.lock();
        if refused.len() >= REFUSED_MAX {
            refused.retain(|_, until_s| *until_s > now_s);
        }
        if refused.len() < REFUSED_MAX {
            refused.insert(name.to_owned(), now_s + REFUSED_S);
        }
        drop(refused);
        self.settled();
    }

    fn is_refused(&self, name: &str, now_s: u64) -> bool {
        let refused = self.refused.lock();
        refused.get(name).is_some_and(|until_s| *until_s > now_s)
    }

    /// Counts an order, unless there were so many in the last minute.
    fn count_order(&self, now_s: u64, most: usize) -> bool {
        let mut orders = self.orders.lock();
        while orders
            .front()
            .is_some_and(|begun_s| begun_s + MINUTE_S <= now_s)
        {
            orders.pop_front();
        }
        let has_room = orders.len() < most;
        if has_room {
            orders.push_back(now_s);
        }
        has_room
    }
}

impl Keeper {
    /// The certificate of a name that a client has asked for.
    pub fn demanded(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let key = exact(name)?.to_string();
        let mut names = self.shared.names.lock();
        let entry = names.get_mut(&key)?;
        if let Some(asked_s) = &mut entry.asked_s {
            *asked_s = now_s();
        }
        entry.certificate.current()
    }

    /// What a handshake for this name waits for. `None`: nothing, as there is a certificate or will be none.
    pub fn demand(&self, name: &str) -> Option<impl Future<Output = ()> + Send + use<>> {
        let name = exact(name)?;
        let key = name.to_string();
        let known = self
            .shared
            .names
            .lock()
            .get(&key)
            .map(|entry| entry.certificate.is_there());
        if known == Some(true) || self.shared.demand.is_refused(&key, now_s()) {
            return None;
        }
        let shared = Arc::clone(&self.shared);
        Some(async move { shared.obtain(&name, &key).await })
    }
}

impl Shared {
    /// Ends when there is a certificate, or when there will be none. Whoever waits has its own limit.
    async fn obtain(&self, name: &Pattern, key: &str) {
        if let Err(refusal) = self.admit(name, key).await {
            self.demand.refuse(key, now_s());
            if let Some(untold) = self.demand.lines.lock().allow(tokio::time::Instant::now()) {
                tracing::warn!(untold, "certificate for {key}: not on demand: {refusal}");
            }
            return;
        }
        loop {
            let ended = self.demand.ended.notified();
            tokio::pin!(ended);
            // From here on no end is missed.
            ended.as_mut().enable();
            let is_there = self
                .names
                .lock()
                .get(key)
                .map(|entry| entry.certificate.is_there());
            if is_there != Some(false) {
                return;
            }
            ended.await;
        }
    }

    /// Lets the name have a certificate, if it may.
    async fn admit(&self, name: &Pattern, key: &str) -> Result<(), Refusal> {
        if self.names.lock().contains_key(key) {
            return Ok(());
        }
        self.ask(key).await?;
        let mut entry = self.read(name);
        entry.asked_s = Some(now_s());
        let bounds = &self.config.on_demand;
        let mut names = self.names.lock();
        if names.contains_key(key) {
            return Ok(());
        }
        let demanded = names.values().filter(|entry| entry.asked_s.is_some());
        if demanded.count() >= bounds.names_max {
            let names_max = bounds.names_max;
            return Err(Refusal::Full { names_max });
        }
        let most = bounds.orders_per_minute_max;
        if !entry.certificate.is_there() && !self.demand.count_order(now_s(), most) {
            return Err(Refusal::TooOften { most });
        }
        names.insert(key.to_owned(), entry);
        drop(names);
        self.changed.notify_one();
        Ok(())
    }

    /// Asks whoever knows the names, if there is somebody.
    async fn ask(&self, key: &str) -> Result<(), Refusal> {
        let Some(ask) = &self.config.on_demand.ask else {
            return Ok(());
        };
        // Names have no letter that a query could not have.
        let sign = if ask.contains('?') { '&' } else { '?' };
        let url = format!("{ask}{sign}domain={key}");
        let _place = self.demand.questions.acquire().await;
        match client::status(&self.demand.tls, &url).await {
            Ok(status) if status.as_u16() == 200 => Ok(()),
            Ok(status) => Err(Refusal::NotAllowed {
                url,
                status: status.as_u16(),
            }),
            Err(problem) => Err(Refusal::NoAnswer {
                url,
                problem: problem.to_string(),
            }),
        }
    }
}

/// A name as it is kept.
fn exact(name: &str) -> Option<Pattern> {
    let name = name.parse().ok()?;
    matches!(name, Pattern::Exact(_)).then_some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn demand() -> Demand {
        let path = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
        std::fs::write(path.path().join("a.crt"), made.cert.pem()).unwrap();
        let trust = shortline_tls::Trust::File(path.path().join("a.crt"));
        Demand::new(Arc::new(shortline_tls::client_config(&trust, &[]).unwrap()))
    }

    #[test]
    fn no_minute_has_more_orders_than_allowed() {
        let demand = demand();
        let begun: Vec<u64> = (1000..1300)
            .filter(|now_s| demand.count_order(*now_s, 10))
            .collect();
        for window in begun.windows(11) {
            assert!(window[10] - window[0] >= MINUTE_S, "{window:?}");
        }
        assert_eq!(begun.len(), 50);
        assert!(!demand.count_order(2000, 0));
    }

    #[test]
    fn what_is_refused_is_refused_for_a_while_and_not_all_is_remembered() {
        let demand = demand();
        for number in 0..2 * REFUSED_MAX {
            demand.refuse(&number.to_string(), 1000);
        }
        assert_eq!(demand.refused.lock().len(), REFUSED_MAX);
        assert!(demand.is_refused("0", 1000) && !demand.is_refused("0", 1000 + REFUSED_S));
        demand.refuse("again", 1000 + REFUSED_S);
        assert_eq!(demand.refused.lock().len(), 1);
    }
}
