//! Drawings of `shortline model`, as SVG: the expected slowdown by size (paper 001, Figs 7 and 8).
//! The left side goes up to the 99th percentile, as there; the right side goes on to the largest
//! job. With several loads, it is the means by load. Dots are the simulator's results, lines the
//! formula's.

use std::path::Path;

use plotters::prelude::*;
use shortline_plot::{self as drawing, Axis, Drawn, Panel, Points};

use super::ModelResult;
use super::simulated::Simulated;
use shortline_command::CommandError;
use shortline_command::output;
use shortline_table::three_digits;

const WIDTH: u32 = 1120;
const HEIGHT: u32 = 500;
/// The most lines that a title names.
const NAMED_MAX: usize = 3;
/// The longest title that half of the width has room for.
const TITLE_CHARS_MAX: usize = 76;

struct Line {
    name: String,
    points: Points,
    dots: Points,
}

/// Draws the results to a file, or to standard output for `-`.
///
/// # Errors
/// The file cannot be written.
pub(super) fn draw(path: &Path, results: &[ModelResult]) -> Result<(), CommandError> {
    let loads = results.iter().map(|result| result.setting.load);
    let several = loads.clone().any(|load| Some(load) != loads.clone().next());
    let dots = results.iter().any(|result| result.simulated.is_some());
    let title = match several {
        true => said("mean time in the system", results, |result| {
            result.analysis.sojourn_mean
        }),
        false => said("mean slowdown", results, |result| {
            result.analysis.slowdown_mean
        }),
    };
    output::draw(path, &title, (WIDTH, HEIGHT), |whole| {
        let dots = dots.then_some("simulated");
        let panels = drawing::legend_below(whole, &drawing::styled(names(results)), dots)?;
        let (left, right) = panels.split_horizontally(WIDTH / 2);
        if several {
            by_load((&left, &title), &right, results)
        } else {
            by_size((&left, &title), &right, results)
        }
    })
}

/// The result in a few words: a value of each line at the highest load, from the least on. Of many lines there are the two
/// ends, and of those with long names the values alone.
fn said(what: &str, results: &[ModelResult], value: fn(&ModelResult) -> f64) -> String {
    let loads = results.iter().map(|result| result.setting.load);
    let load = loads.fold(0.0, f64::max);
    let at_it = results.iter().filter(|result| result.setting.load == load);
    let mut values: Vec<(String, f64)> = at_it
        .map(|result| (name(results, result), value(result)))
        .collect();
    values.sort_by(|one, other| one.1.total_cmp(&other.1));
    let about = format!("{what} at load {}", drawing::number(load));
    if values.len() > NAMED_MAX {
        values.drain(1..values.len() - 1);
    }
    let named = values.iter();
    let named = named.map(|(name, value)| format!("{name} {}", three_digits(*value)));
    let title = format!("{about}: {}", named.collect::<Vec<_>>().join(", "));
    match &values[..] {
        [(_, least), .., (_, most)] if title.chars().count() > TITLE_CHARS_MAX => {
            format!(
                "{about}: {} to {}",
                three_digits(*least),
                three_digits(*most)
            )
        }
        _ => title,
    }
}

