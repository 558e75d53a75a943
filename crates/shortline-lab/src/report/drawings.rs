//! The plots of a report, and the lines of each.

use shortline_load::record::RequestRecord;
use shortline_plot::{self as drawing, Axis, Frame, Line, Points};

use super::by_group;
use super::results::Results;
use super::series::{self, FLUID_PS, OPTIMUM, Series};
use shortline_sched::units::Rate;

use crate::study::claim::Plot;
use crate::study::figures::{PointFigures, RunFigures};
use crate::study::lines;
use crate::study::point::Point;
use crate::study::standing::fair_of;
use crate::study::stats::Spread;
use shortline_table::{bytes, time_on_axis};

/// The size of a plot in pixels, small enough to read its text on a phone.
const SIZE: (u32, u32) = (480, 330);
/// Plots that are drawn for each point, in this order.
const OF_POINT: [Plot; 11] = [
    Plot::OverTime,
    Plot::FirstByte,
    Plot::Complementary,
    Plot::BySize,
    Plot::ByPercentile,
    Plot::Variance,
    Plot::Stretch,
    Plot::Connections,
    Plot::Queue,
    Plot::Rate,
    Plot::Drops,
];
/// Plots over all points.
const ACROSS: [Plot; 4] = [Plot::Mean, Plot::Slowdown, Plot::Requests, Plot::Bytes];

/// A plot of a report.
pub struct Drawing {
    /// What it draws.
    pub plot: Plot,
    /// The point or group of clients that it is for. `None`: all.
    pub part: Option<String>,
    /// The caption above it.
    pub caption: String,
    /// Its lines.
    pub lines: Vec<Line>,
    /// The labels of its axes.
    pub axes: (String, String),
    x_range: Option<(f64, f64)>,
    shaded: Vec<(f64, f64)>,
}

impl Drawing {
    /// A plot whose axes fit its lines, without shading.
    pub(super) fn plain(
        plot: Plot,
        part: Option<String>,
        caption: String,
        lines: Vec<Line>,
        axes: (String, String),
    ) -> Self {
        Self {
            plot,
            part,
            caption,
            lines,
            axes,
            x_range: None,
            shaded: Vec::new(),
        }
    }

    /// The caption, with the server whose line is lowest if it is so nearly everywhere.
    pub fn title(&self) -> String {
        match lowest(self.plot, &self.lines) {
            Some((name, places, all)) => {
                format!("{}: {name} lowest at {places} of {all}", self.caption)
            }
            None => self.caption.clone(),
        }
    }

    /// The name of the file with its data.
    pub fn file(&self) -> String {
        let name = name(self.plot);
        match &self.part {
            Some(part) => format!("{part}-{name}.csv"),
            None => format!("{name}.csv"),
        }
    }

    /// The plot as SVG.
    ///
    /// # Errors
    /// Errors of the drawing library.
    pub fn svg(&self) -> Result<String, Box<dyn std::error::Error>> {
        let (log, format) = scales(self.plot);
        let frame = Frame {
            caption: "",
            x: Axis {
                about: &self.axes.0,
                log: log.0,
                range: self.x_range,
                format: format.0,
            },
            y: Axis {
                about: &self.axes.1,
                log: log.1,
                range: None,
                format: format.1,
            },
            shaded: &self.shaded,
        };
        drawing::svg(SIZE, |panel| drawing::chart(panel, &frame, &self.lines))
    }
}

/// The server whose line is lowest at most of the points that all have, at how many, and how many there are. `None` where
/// lower is not better, or nobody is lowest at nine of ten.
fn lowest(plot: Plot, lines: &[Line]) -> Option<(&str, usize, usize)> {
    let is_time = matches!(
        plot,
        Plot::Mean | Plot::Slowdown | Plot::MeanByGroup | Plot::BySize | Plot::ByPercentile
    );
    let is_server = |line: &&Line| ![FLUID_PS, OPTIMUM].contains(&line.name.as_str());
    let servers: Vec<&Line> = lines.iter().filter(is_server).collect();
    let first = servers.first().filter(|_| is_time && servers.len() > 1)?;
    let at = |line: &Line, x: f64| {
        line.points
            .iter()
            .find(|point| point.0 == x)
            .map(|point| point.1)
    };
    let mut wins = vec![0_usize; servers.len()];
    for (x, _) in &first.points {
        let values: Option<Vec<f64>> = servers.iter().map(|line| at(line, *x)).collect();
        let best = values.and_then(|values| {
            (0..values.len()).min_by(|one, other| values[*one].total_cmp(&values[*other]))
        });
        if let Some(best) = best {
            wins[best] += 1;
        }
    }
    let all: usize = wins.iter().sum();
    let best = (0..wins.len()).max_by_key(|server| wins[*server])?;
    (all > 1 && wins[best] * 10 >= all * 9).then(|| (servers[best].name.as_str(), wins[best], all))
}

