//! What a point's runs with one seed need before the first of them: the arrivals, those of a neighbour,
//! and the load that they offer, each as a file of the seed's folder.

use std::fs;

use shortline_load::trace::{Request, TraceOptions, read_trace, write_csv};

use super::site::Site;
use super::{Run, arrivals, neighbour};
use crate::LabError;
use crate::study::KeptError;
use crate::study::course::Neighbour;
use crate::study::kept::whole_file;
use crate::study::offered::Offered;
use crate::study::plan::Plan;

impl Run<'_> {
    /// Writes the arrivals if they do not depend on the server. Returns the generator's work.
    pub(super) fn prepare(&self, plan: &Plan, site: &Site) -> Result<String, LabError> {
        fs::create_dir_all(self.folder).map_err(LabError::file(self.folder))?;
        let trace = self.trace();
        let other = || KeptError::OtherPlan(self.testbed.out().into(), plan.experiment.clone());
        let whole = |server: &String| whole_file(self.folder, server).exists();
        // The kept runs had other requests, from another version or a trace that has changed.
        if plan.servers.iter().any(whole)
            && Offered::read(self.folder)?.as_ref() != Some(self.offered)
        {
            return Err(other().into());
        }
        self.offered.write(self.folder)?;
        if let Some(users) = self.offered.users {
            return Ok(format!("{users} users"));
        }
        let requests = self.requests(self.seed, site);
        if site.requests.is_some() && trace.exists() {
            let kept = read_trace(&trace, &TraceOptions::default());
            if kept.map_err(LabError::refused)? != requests {
                return Err(other().into());
            }
        }
        write_csv(&trace, &requests).map_err(LabError::refused)?;
        self.prepare_neighbour(site)?;
        Ok(format!("{} requests", requests.len()))
    }

    /// The requests with one seed. `None` in a closed loop.
    fn requests(&self, seed: u64, site: &Site) -> Vec<Request> {
        match (&site.requests, self.point.arrivals.schedule()) {
            (Some(requests), _) => requests.clone(),
            (None, Some(schedule)) => arrivals(self.point, &schedule, seed, &site.files),
            (None, None) => Vec::new(),
        }
    }

    fn prepare_neighbour(&self, site: &Site) -> Result<(), LabError> {
        match self.point.setup.course.neighbour {
            None => Ok(()),
            Some(Neighbour::Downloads { number, from, .. }) => {
                neighbour::write_downloads(self.folder, self.point, number, from)
            }
            Some(Neighbour::Twin) => {
                let seed = neighbour::seed_of_twin(self.seed);
                let requests = self.requests(seed, site);
                let path = neighbour::trace_file(self.folder);
                write_csv(&path, &requests).map_err(LabError::refused)
            }
        }
    }
}
