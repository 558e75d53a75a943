//! Finding out the uplink's rate while serving: the eyes and hands of `shortline_sched::uplink`, which
//! decides (mode `auto`).
//!
//! ```text
//!  device's counters, its qdisc's rate --.
//!  TCP_INFO of who just sent -- sample --+--> Observation --> Controller --> Decision --> the pacer
//!  what waits in the queue --------------'        every LOOK_NS while anything is sent
//! ```
//!
//! Nothing is asked while nothing is sent, and never more than `sample` bounds.

pub mod counted;
mod paths;
mod round_trip;
mod sample;
mod shared;

use serde::Serialize;
use shortline_sched::units::Rate;
use shortline_sched::uplink::{
    Controller, Decision, Limit, LocalQueue, Observation, State, UplinkConfig,
};

use super::device::Reading;
use crate::bands::qdisc::Shaper;
use crate::connections::ConnectionId;
use crate::regulator::Pacing;

pub use sample::Recent;
use sample::{Sample, Sampler};

/// How often the uplink is looked at while anything is sent.
pub const LOOK_NS: u64 = 10_000_000;

/// Looks further apart than this do not belong together: between them either nothing was sent, or the
/// process did not run, and then the link was idle for want of us and not of capacity.
const GAP_NS_MAX: u64 = 5 * LOOK_NS;
/// What the kernel states of the device is asked again after this time: people change it.
const STATED_NS: u64 = 5_000_000_000;

/// What the link's parts say at a look.
pub struct Facts {
    /// When, in nanoseconds.
    pub now_ns: u64,
    /// Wire bytes charged since the start.
    pub charged_bytes_total: u64,
    /// What keeps more from being sent.
    pub limited_by: Limit,
    /// Who had grants since the last look.
    pub recent: Recent,
    /// The device's counters, if it is known.
    pub reading: Option<Reading>,
}

/// What was found out, for people and metrics.
#[derive(Clone, Debug, Serialize)]
pub struct Discovered {
    /// What the uplink is taken for, in one word.
    pub state: State,
    /// The rate found, in bits per second, if one was.
    pub estimate_bps: Option<u64>,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// The delay that clients share, in milliseconds, at the last look that saw any.
    pub shared_delay_ms: Option<f64>,
    /// The paths behind it.
    pub paths: u32,
    /// What limits the interface as the kernel states it: a qdisc's kind, or "line".
    pub stated_by: Option<String>,
    /// The rate that it states, in bits per second.
    pub stated_bps: Option<u64>,
    /// Times that the state has changed.
    pub changes_total: u64,
}

/// The controller and what it goes by.
pub struct Discovery {
    controller: Controller,
    rate_bps_max: u64,
    sampler: Sampler,
    shaper: Option<Shaper>,
    /// When it was read.
    stated_ns: Option<u64>,
    charged_bytes_total: u64,
    reading: Option<Reading>,
    decision: Decision,
    seen: Sample,
    shared_delay_ns: Option<u64>,
    changes_total: u64,
}

impl Discovery {
    /// One that knows nothing yet, and never paces below `rate_min`.
    pub fn new(rate_min: Rate) -> Self {
        let config = UplinkConfig {
            rate_bps_min: rate_min.bps(),
            gap_ns_max: GAP_NS_MAX,
            ..UplinkConfig::default()
        };
        let rate_bps_max = config.rate_bps_max;
        let controller = Controller::new(config);
        Self {
            decision: controller.decision(),
            controller,
            rate_bps_max,
            sampler: Sampler::new(),
            shaper: None,
            stated_ns: None,
            charged_bytes_total: 0,
            reading: None,
            seen: Sample::default(),
            shared_delay_ns: None,
            changes_total: 0,
        }
    }

    /// Whether the kernel has to be asked what it states for the device: it never was, or not lately.
    pub fn is_shaper_stale(&self, now_ns: u64) -> bool {
        let is_old = |stated_ns| now_ns.saturating_sub(stated_ns) >= STATED_NS;
        self.stated_ns.is_none_or(is_old)
    }

    /// The rate that the kernel states for the device now.
    pub fn set_shaper(&mut self, shaper: Option<Shaper>, now_ns: u64) {
        self.stated_ns = Some(now_ns);
        if shaper != self.shaper {
            match &shaper {
                Some(Shaper { rate, kind }) => {
                    tracing::info!(rate_bps = rate.bps(), kind, "the interface states its rate");
                }
                None => tracing::info!("the interface states no rate"),
            }
            self.shaper = shaper;
        }
    }

