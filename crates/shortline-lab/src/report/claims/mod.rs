//! What became of the papers' claims in a pass: `claims.html` for a browser and `claims.md` for
//! a repository, both in the pass's folder.
//!
//! A figure or table holds if all that it claims in numbers holds ([`Verdict::together`]); what
//! is our own aim and no paper's claim is shown and does not count. Why something does not hold
//! is for people to say, in `why.md` beside the results ([`Why`]).

mod html;
mod markdown;
mod order;
#[cfg(test)]
mod tests;
mod why;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use self::why::Why;
use crate::LabError;
use crate::experiment::claim::{Compared, Figure, Verdict};
use crate::experiment::pass::Ran;
use crate::experiment::verdicts::{self, KeptCheck, KeptClaims, KeptPass};
use crate::experiment::{Experiment, all};

/// The papers, as the names of figures begin, and what they are.
const PAPERS: [(&str, &str); 5] = [
    (
        "000",
        "Schroeder and Harchol-Balter, Web servers under overload (2006)",
    ),
    (
        "001",
        "Crovella, Frangioso and Harchol-Balter, Connection scheduling in web servers (1999)",
    ),
    (
        "002",
        "Elnikety, Nahum, Tracey and Zwaenepoel, A method for transparent admission control and request scheduling in e-commerce web sites (2004)",
    ),
    (
        "003",
        "Harchol-Balter, Bansal, Schroeder and Agrawal, Implementation of SRPT scheduling in web servers (2000)",
    ),
    (
        "004",
        "a thesis on scheduling by shortest remaining response time through heterogeneous WANs",
    ),
];

const TITLE: &str = "What the papers claim, and what came out";
/// What a reader must know of the verdicts.
const HOW_TO_READ: &str = "A figure or table holds if all that it claims in numbers holds, and partly \
if some of it does or at some points; what could not be compared keeps it from holding. What is our \
own aim and no paper's claim is shown and does not count.";

/// What became of the claims of a paper.
struct Paper {
    number: &'static str,
    title: &'static str,
    /// Its figures and tables with results, in its order.
    figures: Vec<Claimed>,
    /// Those without.
    absent: Vec<Absent>,
}

/// A figure or table with results.
struct Claimed {
    figure: Figure,
    verdict: Verdict,
    /// What it claims in numbers, beside ours.
    checks: Vec<Checked>,
    /// The folders of the results.
    folders: Vec<Place>,
    /// Why, a text for each paragraph.
    why: Vec<String>,
}

/// The folder of an experiment's results.
struct Place {
    name: String,
    /// Whether the runs are in it, so that a link leads somewhere.
    has_runs: bool,
}

struct Checked {
    /// What the paper found, in its words.
    paper: String,
    compared: Compared,
}

/// A figure or table that nothing was run for.
struct Absent {
    name: String,
    experiment: String,
    /// What the lab lacks for it.
    needs: Option<&'static str>,
}

/// Writes both files, and returns a line for each paper and where they are.
///
/// # Errors
/// If `why.md` is wrong, or a file cannot be written.
pub fn write(folder: &Path, pass: &[Ran]) -> Result<String, LabError> {
    let why = Why::read(folder)?;
    keep(folder, pass)?;
    let papers = PAPERS.map(|(number, title)| Paper::of(number, title, pass, &why));
    let html_file = folder.join("claims.html");
    let markdown_file = folder.join("claims.md");
    fs::write(&html_file, html::render(&papers, pass)).map_err(LabError::file(&html_file))?;
    fs::write(&markdown_file, markdown::render(&papers, pass))
        .map_err(LabError::file(&markdown_file))?;
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

impl Paper {
    fn of(number: &'static str, title: &'static str, pass: &[Ran], why: &Why) -> Self {
        let (mut figures, mut absent) = (Vec::new(), Vec::new());
        for (experiment, figure) in claims_of(number) {
            let ran: Vec<&Ran> = pass
                .iter()
                .filter(|ran| ran.experiment.id == experiment.id)
                .collect();
            if ran.is_empty() {
                absent.push(Absent {
                    name: figure.name.clone(),
                    experiment: experiment.id.clone(),
                    needs: experiment.needs(),
                });
            } else {
                let why = why.of(&figure.name).to_vec();
                figures.push(Claimed::of(figure.clone(), &ran, why));
            }
        }
        Self {
            number,
            title,
            figures,
            absent,
        }
    }

    /// How many figures and tables came to that.
    fn count(&self, verdict: Verdict) -> usize {
        let absent = if verdict == Verdict::Open {
            self.absent.len()
        } else {
            0
        };
        let came = |claimed: &&Claimed| claimed.verdict == verdict;
        absent + self.figures.iter().filter(came).count()
    }

    /// How many figures and tables there are.
    fn all(&self) -> usize {
        self.figures.len() + self.absent.len()
    }

    /// How many came to each verdict, in words.
    fn counts(&self) -> String {
        let count = |verdict: Verdict| format!("{} {}", self.count(verdict), plural(verdict));
        Verdict::ALL.map(count).join(", ")
    }
}

/// What several came to.
fn plural(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "hold",
        Verdict::Partly => "hold partly",
        Verdict::DoesNot => "do not hold",
        Verdict::Open => "not measured",
    }
}

