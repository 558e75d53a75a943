//! What all drawings share, those of `sim` and `model` and those of experiments: the file (SVG, or
//! a page with it), lines with their colours and legend, and a line chart ([`chart`]). Text uses
//! the viewer's own fonts.
//!
//! The SVG has the colours of a light ground. A page that also has a dark theme puts
//! [`style_sheet`] beside it, whose rules replace each of them.
#![forbid(unsafe_code)]

mod colours;
mod ticks;

use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;
use thiserror::Error;

pub use colours::{
    in_both_themes, style, style_of_optimum, style_of_reference, style_sheet, styled,
};
pub use ticks::{axes, log_scale};

/// A drawing that could not be made or written.
#[derive(Debug, Error)]
#[error("{path}: the plot could not be drawn: {problem}", path = path.display())]
pub struct PlotError {
    /// Where it should go.
    pub path: PathBuf,
    /// Why it is not there.
    pub problem: String,
}

/// The font of axes and legends.
pub const FONT: (&str, u32) = ("sans-serif", 14);
/// The font of captions.
pub const FONT_CAPTION: (&str, u32) = ("sans-serif", 17);

/// Pixels of the legend: on its sides, for a mark with its margin, for an average character of a
/// proportional font, for a row.
const LEGEND_MARGIN: u32 = 20;
const LEGEND_MARK: u32 = 56;
const LEGEND_CHARACTER: u32 = 8;
const LEGEND_ROW: u32 = 22;

/// A part of a drawing.
pub type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// The result of drawing.
pub type Drawn = Result<(), Box<dyn std::error::Error>>;
/// The points of a line.
pub type Points = Vec<(f64, f64)>;

/// Draws to a file, `size` in pixels; a page if the name ends in `.html`.
///
/// # Errors
/// If it cannot be written.
pub fn write(
    path: &Path,
    title: &str,
    size: (u32, u32),
    draw: impl FnOnce(&Panel<'_>) -> Drawn,
) -> Result<(), PlotError> {
    let failed = |error: &dyn std::fmt::Display| PlotError {
        path: path.into(),
        problem: error.to_string(),
    };
    let svg = svg(size, draw).map_err(|error| failed(&error))?;
    let text = if is_page(path) {
        page(title, &svg)
    } else {
        svg
    };
    std::fs::write(path, text).map_err(|error| failed(&error))
}

/// A page with a drawing, for light and dark, desktop and phone.
fn page(title: &str, svg: &str) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    let dark = style_sheet();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n:root{{color-scheme:light dark}}\nbody{{margin:0}}\n\
         .drawing{{overflow-x:auto}}\n.drawing svg{{display:block;min-width:40rem;max-width:100%;height:auto}}\n\
         @media (prefers-color-scheme: dark) {{\nbody{{background:#181A1E}}\n{dark}}}\n</style>\n\
         <div class=\"drawing\">{svg}</div>\n</html>\n"
    )
}

/// A drawing as text, `size` in pixels.
///
/// # Errors
/// Those of the backend.
pub fn svg(
    size: (u32, u32),
    draw: impl FnOnce(&Panel<'_>) -> Drawn,
) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    let whole = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    whole.fill(&colours::paper())?;
    draw(&whole)?;
    whole.present()?;
    // The drawing borrows the text until then.
    drop(whole);
    Ok(svg)
}

/// Whether a drawing of this name is a page, not bare SVG.
pub fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "html")
}

/// A line with its name in the legend.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its style, in the legend and in every chart.
    pub style: ShapeStyle,
    /// Its points.
    pub points: Points,
}

/// One of the two axes of a [`chart`].
#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    /// What it counts, with the unit.
    pub about: &'a str,
    /// Whether it is logarithmic. Values that are not above 0 are then left out.
    pub log: bool,
    /// The range; by default that of the lines.
    pub range: Option<(f64, f64)>,
    /// The format of its numbers.
    pub format: fn(f64) -> String,
}

/// A chart without its lines.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The title.
    pub caption: &'a str,
    /// The horizontal axis.
    pub x: Axis<'a>,
    /// The vertical axis.
    pub y: Axis<'a>,
    /// The shaded ranges.
    pub shaded: &'a [(f64, f64)],
}

/// Draws lines in a frame.
///
/// # Errors
/// Those of the backend.
pub fn chart(panel: &Panel<'_>, frame: &Frame<'_>, lines: &[Line]) -> Drawn {
    let lines: Vec<Line> = lines.iter().map(|line| drawable(line, frame)).collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let (x, x_log) = scale(&frame.x, || points().map(|point| point.0));
    let (y, y_log) = scale(&frame.y, || points().map(|point| point.1));
    let mut builder = ChartBuilder::on(panel);
    builder
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(64);
    if !frame.caption.is_empty() {
        builder.caption(frame.caption, FONT_CAPTION);
    }
    let (x_plain, y_plain) = (x.0..x.1, y.0..y.1);
    match (x_log, y_log) {
        (false, false) => fill(
            builder.build_cartesian_2d(x_plain, y_plain)?,
            frame,
            y,
            &lines,
        ),
        (false, true) => {
            let y_log = log_scale(y_plain);
            fill(
                builder.build_cartesian_2d(x_plain, y_log)?,
                frame,
                y,
                &lines,
            )
        }
        (true, false) => {
            let x_log = log_scale(x_plain);
            fill(
                builder.build_cartesian_2d(x_log, y_plain)?,
                frame,
                y,
                &lines,
            )
        }
        (true, true) => {
            let (x_log, y_log) = (log_scale(x_plain), log_scale(y_plain));
            fill(builder.build_cartesian_2d(x_log, y_log)?, frame, y, &lines)
        }
    }
}

