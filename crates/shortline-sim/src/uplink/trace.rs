//! What happened on the link, one sample every ten milliseconds.

use shortline_sched::uplink::{Limit, State};

/// The link over ten milliseconds, as only the plant knows it, and what the controller made of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The end of the ten milliseconds, in seconds.
    pub at_s: f64,
    /// The link's rate, in bits per second.
    pub link_bps: f64,
    /// What the controller decided; `None`: nothing is held back.
    pub paced_bps: Option<f64>,
    /// The controller's estimate.
    pub estimate_bps: Option<f64>,
    /// Its confidence.
    pub confidence: f64,
    /// Its state.
    pub state: State,
    /// What waits in the bottleneck, in milliseconds at the link's rate.
    pub queue_ms: f64,
    /// The delay that the controller was told.
    pub seen_delay_ms: Option<f64>,
    /// What came out of the bottleneck, ours and the others', in bits per second.
    pub ours_bps: f64,
    /// The others'.
    pub cross_bps: f64,
    /// What limited us.
    pub limited_by: Limit,
}

/// All samples of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    samples: Vec<Sample>,
}

impl Trace {
    pub(super) fn push(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// All samples, in their order.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The samples from one time to another, in seconds.
    pub fn between(&self, from_s: f64, to_s: f64) -> impl Iterator<Item = &Sample> {
        self.samples
            .iter()
            .filter(move |sample| sample.at_s > from_s && sample.at_s <= to_s)
    }

    /// The mean of a value of each sample in a span of time; 0 if the span is empty.
    pub fn mean(&self, from_s: f64, to_s: f64, of: impl Fn(&Sample) -> f64) -> f64 {
        let (sum, count) = self
            .between(from_s, to_s)
            .fold((0.0, 0u32), |(sum, count), sample| {
                (sum + of(sample), count + 1)
            });
        if count == 0 {
            0.0
        } else {
            sum / f64::from(count)
        }
    }

    /// The first time from `from_s` on at which something holds, in seconds.
    pub fn first(&self, from_s: f64, holds: impl Fn(&Sample) -> bool) -> Option<f64> {
        self.samples
            .iter()
            .find(|sample| sample.at_s > from_s && holds(sample))
            .map(|sample| sample.at_s)
    }
}
