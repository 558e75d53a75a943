//! One SVG with four panels, after Fig. 8 of paper 000: response time over time with the
//! overloads shaded, by size, its complementary distribution, and the means beside the
//! optimum. Text is left to the viewer's own fonts.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use shortline_load::record::RequestRecord;

use crate::LabError;
use crate::experiment::plan::Plan;
use crate::table::{three_digits, time};

const WIDTH: u32 = 1280;
const HEIGHT: u32 = 960;
/// Arrivals of so many seconds make a point over time.
const BIN_S: f64 = 1.0;
/// Points per factor 10 of size.
const BINS_PER_DECADE: f64 = 4.0;
/// The shortest time drawn, in seconds: axes are logarithmic.
const TIME_MIN_S: f64 = 1e-4;
/// Fluid PS, the optimum, then the servers.
const COLOURS: [RGBColor; 9] = [
    RGBColor(150, 150, 150),
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 80, 40),
];

type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Points = Vec<(f64, f64)>;

/// Draws `series` (a name and its records each) to the file `path`.
///
/// # Errors
/// If the file cannot be written.
pub fn draw(
    path: &Path,
    plan: &Plan,
    series: &[(String, Vec<RequestRecord>)],
) -> Result<(), LabError> {
    let failed = |problem: String| LabError::Plot {
        path: path.into(),
        problem,
    };
    let whole = SVGBackend::new(path, (WIDTH, HEIGHT)).into_drawing_area();
    let result = (|| -> Result<(), Box<dyn std::error::Error>> {
        whole.fill(&WHITE)?;
        let title = format!("{}: {} for {} s", plan.experiment, plan.rate, plan.seconds);
        let whole = whole.titled(&title, ("sans-serif", 24))?;
        let panels = whole.split_evenly((2, 2));
        let [over_time, by_size, distribution, means] = &panels[..] else {
            unreachable!("invariant: two by two are four");
        };
        draw_over_time(over_time, plan, series)?;
        draw_by_size(by_size, series)?;
        draw_distribution(distribution, series)?;
        draw_means(means, series)?;
        whole.present()?;
        Ok(())
    })();
    result.map_err(|error| failed(error.to_string()))
}

fn draw_over_time(
    panel: &Panel<'_>,
    plan: &Plan,
    series: &[(String, Vec<RequestRecord>)],
) -> Result<(), Box<dyn std::error::Error>> {
    let lines = named(series, |records| {
        means_by(
            records,
            |record| (record.at_s / BIN_S).floor(),
            |bin| (bin + 0.5) * BIN_S,
        )
    });
    let times = times_of(&lines);
    let mut chart = ChartBuilder::on(panel)
        .caption(
            "mean response time over time (overload shaded)",
            ("sans-serif", 16),
        )
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..plan.seconds as f64, (times.0..times.1).log_scale())?;
    let shade = RGBColor(255, 236, 200).filled();
    let shades = plan
        .overloads_s
        .iter()
        .map(|(begin_s, end_s)| Rectangle::new([(*begin_s, times.0), (*end_s, times.1)], shade));
    chart.draw_series(shades)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("arrival (s)")
        .y_label_formatter(&|seconds| time(*seconds))
        .draw()?;
    draw_lines(&mut chart, &lines)?;
    legend(&mut chart, SeriesLabelPosition::UpperLeft)
}

fn draw_by_size(
    panel: &Panel<'_>,
    series: &[(String, Vec<RequestRecord>)],
) -> Result<(), Box<dyn std::error::Error>> {
    let bin = |record: &RequestRecord| (record.size.max(1) as f64).log10() * BINS_PER_DECADE;
    let lines = named(series, |records| {
        means_by(
            records,
            |record| bin(record).floor(),
            |bin| 10f64.powf((bin + 0.5) / BINS_PER_DECADE),
        )
    });
    let times = times_of(&lines);
    let sizes = range_of(
        lines
            .iter()
            .flat_map(|(_, points)| points.iter().map(|(size, _)| *size)),
        1.0,
    );
    let mut chart = ChartBuilder::on(panel)
        .caption("mean response time by size", ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (sizes.0..sizes.1).log_scale(),
            (times.0..times.1).log_scale(),
        )?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("size (bytes)")
        .x_label_formatter(&|size| format!("{size}"))
        .y_label_formatter(&|seconds| time(*seconds))
        .draw()?;
    draw_lines(&mut chart, &lines)?;
    legend(&mut chart, SeriesLabelPosition::UpperLeft)
}

