//! A point of an experiment: everything that a run depends on, except the server and the seed.
//!
//! Points are data, kept in `plan.json` with the results, so that a later run knows whether it would
//! repeat a kept one.
#![deny(clippy::disallowed_methods)]

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_load::workload::{LoadPhase, PageFiles, Schedule, SiteFiles, SiteName};
use shortline_sched::units::Rate;
use shortline_sim::wire::WireModel;

use super::course::Course;
use shortline_testbed::bed::Setup as Environment;
use shortline_testbed::server::Speech;

/// The longest time of arrivals, in seconds.
pub const SECONDS_MAX: u64 = 3600;

/// What a packet holds beside the payload: 20 bytes of IPv4 and 32 of TCP with timestamps.
const PACKET_HEAD_BYTES: u64 = 52;

/// One point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its name, and that of its folder among the results. Only `a-z0-9.-`.
    pub label: String,
    /// Its place on the experiment's axis, if there is one.
    pub x: Option<f64>,
    /// The files that are served.
    pub files: Files,
    /// When they are requested.
    pub arrivals: Arrivals,
    /// How long arrivals last, in seconds.
    pub seconds: u64,
    /// The uplink's rate.
    pub rate: Rate,
    /// The only servers of the plan that are run here, by name. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Protocol, clients, network and system.
    pub setup: Setup,
}

/// The files of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Files {
    /// Sizes as in paper 000, 2.1.
    WorldCup,
    /// Sizes as in paper 000's appendix.
    Nasa,
    /// SURGE as in paper 001.
    #[serde(rename(deserialize = "surge-001"), alias = "surge001")]
    Surge001,
    /// SURGE as in the appendix of paper 003.
    #[serde(rename(deserialize = "surge-003"), alias = "surge003")]
    Surge003,
    /// SURGE as in paper 004.
    #[serde(rename(deserialize = "surge-004"), alias = "surge004")]
    Surge004,
}

/// When requests are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Open loop: phases of low load and of overload in turn, the low one first.
    Phases {
        /// How long the low phase lasts, in seconds.
        low_s: f64,
        /// How long the overload lasts, in seconds.
        high_s: f64,
        /// Load in the low phase. 1 is the whole uplink.
        low_load: f64,
        /// Load in the overload.
        high_load: f64,
    },
    /// Closed loop: the number of user equivalents.
    Users(u32),
    /// Open loop: the requests of a trace, at its times. The servers have the files that it asks for.
    Trace(PathBuf),
}

/// Protocol, clients, network and system of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The clients' networks and habits, packets, the server's system.
    pub environment: Environment,
    /// The bytes that the link carries for a request besides its body and the heads of its packets, as
    /// measured before. So a load of 1.2 is 1.2 whatever the protocol costs.
    pub per_request_bytes: u64,
    /// TLS and HTTP/2.
    pub speech: Speech,
    /// On loopback, without an uplink that the kernel limits. Only for Shortline.
    pub loopback: bool,
    /// What our server's responses go through.
    #[serde(default, skip_serializing_if = "Through::is_files")]
    pub through: Through,
    /// The number of writers of paper 001's server. `None`: the default.
    pub writers: Option<u32>,
    /// The number of processes of the generator.
    #[serde(default = "one_process", skip_serializing_if = "is_one")]
    pub generators: u32,
    /// What one user of the closed loop asks for a second in the mean, in bytes of files: there are so
    /// many of ours that they ask for as much together. `None`: there are as many as are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_rate: Option<Rate>,
    /// The load that the requests must offer at least. `None`: that of the schedule, or any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_load: Option<f64>,
    /// What changes at the link while requests arrive.
    #[serde(default, skip_serializing_if = "Course::is_empty")]
    pub course: Course,
    /// How long after the last arrival the generator waits for requests under way, in seconds. Those
    /// that are not over then have failed.
    pub drain_s: u64,
}

/// What our server's responses go through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Through {
    /// The files of its folder.
    #[default]
    Files,
    /// The same, as one of several sites, found by its name.
    Site,
    /// Texts that are compressed on the fly, and as long as the files when they are.
    Compressed,
    /// A server behind a route, whose responses are kept.
    Kept,
    /// A server behind a route, by HTTP/1.1.
    Route,
    /// The same by HTTP/2.
    RouteHttp2,
    /// A program run by PHP-FPM, which tells the length.
    Php,
    /// The same without a length.
    PhpUnknown,
}

impl Through {
    /// Whether nothing stands between our server and the files.
    pub fn is_files(&self) -> bool {
        *self == Self::Files
    }
}

impl Files {
    /// Their name in `shortline load`.
    pub fn name(self) -> &'static str {
        match self {
            Self::WorldCup => "world-cup",
            Self::Nasa => "nasa",
            Self::Surge001 => "surge-001",
            Self::Surge003 => "surge-003",
            Self::Surge004 => "surge-004",
        }
    }

    /// Whether they are SURGE's, which include a model of users.
    pub fn is_surge(self) -> bool {
        !matches!(self, Self::WorldCup | Self::Nasa)
    }

    /// The files themselves.
    pub fn site(self) -> SiteFiles {
        self.site_name().site()
    }

    /// What a user's draw of a page counts.
    pub fn pages(self) -> PageFiles {
        self.site_name().pages()
    }

    fn site_name(self) -> SiteName {
        self.name().parse().expect("invariant: a site's name")
    }
}

