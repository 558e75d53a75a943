//! The reports on a database as pages.

use shortline_plot::{self as drawing, Axis, Frame, Line, Panel};

use super::busiest::DatabaseGain;
use super::mix::Mix;
use super::words::{EXPLANATION, MIX_EXPLANATION};
use crate::GainError;
use crate::page::Page;

const S_PER_HOUR: f64 = 3600.0;

impl DatabaseGain {
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
        page.heading("By type of statement");
        page.text(&self.kinds_title());
        page.table(&self.kinds_table());
        // One point is no line.
        if self.hours.len() > 1 {
            page.drawing(|whole| self.draw(whole))?;
        }
        page.heading("By hour");
        page.text(&self.hours_title());
        page.table(&self.hours_table());
        page.text(EXPLANATION);
        Ok(page.end(&self.notes))
    }

    fn draw(&self, whole: &Panel<'_>) -> drawing::Drawn {
        let names = vec!["statements under way".to_owned(), "processors".to_owned()];
        let names = drawing::styled(names);
        let panel = drawing::legend_below(whole, &names, None)?;
        let begin = self.hours.first().map_or(0, |hour| hour.begin_unix_s);
        let at = |unix_s: u32| f64::from(unix_s - begin) / S_PER_HOUR;
        let hours = self.hours.iter();
        let under_way = hours
            .map(|hour| (at(hour.begin_unix_s), hour.under_way))
            .collect();
        let end = self.hours.last().map_or(0.0, |hour| at(hour.begin_unix_s));
        let processors = f64::from(self.processors);
        let points = [under_way, vec![(0.0, processors), (end, processors)]];
        let line = |((name, style), points): (&(String, _), Vec<(f64, f64)>)| Line {
            name: name.clone(),
            style: *style,
            points,
        };
        let lines: Vec<Line> = names.iter().zip(points).map(line).collect();
        let axis = |about| Axis {
            about,
            log: false,
            range: None,
            format: drawing::number,
        };
        let frame = Frame {
            caption: &self.under_way_told(),
            x: axis("hours since the first"),
            y: axis("under way in the mean"),
            shaded: &[],
        };
        drawing::chart(&panel, &frame, &lines)
    }
}

impl Mix {
    /// The page.
    pub fn page(&self) -> String {
        let mut page = Page::new(&self.title());
        page.text(&self.about());
        page.verdict(&self.verdict());
        page.heading("Mean response times by how busy the database is");
        page.table(&self.loads_table());
        page.heading("By type of statement");
        page.table(&self.kinds_table());
        page.text(MIX_EXPLANATION);
        page.end(&self.notes)
    }
}
