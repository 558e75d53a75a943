//! Axes whose numbers never overlap: of the ticks that a scale has, those get their number that have room for it, and
//! none that would say the same as the one before.

use std::ops::Range;

use plotters::coord::combinators::{BindKeyPoints, LogCoord, WithKeyPoints};
use plotters::coord::ranged1d::{BoldPoints, ValueFormatter};
use plotters::prelude::*;

use crate::{Axis, Drawn, FONT, LEGEND_CHARACTER};

/// The most ticks of an axis.
const TICKS: usize = 7;
/// Pixels between two numbers.
const GAP: i32 = 6;

/// A logarithmic axis. Of many decades it has a tick for one or some; of few also at 2 and 5.
pub fn log_scale(range: Range<f64>) -> WithKeyPoints<LogCoord<f64>> {
    let ticks = log_ticks(&range);
    range.log_scale().with_key_points(ticks)
}

fn log_ticks(range: &Range<f64>) -> Vec<f64> {
    let exponents = range.start.log10().floor() as i32..=range.end.log10().ceil() as i32;
    let is_shown = |tick: &f64| (range.start..=range.end).contains(tick);
    let decades = exponents.clone().map(|exponent| 10f64.powi(exponent));
    let count = decades.filter(is_shown).count();
    let steps: &[f64] = if count < 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let stride = count.div_ceil(TICKS).max(1) as i32;
    let exponents = exponents.filter(|exponent| exponent % stride == 0);
    let ticks =
        exponents.flat_map(|exponent| steps.iter().map(move |step| step * 10f64.powi(exponent)));
    ticks.filter(is_shown).collect()
}

/// Draws the axes of a chart, with their numbers and names.
///
/// # Errors
/// Those of the backend.
pub fn axes<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    x: &Axis<'_>,
    y: &Axis<'_>,
) -> Drawn
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let spec = chart.as_coord_spec();
    let (x_range, y_range) = (spec.get_x_axis_pixel_range(), spec.get_y_axis_pixel_range());
    let (x_low, y_low) = (chart.x_range().start, chart.y_range().start);
    let at_x = |value: f64| chart.backend_coord(&(value, y_low)).0;
    let at_y = |value: f64| chart.backend_coord(&(x_low, value)).1;
    let x_ticks = spec.x_spec().key_points(BoldPoints(TICKS));
    let y_ticks = spec.y_spec().key_points(BoldPoints(TICKS));
    let (x_format, y_format) = (x.format, y.format);
    // The margin of a chart has room for half a number on the right.
    let x_most = x_range.end + LEGEND_CHARACTER as i32 * 2;
    let wide = |value: f64| {
        let half = width(&x_format(value)) / 2;
        (at_x(value) - half, at_x(value) + half)
    };
    let high = |value: f64| {
        (
            at_y(value) - FONT.1 as i32 / 2,
            at_y(value) + FONT.1 as i32 / 2,
        )
    };
    let x_shown = shown(&x_ticks, x_format, wide, (i32::MIN, x_most));
    let y_shown = shown(
        &y_ticks,
        y_format,
        high,
        (i32::MIN, y_range.start.max(y_range.end) + FONT.1 as i32 / 2),
    );
    let told = |shown: &[f64], value: f64, format: fn(f64) -> String| match shown.contains(&value) {
        true => format(value),
        false => String::new(),
    };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .label_style(FONT)
        .x_desc(x.about)
        .y_desc(y.about)
        .x_labels(TICKS)
        .y_labels(TICKS)
        .x_label_formatter(&|value| told(&x_shown, *value, x_format))
        .y_label_formatter(&|value| told(&y_shown, *value, y_format))
        .draw()?;
    Ok(())
}

