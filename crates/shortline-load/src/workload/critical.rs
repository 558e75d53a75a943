//! The critical arrival rate, at which the load is first 1, found by measuring (003, 4.2.3).
//!
//! What the link carries grows with the arrival rate and stops growing at the critical one. If all
//! that is asked for is carried, the rate is below it. The search starts from a low rate and
//! doubles it until one is not served; then bisection brings the last two together. A load of rho
//! is then rho times the rate found. 003 raises the rate slowly instead, which takes more
//! measurements for the same.

use thiserror::Error;

/// The most doublings and halvings.
const STEPS_MAX: usize = 64;

/// Why no critical rate was found.
#[derive(Debug, Error)]
pub enum CriticalRateError<E> {
    /// Not even the first rate was served.
    #[error(
        "{rate_per_s} requests a second are not served already: want a lower rate to begin with"
    )]
    TooSlow {
        /// The rate, in requests a second.
        rate_per_s: f64,
    },
    /// No rate was too high.
    #[error("{rate_per_s} requests a second are still served: want a slower uplink or a server")]
    Endless {
        /// The rate, in requests a second.
        rate_per_s: f64,
    },
    /// A measurement failed.
    #[error(transparent)]
    Probe(E),
}

/// The highest rate that is served, in requests a second, to within `tolerance` (a share of it).
/// The search starts at `from_per_s`; `served` measures whether everything is carried at a rate.
///
/// # Errors
/// [`CriticalRateError`] if `from_per_s` is not served, if up to 2^64 times that nothing is too
/// much, or if a measurement fails.
pub fn critical_rate<E>(
    from_per_s: f64,
    tolerance: f64,
    mut served: impl FnMut(f64) -> Result<bool, E>,
) -> Result<f64, CriticalRateError<E>> {
    let mut ask = |rate_per_s: f64| served(rate_per_s).map_err(CriticalRateError::Probe);
    if !ask(from_per_s)? {
        let rate_per_s = from_per_s;
        return Err(CriticalRateError::TooSlow { rate_per_s });
    }
    let (mut low, mut high) = (from_per_s, from_per_s * 2.0);
    let mut steps = 0;
    while ask(high)? {
        steps += 1;
        if steps == STEPS_MAX {
            return Err(CriticalRateError::Endless { rate_per_s: high });
        }
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..STEPS_MAX {
        if high - low <= tolerance * high {
            break;
        }
        let middle = f64::midpoint(low, high);
        if ask(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(f64::midpoint(low, high))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;
    use std::time::Duration;

    use super::*;
    use crate::workload::{LoadSchedule, SiteFiles, arrivals_at, nasa_like};

    fn wire_bytes(body_bytes: u64) -> u64 {
        body_bytes + 555
    }

    /// Whether a link of 10 Mbit/s, first come first served, carries within `seconds` all but 2 %
    /// of what arrives in that time at this rate.
    fn served(site: &SiteFiles, rate_per_s: f64, seconds: u64) -> bool {
        let always = "1".parse::<LoadSchedule>().unwrap();
        let length = Duration::from_secs(seconds);
        let requests = arrivals_at(&always, rate_per_s, length, 1, site);
        let (mut free_s, mut asked, mut carried) = (0.0f64, 0.0, 0.0);
        for (at_ns, file) in requests {
            let bytes = wire_bytes(file.bytes) as f64;
            free_s = free_s.max(at_ns as f64 / 1e9) + bytes * 8.0 / 1e7;
            asked += bytes;
            if free_s <= seconds as f64 {
                carried += bytes;
            }
        }
        carried >= 0.98 * asked
    }

    #[test]
    fn measured_and_analytical_rate_agree() {
        let site = nasa_like(4_000).unwrap();
        let analytical = 1e7 / 8.0 / site.mean_wire_bytes(wire_bytes);
        let mut probes = 0;
        let measured = critical_rate(1.0, 0.01, |rate| {
            probes += 1;
            Ok::<_, Infallible>(served(&site, rate, 2_000))
        })
        .unwrap();
        // 2 % by what counts as served, the rest by chance.
        assert!(
            (measured / analytical - 1.0).abs() < 0.05,
            "{measured} {analytical}"
        );
        assert!(probes < 20);
    }

    #[test]
    fn the_threshold_is_found_within_the_tolerance() {
        let found = critical_rate(0.5, 0.001, |rate| Ok::<_, Infallible>(rate < 77.0)).unwrap();
        assert!((found / 77.0 - 1.0).abs() < 0.001, "{found}");
    }

    #[test]
    fn what_cannot_be_found_is_told() {
        let error = critical_rate(10.0, 0.01, |_| Ok::<_, Infallible>(false)).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("10 requests a second are not served")
        );
        let error = critical_rate(10.0, 0.01, |_| Ok::<_, Infallible>(true)).unwrap_err();
        assert!(matches!(error, CriticalRateError::Endless { .. }));
        let error = critical_rate(10.0, 0.01, |_| Err::<bool, _>("broken")).unwrap_err();
        assert!(matches!(error, CriticalRateError::Probe("broken")));
    }
}
