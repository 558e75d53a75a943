//! One drawing of six panels: number in the system and sojourn time over time, sojourn time
//! and slowdown by size, slowdown by percentile of size (paper 003, Fig 5), and the share of
//! requests that take longer. Text is left to the viewer's own fonts.

use std::path::Path;

use plotters::prelude::*;
use shortline_sim::results::PolicyResult;

use crate::drawing::{self, Drawn, Panel, Points};
use crate::error::CommandError;

const WIDTH: u32 = 1280;
const HEIGHT: u32 = 1200;

struct Drawing<'a> {
    caption: &'a str,
    x: &'a str,
    log_x: bool,
    log_y: bool,
    points: fn(&PolicyResult) -> Points,
}

const DRAWINGS: [Drawing<'static>; 6] = [
    Drawing {
        caption: "jobs in the system over time",
        x: "time (s)",
        log_x: false,
        log_y: false,
        points: |result| result.number_over_time.clone(),
    },
    Drawing {
        caption: "mean time in the system (s) over time",
        x: "arrival (s)",
        log_x: false,
        log_y: true,
        points: |result| result.sojourn_over_time.clone(),
    },
    Drawing {
        caption: "mean time in the system (s) by size",
        x: "size (bytes)",
        log_x: true,
        log_y: true,
        points: |result| by_size(result, |group| group.sojourn_mean),
    },
    Drawing {
        caption: "mean slowdown by size",
        x: "size (bytes)",
        log_x: true,
        log_y: true,
        points: |result| by_size(result, |group| group.slowdown_mean),
    },
    Drawing {
        caption: "mean time in the system (s) by percentile of size",
        x: "percentile",
        log_x: false,
        log_y: true,
        points: |result| {
            let point = |group: &shortline_sim::results::SizeGroup| {
                (f64::midpoint(group.from, group.to), group.sojourn_mean)
            };
            result.by_percentile.iter().map(point).collect()
        },
    },
    Drawing {
        caption: "share of requests that take longer",
        x: "time in the system (s)",
        log_x: true,
        log_y: true,
        points: |result| result.sojourn_complementary.clone(),
    },
];

/// Refuses a file whose ending is not that of a drawing, before the work is done.
///
/// # Errors
/// If it ends neither in `.svg` nor in `.html`.
pub(super) fn check_ending(path: &Path) -> Result<(), CommandError> {
    if is_page(path) || path.extension().is_some_and(|ending| ending == "svg") {
        return Ok(());
    }
    Err(CommandError::Usage(format!(
        "--plot {}: the file must end in .svg or .html",
        path.display()
    )))
}

/// Draws the results to a file, a page if it ends in `.html`.
///
/// # Errors
/// If it cannot be written.
pub(super) fn draw(path: &Path, title: &str, results: &[PolicyResult]) -> Result<(), CommandError> {
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::Failure(format!("{}: {error}", path.display()))
    };
    let mut svg = String::new();
    draw_all(&mut svg, title, results).map_err(|error| failed(&error))?;
    let text = if is_page(path) {
        format!("<!doctype html>\n<meta charset=\"utf-8\">\n<title>shortline sim</title>\n{svg}\n")
    } else {
        svg
    };
    std::fs::write(path, text).map_err(|error| failed(&error))
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "html")
}

fn draw_all(svg: &mut String, title: &str, results: &[PolicyResult]) -> Drawn {
    let whole = SVGBackend::with_string(svg, (WIDTH, HEIGHT)).into_drawing_area();
    whole.fill(&WHITE)?;
    let panels = whole
        .titled(title, ("sans-serif", 22))?
        .split_evenly((3, 2));
    for (panel, drawing) in panels.iter().zip(&DRAWINGS) {
        let lines: Vec<(String, Points)> = results
            .iter()
            .map(|result| {
                let positive = |(x, y): &(f64, f64)| {
                    (!drawing.log_x || *x > 0.0) && (!drawing.log_y || *y > 0.0)
                };
                let points = (drawing.points)(result).into_iter().filter(positive);
                (result.policy.to_string(), points.collect())
            })
            .collect();
        draw_panel(panel, drawing, &lines)?;
    }
    whole.present()?;
    Ok(())
}

fn draw_panel(panel: &Panel<'_>, drawing: &Drawing<'_>, lines: &[(String, Points)]) -> Drawn {
    let x = range(lines.iter().flatten_points(|point| point.0), drawing.log_x);
    let y = range(lines.iter().flatten_points(|point| point.1), drawing.log_y);
    let mut builder = ChartBuilder::on(panel);
    builder
        .caption(drawing.caption, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(70);
    match (drawing.log_x, drawing.log_y) {
        (false, false) => draw_chart(
            builder.build_cartesian_2d(x.0..x.1, y.0..y.1)?,
            drawing,
            lines,
        ),
        (false, true) => {
            let y = (y.0..y.1).log_scale();
            draw_chart(builder.build_cartesian_2d(x.0..x.1, y)?, drawing, lines)
        }
        (true, _) => {
            let (x, y) = ((x.0..x.1).log_scale(), (y.0..y.1).log_scale());
            draw_chart(builder.build_cartesian_2d(x, y)?, drawing, lines)
        }
    }
}

fn draw_chart<'a, X, Y>(
    mut chart: ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    drawing: &Drawing<'_>,
    lines: &[(String, Points)],
) -> Drawn
where
    X: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(drawing.x)
        .x_label_formatter(&|value| number(*value))
        .y_label_formatter(&|value| number(*value))
        .draw()?;
    for (place, (name, points)) in lines.iter().enumerate() {
        drawing::line(&mut chart, drawing::style(place), name, points)?;
    }
    drawing::legend(&mut chart, SeriesLabelPosition::UpperLeft)
}

/// The values of all points of all lines.
trait FlattenPoints<'a> {
    fn flatten_points(self, of: impl Fn(&(f64, f64)) -> f64) -> Vec<f64>;
}

impl<'a, I: Iterator<Item = &'a (String, Points)>> FlattenPoints<'a> for I {
    fn flatten_points(self, of: impl Fn(&(f64, f64)) -> f64) -> Vec<f64> {
        self.flat_map(|(_, points)| points).map(of).collect()
    }
}

/// The range of some values, a little wider; something drawable without any.
fn range(values: Vec<f64>, log: bool) -> (f64, f64) {
    let (low, high) = values
        .into_iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    if !(low.is_finite() && high.is_finite()) {
        return (0.1, 1.0);
    }
    if log {
        return (low / 1.3, high * 1.3);
    }
    (low.min(0.0), high.max(low + 1e-9) * 1.05)
}

fn by_size(
    result: &PolicyResult,
    value: impl Fn(&shortline_sim::results::SizeGroup) -> f64,
) -> Points {
    result
        .by_size
        .iter()
        .map(|group| (group.size_mean, value(group)))
        .collect()
}

/// A number of any magnitude in few characters.
fn number(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
