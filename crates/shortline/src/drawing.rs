//! What the drawings of `sim` and `model` share: the file, SVG or a page with it, and lines with
//! their colours and legend. Text is left to the viewer's own fonts.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::error::CommandError;
use crate::output::check_writable;

/// Told apart also by those who see no red or green (Okabe and Ito 2008, and two more).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 80, 40),
    RGBColor(90, 90, 90),
];

/// The font of axes and legends.
pub const FONT: (&str, u32) = ("sans-serif", 14);
/// The font of captions.
pub const FONT_CAPTION: (&str, u32) = ("sans-serif", 17);

/// Pixels of the legend: on its sides, for a mark with what is around it, for a character of a
/// proportional font on average, for a row.
const LEGEND_MARGIN: u32 = 20;
const LEGEND_MARK: u32 = 56;
const LEGEND_CHARACTER: u32 = 8;
const LEGEND_ROW: u32 = 22;

/// A part of a drawing.
pub type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What drawing ends in.
pub type Drawn = Result<(), Box<dyn std::error::Error>>;
/// The points of a line.
pub type Points = Vec<(f64, f64)>;

/// Makes sure, before the work is done, that `--plot` names a file that can be drawn.
///
/// # Errors
/// Bad usage if it ends neither in `.svg` nor in `.html`, failure if it cannot be written.
pub fn check_file(path: &Path) -> Result<(), CommandError> {
    if !is_page(path) && path.extension().is_none_or(|ending| ending != "svg") {
        return Err(CommandError::Usage(format!(
            "--plot {}: the file must end in .svg or .html",
            path.display()
        )));
    }
    check_writable("--plot", path)
}

/// Draws to a file of so many pixels, a page if it ends in `.html`.
///
/// # Errors
/// If it cannot be written.
pub fn write(
    path: &Path,
    title: &str,
    size: (u32, u32),
    draw: impl FnOnce(&Panel<'_>) -> Drawn,
) -> Result<(), CommandError> {
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::Failure(format!("--plot {}: {error}", path.display()))
    };
    let mut svg = String::new();
    draw_on_white(&mut svg, size, draw).map_err(|error| failed(&error))?;
    let text = if is_page(path) {
        format!("<!doctype html>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n{svg}\n")
    } else {
        svg
    };
    std::fs::write(path, text).map_err(|error| failed(&error))
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "html")
}

fn draw_on_white(
    svg: &mut String,
    size: (u32, u32),
    draw: impl FnOnce(&Panel<'_>) -> Drawn,
) -> Drawn {
    let whole = SVGBackend::with_string(svg, size).into_drawing_area();
    whole.fill(&WHITE)?;
    draw(&whole)?;
    whole.present()?;
    Ok(())
}

/// The style of the line at this place among others.
pub fn style(place: usize) -> ShapeStyle {
    COLOURS[place % COLOURS.len()].stroke_width(2)
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

/// Draws a legend at the foot, where it covers nothing, and returns what is above it: the names
/// of the lines in their order, and what dots are, if there are any.
///
/// # Errors
/// Those of the backend.
pub fn legend_below<'a>(
    whole: &Panel<'a>,
    names: &[String],
    dots: Option<&str>,
) -> Result<Panel<'a>, Box<dyn std::error::Error>> {
    let (width, height) = whole.dim_in_pixel();
    let texts: Vec<&str> = names.iter().map(String::as_str).chain(dots).collect();
    let longest = texts.iter().map(|text| text.chars().count()).max();
    let column = LEGEND_MARK + LEGEND_CHARACTER * longest.unwrap_or(0) as u32;
    let columns = ((width - 2 * LEGEND_MARGIN) / column).max(1);
    let rows = (texts.len() as u32).div_ceil(columns);
    let (above, foot) = whole.split_vertically(height - rows * LEGEND_ROW - LEGEND_MARGIN / 2);
    for (place, text) in (0u32..).zip(texts) {
        let x = (LEGEND_MARGIN + place % columns * column) as i32;
        let y = (place / columns * LEGEND_ROW + LEGEND_ROW / 2) as i32;
        if (place as usize) < names.len() {
            let style = style(place as usize);
            foot.draw(&PathElement::new([(x, y), (x + 24, y)], style))?;
        } else {
            foot.draw(&Circle::new((x + 12, y), 3, BLACK.filled()))?;
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
