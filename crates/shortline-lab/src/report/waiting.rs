//! One picture of an experiment: how many visitors wait at a time behind each server, on linear axes, with the servers by
//! the names that people know. It follows the reader's choice of light or dark where a page shows it, and its letters can be
//! read on a phone.
//!
//! `waiting.svg` is of the first seed, and `waiting.csv` has its points. A visitor waits from the request to the last byte.
//! One who never gets it waits to the end.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use plotters::prelude::*;
use shortline_load::record::RequestRecord;
use shortline_plot::{self as drawing, Axis, Frame, Line, PlotError, Points};

use crate::report::ReportError;
use crate::report::series::{self, FLUID_PS, OPTIMUM};
use crate::study::lines;
use crate::study::plan::Plan;
use crate::study::point::Point;

/// The size in pixels: as wide as a phone, so that a phone shows the letters as they are.
const SIZE: (u32, u32) = (400, 360);
/// How wide it is shown where there is room.
const SHOWN: (u32, u32) = (640, 576);
/// The height of the title, two lines.
const TITLE_HEIGHT: u32 = 44;
const TITLE_FONT: (&str, u32) = ("sans-serif", 18);

/// The picture of a point, as a page has it, and its points as CSV.
pub struct Picture {
    /// In the colours of a light ground.
    pub svg: String,
    csv: String,
}

/// Draws the first seed of a point.
///
/// # Errors
/// If a kept file is missing or wrong, or the drawing library fails.
pub fn picture(folder: &Path, plan: &Plan, point: &Point) -> Result<Picture, ReportError> {
    let mut series = series::of(folder, plan, point)?;
    series.retain(|series| ![OPTIMUM, FLUID_PS].contains(&series.name.as_str()));
    let all = series.iter().map(|series| Waiting {
        most: most(series.first()),
        line: Line {
            name: product(&plan.servers, &series.name),
            style: series.style,
            points: lines::under_way(series.first()),
        },
    });
    let all: Vec<Waiting> = all.collect();
    let failed = |problem: String| PlotError {
        path: folder.join("waiting.svg"),
        problem,
    };
    Ok(Picture {
        svg: drawn(&all, point).map_err(|error| failed(error.to_string()))?,
        csv: csv(&all),
    })
}

impl Picture {
    /// Writes `waiting.svg`, in the reader's colours, and `waiting.csv`.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        let svg = enlarged(&drawing::in_both_themes(&self.svg));
        for (name, text) in [("waiting.svg", &svg), ("waiting.csv", &self.csv)] {
            let path = folder.join(name);
            fs::write(&path, text).map_err(ReportError::file(&path))?;
        }
        Ok(())
    }
}

/// The picture with the size in which it is shown.
fn enlarged(svg: &str) -> String {
    let size =
        |(width, height): (u32, u32)| format!("width=\"{width}\" height=\"{height}\" viewBox");
    svg.replacen(&size(SIZE), &size(SHOWN), 1)
}

/// A server's visitors.
struct Waiting {
    /// How many waited when most did.
    most: usize,
    line: Line,
}

fn drawn(all: &[Waiting], point: &Point) -> Result<String, Box<dyn std::error::Error>> {
    let lines: Vec<Line> = all.iter().map(|waiting| waiting.line.clone()).collect();
    let names: Vec<_> = lines
        .iter()
        .map(|line| (line.name.clone(), line.style))
        .collect();
    let overloads_s = point.overloads_s();
    let linear = Axis {
        about: "",
        log: false,
        range: None,
        format: drawing::number,
    };
    let frame = Frame {
        caption: "",
        x: Axis {
            about: match overloads_s[..] {
                [] => "seconds",
                _ => "seconds (shaded: overload)",
            },
            range: Some((0.0, point.seconds as f64)),
            ..linear
        },
        y: Axis {
            about: "visitors waiting",
            ..linear
        },
        shaded: &overloads_s,
    };
    drawing::svg(SIZE, |whole| {
        let (head, below) = whole.split_vertically(TITLE_HEIGHT);
        for (place, line) in (0i32..).zip(title(all)) {
            head.draw(&Text::new(line, (12, 6 + 20 * place), TITLE_FONT))?;
        }
        let above = drawing::legend_below(&below, &names, None)?;
        drawing::chart(&above, &frame, &lines)
    })
}

