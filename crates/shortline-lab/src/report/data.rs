//! The data of a report as CSV, for other programs.
//!
//! The names are those of servers and points, which contain no comma or quote.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::drawings::Drawing;
use crate::report::ReportError;
use crate::study::figures::{Figures, PointFigures, RunFigures, SeedFigures};

const HEAD: &str = "point,x,seed,server,requests,finished,mean_s,mean_finished_s,variance_s2,p50_s,\
p99_s,first_byte_mean_s,slowdown_mean,largest_mean_s,optimum_mean_s,over_optimum,\
stretch_share_above_1,stretch_largest,connections_max,wire_bytes,overload_wire_bytes,drops,\
late_starts,void,syn_drops,first_syn_drop_s,connections_seen_max,server_cpu_s,generator_cpu_s";

/// Writes the points of a drawing's lines: `series,x,y`.
///
/// # Errors
/// If it cannot be written.
pub fn write_drawing(path: &Path, drawing: &Drawing) -> Result<(), ReportError> {
    let mut text = String::from("series,x,y\n");
    for line in &drawing.lines {
        for (x, y) in &line.points {
            // Writing to a string cannot fail.
            writeln!(text, "{},{x},{y}", line.name).ok();
        }
    }
    fs::write(path, text).map_err(ReportError::file(path))
}

/// Writes a line for each run.
///
/// # Errors
/// If it cannot be written.
pub fn write_figures(path: &Path, figures: &Figures) -> Result<(), ReportError> {
    let mut text = format!("{HEAD}\n");
    for point in &figures.points {
        for seed in &point.seeds {
            for run in &seed.runs {
                text += &line(point, seed, run).join(",");
                text.push('\n');
            }
        }
    }
    fs::write(path, text).map_err(ReportError::file(path))
}

fn line(point: &PointFigures, seed: &SeedFigures, run: &RunFigures) -> Vec<String> {
    let summary = &run.summary;
    let time = &summary.response_time;
    let some = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let stretch = run.stretch.as_ref();
    vec![
        point.label.clone(),
        some(point.x),
        seed.seed.to_string(),
        run.server.clone(),
        summary.requests.to_string(),
        summary.finished.to_string(),
        time.mean.to_string(),
        some(summary.response_time_mean_finished_s),
        time.variance.to_string(),
        time.p50.to_string(),
        time.p99.to_string(),
        some(summary.first_byte.map(|first_byte| first_byte.mean)),
        some(summary.slowdown.map(|slowdown| slowdown.mean)),
        summary.largest.response_time.mean.to_string(),
        some(seed.bounds.map(|bounds| bounds.optimum.mean_s)),
        some(run.over_optimum),
        some(stretch.map(|stretch| stretch.share_above_1)),
        some(stretch.map(|stretch| stretch.largest)),
        run.connections_max.to_string(),
        run.wire_bytes.to_string(),
        run.overload_wire_bytes.to_string(),
        run.drops.to_string(),
        summary.late_starts.to_string(),
        u8::from(summary.void.is_some()).to_string(),
        some(run.seen.map(|seen| seen.syn_drops)),
        some(run.seen.and_then(|seen| seen.first_syn_drop_s)),
        some(run.seen.map(|seen| seen.connections_max)),
        some(run.seen.map(|seen| seen.server_cpu_s)),
        some(run.seen.map(|seen| seen.generator_cpu_s)),
    ]
}

#[cfg(test)]
mod tests {
    use super::HEAD;

    #[test]
    fn the_head_has_no_blank() {
        assert!(!HEAD.contains(char::is_whitespace));
    }
}
