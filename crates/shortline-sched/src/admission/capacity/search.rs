//! The searches of `auto`: up as long as more work is done, then down as long as not less is done.
//!
//! - **Rising.** The capacity doubles as long as that does a tenth more work than any smaller one, like TCP's
//!   slow start. Two steps without such a gain end it, or one that does clearly less.
//! - **Falling.** From the best capacity found, it is halved as long as that does not do noticeably less. A
//!   cold backend (connections without plans, caches without pages) does more from second to second at any
//!   capacity, so the way up is too long. On the way down it is warm. If it was warm all along, this costs
//!   one measurement, because smaller capacities are known to be worse.
//! - **Doubting.** A capacity that was right once is a hint. The search first goes down from it, with growing
//!   steps as long as not noticeably less is done. So it leaves one a hundred times too large within a few
//!   measurements. If less is done right below, it goes up.
//! - **Below** a load without waiters, or a capacity that seems right. The search checks whether as much is
//!   done with less inside. If not, the capacity returns.

use super::curve::{Curve, Point};

/// One step, as a logarithm of the capacity.
pub(super) const STEP: f64 = 0.7;
/// The gain, as a logarithm of the work, that a step up must bring.
const RISE_GAIN: f64 = 0.1;
/// The first step below a load without waiters, as a logarithm. It is small, because it costs work for a
/// while if the backend can bear the load.
pub(super) const GENTLE: f64 = 0.35;
/// The first step below a capacity that seems right, as a logarithm. It is so large that less is done there,
/// unless the right capacity is far away.
pub(super) const FAR: f64 = 1.4;
/// A decrease below the best that is a fall, as a logarithm of the work.
const FALL: f64 = 0.05;
/// A rate is clearly a fall if it is so many standard deviations below one. Its dwell need not be finished.
const CLEARLY: f64 = 2.0;
/// The error assumed besides there, as a logarithm: so far may the backend's speed wander meanwhile.
const WANDERS: f64 = 0.1;

/// The state of a search.
#[derive(Clone, Copy, Debug)]
pub(super) enum Search {
    /// Upwards. `flat` counts steps in a row that gained little.
    Rising { flat: u32 },
    /// At a capacity that was right once.
    Doubting,
    /// Downwards.
    Falling(Fall),
}

/// A search downwards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fall {
    /// The best point so far, the lowest of equal ones.
    best: Point,
    /// Where to stay if less is done below.
    back: f64,
    /// The length of the step being tried.
    step: f64,
    /// Whether steps grow.
    leaps: bool,
    /// Whether to search upwards if less is done right below the beginning.
    then_up: bool,
    /// Whether as much was done at any point below the beginning.
    moved: bool,
}

/// Where to measure next, as the logarithm of a capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    At(f64),
    /// The search is over.
    Found(f64),
}

impl Search {
    /// A search below a load, or a capacity that seems right. If that does less, it ends at `back`.
    pub(super) fn below(at: Point, back: f64, step: f64, least: f64) -> (Self, Next) {
        let fall = Fall {
            best: at,
            back,
            step,
            leaps: true,
            then_up: false,
            moved: false,
        };
        (Self::Falling(fall), fall.next(least))
    }

    /// The next step after a measurement. The measurement is added to `curve`. `least` is the logarithm of
    /// the smallest useful capacity: below it requests run one at a time.
    pub(super) fn measured(&mut self, point: Point, least: f64, curve: &mut Curve) -> Next {
        match *self {
            Self::Rising { flat } => self.rise(flat, point, least, curve),
            Self::Doubting => {
                curve.add(point);
                self.fall_from(point, least, true)
            }
            Self::Falling(fall) => self.fall(fall, point, least, curve),
        }
    }

    /// Whether a measurement that is not finished is clearly a fall already.
    pub(super) fn is_clearly_less(&self, so_far: Point) -> bool {
        let error = (so_far.variance + WANDERS * WANDERS).sqrt();
        matches!(self, Self::Falling(fall) if so_far.y + CLEARLY * error < fall.best.y - FALL)
    }

    fn rise(&mut self, flat: u32, point: Point, least: f64, curve: &mut Curve) -> Next {
        let best = curve.points().iter();
        let best = best
            .map(|point| point.y - point.variance.sqrt())
            .reduce(f64::max);
        curve.add(point);
        let flat = match best {
            Some(best) if point.y < best + RISE_GAIN => flat + 1,
            _ => 0,
        };
        let fell = best.is_some_and(|best| point.y + 3.0 * point.variance.sqrt() < best - FALL);
        if flat < 2 && !fell {
            *self = Self::Rising { flat };
            return Next::At(point.x + STEP);
        }
        let best = curve.best().unwrap_or(point);
        self.fall_from(best, least, false)
    }

    /// Goes downwards from a point. From a doubted one, steps grow, and it goes up if less is done right below.
    fn fall_from(&mut self, best: Point, least: f64, doubts: bool) -> Next {
        let fall = Fall {
            best,
            back: best.x,
            step: STEP,
            leaps: doubts,
            then_up: doubts,
            moved: false,
        };
        *self = Self::Falling(fall);
        fall.next(least)
    }