fn draw_distribution(
    panel: &Panel<'_>,
    series: &[(String, Vec<RequestRecord>)],
) -> Result<(), Box<dyn std::error::Error>> {
    let lines = named(series, complementary);
    let times = range_of(
        lines
            .iter()
            .flat_map(|(_, points)| points.iter().map(|(seconds, _)| *seconds)),
        TIME_MIN_S,
    );
    let shares = range_of(
        lines
            .iter()
            .flat_map(|(_, points)| points.iter().map(|(_, share)| *share)),
        1e-6,
    );
    let mut chart = ChartBuilder::on(panel)
        .caption("share of requests that take longer", ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d((times.0..times.1).log_scale(), (shares.0..1.0).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("response time")
        .x_label_formatter(&|seconds| time(*seconds))
        .y_label_formatter(&|share| format!("{share}"))
        .draw()?;
    draw_lines(&mut chart, &lines)?;
    legend(&mut chart, SeriesLabelPosition::LowerLeft)
}

fn draw_means(
    panel: &Panel<'_>,
    series: &[(String, Vec<RequestRecord>)],
) -> Result<(), Box<dyn std::error::Error>> {
    let means: Vec<(usize, &str, f64)> = series
        .iter()
        .enumerate()
        .filter(|(_, (_, records))| !records.is_empty())
        .map(|(index, (name, records))| {
            let sum: f64 = records.iter().map(|record| record.response_time_s).sum();
            (index, name.as_str(), sum / records.len() as f64)
        })
        .collect();
    let optimum_s = means
        .iter()
        .find(|(_, name, _)| *name == "optimum")
        .map(|(_, _, mean_s)| *mean_s);
    let longest_s = means
        .iter()
        .map(|(_, _, mean_s)| *mean_s)
        .fold(TIME_MIN_S, f64::max);
    let rows = series.len() as f64;
    // Half as wide again for the text behind the longest bar.
    let mut chart = ChartBuilder::on(panel)
        .caption(
            "mean response time, and as a multiple of the optimum",
            ("sans-serif", 16),
        )
        .margin(10)
        .build_cartesian_2d(0.0..longest_s * 1.5, 0.0..rows)?;
    for (index, name, mean_s) in means {
        let top = rows - index as f64 - 0.15;
        let bar = [(0.0, top - 0.7), (mean_s, top)];
        chart.draw_series([Rectangle::new(bar, colour(index).mix(0.7).filled())])?;
        let multiple = optimum_s.map_or(String::new(), |optimum_s| {
            format!(" ({} x)", three_digits(mean_s / optimum_s))
        });
        let label = format!(" {name}: {}{multiple}", time(mean_s));
        chart.draw_series([Text::new(label, (mean_s, top - 0.25), ("sans-serif", 14))])?;
    }
    Ok(())
}

fn draw_lines<X, Y>(
    chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
    lines: &[(String, Points)],
) -> Result<(), Box<dyn std::error::Error>>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    for (index, (name, points)) in lines.iter().enumerate() {
        let style = colour(index).stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    Ok(())
}

fn legend<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    position: SeriesLabelPosition,
) -> Result<(), Box<dyn std::error::Error>>
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

fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

fn named(
    series: &[(String, Vec<RequestRecord>)],
    points: impl Fn(&[RequestRecord]) -> Points,
) -> Vec<(String, Points)> {
    series
        .iter()
        .map(|(name, records)| (name.clone(), points(records)))
        .collect()
}

/// Mean response times of the records that have the same `bin`, drawn `at` some place.
fn means_by(
    records: &[RequestRecord],
    bin: impl Fn(&RequestRecord) -> f64,
    at: impl Fn(f64) -> f64,
) -> Points {
    let mut bins: std::collections::BTreeMap<i64, (f64, f64)> = std::collections::BTreeMap::new();
    for record in records {
        let (sum_s, count) = bins.entry(bin(record) as i64).or_default();
        *sum_s += record.response_time_s;
        *count += 1.0;
    }
    let mean = |(bin, (sum_s, count)): (i64, (f64, f64))| {
        (at(bin as f64), (sum_s / count).max(TIME_MIN_S))
    };
    bins.into_iter().map(mean).collect()
}

/// The complementary distribution of response times, in at most a few hundred points.
fn complementary(records: &[RequestRecord]) -> Points {
    let mut times: Vec<f64> = records
        .iter()
        .map(|record| record.response_time_s.max(TIME_MIN_S))
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    let count = times.len();
    // Dense in the tail, where the points are few and matter.
    let mut ranks: Vec<usize> = (0..=200)
        .map(|step| count - (count as f64).powf(f64::from(step) / 200.0) as usize)
        .collect();
    ranks.sort_unstable();
    ranks.dedup();
    let point = |rank: usize| {
        times
            .get(rank)
            .map(|seconds| (*seconds, (count - rank) as f64 / count as f64))
    };
    ranks.into_iter().filter_map(point).collect()
}

fn times_of(lines: &[(String, Points)]) -> (f64, f64) {
    range_of(
        lines
            .iter()
            .flat_map(|(_, points)| points.iter().map(|(_, seconds)| *seconds)),
        TIME_MIN_S,
    )
}

/// The range of some values above 0, a little wider; something drawable without any.
fn range_of(values: impl Iterator<Item = f64>, least: f64) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, least), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let low = if low.is_finite() {
        low.max(least)
    } else {
        least
    };
    (low / 1.3, high.max(low) * 1.3)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn record(at_s: f64, size: u64, response_time_s: f64) -> RequestRecord {
        RequestRecord::finished(at_s, "/a", size, response_time_s)
    }

    #[test]
    fn records_of_a_second_make_a_point() {
        let records = [
            record(0.1, 1, 1.0),
            record(0.9, 1, 3.0),
            record(2.5, 1, 5.0),
        ];
        let points = means_by(
            &records,
            |record| (record.at_s / BIN_S).floor(),
            |bin| bin + 0.5,
        );
        assert_eq!(points, [(0.5, 2.0), (2.5, 5.0)]);
    }

    #[test]
    fn the_complementary_distribution_falls_from_one() {
        let records: Vec<_> = (1..=1000).map(|i| record(0.0, 1, f64::from(i))).collect();
        let points = complementary(&records);
        assert_eq!(points.first(), Some(&(1.0, 1.0)));
        assert_eq!(points.last(), Some(&(1000.0, 0.001)));
        assert!(points.windows(2).all(|pair| pair[0].1 > pair[1].1));
    }
}
