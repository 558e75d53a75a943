//! The controller's decision: what the link must do, and the state of the uplink.

use serde::Serialize;
use std::fmt;

/// What the link must do until the next observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Release no more than this, in wire bits per second. A rate of
    /// [`UplinkConfig::rate_bps_max`](super::UplinkConfig) holds nothing back. `None`: no rate can be
    /// known, and the link uses slots.
    pub pacing_rate_bps: Option<u64>,
    /// The state of the uplink.
    pub state: State,
    /// The capacity of the bottleneck that is left for us, in wire bits per second.
    pub estimate_bps: Option<u64>,
    /// The confidence of the estimate, from 0 to 1. A paced uplink is [`State::Confident`] from 0.7 on.
    pub confidence: f64,
}

/// The state of the uplink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// No queue has been seen yet. Nothing is held back.
    #[default]
    Starting,
    /// There was enough to send for long, and no queue, so the path has no bottleneck. Nothing is
    /// held back.
    Open,
    /// A queue showed and its rate was measured. It is paced, and measured again.
    Searching,
    /// The measurements agree; the queue stands here.
    Confident,
    /// Others keep the queue standing whatever we do. Nothing is held back, so that each
    /// connection takes its fair share.
    Yielding,
    /// Our own interface is the bottleneck and its rate is stated.
    Local,
    /// No delay is known. The link uses slots.
    Blind,
}

impl State {
    /// The state in one word, as in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Open => "open",
            Self::Searching => "searching",
            Self::Confident => "confident",
            Self::Yielding => "yielding",
            Self::Local => "local",
            Self::Blind => "blind",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
