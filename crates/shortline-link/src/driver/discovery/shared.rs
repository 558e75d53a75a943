//! The delay that the paths share, of those that were seen lately.
//!
//! What delays one client delays it alone, what delays nearly all is shared: so it is the delay that all
//! but a quarter of the paths have at least. A queue grows in milliseconds: only what was
//! seen within [`FRESH_NS`] counts, or as much longer as it takes to have [`PATHS_ENOUGH`] paths.

use std::net::IpAddr;

use super::round_trip::DELAY_AGE_NS_MAX;

/// The share of the paths whose delay is smaller than the one taken for all.
const DELAY_QUANTILE: f64 = 0.25;
/// Two looks.
const FRESH_NS: u64 = 20_000_000;
/// Of so many paths one may be slow by itself.
const PATHS_ENOUGH: usize = 4;

/// The delays seen on each path within the last [`DELAY_AGE_NS_MAX`].
#[derive(Default)]
pub(super) struct Delays(Vec<Delay>);

struct Delay {
    client: IpAddr,
    delay_ns: u64,
    seen_ns: u64,
}

impl Delays {
    /// A client's delay, and when it was so.
    pub fn add(&mut self, client: IpAddr, delay_ns: u64, seen_ns: u64) {
        self.0.push(Delay {
            client,
            delay_ns,
            seen_ns,
        });
    }

    /// The shared delay, each path with the smallest that it showed while fresh (others may have a late
    /// acknowledgement in them); and how many paths were seen at all.
    pub fn shared(&mut self, now_ns: u64) -> (Option<u64>, u32) {
        let age_ns = |delay: &Delay| now_ns.saturating_sub(delay.seen_ns);
        self.0.retain(|delay| age_ns(delay) <= DELAY_AGE_NS_MAX);
        self.0.sort_by_key(|delay| (delay.client, delay.delay_ns));
        let paths = || self.0.chunk_by(|one, other| one.client == other.client);
        let mut ages_ns: Vec<u64> = paths()
            .filter_map(|of_path| of_path.iter().map(age_ns).min())
            .collect();
        ages_ns.sort_unstable();
        let enough = ages_ns.len().min(PATHS_ENOUGH);
        let fresh_ns = ages_ns[..enough].last().map_or(0, |age| FRESH_NS.max(*age));
        let mut smallest: Vec<u64> = paths()
            .filter_map(|of_path| of_path.iter().find(|delay| age_ns(delay) <= fresh_ns))
            .map(|delay| delay.delay_ns)
            .collect();
        smallest.sort_unstable();
        let at = (smallest.len() as f64 * DELAY_QUANTILE) as usize;
        (smallest.get(at).copied(), ages_ns.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const MS: u64 = 1_000_000;

    fn client(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
    }

    /// Of clients and their delays, and how long ago these were seen.
    fn shared(of: &[(u8, u64, u64)]) -> (Option<u64>, u32) {
        let mut delays = Delays::default();
        for &(last, delay_ns, age_ns) in of {
            delays.add(client(last), delay_ns, 1000 * MS - age_ns);
        }
        delays.shared(1000 * MS)
    }

    #[test]
    fn one_slow_client_is_not_a_shared_queue() {
        let one_slow = [(1, 900, 0), (1, 800, 0), (1, 950, 0), (2, 3, 0), (3, 5, 0)];
        assert_eq!(shared(&one_slow), (Some(3), 3));
        let all = [(1, 80, 0), (2, 83, 0), (3, 79, 0), (4, 91, 0)];
        assert_eq!(shared(&all), (Some(80), 4));
        assert_eq!(shared(&[]), (None, 0));
    }

    #[test]
    fn a_delay_counts_while_it_is_fresh() {
        let grows = [(1, 7, 21 * MS), (1, 9, 20 * MS), (1, 30, 0)];
        assert_eq!(shared(&grows), (Some(9), 1));
        assert_eq!(shared(&[(1, 7, DELAY_AGE_NS_MAX + 1)]), (None, 0));
    }

    #[test]
    fn a_slow_client_that_was_just_seen_does_not_stand_for_the_others() {
        let slow = [(1, 900, 0), (2, 3, 70 * MS), (3, 4, 80 * MS)];
        assert_eq!(shared(&slow), (Some(3), 3));
        let enough = [
            (1, 900, 0),
            (2, 30, 0),
            (3, 40, 0),
            (4, 50, 0),
            (5, 1, 90 * MS),
        ];
        assert_eq!(shared(&enough), (Some(40), 5));
    }
}
