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

impl Gain {
    /// The page.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn page(&self) -> Result<String, GainError> {
        let drawn = drawing::svg(SIZE, |whole| self.draw(whole));
        let drawn = drawn.map_err(|error| GainError::Page(error.to_string()))?;
        let mut text = String::new();
        let _ = write!(
            text,
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>What Shortline would have given</title>\n<style>\n{STYLE}{}</style>\n\
             <main>\n<h1>What Shortline would have given</h1>\n",
            in_the_dark(&drawing::style_sheet())
        );
        for line in self.heading() {
            let _ = writeln!(text, "<p>{}</p>", escaped(&line));
        }
        for sentence in self.verdict() {
            let _ = writeln!(text, "<p class=\"verdict\">{}</p>", escaped(&sentence));
        }
        let _ = writeln!(text, "<div class=\"drawing scrolls\">{drawn}</div>");
        if let Some(full) = &self.full {
            let _ = writeln!(
                text,
                "<h2>Response times by size, while the link was full</h2>\n{}",
                html(&table(full))
            );
            let _ = writeln!(
                text,
                "<p>{}</p>\n{}",
                escaped(&self.hours_title()),
                html(&self.hours_table())
            );
        }
        let _ = writeln!(
            text,
            "<h2>Response times by size, all hours</h2>\n{}",
            html(&table(&self.all))
        );
        let _ = writeln!(text, "<p>{}</p>", escaped(EXPLANATION));
        if !self.notes.is_empty() {
            let _ = writeln!(text, "<h2>Left out</h2>");
        }
        for note in &self.notes {
            let _ = writeln!(text, "<p>{}</p>", escaped(note));
        }
        text.push_str("</main>\n</html>\n");
        Ok(text)
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
            caption: "mean response time by hour",
            x: axis("hours since the first", false, drawing::number),
            y: axis("", true, shortline_table::time_on_axis),
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
        let cell = |cell: &String| format!("<{tag}>{}</{tag}>", escaped(cell));
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
