//! The report as one page without outside links: the words, a drawing of the hours, the tables. Light and dark, desktop and phone.

use std::fmt::Write;

use plotters::style::ShapeStyle;
use shortline_plot::{self as drawing, Axis, Frame, Line, Panel};
use shortline_table::Table;

use crate::GainError;
use crate::gain::Gain;
use crate::waits::SERVERS;
use crate::words::{EXPLANATION, table};

const SIZE: (u32, u32) = (960, 420);
const STYLE: &str = include_str!("page.css");
const S_PER_HOUR: f64 = 3600.0;
/// A cell with more goes over several lines.
const LONG_CHARS: usize = 30;

/// A page as it is written.
pub(crate) struct Page(String);

impl Page {
    /// Its beginning.
    pub(crate) fn new(title: &str) -> Self {
        Self(format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}{}</style>\n<main>\n<h1>{title}</h1>\n",
            in_the_dark(&drawing::style_sheet()),
            title = escaped(title)
        ))
    }

    pub(crate) fn heading(&mut self, text: &str) {
        let _ = writeln!(self.0, "<h2>{}</h2>", escaped(text));
    }

    pub(crate) fn text(&mut self, text: &str) {
        let _ = writeln!(self.0, "<p>{}</p>", escaped(text));
    }

    /// A sentence that says what it comes to.
    pub(crate) fn verdict(&mut self, text: &str) {
        let _ = writeln!(self.0, "<p class=\"verdict\">{}</p>", escaped(text));
    }

    pub(crate) fn table(&mut self, table: &Table) {
        let _ = writeln!(self.0, "{}", html(table));
    }

    /// A drawing, [`SIZE`] large.
    pub(crate) fn drawing(
        &mut self,
        draw: impl FnOnce(&Panel<'_>) -> drawing::Drawn,
    ) -> Result<(), GainError> {
        let drawn = drawing::svg(SIZE, draw);
        let drawn = drawn.map_err(|error| GainError::Page(error.to_string()))?;
        let _ = writeln!(self.0, "<div class=\"drawing scrolls\">{drawn}</div>");
        Ok(())
    }

    /// What was left out, and the end.
    pub(crate) fn end(mut self, notes: &[String]) -> String {
        if !notes.is_empty() {
            self.heading("Left out");
        }
        for note in notes {
            self.text(note);
        }
        self.0 + "</main>\n</html>\n"
    }
}

impl Gain {
    /// The page.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn page(&self) -> Result<String, GainError> {
        let mut page = Page::new(&self.title());
        for line in self.heading() {
            page.text(&line);
        }
        for sentence in self.verdict() {
            page.verdict(&sentence);
        }
        // One point is no line.
        if self.hours.len() > 1 {
            page.drawing(|whole| self.draw(whole))?;
        }
        if let Some(full) = &self.full {
            page.heading("Response times by size, while the link was full");
            page.table(&table(full));
            page.text(&self.hours_title());
            page.table(&self.hours_table());
        }
        if self
            .full
            .as_ref()
            .is_none_or(|full| full.responses < self.all.responses)
        {
            page.heading("Response times by size, all hours");
            page.table(&table(&self.all));
        }
        if let Some(live) = &self.live {
            page.heading("The busiest minute, replayed");
            page.text(&live.told());
            page.table(&live.table());
            for note in live.notes.iter().chain(&live.doubts) {
                page.text(note);
            }
        }
        page.text(EXPLANATION);
        Ok(page.end(&self.notes))
    }

    fn draw(&self, whole: &Panel<'_>) -> drawing::Drawn {
        // Ours first: one colour for it wherever it is drawn.
        let names = SERVERS.iter().rev().map(ToString::to_string).collect();
        let names = drawing::styled(names);
        let panel = drawing::legend_below(whole, &names, None)?;
        let begin = self.hours.first().map_or(0, |hour| hour.begin_unix_s);
        let line = |(place, (name, style)): (usize, &(String, ShapeStyle))| Line {
            name: name.clone(),
            style: *style,
            points: self
                .hours
                .iter()
                .map(|hour| {
                    let hours = f64::from(hour.begin_unix_s - begin) / S_PER_HOUR;
                    (hours, hour.mean_s[SERVERS.len() - 1 - place])
                })
                .collect(),
        };
        let lines: Vec<Line> = names.iter().enumerate().map(line).collect();
        let axis = |about, log, format| Axis {
            about,
            log,
            range: None,
            format,
        };
        let frame = Frame {
            caption: &self.busiest_told(),
            x: axis("hours since the first", false, drawing::number),
            y: axis("mean response time", true, shortline_table::time_on_axis),
            shaded: &[],
        };
        drawing::chart(&panel, &frame, &lines)
    }
}

/// Rules for a dark ground.
fn in_the_dark(rules: &str) -> String {
    format!("@media (prefers-color-scheme: dark) {{\n{rules}}}\n")
}

fn html(table: &Table) -> String {
    let mut text = "<div class=\"scrolls\"><table>\n".to_owned();
    for (index, row) in table.rows().iter().enumerate() {
        let tag = if index == 0 { "th" } else { "td" };
        let cell = |cell: &String| {
            let long = if cell.chars().count() > LONG_CHARS {
                " class=\"long\""
            } else {
                ""
            };
            format!("<{tag}{long}>{}</{tag}>", escaped(cell))
        };
        let cells: String = row.iter().map(cell).collect();
        let _ = writeln!(text, "<tr>{cells}</tr>");
    }
    text + "</table></div>"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_write_into_the_page() {
        assert_eq!(escaped("<b>&"), "&lt;b&gt;&amp;");
        let mut table = Table::new(&["a b", "c"]);
        table.row(vec!["<x>".to_owned(), "2".to_owned()]);
        assert_eq!(
            html(&table),
            "<div class=\"scrolls\"><table>\n<tr><th>a b</th><th>c</th></tr>\n<tr><td>&lt;x&gt;</td><td>2</td></tr>\n</table></div>"
        );
    }
}
