//! Processor sharing under alternating load.
//!
//! Let v(t) be the service that a job present all the time has had. The mean number in the system
//! is n(t) = the integral over past arrivals at s of lambda(s) P(S > v(t) - v(s)), and v grows at 1
//! / (1 + n), the share of one more job. Where n is large this is the fluid limit of an overloaded
//! processor-sharing queue (Puha, Stolyar, Williams 2006). At a steady load below 1 it gives n =
//! rho / (1 - rho), which is exact. In between it uses 1 / (1 + mean N) for the mean of 1 / (1 +
//! N), so it errs to the slow side.
//!
//! v is computed on a grid of time, linear inside a cell, over whole periods until they repeat.

use super::Alternating;
use crate::dist::Distribution;

/// Cells of a phase.
const CELLS: usize = 300;
const PERIODS_MAX: usize = 25;
/// Points of the table of the mean of min(S, v).
const TABLE: usize = 4000;

/// The mean delay of each of the sizes.
pub(super) fn delays(queue: &Alternating, sizes: &[f64]) -> Vec<f64> {
    let service = Service::new(queue);
    sizes
        .iter()
        .map(|&size| {
            let mean = queue.over_arrivals(|place, since| {
                let begin = if place == 0 {
                    0.0
                } else {
                    queue.phases[0].span
                };
                service.sojourn(begin + since, size)
            });
            (mean - size).max(0.0)
        })
        .collect()
}

/// The service that a job gets over a repeating period.
struct Service {
    /// (time, service) at the cells' borders of one period, both from 0.
    borders: Vec<(f64, f64)>,
}

/// Arrivals of a cell.
#[derive(Clone, Copy)]
struct Cohort {
    count: f64,
    /// v when the first and the last came.
    from: f64,
    to: f64,
}

impl Service {
    fn new(queue: &Alternating) -> Self {
        let limited = LimitedMean::new(&queue.sizes);
        let mut cohorts: Vec<Cohort> = Vec::new();
        let mut service = 0.0;
        let mut number = 0.0;
        let mut last = f64::NAN;
        for period in 1..=PERIODS_MAX {
            let begin = service;
            let mut borders = vec![(0.0, 0.0)];
            let mut time = 0.0;
            for phase in &queue.phases {
                let step = phase.span / CELLS as f64;
                for _ in 0..CELLS {
                    let arrivals = phase.arrival_rate * step;
                    let cell = Cell {
                        cohorts: &cohorts,
                        limited: &limited,
                        arrivals,
                        step,
                    };
                    let (end, after) = cell.advance(service, number);
                    cohorts.push(Cohort {
                        count: arrivals,
                        from: service,
                        to: end,
                    });
                    (service, number) = (end, after);
                    time += step;
                    borders.push((time, service - begin));
                }
            }
            cohorts.retain(|cohort| cohort.count * limited.share_above(service - cohort.to) > 1e-9);
            let gained = service - begin;
            let settled = (gained - last).abs() <= 1e-4 * gained;
            if settled || period == PERIODS_MAX {
                return Self { borders };
            }
            last = gained;
            thin(&mut cohorts);
        }
        unreachable!("invariant: the last period returns")
    }

    /// How long a job takes that arrives at this time of the period.
    fn sojourn(&self, at: f64, size: f64) -> f64 {
        let &(span, gained) = self
            .borders
            .last()
            .expect("invariant: a period has borders");
        let (low, high) = cell(&self.borders, at, |border| border.0);
        // Counted from the arrival, so that a small job's time keeps its digits.
        let pace = (high.1 - low.1) / (high.0 - low.0);
        let within = (high.0 - at).max(0.0);
        if size <= within * pace {
            return size / pace;
        }
        let goal = high.1 + size - within * pace;
        let periods = (goal / gained).floor();
        let rest = goal - periods * gained;
        let (low, high) = cell(&self.borders, rest, |border| border.1);
        let time = low.0 + (high.0 - low.0) * (rest - low.1) / (high.1 - low.1);
        periods * span + time - at
    }
}

