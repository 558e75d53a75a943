//! The verdicts of a pass on the papers' claims: `claims.html` for a browser and `claims.md` for a
//! repository, both in the pass's folder.
//!
//! A figure or table holds if all of its claims in numbers hold (`Verdict::together`). Our own aims are
//! shown and do not count. People explain in `why.md` beside the results why something does not hold
//! ([`Why`]).

mod claimed;
mod html;
mod markdown;
mod why;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use self::claimed::{Paper, compared};
use self::why::Why;
use crate::papers::PAPERS;
use crate::papers::catalogue::all;
use crate::report::ReportError;
use crate::study::kept_claims::{self, KeptClaims, KeptPass};
use crate::study::ran::Ran;

/// Writes both files. Returns a line for each paper, and where the files are.
///
/// # Errors
/// If `why.md` is wrong, or a file cannot be written.
pub fn write(folder: &Path, pass: &[Ran]) -> Result<String, ReportError> {
    let why = Why::read(folder)?;
    keep(folder, pass)?;
    let papers = PAPERS.map(|(number, title)| Paper::of(number, title, pass, &why));
    let html_file = folder.join("claims.html");
    let markdown_file = folder.join("claims.md");
    fs::write(&html_file, html::render(&papers, pass)).map_err(ReportError::file(&html_file))?;
    fs::write(&markdown_file, markdown::render(&papers, pass))
        .map_err(ReportError::file(&markdown_file))?;
    let mut text = String::new();
    for paper in &papers {
        // Writing to a string cannot fail.
        let (number, all, counts) = (paper.number, paper.all(), paper.counts());
        writeln!(text, "{number}: of {all} figures and tables {counts}").ok();
    }
    let [html_file, markdown_file] =
        [html_file, markdown_file].map(|file| file.display().to_string());
    Ok(format!(
        "{text}\npage: {html_file}\nthe same as Markdown: {markdown_file}\n"
    ))
}

/// Keeps the verdicts on the claims of each experiment in the pass's folder.
fn keep(folder: &Path, pass: &[Ran]) -> Result<(), ReportError> {
    // A user's own study reproduces no paper's claim, and its file may be gone later.
    let is_known = |ran: &&Ran| all().iter().any(|known| known.id == ran.experiment.id);
    let kept: KeptPass = pass
        .iter()
        .filter(is_known)
        .map(|ran| {
            let figures = ran.experiment.figures.iter();
            let of_papers = figures.filter(|figure| !figure.name.is_empty());
            let claims = KeptClaims {
                experiment: ran.experiment.id.to_owned(),
                conditions: ran.conditions.clone(),
                figures: of_papers
                    .map(|figure| (figure.name.to_owned(), compared(figure, ran)))
                    .collect(),
            };
            (ran.folder.clone(), claims)
        })
        .collect();
    Ok(kept_claims::write(folder, &kept)?)
}
