//! The plots of 002's figures, and their data as CSV.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use shortline_bookstore::Interaction;
use shortline_plot::{self as drawing, Axis, Frame, Line, Points};

use crate::report::ReportError;
use crate::study::shop::figures::{self, Figures};
use crate::study::shop::load::overloads_s;
use crate::study::shop::outcome::Second;
use crate::study::shop::{Door, Load, Outcome};
use shortline_table::time_on_axis;

/// The size of a plot in pixels, small enough to read its text on a phone.
const SIZE: (u32, u32) = (480, 330);
/// The seconds that one point of a line stands for.
const SECONDS_A_POINT: usize = 2;

/// A plot.
pub struct Drawing {
    /// Its name in the page and the data.
    pub id: String,
    /// The caption above it.
    pub caption: String,
    /// Its lines.
    pub lines: Vec<Line>,
    axes: [Scale; 2],
    shaded: Vec<(f64, f64)>,
}

#[derive(Clone, Copy)]
struct Scale {
    about: &'static str,
    log: bool,
    format: fn(f64) -> String,
}

const BROWSERS: Scale = Scale {
    about: "browsers",
    log: false,
    format: drawing::number,
};
const A_MINUTE: Scale = Scale {
    about: "interactions a minute",
    ..BROWSERS
};
const RESPONSE: Scale = Scale {
    about: "mean response time",
    log: true,
    format: time_on_axis,
};
const SECONDS: Scale = Scale {
    about: "seconds",
    ..BROWSERS
};

impl Drawing {
    /// The plot as SVG.
    ///
    /// # Errors
    /// Errors of the drawing library.
    pub fn svg(&self) -> Result<String, Box<dyn std::error::Error>> {
        let [x, y] = self.axes.map(|scale| Axis {
            about: scale.about,
            log: scale.log,
            range: None,
            format: scale.format,
        });
        let frame = Frame {
            caption: "",
            x,
            y,
            shaded: &self.shaded,
        };
        drawing::svg(SIZE, |panel| drawing::chart(panel, &frame, &self.lines))
    }

    /// Writes the points of its lines to `folder`: `series,x,y`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        let mut text = String::from("series,x,y\n");
        for line in &self.lines {
            for (x, y) in &line.points {
                // Writing to a string cannot fail.
                writeln!(text, "{},{x},{y}", line.name).ok();
            }
        }
        let path = folder.join(format!("{}.csv", self.id));
        fs::write(&path, text).map_err(ReportError::file(&path))
    }
}

/// The plots of a database.
pub fn of_database(set: &Figures<'_>) -> Vec<Drawing> {
    let mut all = by_browsers(set);
    all.extend(distributions(set));
    all.extend(by_capacity(set));
    for load in set.loads() {
        if load.changes() || load.is_open() {
            all.extend(over_time(set, load));
        }
    }
    all.retain(|drawing| !drawing.lines.is_empty());
    all
}

/// Figs. 5, 7, 8 and 9, 10, 14, 15.
fn by_browsers(set: &Figures<'_>) -> Vec<Drawing> {
    let loads = set.loads();
    if loads.iter().filter_map(|load| load.browsers()).count() < 2 {
        return Vec::new();
    }
    let plot = |id: &str, what: &str, y, of: fn(&Outcome) -> Option<f64>| {
        let points = |door| {
            let points = set.by_browsers(door, of).into_iter();
            points
                .map(|(browsers, value)| (browsers as f64, value))
                .collect()
        };
        Drawing {
            id: format!("{}-{id}", set.database),
            caption: format!("{}: {what}", set.database),
            lines: lines(set, set.doors(None), points),
            axes: [BROWSERS, y],
            shaded: Vec::new(),
        }
    };
    vec![
        plot("throughput", "throughput", A_MINUTE, figures::throughput),
        plot(
            "finished",
            "mean response time of the finished",
            RESPONSE,
            figures::finished_s,
        ),
        plot("all", "mean response time of all", RESPONSE, figures::all_s),
    ]
}

/// Figs. 2 and 3.
fn distributions(set: &Figures<'_>) -> Vec<Drawing> {
    let Some(busy) = set.most() else {
        return Vec::new();
    };
    if set.runs(Door::None, Load::Alone).next().is_none() {
        return Vec::new();
    }
    let plot = |id: &str, load: Load| {
        let line = |(place, interaction): (usize, Interaction)| {
            let run = set.runs(Door::None, load).next()?;
            let quantiles = &run.executions.get(&interaction)?.quantiles_s;
            let share = |place| place as f64 / (quantiles.len() - 1).max(1) as f64;
            let points = quantiles.iter().enumerate();
            Some(Line {
                name: interaction.to_string(),
                style: drawing::style(place),
                points: points.map(|(place, at_s)| (*at_s, share(place))).collect(),
            })
        };
        Drawing {
            id: format!("{}-{id}", set.database),
            caption: format!("{}: execution times by type, {load}", set.database),
            lines: Interaction::ALL
                .into_iter()
                .enumerate()
                .filter_map(line)
                .collect(),
            axes: [
                Scale {
                    about: "execution time",
                    ..RESPONSE
                },
                Scale {
                    about: "share that takes no longer",
                    ..BROWSERS
                },
            ],
            shaded: Vec::new(),
        }
    };
    vec![
        plot("executions-alone", Load::Alone),
        plot("executions-busy", busy),
    ]
}

