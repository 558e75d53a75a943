//! Link mode `bands`: the kernel's qdisc orders packets, and each connection's `SO_PRIORITY` says
//! in which of its bands they wait. In the other modes that order anything SYN-ACKs alone have one.
//!
//! Source: papers 003 3.3 and 000 3.2 (bands of the remaining size), 003 7 (the quick fix: small
//! and large by the total size), 004 3.2 (bands of the remaining response time, in milliseconds).
//! The other policies that go by a time have the bands of 004 for theirs: `stert` for the response
//! time in all, `fcf` for the time at the connection's rate, `swift` for the link's time and a round
//! trip. Their estimates are the policies' own ([`shortline_sched::Scheduler::response_ns`]).
//! The first band of the device is for control packets alone (003 3.3.2): SYN-ACKs, which go by the
//! listener's priority, and what a connection sends before its first response. The others are for
//! responses, the smallest first. A value that equals a cutoff belongs to the band below it.
//!
//! The kernel looks at a socket's priority when it makes a packet, so that a change counts for all
//! that the socket holds unsent: little, for the mark of unsent bytes is small. A connection with
//! several responses (HTTP/2) takes the band of the most urgent that waits or is being sent.
//!
//! Departure: 004's last band ends at 1000 s; here everything above the last cutoff is one band.

use std::net::{Ipv4Addr, UdpSocket};

use shortline_sched::{Job, JobId, Policy};
use socket2::SockRef;

use crate::config::{LinkConfig, LinkError, LinkMode};
use crate::driver::qdisc::{DeviceBands, QdiscError};

/// Cutoffs of response times in nanoseconds: 100, 500, 1000, 20000 and 80000 ms (004 3.2; its appendix B
/// prints 100000 and 10000000 for the last two).
const RESPONSE_TIME_NS: [u64; 5] = [
    100_000_000,
    500_000_000,
    1_000_000_000,
    20_000_000_000,
    80_000_000_000,
];

/// The most urgent that a socket may have without a privilege, and one of the first band's in `prio`,
/// `pfifo_fast` and `fq` as the kernel sets them up (`TC_PRIO_INTERACTIVE`).
const INTERACTIVE: u32 = 6;

/// What a listener, and so its SYN-ACKs, has for its priority: that of the control band in mode `bands`;
/// else what lets them pass responses in a qdisc that has bands, whoever set it up, for they are small and
/// a visitor waits for them before all else (003 3.3.2). A plain server sets none.
pub(crate) fn control_priority(mode: LinkMode, bands: Option<&BandMap>) -> u32 {
    match (bands, mode) {
        (Some(bands), _) => bands.control,
        (None, LinkMode::Off | LinkMode::Writers) => 0,
        (None, _) => first_band_of(DeviceBands::find().ok().as_ref()),
    }
}

/// The first band's priority if everybody may ask for it: a qdisc may have another map than the kernel's own.
fn first_band_of(device: Option<&DeviceBands>) -> u32 {
    let first = device.and_then(|device| device.bands.first());
    first.map_or(INTERACTIVE, |band| band.priority.min(INTERACTIVE))
}

/// Which priority means what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BandMap {
    /// The device whose qdisc has the bands.
    pub device: String,
    /// The priority of SYN-ACKs and of connections before their first response.
    pub control: u32,
    /// Whether a new connection's socket, whose priority is 0, has to be told [`Self::control`].
    pub tell_new: bool,
    /// The priority of each band of responses.
    responses: Vec<u32>,
    measure: Measure,
}

/// What the cutoffs part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    RemainingBytes,
    TotalBytes,
    ResponseTime,
}

impl BandMap {
    /// The bands of the configured device, or of the only one that has some, for the policy.
    pub fn open(config: &LinkConfig) -> Result<Self, LinkError> {
        let device = match &config.device {
            Some(device) => DeviceBands::read(device)?,
            None => DeviceBands::find()?,
        };
        let map = Self::of(&device, config)?;
        map.check_privilege()?;
        Ok(map)
    }

