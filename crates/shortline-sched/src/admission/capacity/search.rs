//! The first search of `auto`: up as long as more work is done, then down as long as as much is.
//!
//! - **Rising.** The capacity doubles as long as a tenth more work is done than at any smaller one, as
//!   TCP's slow start.
//! - **Falling.** From the best that was found it is halved as long as not noticeably less is done. A
//!   backend that is cold at first (connections without plans, caches without pages) does more from
//!   second to second at whatever capacity, and so the way up is too long; by the time of the way down
//!   it is warm. Where it was warm all along this costs one measurement, for what is below is known to
//!   be worse.

use super::curve::{Curve, Point};

/// How far it goes at a time, as a logarithm, and how much of that must be gained on the way up.
pub(super) const STEP: f64 = 0.7;
const RISE_GAIN: f64 = 0.1;
/// So much less than the best is a fall.
const FALL: f64 = 0.05;

/// How far the search is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Search {
    /// Upwards; how many times in a row little was gained.
    Rising { flat: u32 },
    /// Downwards from the best so far.
    Falling { best: Point },
}

/// Where to measure next, as the logarithm of a capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    At(f64),
    /// The search is over.
    Found(f64),
}

impl Search {
    /// What to do after a measurement, which is added to `curve`; `least` is the logarithm of the
    /// smallest capacity that differs from those below.
    pub(super) fn measured(&mut self, point: Point, least: f64, curve: &mut Curve) -> Next {
        match *self {
            Self::Rising { flat } => self.rise(flat, point, least, curve),
            Self::Falling { best } => self.fall(best, point, least, curve),
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
        *self = Self::Falling { best };
        below(best, least)
    }

    fn fall(&mut self, best: Point, point: Point, least: f64, curve: &mut Curve) -> Next {
        if point.y < best.y - FALL {
            curve.add(point);
            return Next::Found(best.x);
        }
        // What was measured above and before says nothing of now.
        curve.clear();
        curve.add(point);
        let y = point.y.max(best.y);
        *self = Self::Falling {
            best: Point { y, ..point },
        };
        below(point, least)
    }
}

fn below(best: Point, least: f64) -> Next {
    let next = (best.x - STEP).max(least);
    if next < best.x {
        Next::At(next)
    } else {
        Next::Found(best.x)
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

    #[test]
    fn one_at_a_time_is_the_least() {
        assert_eq!(search(|_, _| 1.0).0, -2.0);
    }
}
