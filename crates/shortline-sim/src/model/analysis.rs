//! What a closed form gives: means over all jobs, by percentile of size, and of the largest.

use serde::Serialize;

use super::Form;
use super::mesh::Mesh;
use super::queue::Queue;
use super::residence::Residence;
use crate::dist::Distribution;
use crate::results::PERCENTILE_BUCKETS;

/// Single sizes are those that a share of m / 10^k exceeds, for each of these m ...
const SHARES_OF_TEN: [f64; 7] = [7.0, 5.0, 4.0, 3.0, 2.0, 1.5, 1.0];
/// ... and k from 1 to this.
const DECADES: i32 = 9;

/// The means under one policy, in the unit of the sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// The policy.
    pub policy: Form,
    /// E\[T\], T the time in the system.
    pub sojourn_mean: f64,
    /// E\[T/S\]; infinite if jobs next to no size wait (E\[1/S\] is).
    pub slowdown_mean: f64,
    /// The largest E\[T(x)\]/x of any size: what the worst size must expect.
    pub slowdown_max: f64,
    /// The size that has it; infinite if ever larger jobs approach it, 0 if ever smaller ones do.
    pub slowdown_max_size: f64,
    /// E\[T(x)\]/x of the largest size, or the limit where there is none.
    pub slowdown_largest: f64,
    /// What jobs of single sizes must expect, up to the largest size if there is one.
    pub points: Vec<Point>,
    /// The means of the jobs between one half per cent of sizes and the next.
    pub buckets: Vec<Bucket>,
}

/// What a job of one size must expect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Share of the jobs that are larger.
    pub share_above: f64,
    /// Share of the load that larger jobs make up.
    pub load_above: f64,
    /// The size.
    pub size: f64,
    /// E\[T(x)\].
    pub sojourn: f64,
    /// E\[T(x)\]/x.
    pub slowdown: f64,
}

/// What the jobs of one percentile bucket must expect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bucket {
    /// Mean time in the system.
    pub sojourn: f64,
    /// Mean slowdown.
    pub slowdown: f64,
}

impl Analysis {
    pub(super) fn new(queue: &Queue, policy: Form, mesh: &Mesh) -> Self {
        let residence = Residence::new(queue.sizes(), queue.arrival_rate(), mesh);
        let delays = Delays {
            sizes: queue.sizes(),
            of_size: &|size| policy.delay(queue, &residence, size),
            of_none: policy.delay_least(queue),
            slowdown_at_infinity: policy.slowdown_at_infinity(queue),
        };
        delays.analysis(policy, mesh)
    }

    /// The same with times and sizes counted in a unit, such as the mean size.
    pub fn in_units_of(mut self, unit: f64) -> Self {
        self.sojourn_mean /= unit;
        self.slowdown_max_size /= unit;
        for point in &mut self.points {
            point.size /= unit;
            point.sojourn /= unit;
        }
        for bucket in &mut self.buckets {
            bucket.sojourn /= unit;
        }
        self
    }
}

/// A queue under a policy: the mean delay of each size.
pub(super) struct Delays<'a> {
    pub sizes: &'a Distribution,
    pub of_size: &'a dyn Fn(f64) -> f64,
    /// The delay of a job as its size goes to 0.
    pub of_none: f64,
    /// The slowdown of ever larger jobs, in the limit.
    pub slowdown_at_infinity: f64,
}