    pub fn of(device: &DeviceBands, config: &LinkConfig) -> Result<Self, LinkError> {
        let (measure, needed) = match config.policy {
            Policy::Bands(cutoffs) => (Measure::RemainingBytes, cutoffs.bands()),
            Policy::QuickFix { .. } => (Measure::TotalBytes, 2),
            Policy::Srrt | Policy::Stert | Policy::Fcf | Policy::Swift => {
                (Measure::ResponseTime, RESPONSE_TIME_NS.len() + 1)
            }
            other => return Err(LinkError::PolicyWithoutBands(other.to_string())),
        };
        let priorities: Vec<u32> = device.bands.iter().map(|band| band.priority).collect();
        let Some((first, responses)) = priorities
            .split_first()
            .filter(|(_, responses)| responses.len() >= needed)
        else {
            return Err(LinkError::Qdisc(QdiscError::TooFewBands {
                device: device.device.clone(),
                has: device.bands.len(),
                needed,
            }));
        };
        let responses = responses[..needed].to_vec();
        let (control, control_band) = if config.control_band {
            (*first, 0)
        } else {
            (responses[needed - 1], needed)
        };
        Ok(Self {
            device: device.device.clone(),
            control,
            tell_new: device.unset != Some(control_band),
            responses,
            measure,
        })
    }

    /// Linux lets everybody have 0 to 6; better to hear of the others now than at each response.
    fn check_privilege(&self) -> Result<(), LinkError> {
        let all = self.responses.iter().chain([&self.control]);
        let highest = all.copied().max().unwrap_or(0);
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(LinkError::Priority)?;
        let set = SockRef::from(&socket).set_priority(highest);
        set.map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => LinkError::PriorityNotPermitted {
                device: self.device.clone(),
                priority: highest,
            },
            _ => LinkError::Priority(error),
        })
    }

    /// The band of a response, from 0; `response_ns` is the policy's estimate of its time, if it
    /// has one, and `cutoffs` are the policy's own at present.
    pub fn band(&self, job: &Job, response_ns: Option<u64>, cutoffs: Option<&[u64]>) -> usize {
        let cutoffs = cutoffs.unwrap_or_default();
        let below =
            |cutoffs: &[u64], value| cutoffs.iter().filter(|&&cutoff| cutoff < value).count();
        let band = match self.measure {
            Measure::RemainingBytes => below(cutoffs, job.remaining()),
            Measure::TotalBytes => below(cutoffs, job.work_total),
            Measure::ResponseTime => below(&RESPONSE_TIME_NS, response_ns.unwrap_or(u64::MAX)),
        };
        band.min(self.responses.len() - 1)
    }

    /// What `SO_PRIORITY` must be for a band of responses.
    pub fn priority(&self, band: usize) -> u32 {
        self.responses[band]
    }
}

/// The bands of one connection's jobs: several with HTTP/2.
#[derive(Debug, Default)]
pub(crate) struct JobsBands(Vec<(JobId, usize)>);

impl JobsBands {
    /// A job has this band from now on.
    pub fn set(&mut self, id: JobId, band: usize) {
        self.remove(id);
        self.0.push((id, band));
    }

    /// A job counts no longer.
    pub fn remove(&mut self, id: JobId) {
        self.0.retain(|(other, _)| *other != id);
    }

