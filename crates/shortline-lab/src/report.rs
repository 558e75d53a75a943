//! An experiment's results as one HTML page without outside links, `report.html`, with the data of its
//! plots as CSV in the folder `report` beside it. For several experiments there are also the verdicts
//! on the papers' claims ([`claims`]).
//!
//! The page is made from kept results ([`crate::study`]): the papers' claims beside our figures, tables
//! with the optimum, plots as inline SVG. It follows the reader's choice of light or dark, and is narrow
//! enough for a phone.

pub mod adversary;
mod by_group;
pub mod claims;
pub mod compare;
mod data;
mod document;
mod drawings;
mod error;
mod headline;
mod page;
pub mod plot;
mod results;
pub mod results_page;
mod series;
pub mod shop;
pub mod table;
pub mod versus;
mod waiting;

use shortline_plot::PlotError;
use std::fs;
use std::path::PathBuf;

use crate::study::kept::Kept;

pub use error::ReportError;
pub use results::Results;

/// Writes the page and its data, and returns where the page is.
///
/// # Errors
/// If a kept file is missing or wrong, or one cannot be written.
pub fn write(results: &Results<'_>) -> Result<PathBuf, ReportError> {
    let data = results.folder.join("report");
    fs::create_dir_all(&data).map_err(ReportError::file(&data))?;
    data::write_figures(&data.join("figures.csv"), results.figures)?;
    let across = drawings::across(results);
    let mut points = Vec::new();
    for point in &results.plan.points {
        let series = series::of(results.folder, results.plan, point)?;
        points.push(drawings::of_point(results, point, &series));
    }
    for drawing in across.iter().chain(points.iter().flatten()) {
        data::write_drawing(&data.join(drawing.file()), drawing)?;
    }
    let path = results.folder.join("report.html");
    let failed = |problem: String| PlotError {
        path: path.clone(),
        problem,
    };
    let about = machine(results)?;
    let waiting = match &results.plan.points[..] {
        [point] => Some(waiting::picture(results.folder, results.plan, point)?),
        _ => None,
    };
    if let Some(waiting) = &waiting {
        waiting.write(results.folder)?;
    }
    let first = waiting.as_ref().map(|waiting| waiting.svg.as_str());
    let page = page::render(results, &about, first, &across, &points)
        .map_err(|error| failed(error.to_string()))?;
    fs::write(&path, page).map_err(ReportError::file(&path))?;
    Ok(path)
}

/// The conditions as the runs kept them: each server's version, the kernel, congestion control.
fn machine(results: &Results<'_>) -> Result<Vec<String>, ReportError> {
    let mut about: Vec<String> = Vec::new();
    let mut tell = |text: String| {
        if !about.contains(&text) {
            about.push(text);
        }
    };
    for point in &results.plan.points {
        for seed in &results.plan.seeds {
            for run in Kept::read(results.folder, results.plan, point, *seed)?.runs {
                let carried = run.carried;
                tell(format!("{}: {}", run.server, carried.version));
                tell(format!(
                    "Linux {}, {}",
                    carried.kernel, carried.congestion_control
                ));
                carried.notes.into_iter().for_each(&mut tell);
            }
        }
    }
    Ok(about)
}
