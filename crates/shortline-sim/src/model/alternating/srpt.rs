//! SRPT under alternating load.
//!
//! A job of size x first waits until no work of remaining size up to x is left, neither what was
//! there before nor what came meanwhile. Then only smaller arrivals hold it up.
//!
//! - In a phase, the work that counts is a reflected Brownian motion of load rho(x) and variance
//!   lambda (m2(x) + x² F'(x)): at a steady load its mean is Schrage and Miller's. In an overload,
//!   jobs above x that never get down to x do not count: those larger than the size up to which the
//!   load is 1. Each phase begins with the mean that the one before ends with.
//! - The wait of a job that finds the mean work is the motion's mean time to 0, phase by phase.
//! - Then it is held up as a fluid: with r left, it proceeds at 1 - rho(r) in its phase. Where that
//!   is below 0 it stands still, and the smaller work that piles up is done before it goes on.

use super::brownian::Work;
use super::{Alternating, Phase};
use crate::model::mesh::Mesh;
use crate::model::residence::Residence;

/// A wait is followed over at most so many phases; beyond them only the mean load counts.
const PHASES_MAX: usize = 24;
/// Less likely outcomes are ignored.
const LIKELIHOOD_MIN: f64 = 1e-6;

/// The mean delay of each of the sizes.
pub(super) fn delays(queue: &Alternating, mesh: &Mesh, sizes: &[f64]) -> Vec<f64> {
    let residences = queue
        .phases
        .map(|phase| PhaseResidence::new(queue, phase, mesh));
    let model = Model { queue, residences };
    sizes.iter().map(|&size| model.delay(size)).collect()
}

struct Model<'a> {
    queue: &'a Alternating,
    residences: [PhaseResidence; 2],
}

impl Model<'_> {
    fn delay(&self, size: f64) -> f64 {
        let ahead = [0, 1].map(|place| self.work(place, size));
        let starts = self.starts(ahead);
        // Later jobs of the same size do not delay it; they matter only where there are atoms.
        let passing = match self.queue.sizes.atoms() {
            Some(_) => [0, 1].map(|place| self.work(place, size.next_down())),
            None => ahead,
        };
        let sojourn = self.queue.over_arrivals(|place, since| {
            let found = ahead[place].mean_after(starts[place], since);
            self.sojourn(passing, found, size, place, since)
        });
        (sojourn - size).max(0.0)
    }

    /// The work of jobs up to this size.
    fn work(&self, place: usize, size: f64) -> Work {
        let sizes = &self.queue.sizes;
        let rate = self.queue.phases[place].arrival_rate;
        let hopeless = sizes.share_above(self.residences[place].size_served);
        let larger = (sizes.share_above(size) - hopeless).max(0.0);
        let variance = rate * (sizes.partial_moment(2, size) + size * size * larger);
        Work::new(self.load(place, size), variance)
    }

    /// Mean work at the start of either phase, in the long run.
    fn starts(&self, works: [Work; 2]) -> [f64; 2] {
        let [low, high] = self.queue.phases.map(|phase| phase.span);
        let mut starts = [0.0; 2];
        for _ in 0..200 {
            starts[1] = works[0].mean_after(starts[0], low);
            let end = works[1].mean_after(starts[1], high);
            let settled = (end - starts[0]).abs() <= 1e-9 * end;
            starts[0] = end;
            if settled {
                break;
            }
        }
        starts
    }

    /// From the arrival, `since` after the phase began, to the end of the job.
    fn sojourn(&self, works: [Work; 2], found: f64, size: f64, place: usize, since: f64) -> f64 {
        let mut place = place;
        let mut left = self.queue.phases[place].span - since;
        let mut work = found;
        let mut likelihood = 1.0;
        let mut sojourn = 0.0;
        for _ in 0..PHASES_MAX {
            let passage = works[place].passage(work, left);
            sojourn += likelihood * passage.span;
            let finished = 1.0 - passage.unfinished;
            if finished > 0.0 {
                let when = (passage.span - left * passage.unfinished) / finished;
                let in_service = self.in_service(size, place, left - when.clamp(0.0, left));
                sojourn += likelihood * finished * in_service;
            }
            likelihood *= passage.unfinished;
            if likelihood < LIKELIHOOD_MIN {
                break;
            }
            work = passage.work;
            place = 1 - place;
            left = self.queue.phases[place].span;
        }
        if likelihood >= LIKELIHOOD_MIN {
            sojourn += likelihood * self.at_mean_load(work + size, size);
        }
        sojourn
    }

    /// How long a job takes that began with `left` of a phase to come.
    fn in_service(&self, size: f64, place: usize, left: f64) -> f64 {
        let (mut size, mut place, mut left) = (size, place, left);
        let mut span = 0.0;
        // Work of smaller jobs that arrived in overloads and must be done first.
        let mut backlog = 0.0;
        for _ in 0..PHASES_MAX {
            let residence = &self.residences[place];
            let needed = residence.span(size);
            let idle = 1.0 - self.load(place, size);
            let caught_up = if needed.is_finite() {
                (backlog / idle).min(left)
            } else {
                left
            };
            if caught_up + needed <= left {
                return span + caught_up + needed;
            }
            backlog = (backlog - caught_up * idle).max(0.0);
            if needed.is_finite() {
                size = residence.size_of(needed - (left - caught_up));
            }
            span += left;
            place = 1 - place;
            left = self.queue.phases[place].span;
        }
        span + self.at_mean_load(size + backlog, size)
    }

    /// How long so much work takes beside the jobs up to this size.
    fn at_mean_load(&self, work: f64, size: f64) -> f64 {
        let spans: f64 = self.queue.phases.iter().map(|phase| phase.span).sum();
        let loads = [0, 1].map(|place| self.load(place, size) * self.queue.phases[place].span);
        work / (1.0 - loads.iter().sum::<f64>() / spans)
    }

    /// The load of jobs up to this size.
    fn load(&self, place: usize, size: f64) -> f64 {
        self.queue.phases[place].arrival_rate * self.queue.sizes.partial_moment(1, size)
    }
}