    /// The first band that one has.
    pub fn most_urgent(&self) -> Option<usize> {
        self.0.iter().map(|&(_, band)| band).min()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use shortline_sched::{JobSpec, PathView, Scheduler, SchedulerConfig};

    use super::*;
    use crate::driver::qdisc::{Band, Kind, Traffic};

    /// A device whose bands have the priorities 100, 101 and so on.
    fn device(bands: u32) -> DeviceBands {
        let bands = (0..bands).map(|band| Band {
            name: band.to_string(),
            priority: 100 + band,
            traffic: Traffic::default(),
        });
        DeviceBands {
            device: "d0".to_owned(),
            kind: Kind::Prio,
            bands: bands.collect(),
            unset: Some(0),
            traffic: Traffic::default(),
        }
    }

    fn config(policy: &str) -> LinkConfig {
        LinkConfig {
            policy: policy.parse().unwrap(),
            ..LinkConfig::default()
        }
    }

    /// The bands at 1 s of responses of these sizes that came at 0; the link needs a microsecond
    /// for a byte.
    fn bands_of(policy: &str, path: PathView, sizes: &[u64]) -> Vec<usize> {
        const NOW_NS: u64 = 1_000_000_000;
        let config = config(policy);
        let map = BandMap::of(&device(16), &config).unwrap();
        let mut scheduler = Scheduler::new(SchedulerConfig::new(config.policy, 100));
        let band = |&work: &u64| {
            let id = scheduler
                .submit(JobSpec {
                    work,
                    service_ns_expected: work.saturating_mul(1_000),
                    path: Some(path),
                    ..JobSpec::default()
                })
                .unwrap();
            let response_ns = scheduler.response_ns(id, NOW_NS);
            map.band(scheduler.job(id).unwrap(), response_ns, scheduler.cutoffs())
        };
        sizes.iter().map(band).collect()
    }

    #[test]
    fn syn_acks_have_the_first_band_in_every_mode_that_orders() {
        let map = BandMap::of(&device(6), &config("bands")).unwrap();
        assert_eq!(control_priority(LinkMode::Bands, Some(&map)), 100);
        assert_eq!(control_priority(LinkMode::Off, None), 0);
        assert!(control_priority(LinkMode::Paced, None) <= INTERACTIVE);
        assert_eq!(first_band_of(None), INTERACTIVE);
        let mut own_map = device(16);
        let of_classes = first_band_of(Some(&own_map));
        assert_eq!(of_classes, INTERACTIVE, "100 would need a privilege");
        own_map.bands[0].priority = 2;
        assert_eq!(first_band_of(Some(&own_map)), 2);
    }

    #[test]
    fn sizes_have_the_bands_of_the_papers() {
        let sizes = [1, 1_000, 1_001, 5_000, 50_000, 50_001, u64::MAX];
        assert_eq!(
            bands_of("bands", PathView::UNKNOWN, &sizes),
            [0, 0, 1, 2, 3, 4, 4]
        );
        assert_eq!(
            bands_of("quickfix:1KB", PathView::UNKNOWN, &sizes),
            [0, 0, 1, 1, 1, 1, 1]
        );
    }

    #[test]
    fn response_times_have_the_bands_of_004() {
        // 50 ms and 1000 bytes: n KB take 50 ms (1 + n).
        let path = PathView {
            rtt_ns: 50_000_000,
            cwnd_bytes: 1_000,
            rate_bps_past: None,
        };
        let sizes = [1_000, 1_001, 9_000, 19_000, 399_000, 1_000_000, 1_700_000];
        assert_eq!(bands_of("srrt", path, &sizes), [0, 1, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn policies_that_go_by_another_time_have_the_same_cutoffs_for_it() {
        // 50 ms and 1000 bytes: at the window's rate n KB take 50 ms n, and so they have until now.
        let path = PathView {
            rtt_ns: 50_000_000,
            cwnd_bytes: 1_000,
            rate_bps_past: Some(160_000),
        };
        let sizes = [1_000, 2_000, 10_000, 20_000, 400_000, 1_600_000, 2_000_000];
        assert_eq!(bands_of("fcf", path, &sizes), [0, 0, 1, 2, 3, 4, 5]);
        // A second since the request came.
        assert_eq!(bands_of("stert", path, &sizes), [3, 3, 3, 3, 4, 5, 5]);
        // A microsecond a byte, and 50 ms.
        assert_eq!(bands_of("swift", path, &sizes), [0, 0, 0, 0, 1, 3, 3]);
    }

    #[test]
    fn the_first_band_is_for_control_packets_unless_it_is_taken_away() {
        let with = BandMap::of(&device(16), &config("bands")).unwrap();
        assert_eq!((with.control, with.tell_new), (100, false));
        assert_eq!([0, 4].map(|band| with.priority(band)), [101, 105]);
        let taken = LinkConfig {
            control_band: false,
            ..config("bands")
        };
        let without = BandMap::of(&device(16), &taken).unwrap();
        assert_eq!((without.control, without.tell_new), (105, true));
        assert_eq!(without.priority(0), 101);
    }

    #[test]
    fn too_few_bands_are_told_with_both_numbers() {
        let error = BandMap::of(&device(3), &config("bands")).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("has 3 bands") && error.contains("need 6"),
            "{error}"
        );
        assert!(BandMap::of(&device(3), &config("quickfix")).is_ok());
        assert!(BandMap::of(&device(16), &config("bands:15")).is_ok());
        assert!(BandMap::of(&device(16), &config("bands:16")).is_err());
        let error = BandMap::of(&device(16), &config("srpt")).unwrap_err();
        assert!(error.to_string().contains("`srpt`"));
    }
}
