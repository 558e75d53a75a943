//! How long packets wait on the way to each client, beside what its path takes when it is empty.
//!
//! The delay of a path is its round trip less the smallest one seen there lately, as BBR takes it
//! (draft-ietf-ccwg-bbr, `BBR.min_rtt`). A path is known by its client's address, an IPv6 one by its /64, so
//! that what one connection has learnt serves the next:
//! most connections of a web server see a single round trip.
//!
//! A minimum is kept for one to two [`WINDOW_NS`]: routes change. No I/O and no clock.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// A minimum is forgotten between one and two of these after it was seen.
const WINDOW_NS: u64 = 30_000_000_000;

/// The smallest round trips of the paths; a bounded table.
pub struct Paths {
    paths_max: usize,
    round_trips: HashMap<IpAddr, RoundTrip>,
}

struct RoundTrip {
    ns_min: u64,
    ns_min_before: u64,
    window_from_ns: u64,
}

impl Paths {
    /// A table of `paths_max` paths; further ones are not told apart from empty ones until others
    /// are forgotten.
    pub fn new(paths_max: usize) -> Self {
        Self {
            paths_max,
            round_trips: HashMap::new(),
        }
    }

    /// How long packets to `client` wait now, in nanoseconds, where a round trip is `rtt_ns` and the
    /// connection's smallest was `rtt_ns_min`.
    pub fn delay_ns(&mut self, client: IpAddr, rtt_ns: u64, rtt_ns_min: u64, now_ns: u64) -> u64 {
        let path = path_of(client);
        if self.round_trips.len() >= self.paths_max && !self.round_trips.contains_key(&path) {
            self.forget(now_ns);
            if self.round_trips.len() >= self.paths_max {
                return rtt_ns.saturating_sub(rtt_ns_min);
            }
        }
        let kept = self.round_trips.entry(path).or_insert(RoundTrip {
            ns_min: rtt_ns_min,
            ns_min_before: rtt_ns_min,
            window_from_ns: now_ns,
        });
        rtt_ns.saturating_sub(kept.update(rtt_ns_min.min(rtt_ns), now_ns))
    }

    /// Paths that nobody used for two windows are forgotten.
    fn forget(&mut self, now_ns: u64) {
        self.round_trips
            .retain(|_, kept| now_ns.saturating_sub(kept.window_from_ns) < 2 * WINDOW_NS);
    }
}

impl RoundTrip {
    fn update(&mut self, seen_ns: u64, now_ns: u64) -> u64 {
        if now_ns.saturating_sub(self.window_from_ns) >= WINDOW_NS {
            self.ns_min_before = self.ns_min;
            self.ns_min = seen_ns;
            self.window_from_ns = now_ns;
        }
        self.ns_min = self.ns_min.min(seen_ns);
        self.ns_min.min(self.ns_min_before)
    }
}

/// Hosts of one IPv6 network share their path, as far as a queue on it goes.
fn path_of(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MS: u64 = 1_000_000;

    fn client(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_delay_is_what_exceeds_the_paths_smallest_round_trip() {
        let mut paths = Paths::new(10);
        let near = client("192.0.2.1");
        assert_eq!(paths.delay_ns(near, 30 * MS, 20 * MS, 0), 10 * MS);
        // A new connection of the same client has seen nothing but the queue.
        assert_eq!(paths.delay_ns(near, 70 * MS, 70 * MS, MS), 50 * MS);
        let far = client("192.0.2.2");
        assert_eq!(paths.delay_ns(far, 70 * MS, 70 * MS, MS), 0);
    }

    #[test]
    fn hosts_of_one_ipv6_network_share_a_path() {
        let mut paths = Paths::new(10);
        paths.delay_ns(client("2001:db8::1"), 20 * MS, 20 * MS, 0);
        let other = client("2001:db8::2:3:4:5");
        assert_eq!(paths.delay_ns(other, 50 * MS, 50 * MS, 0), 30 * MS);
        let elsewhere = client("2001:db8:0:1::1");
        assert_eq!(paths.delay_ns(elsewhere, 50 * MS, 50 * MS, 0), 0);
    }

    #[test]
    fn a_route_that_became_longer_is_believed_after_two_windows() {
        let mut paths = Paths::new(10);
        let far = client("192.0.2.1");
        paths.delay_ns(far, 20 * MS, 20 * MS, 0);
        let later = paths.delay_ns(far, 90 * MS, 90 * MS, WINDOW_NS);
        assert_eq!(later, 70 * MS, "it may still be a queue");
        assert_eq!(paths.delay_ns(far, 90 * MS, 90 * MS, 2 * WINDOW_NS), 0);
    }

    #[test]
    fn a_full_table_forgets_who_was_not_there_for_long_and_else_nobody() {
        let mut paths = Paths::new(1);
        paths.delay_ns(client("192.0.2.1"), 20 * MS, 20 * MS, 0);
        let new = client("192.0.2.2");
        assert_eq!(paths.delay_ns(new, 50 * MS, 40 * MS, MS), 10 * MS);
        assert_eq!(paths.delay_ns(new, 90 * MS, 80 * MS, 2 * MS), 10 * MS);
        assert_eq!(
            paths.delay_ns(new, 90 * MS, 80 * MS, 3 * WINDOW_NS),
            10 * MS
        );
        assert_eq!(
            paths.delay_ns(new, 95 * MS, 95 * MS, 3 * WINDOW_NS),
            15 * MS
        );
    }
}
