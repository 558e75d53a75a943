//! Which band a response has, and what `SO_PRIORITY` each band has. No I/O: the queue asks at each grant.

use shortline_sched::{Job, JobId, Policy};

use super::qdisc::{DeviceBands, QdiscError};
use crate::config::{LinkConfig, LinkError};

/// Cutoffs of response times in nanoseconds: 100, 500, 1000, 20000 and 80000 ms (004 3.2; its appendix B
/// prints 100000 and 10000000 for the last two).
const RESPONSE_TIME_NS: [u64; 5] = [
    100_000_000,
    500_000_000,
    1_000_000_000,
    20_000_000_000,
    80_000_000_000,
];

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
    pub(super) responses: Vec<u32>,
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
    use crate::bands::testing::{config, device};

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
