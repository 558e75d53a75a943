//! How long visitors think and stay (002, 4.4; clauses 5.3.1 and 6.2.1): exponential, cut at a
//! maximum.

use std::time::Duration;

use rand::Rng;

/// An exponential distribution whose larger values are cut to a maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutExponential {
    /// The mean before the cut.
    pub mean: Duration,
    /// The maximum.
    pub max: Duration,
}

impl CutExponential {
    /// A distribution with this mean and maximum, in seconds.
    pub const fn new(mean_s: u64, max_s: u64) -> Self {
        Self {
            mean: Duration::from_secs(mean_s),
            max: Duration::from_secs(max_s),
        }
    }

    /// The same, `factor` times as long.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            mean: self.mean.mul_f64(factor),
            max: self.max.mul_f64(factor),
        }
    }

    /// One value.
    pub fn draw(self, rng: &mut impl Rng) -> Duration {
        // From (0, 1], so that the logarithm is finite.
        let drawn = 1.0 - rng.random::<f64>();
        self.mean.mul_f64(-drawn.ln()).min(self.max)
    }

    /// The mean after the cut, in seconds: mean (1 - e^(-max/mean)).
    pub fn cut_mean_s(self) -> f64 {
        let (mean, max) = (self.mean.as_secs_f64(), self.max.as_secs_f64());
        if mean == 0.0 {
            return 0.0;
        }
        mean * (1.0 - (-max / mean).exp())
    }
}

/// How long visitors think and stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Between a page and the next request.
    pub think: CutExponential,
    /// From a session's first request to its end.
    pub session: CutExponential,
}

impl Times {
    /// 002's with locking in the application.
    pub const APPLICATION_LOCKING: Self = Self {
        think: CutExponential::new(7, 70),
        session: CutExponential::new(15 * 60, 60 * 60),
    };
    /// 002's with locking in the database.
    pub const DATABASE_LOCKING: Self = Self {
        think: CutExponential::new(8, 80),
        ..Self::APPLICATION_LOCKING
    };

    /// All times, `factor` times as long. Below 1, fewer visitors make the same load.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            think: self.think.scaled(factor),
            session: self.session.scaled(factor),
        }
    }

    /// The mean number of clicks of a session if pages take no time: the first one, and one after
    /// each thinking time that ends before the session does. At least one.
    pub fn clicks_mean(&self) -> f64 {
        let think_s = self.think.cut_mean_s();
        if think_s == 0.0 {
            return f64::INFINITY;
        }
        1.0 + self.session.cut_mean_s() / think_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn draws_have_the_mean_and_stay_below_the_most() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let times = CutExponential::new(15, 60);
        let draws: Vec<f64> = (0..50_000)
            .map(|_| times.draw(&mut rng).as_secs_f64())
            .collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - times.cut_mean_s()).abs() < 0.2, "{mean}");
        assert!(draws.iter().all(|draw| *draw <= 60.0));
        assert!(draws.contains(&60.0));
    }

    #[test]
    fn a_factor_scales_mean_and_most() {
        let times = Times::APPLICATION_LOCKING.scaled(0.1);
        assert_eq!(times.think.mean, Duration::from_millis(700));
        assert_eq!(times.session.max, Duration::from_secs(360));
    }

    #[test]
    fn a_session_of_the_paper_has_128_clicks() {
        let clicks = Times::APPLICATION_LOCKING.scaled(0.05).clicks_mean();
        assert!((126.0..129.0).contains(&clicks), "{clicks}");
    }
}