/// The word for a plot in names of files.
pub fn name(plot: Plot) -> &'static str {
    match plot {
        Plot::Mean => "mean",
        Plot::Slowdown => "slowdown",
        Plot::Requests => "requests",
        Plot::Bytes => "bytes",
        Plot::MeanByGroup => "mean-by-group",
        Plot::GainByGroup => "gain-by-group",
        Plot::OverTime => "over-time",
        Plot::FirstByte => "first-byte",
        Plot::Complementary => "complementary",
        Plot::BySize => "by-size",
        Plot::ByPercentile => "by-percentile",
        Plot::Variance => "variance",
        Plot::Stretch => "stretch",
        Plot::Connections => "connections",
        Plot::Queue => "queue",
        Plot::Rate => "rate",
        Plot::Drops => "drops",
    }
}

type Format = fn(f64) -> String;

/// The scales of the axes, and the format of their numbers.
fn scales(plot: Plot) -> ((bool, bool), (Format, Format)) {
    let plain: Format = drawing::number;
    match plot {
        Plot::Mean | Plot::MeanByGroup | Plot::OverTime | Plot::FirstByte | Plot::ByPercentile => {
            ((false, true), (plain, time_on_axis))
        }
        Plot::Slowdown | Plot::Variance => ((false, true), (plain, plain)),
        Plot::Requests
        | Plot::GainByGroup
        | Plot::Connections
        | Plot::Queue
        | Plot::Rate
        | Plot::Drops => ((false, false), (plain, plain)),
        Plot::Bytes => ((false, false), (plain, bytes)),
        Plot::Complementary => ((true, true), (time_on_axis, plain)),
        Plot::BySize => ((true, true), (bytes_of_size, time_on_axis)),
        Plot::Stretch => ((true, true), (plain, plain)),
    }
}

fn bytes_of_size(size: f64) -> String {
    if size < 1000.0 {
        format!("{size:.0} B")
    } else {
        bytes(size).replace(".00", "").replace(".0", "")
    }
}

/// The plots over all points that the experiment's figures show. None if it has one point.
pub fn across(results: &Results<'_>) -> Vec<Drawing> {
    let points = &results.figures.points;
    if points.len() < 2 {
        return Vec::new();
    }
    let asked = |plot: &Plot| *plot == Plot::Mean || shows(results, *plot);
    let drawing = |plot: Plot| {
        let (caption, y) = match plot {
            Plot::Slowdown => ("mean slowdown", "slowdown"),
            Plot::Requests => ("requests finished per second", "requests/s"),
            Plot::Bytes => ("bytes of the bodies received", "bytes"),
            _ => ("mean response time", ""),
        };
        let axes = (results.axis.into(), y.into());
        Drawing::plain(
            plot,
            None,
            caption.into(),
            lines_across(results, plot),
            axes,
        )
    };
    let of_all = ACROSS.into_iter().filter(asked).map(drawing);
    of_all.chain(by_group::drawings(results)).collect()
}

/// Whether the experiment has a figure with that plot.
pub(super) fn shows(results: &Results<'_>, plot: Plot) -> bool {
    let figures = results.experiment.figures.iter();
    figures
        .flat_map(|figure| &figure.shows)
        .any(|shown| *shown == plot)
}