/// The range of an axis, and whether it is logarithmic. A logarithmic axis of less than a few
/// factors would show no number.
fn scale<V: Iterator<Item = f64>>(axis: &Axis<'_>, values: impl Fn() -> V) -> ((f64, f64), bool) {
    const FACTOR_MIN: f64 = 8.0;
    let found = axis.range.unwrap_or_else(|| range(values(), axis.log));
    if axis.log && found.1 / found.0 < FACTOR_MIN {
        return (range(values(), false), false);
    }
    (found, axis.log)
}

fn drawable(line: &Line, frame: &Frame<'_>) -> Line {
    let positive = |(x, y): &(f64, f64)| (!frame.x.log || *x > 0.0) && (!frame.y.log || *y > 0.0);
    let points = line.points.iter().copied();
    Line {
        points: points.filter(positive).collect(),
        ..line.clone()
    }
}

fn fill<'a, X, Y>(
    mut chart: ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    frame: &Frame<'_>,
    (bottom, top): (f64, f64),
    lines: &[Line],
) -> Drawn
where
    X: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    let shade = |(begin, end): &(f64, f64)| {
        Rectangle::new([(*begin, bottom), (*end, top)], colours::shade().filled())
    };
    chart.draw_series(frame.shaded.iter().map(shade))?;
    axes(&mut chart, &frame.x, &frame.y)?;
    for each in lines {
        line(&mut chart, each.style, &each.points)?;
        if let [only] = each.points[..] {
            // A line of one point would be invisible.
            chart.draw_series([Circle::new(only, 3, each.style.filled())])?;
        }
    }
    Ok(())
}

/// The range of some values, a little wider; without any values, something drawable.
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
    let low = low.min(0.0);
    // If all values are zero, the axis is linear.
    let high = if high > low { high * 1.05 } else { low + 1.0 };
    (low, high)
}

/// Draws a line.
///
/// # Errors
/// Those of the backend.
pub fn line<X, Y>(
    chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
    style: ShapeStyle,
    points: &Points,
) -> Drawn
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
    Ok(())
}

/// Draws a legend at the foot, where it covers nothing, and returns the area above it. The legend
/// has the names and styles of the lines in order, and what dots mean, if there are any.
///
/// # Errors
/// Those of the backend.
pub fn legend_below<'a>(
    whole: &Panel<'a>,
    lines: &[(String, ShapeStyle)],
    dots: Option<&str>,
) -> Result<Panel<'a>, Box<dyn std::error::Error>> {
    let (width, height) = whole.dim_in_pixel();
    let texts: Vec<&str> = lines
        .iter()
        .map(|(name, _)| name.as_str())
        .chain(dots)
        .collect();
    let longest = texts.iter().map(|text| text.chars().count()).max();
    let column = LEGEND_MARK + LEGEND_CHARACTER * longest.unwrap_or(0) as u32;
    let columns = ((width - 2 * LEGEND_MARGIN) / column).max(1);
    let rows = (texts.len() as u32).div_ceil(columns);
    let (above, foot) = whole.split_vertically(height - rows * LEGEND_ROW - LEGEND_MARGIN / 2);
    for (place, text) in (0u32..).zip(texts) {
        let x = (LEGEND_MARGIN + place % columns * column) as i32;
        let y = (place / columns * LEGEND_ROW + LEGEND_ROW / 2) as i32;
        if let Some((_, style)) = lines.get(place as usize) {
            foot.draw(&PathElement::new([(x, y), (x + 24, y)], *style))?;
        } else {
            foot.draw(&Circle::new((x + 12, y), 3, colours::ink().filled()))?;
        }
        foot.draw(&Text::new(text.to_owned(), (x + 32, y - 7), FONT))?;
    }
    Ok(above)
}

/// A number of any magnitude in few characters, for the axes.
pub fn number(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_brings_its_dark_colours_along() {
        let drawn = svg((100, 50), |panel| {
            panel
                .draw(&Text::new("a", (0, 0), FONT))
                .map_err(Into::into)
        });
        let drawn = in_both_themes(&drawn.expect("it can be drawn"));
        let (head, style) = drawn.split_once("<style>").expect("a style");
        assert!(head.starts_with("<svg ") && style.contains("[fill=\"#FFFFFF\"]{fill:#181A1E}"));
        assert!(style.contains("</style>") && style.ends_with("</svg>\n"));
    }

    #[test]
    fn a_range_holds_its_values_and_is_never_empty() {
        assert_eq!(range([0.0, 0.0].into_iter(), false), (0.0, 1.0));
        assert_eq!(range([4.0].into_iter(), false), (0.0, 4.2));
        assert_eq!(range([-2.0, 0.0].into_iter(), false), (-2.0, 0.0));
        assert_eq!(range([1.3].into_iter(), true), (1.0, 1.3 * 1.3));
        assert_eq!(range(std::iter::empty(), true), (0.1, 1.0));
    }
}
