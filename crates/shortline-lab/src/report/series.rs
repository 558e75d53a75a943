//! The data of a point's lines: the fluid bounds and each server, each with one style in all plots.

use std::path::Path;

use plotters::prelude::ShapeStyle;
use shortline_load::record::RequestRecord;
use shortline_plot::{self as drawing, Points};
use shortline_sched::Policy;

use crate::report::ReportError;
use crate::study::kept::Kept;
use crate::study::plan::Plan;
use crate::study::point::Point;
use shortline_testbed::instruments::sample::Samples;

/// The optimum's name in plots.
pub const OPTIMUM: &str = "optimum";
/// The fluid PS's name in plots.
pub const FLUID_PS: &str = "fluid PS";

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
        _ => {
            let all = plan.servers.iter().map(ToString::to_string);
            let styled = drawing::styled(all.collect());
            let own = styled.into_iter().find(|(server, _)| server == name);
            own.map_or_else(drawing::style_of_reference, |(_, style)| style)
        }
    }
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
        let model = kept.bound_model();
        let mut add = |name: &str, records: Vec<RequestRecord>, seen: Option<Samples>| {
            let series = all.iter_mut().find(|series| series.name == name);
            if let Some(series) = series {
                series.seeds.push((*seed, records));
                series.seen = series.seen.take().or(seen);
            }
        };
        for (name, policy) in [(FLUID_PS, Policy::Fair), (OPTIMUM, Policy::Srpt)] {
            if let Ok(model) = model {
                add(name, kept.bound(model, policy)?, None);
            }
        }
        for run in kept.runs {
            add(&run.server, run.records, run.seen);
        }
    }
    all.retain(|series| !series.seeds.is_empty());
    Ok(all)
}
