//! A quantity over time in a bounded number of equal intervals.
//!
//! When time runs beyond the last interval, neighbours are joined and intervals are twice as long
//! from then on. So their number is bounded, however long the time.

/// The most intervals of a quantity that has a value at every moment.
pub(crate) const INTERVALS_MAX: usize = 1024;
/// The most intervals of a quantity that only arrivals have: fewer, so that each has many.
pub(crate) const ARRIVAL_INTERVALS_MAX: usize = 128;

/// Sums and weights by interval of time.
#[derive(Clone, Debug)]
pub(crate) struct TimeLine {
    interval_ns: f64,
    intervals_max: usize,
    /// Sum and weight of each interval.
    intervals: Vec<(f64, f64)>,
    /// The end of the last [`TimeLine::hold_until`].
    held_ns: f64,
}

impl TimeLine {
    /// An empty line, with intervals of `interval_ns` at first and at most `intervals_max` of them.
    pub(crate) fn new(interval_ns: f64, intervals_max: usize) -> Self {
        Self {
            interval_ns,
            intervals_max,
            intervals: Vec::new(),
            held_ns: 0.0,
        }
    }

    /// Counts `value` at a moment.
    pub(crate) fn add(&mut self, at_ns: f64, value: f64) {
        let index = self.interval(at_ns);
        let (sum, weight) = &mut self.intervals[index];
        *sum += value;
        *weight += 1.0;
    }

    /// The quantity was `value` from when this was last called until `until_ns`.
    pub(crate) fn hold_until(&mut self, until_ns: f64, value: f64) {
        while self.held_ns < until_ns {
            let index = self.interval(self.held_ns);
            let end_ns = ((index + 1) as f64 * self.interval_ns).min(until_ns);
            let held_for_ns = end_ns - self.held_ns;
            let (sum, weight) = &mut self.intervals[index];
            *sum += value * held_for_ns;
            *weight += held_for_ns;
            if end_ns <= self.held_ns {
                break;
            }
            self.held_ns = end_ns;
        }
    }

    /// Adds another line, of any number of runs.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.interval_ns < other.interval_ns {
            self.double();
        }
        while other.interval_ns < self.interval_ns {
            other.double();
        }
        if self.intervals.len() < other.intervals.len() {
            self.intervals.resize(other.intervals.len(), (0.0, 0.0));
        }
        for (mine, theirs) in self.intervals.iter_mut().zip(&other.intervals) {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
        }
    }

    /// The middle of each interval that has anything, in seconds, and its mean.
    pub(crate) fn means(&self) -> Vec<(f64, f64)> {
        let mean = |(index, &(sum, weight)): (usize, &(f64, f64))| {
            let middle_s = (index as f64 + 0.5) * self.interval_ns / 1e9;
            (weight > 0.0).then(|| (middle_s, sum / weight))
        };
        self.intervals.iter().enumerate().filter_map(mean).collect()
    }

    /// The mean over all intervals.
    pub(crate) fn mean(&self) -> f64 {
        let (sum, weight) = self
            .intervals
            .iter()
            .fold((0.0, 0.0), |(sum, weight), of| (sum + of.0, weight + of.1));
        sum / weight
    }

    fn interval(&mut self, at_ns: f64) -> usize {
        let mut index = (at_ns / self.interval_ns) as usize;
        while index >= self.intervals_max {
            self.double();
            index /= 2;
        }
        if index >= self.intervals.len() {
            self.intervals.resize(index + 1, (0.0, 0.0));
        }
        index
    }

    fn double(&mut self) {
        self.interval_ns *= 2.0;
        self.intervals = self
            .intervals
            .chunks(2)
            .map(|pair| {
                pair.iter()
                    .fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_averaged_over_time() {
        let mut line = TimeLine::new(10.0, INTERVALS_MAX);
        line.hold_until(5.0, 0.0);
        line.hold_until(25.0, 4.0);
        assert_eq!(line.means(), [(5e-9, 2.0), (15e-9, 4.0), (25e-9, 4.0)]);
        assert_eq!(line.mean(), 80.0 / 25.0);
    }

    #[test]
    fn intervals_grow_with_time_and_lose_nothing() {
        let mut line = TimeLine::new(1.0, INTERVALS_MAX);
        for at in 0..10_000 {
            line.add(f64::from(at), 1.0);
        }
        assert!(line.intervals.len() <= INTERVALS_MAX);
        let weight: f64 = line.intervals.iter().map(|of| of.1).sum();
        assert_eq!((weight, line.mean()), (10_000.0, 1.0));
    }

    #[test]
    fn lines_of_different_length_add_up() {
        let mut short = TimeLine::new(1.0, INTERVALS_MAX);
        short.add(0.5, 2.0);
        let mut long = TimeLine::new(1.0, INTERVALS_MAX);
        long.hold_until(3000.0, 4.0);
        short.merge(&long);
        assert_eq!(short.interval_ns, 4.0);
        assert_eq!(short.means()[0].1, (2.0 + 16.0) / 5.0);
    }
}
