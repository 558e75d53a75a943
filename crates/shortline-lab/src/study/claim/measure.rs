//! The figure that a claim is about, of one run or of one run relative to another.

use serde::Deserialize;

use crate::study::figures::RunFigures;

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
    /// Mean response time of the largest 1 % over that of the other's.
    LargestRatio,
    /// Mean response time of requests for the very largest file over that of the other's.
    BiggestRatio,
    /// Bytes that the link carried (in the overloads, if there are any) over the other's.
    BytesRatio,
    /// Most connections at once over the other's.
    ConnectionsRatio,
    /// Requests that never completed over the other's.
    IncompleteRatio,
    /// Per cent of requests whose starvation stretch is above 1.
    StarvedPercent,
    /// The starvation stretch of the largest request.
    LargestStretch,
    /// The mean response time over the optimum's.
    OverOptimum,
    /// SYNs that the first server's system dropped.
    SynDrops,
    /// Requests that the generator started too late against the first server.
    LateStarts,
    /// When it dropped the first SYN, in seconds. `None` if it dropped none.
    FirstSynDrop,
    /// How long until the queue was short again after the link got slower or others left, in seconds.
    QueueBack,
    /// How long until the link was used again after it got faster, in seconds.
    UsedAgain,
    /// Bytes that the neighbour's clients received, over those beside the other server.
    NeighbourBytes,
    /// How many times shorter the mean response time of the neighbour's finished requests is.
    NeighbourGain,
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
            Self::LargestRatio => "mean response time of the largest 1 %, ratio",
            Self::BiggestRatio => "mean response time of the very largest file, ratio",
            Self::BytesRatio => "bytes carried, ratio",
            Self::ConnectionsRatio => "most connections at once, ratio",
            Self::IncompleteRatio => "requests that never completed, ratio",
            Self::StarvedPercent => "requests with a starvation stretch above 1, per cent",
            Self::LargestStretch => "starvation stretch of the largest request",
            Self::OverOptimum => "mean response time over the optimum's",
            Self::SynDrops => "SYNs dropped",
            Self::LateStarts => "requests started late",
            Self::FirstSynDrop => "the first SYN dropped, after seconds",
            Self::QueueBack => "seconds until the queue is short again",
            Self::UsedAgain => "seconds until 95 % of the link are used again",
            Self::NeighbourBytes => "bytes of the neighbour's downloads, ratio",
            Self::NeighbourGain => {
                "mean response time of the neighbour's finished requests, times shorter"
            }
        }
    }

    /// The figure of a group of clients. `None` if it is not kept by group.
    pub(super) fn value_in(self, group: &str, of: &RunFigures, over: &RunFigures) -> Option<f64> {
        let mean = |run: &RunFigures| run.group_mean_finished_s(group);
        match self {
            Self::FinishedGain => ratio(mean(over)?, mean(of)?),
            _ => None,
        }
    }

    pub(super) fn value(self, of: &RunFigures, over: &RunFigures) -> Option<f64> {
        let mean = |run: &RunFigures| run.summary.response_time.mean;
        let variance = |run: &RunFigures| run.summary.response_time.variance;
        let failed = |run: &RunFigures| (run.summary.requests - run.summary.finished) as f64;
        let stretch = || {
            of.stretch
                .iter()
                .find(|stretch| stretch.over == over.server)
        };
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
            Self::LargestRatio => ratio(
                of.summary.largest.response_time.mean,
                over.summary.largest.response_time.mean,
            ),
            Self::BiggestRatio => ratio(of.biggest_mean_s, over.biggest_mean_s),
            Self::BytesRatio => ratio(of.carried_bytes(), over.carried_bytes()),
            Self::ConnectionsRatio => ratio(of.connections_max as f64, over.connections_max as f64),
            Self::IncompleteRatio => ratio(failed(of), failed(over)),
            Self::StarvedPercent => Some(100.0 * stretch()?.share_above_1),
            Self::LargestStretch => Some(stretch()?.largest),
            Self::OverOptimum => of.over_optimum,
            Self::SynDrops => of.seen.map(|seen| seen.syn_drops),
            Self::LateStarts => Some(of.summary.late_starts as f64),
            Self::FirstSynDrop => of.seen?.first_syn_drop_s,
            Self::QueueBack => of.course?.queue_back_s,
            Self::UsedAgain => of.course?.used_again_s,
            Self::NeighbourBytes => {
                let bytes = |run: &RunFigures| Some(run.course?.neighbour_bytes? as f64);
                ratio(bytes(of)?, bytes(over)?)
            }
            Self::NeighbourGain => {
                let mean_s = |run: &RunFigures| run.course?.neighbour_mean_s;
                ratio(mean_s(over)?, mean_s(of)?)
            }
        }
    }
}

fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}