/// The search for the best capacity (002 3.1).
fn by_capacity(set: &Figures<'_>) -> Vec<Drawing> {
    let loads = set.loads().into_iter();
    let plot = |load: Load| {
        let doors = set.doors(Some(load));
        let of = |door| set.mean(door, load, figures::throughput);
        let mut fixed: Points = doors
            .iter()
            .filter_map(|door| Some((f64::from(door.fixed_ms()?) / 1e3, of(*door)?)))
            .collect();
        fixed.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (first, last) = (fixed.first()?.0, fixed.last()?.0);
        let level = |door: Door| {
            let value = of(door)?;
            Some((door, vec![(first, value), (last, value)]))
        };
        let mut lines = vec![Line {
            name: "fixed".into(),
            style: drawing::style(0),
            points: fixed,
        }];
        for (place, (door, points)) in [Door::FIFO_AUTO, Door::None]
            .into_iter()
            .filter_map(level)
            .enumerate()
        {
            let name = if door == Door::FIFO_AUTO {
                "auto"
            } else {
                "no gate"
            };
            lines.push(Line {
                name: name.into(),
                style: drawing::style(place + 1),
                points,
            });
        }
        Some(Drawing {
            id: format!("{}-{load}-capacity", set.database),
            caption: format!("{}, {load}: throughput by capacity", set.database),
            lines,
            axes: [
                Scale {
                    about: "capacity",
                    ..RESPONSE
                },
                A_MINUTE,
            ],
            shaded: Vec::new(),
        })
    };
    let unchanged = loads.filter(|load| load.browsers().is_some());
    unchanged.filter_map(plot).collect()
}

/// Throughput, response time and capacity over time, of the first seed.
fn over_time(set: &Figures<'_>, load: Load) -> Vec<Drawing> {
    let first = |door| set.runs(door, load).next();
    let Some(run) = set.doors(Some(load)).into_iter().find_map(first) else {
        return Vec::new();
    };
    let end_s = run.by_second.len() as f64;
    let shaded = match run.phase_s {
        Some(phase_s) => {
            let begin_s = run.run.load.warm_up().as_secs_f64();
            overloads_s(phase_s, begin_s, figures::arrivals_end_s(run))
        }
        None => vec![(figures::change_s(run), end_s)],
    };
    let plot = |id: &str, what: &str, y, of: &dyn Fn(&Outcome) -> Points| Drawing {
        id: format!("{}-{load}-{id}", set.database),
        caption: format!("{}, {load}: {what}", set.database),
        lines: lines(set, set.doors(Some(load)), |door| {
            first(door).map_or_else(Vec::new, of)
        }),
        axes: [SECONDS, y],
        shaded: shaded.clone(),
    };
    let a_second = Scale {
        about: "finished a second",
        ..BROWSERS
    };
    let capacity = Scale {
        about: "capacity",
        ..RESPONSE
    };
    vec![
        plot(
            "finished-over-time",
            "finished a second",
            a_second,
            &finished,
        ),
        plot(
            "response-over-time",
            "mean response time by when it began",
            RESPONSE,
            &response,
        ),
        plot(
            "capacity-over-time",
            "the gate's capacity",
            capacity,
            &|run| {
                let gate = run.gate.as_ref();
                gate.map_or_else(Vec::new, |gate| gate.capacity.clone())
            },
        ),
    ]
}

fn finished(run: &Outcome) -> Points {
    let pieces = run.by_second.chunks(SECONDS_A_POINT).enumerate();
    let point = |(place, piece): (usize, &[Second])| {
        let sum: u32 = piece.iter().map(|second| second.finished).sum();
        let at = (place * SECONDS_A_POINT) as f64;
        (at, f64::from(sum) / piece.len() as f64)
    };
    pieces.map(point).collect()
}

fn response(run: &Outcome) -> Points {
    let pieces = run.by_second.chunks(SECONDS_A_POINT).enumerate();
    let point = |(place, piece): (usize, &[Second])| {
        let begun: u32 = piece.iter().map(|second| second.begun).sum();
        let sum_s: f64 = piece.iter().map(|second| second.response_time_sum_s).sum();
        let at = (place * SECONDS_A_POINT) as f64;
        (begun > 0).then(|| (at, sum_s / f64::from(begun)))
    };
    pieces.filter_map(point).collect()
}

/// A line for each door with data, in its colour in all plots of the database.
fn lines(
    set: &Figures<'_>,
    doors: impl IntoIterator<Item = Door>,
    points: impl Fn(Door) -> Points,
) -> Vec<Line> {
    let all = set.doors(None).into_iter();
    let styled = drawing::styled(all.map(|door| door.to_string()).collect());
    let line = |door: Door| {
        let name = door.to_string();
        let own = styled.iter().find(|(known, _)| *known == name);
        Line {
            style: own.map_or_else(drawing::style_of_reference, |(_, style)| *style),
            points: points(door),
            name,
        }
    };
    let lines = doors.into_iter().map(line);
    lines.filter(|line| !line.points.is_empty()).collect()
}