/// The result in two lines: how many wait at most, from the most to the fewest. Of many servers the title has the two ends.
fn title(all: &[Waiting]) -> [String; 2] {
    const NAMED_MAX: usize = 3;
    let mut sorted: Vec<&Waiting> = all.iter().collect();
    sorted.sort_by_key(|waiting| std::cmp::Reverse(waiting.most));
    if let ([most, .., fewest], true) = (&sorted[..], sorted.len() > NAMED_MAX) {
        sorted = vec![most, fewest];
    }
    let each = sorted
        .iter()
        .map(|waiting| format!("{} {}", waiting.line.name, waiting.most));
    let each: Vec<String> = each.collect();
    [
        "Visitors waiting at a time, at most:".into(),
        each.join(", "),
    ]
}

/// A server as people know it. The policy is named only where several of ours are compared.
fn product(servers: &[String], name: &str) -> String {
    const OURS: [&str; 4] = ["shares", "srpt", "auto", "auto-shares"];
    let ours = servers
        .iter()
        .filter(|server| OURS.contains(&server.as_str()));
    match name.strip_prefix("nginx-") {
        Some(queue) => format!("nginx with {queue}"),
        None if name == "fair" => "fair sharing".into(),
        None if !OURS.contains(&name) => name.into(),
        None if ours.count() == 1 => "Shortline".into(),
        None => format!("Shortline ({name})"),
    }
}

/// The most requests under way at a time.
fn most(records: &[RequestRecord]) -> usize {
    let mut changes: Vec<(f64, i32)> = Vec::new();
    for record in records {
        changes.push((record.at_s, 1));
        changes.push((record.at_s + record.response_time_s, -1));
    }
    // One that ends as another begins does not wait beside it.
    changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut now = 0;
    let counts = changes.iter().map(|(_, change)| {
        now += change;
        now
    });
    counts.max().map_or(0, |most| most.max(0) as usize)
}

/// The points of the lines: `server,s,visitors`.
fn csv(all: &[Waiting]) -> String {
    let mut text = String::from("server,s,visitors\n");
    for Waiting { line, .. } in all {
        let points: &Points = &line.points;
        for (at_s, waiting) in points {
            // Writing to a string cannot fail.
            writeln!(text, "{},{at_s:.2},{waiting}", line.name).ok();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::study::point::Arrivals;

    fn waiting(name: &str, times: &[(f64, f64)]) -> Waiting {
        let record = |(at_s, for_s): &(f64, f64)| RequestRecord::finished(*at_s, "/a", 1, *for_s);
        let records: Vec<RequestRecord> = times.iter().map(record).collect();
        Waiting {
            most: most(&records),
            line: Line {
                name: name.into(),
                style: drawing::style(0),
                points: lines::under_way(&records),
            },
        }
    }

    #[test]
    fn the_title_says_how_many_waited() {
        let few = waiting("Shortline", &[(0.0, 1.0), (1.0, 1.0), (3.0, 1.0)]);
        let many = waiting("nginx", &[(0.0, 9.0), (1.0, 9.0), (3.0, 0.5)]);
        assert_eq!((few.most, many.most), (1, 3));
        let all = [few, many];
        assert_eq!(title(&all)[1], "nginx 3, Shortline 1");
        assert_eq!(most(&[]), 0);
        let point = Point::new("w1", Arrivals::table_one("w1"), 50);
        let svg = enlarged(&drawn(&all, &point).unwrap());
        assert!(svg.starts_with("<svg width=\"640\" height=\"576\" viewBox=\"0 0 400 360\""));
        assert!(
            svg.contains("nginx 3, Shortline 1") && svg.contains("visitors waiting"),
            "{svg}"
        );
        assert!(
            csv(&all).starts_with("server,s,visitors\nShortline,0.00,1\n"),
            "{}",
            csv(&all)
        );
    }

    #[test]
    fn servers_have_the_names_that_people_know() {
        let names = |servers: &[&str]| -> Vec<String> {
            let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
            servers.iter().map(|name| product(&servers, name)).collect()
        };
        assert_eq!(
            names(&["nginx", "nginx-fq_codel", "shares"]),
            ["nginx", "nginx with fq_codel", "Shortline"]
        );
        assert_eq!(
            names(&["srpt", "shares", "fair"]),
            ["Shortline (srpt)", "Shortline (shares)", "fair sharing"]
        );
    }
}
