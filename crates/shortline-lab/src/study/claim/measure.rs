//! The figure that a claim is about, of one run or of one run relative to another.

use serde::Deserialize;

use super::link::Requests;
use crate::study::figures::RunFigures;
use crate::study::stats::Spread;
use crate::study::verdict::{Better, Want};

/// All percentiles of size.
const ALL_SIZES: (f64, f64) = (0.0, 100.0);

/// A figure to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// How many times shorter the mean response time is. Failed requests count with the time until they
    /// failed (003, appendix).
    MeanGain,
    /// The same for finished requests alone (000, 4; SURGE).
    FinishedGain,
    /// The same for requests that finished before the last one arrived.
    MeanGainInTime,
    /// How many times shorter the mean time to the first byte is.
    FirstByteGain,
    /// How many times smaller the mean slowdown is.
    SlowdownGain,
    /// How many times smaller the variance of response times is.
    VarianceGain,
    /// Per cent of the 200 buckets by size whose mean response time is shorter (003, Fig. 5).
    BucketsGaining,
    /// How many times shorter the mean of the bucket that gains least is.
    BucketGainLeast,
    /// How many times smaller the variance in a bucket is: the median over the buckets (003, Fig. 6).
    BucketVarianceGain,
    /// The tenth percentile of it: nine buckets in ten gain more.
    BucketVarianceGainLow,
    /// The ninetieth.
    BucketVarianceGainHigh,
    /// Mean response time of the largest 1 % over that of the other's.
    LargestRatio,
    /// The same of those that finished.
    LargestFinishedRatio,
    /// Mean response time of requests for the very largest file over that of the other's.
    BiggestRatio,
    /// Bytes that the link carried (in the overloads, if there are any) over the other's.
    BytesRatio,
    /// Bytes of bodies that clients received over the other's.
    BodiesRatio,
    /// Requests finished over the other's.
    RequestsRatio,
    /// Most connections at once, as the server has them, over the other's.
    ConnectionsRatio,
    /// Requests that never completed over the other's (over one, if the other has none).
    IncompleteRatio,
    /// Per cent of requests whose starvation stretch is above 1.
    StarvedPercent,
    /// The starvation stretch of the largest request.
    LargestStretch,
    /// The mean response time of finished requests, in seconds.
    FinishedMean,
    /// The mean response time of the largest 1 %, in seconds.
    LargestMean,
    /// The mean response time of the requests for the very largest file, in seconds.
    BiggestMean,
    /// The mean response time of what arrived around a second and finished before the last arrival.
    MeanAt,
    /// The same of the third quarter of the arrivals over the first quarter's.
    Growth,
    /// The mean response time over the optimum's.
    OverOptimum,
    /// Per cent of requests that never completed.
    IncompletePercent,
    /// SYNs that the first server's system dropped.
    SynDrops,
    /// The same for each hundred requests.
    SynDropPercent,
    /// When it dropped the first SYN, in seconds.
    FirstSynDrop,
    /// Most connections at once, as the server has them.
    ConnectionsMost,
    /// The server's connections in a second.
    ConnectionsAt,
    /// The second in which the server first had so many connections.
    ConnectionsReach,
    /// Requests that the generator started too late against the first server.
    LateStarts,
    /// How long until the queue was short again after the link got slower or others left, in seconds.
    QueueBack,
    /// How long until the link was used again after it got faster, in seconds.
    UsedAgain,
    /// Bytes that the neighbour's clients received, over those beside the other server.
    NeighbourBytes,
    /// How many times shorter the mean response time of the neighbour's finished requests is.
    NeighbourGain,
}

/// The runs that are compared, and what of them.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// The first run.
    pub of: &'a RunFigures,
    /// The second. `None` for a figure of one run.
    pub over: Option<&'a RunFigures>,
    /// Whose requests count.
    pub requests: &'a Requests,
    /// The second, or the number of connections, of those measures that have one.
    pub number: Option<f64>,
    /// What is wanted. It decides how long a run must be for what did not come to pass in it.
    pub want: Want,
}

