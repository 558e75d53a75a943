//! The logarithm of the work done per second over that of the capacity: a parabola about the
//! present capacity, by Bayesian linear regression.
//!
//! Source: the parabola approximation of Heiss and Wagner (Adaptive load control in transaction
//! processing systems, VLDB 1991, which 002 cites as \[24\] for its incremental steps). There, old
//! points fade. Departures:
//!
//! - Both axes are logarithms, so the slope is an elasticity and needs no unit.
//! - Points fade with their distance, too, because a curve with a knee is a parabola only near one point.
//! - A prior (throughput rises a little, and is concave) replaces rules for a bad fit.
//! - The slope has an error, which determines how wide to probe.

/// The time in which a point's weight falls by a factor of e, in seconds.
const FADING_S: f64 = 20.0;

/// The prior: mean and deviation of the slope and of the curvature.
const SLOPE: (f64, f64) = (0.2, 0.5);
const CURVATURE: (f64, f64) = (-0.5, 0.5);

/// The flattest curvature assumed of a curve.
const CURVATURE_MAX: f64 = -0.15;

/// The least rise of throughput, per unit of the logarithm of the capacity, that is worth more capacity.
/// Of two capacities that do as much, the smaller leaves more requests to be ordered. It also ends a curve
/// that rises for ever.
const WORTH: f64 = 0.02;

/// The most points kept.
const POINTS_MAX: usize = 64;

/// A measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// When, in seconds.
    pub(super) at_s: f64,
    /// The logarithm of the capacity.
    pub(super) x: f64,
    /// The logarithm of the work done per second.
    pub(super) y: f64,
    /// The variance of `y`.
    pub(super) variance: f64,
}

/// The points measured recently.
#[derive(Clone, Debug, Default)]
pub(super) struct Curve {
    points: Vec<Point>,
}

/// A parabola about a point `x`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    x: f64,
    /// Height, slope and curvature there.
    coefficients: [f64; 3],
    covariance: [[f64; 3]; 3],
}

impl Curve {
    pub(super) fn add(&mut self, point: Point) {
        if self.points.len() == POINTS_MAX {
            self.points.remove(0);
        }
        self.points.push(point);
    }

    pub(super) fn clear(&mut self) {
        self.points.clear();
    }

    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    /// The best point, with a larger capacity penalized by `WORTH`.
    pub(super) fn best(&self) -> Option<Point> {
        let worth = |point: &Point| point.y - WORTH * point.x;
        self.points
            .iter()
            .copied()
            .max_by(|a, b| worth(a).total_cmp(&worth(b)))
    }

    /// The parabola about `x`. The weight of points fades over the distance `reach`.
    pub(super) fn fit(&self, now_s: f64, x: f64, reach: f64) -> Fit {
        // Heights count from that of the last point. They have next to no prior.
        let height = self.points.last().map_or(0.0, |point| point.y);
        let precision = |(_, deviation): (f64, f64)| 1.0 / (deviation * deviation);
        let mut matrix = [[0.0; 3]; 3];
        let mut vector = [0.0; 3];
        matrix[0][0] = 1e-6;
        matrix[1][1] = precision(SLOPE);
        matrix[2][2] = precision(CURVATURE);
        vector[1] = SLOPE.0 * precision(SLOPE);
        vector[2] = CURVATURE.0 * precision(CURVATURE);
        for point in &self.points {
            let distance = (point.x - x) / reach;
            let age = (now_s - point.at_s) / FADING_S;
            let weight = (-distance * distance / 2.0 - age).exp() / point.variance;
            let terms = terms(point.x - x);
            for row in 0..3 {
                vector[row] += weight * terms[row] * (point.y - height);
                for column in 0..3 {
                    matrix[row][column] += weight * terms[row] * terms[column];
                }
            }
        }
        let covariance = inverse(matrix);
        let mut coefficients = covariance.map(|row| dot(row, vector));
        coefficients[0] += height;
        Fit {
            x,
            coefficients,
            covariance,
        }
    }
}

impl Fit {
    /// The slope, less `WORTH`: by how many per cent the work grows per per cent of capacity.
    pub(super) fn slope(&self) -> f64 {
        self.coefficients[1] - WORTH
    }

    /// The standard deviation of the slope.
    pub(super) fn slope_error(&self) -> f64 {
        self.covariance[1][1].max(0.0).sqrt()
    }

    /// The distance to the top.
    pub(super) fn step(&self) -> f64 {
        self.slope() / (-2.0 * self.curvature())
    }

    /// The standard deviation of the distance to the top.
    pub(super) fn step_error(&self) -> f64 {
        self.slope_error() / (-2.0 * self.curvature())
    }

    /// The height expected at `x`, and its variance.
    pub(super) fn height(&self, x: f64) -> (f64, f64) {
        let terms = terms(x - self.x);
        let spread = self.covariance.map(|row| dot(row, terms));
        (dot(self.coefficients, terms), dot(spread, terms))
    }

    fn curvature(&self) -> f64 {
        self.coefficients[2].min(CURVATURE_MAX)
    }
}

fn terms(distance: f64) -> [f64; 3] {
    [1.0, distance, distance * distance]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The inverse of a symmetric positive definite matrix. The prior makes it so.
fn inverse(m: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let minor = |row: usize, column: usize| {
        let (r1, r2) = ((row + 1) % 3, (row + 2) % 3);
        let (c1, c2) = ((column + 1) % 3, (column + 2) % 3);
        m[r1][c1] * m[r2][c2] - m[r1][c2] * m[r2][c1]
    };
    let determinant = (0..3)
        .map(|column| m[0][column] * minor(0, column))
        .sum::<f64>();
    let mut inverse = [[0.0; 3]; 3];
    for (row, cells) in inverse.iter_mut().enumerate() {
        for (column, cell) in cells.iter_mut().enumerate() {
            *cell = minor(column, row) / determinant;
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points on a parabola with its top at `top`.
    fn parabola(top: f64) -> Curve {
        let mut curve = Curve::default();
        for step in -4..=4 {
            let x = f64::from(step) * 0.1;
            curve.add(Point {
                at_s: 0.0,
                x,
                y: 3.0 - 0.8 * (x - top) * (x - top),
                variance: 1e-6,
            });
        }
        curve
    }

    #[test]
    fn finds_the_top_of_a_parabola() {
        let fit = parabola(0.25).fit(0.0, 0.0, 1.0);
        // The top, less the shift that `WORTH` makes.
        let expected = 0.25 - WORTH / 1.6;
        assert!((fit.step() - expected).abs() < 0.01, "{fit:?}");
        assert!(fit.step_error() < 0.01);
        let (height, variance) = fit.height(0.25);
        assert!((height - 3.0).abs() < 0.01 && variance < 1e-4);
    }

    #[test]
    fn nothing_known_is_a_gentle_rise_of_which_little_is_sure() {
        let fit = Curve::default().fit(0.0, 5.0, 0.3);
        assert!((fit.slope() - (SLOPE.0 - WORTH)).abs() < 1e-9);
        assert!((fit.slope_error() - SLOPE.1).abs() < 1e-6);
    }

    #[test]
    fn old_points_fade() {
        let curve = parabola(0.25);
        let young = curve.fit(0.0, 0.0, 1.0).slope_error();
        let old = curve.fit(20.0 * FADING_S, 0.0, 1.0).slope_error();
        assert!(old > 10.0 * young, "{old} {young}");
    }
}
