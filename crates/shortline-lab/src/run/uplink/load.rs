//! What is asked for at each point with each seed, looked at before the first run: a study whose load
//! cannot be reached says so at once, not after hours.

use std::collections::BTreeMap;

use shortline_load::trace::Request;
use shortline_load::workload::{self, Schedule, SiteFiles};

use super::site;
use crate::LabError;
use crate::study::offered::Offered;
use crate::study::plan::Plan;
use crate::study::point::{Arrivals, Point};

/// The load of each point with each seed, in this order.
///
/// # Errors
/// If a trace cannot be read.
pub fn offered(plan: &Plan) -> Result<Vec<Offered>, LabError> {
    let mut sites: BTreeMap<&str, SiteFiles> = BTreeMap::new();
    let mut all = Vec::new();
    for point in &plan.points {
        for seed in &plan.seeds {
            let files = || point.files.site();
            let offered = match &point.arrivals {
                Arrivals::Trace(path) => {
                    let requests = site::read(point, path, *seed)?;
                    Offered::by_requests(point, requests.iter().map(|request| request.bytes))
                }
                Arrivals::Users(users) => {
                    let site = sites.entry(point.files.name()).or_insert_with(files);
                    Offered::by_users(point, *users, site, *seed)
                }
                Arrivals::Phases { .. } => {
                    let site = sites.entry(point.files.name()).or_insert_with(files);
                    let schedule = point.arrivals.schedule();
                    let requests = schedule.map(|schedule| arrivals(point, &schedule, *seed, site));
                    let sizes = requests.iter().flatten().map(|request| request.bytes);
                    Offered::by_requests(point, sizes)
                }
            };
            if !offered.is_reached() {
                let (id, label) = (&plan.experiment, &point.label);
                tracing::warn!("{id}: {label}, seed {seed}: {offered}");
            }
            all.push(offered);
        }
    }
    Ok(all)
}

/// The requests of a point with a schedule, with one seed.
pub fn arrivals(point: &Point, schedule: &Schedule, seed: u64, site: &SiteFiles) -> Vec<Request> {
    let model = point.wire(point.setup.per_request_bytes);
    workload::arrivals(
        schedule,
        point.rate,
        |body_bytes| model.wire_bytes(body_bytes),
        point.length(),
        seed,
        site,
    )
}