impl Measure {
    /// The measure in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::MeanGain => "mean response time of all requests, times shorter",
            Self::FinishedGain => "mean response time of finished requests, times shorter",
            Self::MeanGainInTime => {
                "mean response time of what finished before the last arrival, times shorter"
            }
            Self::FirstByteGain => "mean time to the first byte, times shorter",
            Self::SlowdownGain => "mean slowdown, times smaller",
            Self::VarianceGain => "variance of response times, times smaller",
            Self::BucketsGaining => "buckets by size with a shorter mean, per cent",
            Self::BucketGainLeast => "mean of the bucket by size that gains least, times shorter",
            Self::BucketVarianceGain => {
                "variance in the buckets by size, times smaller, the median"
            }
            Self::BucketVarianceGainLow => {
                "variance in the buckets by size, times smaller, the tenth percentile"
            }
            Self::BucketVarianceGainHigh => {
                "variance in the buckets by size, times smaller, the ninetieth percentile"
            }
            Self::LargestRatio => "mean response time of the largest 1 %, ratio",
            Self::LargestFinishedRatio => {
                "mean response time of the largest 1 % that finished, ratio"
            }
            Self::BiggestRatio => "mean response time of the very largest file, ratio",
            Self::BytesRatio => "bytes carried, ratio",
            Self::BodiesRatio => "bytes of bodies received, ratio",
            Self::RequestsRatio => "requests finished, ratio",
            Self::ConnectionsRatio => "most connections at once at the server, ratio",
            Self::IncompleteRatio => "requests that never completed, ratio",
            Self::StarvedPercent => "requests with a starvation stretch above 1, per cent",
            Self::LargestStretch => "starvation stretch of the largest request",
            Self::FinishedMean => "mean response time of finished requests, seconds",
            Self::LargestMean => "mean response time of the largest 1 %, seconds",
            Self::BiggestMean => "mean response time of the very largest file, seconds",
            Self::MeanAt => "mean response time of what arrived then, seconds",
            Self::Growth => "mean response time of the third quarter's arrivals over the first's",
            Self::OverOptimum => "mean response time over the optimum's",
            Self::IncompletePercent => "requests that never completed, per cent",
            Self::SynDrops => "SYNs dropped",
            Self::SynDropPercent => "SYNs dropped for each hundred requests",
            Self::FirstSynDrop => "the first SYN dropped, after seconds",
            Self::ConnectionsMost => "most connections at once at the server",
            Self::ConnectionsAt => "connections at the server then",
            Self::ConnectionsReach => "that many connections at the server, after seconds",
            Self::LateStarts => "requests started late",
            Self::QueueBack => "seconds until the queue is short again",
            Self::UsedAgain => "seconds until 95 % of the link are used again",
            Self::NeighbourBytes => "bytes of the neighbour's downloads, ratio",
            Self::NeighbourGain => {
                "mean response time of the neighbour's finished requests, times shorter"
            }
        }
    }

    /// Whether it is of one run and not of two.
    pub fn is_of_one(self) -> bool {
        use Measure::{
            BiggestMean, ConnectionsAt, ConnectionsMost, ConnectionsReach, FinishedMean,
            FirstSynDrop, Growth, IncompletePercent, LargestMean, LateStarts, MeanAt, OverOptimum,
            QueueBack, SynDropPercent, SynDrops, UsedAgain,
        };
        let means = matches!(
            self,
            FinishedMean | LargestMean | BiggestMean | MeanAt | Growth | OverOptimum
        );
        let connections = matches!(self, ConnectionsMost | ConnectionsAt | ConnectionsReach);
        let drops = matches!(
            self,
            SynDrops | SynDropPercent | FirstSynDrop | IncompletePercent
        );
        means || connections || drops || matches!(self, LateStarts | QueueBack | UsedAgain)
    }

    /// The better side of a range, unless the check says another.
    pub fn better(self) -> Better {
        use Measure::{
            BodiesRatio, BucketGainLeast, BucketVarianceGain, BucketVarianceGainHigh,
            BucketVarianceGainLow, BucketsGaining, BytesRatio, ConnectionsReach, FinishedGain,
            FirstByteGain, FirstSynDrop, MeanGain, MeanGainInTime, NeighbourBytes, NeighbourGain,
            RequestsRatio, SlowdownGain, VarianceGain,
        };
        let gains = matches!(
            self,
            MeanGain
                | FinishedGain
                | MeanGainInTime
                | FirstByteGain
                | SlowdownGain
                | VarianceGain
                | NeighbourGain
        );
        let buckets = matches!(
            self,
            BucketsGaining
                | BucketGainLeast
                | BucketVarianceGain
                | BucketVarianceGainLow
                | BucketVarianceGainHigh
        );
        let carried = matches!(
            self,
            BytesRatio | BodiesRatio | RequestsRatio | NeighbourBytes
        );
        match gains || buckets || carried || matches!(self, FirstSynDrop | ConnectionsReach) {
            true => Better::More,
            false => Better::Less,
        }
    }

    /// Whether it is kept for these requests alone.
    pub fn takes(self, requests: &Requests) -> bool {
        match requests {
            Requests::All => true,
            Requests::Group(_) | Requests::GroupOver(..) => self == Self::FinishedGain,
            Requests::Bytes(..) => self == Self::MeanGain,
            Requests::Percentiles(..) => matches!(
                self,
                Self::MeanGain
                    | Self::BucketsGaining
                    | Self::BucketGainLeast
                    | Self::BucketVarianceGain
                    | Self::BucketVarianceGainLow
                    | Self::BucketVarianceGainHigh
            ),
        }
    }

    /// The key of the number that it needs beside it. `None` if it needs none.
    pub fn number_key(self) -> Option<&'static str> {
        match self {
            Self::MeanAt | Self::ConnectionsAt => Some("second"),
            Self::ConnectionsReach => Some("connections"),
            _ => None,
        }
    }

    /// The figure. `None` if it was not measured, or the run was too short for it.
    pub fn value(self, sides: &Sides<'_>) -> Option<f64> {
        match (sides.requests, sides.over) {
            (Requests::Percentiles(from, to), Some(over)) => {
                self.by_percentile(sides.of, over, (*from, *to))
            }
            (Requests::Bytes(from, to), Some(over)) => {
                let mean = |run: &RunFigures| run.by_size.mean_of_sizes((*from, *to));
                ratio(mean(over)?, mean(sides.of)?)
            }
            (Requests::Group(group), Some(over)) => group_gain(group, sides.of, over),
            (Requests::GroupOver(group, other), Some(over)) => {
                Some(group_gain(group, sides.of, over)? / group_gain(other, sides.of, over)?)
            }
            (_, Some(over)) if !self.is_of_one() => self.of_two(sides.of, over),
            (_, None) if !self.is_of_one() => None,
            _ => self.of_one(sides),
        }
    }

    fn of_two(self, of: &RunFigures, over: &RunFigures) -> Option<f64> {
        let variance = |run: &RunFigures| run.summary.response_time.variance;
        let mean = |run: &RunFigures| run.summary.response_time.mean;
        let failed = |run: &RunFigures| (run.summary.requests - run.summary.finished) as f64;
        let stretch = || {
            of.stretch
                .as_ref()
                .filter(|stretch| stretch.over == over.server)
        };
        let connections = |run: &RunFigures| Some(run.seen?.connections_max);
        match self {
            Self::MeanGain => ratio(mean(over), mean(of)),
            Self::FinishedGain => ratio(
                over.summary.response_time_mean_finished_s?,
                of.summary.response_time_mean_finished_s?,
            ),
            Self::MeanGainInTime => ratio(over.mean_in_time_s?, of.mean_in_time_s?),
            Self::FirstByteGain => {
                let first_byte = |run: &RunFigures| Some(run.summary.first_byte?.mean);
                ratio(first_byte(over)?, first_byte(of)?)
            }
            Self::SlowdownGain => ratio(over.summary.slowdown?.mean, of.summary.slowdown?.mean),
            Self::VarianceGain => ratio(variance(over), variance(of)),
            Self::LargestRatio => ratio(largest_s(of), largest_s(over)),
            Self::LargestFinishedRatio => {
                let mean = |run: &RunFigures| run.summary.largest.response_time_mean_finished_s;
                ratio(mean(of)?, mean(over)?)
            }
            Self::BiggestRatio => ratio(of.biggest_mean_s, over.biggest_mean_s),
            Self::BytesRatio => ratio(of.carried_bytes(), over.carried_bytes()),
            Self::BodiesRatio => ratio(
                of.summary.received_bytes as f64,
                over.summary.received_bytes as f64,
            ),
            Self::RequestsRatio => ratio(of.summary.finished as f64, over.summary.finished as f64),
            Self::ConnectionsRatio => ratio(connections(of)?, connections(over)?),
            Self::IncompleteRatio if failed(of) == 0.0 && failed(over) == 0.0 => Some(1.0),
            Self::IncompleteRatio => ratio(failed(of), failed(over).max(1.0)),
            Self::StarvedPercent => Some(100.0 * stretch()?.share_above_1),
            Self::LargestStretch => Some(stretch()?.largest),
            Self::NeighbourBytes => {
                let bytes = |run: &RunFigures| Some(run.course?.neighbour_bytes? as f64);
                ratio(bytes(of)?, bytes(over)?)
            }
            Self::NeighbourGain => {
                let mean_s = |run: &RunFigures| run.course?.neighbour_mean_s;
                ratio(mean_s(over)?, mean_s(of)?)
            }
            _ => self.by_percentile(of, over, ALL_SIZES),
        }
    }

    fn by_percentile(self, of: &RunFigures, over: &RunFigures, sizes: (f64, f64)) -> Option<f64> {
        let gains = || of.by_size.gains(&over.by_size, sizes);
        let variances = |percentile: f64| {
            let gains = of.by_size.variance_gains(&over.by_size, sizes);
            at_percentile(gains, percentile)
        };
        match self {
            Self::MeanGain => {
                let mean = |run: &RunFigures| run.by_size.mean_between(sizes);
                ratio(mean(over)?, mean(of)?)
            }
            Self::BucketsGaining => {
                let gains = gains();
                let gaining = gains.iter().filter(|gain| **gain > 1.0).count();
                (!gains.is_empty()).then(|| 100.0 * gaining as f64 / gains.len() as f64)
            }
            Self::BucketGainLeast => Some(Spread::of(gains())?.low),
            Self::BucketVarianceGain => variances(50.0),
            Self::BucketVarianceGainLow => variances(10.0),
            Self::BucketVarianceGainHigh => variances(90.0),
            _ => None,
        }
    }

    fn of_one(self, sides: &Sides<'_>) -> Option<f64> {
        let of = sides.of;
        let requests = of.summary.requests as f64;
        match self {
            Self::FinishedMean => of.summary.response_time_mean_finished_s,
            Self::LargestMean => Some(largest_s(of)),
            Self::BiggestMean => Some(of.biggest_mean_s),
            Self::MeanAt => of.by_size.mean_around(sides.number?),
            Self::Growth => of.by_size.growth(),
            Self::OverOptimum => of.over_optimum,
            Self::IncompletePercent => {
                Some(100.0 * (requests - of.summary.finished as f64) / requests)
            }
            Self::SynDrops => of.seen.map(|seen| seen.syn_drops),
            Self::SynDropPercent => of.seen.map(|seen| 100.0 * seen.syn_drops / requests),
            Self::FirstSynDrop => {
                let seen = of.seen?;
                seen.first_syn_drop_s.or_else(|| sides.never(seen.lasted_s))
            }
            Self::ConnectionsMost => of.seen.map(|seen| seen.connections_max),
            Self::ConnectionsAt => of.by_size.connections_at(sides.number?),
            Self::ConnectionsReach => {
                let (first_s, lasted_s) = of.by_size.connections_reach(sides.number?);
                first_s.or_else(|| sides.never(lasted_s))
            }
            Self::LateStarts => Some(of.summary.late_starts as f64),
            Self::QueueBack => of.course?.queue_back_s,
            Self::UsedAgain => of.course?.used_again_s,
            _ => None,
        }
    }
}

impl Sides<'_> {
    /// The time of what did not come to pass while the run lasted. `None` if it may still have come in time.
    fn never(&self, lasted_s: f64) -> Option<f64> {
        (lasted_s >= self.want.last_threshold()).then_some(lasted_s)
    }
}

fn largest_s(run: &RunFigures) -> f64 {
    run.summary.largest.response_time.mean
}

/// A run without groups is that of one group alone.
fn group_gain(group: &str, of: &RunFigures, over: &RunFigures) -> Option<f64> {
    let mean = |run: &RunFigures| match run.groups.is_empty() {
        true => run.summary.response_time_mean_finished_s,
        false => run.group_mean_finished_s(group),
    };
    ratio(mean(over)?, of.group_mean_finished_s(group)?)
}

fn at_percentile(mut values: Vec<f64>, percentile: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    values
        .get((percentile / 100.0 * last as f64).round() as usize)
        .copied()
}

fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

#[cfg(test)]
mod tests;