    /// Nothing is sent: no connection is watched any more. Which ones were.
    pub fn rest(&mut self) -> Vec<ConnectionId> {
        self.sampler.rest();
        self.sampler.take_let_go()
    }

    /// Looks, and says how grants are to follow, and which connections are watched no more.
    pub fn look(&mut self, facts: Facts) -> (Pacing, Vec<ConnectionId>) {
        let sent_bytes = self.sent_bytes(&facts);
        self.seen = self.sampler.look(facts.recent, sent_bytes, facts.now_ns);
        self.shared_delay_ns = self.seen.shared_delay_ns.or(self.shared_delay_ns);
        let before = self.decision.state;
        self.decision = self.controller.observe(&Observation {
            now_ns: facts.now_ns,
            sent_wire_bytes: sent_bytes,
            delivered_wire_bytes: self.seen.delivered_bytes,
            shared_delay_ns: self.seen.shared_delay_ns,
            rtt_ns: self.seen.rtt_ns,
            paths: self.seen.paths,
            lost_wire_bytes: self.seen.lost_bytes,
            limited_by: match facts.limited_by {
                Limit::Application if self.seen.under_way > 0 => Limit::Network,
                limit => limit,
            },
            local: facts.reading.map(|reading| LocalQueue {
                backlog_bytes: reading.backlog_bytes,
                rate_bps: self.shaper.as_ref().map(|shaper| shaper.rate.bps()),
            }),
        });
        if self.decision.state != before {
            self.changes_total += 1;
            self.log(before);
        }
        (self.pacing(), self.sampler.take_let_go())
    }

    /// How grants follow what was found out so far.
    fn pacing(&self) -> Pacing {
        match self.decision.pacing_rate_bps {
            None => Pacing::Slots,
            Some(rate_bps) if rate_bps >= self.rate_bps_max => match self.decision.state {
                State::Yielding => Pacing::Few,
                State::Starting => Pacing::Unknown,
                _ => Pacing::Free,
            },
            Some(rate_bps) => Pacing::Rate(Rate::from_bps(rate_bps)),
        }
    }

    /// The state now.
    pub fn discovered(&self) -> Discovered {
        Discovered {
            state: self.decision.state,
            estimate_bps: self.decision.estimate_bps,
            confidence: self.decision.confidence,
            shared_delay_ms: self.shared_delay_ns.map(|delay_ns| delay_ns as f64 / 1e6),
            paths: self.seen.paths,
            stated_by: self.shaper.as_ref().map(|shaper| shaper.kind.clone()),
            stated_bps: self.shaper.as_ref().map(|shaper| shaper.rate.bps()),
            changes_total: self.changes_total,
        }
    }

    /// What left since the last look: the device's count, which has everything, else what was
    /// charged.
    fn sent_bytes(&mut self, facts: &Facts) -> u64 {
        let charged = facts
            .charged_bytes_total
            .saturating_sub(self.charged_bytes_total);
        self.charged_bytes_total = facts.charged_bytes_total;
        let left = |reading: Reading| reading.enqueued_bytes.saturating_sub(reading.backlog_bytes);
        let sent = match (self.reading, facts.reading) {
            (Some(before), Some(now)) => left(now).saturating_sub(left(before)),
            _ => charged,
        };
        self.reading = facts.reading;
        sent
    }

    fn log(&self, before: State) {
        let Discovered {
            state,
            estimate_bps,
            confidence,
            shared_delay_ms,
            ..
        } = self.discovered();
        tracing::info!(
            from = before.name(),
            to = state.name(),
            estimate_bps,
            confidence,
            shared_delay_ms,
            "the uplink"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It once was for the first time five seconds after the program's start.
    #[test]
    fn the_stated_rate_is_read_at_once_and_then_every_few_seconds() {
        let mut discovery = Discovery::new(Rate::from_bps(100_000));
        assert!(discovery.is_shaper_stale(0));
        assert!(discovery.is_shaper_stale(1));
        discovery.set_shaper(None, 1);
        assert!(!discovery.is_shaper_stale(STATED_NS));
        assert!(discovery.is_shaper_stale(STATED_NS + 1));
    }
}
