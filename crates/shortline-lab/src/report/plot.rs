//! One SVG with four panels, after Fig. 8 of paper 000: response time over time with the overloads
//! shaded, response time by size, its complementary distribution, and the means beside the optimum.

use std::path::Path;

use plotters::prelude::*;
use shortline_load::record::RequestRecord;
use shortline_plot::{self as drawing, Axis, Drawn, Frame, Line, Panel, Points};

use crate::report::ReportError;
use crate::report::series::{self, OPTIMUM, Series};
use crate::study::lines;
use crate::study::plan::Plan;
use crate::study::point::Point;
use shortline_table::{three_digits, time, time_on_axis};

const WIDTH: u32 = 1280;
const HEIGHT: u32 = 960;
/// The shortest time that makes a bar, in seconds.
const TIME_MIN_S: f64 = 1e-4;

/// Draws the first seed of a point to the file `path`.
///
/// # Errors
/// If a kept file is missing or wrong, or the drawing cannot be written.
pub fn draw(path: &Path, folder: &Path, plan: &Plan, point: &Point) -> Result<(), ReportError> {
    let title = format!(
        "{}: {} for {} s",
        plan.experiment, point.rate, point.seconds
    );
    let series = series::of(folder, plan, point)?;
    drawing::write(path, &title, (WIDTH, HEIGHT), |whole| {
        let name = |series: &Series| (series.name.clone(), series.style);
        let names: Vec<_> = series.iter().map(name).collect();
        let whole = whole.titled(&title, ("sans-serif", 24))?;
        let panels = drawing::legend_below(&whole, &names, None)?.split_evenly((2, 2));
        let [top_left, top_right, bottom_left, bottom_right] = &panels[..] else {
            unreachable!("invariant: two by two are four");
        };
        let overloads_s = point.overloads_s();
        let frame = over_time(&overloads_s, point.seconds as f64);
        drawing::chart(top_left, &frame, &lines(&series, lines::over_time))?;
        drawing::chart(top_right, &BY_SIZE, &lines(&series, lines::by_size))?;
        drawing::chart(
            bottom_left,
            &COMPLEMENTARY,
            &lines(&series, lines::complementary),
        )?;
        draw_means(bottom_right, &series)
    })?;
    Ok(())
}

const TIMES: Axis<'static> = Axis {
    about: "",
    log: true,
    range: None,
    format: time_on_axis,
};
const BY_SIZE: Frame<'static> = Frame {
    caption: "mean response time by size",
    x: Axis {
        about: "size (bytes)",
        format: drawing::number,
        ..TIMES
    },
    y: TIMES,
    shaded: &[],
};
const COMPLEMENTARY: Frame<'static> = Frame {
    caption: "share of requests that take longer",
    x: Axis {
        about: "response time",
        ..TIMES
    },
    y: Axis {
        format: drawing::number,
        ..TIMES
    },
    shaded: &[],
};

fn over_time(overloads_s: &[(f64, f64)], seconds: f64) -> Frame<'_> {
    Frame {
        caption: "mean response time over time (overload shaded)",
        x: Axis {
            about: "arrival (s)",
            log: false,
            range: Some((0.0, seconds)),
            format: drawing::number,
        },
        y: TIMES,
        shaded: overloads_s,
    }
}

fn lines(series: &[Series], points: impl Fn(&[RequestRecord]) -> Points) -> Vec<Line> {
    let line = |series: &Series| Line {
        name: series.name.clone(),
        style: series.style,
        points: points(series.first()),
    };
    series.iter().map(line).collect()
}

fn draw_means(panel: &Panel<'_>, all: &[Series]) -> Drawn {
    let mean = |series: &Series| {
        let records = series.first();
        let sum_s: f64 = records.iter().map(|record| record.response_time_s).sum();
        sum_s / records.len() as f64
    };
    let optimum_s = all.iter().find(|series| series.name == OPTIMUM).map(mean);
    let longest_s = all.iter().map(mean).fold(TIME_MIN_S, f64::max);
    let rows = all.len() as f64;
    // Leaves half the width again for the text behind the longest bar.
    let mut chart = ChartBuilder::on(panel)
        .caption(
            "mean response time, and as a multiple of the optimum",
            drawing::FONT_CAPTION,
        )
        .margin(10)
        .build_cartesian_2d(0.0..longest_s * 1.5, 0.0..rows)?;
    for (index, series) in all.iter().enumerate() {
        let mean_s = mean(series);
        let top = rows - index as f64 - 0.15;
        let bar = [(0.0, top - 0.7), (mean_s, top)];
        chart.draw_series([Rectangle::new(bar, series.style.filled())])?;
        let multiple = optimum_s.map_or(String::new(), |optimum_s| {
            format!(" ({} x)", three_digits(mean_s / optimum_s))
        });
        let label = format!(" {}: {}{multiple}", series.name, time(mean_s));
        chart.draw_series([Text::new(label, (mean_s, top - 0.25), drawing::FONT)])?;
    }
    Ok(())
}