impl Setup {
    /// A connection per request over HTTP/1.1 in the clear, without a WAN, with today's system.
    pub fn plain() -> Self {
        Self {
            environment: Environment::today(),
            per_request_bytes: Speech::default().per_request_bytes(),
            speech: Speech::default(),
            loopback: false,
            through: Through::Files,
            writers: None,
            generators: one_process(),
            user_rate: None,
            least_load: None,
            course: Course::default(),
            drain_s: 30,
        }
    }
}

/// The default for plans of earlier versions, which lack the key.
fn one_process() -> u32 {
    1
}

fn is_one(processes: &u32) -> bool {
    *processes == 1
}

impl Arrivals {
    /// A load that does not change.
    pub fn steady(load: f64) -> Self {
        Self::Phases {
            low_s: 1.0,
            high_s: 1.0,
            low_load: load,
            high_load: load,
        }
    }

    /// A row of Table I of paper 000.
    pub fn table_one(name: &str) -> Self {
        let schedule = Schedule::by_name(name).expect("invariant: a name of Table I");
        Self::Phases {
            low_s: schedule.low_s,
            high_s: schedule.high_s,
            low_load: schedule.low_load,
            high_load: schedule.high_load,
        }
    }

    /// One or two phases of load. `None` if there are more.
    pub fn of_phases(phases: &[LoadPhase]) -> Option<Self> {
        match phases {
            [always] => Some(Self::steady(always.load)),
            [low, high] => Some(Self::Phases {
                low_s: low.length_s,
                high_s: high.length_s,
                low_load: low.load,
                high_load: high.load,
            }),
            _ => None,
        }
    }

    /// Whether the times of requests depend on the server.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Users(_))
    }

    /// The phases for the generator of arrivals. `None` without phases.
    pub fn schedule(&self) -> Option<Schedule> {
        match *self {
            Self::Phases {
                low_s,
                high_s,
                low_load,
                high_load,
            } => Some(Schedule {
                name: "",
                low_s,
                high_s,
                low_load,
                high_load,
            }),
            Self::Users(_) | Self::Trace(_) => None,
        }
    }
}

impl Point {
    /// A point of the World Cup's files over 10 Mbit/s.
    pub fn new(label: impl Into<String>, arrivals: Arrivals, seconds: u64) -> Self {
        Self {
            label: label.into(),
            x: None,
            files: Files::WorldCup,
            arrivals,
            seconds,
            rate: Rate::from_bps(10_000_000),
            only: Vec::new(),
            setup: Setup::plain(),
        }
    }

    /// The same over an uplink of another rate. The clients' own links keep their ratio to it.
    #[must_use]
    pub fn at_rate(mut self, rate: Rate) -> Self {
        let factor = rate.bps() as f64 / self.rate.bps() as f64;
        let groups = self.setup.environment.groups.iter_mut();
        for way in groups.flat_map(|group| [&mut group.down, &mut group.up]) {
            // At least a bit a second, because a path refuses a link that lets nothing through.
            let scaled = |own: Rate| Rate::from_bps(((own.bps() as f64 * factor) as u64).max(1));
            way.rate = way.rate.map(scaled);
        }
        Self { rate, ..self }
    }

    /// The same with a changed setup.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(&mut self.setup);
        self
    }

    /// What its link carries for a response, with that many bytes besides its packets. TCP fills
    /// packets up to the longest.
    pub fn wire(&self, per_request_bytes: u64) -> WireModel {
        let packet_bytes = u64::from(self.setup.environment.packet_bytes);
        let segment_bytes = packet_bytes.saturating_sub(PACKET_HEAD_BYTES);
        WireModel {
            per_request_bytes,
            segment_bytes: NonZeroU64::new(segment_bytes).unwrap_or(NonZeroU64::MIN),
            ..WireModel::default()
        }
    }

    /// Whether the server of that name is run here.
    pub fn runs(&self, server: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == server)
    }

    /// How long arrivals last.
    pub fn length(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// When the overloads begin and end, in seconds after the start.
    pub fn overloads_s(&self) -> Vec<(f64, f64)> {
        let end_s = self.seconds as f64;
        let Some(schedule) = self.arrivals.schedule() else {
            return Vec::new();
        };
        if schedule.low_load > 1.0 {
            return vec![(0.0, end_s)];
        }
        if schedule.high_load <= 1.0 {
            return Vec::new();
        }
        let period_s = schedule.low_s + schedule.high_s;
        let overload = |period: f64| {
            let begin_s = period * period_s + schedule.low_s;
            (begin_s, end_s.min(begin_s + schedule.high_s))
        };
        let all = (0..).map(|period| overload(f64::from(period)));
        all.take_while(|(begin_s, _)| *begin_s < end_s).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overloads_are_the_second_halves_of_w1() {
        let of = |seconds| Point::new("w1", Arrivals::table_one("w1"), seconds).overloads_s();
        assert_eq!(of(100), [(25.0, 50.0), (75.0, 100.0)]);
        assert_eq!(of(30), [(25.0, 30.0)]);
        assert_eq!(of(20), []);
    }

    #[test]
    fn a_link_with_shorter_packets_carries_more_heads() {
        let mut point = Point::new("w1", Arrivals::steady(0.5), 10);
        assert_eq!(point.wire(480), WireModel::default());
        point.setup.environment.packet_bytes = 536;
        // Packets of 484 bytes of payload, each with 66 of heads.
        assert_eq!(point.wire(480).wire_bytes(4_840), 4_840 + 660 + 480);
    }

    #[test]
    fn a_steady_load_is_an_overload_or_none() {
        let of = |load| Point::new("steady", Arrivals::steady(load), 10).overloads_s();
        assert_eq!(of(1.2), [(0.0, 10.0)]);
        assert_eq!(of(0.9), []);
    }
}
