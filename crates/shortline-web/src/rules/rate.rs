//! How many requests a client may make in a time (GCRA, by `governor`): as many as the burst at once, and further ones at the
//! rate. Beyond it the answer is 429 with the seconds after which the next one is answered (RFC 6585, 4).
//!
//! A client is the one that has a share of the uplink: an address, or the network of 64 bits of an IPv6 address; or whoever
//! sends a value of a field. Who sends no such field counts by address. The table is bounded: the clients that were not seen for
//! longest are forgotten, and begin anew.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
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
    quota: Quota,
    /// Hashes values with a random key, so that nobody can choose whose quota to use up.
    hasher: RandomState,
    clients: Cache<Key, Arc<One>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Client(u128),
    Value(u64),
}

type One = RateLimiter<NotKeyed, InMemoryState, OurClock, NoOpMiddleware<Nanos>>;

/// The clock of this program, or of its simulated world.
#[derive(Clone, Debug)]
struct OurClock;

impl Clock for OurClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        clock::now_ns().into()
    }
}

impl PartialEq for Limiter {
    fn eq(&self, other: &Self) -> bool {
        self.0.rate == other.0.rate
    }
}

impl Limiter {
    /// A limit that nobody has used. `None`: its period is zero.
    pub fn new(rate: Rate) -> Option<Self> {
        let quota = Quota::with_period(rate.period)?.allow_burst(rate.burst);
        Some(Self(Arc::new(Table {
            rate,
            quota,
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
        plan.headers.insert(RETRY_AFTER, seconds.max(1).into());
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
        let new = || {
            Ok(Arc::new(RateLimiter::direct_with_clock(
                self.quota, OurClock,
            )))
        };
        let Ok::<_, Infallible>(one) = self.clients.get_or_insert_with(&key, new);
        let refused = one.check().err()?;
        Some(refused.wait_time_from(OurClock.now()))
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
    fn a_limit_without_time_is_none() {
        let rate = Rate {
            period: Duration::ZERO,
            burst: NonZeroU32::MIN,
            by: None,
        };
        assert!(Limiter::new(rate).is_none());
    }
}
