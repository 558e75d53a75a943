//! Random links, and measurements of the controller on one.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::uplink::{Controller, Decision, Observation, State, UplinkConfig};
use shortline_sim::uplink::{Cross, Demand, Path, Plan, Trace, run};

/// Draws links.
pub struct Draw(ChaCha8Rng);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Uniform between two numbers.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.next_u32() as f64 / f64::from(u32::MAX)
    }

    /// Uniform between the logarithms of two numbers.
    pub fn about(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    pub fn one_in(&mut self, count: u32) -> bool {
        self.0.next_u32().is_multiple_of(count)
    }

    /// A link of 3 to 300 Mbit/s with a FIFO of 50 to 200 ms, up to 24 paths of 5 to 200 ms with
    /// noise, some with aggregated acknowledgements, and backlogged connections or W1-like
    /// overload.
    pub fn link(&mut self, seconds: f64) -> Plan {
        let seed = self.0.next_u64();
        let mut plan = Plan::new(self.about(3e6, 300e6), seconds, seed);
        plan.buffer_ms = self.about(50.0, 200.0);
        let noise_ms = self.about(0.05, 1.0);
        let aggregation_ms = if self.one_in(3) {
            1 + self.0.next_u32() % 8
        } else {
            1
        };
        let longest_ms = self.about(10.0, 200.0);
        plan.paths = (0..1 + self.0.next_u32() % 24)
            .map(|_| Path {
                rtt_ms: self.about(5.0, longest_ms),
                noise_ms,
                aggregation_ms,
                spike_ms: 0.0,
            })
            .collect();
        plan.acknowledged_scale = self.between(0.98, 1.02);
        plan.demand = if self.one_in(2) {
            Demand::Backlogged {
                flows: 2 + (self.0.next_u32() % 30) as usize,
            }
        } else {
            Demand::Responses {
                high: 1.5,
                low: 1.5,
                period_s: 1000.0,
            }
        };
        plan
    }
}

/// The controller on a link.
pub fn auto(plan: &Plan) -> Trace {
    faulty(plan, |_| {})
}

/// The controller on a link, with observations changed on the way.
pub fn faulty(plan: &Plan, mut fault: impl FnMut(&mut Observation)) -> Trace {
    let mut controller = Controller::new(UplinkConfig::default());
    run(plan, |observation| {
        let mut told = *observation;
        fault(&mut told);
        controller.observe(&told)
    })
}

/// A plain server on a link: nothing is held back.
pub fn off(plan: &Plan) -> Trace {
    let nothing = Decision {
        pacing_rate_bps: None,
        state: State::Open,
        estimate_bps: None,
        confidence: 0.0,
    };
    run(plan, |_| nothing)
}

/// CUBIC downloads of others from 6 s to 14 s.
pub fn downloads(draw: &mut Draw, count: usize) -> Vec<Cross> {
    (0..count)
        .map(|_| Cross::download(6.0, 14.0, draw.about(10.0, 100.0)))
        .collect()
}

/// Whether the link is scheduled: something is held back.
pub fn is_paced(state: State) -> bool {
    matches!(state, State::Searching | State::Confident)
}

/// The delay that counts as no queue on a link: 10 ms, or six packets where those take longer.
pub fn short_queue_ms(link_bps: f64) -> f64 {
    (6.0 * 1514.0 * 8000.0 / link_bps).max(10.0)
}
