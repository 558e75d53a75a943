//! What is played: the link, its paths, what we send, and who else is there.

/// A link and everybody on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Rates in bits per second, each from a time in seconds on; the first from 0.
    pub rates: Vec<(f64, f64)>,
    /// What fits into the bottleneck's FIFO, in milliseconds at the first rate.
    pub buffer_ms: f64,
    /// The paths beyond the bottleneck; at least one.
    pub paths: Vec<Path>,
    /// From a time in seconds on, every path is longer by so many milliseconds.
    pub rtt_rise: Option<(f64, f64)>,
    /// What we have to send.
    pub demand: Demand,
    /// Who else sends through the same queue.
    pub cross: Vec<Cross>,
    /// The share of packets lost behind the bottleneck, whatever the load.
    pub loss: f64,
    /// The ratio of reported to real acknowledgements: 1 where the scaling to wire bytes is right.
    pub acknowledged_scale: f64,
    /// The length, in seconds.
    pub seconds: f64,
    /// The seed of everything random.
    pub seed: u64,
}

/// One peer's path, as a round trip without queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Propagation there and back, in milliseconds.
    pub rtt_ms: f64,
    /// Mean of the exponential noise on each round trip, in milliseconds.
    pub noise_ms: f64,
    /// Now and then (one in a hundred) a round trip takes this much longer, in milliseconds.
    pub spike_ms: f64,
    /// Acknowledgements come together, once every so many milliseconds.
    pub aggregation_ms: u32,
}

/// What we have to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// A number of connections that always have more to send.
    Backlogged {
        /// Connections.
        flows: usize,
    },
    /// Responses with sizes of a bounded Pareto distribution, Poisson arrivals, and a load that
    /// alternates (relative to the first rate; above 1 is overload).
    Responses {
        /// The load in every even period.
        high: f64,
        /// The load in every odd period.
        low: f64,
        /// The length of a period, in seconds.
        period_s: f64,
    },
}

/// Somebody else's traffic: a download, or a steady stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cross {
    /// Start and end, in seconds.
    pub from_s: f64,
    /// When it ends.
    pub to_s: f64,
    /// Its round trip without queues, in milliseconds.
    pub rtt_ms: f64,
    /// The rate of a steady stream, in bits per second; `None`: CUBIC with always more to send.
    pub rate_bps: Option<f64>,
}

/// Sizes of responses: bounded Pareto between these, in bytes, with this exponent; W1's are
/// similar.
const SIZE_MIN: f64 = 1_000.0;
const SIZE_MAX: f64 = 4_000_000.0;
const SIZE_ALPHA: f64 = 1.1;

impl Plan {
    /// A link of `rate_bps` with a FIFO of 100 ms, eight paths of 20 ms, and enough to send.
    pub fn new(rate_bps: f64, seconds: f64, seed: u64) -> Self {
        Self {
            rates: vec![(0.0, rate_bps)],
            buffer_ms: 100.0,
            paths: vec![
                Path {
                    rtt_ms: 20.0,
                    ..Path::default()
                };
                8
            ],
            rtt_rise: None,
            demand: Demand::Backlogged { flows: 16 },
            cross: Vec::new(),
            loss: 0.0,
            acknowledged_scale: 1.0,
            seconds,
            seed,
        }
    }

    /// The link's rate at a time, in bits per second.
    pub fn rate_bps_at(&self, now_s: f64) -> f64 {
        self.rates
            .iter()
            .rev()
            .find(|(from_s, _)| *from_s <= now_s)
            .map_or(1e6, |(_, bps)| *bps)
    }

    pub(super) fn buffer_bytes(&self) -> f64 {
        (self.buffer_ms * self.rate_bps_at(0.0) / 8000.0).max(4.0 * super::PACKET)
    }

    pub(super) fn rtt_rise_ms_at(&self, now_s: f64) -> f64 {
        self.rtt_rise
            .map_or(0.0, |(from_s, ms)| if now_s >= from_s { ms } else { 0.0 })
    }
}

impl Default for Path {
    fn default() -> Self {
        Self {
            rtt_ms: 20.0,
            noise_ms: 0.2,
            spike_ms: 0.0,
            aggregation_ms: 1,
        }
    }
}

impl Path {
    /// The noise of one round trip, from two numbers between 0 and 1.
    pub(super) fn noise_ms(&self, one: f64, other: f64) -> f64 {
        let spike_ms = if other < 0.01 { self.spike_ms } else { 0.0 };
        -libm::log(one) * self.noise_ms + spike_ms
    }
}

impl Cross {
    /// A CUBIC download.
    pub fn download(from_s: f64, to_s: f64, rtt_ms: f64) -> Self {
        Self {
            from_s,
            to_s,
            rtt_ms,
            rate_bps: None,
        }
    }

    pub(super) fn is_active(&self, now_s: f64) -> bool {
        (self.from_s..self.to_s).contains(&now_s)
    }
}

impl Demand {
    pub(super) fn load_at(&self, now_s: f64) -> Option<f64> {
        match *self {
            Self::Backlogged { .. } => None,
            Self::Responses {
                high,
                low,
                period_s,
            } => Some(if ((now_s / period_s) as u64).is_multiple_of(2) {
                high
            } else {
                low
            }),
        }
    }

    /// The mean of [`Self::size`].
    pub(super) fn mean_bytes(&self) -> f64 {
        let ratio = (SIZE_MIN / SIZE_MAX).powf(SIZE_ALPHA);
        let scale = SIZE_MIN.powf(SIZE_ALPHA) / (1.0 - ratio) * SIZE_ALPHA / (SIZE_ALPHA - 1.0);
        scale * (SIZE_MIN.powf(1.0 - SIZE_ALPHA) - SIZE_MAX.powf(1.0 - SIZE_ALPHA))
    }

    /// A size, from a number between 0 and 1.
    pub(super) fn size(&self, uniform: f64) -> f64 {
        let ratio = (SIZE_MIN / SIZE_MAX).powf(SIZE_ALPHA);
        SIZE_MIN / (1.0 - uniform * (1.0 - ratio)).powf(1.0 / SIZE_ALPHA)
    }
}
