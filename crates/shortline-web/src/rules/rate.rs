//! How many requests a client may make in a time: as many as the burst at once, and further ones at the rate. Beyond it the
//! answer is 429 with the seconds after which the next one is answered (RFC 6585, 4).
//!
//! A client is the one that has a share of the uplink: an address, or the network of 64 bits of an IPv6 address; or whoever
//! sends a value of a field. Who sends no such field counts by address. The table is bounded: the clients that were not seen for
//! longest are forgotten, and begin anew.
//!
//! It is the generic cell rate algorithm (ITU-T I.371, A.1, as virtual scheduling): a client has the time at which it will have used
//! up all that it was given, and may be ahead of the clock by the periods of a burst but one.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, RETRY_AFTER};
use http::{Method, StatusCode};
use quick_cache::sync::Cache;
use shortline_base::clock;

use crate::files::Plan;

/// The most clients that are remembered.
const CLIENTS_MAX: usize = 1 << 16;

/// A limit as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The time of one request.
    pub period: Duration,
    /// How many may come at once.
    pub burst: NonZeroU32,
    /// The field by whose value clients are told apart. `None`: by their addresses.
    pub by: Option<HeaderName>,
}

/// A limit in force.
#[derive(Clone, Debug)]
pub struct Limiter(Arc<Table>);

#[derive(Debug)]
struct Table {
    rate: Rate,
    period_ns: u64,
    /// How far ahead of the clock a client may be when it asks.
    ahead_ns_max: u64,
    /// Hashes values with a random key, so that nobody can choose whose quota to use up.
    hasher: RandomState,
    clients: Cache<Key, Arc<Client>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Client(u128),
    Value(u64),
}

/// When a client will have used up what it was given, on the clock of this program or of its simulated world.
#[derive(Debug, Default)]
struct Client(AtomicU64);

impl PartialEq for Limiter {
    fn eq(&self, other: &Self) -> bool {
        self.0.rate == other.0.rate
    }
}

impl Limiter {
    /// A limit that nobody has used. `None`: its period is zero.
    pub fn new(rate: Rate) -> Option<Self> {
        let period_ns = u64::try_from(rate.period.as_nanos()).unwrap_or(u64::MAX);
        if period_ns == 0 {
            return None;
        }
        let ahead_ns_max = period_ns.saturating_mul(u64::from(rate.burst.get()) - 1);
        Some(Self(Arc::new(Table {
            rate,
            period_ns,
            ahead_ns_max,
            hasher: RandomState::new(),
            clients: Cache::new(CLIENTS_MAX),
        })))
    }

    /// Counts a request of a client, by its name in the order. `Some`: it is one too many.
    pub fn count(&self, client: u128, method: &Method, headers: &HeaderMap) -> Option<Plan> {
        let left = self.0.count(client, headers)?;
        // One second is the least that can be said.
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        let mut plan = Plan::text(StatusCode::TOO_MANY_REQUESTS, method);
        let seconds = seconds.max(1).into();
        plan.headers.change().insert(RETRY_AFTER, seconds);
        Some(plan)
    }
}

impl Table {
    /// The time until the client may ask. `None`: it may.
    fn count(&self, client: u128, headers: &HeaderMap) -> Option<Duration> {
        let value = self.rate.by.as_ref().and_then(|name| headers.get(name));
        let key = match value {
            Some(value) => Key::Value(self.hasher.hash_one(value.as_bytes())),
            None => Key::Client(client),
        };
        let new = || Ok(Arc::new(Client::default()));
        let Ok::<_, Infallible>(client) = self.clients.get_or_insert_with(&key, new);
        self.take(&client, clock::now_ns())
    }

    /// Takes a period from a client, unless that is too far ahead: then the time until it no longer is.
    fn take(&self, client: &Client, now_ns: u64) -> Option<Duration> {
        let latest_ns = now_ns.saturating_add(self.ahead_ns_max);
        let taken = |until_ns: u64| {
            (until_ns <= latest_ns).then(|| until_ns.max(now_ns).saturating_add(self.period_ns))
        };
        let refused = client
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        refused
            .err()
            .map(|until_ns| Duration::from_nanos(until_ns - latest_ns))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;

    use super::*;

    fn limiter(by: Option<HeaderName>) -> Limiter {
        let hour = Duration::from_secs(3600);
        Limiter::new(Rate {
            period: hour,
            burst: NonZeroU32::new(2).unwrap(),
            by,
        })
        .unwrap()
    }

    fn status(limiter: &Limiter, client: u128, headers: &HeaderMap) -> Option<(u16, u64)> {
        let plan = limiter.count(client, &Method::GET, headers)?;
        let after = plan.headers[RETRY_AFTER].to_str().unwrap().parse().unwrap();
        Some((plan.status.as_u16(), after))
    }

    #[test]
    fn a_burst_and_then_the_rate_for_each_client() {
        let (limiter, none) = (limiter(None), HeaderMap::new());
        assert_eq!(status(&limiter, 1, &none), None);
        assert_eq!(status(&limiter, 1, &none), None);
        let (code, after) = status(&limiter, 1, &none).unwrap();
        // An hour, but for what this test took.
        assert!(code == 429 && (1..=3600).contains(&after), "{after}");
        assert_eq!(status(&limiter, 2, &none), None);
    }

    #[test]
    fn a_field_tells_clients_apart_and_without_it_their_addresses_do() {
        let name = HeaderName::from_static("x-key");
        let limiter = limiter(Some(name.clone()));
        let with = |value| {
            let mut headers = HeaderMap::new();
            headers.insert(name.clone(), HeaderValue::from_static(value));
            headers
        };
        for client in 0..2 {
            assert_eq!(status(&limiter, client, &with("a")), None);
        }
        assert!(status(&limiter, 3, &with("a")).is_some());
        assert_eq!(status(&limiter, 3, &with("b")), None);
        assert_eq!(status(&limiter, 3, &HeaderMap::new()), None);
    }

    #[test]
    fn a_client_gains_a_request_with_each_period_up_to_the_burst() {
        let second_ns = 1_000_000_000;
        let limiter = Limiter::new(Rate {
            period: Duration::from_secs(1),
            burst: NonZeroU32::new(3).unwrap(),
            by: None,
        });
        let (limiter, client) = (limiter.unwrap(), Client::default());
        let take = |at_s: f64| limiter.0.take(&client, (at_s * second_ns as f64) as u64);
        let begin_s = 100.0;
        for _ in 0..3 {
            assert_eq!(take(begin_s), None);
        }
        assert_eq!(take(begin_s + 0.25), Some(Duration::from_millis(750)));
        assert_eq!(take(begin_s + 1.0), None);
        assert_eq!(take(begin_s + 1.0), Some(Duration::from_secs(1)));
        // Who rests for long has the burst again, and no more.
        let allowed = (0..9).filter(|_| take(begin_s + 500.0).is_none());
        assert_eq!(allowed.count(), 3);
    }

    #[test]
    fn a_limit_without_time_is_none() {
        let rate = Rate {
            period: Duration::ZERO,
            burst: NonZeroU32::MIN,
            by: None,
        };
        assert!(Limiter::new(rate).is_none());
    }
}
