//! The searches of `auto`: up as long as more work is done, then down as long as as much is.
//!
//! - **Rising.** The capacity doubles as long as a tenth more work is done than at any smaller one, as
//!   TCP's slow start.
//! - **Falling.** From the best that was found it is halved as long as not noticeably less is done. A
//!   backend that is cold at first (connections without plans, caches without pages) does more from
//!   second to second at whatever capacity, and so the way up is too long; by the time of the way down
//!   it is warm. Where it was warm all along this costs one measurement, for what is below is known to
//!   be worse.
//! - **Doubting.** A capacity that was right once is a hint: first down from it, ever faster as long as not
//!   noticeably less is done, so that one a hundred times too large is left within a few measurements;
//!   where less is done right below, up.
//! - **Below** a load with which nobody waits, or a capacity that seems right: whether as much is done with
//!   less inside. If not, the capacity is as it was.

use super::curve::{Curve, Point};

/// How far it goes at a time, as a logarithm, and how much of that must be gained on the way up.
pub(super) const STEP: f64 = 0.7;
const RISE_GAIN: f64 = 0.1;
/// How far below a load with which nobody waits it looks first: little, for it costs that much work for a while
/// if the load is no more than the backend likes.
pub(super) const GENTLE: f64 = 0.35;
/// How far below a capacity that seems right: so far that less is done there, unless the right one is far away.
pub(super) const FAR: f64 = 1.4;
/// So much less than the best is a fall.
const FALL: f64 = 0.05;

/// How far the search is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Search {
    /// Upwards; how many times in a row little was gained.
    Rising { flat: u32 },
    /// At a capacity that was right once.
    Doubting,
    /// Downwards.
    Falling(Fall),
}

/// A search downwards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fall {
    /// The best so far, the lowest of equals.
    best: Point,
    /// Where to stay if less is done below.
    back: f64,
    /// How far it went last.
    step: f64,
    /// Whether it goes further each time.
    leaps: bool,
    /// Whether more may be done above where it began.
    then_up: bool,
    /// Whether as much was done anywhere below that.
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
    /// Looks below a load, or a capacity that seems right; if that does less, the capacity is to be `back`.
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

    /// What to do after a measurement, which is added to `curve`; `least` is the logarithm of the
    /// smallest capacity that differs from those below.
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

    /// Goes downwards from a point; from one that is doubted ever faster, and up if less is done below.
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
        // Where hundreds may be inside what is measured is less exact.
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
            // Too far at once.
            (fall.step, fall.leaps) = (STEP, false);
            *self = Self::Falling(fall);
            return fall.next(least);
        }
        // What was measured above and before says nothing of now.
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

    /// Searches for the capacity of a backend that does so much at a capacity in a step of the search.
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

    /// What is measured where a search says, until it is over: where it ends, and after how many steps.
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
    fn one_at_a_time_is_the_least() {
        assert_eq!(search(|_, _| 1.0).0, -2.0);
    }
}
