//! How many requests may be tried at a second backend: a part of all requests, and a few in any case. So
//! backends that fail are not asked many times as often because they fail (finagle's retry budget; Google's
//! SRE book, chapter 22).
//!
//! What counts is the last ten seconds. Time is an argument.

/// Seconds that count.
const SECONDS: usize = 10;
const SECOND_NS: u64 = 1_000_000_000;

/// The most retries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryLimit {
    /// As a part of the requests.
    pub share: f64,
    /// In any case, in ten seconds.
    pub least: u32,
}

/// Requests and retries of the last seconds.
#[derive(Debug, Default)]
pub struct Retries {
    /// The last second that is counted.
    now_s: u64,
    counts: [Count; SECONDS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    requests: u32,
    retries: u32,
}

impl Default for RetryLimit {
    fn default() -> Self {
        Self {
            share: 0.2,
            least: 10,
        }
    }
}

impl Retries {
    /// Counts a request.
    pub fn request(&mut self, now_ns: u64) {
        let count = self.at(now_ns);
        count.requests = count.requests.saturating_add(1);
    }

    /// Counts a retry, if another one is allowed.
    pub fn may_retry(&mut self, now_ns: u64, limit: RetryLimit) -> bool {
        self.at(now_ns);
        let sum = |of: fn(&Count) -> u32| self.counts.iter().map(|one| u64::from(of(one))).sum();
        let (requests, retries): (u64, u64) = (sum(|one| one.requests), sum(|one| one.retries));
        let most = (requests as f64 * limit.share).max(f64::from(limit.least));
        let allowed = retries as f64 + 1.0 <= most;
        self.at(now_ns).retries += u32::from(allowed);
        allowed
    }

    /// The counts of this second. Those of seconds too long ago are forgotten.
    fn at(&mut self, now_ns: u64) -> &mut Count {
        let now_s = (now_ns / SECOND_NS).max(self.now_s);
        let passed = (now_s - self.now_s).min(SECONDS as u64);
        for second in 1..=passed {
            self.counts[((now_s - passed + second) % SECONDS as u64) as usize] = Count::default();
        }
        self.now_s = now_s;
        &mut self.counts[(now_s % SECONDS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_few_are_always_allowed_and_then_a_part() {
        let mut retries = Retries::default();
        let limit = RetryLimit::default();
        let allowed = |retries: &mut Retries, at_s: u64| {
            (0..1000)
                .filter(|_| retries.may_retry(at_s * SECOND_NS, limit))
                .count()
        };
        assert_eq!(
            (allowed(&mut retries, 5), allowed(&mut retries, 14)),
            (10, 0)
        );
        assert_eq!(allowed(&mut retries, 15), 10);
        for _ in 0..500 {
            retries.request(16 * SECOND_NS);
        }
        assert_eq!(allowed(&mut retries, 16), 90);
        assert_eq!(allowed(&mut retries, 1000), 10);
    }

    proptest! {
        #[test]
        fn never_more_than_the_limit_of_the_last_ten_seconds(
            steps in prop::collection::vec((0_u64..4, any::<bool>()), 1..600),
            share in 0.0_f64..1.0,
            least in 0_u32..5,
        ) {
            let limit = RetryLimit { share, least };
            let mut retries = Retries::default();
            let mut now_s = 100;
            let mut log: VecDeque<(u64, bool)> = VecDeque::new();
            for (second, retry) in steps {
                now_s += second / 3;
                log.retain(|(at_s, _)| at_s + SECONDS as u64 > now_s);
                let count = |retry| log.iter().filter(|(_, is)| *is == retry).count() as f64;
                let most = (count(false) * share).max(f64::from(least));
                let expected = count(true) + 1.0 <= most;
                if retry {
                    let allowed = retries.may_retry(now_s * SECOND_NS, limit);
                    prop_assert_eq!(allowed, expected);
                    if !allowed {
                        continue;
                    }
                } else {
                    retries.request(now_s * SECOND_NS);
                }
                log.push_back((now_s, retry));
            }
        }
    }
}
