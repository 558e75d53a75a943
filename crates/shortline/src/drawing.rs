//! What the drawings of `sim` and `model` share: colours, lines and their legend.

use plotters::coord::Shift;
use plotters::prelude::*;

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

/// A part of a drawing.
pub type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What drawing ends in.
pub type Drawn = Result<(), Box<dyn std::error::Error>>;
/// The points of a line.
pub type Points = Vec<(f64, f64)>;

/// The style of the line at this place among others.
pub fn style(place: usize) -> ShapeStyle {
    COLOURS[place % COLOURS.len()].stroke_width(2)
}

/// Draws a line and enters it in the legend.
///
/// # Errors
/// Those of the backend.
pub fn line<X, Y>(
    chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
    style: ShapeStyle,
    name: &str,
    points: &Points,
) -> Drawn
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    chart
        .draw_series(LineSeries::new(points.iter().copied(), style))?
        .label(name)
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    Ok(())
}

/// Draws the legend of all lines entered.
///
/// # Errors
/// Those of the backend.
pub fn legend<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    position: SeriesLabelPosition,
) -> Drawn
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}
