//! What an emulated network did, kept with every result: a run whose packets left late, or were
//! dropped for want of room, measured the emulator and not the servers.

use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::emulator::LaneCounts;

/// A packet more than a minute late says as much as one of an hour.
const LATE_US_MAX: u64 = 60_000_000;

/// What it did in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WanReport {
    /// What emulated.
    pub emulator: EmulatorKind,
    /// How late packets left; not known of netem.
    pub lateness: Option<Lateness>,
    /// What each group's path did.
    pub groups: Vec<GroupReport>,
    /// Packets that the devices dropped before the emulator could take them.
    pub device_drops: u64,
    /// Packets of nobody's group, or that no device took: none in a bed that is right.
    pub strays: u64,
    /// Processor time it took, in seconds; netem's is the kernel's.
    pub cpu_s: f64,
}

/// Which emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmulatorKind {
    /// Ours, between two TUN devices.
    Tun,
    /// The kernel's.
    Netem,
}

/// How long after their time packets left, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// The median.
    pub p50_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The latest packet's.
    pub max_us: u64,
}

/// One group's path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupReport {
    /// The group.
    pub name: String,
    /// Towards its clients.
    pub down: LaneCounts,
    /// Towards the server.
    pub up: LaneCounts,
}

impl fmt::Display for WanReport {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes = || self.groups.iter().flat_map(|group| [group.down, group.up]);
        let sum = |what: fn(LaneCounts) -> u64| lanes().map(what).sum::<u64>();
        let kind = match self.emulator {
            EmulatorKind::Tun => "user-space emulator",
            EmulatorKind::Netem => "netem",
        };
        let (offered, lost) = (sum(|lane| lane.offered), sum(|lane| lane.lost));
        let dropped = sum(|lane| lane.dropped) + self.device_drops + self.strays;
        write!(f, "{kind}: {offered} packets, {lost} lost as asked")?;
        write!(f, ", {dropped} dropped for want of room")?;
        if let Some(Lateness {
            p50_us,
            p99_us,
            max_us,
        }) = self.lateness
        {
            write!(f, "; late by {p50_us} us (p50), {p99_us} us (p99)")?;
            write!(f, ", {max_us} us at most")?;
        }
        Ok(())
    }
}

/// Lateness as it is measured.
#[derive(Debug)]
pub struct LatenessMeter(Histogram<u64>);

impl Default for LatenessMeter {
    /// Nothing measured yet.
    fn default() -> Self {
        let histogram = Histogram::new_with_max(LATE_US_MAX, 3);
        Self(histogram.expect("invariant: the range is above 2 and 3 digits are allowed"))
    }
}

impl LatenessMeter {
    /// A packet left so many nanoseconds late.
    pub fn record(&mut self, late_ns: u64) {
        self.0.saturating_record(late_ns / 1000);
    }

    /// So far.
    pub fn lateness(&self) -> Lateness {
        Lateness {
            p50_us: self.0.value_at_quantile(0.5),
            p99_us: self.0.value_at_quantile(0.99),
            max_us: self.0.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_read_off_its_histogram() {
        let mut meter = LatenessMeter::default();
        for late_us in 1..=100 {
            meter.record(late_us * 1000);
        }
        let lateness = meter.lateness();
        assert_eq!(
            (lateness.p50_us, lateness.p99_us, lateness.max_us),
            (50, 99, 100)
        );
        meter.record(u64::MAX);
        assert!(meter.lateness().max_us >= LATE_US_MAX);
    }

    #[test]
    fn the_line_adds_up_all_paths() {
        let lane = |lost, dropped| LaneCounts {
            offered: 10,
            lost,
            dropped,
            bytes: 0,
        };
        let group = |name: &str| GroupReport {
            name: name.into(),
            down: lane(1, 2),
            up: lane(3, 0),
        };
        let report = WanReport {
            emulator: EmulatorKind::Tun,
            lateness: Some(Lateness {
                p50_us: 5,
                p99_us: 70,
                max_us: 900,
            }),
            groups: vec![group("near"), group("far")],
            device_drops: 1,
            strays: 0,
            cpu_s: 0.1,
        };
        assert_eq!(
            report.to_string(),
            "user-space emulator: 40 packets, 8 lost as asked, 5 dropped for want of room; \
             late by 5 us (p50), 70 us (p99), 900 us at most"
        );
    }
}
