//! The report on `versus`: a table as text, and a page with it and a picture.

use std::fs;
use std::path::Path;

use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use shortline_plot::{self as drawing, Drawn, Panel, PlotError};

use super::ReportError;
use super::document::{badge, document};
use crate::study::plan::read_json;
use crate::study::verdict::Verdict;
use crate::study::versus::results::{Latency, Outcome, RESULTS, Results};
use crate::study::versus::{OURS, ROWS, Row};
use shortline_table::{Table, three_digits, time};

/// The picture's width, the height of a row, and of what stands above and below the rows.
const WIDTH: i32 = 760;
const ROW_HEIGHT: i32 = 30;
const ABOVE: i32 = 34;
const BELOW: i32 = 46;
/// Where the scale begins and ends.
const SCALE: (i32, i32) = (190, 730);
/// The most that the scale shows. What is beyond has its number beside it.
const RATIO_MAX: f64 = 2.0;
const FONT: (&str, u32) = ("sans-serif", 14);

/// A row that was measured.
struct Line {
    row: Row,
    outcome: Outcome,
    latencies: Vec<Latency>,
}

impl Line {
    fn reaches(&self) -> bool {
        self.outcome.ratio.median >= self.row.target
    }

    fn verdict(&self) -> Verdict {
        match self.reaches() {
            true => Verdict::Holds,
            false => Verdict::DoesNot,
        }
    }

    /// The best of the others.
    fn best(&self) -> &(String, f64) {
        &self.outcome.servers[1]
    }

    fn latency(&self, server: &str) -> String {
        let of = |latency: &&Latency| latency.server == server;
        self.latencies
            .iter()
            .find(of)
            .map_or("-".into(), |latency| {
                format!("{}, {}", time(latency.p50_s), time(latency.p99_s))
            })
    }

    fn cells(&self) -> Vec<String> {
        let (ours, best) = (&self.outcome.servers[0], self.best());
        let ratio = &self.outcome.ratio;
        vec![
            self.row.name.into(),
            three_digits(ours.1),
            format!("{} {}", three_digits(best.1), best.0),
            format!("{:.2}", ratio.median),
            format!("{:.2} to {:.2}", ratio.low, ratio.high),
            format!("{:.2}", self.row.target),
            format!("{:.2} {}", self.outcome.speed.median, self.outcome.fastest),
            self.latency(&ours.0),
            self.latency(&best.0),
        ]
    }
}

const HEADS: [&str; 9] = [
    "",
    "ours",
    "best other",
    "ratio",
    "rounds",
    "target",
    "per second",
    "our latency",
    "its latency",
];

/// The report on the results in `folder`. The page is `report.html` there, the picture `versus.svg`.
///
/// # Errors
/// If `versus.json` is missing or wrong, or something cannot be drawn or written.
pub fn report(id: &str, folder: &Path) -> Result<String, ReportError> {
    let results: Results = read_json(&folder.join(RESULTS))?;
    let lines: Vec<Line> = ROWS
        .into_iter()
        .filter_map(|row| {
            let latencies = results.latencies.iter().filter(|of| of.row == row.name);
            Some(Line {
                outcome: results.outcome(&row)?,
                latencies: latencies.cloned().collect(),
                row,
            })
        })
        .collect();
    let picture = folder.join("versus.svg");
    let svg = picture_of(&lines).map_err(|error| PlotError {
        path: picture.clone(),
        problem: error.to_string(),
    })?;
    fs::write(&picture, drawing::in_both_themes(&svg)).map_err(ReportError::file(&picture))?;
    let path = folder.join("report.html");
    let page = document(id, None, &page(&lines, &results, &svg)).into_string();
    fs::write(&path, page).map_err(ReportError::file(&path))?;
    let mut table = Table::new(&HEADS);
    lines.iter().for_each(|line| table.row(line.cells()));
    Ok(format!("{}\n{ABOUT}\n\n{table}", headline(&lines)))
}

const ABOUT: &str = "Requests per second of the server's processor time, one worker, medians of the rounds. Per second: \
                     requests per second over those of the other that did most, which counts the client's processor \
                     too. Latency (median, 99th percentile) at half of what the slowest server did.";

fn headline(lines: &[Line]) -> String {
    let ahead = lines.iter().filter(|line| line.outcome.ratio.median > 1.0);
    let reached = lines.iter().filter(|line| line.reaches());
    format!(
        "Shortline is ahead of every other server in {} of {} rows, and reaches its target in {}.",
        ahead.count(),
        lines.len(),
        reached.count()
    )
}

