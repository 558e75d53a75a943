//! A queue whose load alternates between two levels, one of which may be an overload.
//!
//! Paper 000, 6.3, considers this M/GI/1 under FAIR and SRPT and gives the outcome, not the
//! derivation. This derivation is ours. Under `srpt` the work that counts for a size is a reflected
//! Brownian motion whose drift changes with the phase. Under `fair` the number in the system
//! follows a fluid model that is also right where the load stays low.
//!
//! Checked against the simulator on the schedules W1 to W10 of paper 000, Table I, and
//! Bounded Pareto sizes (`docs/lab/simulate.md` has the table).

mod brownian;
mod fair;
mod srpt;

use super::analysis::Delays;
use super::mesh::Mesh;
use super::{Analysis, Form, ModelError};
use crate::Phases;
use crate::dist::Distribution;

/// Sizes at which the delay is computed; between them it is interpolated.
const KNOTS: usize = 240;
/// The smallest of them, in mean sizes.
const SIZE_MIN: f64 = 1e-6;

/// Poisson arrivals in each of two phases that follow each other for ever.
#[derive(Clone, Debug)]
pub struct Alternating {
    sizes: Distribution,
    mean: f64,
    phases: [Phase; 2],
}

/// A load and how long it lasts.
#[derive(Clone, Copy, Debug)]
struct Phase {
    span: f64,
    arrival_rate: f64,
}

impl Alternating {
    /// The queue with jobs of such sizes and an alternating load. Spans are in the unit of the
    /// sizes: the server has speed 1.
    ///
    /// # Errors
    /// [`ModelError::NoMean`] unless the sizes have a finite mean.
    pub fn new(sizes: Distribution, phases: Phases) -> Result<Self, ModelError> {
        let mean = sizes.mean();
        if !mean.is_finite() {
            return Err(ModelError::NoMean {
                sizes: sizes.to_string(),
            });
        }
        let phase = |span, load| Phase {
            span,
            arrival_rate: load / mean,
        };
        Ok(Self {
            phases: [
                phase(phases.low_span(), phases.low_load()),
                phase(phases.high_span(), phases.high_load()),
            ],
            sizes,
            mean,
        })
    }

    /// The approximate means under SRPT or processor sharing, over all arrivals of a period.
    ///
    /// # Errors
    /// [`ModelError::NotAlternating`] for any other policy.
    pub fn solve(&self, policy: Form) -> Result<Analysis, ModelError> {
        let mesh = Mesh::new(&self.sizes);
        let knots = knots(&mesh, self.mean);
        let delays = match policy {
            Form::Srpt => srpt::delays(self, &mesh, &knots),
            Form::Fair => fair::delays(self, &knots),
            policy => return Err(ModelError::NotAlternating { policy }),
        };
        let curve = Curve::new(&knots, &delays);
        let last = curve.delay(curve.size_last()) / curve.size_last();
        let delays = Delays {
            sizes: &self.sizes,
            of_size: &|size| curve.delay(size),
            of_none: 0.0,
            slowdown_at_infinity: 1.0 + last,
        };
        Ok(delays.analysis(policy, &mesh))
    }

    /// The mean size.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Mean, over the arrivals of a period, of something that depends on the phase (0 is the low
    /// one) and the time since it began.
    fn over_arrivals(&self, value: impl Fn(usize, f64) -> f64) -> f64 {
        const PANELS: u32 = 8;
        let mut sum = 0.0;
        let mut arrivals = 0.0;
        for (place, phase) in self.phases.iter().enumerate() {
            arrivals += phase.arrival_rate * phase.span;
            for panel in 0..PANELS {
                let border = |panel: u32| f64::from(panel) / f64::from(PANELS);
                // Denser at the start, where a queue grows with the root of the time.
                for (root, weight) in super::mesh::gauss(border(panel), border(panel + 1)) {
                    let since = phase.span * root * root;
                    let weight = weight * 2.0 * root * phase.span * phase.arrival_rate;
                    sum += weight * value(place, since);
                }
            }
        }
        sum / arrivals
    }
}

/// Borders of the mesh, about as many as wanted, from the smallest to the largest.
fn knots(mesh: &Mesh, mean: f64) -> Vec<f64> {
    let borders = &mesh.borders;
    let (Some(&first), Some(&last)) = (borders.first(), borders.last()) else {
        return Vec::new();
    };
    // Even both in rank and in the logarithm of the size, because neither alone fits every family.
    let by_rank = (0..KNOTS / 2).map(|knot| borders[knot * (borders.len() - 1) / (KNOTS / 2)]);
    let factor = (last / first).ln() / (KNOTS / 2) as f64;
    let by_size = (0..KNOTS / 2).map(|knot| first * (factor * knot as f64).exp());
    let mut knots: Vec<f64> = by_rank.chain(by_size).chain([last]).collect();
    knots.sort_unstable_by(f64::total_cmp);
    // Smaller ones are delayed in proportion.
    knots.retain(|&knot| knot >= mean * SIZE_MIN);
    knots.dedup_by(|a, b| *a <= *b * (1.0 + 1e-9));
    knots
}

/// Delay by size, linear between knots in both logarithms.
struct Curve {
    logs: Vec<(f64, f64)>,
}

impl Curve {
    fn new(sizes: &[f64], delays: &[f64]) -> Self {
        let pairs = sizes.iter().zip(delays);
        Self {
            logs: pairs
                .map(|(size, delay)| (size.ln(), delay.max(f64::MIN_POSITIVE).ln()))
                .collect(),
        }
    }

    fn size_last(&self) -> f64 {
        self.logs.last().map_or(1.0, |(size, _)| size.exp())
    }

    fn delay(&self, size: f64) -> f64 {
        let size = size.ln();
        let place = self.logs.partition_point(|&(other, _)| other <= size);
        match (
            place.checked_sub(1).map(|before| self.logs[before]),
            self.logs.get(place),
        ) {
            (Some(low), Some(&high)) => {
                let part = (size - low.0) / (high.0 - low.0);
                (low.1 + part * (high.1 - low.1)).exp()
            }
            // In proportion to the size beyond both ends.
            (Some(end), None) | (None, Some(&end)) => (end.1 + size - end.0).exp(),
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests;
