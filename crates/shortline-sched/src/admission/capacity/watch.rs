//! A dry run of `auto`: an upper limit of the capacity without waiters.
//!
//! Everything is admitted at once, so no capacity can be tried. But the load varies by itself. The work done
//! per second is measured over the load inside, by octaves. The capacity is limited to the best octave if
//! larger loads did less work, by more than a tenth and in at least four dwells. Otherwise the capacity is not
//! known. It is then not below the largest load seen, so as far as is known no request would have waited.

use super::Ended;
use super::auto::{AutoReason, AutoView};
use super::dwell::{Dwell, Measured};

/// An octave counts once it was measured this many times.
const TIMES_MIN: f64 = 4.0;
/// Measurements fade: a new one has a weight of at least one over this.
const TIMES_MAX: f64 = 16.0;
/// The relative decrease of work that is a fall.
const FALL: f64 = 0.1;

/// The work done at each load.
#[derive(Debug)]
pub(in crate::admission) struct Watch {
    octaves: [Octave; u64::BITS as usize],
    dwell: Dwell,
    dwell_last: f64,
    last_ns: u64,
    /// A capacity that was found before the dry run.
    kept_ns: Option<u64>,
    load_max: u64,
    view: AutoView,
}

/// Loads from a power of two to the next, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Octave {
    times: f64,
    /// The mean work per second.
    work_rate: f64,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            octaves: [Octave::default(); u64::BITS as usize],
            dwell: Dwell::default(),
            dwell_last: 0.0,
            last_ns: 0,
            kept_ns: None,
            load_max: 0,
            view: AutoView::new(AutoReason::NotKnown),
        }
    }
}

impl Watch {
    /// The upper limit of the capacity, if known.
    pub(super) fn limit_ns(&self) -> Option<u64> {
        (self.view.reason == AutoReason::LessIsBetter).then_some(self.view.center_ns)
    }

    /// The capacity to keep across a restart. A dry run that learnt nothing keeps the earlier one.
    pub(super) fn kept_ns(&self) -> Option<u64> {
        self.limit_ns().or(self.kept_ns)
    }

    pub(super) fn restore(&mut self, capacity_ns: u64) {
        self.kept_ns = Some(capacity_ns);
    }

    pub(super) fn view(&self) -> AutoView {
        self.view
    }

    pub(super) fn pass(&mut self, now_ns: u64, active: usize, load_ns: u64) {
        let span_ns = now_ns.saturating_sub(std::mem::replace(&mut self.last_ns, now_ns));
        self.dwell.pass(span_ns as f64, active, load_ns, false);
    }

    pub(super) fn completed(&mut self, ended: Ended) {
        self.dwell.completed(ended);
        if let Some(measured) = self.dwell.measured(self.dwell_last) {
            self.dwell_last = measured.span;
            self.dwell = Dwell::default();
            self.learn(measured);
        }
    }

    fn learn(&mut self, measured: Measured) {
        self.octaves[octave(measured.load as u64)].add(measured.work_rate);
        self.load_max = self.load_max.max(measured.load as u64);
        self.view.measurements += 1;
        self.view.work_rate = measured.work_rate;
        (self.view.reason, self.view.center_ns) = match self.best_below() {
            Some(best) => (AutoReason::LessIsBetter, 1 << (best + 1).min(62)),
            None => (AutoReason::NotKnown, self.load_max),
        };
    }

    /// The octave with most work per second, if larger loads clearly did less.
    fn best_below(&self) -> Option<usize> {
        let known = self.octaves.iter().enumerate();
        let known = known.filter(|(_, octave)| octave.times >= TIMES_MIN);
        let (best, most) = known.max_by(|a, b| a.1.work_rate.total_cmp(&b.1.work_rate))?;
        let above = &self.octaves[best + 1..];
        let times: f64 = above.iter().map(|octave| octave.times).sum();
        let work: f64 = above
            .iter()
            .map(|octave| octave.times * octave.work_rate)
            .sum();
        (times >= TIMES_MIN && work / times < (1.0 - FALL) * most.work_rate).then_some(best)
    }
}

impl Octave {
    fn add(&mut self, work_rate: f64) {
        self.times = (self.times + 1.0).min(TIMES_MAX);
        self.work_rate += (work_rate - self.work_rate) / self.times;
    }
}

fn octave(load_ns: u64) -> usize {
    load_ns.max(1).ilog2() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(watch: &mut Watch, load: f64, work_rate: f64) {
        watch.learn(Measured {
            span: 1e9,
            waited: 0.0,
            active: 1.0,
            load,
            load_max: load as u64,
            service_ns: 1e7,
            slowdown: 1.0,
            work_rate,
            variance: 1e-4,
            alone_ns: 1.0,
            estimate_ns: 1.0,
        });
    }

    #[test]
    fn more_work_at_larger_loads_says_nothing_of_a_capacity() {
        let mut watch = Watch::default();
        for times in 1..20 {
            for (load, work_rate) in [(1e6, 1.0), (8e6, 3.0), (64e6, 3.1), (500e6, 2.9)] {
                learn(&mut watch, load, work_rate);
                assert_eq!(watch.limit_ns(), None, "{times}");
            }
        }
        assert_eq!(watch.view().reason, AutoReason::NotKnown);
        assert_eq!(watch.view().center_ns, 500_000_000);
    }

    #[test]
    fn less_work_at_larger_loads_says_that_it_is_no_larger_than_the_best() {
        let mut watch = Watch::default();
        for _ in 0..4 {
            assert_eq!(watch.limit_ns(), None);
            for (load, work_rate) in [(8e6, 3.0), (64e6, 3.1), (500e6, 1.5)] {
                learn(&mut watch, load, work_rate);
            }
        }
        // The octave of 64 ms ends at 2^26 ns.
        assert_eq!(watch.limit_ns(), Some(1 << 26));
        watch.restore(77);
        assert_eq!(watch.kept_ns(), Some(1 << 26));
    }
}