    fn fall(&mut self, mut fall: Fall, point: Point, least: f64, curve: &mut Curve) -> Next {
        // With hundreds of requests inside, measurements are less exact.
        let noise = (point.variance + fall.best.variance).sqrt();
        let fell = if fall.leaps { FALL + noise } else { FALL };
        if point.y < fall.best.y - fell {
            curve.add(point);
            if fall.then_up && !fall.moved {
                *self = Self::Rising { flat: 0 };
                return Next::At(fall.best.x + STEP);
            }
            if !fall.moved || fall.step <= STEP {
                return Next::Found(fall.back);
            }
            // The last step was too long.
            (fall.step, fall.leaps) = (STEP, false);
            *self = Self::Falling(fall);
            return fall.next(least);
        }
        // Earlier points from larger capacities no longer hold.
        curve.clear();
        curve.add(point);
        let y = point.y.max(fall.best.y);
        fall = Fall {
            best: Point { y, ..point },
            back: point.x,
            step: if fall.leaps { 2.0 * fall.step } else { STEP },
            moved: true,
            ..fall
        };
        *self = Self::Falling(fall);
        fall.next(least)
    }
}

impl Fall {
    fn next(self, least: f64) -> Next {
        let next = (self.best.x - self.step).max(least);
        if next < self.best.x {
            Next::At(next)
        } else {
            Next::Found(self.back)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search on a backend that does `work` at a capacity, in a step of the search.
    fn search(work: impl Fn(f64, u32) -> f64) -> (f64, u32) {
        let (mut search, mut curve) = (Search::Rising { flat: 0 }, Curve::default());
        let mut x = 0.0;
        for step in 0..100 {
            let point = Point {
                at_s: f64::from(step),
                x,
                y: work(x, step).ln(),
                variance: 1e-4,
            };
            match search.measured(point, -2.0, &mut curve) {
                Next::At(next) => x = next,
                Next::Found(found) => return (found, step),
            }
        }
        (x, 100)
    }

    #[test]
    fn the_knee_is_found_and_looked_below_once() {
        let (found, steps) = search(|x, _| x.exp().min(10.0));
        assert!((found - 10.0f64.ln()).abs() < STEP, "{found}");
        assert!(steps <= 8, "{steps}");
    }

    #[test]
    fn what_a_cold_backend_let_grow_is_taken_back() {
        // Six times as much after ten steps, whatever the capacity; the knee is at 2.
        let work = |x: f64, step: u32| x.exp().min(2.0) * f64::from(1 + step.min(10)) / 2.0;
        let (found, steps) = search(work);
        assert!((found - 2.0f64.ln()).abs() < STEP, "{found}");
        assert!(steps < 30, "{steps}");
    }

    /// Measures at each capacity of the search, until it is over. Returns its end, and the number of steps.
    fn follow(mut search: Search, mut next: Next, work: impl Fn(f64) -> f64) -> (f64, u32) {
        let mut curve = Curve::default();
        for step in 0..100 {
            match next {
                Next::At(x) => {
                    let point = at(x, work(x), f64::from(step));
                    next = search.measured(point, -2.0, &mut curve);
                }
                Next::Found(found) => return (found, step),
            }
        }
        panic!("no end: {search:?}");
    }

    fn at(x: f64, work: f64, at_s: f64) -> Point {
        Point {
            at_s,
            x,
            y: work.ln(),
            variance: 1e-4,
        }
    }

    /// Rises to the knee at 10, and falls beyond 20.
    fn knee(x: f64) -> f64 {
        x.exp().min(10.0) / (1.0 + 0.05 * (x.exp() - 20.0).max(0.0))
    }

    #[test]
    fn a_capacity_that_is_doubted_is_left_within_a_few_measurements_wherever_it_is() {
        for hint in [0.0, 1.0, 2.0, 2.3, 3.0, 5.0, 7.0, 9.0] {
            let (found, steps) = follow(Search::Doubting, Next::At(hint), knee);
            let near = 10f64.ln() - STEP..10f64.ln() + STEP;
            assert!(near.contains(&found), "from {hint} to {found}");
            assert!(steps <= 12, "from {hint} in {steps}");
        }
    }

    #[test]
    fn a_load_that_the_backend_likes_is_left_as_it_is_and_a_larger_one_is_not() {
        let from = |load: f64| {
            let (search, next) = Search::below(at(load, knee(load), 0.0), 6.0, GENTLE, -2.0);
            follow(search, next, knee)
        };
        assert_eq!(from(2.0), (6.0, 1));
        let (found, steps) = from(6.0);
        assert!((found - 10f64.ln()).abs() < STEP, "{found}");
        assert!(steps <= 10, "{steps}");
    }

    #[test]
    fn what_is_clearly_less_need_not_be_measured_to_the_end() {
        let (search, next) = Search::below(at(3.0, 10.0, 0.0), 3.0, FAR, -2.0);
        assert_eq!(next, Next::At(3.0 - FAR));
        let so_far = |work: f64, variance: f64| {
            let point = at(3.0 - FAR, work, 1.0);
            search.is_clearly_less(Point { variance, ..point })
        };
        assert!(so_far(6.0, 1e-2));
        assert!(!so_far(6.0, 9e-2), "it may be chance");
        assert!(!so_far(9.0, 1e-4), "so may the backend's speed");
        let rising = Search::Rising { flat: 0 };
        assert!(
            !rising.is_clearly_less(at(1.0, 0.1, 1.0)),
            "nothing was as good"
        );
    }

    #[test]
    fn one_at_a_time_is_the_least() {
        assert_eq!(search(|_, _| 1.0).0, -2.0);
    }
}