/// A paper's figures and tables in its order, each with the experiment behind it.
fn claims_of(paper: &str) -> Vec<(&'static Experiment, &'static Figure)> {
    let mut claims = Vec::new();
    for experiment in all() {
        let figures = experiment.figures.iter();
        let of_paper = figures.filter(|figure| figure.name.starts_with(paper));
        claims.extend(of_paper.map(|figure| (experiment, figure)));
    }
    claims.sort_by_cached_key(|(_, figure)| order::key(&figure.name));
    claims
}

impl Claimed {
    fn of(figure: Figure, ran: &[&Ran], why: Vec<String>) -> Self {
        let (mut checks, mut verdicts) = (Vec::new(), Vec::new());
        for one in ran {
            for check in compared(&figure, one) {
                let KeptCheck {
                    paper,
                    is_papers,
                    mut compared,
                } = check;
                if is_papers {
                    verdicts.push(compared.verdict);
                }
                if ran.len() > 1 {
                    compared.what += &format!(" ({})", one.folder);
                }
                checks.push(Checked { paper, compared });
            }
        }
        Self {
            verdict: Verdict::together(&verdicts),
            checks,
            folders: ran.iter().map(|one| Place::of(one)).collect(),
            why,
            figure,
        }
    }
}

/// What a figure claims in numbers, beside what came out of one experiment.
fn compared(figure: &Figure, ran: &Ran) -> Vec<KeptCheck> {
    let mut all = Vec::new();
    let mut add = |paper: &str, is_papers, compared| {
        all.push(KeptCheck {
            paper: paper.to_owned(),
            is_papers,
            compared,
        });
    };
    if let Some(figures) = &ran.figures {
        for check in &figure.checks {
            add(&check.paper, check.is_papers(), check.compare(figures));
        }
    }
    if let Some(runs) = &ran.shop {
        for check in &figure.shop_checks {
            add(&check.paper, check.is_papers(), check.compare(runs));
        }
    }
    if let Some(kept) = &ran.kept {
        all.extend(kept.figures.get(&figure.name).cloned().unwrap_or_default());
    }
    all
}

/// Keeps in the pass's folder what became of the claims behind each of its experiments.
fn keep(folder: &Path, pass: &[Ran]) -> Result<(), LabError> {
    // A study of a person's own is behind no paper's claim, and its file may be gone later.
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
    verdicts::write(folder, &kept)
}

impl Place {
    fn of(ran: &Ran) -> Self {
        Self {
            name: ran.folder.clone(),
            has_runs: ran.figures.is_some() || ran.shop.is_some(),
        }
    }
}

impl Absent {
    /// Which figure, and what would measure it.
    fn words(&self) -> String {
        match self.needs {
            Some(needs) => format!("{} ({} needs {needs})", self.name, self.experiment),
            None => format!("{} ({})", self.name, self.experiment),
        }
    }
}

/// A folder's name as part of a link.
fn link(folder: &str) -> PercentEncode<'_> {
    const BESIDES_LETTERS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');
    utf8_percent_encode(folder, BESIDES_LETTERS)
}
