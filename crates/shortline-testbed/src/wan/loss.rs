//! Models of loss: which packets a path loses.
//!
//! - uniform: each by itself with one probability (000, 5.1: "an independent, uniform random loss
//!   model", as Dummynet's).
//! - Gilbert-Elliott (Elliott 1963): the path is good or bad. Before each packet it changes with
//!   probability `to_bad` or `to_good`. It then loses the packet with probability `loss_good` or
//!   `loss_bad`. In the long run it is bad for `to_bad / (to_bad + to_good)` of all packets. If it loses
//!   everything when bad, bursts last `1 / to_good` packets. netem's `loss gemodel` calls `to_bad`,
//!   `to_good`, `loss_bad`, `loss_good` `p`, `r`, `1-h`, `1-k`.

use rand::Rng;
use serde::{Deserialize, Serialize};

use super::path::PathError;

/// A model of loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum Loss {
    /// Nothing is lost.
    None,
    /// Each packet by itself.
    Uniform {
        /// Its probability.
        probability: f64,
    },
    /// In bursts.
    GilbertElliott {
        /// From good to bad.
        to_bad: f64,
        /// From bad to good.
        to_good: f64,
        /// Loss while good.
        loss_good: f64,
        /// Loss while bad.
        loss_bad: f64,
    },
}

impl Loss {
    /// Loses `share` of all packets (below 1) in bursts of `burst_packets` on average (1 or more).
    pub fn bursts(share: f64, burst_packets: f64) -> Self {
        let to_good = 1.0 / burst_packets;
        Self::GilbertElliott {
            to_bad: to_good * share / (1.0 - share),
            to_good,
            loss_good: 0.0,
            loss_bad: 1.0,
        }
    }

    /// Checks that all probabilities are such.
    ///
    /// # Errors
    /// The first value that is not from 0 to 1.
    pub fn check(&self) -> Result<(), PathError> {
        let values = match *self {
            Self::None => vec![],
            Self::Uniform { probability } => vec![("loss", probability)],
            Self::GilbertElliott {
                to_bad,
                to_good,
                loss_good,
                loss_bad,
            } => vec![
                ("to_bad", to_bad),
                ("to_good", to_good),
                ("loss_good", loss_good),
                ("loss_bad", loss_bad),
            ],
        };
        for (what, value) in values {
            // NaN is outside too.
            if !(0.0..=1.0).contains(&value) {
                return Err(PathError::Probability { what, value });
            }
        }
        Ok(())
    }
}

/// A model with its state.
#[derive(Debug)]
pub struct LossProcess {
    model: Loss,
    bad: bool,
}

impl LossProcess {
    /// A path that is good at first.
    pub fn new(model: Loss) -> Self {
        Self { model, bad: false }
    }

    /// Whether the next packet is lost.
    pub fn loses(&mut self, rng: &mut impl Rng) -> bool {
        match self.model {
            Loss::None => false,
            Loss::Uniform { probability } => draw(rng, probability),
            Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_good,
                loss_bad,
            } => {
                let change = if self.bad { to_good } else { to_bad };
                self.bad ^= draw(rng, change);
                draw(rng, if self.bad { loss_bad } else { loss_good })
            }
        }
    }
}

fn draw(rng: &mut impl Rng, probability: f64) -> bool {
    rng.random::<f64>() < probability
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    const PACKETS: usize = 200_000;

    fn fates(model: Loss) -> Vec<bool> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut process = LossProcess::new(model);
        (0..PACKETS).map(|_| process.loses(&mut rng)).collect()
    }

    fn share(fates: &[bool]) -> f64 {
        fates.iter().filter(|lost| **lost).count() as f64 / fates.len() as f64
    }

    fn mean_burst(fates: &[bool]) -> f64 {
        let bursts = fates.chunk_by(|a, b| a == b).filter(|run| run[0]);
        let lengths: Vec<usize> = bursts.map(<[bool]>::len).collect();
        lengths.iter().sum::<usize>() as f64 / lengths.len() as f64
    }

    #[test]
    fn uniform_loss_is_within_four_standard_deviations() {
        for probability in [0.0, 0.005, 0.05, 0.15, 1.0] {
            let measured = share(&fates(Loss::Uniform { probability }));
            let deviation = (probability * (1.0 - probability) / PACKETS as f64).sqrt();
            assert!((measured - probability).abs() <= 4.0 * deviation);
        }
    }

    #[test]
    fn uniform_losses_come_in_bursts_of_their_own_accord_only() {
        let mean = mean_burst(&fates(Loss::Uniform { probability: 0.05 }));
        assert!((mean - 1.0 / 0.95).abs() < 0.01, "{mean}");
    }

    #[test]
    fn bursts_have_the_share_and_the_length_asked_for() {
        for (asked, burst_packets) in [(0.01, 4.0), (0.05, 10.0), (0.2, 2.0)] {
            let fates = fates(Loss::bursts(asked, burst_packets));
            // The losses of a burst are one draw, so the share varies with the number of bursts.
            let bursts = PACKETS as f64 * asked / burst_packets;
            let tolerance = 4.0 * 2.0_f64.sqrt() / bursts.sqrt();
            let measured = share(&fates);
            assert!((measured / asked - 1.0).abs() < tolerance, "{measured}");
            let mean = mean_burst(&fates);
            assert!((mean / burst_packets - 1.0).abs() < tolerance, "{mean}");
        }
    }

    #[test]
    fn a_bad_state_that_lets_some_through_loses_its_share() {
        let model = Loss::GilbertElliott {
            to_bad: 0.1,
            to_good: 0.3,
            loss_good: 0.02,
            loss_bad: 0.6,
        };
        let expected = 0.25 * 0.6 + 0.75 * 0.02;
        assert!((share(&fates(model)) - expected).abs() < 0.01);
    }
}
