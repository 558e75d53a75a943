//! The standard normal distribution.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// The share above so many deviations, precise far out in the tail.
pub(crate) fn share_above(deviations: f64) -> f64 {
    0.5 * libm::erfc(deviations * FRAC_1_SQRT_2)
}

/// The density.
pub(crate) fn density(deviations: f64) -> f64 {
    libm::exp(-0.5 * deviations * deviations) / libm::sqrt(2.0 * PI)
}

/// The inverse of [`share_above`]: Abramowitz and Stegun 26.2.23 (within 4.5e-4), then two steps
/// of Halley's method, each of which cubes the error.
pub(crate) fn exceeded_by(share: f64) -> f64 {
    if share > 0.5 {
        return -exceeded_by(1.0 - share);
    }
    let t = libm::sqrt(-2.0 * libm::log(share));
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let start = t - above / below;
    (0..2).fold(start, |deviations, _| {
        let step = (share_above(deviations) - share) / density(deviations);
        deviations + step / (1.0 - 0.5 * deviations * step)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_are_met() {
        assert!((share_above(1.959_963_984_540_054) - 0.025).abs() < 1e-15);
        assert!((exceeded_by(0.025) - 1.959_963_984_540_054).abs() < 1e-12);
        assert!((density(1.0) - 0.241_970_724_519_143_37).abs() < 1e-15);
    }

    #[test]
    fn the_inverse_inverts() {
        for share in [1e-12, 1e-6, 0.01, 0.3, 0.5, 0.7, 0.99] {
            let back = share_above(exceeded_by(share));
            assert!((back / share - 1.0).abs() < 1e-9, "{share}: {back}");
        }
    }
}
