//! Request sizes in bands, of which a paper gives the share of the requests and of the bytes.
//!
//! 004 (5.3.3.1) has these figures of the requests that its SURGE made:
//!
//! | files | share of the requests | share of the bytes |
//! |---|---|---|
//! | below 16 KB | 82.9 % | 11.55 % |
//! | 16 to 128 KB | the rest, 15.66 % | the rest, 25.91 % |
//! | above 128 KB | 1.44 % | 62.54 % |
//!
//! A band's mean is the mean of all sizes times its share of the bytes over that of the requests.
//! The paper does not print the mean of all. Its runs of 15 minutes made more than 650,000 requests
//! (5.1) over a link of 100 Mbit/s, so 722 a second, and the link was full: 17.3 KB a request with
//! all heads. At fewer users requests are fewer, so the mean is about that: 18,000 bytes here.
//! Inside a band the law has SURGE's form:
//!
//! - below 16 KB log-normal, cut off at both ends, with the deviation of 001, Table 1, and the mu
//!   that gives the band's mean;
//! - above, Bounded Pareto from edge to edge, with the alpha that gives the band's mean.
//!
//! Matching such a law to Zipf's popularity misses it where files are few: above 128 KB there are
//! 66 of 2,000. So after the matching shares change places until the figures are met: first
//! between two bands, until each has its share of the requests; then inside each band, until it has
//! its share of the bytes. Each exchange is the one that comes closest to what is missed, or to
//! [`EXCHANGE`] of what is wanted, so that no single file makes up for all of it.

use std::ops::Range;

use super::super::hybrid::{Hybrid, bisect};
use super::matching;

/// Deviation of the logarithm of request sizes below the first edge (001, Table 1).
const LOG_DEVIATION: f64 = 1.001;
/// The most that one exchange moves, as a share of what is wanted of the band.
const EXCHANGE: f64 = 0.1;
/// How close the figures come, as a share of each.
const TOLERANCE: f64 = 1e-3;
/// The most exchanges for a figure.
const EXCHANGES_MAX: usize = 100;

/// The figures of a paper's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bands {
    /// The smallest size, the edges between the bands, and the largest size, in bytes.
    pub(super) edges: [f64; 4],
    /// Each band's share of the requests.
    pub(super) requests: [f64; 3],
    /// Each band's share of the bytes.
    pub(super) bytes: [f64; 3],
    /// The mean size.
    pub(super) bytes_mean: f64,
}

impl Bands {
    /// The figures of 004, 5.3.3.1, for files between these sizes.
    pub(super) fn of_004(bytes_min: u64, bytes_max: u64) -> Self {
        const BELOW: (f64, f64) = (0.829, 0.1155);
        const ABOVE: (f64, f64) = (0.0144, 0.6254);
        const KB: f64 = 1024.0;
        Self {
            edges: [bytes_min as f64, 16.0 * KB, 128.0 * KB, bytes_max as f64],
            requests: [BELOW.0, 1.0 - BELOW.0 - ABOVE.0, ABOVE.0],
            bytes: [BELOW.1, 1.0 - BELOW.1 - ABOVE.1, ABOVE.1],
            bytes_mean: 18_000.0,
        }
    }

    /// The share of the requests of each file, in the order of `sizes`, which rise. `popularity` falls
    /// and has the same length.
    pub(super) fn matched(&self, sizes: &[u64], popularity: &[f64]) -> Vec<f64> {
        let means = [0, 1, 2].map(|band| self.wanted_bytes(band) / self.requests[band]);
        let law = Law::new(self.edges, self.requests, means);
        let mut shares = matching::matched(sizes, |bytes| law.share_below(bytes), popularity);
        let files = self.files(sizes);
        for band in [2, 0] {
            self.give_requests(band, &files, &mut shares);
        }
        for (band, files) in files.into_iter().enumerate() {
            self.give_bytes(band, files, sizes, &mut shares);
        }
        shares
    }

    /// Each band's share of the requests times its mean size.
    fn wanted_bytes(&self, band: usize) -> f64 {
        self.bytes_mean * self.bytes[band]
    }

    /// The places of each band's files.
    fn files(&self, sizes: &[u64]) -> [Range<usize>; 3] {
        let [_, low, high, _] = self.edges;
        let first = |edge: f64| sizes.partition_point(|bytes| (*bytes as f64) < edge);
        let (low, high) = (first(low), first(high));
        [0..low, low..high, high..sizes.len()]
    }

