//! The mesh of sizes over which integrals are taken.
//!
//! The variable is w = -ln P(S > x), from 0 at the smallest size to infinity at the largest. An
//! exponential size is proportional to it and a Pareto's logarithm is, so an integrand is as smooth
//! in a heavy tail as in a light one, and dF(x) = exp(-w) dw needs no density. Nodes get ever
//! denser towards 0, at a factor of at most 1.02 in w and 1.2 in size. There are nodes at the
//! borders of the percentile buckets and where the density jumps. Between two nodes the rule is
//! five-point Gauss-Legendre. Beyond w = 690 (P(S > x) = 1e-300) the caller takes the slowdown as
//! constant.

use crate::dist::Distribution;
use crate::results::PERCENTILE_BUCKETS;

const W_MIN: f64 = 1e-10;
const W_MAX: f64 = 690.0;
const W_FACTOR: f64 = 1.02;
const SIZE_FACTOR: f64 = 1.2;
/// No border lies beyond, because the square of a size must not overflow.
const SIZE_MAX: f64 = 1e150;
/// Abscissae and weights of Gauss-Legendre on -1 to 1.
const GAUSS: [(f64, f64); 5] = [
    (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
    (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
    (0.0, 0.568_888_888_888_888_9),
    (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
    (0.906_179_845_938_664, 0.236_926_885_056_189_1),
];

/// Sizes with weights, smallest first.
#[derive(Debug)]
pub(super) struct Mesh {
    /// Between these ascending sizes the share of the jobs changes smoothly (or not at all).
    pub borders: Vec<f64>,
    /// Points of the integral over all jobs: the sum of weight times value is the mean, except for
    /// what lies beyond the last border.
    pub points: Vec<WeightedSize>,
}

/// A share of the jobs, taken to be of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightedSize {
    pub size: f64,
    pub weight: f64,
    /// Share of the jobs that are smaller.
    pub share_below: f64,
}

impl Mesh {
    pub(super) fn new(sizes: &Distribution) -> Self {
        Self::with_factor(sizes, W_FACTOR)
    }

    /// A mesh with at most this factor between one w and the next.
    pub(super) fn with_factor(sizes: &Distribution, w_factor: f64) -> Self {
        match sizes.atoms() {
            Some(atoms) => Self::of_atoms(atoms),
            None => Self::of_density(sizes, w_factor),
        }
    }

    fn of_atoms(atoms: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut share_below = 0.0;
        let points: Vec<_> = atoms
            .map(|(size, weight)| {
                let point = WeightedSize {
                    size,
                    weight,
                    share_below,
                };
                share_below += weight;
                point
            })
            .collect();
        Self {
            borders: points.iter().map(|point| point.size).collect(),
            points,
        }
    }

    fn of_density(sizes: &Distribution, w_factor: f64) -> Self {
        let nodes = nodes(sizes, w_factor);
        let mut points = Vec::with_capacity(nodes.len() * GAUSS.len() + 1);
        points.push(WeightedSize {
            size: sizes.size_exceeded_by((-W_MIN).exp()),
            weight: -(-W_MIN).exp_m1(),
            share_below: 0.0,
        });
        for pair in nodes.windows(2) {
            for (w, weight) in gauss(pair[0].0, pair[1].0) {
                points.push(WeightedSize {
                    size: sizes.size_exceeded_by((-w).exp()),
                    weight: weight * (-w).exp(),
                    share_below: -(-w).exp_m1(),
                });
            }
        }
        Self {
            borders: nodes.into_iter().map(|(_, size)| size).collect(),
            points,
        }
    }
}

/// (w, size), ascending in both.
fn nodes(sizes: &Distribution, w_factor: f64) -> Vec<(f64, f64)> {
    let count = ((W_MAX / W_MIN).ln() / w_factor.ln()).ceil() as i32;
    let even =
        (0..=count).map(|step| W_MIN * (W_MAX / W_MIN).powf(f64::from(step) / f64::from(count)));
    let buckets = (1..PERCENTILE_BUCKETS)
        .map(|bucket| -(-(bucket as f64) / PERCENTILE_BUCKETS as f64).ln_1p());
    let breaks = sizes
        .breaks()
        .into_iter()
        .map(|size| -sizes.share_above(size).ln());
    let mut ws: Vec<f64> = even.chain(buckets).chain(breaks).collect();
    ws.retain(|w| (W_MIN..=W_MAX).contains(w));
    ws.sort_unstable_by(f64::total_cmp);
    ws.dedup();

    let mut nodes: Vec<(f64, f64)> = Vec::with_capacity(ws.len());
    for w in ws {
        let size = sizes.size_exceeded_by((-w).exp());
        if let Some(&(w_before, before)) = nodes.last() {
            let parts = ((size / before).ln() / SIZE_FACTOR.ln())
                .ceil()
                .clamp(1.0, 100.0);
            // Even steps of w are even factors of a Pareto size.
            nodes.extend((1..parts as u32).map(|part| {
                let w = w_before + (w - w_before) * f64::from(part) / parts;
                (w, sizes.size_exceeded_by((-w).exp()))
            }));
        }
        nodes.push((w, size));
    }
    nodes.retain(|&(_, size)| size <= SIZE_MAX);
    nodes
}

/// Points and weights of an integral from `low` to `high`.
pub(super) fn gauss(low: f64, high: f64) -> impl Iterator<Item = (f64, f64)> {
    let (middle, half) = (f64::midpoint(low, high), 0.5 * (high - low));
    GAUSS
        .into_iter()
        .map(move |(at, weight)| (middle + half * at, half * weight))
}