/// Joins the older half of the cohorts in pairs, so that all periods together have only a few.
fn thin(cohorts: &mut Vec<Cohort>) {
    let old = cohorts.len().saturating_sub(4 * CELLS);
    let joined: Vec<Cohort> = cohorts[..old]
        .chunks(2)
        .map(|pair| Cohort {
            count: pair.iter().map(|cohort| cohort.count).sum(),
            from: pair[0].from,
            to: pair[pair.len() - 1].to,
        })
        .collect();
    cohorts.splice(..old, joined);
}

/// One step of time.
struct Cell<'a> {
    cohorts: &'a [Cohort],
    limited: &'a LimitedMean,
    arrivals: f64,
    step: f64,
}

impl Cell<'_> {
    /// (service, number) at the end, from those at the start.
    fn advance(&self, service: f64, number: f64) -> (f64, f64) {
        // The number at the end leads to a growth of service over the step, which leads to a number
        // at the end. The two must be equal: by false position, Illinois' way.
        let end = |guess: f64| service + self.step / (1.0 + f64::midpoint(number, guess));
        let error = |guess: f64| self.number(service, end(guess)) - guess;
        let (mut low, mut high) = (0.0, number + self.arrivals);
        let (mut error_low, mut error_high) = (error(low), error(high).min(0.0));
        let mut guess = high;
        for _ in 0..60 {
            if error_low <= error_high || high - low <= 1e-9 * (1.0 + high) {
                break;
            }
            guess = (low * error_high - high * error_low) / (error_high - error_low);
            let error = error(guess);
            if error.abs() <= 1e-7 * (1.0 + guess) {
                break;
            } else if error > 0.0 {
                (low, error_low, error_high) = (guess, error, error_high / 2.0);
            } else {
                (high, error_high, error_low) = (guess, error, error_low / 2.0);
            }
        }
        (end(guess), guess)
    }

    fn number(&self, service: f64, end: f64) -> f64 {
        let newest = Cohort {
            count: self.arrivals,
            from: service,
            to: end,
        };
        self.cohorts
            .iter()
            .chain([&newest])
            .map(|cohort| {
                let (old, new) = (end - cohort.from, end - cohort.to);
                cohort.count * (self.limited.at(old) - self.limited.at(new)) / (old - new)
            })
            .sum()
    }
}

/// E\[min(S, v)\], from a table on a logarithmic scale; its derivative is P(S > v).
struct LimitedMean {
    low: f64,
    step: f64,
    values: Vec<f64>,
    mean: f64,
}

impl LimitedMean {
    fn new(sizes: &Distribution) -> Self {
        let mean = sizes.mean();
        let low = mean * 1e-6;
        let high = sizes.size_exceeded_by(1e-12).max(mean * 10.0);
        let step = (high / low).ln() / TABLE as f64;
        let value = |v: f64| sizes.partial_moment(1, v) + v * sizes.share_above(v);
        Self {
            low,
            step,
            values: (0..=TABLE)
                .map(|place| value(low * (step * place as f64).exp()))
                .collect(),
            mean,
        }
    }

    fn at(&self, v: f64) -> f64 {
        if v <= self.low {
            return v.max(0.0);
        }
        let place = (v / self.low).ln() / self.step;
        let cell = place as usize;
        match (self.values.get(cell), self.values.get(cell + 1)) {
            (Some(low), Some(high)) => {
                // Linear in v, not in its logarithm: differences over v must stay shares.
                let (from, to) = (self.border(cell), self.border(cell + 1));
                low + (high - low) * (v - from) / (to - from)
            }
            _ => self.mean,
        }
    }

    fn border(&self, cell: usize) -> f64 {
        self.low * (self.step * cell as f64).exp()
    }

    fn share_above(&self, v: f64) -> f64 {
        let more = v * 1.01 + self.low;
        (self.at(more) - self.at(v)) / (more - v)
    }
}

/// The borders on both sides.
fn cell(
    borders: &[(f64, f64)],
    at: f64,
    key: impl Fn(&(f64, f64)) -> f64,
) -> ((f64, f64), (f64, f64)) {
    let place = borders
        .partition_point(|border| key(border) <= at)
        .clamp(1, borders.len() - 1);
    (borders[place - 1], borders[place])
}
