//! People's explanations of why a claim holds or not: `why.md` in the pass's folder, which may be
//! absent. Under a line `## FIGURE`, with the name that `lab list` prints, stand paragraphs:
//!
//! ```markdown
//! # Why
//!
//! ## 000 Fig. 8
//! Both queues are longer today.
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::papers::{PAPERS, claims_of};
use crate::report::ReportError;

/// The file's name.
const WHY_FILE: &str = "why.md";

/// The paragraphs of each figure.
pub struct Why(BTreeMap<String, Vec<String>>);

impl Why {
    /// Reads the file in `folder`. Empty if there is no such file.
    ///
    /// # Errors
    /// If it cannot be read, names an unknown figure or a figure twice, or has text before the first
    /// figure.
    pub fn read(folder: &Path) -> Result<Self, ReportError> {
        let path = folder.join(WHY_FILE);
        if !path.exists() {
            return Ok(Self(BTreeMap::new()));
        }
        let text = fs::read_to_string(&path).map_err(ReportError::file(&path))?;
        Self::parse(&text).map_err(|(line, problem)| ReportError::Why {
            path,
            line,
            problem,
        })
    }

    /// The explanation of a figure, one text for each paragraph.
    pub fn of(&self, figure: &str) -> &[String] {
        self.0.get(figure).map_or(&[], Vec::as_slice)
    }

    /// An error has the number of the line, from 1, and what is wrong with it.
    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut figure: Option<&str> = None;
        let mut between = true;
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if let Some(name) = line.strip_prefix("## ").map(str::trim) {
                if !is_figure(name) {
                    return Err((number, format!("no paper has a figure `{name}`")));
                }
                if all.insert(name.into(), Vec::new()).is_some() {
                    return Err((number, format!("`{name}` for the second time")));
                }
                (figure, between) = (Some(name), true);
            } else if line.is_empty() {
                between = true;
            } else if let Some(figure) = figure {
                let paragraphs = all.entry(figure.into()).or_default();
                match paragraphs.last_mut().filter(|_| !between) {
                    Some(paragraph) => *paragraph += &format!(" {line}"),
                    None => paragraphs.push(line.into()),
                }
                between = false;
            } else if !line.starts_with("# ") {
                return Err((number, "says something about no figure".into()));
            }
        }
        Ok(Self(all))
    }
}

fn is_figure(name: &str) -> bool {
    let claims = PAPERS.iter().flat_map(|(paper, _)| claims_of(paper));
    claims.into_iter().any(|(_, figure)| figure.name == name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_make_paragraphs_and_headings_figures() {
        let text = "# Why\n\n## 000 Fig. 8\nOne\nline.\n\n\nTwo.\n## 003 Fig. 3\nThree.\n";
        let why = Why::parse(text).unwrap();
        assert_eq!(why.of("000 Fig. 8"), ["One line.", "Two."]);
        assert_eq!(why.of("003 Fig. 3"), ["Three."]);
        assert!(why.of("003 Fig. 4").is_empty());
    }

    #[test]
    fn what_is_about_no_figure_is_told_with_its_line() {
        let wrong = |text: &str| Why::parse(text).map(|_| ()).unwrap_err();
        assert_eq!(
            wrong("\n## 000 Fig. 99\n"),
            (2, "no paper has a figure `000 Fig. 99`".into())
        );
        assert_eq!(wrong("## 000 Fig. 8\n## 000 Fig. 8\n").0, 2);
        assert_eq!(
            wrong("# Why\nbecause\n"),
            (2, "says something about no figure".into())
        );
    }
}
