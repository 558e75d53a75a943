//! When jobs arrive and how large they are, one at a time: nothing is made up in advance.
//!
//! Gaps between arrivals are drawn with mean 1 ([`Gaps`]) in a time that runs as fast as arrivals
//! are expected ([`LoadProfile`]): evenly for a steady load, faster in the phases of an overload.
//! With exponential gaps that is a Poisson process of the load's intensity; with others a stretched
//! renewal process.
//!
//! Gaps and sizes come from separate streams of one seed. So arrivals stay the same when only sizes
//! change, and are the same under every policy.

mod gaps;
mod profile;

pub use self::gaps::Gaps;
pub use self::profile::LoadProfile;

use crate::SimError;
use crate::dist::Distribution;
use crate::random::{Stream, generator};

/// An arriving job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// When it arrives, in nanoseconds.
    pub at_ns: u64,
    /// Its size in bytes on the link, which may be a fraction.
    pub bytes: f64,
}

/// Arrivals made up at random.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The variability of the gaps.
    pub gaps: Gaps,
    /// Sizes, in bytes.
    pub sizes: Distribution,
    /// Load over time.
    pub profile: LoadProfile,
    /// Jobs per second at a load of 1 ([`Generated::jobs_per_s`]).
    pub full_load_jobs_per_s: f64,
    /// Jobs present at the start, before any arrival.
    pub preloaded: u64,
    /// When arrivals end, in seconds; infinite for never.
    pub end_s: f64,
}

impl Generated {
    /// Jobs per second at which `servers` of `rate_bps` each have a load of 1, if each job has
    /// `setup_ns` of work beside its bytes.
    ///
    /// # Errors
    /// [`SimError`] if the sizes have no finite mean, or one so small that nanoseconds would not
    /// tell their service times apart.
    pub fn jobs_per_s(
        sizes: &Distribution,
        rate_bps: u64,
        servers: u32,
        setup_ns: u64,
    ) -> Result<f64, SimError> {
        const SERVICE_MIN_NS: f64 = 1000.0;
        let mean_bytes = sizes.mean();
        if !mean_bytes.is_finite() {
            return Err(SimError::InfiniteMean {
                sizes: sizes.to_string(),
            });
        }
        let mean_ns = mean_bytes * 8e9 / rate_bps as f64;
        if mean_ns < SERVICE_MIN_NS {
            return Err(SimError::TooFine {
                mean_ns,
                min_ns: SERVICE_MIN_NS,
            });
        }
        Ok(f64::from(servers) * 1e9 / (mean_ns + setup_ns as f64))
    }

    /// The arrivals of a replication.
    pub fn jobs(&self, seed: u64, replication: u32) -> impl Iterator<Item = Job> + use<> {
        let mut gap_rng = generator(seed, replication, Stream::Gaps);
        let mut size_rng = generator(seed, replication, Stream::Sizes);
        let mut clock = profile::Clock::new(self.profile, self.full_load_jobs_per_s, self.end_s);
        let Self {
            gaps,
            sizes,
            preloaded,
            ..
        } = self.clone();
        let mut preloaded_left = preloaded;
        std::iter::from_fn(move || {
            let at_s = if preloaded_left > 0 {
                preloaded_left -= 1;
                0.0
            } else {
                clock.advance(gaps.sample(&mut gap_rng))?
            };
            Some(Job {
                at_ns: (at_s * 1e9).round() as u64,
                bytes: sizes.sample(&mut size_rng),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn generated(profile: LoadProfile, c2: f64) -> Generated {
        let sizes: Distribution = "exp:1000".parse().unwrap();
        Generated {
            gaps: Gaps::new(c2).unwrap(),
            // 1 ms each.
            full_load_jobs_per_s: Generated::jobs_per_s(&sizes, 8_000_000, 1, 0).unwrap(),
            sizes,
            profile,
            preloaded: 0,
            end_s: f64::INFINITY,
        }
    }

    #[test]
    fn gaps_have_the_load_and_the_variability_asked_for() {
        for c2 in [0.0, 0.3, 1.0, 4.0] {
            let jobs = generated(LoadProfile::steady(0.5).unwrap(), c2);
            let at_ns: Vec<u64> = jobs.jobs(1, 0).take(200_001).map(|job| job.at_ns).collect();
            let gaps: Vec<f64> = at_ns
                .windows(2)
                .map(|pair| (pair[1] - pair[0]) as f64)
                .collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance =
                gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            assert!((mean / 2e6 - 1.0).abs() < 0.02, "C² {c2}: mean {mean}");
            assert!(
                (variance / mean.powi(2) - c2).abs() < 0.05 * (1.0 + c2),
                "C² {c2}"
            );
        }
    }

    #[test]
    fn phases_have_their_loads_and_arrivals_end() {
        let profile = LoadProfile::alternating("10,5,0.2,1.5".parse().unwrap());
        let jobs = Generated {
            end_s: 1500.0,
            ..generated(profile, 1.0)
        };
        let (mut low, mut high) = (0.0, 0.0);
        for job in jobs.jobs(3, 1) {
            let at_s = job.at_ns as f64 / 1e9;
            assert!(at_s < 1500.0);
            *if at_s % 15.0 < 10.0 {
                &mut low
            } else {
                &mut high
            } += 1.0;
        }
        // A hundred phases each: 200,000 and 750,000 jobs expected.
        assert!((low / 200_000.0 - 1.0f64).abs() < 0.01, "{low}");
        assert!((high / 750_000.0 - 1.0f64).abs() < 0.01, "{high}");
    }

    #[test]
    fn preloaded_jobs_come_first() {
        let jobs = Generated {
            preloaded: 3,
            ..generated(LoadProfile::steady(0.5).unwrap(), 1.0)
        };
        let at_ns: Vec<u64> = jobs.jobs(1, 0).take(5).map(|job| job.at_ns).collect();
        assert_eq!(at_ns[..3], [0, 0, 0]);
        assert!(at_ns[3] > 0 && at_ns[4] > at_ns[3]);
    }

    #[test]
    fn replications_differ_and_seeds_repeat() {
        let jobs = generated(LoadProfile::steady(0.5).unwrap(), 1.0);
        let first = |seed, replication| jobs.jobs(seed, replication).next().unwrap();
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
    }

    #[test]
    fn sizes_without_a_load_are_refused() {
        let refused = |sizes: &str, rate_bps| {
            Generated::jobs_per_s(&sizes.parse().unwrap(), rate_bps, 1, 0).unwrap_err()
        };
        assert!(
            refused("bp:1,inf,0.9", 1)
                .to_string()
                .contains("E[S] is infinite")
        );
        assert!(
            refused("exp:1", 8_000_000_000_000)
                .to_string()
                .contains("lower the rate")
        );
    }
}
