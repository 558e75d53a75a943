//! The verdicts of a pass on the papers' claims: `claims.html` for a browser and `claims.md` for a
//! repository, both in the pass's folder.
//!
//! A figure or table holds if all of its clauses hold (`Verdict::together`), once for ours and once for the paper's own
//! system. Our own aims are shown and do not count. People explain in `why.md` beside the results why something does not hold
//! ([`Why`]).

mod claimed;
mod html;
mod markdown;
mod why;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use self::claimed::{Paper, judged};
use self::why::Why;
use crate::papers::PAPERS;
use crate::papers::catalogue::all;
use crate::report::ReportError;
use crate::study::claim::System;
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
        let (number, all, counts) = (paper.number, paper.all(), paper.counts(System::Ours));
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
            let mut claims = KeptClaims {
                experiment: ran.experiment.id.clone(),
                conditions: ran.conditions.clone(),
                // A value that no check asks for today may be asked for again.
                values: ran
                    .kept
                    .as_ref()
                    .map_or_else(BTreeMap::new, |kept| kept.values.clone()),
            };
            let figures = ran.experiment.figures.iter();
            for figure in figures.filter(|figure| !figure.name.is_empty()) {
                claims.add(&judged(figure, ran));
            }
            (ran.folder.clone(), claims)
        })
        .collect();
    Ok(kept_claims::write(folder, &kept)?)
}