fn lines_across(results: &Results<'_>, plot: Plot) -> Vec<Line> {
    let of_servers = results.plan.servers.iter().map(|server| {
        let value = |point: &PointFigures, seconds: u64| {
            let runs = point.seeds.iter().flat_map(|seed| &seed.runs);
            let runs = runs.filter(|run| run.server == *server);
            Spread::of(runs.filter_map(|run| value_across(run, plot, seconds)))
        };
        line_across(results, server, value)
    });
    let bounds = [FLUID_PS, OPTIMUM]
        .into_iter()
        .filter(|_| plot == Plot::Mean);
    let of_bounds = bounds.map(|name| {
        let value = |point: &PointFigures, _| {
            let bounds = point.seeds.iter().filter_map(|seed| seed.bounds);
            Spread::of(bounds.map(|bounds| match name {
                OPTIMUM => bounds.optimum.mean_s,
                _ => bounds.fair.mean_s,
            }))
        };
        line_across(results, name, value)
    });
    of_bounds.chain(of_servers).collect()
}

fn value_across(run: &RunFigures, plot: Plot, seconds: u64) -> Option<f64> {
    let summary = &run.summary;
    match plot {
        Plot::Slowdown => Some(summary.slowdown?.mean),
        Plot::Requests => Some(summary.finished as f64 / seconds as f64),
        Plot::Bytes => Some(summary.received_bytes as f64),
        _ => Some(summary.response_time.mean),
    }
}

/// A line with a value for each point of the experiment that has one. `value` gets the seconds in which
/// requests arrived.
pub(super) fn line_across(
    results: &Results<'_>,
    name: &str,
    value: impl Fn(&PointFigures, u64) -> Option<Spread>,
) -> Line {
    let asked = results.plan.points.iter().map(|point| point.seconds);
    let points = results.figures.points.iter().zip(asked).zip(1..);
    let point = |((point, seconds), place): ((&PointFigures, u64), i32)| {
        let x = point.x.unwrap_or(f64::from(place));
        Some((x, value(point, seconds)?.median))
    };
    Line {
        name: name.into(),
        style: series::style(results.plan, name),
        points: points.filter_map(point).collect(),
    }
}

/// The plots of a point: those that the experiment's figures show, or all if it is the only point.
/// A point without kept results has none.
pub fn of_point(results: &Results<'_>, point: &Point, series: &[Series]) -> Vec<Drawing> {
    if series.is_empty() {
        return Vec::new();
    }
    let only = results.plan.points.len() == 1;
    let asked = |plot: &Plot| only || shows(results, *plot);
    let plots = OF_POINT.into_iter().filter(asked);
    let drawings = plots.map(|plot| drawing_of(plot, point, series));
    drawings
        .filter(|drawing| !drawing.lines.is_empty())
        .collect()
}

fn drawing_of(plot: Plot, point: &Point, series: &[Series]) -> Drawing {
    let over_time = matches!(
        plot,
        Plot::OverTime
            | Plot::FirstByte
            | Plot::Connections
            | Plot::Queue
            | Plot::Rate
            | Plot::Drops
    );
    let lines = match plot {
        Plot::Stretch => stretch_lines(series),
        Plot::Connections => lines(series, connections),
        Plot::Queue => lines(series, |series| waits_ms(series, point.rate)),
        Plot::Rate => rates(series),
        Plot::Drops => lines(series, |series| series.seen("listen_drops")),
        Plot::FirstByte => pooled(series, lines::first_byte_over_time),
        Plot::Complementary => pooled(series, lines::complementary),
        Plot::BySize => pooled(series, lines::by_size),
        Plot::ByPercentile => pooled(series, lines::by_percentile),
        Plot::Variance => pooled(series, lines::variance_by_percentile),
        _ => pooled(series, lines::over_time),
    };
    let (caption, x, y) = words(plot);
    let caption = match (plot, fair(series)) {
        (Plot::Stretch, Some(fair)) => format!("{caption} {} (worse shaded)", fair.name),
        _ if over_time && !point.overloads_s().is_empty() => format!("{caption} (overload shaded)"),
        _ => caption.to_owned(),
    };
    let most = lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| point.0)
        .fold(1.0, f64::max);
    Drawing {
        plot,
        part: Some(point.label.clone()),
        caption,
        axes: (x.into(), y.into()),
        x_range: over_time.then_some((0.0, point.seconds as f64)),
        shaded: match plot {
            Plot::Stretch => vec![(1.0, most)],
            _ if over_time => point.overloads_s(),
            _ => Vec::new(),
        },
        lines,
    }
}