/// The ticks whose numbers fit: from the lowest pixel on, each behind the one before.
fn shown(
    ticks: &[f64],
    format: fn(f64) -> String,
    extent: impl Fn(f64) -> (i32, i32),
    (least, most): (i32, i32),
) -> Vec<f64> {
    let mut ticks = ticks.to_vec();
    ticks.sort_by_key(|tick| extent(*tick).0);
    let mut kept: Vec<f64> = Vec::new();
    let mut end = least;
    for tick in ticks {
        let (begins, ends) = extent(tick);
        let says_same = kept
            .last()
            .is_some_and(|last| format(*last) == format(tick));
        if begins >= end && ends <= most && !says_same {
            kept.push(tick);
            end = ends + GAP;
        }
    }
    kept
}

/// About how wide a text is, in pixels.
pub(crate) fn width(text: &str) -> i32 {
    text.chars().count() as i32 * LEGEND_CHARACTER as i32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use proptest::prelude::*;

    use crate::{Axis, Frame, Line, chart, number, style, svg};

    /// The value of an attribute of a text.
    fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
        let begin = format!("{name}=\"");
        let (_, behind) = tag.split_once(begin.as_str())?;
        behind.split('"').next()
    }

    /// The boxes of an SVG's texts: left, top, right, bottom, by character count.
    fn boxes(svg: &str) -> Vec<(String, [f64; 4])> {
        let text = |rest: &str| {
            let (tag, rest) = rest.split_once('>')?;
            let text = rest.split('<').next()?.trim().to_owned();
            // The name of the vertical axis is turned.
            if text.is_empty() || tag.contains("rotate") {
                return None;
            }
            let place = |name| attribute(tag, name)?.parse::<f64>().ok();
            let tag_of_x = format!(" {tag}");
            let x: f64 = attribute(&tag_of_x, " x")?.parse().ok()?;
            let y = place(" y")?;
            let (wide, high) = (f64::from(super::width(&text)), f64::from(crate::FONT.1));
            let left = match attribute(tag, "text-anchor")? {
                "middle" => x - wide / 2.0,
                "end" => x - wide,
                _ => x,
            };
            let top = match attribute(tag, " dy")? {
                "0.76em" => y,
                "0.5ex" => y - high / 2.0,
                _ => y - high,
            };
            Some((text, [left, top, left + wide, top + high]))
        };
        svg.split("<text ").skip(1).filter_map(text).collect()
    }

    fn overlap(one: &[f64; 4], other: &[f64; 4]) -> bool {
        one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3]
    }

    #[test]
    fn a_logarithmic_axis_has_some_ticks_however_long_it_is() {
        let ticks = |low: f64, high: f64| super::log_ticks(&(low..high));
        assert_eq!(ticks(1.0, 20.0), [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(ticks(3.0, 30.0), [5.0, 10.0, 20.0]);
        assert_eq!(ticks(0.5, 2000.0), [1.0, 10.0, 100.0, 1000.0]);
        let many = ticks(1e-9, 1e9);
        assert!((4..=7).contains(&many.len()), "{many:?}");
    }

    fn bytes_like(value: f64) -> String {
        format!("{value:.0} bytes each")
    }

    proptest! {
        #[test]
        fn no_two_numbers_of_a_drawing_overlap(
            points in proptest::collection::vec((1e-6..1e9f64, 1e-6..1e9f64), 2..6),
            x_log: bool,
            y_log: bool,
            is_long: bool,
            size in (300u32..1300, 220u32..900),
        ) {
            let format = if is_long { bytes_like } else { number };
            let axis = |log| Axis { about: "about", log, range: None, format };
            let frame = Frame { caption: "caption", x: axis(x_log), y: axis(y_log), shaded: &[] };
            let line = Line { name: "a".into(), style: style(0), points };
            let drawn = svg(size, |panel| chart(panel, &frame, &[line])).unwrap();
            let boxes = boxes(&drawn);
            // The caption and the horizontal axis' name are always there.
            prop_assert!(boxes.len() >= 2, "{drawn}");
            for (place, (text, one)) in boxes.iter().enumerate() {
                for (other_text, other) in &boxes[place + 1..] {
                    prop_assert!(!overlap(one, other), "{text} {one:?} and {other_text} {other:?}");
                }
            }
        }
    }
}
