//! `boost`: in order of arrival, with each arrival moved earlier by a boost. Shorter jobs have larger boosts.
//!
//! Source: Yu and Scully, Strongly Tail-Optimal Scheduling in the Light-Tailed M/G/1, 2024 (arXiv
//! 2404.08826). Under FIFO the share of jobs that take longer than `t` falls as `C e^(-g t)` with
//!
//! ```text
//! g = lambda (E[e^(g S)] - 1),   g > 0
//! ```
//!
//! No order has a larger `g`. The order with the smallest `C` is gamma-Boost: smallest `arrival - boost`
//! first, with
//!
//! ```text
//! boost(s) = 1/g ln(1 / (1 - e^(-g s)))                          the size s is known
//! boost(l) = 1/g ln(E[e^(g S) | l] / (E[e^(g S) | l] - 1))       only a label l is known
//! ```
//!
//! Its `C` is (section 4; [`decay_rate`] computes `g`)
//!
//! ```text
//! C = (1 - rho) / (lambda E[S e^(g S)] - 1)  E[e^(g (S - boost))]  e^(lambda E[(e^(g S) - 1) boost])
//! ```
//!
//! where FIFO has `E[e^(g S)]` in place of the last two factors. For exponential sizes of mean 1 the ratio to
//! FIFO's `C` is `(1 - rho) e^(H(1 / (1 - rho)) - 1)`, with the harmonic number `H`: 0.72 at load 0.8, and
//! 0.66 (`e^(0.5772 - 1)`) as the load goes to 1.
//!
//! Here `lambda` and the sizes are learnt from the jobs that arrived: from about the last thousand sizes, and
//! from the recent work and the time over which it arrived. A rank is fixed at the arrival. Departures: the
//! load counts as [`LOAD_MAX`] at most, because at 1 there is no `g` and boosts grow without bound. It is the
//! load of one server, as with `fsp`. Until [`KNOWN`] jobs have arrived, the order is that of arrival.
//!
//! The tail must be light: `E[e^(g S)]` must be finite. File sizes have heavy tails, and there `srpt` also has
//! the better tail.

use super::Needs;
use crate::estimate::Spread;
use crate::job::Job;

pub(super) const NEEDS: Needs = Needs::Rate;

/// The largest load for which boosts are computed.
const LOAD_MAX: f64 = 0.98;

/// This many jobs must have arrived before one is boosted.
const KNOWN: u64 = 16;

/// `g` is computed anew after each this many jobs.
const EACH: u64 = 64;

/// After this many jobs, and then after each half as many, the work and its time are halved.
const ARRIVALS_MAX: u64 = 4096;

/// The rank of an arrival at time 0. A boost may be larger than an arrival time.
const BEGINNING: u64 = 1 << 62;

/// The decay rate `g` of FIFO's tail, for a load and sizes. `None` unless the load is between 0 and 1, and the
/// mean is above 0.
pub(crate) fn decay_rate(load: f64, sizes: &Spread) -> Option<f64> {
    let mean = sizes.mean();
    if !(load > 0.0 && load < 1.0 && mean > 0.0) {
        return None;
    }
    let excess = |rate: f64| load / mean * (sizes.exp_moment(rate) - 1.0) - rate;
    // Since e^x >= 1 + x + x²/2, the root is not above this.
    let mut high = 2.0 * (1.0 - load) * mean / (load * sizes.second_moment());
    let mut low = 0.0;
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if excess(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high)
}

/// The boost of a job, from `g` and its `E[e^(g S)]`, in the unit of `1 / g`.
pub(crate) fn boost(rate: f64, exp_moment: f64) -> f64 {
    if exp_moment.is_infinite() {
        return 0.0;
    }
    // At least the smallest difference from 1, so that the boost is finite.
    let above = (exp_moment - 1.0).max(f64::EPSILON);
    (exp_moment / above).ln() / rate
}

/// An arrival less a boost, as a rank.
pub(crate) fn boosted(arrival_ns: u64, boost_ns: f64) -> u64 {
    BEGINNING
        .saturating_add(arrival_ns)
        .saturating_sub(boost_ns as u64)
}