/// How long a started job takes in one phase, if the phase lasts.
struct PhaseResidence {
    /// (size, span), ascending, as far as spans are finite.
    spans: Vec<(f64, f64)>,
    /// Jobs from this size on are not served at all.
    size_served: f64,
}

impl PhaseResidence {
    fn new(queue: &Alternating, phase: Phase, mesh: &Mesh) -> Self {
        let residence = Residence::new(&queue.sizes, phase.arrival_rate, mesh);
        let spans: Vec<(f64, f64)> = mesh
            .borders
            .iter()
            .map(|&size| (size, size + residence.delay(size)))
            .take_while(|(_, span)| span.is_finite())
            .collect();
        let all_served = spans.len() == mesh.borders.len();
        let size_served = match spans.last() {
            Some(&(size, _)) if !all_served => size,
            Some(_) => f64::INFINITY,
            None => 0.0,
        };
        Self { spans, size_served }
    }

    fn span(&self, size: f64) -> f64 {
        let place = self.spans.partition_point(|&(other, _)| other < size);
        match self.spans.get(place) {
            Some(&high) => {
                let low = place
                    .checked_sub(1)
                    .map_or((0.0, 0.0), |low| self.spans[low]);
                low.1 + (high.1 - low.1) * (size - low.0) / (high.0 - low.0)
            }
            None => match self.spans.last() {
                Some(&(last, span)) if self.size_served.is_infinite() => span * size / last,
                _ => f64::INFINITY,
            },
        }
    }

    fn size_of(&self, span: f64) -> f64 {
        let place = self.spans.partition_point(|&(_, other)| other < span);
        let low = place
            .checked_sub(1)
            .map_or((0.0, 0.0), |low| self.spans[low]);
        match self.spans.get(place) {
            Some(&high) => low.0 + (high.0 - low.0) * (span - low.1) / (high.1 - low.1),
            None => low.0 * span / low.1,
        }
    }
}
