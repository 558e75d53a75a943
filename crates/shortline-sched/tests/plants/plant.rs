//! A backend as a curve: work done per second against what is inside, and the types of requests.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Work done per second, in seconds of service of a request alone.
#[derive(Clone, Copy, Debug)]
pub enum Throughput {
    /// Rises to `servers`, falls beyond `knee` requests.
    Knee { servers: f64, knee: f64, fall: f64 },
    /// Gunther's universal scalability law.
    Scalability { contention: f64, coherence: f64 },
    /// Rises to `servers` and stays.
    Flat { servers: f64 },
    /// Falls to a share of it at about so many requests.
    Cliff { servers: f64, edge: f64, left: f64 },
    /// Falls when the work inside exceeds what fits, as where memory does.
    Memory {
        servers: f64,
        fits_s: f64,
        fall: f64,
    },
}

impl Throughput {
    pub fn at(self, requests: f64, work_s: f64) -> f64 {
        match self {
            Throughput::Knee {
                servers,
                knee,
                fall,
            } => requests.min(servers) / (1.0 + fall * (requests - knee).max(0.0)),
            Throughput::Scalability {
                contention,
                coherence,
            } => {
                let others = requests - 1.0;
                requests / (1.0 + contention * others + coherence * requests * others)
            }
            Throughput::Flat { servers } => requests.min(servers),
            Throughput::Cliff {
                servers,
                edge,
                left,
            } => {
                let fallen = 1.0 / (1.0 + (-(requests - edge) / (0.05 * edge)).exp());
                requests.min(servers) * (1.0 - (1.0 - left) * fallen)
            }
            Throughput::Memory {
                servers,
                fits_s,
                fall,
            } => requests.min(servers) / (1.0 + fall * (work_s / fits_s - 1.0).max(0.0)),
        }
    }
}

/// A backend and its load.
#[derive(Clone, Debug)]
pub struct Plant {
    pub throughput: Throughput,
    pub speed: f64,
    /// Of each type: the mean service time of a request alone, in seconds.
    pub service_s: Vec<f64>,
    /// Of each type: its share of the requests.
    pub shares: Vec<f64>,
    /// The coefficient of variation of service times within a type, lognormal.
    pub variation: f64,
}

impl Plant {
    /// A backend, the same at half the speed, and that with another mix.
    pub fn phases(seed: u64) -> [Plant; 3] {
        let first = Plant::drawn(seed);
        let slower = Plant {
            speed: 0.5,
            ..first.clone()
        };
        let mut mixed = slower.clone();
        mixed.shares.rotate_left(first.shares.len() / 2);
        [first, slower, mixed]
    }

    fn drawn(seed: u64) -> Plant {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut log = |low: f64, high: f64| rng.random_range(low.ln()..high.ln()).exp();
        let servers = log(1.0, 32.0).round();
        let base_s = log(0.001, 0.05);
        let (fall, coherence, memory_fall) = (log(0.003, 0.2), log(0.0002, 0.05), log(0.05, 1.0));
        let types = rng.random_range(1..=14);
        let spread = rng.random_range(0.0..1.5);
        let service_s: Vec<f64> = (0..types)
            .map(|_| base_s * (spread * normal(&mut rng)).exp())
            .collect();
        // Long ones are rarer.
        let weights: Vec<f64> = service_s
            .iter()
            .map(|service_s| rng.random_range(0.0..1.0) / service_s.sqrt())
            .collect();
        let sum: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
        let moment = |power: i32| -> f64 {
            let terms = service_s.iter().zip(&shares);
            terms
                .map(|(service_s, share)| share * service_s.powi(power))
                .sum()
        };
        let throughput = match rng.random_range(0..5) {
            0 => Throughput::Knee {
                servers,
                knee: servers * rng.random_range(1.0..3.0),
                fall: fall / servers.sqrt(),
            },
            1 => Throughput::Scalability {
                contention: rng.random_range(0.0..0.3),
                coherence,
            },
            2 => Throughput::Flat { servers },
            3 => Throughput::Cliff {
                servers,
                edge: servers * rng.random_range(1.5..4.0) + 2.0,
                left: rng.random_range(0.2..0.6),
            },
            _ => Throughput::Memory {
                servers,
                fits_s: servers * moment(2) / moment(1) * rng.random_range(1.2..4.0),
                fall: memory_fall,
            },
        };
        Plant {
            throughput,
            speed: 1.0,
            service_s,
            shares,
            variation: [0.0, 0.2, 0.5, 1.0][rng.random_range(0..4)],
        }
    }

    /// Work done per second.
    pub fn work_rate(&self, requests: usize, work_s: f64) -> f64 {
        let work_rate = self.throughput.at(requests as f64, work_s);
        self.speed * work_rate.max(1e-9)
    }

    /// The mean service time of a request alone, in seconds.
    pub fn mean_s(&self) -> f64 {
        let terms = self.service_s.iter().zip(&self.shares);
        terms.map(|(service_s, share)| service_s * share).sum()
    }

    /// The type of the next request.
    pub fn draw_type(&self, rng: &mut ChaCha8Rng) -> usize {
        let mut left: f64 = rng.random_range(0.0..1.0);
        for (index, share) in self.shares.iter().enumerate() {
            left -= share;
            if left < 0.0 {
                return index;
            }
        }
        self.shares.len() - 1
    }

    /// The work of a request of a type, in seconds.
    pub fn draw_work(&self, index: usize, rng: &mut ChaCha8Rng) -> f64 {
        let variance = (1.0 + self.variation * self.variation).ln();
        let factor = (normal(rng) * variance.sqrt() - variance / 2.0).exp();
        self.service_s[index] * factor
    }
}

/// A standard normal deviate (Box and Muller).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random_range(0.0..1.0f64)).ln()).sqrt();
    radius * rng.random_range(0.0..std::f64::consts::TAU).cos()
}
