//! Sizes with a log-normal body and a Bounded Pareto tail: the form of the files and requests of
//! the Web in all the papers (001, 4.1; 000, 2.1; Barford and Crovella 1998).
//!
//! - body, a share 1 - t: log-normal, cut off below the smallest size and above the cut c;
//! - tail, a share t: P(X > x) = t ((c/x)^alpha - k) / (1 - k), k = (c/max)^alpha.
//!
//! A site of N files has the quantiles at (i + 1/2)/N, and exactly the smallest and the largest
//! size. So nothing is drawn at random.

/// The parameters; sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hybrid {
    /// Mean of the logarithm of the log-normal before it is cut.
    pub(super) log_mean: f64,
    /// Deviation of that logarithm.
    pub(super) log_deviation: f64,
    /// The smallest size.
    pub(super) bytes_min: u64,
    /// Where the body ends and the tail begins.
    pub(super) cut_bytes: f64,
    /// The largest size.
    pub(super) bytes_max: u64,
    /// The tail's exponent.
    pub(super) alpha: f64,
    /// The tail's share of the sizes.
    pub(super) tail_share: f64,
}

impl Hybrid {
    /// The tail takes the share that the log-normal has above the cut, so that the two meet.
    pub(super) fn joined(self) -> Self {
        Self {
            tail_share: 1.0 - self.uncut_share_below(libm::log(self.cut_bytes)),
            ..self
        }
    }

    /// The size below which a share of `quantile` lies.
    pub(super) fn bytes_at(&self, quantile: f64) -> f64 {
        let body_share = 1.0 - self.tail_share;
        if quantile < body_share {
            self.body_bytes_at(quantile / body_share)
        } else {
            let above = (1.0 - quantile) / self.tail_share;
            let cut = self.tail_cut();
            self.cut_bytes * libm::pow(above * (1.0 - cut) + cut, -1.0 / self.alpha)
        }
    }

    /// The share of the sizes below `bytes`.
    pub(super) fn share_below(&self, bytes: f64) -> f64 {
        if bytes <= self.bytes_min as f64 {
            0.0
        } else if bytes < self.cut_bytes {
            let (low, high) = self.body_shares();
            let below = self.uncut_share_below(libm::log(bytes)) - low;
            (1.0 - self.tail_share) * below / (high - low)
        } else if bytes < self.bytes_max as f64 {
            let (above, cut) = (
                libm::pow(self.cut_bytes / bytes, self.alpha),
                self.tail_cut(),
            );
            1.0 - self.tail_share * (above - cut) / (1.0 - cut)
        } else {
            1.0
        }
    }

    /// The sizes of a site of `files` files, smallest first.
    pub(super) fn sizes(&self, files: usize) -> Vec<u64> {
        let quantiles = (0..files).map(|i| (i as f64 + 0.5) / files as f64);
        let mut sizes: Vec<u64> = quantiles
            .map(|quantile| self.bytes_at(quantile).round() as u64)
            .collect();
        if let [first, .., last] = sizes.as_mut_slice() {
            (*first, *last) = (self.bytes_min, self.bytes_max);
        }
        sizes
    }

    /// The mean of the body: that of a log-normal between two ends, from the shares that the same one
    /// has there with its mu raised by sigma^2.
    pub(super) fn body_mean(&self) -> f64 {
        let square = self.log_deviation * self.log_deviation;
        let raised = Self {
            log_mean: self.log_mean + square,
            ..*self
        };
        let ((low, high), (from, to)) = (self.body_shares(), raised.body_shares());
        libm::exp(self.log_mean + square / 2.0) * (to - from) / (high - low)
    }

    fn tail_cut(&self) -> f64 {
        libm::pow(self.cut_bytes / self.bytes_max as f64, self.alpha)
    }

    /// By bisection on the logarithm of the size.
    fn body_bytes_at(&self, quantile: f64) -> f64 {
        let (low, high) = self.body_shares();
        let share = low + quantile * (high - low);
        let ends = (self.bytes_min as f64, self.cut_bytes);
        let log = bisect(libm::log(ends.0), libm::log(ends.1), |log| {
            self.uncut_share_below(log) < share
        });
        libm::exp(log)
    }

    /// The log-normal's shares below the smallest size and below the cut.
    fn body_shares(&self) -> (f64, f64) {
        (
            self.uncut_share_below(libm::log(self.bytes_min as f64)),
            self.uncut_share_below(libm::log(self.cut_bytes)),
        )
    }

    /// The log-normal's share below the size of this logarithm, before it is cut.
    fn uncut_share_below(&self, log: f64) -> f64 {
        let deviations = (log - self.log_mean) / self.log_deviation;
        0.5 * libm::erfc(-deviations / std::f64::consts::SQRT_2)
    }
}

/// The point between `low` and `high` where `is_below` turns false.
pub(super) fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn law(alpha: f64) -> Hybrid {
        let parameters = Hybrid {
            log_mean: 7.63,
            log_deviation: 1.001,
            bytes_min: 77,
            cut_bytes: 9_020.0,
            bytes_max: 3_000_000,
            alpha,
            tail_share: 0.0,
        };
        parameters.joined()
    }

    /// The integrals of x dF(x) over body and tail.
    fn mean(law: &Hybrid) -> f64 {
        let body = law.body_mean();
        let (c, p, a) = (law.cut_bytes, law.bytes_max as f64, law.alpha);
        let integral = if a == 1.0 {
            (p / c).ln() * c
        } else {
            a / (a - 1.0) * c * (1.0 - (c / p).powf(a - 1.0))
        };
        let tail = integral / (1.0 - (c / p).powf(a));
        (1.0 - law.tail_share) * body + law.tail_share * tail
    }

    #[test]
    fn the_tail_has_the_papers_share() {
        // 001, Table 1: k = 631.44 with alpha 1 puts k/9020 of the jobs above 9020 bytes.
        assert!((law(1.0).tail_share - 631.44 / 9_020.0).abs() < 1e-4);
    }

    #[test]
    fn the_sizes_of_a_site_have_the_mean_of_the_law() {
        for alpha in [1.0, 1.1, 1.4] {
            let law = law(alpha);
            let sizes = law.sizes(200_000);
            let got = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
            let want = mean(&law);
            assert!(
                (got / want - 1.0).abs() < 0.002,
                "{alpha}: {got}, not {want}"
            );
        }
    }

    #[test]
    fn without_bounds_the_mean_is_the_papers() {
        // 001, 4.1: 11108 bytes, up to p = 10^10 and with nothing cut off below.
        let whole = Hybrid {
            bytes_min: 1,
            bytes_max: 10_000_000_000,
            ..law(1.0)
        };
        assert!((mean(&whole) - 11_108.0).abs() < 5.0, "{}", mean(&whole));
    }

    proptest! {
        #[test]
        fn shares_and_sizes_are_inverse(quantile in 0.0001..0.9999f64, alpha in 0.5..2.0f64) {
            let law = law(alpha);
            prop_assert!((law.share_below(law.bytes_at(quantile)) - quantile).abs() < 1e-9);
        }
    }
}
