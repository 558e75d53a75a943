//! One drawing of six panels: number in the system and sojourn time over time, sojourn time
//! and slowdown by size, slowdown by percentile of size (paper 003, Fig 5), and the share of
//! requests that take longer.

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

/// Draws the results to a file.
///
/// # Errors
/// If it cannot be written.
pub(super) fn draw(path: &Path, title: &str, results: &[PolicyResult]) -> Result<(), CommandError> {
    drawing::write(path, title, (WIDTH, HEIGHT), |whole| {
        draw_all(whole, title, results)
    })
}

fn draw_all(whole: &Panel<'_>, title: &str, results: &[PolicyResult]) -> Drawn {
    let names: Vec<String> = results
        .iter()
        .map(|result| result.policy.to_string())
        .collect();
    let panels = drawing::legend_below(&whole.titled(title, ("sans-serif", 22))?, &names, None)?
        .split_evenly((3, 2));
    for (panel, drawing) in panels.iter().zip(&DRAWINGS) {
        let lines: Vec<Points> = results
            .iter()
            .map(|result| {
                let positive = |(x, y): &(f64, f64)| {
                    (!drawing.log_x || *x > 0.0) && (!drawing.log_y || *y > 0.0)
                };
                let points = (drawing.points)(result).into_iter();
                points.filter(positive).collect()
            })
            .collect();
        draw_panel(panel, drawing, &lines)?;
    }
    Ok(())
}

fn draw_panel(panel: &Panel<'_>, drawing: &Drawing<'_>, lines: &[Points]) -> Drawn {
    let points = || lines.iter().flatten();
    let x = range(points().map(|point| point.0), drawing.log_x);
    let y = range(points().map(|point| point.1), drawing.log_y);
    let mut builder = ChartBuilder::on(panel);
    builder
        .caption(drawing.caption, drawing::FONT_CAPTION)
        .margin(10)
        .x_label_area_size(44)
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
    lines: &[Points],
) -> Drawn
where
    X: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .label_style(drawing::FONT)
        .x_desc(drawing.x)
        .x_label_formatter(&|value| drawing::number(*value))
        .y_label_formatter(&|value| drawing::number(*value))
        .draw()?;
    for (place, points) in lines.iter().enumerate() {
        drawing::line(&mut chart, drawing::style(place), points)?;
    }
    Ok(())
}

/// The range of some values, a little wider; something drawable without any.
fn range(values: impl Iterator<Item = f64>, log: bool) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
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