fn by_size((left, title): (&Panel<'_>, &str), right: &Panel<'_>, results: &[ModelResult]) -> Drawn {
    type Of = fn(&ModelResult) -> Points;
    let lines = |points: Of, dots: Of| -> Vec<Line> {
        let line = |result: &ModelResult| Line {
            name: name(results, result),
            points: points(result),
            dots: dots(result),
        };
        results.iter().map(line).collect()
    };
    let to_99 = lines(buckets_to_99, |result| {
        let simulated = result.simulated.as_ref();
        simulated.map_or(Vec::new(), dots_to_99)
    });
    let tail = lines(tail_points, |result| {
        let simulated = result.simulated.as_ref();
        simulated.map_or(Vec::new(), |simulated| simulated.slowdown_by_nines.clone())
    });
    let slowdown = "mean slowdown (time in the system / size)";
    let percentiles = ("percentile of size", 0.0..100.0);
    chart(left, title, percentiles, slowdown, &to_99)?;
    let decades = tail.iter().flat_map(|line| line.points.last());
    let decades = decades.map(|point| point.0).fold(1.0, f64::max);
    let nines = (
        "nines of size: 2 is the 99th percentile, 3 the 99.9th",
        0.0..decades,
    );
    let title = said("slowdown of the largest", results, |result| {
        result.analysis.slowdown_largest
    });
    chart(right, &title, nines, slowdown, &tail)
}

fn buckets_to_99(result: &ModelResult) -> Points {
    let buckets = &result.analysis.buckets;
    let percentile = |place: usize| 100.0 * (place as f64 + 0.5) / buckets.len() as f64;
    let points = buckets.iter().enumerate();
    points
        .map(|(place, bucket)| (percentile(place), bucket.slowdown))
        .filter(|(percentile, slowdown)| *percentile < 99.0 && slowdown.is_finite())
        .collect()
}

/// The dots of groups that lie entirely below the 99th percentile.
fn dots_to_99(simulated: &Simulated) -> Points {
    let dots = simulated.slowdown_by_percentile.iter().copied();
    dots.filter(|(percentile, _)| *percentile < 97.5).collect()
}

fn tail_points(result: &ModelResult) -> Points {
    let points = result.analysis.points.iter();
    points
        .filter(|point| point.share_above > 0.0)
        .map(|point| (-point.share_above.log10(), point.slowdown))
        .collect()
}

fn by_load((left, title): (&Panel<'_>, &str), right: &Panel<'_>, results: &[ModelResult]) -> Drawn {
    let lines = |value: fn(&ModelResult) -> f64, found: fn(&Simulated) -> Option<f64>| {
        let mut lines: Vec<Line> = Vec::new();
        for result in results {
            let name = name(results, result);
            let place = lines.iter().position(|line| line.name == name);
            let place = place.unwrap_or_else(|| {
                lines.push(Line {
                    name,
                    points: Vec::new(),
                    dots: Vec::new(),
                });
                lines.len() - 1
            });
            let load = result.setting.load;
            lines[place].points.push((load, value(result)));
            let found = result.simulated.as_ref().and_then(found);
            lines[place].dots.extend(found.map(|found| (load, found)));
        }
        lines
    };
    let means = lines(
        |result| result.analysis.sojourn_mean,
        |simulated| Some(simulated.sojourn_mean),
    );
    let largest = lines(|result| result.analysis.slowdown_largest, |_| None);
    let loads = || ("load", 0.0..1.0);
    let times = "mean time in the system, in service times";
    chart(left, title, loads(), times, &means)?;
    let title = said("slowdown of the largest", results, |result| {
        result.analysis.slowdown_largest
    });
    chart(
        right,
        &title,
        loads(),
        "mean slowdown of the largest job",
        &largest,
    )
}

/// The names of the lines, in drawing order.
fn names(results: &[ModelResult]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for result in results {
        let name = name(results, result);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What distinguishes a result from the others.
fn name(results: &[ModelResult], result: &ModelResult) -> String {
    let one_dist = results
        .iter()
        .all(|other| other.setting.dist == result.setting.dist);
    let one_policy = results
        .iter()
        .all(|other| other.analysis.policy == result.analysis.policy);
    match (one_dist, one_policy) {
        (true, _) => result.analysis.policy.to_string(),
        (false, true) => result.setting.dist.to_string(),
        (false, false) => format!("{} {}", result.setting.dist, result.analysis.policy),
    }
}

fn chart(
    panel: &Panel<'_>,
    title: &str,
    (x_title, x_range): (&str, std::ops::Range<f64>),
    y_title: &str,
    lines: &[Line],
) -> Drawn {
    let values = lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| point.1);
    let highest = values.fold(1.5, f64::max);
    let mut chart = ChartBuilder::on(panel)
        .caption(title, drawing::FONT_CAPTION)
        .margin(10)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(x_range, drawing::log_scale(1.0..highest * 1.1))?;
    let axis = |about| Axis {
        about,
        log: false,
        range: None,
        format: drawing::number,
    };
    drawing::axes(&mut chart, &axis(x_title), &axis(y_title))?;
    let styled = drawing::styled(lines.iter().map(|line| line.name.clone()).collect());
    for (line, (_, style)) in lines.iter().zip(styled) {
        drawing::line(&mut chart, style, &line.points)?;
        let dots = line.dots.iter();
        chart.draw_series(dots.map(|&dot| Circle::new(dot, 3, style.filled())))?;
    }
    Ok(())
}
