//! Mode `bands`: which band of the kernel's a connection's packets wait in.

use shortline_sched::JobId;

use super::Queue;
use crate::bands::BandMap;
use crate::transport::Transport;

impl Queue {
    /// Notes the band that a job has by now, in mode `bands`.
    pub(super) fn note_band(&self, id: JobId, now_ns: u64) {
        if let Some(map) = self.regulator.bands()
            && let Some(job) = self.scheduler.job(id)
            && let Some(link_job) = &self.jobs[id.index()]
        {
            let response_ns = self.scheduler.response_ns(id, now_ns);
            let band = map.band(job, response_ns, self.scheduler.cutoffs());
            link_job.transport.jobs_bands.lock().set(id, band);
        }
    }

    pub(super) fn move_to_band(
        &mut self,
        map: &BandMap,
        transport: &Transport,
        band: Option<usize>,
    ) {
        if let Some(band) = band {
            let moved = transport.move_to_band(band, map.priority(band));
            self.band_changes_total += u64::from(moved);
        }
    }
}
