//! The report of an emulated network, kept with every result. A run whose packets left late, or were
//! dropped for want of room, measured the emulator and not the servers.

use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::emulator::LaneCounts;

/// The largest lateness that is told apart: a minute.
const LATE_US_MAX: u64 = 60_000_000;

/// The report of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WanReport {
    /// The emulator.
    pub emulator: EmulatorKind,
    /// How late packets left. `None` with netem, which does not report it.
    pub lateness: Option<Lateness>,
    /// The paths of the groups.
    pub groups: Vec<GroupReport>,
    /// Packets that the devices dropped before the emulator could take them.
    pub device_drops: u64,
    /// Packets of no group, or that no device took. A correct bed has none.
    pub strays: u64,
    /// Its processor time, in seconds. netem's is part of the kernel's.
    pub cpu_s: f64,
}

/// The emulators.
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

/// The lateness measured so far.
#[derive(Debug)]
pub struct LatenessMeter(Histogram<u64>);

impl Default for LatenessMeter {
    /// No packets yet.
    fn default() -> Self {
        let histogram = Histogram::new_with_max(LATE_US_MAX, 3);
        Self(histogram.expect("invariant: the range is above 2 and 3 digits are allowed"))
    }
}

impl LatenessMeter {
    /// Records a packet that left so many nanoseconds late.
    pub fn record(&mut self, late_ns: u64) {
        self.0.saturating_record(late_ns / 1000);
    }

    /// The figures so far.
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