    /// Exchanges shares between an outer band and the middle one, until the outer has its requests.
    fn give_requests(&self, band: usize, files: &[Range<usize>; 3], shares: &mut [f64]) {
        let wanted = self.requests[band];
        for _ in 0..EXCHANGES_MAX {
            let lacks = wanted - shares[files[band].clone()].iter().sum::<f64>();
            let gain = |one: usize, other: usize| shares[other] - shares[one];
            let pairs = files[band]
                .clone()
                .flat_map(|one| files[1].clone().map(move |other| (one, other)));
            let Some((one, other)) = closest(wanted, lacks, pairs, gain) else {
                return;
            };
            shares.swap(one, other);
        }
    }

    /// Exchanges shares inside a band until it has its bytes.
    fn give_bytes(&self, band: usize, files: Range<usize>, sizes: &[u64], shares: &mut [f64]) {
        let wanted = self.wanted_bytes(band);
        for _ in 0..EXCHANGES_MAX {
            let bytes = |file: usize| sizes[file] as f64;
            let lacks = wanted
                - files
                    .clone()
                    .map(|file| shares[file] * bytes(file))
                    .sum::<f64>();
            let gain = |one: usize, other: usize| {
                (shares[other] - shares[one]) * (bytes(one) - bytes(other))
            };
            let pairs = files
                .clone()
                .flat_map(|one| (one + 1..files.end).map(move |other| (one, other)));
            let Some((one, other)) = closest(wanted, lacks, pairs, gain) else {
                return;
            };
            shares.swap(one, other);
        }
    }
}

/// The pair whose exchange comes closest to what is lacking, in steps of [`EXCHANGE`] of what is
/// wanted. `None` if that is close enough already, or no exchange brings it closer.
fn closest(
    wanted: f64,
    lacks: f64,
    pairs: impl Iterator<Item = (usize, usize)>,
    gain: impl Fn(usize, usize) -> f64,
) -> Option<(usize, usize)> {
    if lacks.abs() <= TOLERANCE * wanted {
        return None;
    }
    let step = lacks.clamp(-EXCHANGE * wanted, EXCHANGE * wanted);
    let off = |&(one, other): &(usize, usize)| (step - gain(one, other)).abs();
    let best = pairs.min_by(|one, other| off(one).total_cmp(&off(other)))?;
    (off(&best) < step.abs()).then_some(best)
}

/// A law of three bands.
struct Law {
    edges: [f64; 4],
    /// The bands' shares of the requests.
    shares: [f64; 3],
    /// The first band.
    body: Hybrid,
    /// The alphas of the others.
    alphas: [f64; 2],
}

impl Law {
    /// The law of bands with these shares of the requests and these mean sizes.
    fn new(edges: [f64; 4], shares: [f64; 3], means: [f64; 3]) -> Self {
        let [least, low, high, most] = edges;
        let body = |log_mean: f64| Hybrid {
            log_mean,
            log_deviation: LOG_DEVIATION,
            bytes_min: least as u64,
            cut_bytes: low,
            bytes_max: low as u64,
            alpha: 1.0,
            tail_share: 0.0,
        };
        let [first, second, third] = means;
        let log_mean = bisect(0.0, libm::log(low), |log_mean| {
            body(log_mean).body_mean() < first
        });
        // The higher alpha, the lower the mean.
        let alpha = |from, to, mean| bisect(-8.0, 8.0, |alpha| pareto_mean(from, to, alpha) > mean);
        Self {
            shares,
            body: body(log_mean),
            alphas: [alpha(low, high, second), alpha(high, most, third)],
            edges,
        }
    }

    /// The share of the requests below `bytes`.
    fn share_below(&self, bytes: f64) -> f64 {
        let [first, second, third] = self.shares;
        let [_, low, high, most] = self.edges;
        let [middle, last] = self.alphas;
        if bytes < low {
            first * self.body.share_below(bytes)
        } else if bytes < high {
            first + second * pareto_share(low, high, middle, bytes)
        } else {
            first + second + third * pareto_share(high, most, last, bytes)
        }
    }
}

/// The share of a Bounded Pareto law from `from` to `to` that is below `bytes`.
fn pareto_share(from: f64, to: f64, alpha: f64, bytes: f64) -> f64 {
    let below = |end: f64| integral(from, end, -alpha);
    below(bytes.min(to)) / below(to)
}

/// Its mean.
fn pareto_mean(from: f64, to: f64, alpha: f64) -> f64 {
    from * integral(from, to, 1.0 - alpha) / integral(from, to, -alpha)
}

/// The integral of x^(power - 1) from `from` to `to`, over `from`^power.
fn integral(from: f64, to: f64, power: f64) -> f64 {
    let log = libm::log(to / from);
    if (power * log).abs() < 1e-9 {
        return log;
    }
    (libm::exp(power * log) - 1.0) / power
}
