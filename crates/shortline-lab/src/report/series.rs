//! The data of a point's lines: the fluid bounds and each server, each with one style in all plots.

use std::path::Path;

use plotters::prelude::ShapeStyle;
use shortline_load::record::RequestRecord;
use shortline_plot::{self as drawing, Points};
use shortline_sched::Policy;

use crate::report::ReportError;
use crate::study::figures::with_per_request;
use crate::study::kept::Kept;
use crate::study::plan::Plan;
use crate::study::point::Point;
use shortline_testbed::instruments::sample::Samples;

/// The optimum's name in plots.
pub const OPTIMUM: &str = "optimum";
/// The fluid PS's name in plots.
pub const FLUID_PS: &str = "fluid PS";

/// The places of servers' own colours: blue for Shortline, orange for nginx, and so on.
const COLOURS: [(&str, usize); 13] = [
    ("shares", 0),
    ("srpt", 0),
    ("auto", 0),
    ("auto-shares", 0),
    ("nginx", 1),
    ("fair", 2),
    ("nginx-fq_codel", 3),
    ("nginx-cake", 4),
    ("nginx-fq", 5),
    ("apache", 6),
    ("off", 7),
    ("slots", 8),
    ("kernel-bands", 9),
];
/// The first place of servers that have none of their own.
const COLOUR_FREE: usize = 10;

/// A server or a bound at a point.
pub struct Series {
    /// Its name.
    pub name: String,
    /// The style of its lines.
    pub style: ShapeStyle,
    /// Its records, seed by seed, without those of seeds that were not run.
    pub seeds: Vec<(u64, Vec<RequestRecord>)>,
    /// The samples of the instruments in the first seed.
    seen: Option<Samples>,
}

impl Series {
    /// The records of all seeds.
    pub fn pooled(&self) -> Vec<RequestRecord> {
        let records = self.seeds.iter().flat_map(|(_, records)| records);
        records.cloned().collect()
    }

    /// A column of the samples, over time. Empty without samples.
    pub fn seen(&self, column: &str) -> Points {
        let column = |samples: &Samples| -> Option<Points> {
            let (times, values) = (samples.column("at_s")?, samples.column(column)?);
            Some(times.zip(values).collect())
        };
        self.seen.as_ref().and_then(column).unwrap_or_default()
    }

    /// The records of the first seed.
    pub fn first(&self) -> &[RequestRecord] {
        self.seeds.first().map_or(&[], |(_, records)| records)
    }
}

/// The style of a name in all plots of a plan.
pub fn style(plan: &Plan, name: &str) -> ShapeStyle {
    match name {
        OPTIMUM => drawing::style_of_optimum(),
        FLUID_PS => drawing::style_of_reference(),
        _ => drawing::style(place_of(&plan.servers, name)),
    }
}

/// The place of a server's colour: its own, so that it has the same in every report. A server without one, and a second
/// one with the same, gets the first place that no server of the plan has.
fn place_of(servers: &[String], name: &str) -> usize {
    let own = |name: &str| COLOURS.iter().find(|(server, _)| *server == name);
    let mut taken: Vec<(&str, usize)> = Vec::new();
    for server in servers {
        let own = own(server).map(|(_, place)| *place);
        let own = own.filter(|place| taken.iter().all(|(_, other)| other != place));
        taken.extend(own.map(|place| (server.as_str(), place)));
    }
    for server in servers {
        if taken.iter().all(|(other, _)| other != server) {
            let is_free = |place: &usize| taken.iter().all(|(_, other)| other != place);
            let free = (COLOUR_FREE..COLOUR_FREE + servers.len()).find(is_free);
            taken.push((server, free.unwrap_or(COLOUR_FREE)));
        }
    }
    let found = taken.iter().find(|(server, _)| *server == name);
    found.map_or(COLOUR_FREE + servers.len(), |(_, place)| *place)
}

/// The series of a point that have kept results: fluid PS, the optimum, the servers.
///
/// # Errors
/// If a kept file is missing or wrong.
pub fn of(folder: &Path, plan: &Plan, point: &Point) -> Result<Vec<Series>, ReportError> {
    let names = [FLUID_PS, OPTIMUM].into_iter().map(String::from);
    let mut all: Vec<Series> = names
        .chain(plan.servers.iter().cloned())
        .map(|name| Series {
            style: style(plan, &name),
            name,
            seeds: Vec::new(),
            seen: None,
        })
        .collect();
    for seed in &plan.seeds {
        let kept = Kept::read(folder, plan, point, *seed)?;
        let model = with_per_request(kept.lowest_per_request_bytes());
        let mut add = |name: &str, records: Vec<RequestRecord>, seen: Option<Samples>| {
            let series = all.iter_mut().find(|series| series.name == name);
            if let Some(series) = series {
                series.seeds.push((*seed, records));
                series.seen = series.seen.take().or(seen);
            }
        };
        for (name, policy) in [(FLUID_PS, Policy::Fair), (OPTIMUM, Policy::Srpt)] {
            if let Some(records) = kept.bound(model, policy)? {
                add(name, records, None);
            }
        }
        for run in kept.runs {
            add(&run.server, run.records, run.seen);
        }
    }
    all.retain(|series| !series.seeds.is_empty());
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_its_colour_in_every_plan_and_no_two_share_one() {
        let places = |names: &[&str]| -> Vec<usize> {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            names.iter().map(|name| place_of(&names, name)).collect()
        };
        assert_eq!(places(&["srpt", "fair", "nginx"]), [0, 2, 1]);
        assert_eq!(places(&["nginx", "shares"]), [1, 0]);
        assert_eq!(
            places(&["shares", "srpt", "swift", "nginx"]),
            [0, 10, 11, 1]
        );
        assert_eq!(place_of(&[], "nginx"), COLOUR_FREE);
    }
}
