//! Mode `bands`: which band of the kernel's a connection's packets wait in.

use shortline_sched::JobId;

use super::{Queue, Setting};
use crate::connections::ConnectionId;

impl Queue {
    /// Notes the band that a job has by now, in mode `bands`.
    pub(super) fn note_band(&mut self, id: JobId, now_ns: u64) {
        if let Some(map) = self.regulator.bands()
            && let Some(job) = self.scheduler.job(id)
            && let Some(link_job) = &self.jobs[id.index()]
        {
            let response_ns = self.scheduler.response_ns(id, now_ns);
            let band = map.band(job, response_ns, self.scheduler.cutoffs());
            let connection = self.connections.of_mut(link_job.connection);
            connection.jobs_bands.set(id, band);
        }
    }

    /// A job waits behind what its connection is sending, which is as urgent now as the job itself.
    pub(super) fn wait_behind_own(&mut self, id: ConnectionId) {
        if self.regulator.bands().is_some() {
            let connection = self.connections.of(id);
            let band = connection.jobs_bands.most_urgent();
            let is_more_urgent = |band: &usize| connection.band.is_some_and(|own| own > *band);
            self.move_to_band(id, band.filter(is_more_urgent));
        }
    }

    /// Lets further packets of a connection wait in `band`, if any is told. Where they do already nothing is to be
    /// done, for that is a system call.
    pub(super) fn move_to_band(&mut self, id: ConnectionId, band: Option<usize>) {
        let connection = self.connections.of_mut(id);
        if let Some(map) = self.regulator.bands()
            && let Some(band) = band
            && connection.band != Some(band)
        {
            connection.band = Some(band);
            let priority = Setting::Priority(map.priority(band));
            self.actions.set.push((id, priority));
            self.band_changes_total += 1;
        }
    }
}