/// The sizes and the load learnt, and the rank of each job.
#[derive(Clone, Debug, Default)]
pub(super) struct Boosts {
    sizes: Spread,
    /// The work that arrived since `since_ns`.
    work_ns: f64,
    since_ns: f64,
    last_ns: f64,
    came: u64,
    rate: Option<f64>,
    ranks: Vec<u64>,
}

impl Boosts {
    /// A job arrives, and its rank is fixed.
    pub(super) fn submit(&mut self, slot: u32, job: &Job) {
        let service_ns = job.service_ns_expected as f64;
        self.learn(job.arrival_ns as f64, service_ns);
        let boost_ns = self
            .rate
            .map_or(0.0, |rate| boost(rate, (rate * service_ns).exp()));
        let slot = slot as usize;
        if self.ranks.len() <= slot {
            self.ranks.resize(slot + 1, 0);
        }
        self.ranks[slot] = boosted(job.arrival_ns, boost_ns);
    }

    /// The rank: the arrival less the boost.
    pub(super) fn rank(&self, slot: u32) -> u64 {
        self.ranks[slot as usize]
    }

    fn learn(&mut self, arrival_ns: f64, service_ns: f64) {
        if self.came == 0 {
            self.since_ns = arrival_ns;
        }
        self.last_ns = self.last_ns.max(arrival_ns);
        self.came += 1;
        self.work_ns += service_ns;
        self.sizes.add(service_ns);
        if self.came >= KNOWN && self.came.is_multiple_of(EACH) || self.came == KNOWN {
            let span_ns = (self.last_ns - self.since_ns).max(1.0);
            let load = (self.work_ns / span_ns).min(LOAD_MAX);
            self.rate = decay_rate(load, &self.sizes);
        }
        if self.came.is_multiple_of(ARRIVALS_MAX / 2) && self.came >= ARRIVALS_MAX {
            self.work_ns /= 2.0;
            self.since_ns = f64::midpoint(self.since_ns, self.last_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn exponential() -> Spread {
        let mut sizes = Spread::default();
        for k in 0..2000 {
            let share = (f64::from(k) + 0.5) / 2000.0;
            sizes.add(-1e6 * (1.0 - share).ln());
        }
        sizes
    }

    #[test]
    fn the_tail_of_an_exponential_falls_as_known() {
        // M/M/1 with services of 1: g = 1 - rho.
        for load in [0.6, 0.8, 0.95] {
            let rate = decay_rate(load, &exponential()).unwrap() * 1e6;
            assert!((rate / (1.0 - load) - 1.0).abs() < 0.02, "{load}: {rate}");
        }
        assert_eq!(decay_rate(1.0, &exponential()), None);
        assert_eq!(decay_rate(0.5, &Spread::default()), None);
    }

    #[test]
    fn one_size_has_one_boost_and_a_label_that_is_a_size_the_size_s() {
        let mut sizes = Spread::default();
        (0..10).for_each(|_| sizes.add(1e6));
        let rate = decay_rate(0.7, &sizes).unwrap();
        let by_size = (1.0 / (1.0 - (-rate * 1e6).exp())).ln() / rate;
        assert!((boost(rate, sizes.exp_moment(rate)) / by_size - 1.0).abs() < 1e-9);
        assert!(boost(rate, 1.0).is_finite() && boost(rate, 1.0) > by_size);
        assert_eq!(boost(rate, f64::INFINITY), 0.0);
    }

    #[test]
    fn the_shorter_goes_first_unless_it_came_much_later() {
        let mut boosts = Boosts::default();
        let arrived = |at_ns, work| Job::arrived(at_ns, work);
        for slot in 0..64 {
            boosts.submit(
                slot,
                &arrived(
                    u64::from(slot) * 20_000_000,
                    [1_000_000, 20_000_000][slot as usize % 2],
                ),
            );
        }
        let now_ns = 64 * 20_000_000;
        boosts.submit(100, &arrived(now_ns, 20_000_000));
        boosts.submit(101, &arrived(now_ns + 1_000_000, 1_000_000));
        boosts.submit(102, &arrived(now_ns + 10_000_000_000, 1_000_000));
        assert!(boosts.rank(101) < boosts.rank(100));
        assert!(boosts.rank(102) > boosts.rank(100));
    }
}