fn page(lines: &[Line], results: &Results, svg: &str) -> Markup {
    html! {
        p.headline { (headline(lines)) }
        figure.first { div.drawing.wide role="img" aria-label="work beside the best other server" { (PreEscaped(svg)) } }
        section {
            h2 { "All rows" }
            p { (ABOUT) }
            div.scroll { table {
                thead { tr { @for head in HEADS { th { (head) } } th { "" } } }
                tbody { @for line in lines { tr {
                    @for cell in line.cells() { td { (cell) } }
                    td { (badge(line.verdict())) }
                } } }
            } }
        }
        section {
            h2 { "All servers" }
            div.scroll { table {
                thead { tr { th { "" } th.words { "requests per second of processor time" } } }
                tbody { @for line in lines { tr {
                    td { (line.row.name) }
                    td.words { (all_servers(&line.outcome)) }
                } } }
            } }
            ul { @for (server, version) in &results.versions { li { (server) ": " (version) } } }
        }
    }
}

fn all_servers(outcome: &Outcome) -> String {
    let one = |(server, work): &(String, f64)| format!("{} {}", shown(server), three_digits(*work));
    let all: Vec<String> = outcome.servers.iter().map(one).collect();
    all.join(", ")
}

/// For each row a dot for each server, at its work over that of the best other server than ours.
fn picture_of(lines: &[Line]) -> Result<String, Box<dyn std::error::Error>> {
    let height = ABOVE + BELOW + ROW_HEIGHT * lines.len() as i32;
    drawing::svg((WIDTH as u32, height as u32), |panel| {
        scale(panel, height - BELOW)?;
        let mut names: Vec<String> = vec![OURS.to_string()];
        for (place, line) in (0..).zip(lines) {
            let y = ABOVE + ROW_HEIGHT * place + ROW_HEIGHT / 2;
            row(panel, line, y, &mut names)?;
        }
        legend(panel, names, height - 14)
    })
}

fn x_of(ratio: f64) -> i32 {
    let span = f64::from(SCALE.1 - SCALE.0);
    SCALE.0 + (ratio.min(RATIO_MAX) / RATIO_MAX * span).round() as i32
}

fn scale(panel: &Panel<'_>, bottom: i32) -> Drawn {
    let grey = drawing::style_of_reference();
    for tick in 0..=4 {
        let ratio = f64::from(tick) / 2.0;
        let (x, is_one) = (x_of(ratio), tick == 2);
        let style = if is_one {
            drawing::style_of_optimum()
        } else {
            grey
        };
        panel.draw(&PathElement::new(vec![(x, ABOVE - 4), (x, bottom)], style))?;
        let label = if is_one {
            "best other".into()
        } else {
            format!("{ratio:.1}")
        };
        text(panel, &label, (x, 16), HPos::Center)?;
    }
    Ok(())
}

fn row(panel: &Panel<'_>, line: &Line, y: i32, names: &mut Vec<String>) -> Drawn {
    text(panel, line.row.name, (SCALE.0 - 12, y), HPos::Right)?;
    let best = line.best().1;
    // Ours last, so that nothing covers it.
    for (server, work) in line.outcome.servers.iter().rev() {
        if !names.contains(server) {
            names.push(server.clone());
        }
        let radius = if *server == OURS.to_string() { 7 } else { 5 };
        let style = style_of(server).filled();
        let ratio = work / best;
        panel.draw(&Circle::new((x_of(ratio), y), radius, style))?;
        if ratio > RATIO_MAX {
            let beside = (x_of(ratio) + radius + 3, y);
            text(panel, &format!("{ratio:.1}"), beside, HPos::Left)?;
        }
    }
    Ok(())
}

fn legend(panel: &Panel<'_>, names: Vec<String>, y: i32) -> Drawn {
    for (place, name) in (0..).zip(names) {
        let x = SCALE.0 + 90 * place;
        panel.draw(&Circle::new((x, y), 5, style_of(&name).filled()))?;
        text(panel, shown(&name), (x + 10, y), HPos::Left)?;
    }
    Ok(())
}

/// How readers call a server.
fn shown(server: &str) -> &str {
    match server == OURS.to_string() {
        true => "Shortline",
        false => server,
    }
}

fn style_of(server: &str) -> ShapeStyle {
    let styled = drawing::styled(vec![server.to_owned()]);
    styled[0].1
}

fn text(panel: &Panel<'_>, text: &str, at: (i32, i32), to: HPos) -> Drawn {
    let ink = drawing::style_of_optimum().color;
    let style = FONT
        .into_text_style(panel)
        .color(&ink)
        .pos(Pos::new(to, VPos::Center));
    panel.draw_text(text, &style, at)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::study::stats::Spread;

    use super::*;

    #[test]
    fn a_server_beyond_the_scale_has_its_number_beside_it() {
        let drawn = |ours| {
            let servers = vec![(OURS.to_string(), ours), ("nginx".into(), 100.0)];
            let line = Line {
                row: ROWS[0],
                outcome: Outcome {
                    servers,
                    ratio: Spread::of([ours / 100.0]).unwrap(),
                    fastest: "nginx".into(),
                    speed: Spread::of([1.0]).unwrap(),
                },
                latencies: Vec::new(),
            };
            picture_of(&[line]).unwrap()
        };
        assert!(drawn(331.0).contains("3.3"));
        assert!(!drawn(199.0).contains("3.3"));
    }
}
