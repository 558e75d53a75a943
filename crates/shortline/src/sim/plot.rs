//! One drawing of six panels: number in the system and sojourn time over time, sojourn time
//! and slowdown by size, slowdown by percentile of size (paper 003, Fig 5), and the share of
//! requests that take longer.

use std::path::Path;

use plotters::prelude::*;
use shortline_plot::{self as drawing, Axis, Drawn, Frame, Line, Panel, Points};
use shortline_sim::results::PolicyResult;

use shortline_command::CommandError;
use shortline_command::output;
use shortline_table::time;

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

/// Draws the results to a file, or to standard output for `-`.
///
/// # Errors
/// The file cannot be written.
pub(super) fn draw(path: &Path, title: &str, results: &[PolicyResult]) -> Result<(), CommandError> {
    output::draw(path, title, (WIDTH, HEIGHT), |whole| {
        draw_all(whole, title, results)
    })
}

fn draw_all(whole: &Panel<'_>, title: &str, results: &[PolicyResult]) -> Drawn {
    let names = results.iter().map(|result| result.policy.to_string());
    let names = drawing::styled(names.collect());
    let title = format!("{title}: {}", means(results));
    let panels = drawing::legend_below(&whole.titled(&title, ("sans-serif", 20))?, &names, None)?
        .split_evenly((3, 2));
    for (panel, about) in panels.iter().zip(&DRAWINGS) {
        let line = |((name, style), result): (&(String, ShapeStyle), &PolicyResult)| Line {
            name: name.clone(),
            style: *style,
            points: (about.points)(result),
        };
        let lines: Vec<Line> = names.iter().zip(results).map(line).collect();
        drawing::chart(panel, &frame(about), &lines)?;
    }
    Ok(())
}

/// The result in a few words.
fn means(results: &[PolicyResult]) -> String {
    const NAMED_MAX: usize = 5;
    let named = results.iter().take(NAMED_MAX);
    let named = named.map(|result| format!("{} {}", result.policy, time(result.sojourn_mean)));
    format!("mean {}", named.collect::<Vec<_>>().join(", "))
}

fn frame<'a>(about: &Drawing<'a>) -> Frame<'a> {
    let axis = |text, log| Axis {
        about: text,
        log,
        range: None,
        format: drawing::number,
    };
    Frame {
        caption: about.caption,
        x: axis(about.x, about.log_x),
        y: axis("", about.log_y),
        shaded: &[],
    }
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
