//! Random numbers from a seed, in streams that do not disturb each other. They are the same on
//! every machine (ChaCha8, and `libm` for what is made of it).

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What is drawn at random; each has a stream of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Gaps,
    Sizes,
    Clients,
    Estimates,
    Users,
}

/// The generator of a stream in a replication.
pub(crate) fn generator(seed: u64, replication: u32, stream: Stream) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(match stream {
        // Beyond all replications of the first four streams, so that what these draw stays as it
        // was before there were users.
        Stream::Users => 1 << 40 | u64::from(replication),
        _ => u64::from(replication) * 4 + stream as u64,
    });
    rng
}

/// A number above 0 and below 1, made of 52 random bits and a half: exact.
pub(crate) fn unit<R: RngCore + ?Sized>(rng: &mut R) -> f64 {
    ((rng.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

/// A standard normal number (Box and Muller 1958).
pub(crate) fn normal(rng: &mut impl RngCore) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(unit(rng)));
    radius * libm::cos(2.0 * std::f64::consts::PI * unit(rng))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_inside_and_even() {
        let mut rng = generator(1, 0, Stream::Gaps);
        let units: Vec<f64> = (0..20_000).map(|_| unit(&mut rng)).collect();
        assert!(units.iter().all(|unit| *unit > 0.0 && *unit < 1.0));
        let mean = units.iter().sum::<f64>() / 20_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_normal_number_has_mean_0_and_variance_1() {
        let mut rng = generator(1, 0, Stream::Estimates);
        let numbers: Vec<f64> = (0..20_000).map(|_| normal(&mut rng)).collect();
        let mean = numbers.iter().sum::<f64>() / 20_000.0;
        let square = numbers.iter().map(|number| number * number).sum::<f64>() / 20_000.0;
        assert!(
            mean.abs() < 0.03 && (square - 1.0).abs() < 0.05,
            "{mean} {square}"
        );
    }
}