impl Delays<'_> {
    pub(super) fn analysis(&self, policy: Form, mesh: &Mesh) -> Analysis {
        let buckets = self.buckets(mesh);
        let mean = |value: fn(&Bucket) -> f64| {
            buckets.iter().map(value).sum::<f64>() / PERCENTILE_BUCKETS as f64
        };
        let (slowdown_max_size, slowdown_max) = self.slowdown_max(mesh);
        Analysis {
            policy,
            sojourn_mean: mean(|bucket| bucket.sojourn),
            slowdown_mean: mean(|bucket| bucket.slowdown),
            slowdown_max,
            slowdown_max_size,
            slowdown_largest: self.slowdown_largest(),
            points: self.points(),
            buckets,
        }
    }

    fn delay(&self, size: f64) -> f64 {
        (self.of_size)(size)
    }

    fn slowdown(&self, size: f64) -> f64 {
        1.0 + self.delay(size) / size
    }

    fn buckets(&self, mesh: &Mesh) -> Vec<Bucket> {
        let sizes = self.sizes;
        let discrete = sizes.atoms().is_some();
        let least = self.of_none;
        let mut buckets = vec![Bucket::default(); PERCENTILE_BUCKETS];
        for point in &mesh.points {
            let delay = self.delay(point.size);
            for (place, weight) in parts(point.share_below, point.weight, discrete) {
                let bucket = &mut buckets[place];
                bucket.sojourn += weight * (point.size + delay);
                // For the smallest jobs, the wait of a job of size 0 is added below by E[1/S].
                let smallest = place == 0 && !discrete;
                let delay = if smallest { delay - least } else { delay };
                bucket.slowdown += weight * (1.0 + delay / point.size);
            }
        }
        if !discrete {
            if least > 0.0 {
                let border = sizes.quantile(1.0 / PERCENTILE_BUCKETS as f64);
                buckets[0].slowdown += least * sizes.partial_moment(-1, border);
            }
            let last = &mut buckets[PERCENTILE_BUCKETS - 1];
            let (end, slowdown) = self.at_the_end(mesh);
            last.sojourn += slowdown * (sizes.mean() - sizes.partial_moment(1, end)).max(0.0);
            last.slowdown += slowdown * sizes.share_above(end);
        }
        for bucket in &mut buckets {
            bucket.sojourn *= PERCENTILE_BUCKETS as f64;
            bucket.slowdown *= PERCENTILE_BUCKETS as f64;
        }
        buckets
    }

    fn at_the_end(&self, mesh: &Mesh) -> (f64, f64) {
        let end = *mesh
            .borders
            .last()
            .expect("invariant: a mesh has borders, from 1e-10 on");
        (end, self.slowdown(end))
    }

    fn points(&self) -> Vec<Point> {
        let (_, largest) = self.sizes.range();
        let shares = (1..=DECADES).flat_map(|decade| {
            SHARES_OF_TEN.map(|tenths| {
                let share = tenths / 10f64.powi(decade);
                (share, self.sizes.size_exceeded_by(share))
            })
        });
        let last = largest.is_finite().then_some((0.0, largest));
        shares
            .chain(last)
            .map(|(share_above, size)| {
                let sojourn = size + self.delay(size);
                Point {
                    share_above,
                    load_above: 1.0 - self.sizes.partial_moment(1, size) / self.sizes.mean(),
                    size,
                    sojourn,
                    slowdown: sojourn / size,
                }
            })
            .collect()
    }

    fn slowdown_largest(&self) -> f64 {
        let (_, largest) = self.sizes.range();
        if largest.is_finite() {
            self.slowdown(largest)
        } else {
            self.slowdown_at_infinity
        }
    }

    /// (size, slowdown) of the worst size: the worst border, then golden sections.
    fn slowdown_max(&self, mesh: &Mesh) -> (f64, f64) {
        let (smallest, largest) = self.sizes.range();
        if smallest == 0.0 && self.of_none > 0.0 {
            return (0.0, f64::INFINITY);
        }
        let ends = [(largest, self.slowdown_largest())];
        let inside = mesh.borders.iter().map(|&size| (size, self.slowdown(size)));
        // A size that is worse only by rounding is not worse.
        let worst = |best: (f64, f64), other: (f64, f64)| {
            let worse = other.1 > best.1 * (1.0 + 1e-12);
            if worse { other } else { best }
        };
        let (size, slowdown) = inside.fold(ends[0], worst);
        if size == largest || self.sizes.atoms().is_some() {
            return (size, slowdown);
        }
        let place = mesh.borders.partition_point(|&border| border < size);
        let low = mesh.borders[place.saturating_sub(1)];
        let high = mesh.borders[(place + 1).min(mesh.borders.len() - 1)];
        worst((size, slowdown), self.highest_between(low, high))
    }

    fn highest_between(&self, mut low: f64, mut high: f64) -> (f64, f64) {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        for _ in 0..60 {
            let (left, right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
            if self.slowdown(left) > self.slowdown(right) {
                high = right;
            } else {
                low = left;
            }
        }
        let size = f64::midpoint(low, high);
        (size, self.slowdown(size))
    }
}

/// The buckets that a share of the jobs lies in and how much of it in each. Where there is a
/// density no share spans a border.
fn parts(share_below: f64, weight: f64, spans: bool) -> impl Iterator<Item = (usize, f64)> {
    let count = PERCENTILE_BUCKETS as f64;
    let place = |share: f64| ((share * count) as usize).min(PERCENTILE_BUCKETS - 1);
    let first = place(share_below);
    let last = if spans {
        place(share_below + weight)
    } else {
        first
    };
    (first..=last).map(move |bucket| {
        if first == last {
            return (bucket, weight);
        }
        let begin = share_below.max(bucket as f64 / count);
        let end = if bucket == last {
            share_below + weight
        } else {
            (bucket + 1) as f64 / count
        };
        (bucket, (end - begin).max(0.0))
    })
}