/// The caption and the labels of the axes.
fn words(plot: Plot) -> (&'static str, &'static str, &'static str) {
    match plot {
        Plot::FirstByte => ("mean time to the first byte over time", "arrival (s)", ""),
        Plot::Complementary => (
            "share of requests that take longer",
            "response time",
            "share",
        ),
        Plot::BySize => ("mean response time by size", "size", ""),
        Plot::ByPercentile => (
            "mean response time by percentile of size",
            "percentile of size",
            "",
        ),
        Plot::Variance => (
            "variance of response times by percentile of size",
            "percentile of size",
            "square seconds",
        ),
        Plot::Stretch => (
            "share of requests that take more than so many times as long as under",
            "starvation stretch",
            "share",
        ),
        Plot::Connections => ("connections over time", "time (s)", "connections"),
        Plot::Queue => (
            "how long a packet waits before the narrow link",
            "time (s)",
            "ms",
        ),
        Plot::Rate => (
            "the rate that was found, and the narrow link's",
            "time (s)",
            "Mbit/s",
        ),
        Plot::Drops => ("SYNs dropped, in all, over time", "time (s)", "SYNs"),
        _ => ("mean response time over time", "arrival (s)", ""),
    }
}

/// The time that the link needs for the bytes that wait before it.
fn waits_ms(series: &Series, usual: Rate) -> Points {
    let (queue_bytes, rate_bps) = (series.seen("queue_bytes"), series.seen("link_rate_bps"));
    // Samples of earlier versions lack the rate, which never changed.
    let rate_bps = rate_bps.iter().map(|(_, bps)| *bps);
    let rate_bps = rate_bps.chain(std::iter::repeat(usual.bps() as f64));
    let both = queue_bytes.iter().zip(rate_bps);
    both.map(|(&(at_s, bytes), rate_bps)| (at_s, bytes * 8e3 / rate_bps))
        .collect()
}

/// The rate that each server found, while it had found one, and the link's rate beside it.
fn rates(series: &[Series]) -> Vec<Line> {
    let in_mbit = |points: Points| -> Points {
        let told = points.into_iter().filter(|(_, bps)| *bps > 0.0);
        told.map(|(at_s, bps)| (at_s, bps / 1e6)).collect()
    };
    let mut found = lines(series, |series| in_mbit(series.seen("estimate_bps")));
    let link = series.iter().map(|series| series.seen("link_rate_bps"));
    if !found.is_empty()
        && let Some(link) = link.into_iter().find(|points| !points.is_empty())
    {
        found.push(Line {
            name: "the link".into(),
            style: drawing::style_of_reference(),
            points: in_mbit(link),
        });
    }
    found
}

/// The connections on the server's machine. For a fluid bound and on loopback, the requests under way.
fn connections(series: &Series) -> Points {
    let seen = series.seen("connections");
    if seen.is_empty() {
        lines::under_way(series.first())
    } else {
        seen
    }
}

fn pooled(series: &[Series], points: fn(&[RequestRecord]) -> Points) -> Vec<Line> {
    lines(series, |series| points(&series.pooled()))
}

fn lines(series: &[Series], points: impl Fn(&Series) -> Points) -> Vec<Line> {
    let line = |series: &Series| Line {
        name: series.name.clone(),
        style: series.style,
        points: points(series),
    };
    let lines = series.iter().map(line);
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn fair(series: &[Series]) -> Option<&Series> {
    let name = fair_of(series.iter().map(|series| series.name.as_str()))?;
    series.iter().find(|series| series.name == name)
}

/// Each server's requests paired with those of FAIR, seed by seed.
fn stretch_lines(all: &[Series]) -> Vec<Line> {
    let Some(fair) = fair(all) else {
        return Vec::new();
    };
    let ratios = |series: &Series| -> Points {
        let joined = series.seeds.iter().filter_map(|(seed, records)| {
            let (_, fair) = fair.seeds.iter().find(|(other, _)| other == seed)?;
            lines::stretch(records, fair)
        });
        let ratios = joined.flatten().map(|(_, ratio)| ratio);
        lines::complementary_of(ratios.collect())
    };
    let mut lines = lines(all, |series| {
        if series.name == fair.name || series.name == FLUID_PS {
            Points::new()
        } else {
            ratios(series)
        }
    });
    lines.retain(|line| !line.points.is_empty());
    lines
}
