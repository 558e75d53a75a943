//! The address that a request comes from: clients of several networks in one process.
//!
//! Request number `i` of the open loop, and user number `i` of the closed one with all its
//! requests, belongs to a source by the number `frac(i / phi)`, where phi is the golden ratio.
//! `0..1` is divided into parts as long as the shares, and the source is the one whose part the
//! number falls into. These numbers fill the interval evenly, however many there are. So every
//! stretch of a run has its share of each source. A record says which address it was.

use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// An address that requests come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceAddress {
    /// The address, one of this machine's.
    pub address: IpAddr,
    /// Its share of the requests, relative to the sum of all shares; above 0.
    pub share: f64,
}

/// A text that names no source.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}`: want an address of this machine, with a share if not 1, such as 10.0.0.1=2.5")]
pub struct SourceAddressError(String);

impl FromStr for SourceAddress {
    type Err = SourceAddressError;

    fn from_str(text: &str) -> Result<Self, SourceAddressError> {
        let wrong = || SourceAddressError(text.chars().take(60).collect());
        let (address, share) = text.split_once('=').unwrap_or((text, "1"));
        let source = Self {
            address: address.parse().map_err(|_| wrong())?,
            share: share.parse().map_err(|_| wrong())?,
        };
        // A value that is not a number is not above 0 either.
        if source.share > 0.0 && source.share.is_finite() {
            Ok(source)
        } else {
            Err(wrong())
        }
    }
}

/// The source of request or user number `index`; 0 if there is at most one.
pub fn source_of(index: u64, shares: impl Iterator<Item = f64> + Clone) -> usize {
    const GOLDEN_FRACTION: f64 = 0.618_033_988_749_894_9;
    let sum: f64 = shares.clone().sum();
    let place = (index as f64 * GOLDEN_FRACTION).fract() * sum;
    let mut end = 0.0;
    let mut last = 0;
    for (number, share) in shares.enumerate() {
        end += share;
        last = number;
        if place < end {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_stretch_has_its_share_of_each() {
        let shares = [1.0, 2.0, 5.0];
        for begin in [0_u64, 1000, 100_000] {
            let mut counts = [0_usize; 3];
            for index in begin..begin + 800 {
                counts[source_of(index, shares.into_iter())] += 1;
            }
            for (count, share) in counts.into_iter().zip(shares) {
                assert!(count.abs_diff(share as usize * 100) <= 5, "{counts:?}");
            }
        }
    }

    #[test]
    fn one_source_or_none_is_the_first() {
        for index in 0..100 {
            assert_eq!(source_of(index, std::iter::empty()), 0);
            assert_eq!(source_of(index, [3.0].into_iter()), 0);
        }
    }

    #[test]
    fn a_source_is_an_address_and_a_share() {
        let source: SourceAddress = "10.92.0.1=2.5".parse().unwrap();
        assert_eq!(
            (source.address.to_string(), source.share),
            ("10.92.0.1".into(), 2.5)
        );
        assert_eq!("::1".parse::<SourceAddress>().unwrap().share, 1.0);
        for wrong in [
            "",
            "host",
            "10.0.0.1=0",
            "10.0.0.1=-1",
            "10.0.0.1=inf",
            "10.0.0.1=NaN",
        ] {
            let error = wrong.parse::<SourceAddress>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{wrong}`: want ")), "{error}");
        }
    }
}
