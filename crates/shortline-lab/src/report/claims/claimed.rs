//! The verdicts on the claims of a paper, as both pages show them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use super::why::Why;
use crate::papers::claims_of;
use crate::study::claim::Figure;
use crate::study::kept_claims::KeptCheck;
use crate::study::ran::Ran;
use crate::study::verdict::{Compared, Verdict};

/// The title of both pages.
pub const TITLE: &str = "What the papers claim, and what came out";
/// Notes on the verdicts for the reader.
pub const HOW_TO_READ: &str = "A figure or table holds if all that it claims in numbers holds, and partly \
if some of it does or at some points; what could not be compared keeps it from holding. What is our \
own aim and no paper's claim is shown and does not count.";

/// The verdicts on the claims of a paper.
pub struct Paper {
    pub number: &'static str,
    pub title: &'static str,
    /// Its figures and tables with results, in its order.
    pub figures: Vec<Claimed>,
    /// Its figures and tables without results.
    pub absent: Vec<Absent>,
}

/// A figure or table with results.
pub struct Claimed {
    pub figure: Figure,
    pub verdict: Verdict,
    /// Its claims in numbers, beside our figures.
    pub checks: Vec<Checked>,
    /// The folders of the results.
    pub folders: Vec<Place>,
    /// The explanation, one text for each paragraph.
    pub why: Vec<String>,
}

/// The folder of an experiment's results.
pub struct Place {
    pub name: String,
    /// Whether the runs are in it, so that a link can lead there.
    pub has_runs: bool,
}

pub struct Checked {
    /// What the paper found, in its words.
    pub paper: String,
    pub compared: Compared,
}

/// A figure or table without runs.
pub struct Absent {
    pub name: String,
    pub experiment: String,
    /// What the lab lacks for it.
    pub needs: Option<&'static str>,
}

impl Paper {
    pub fn of(number: &'static str, title: &'static str, pass: &[Ran], why: &Why) -> Self {
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

    /// The number of figures and tables with that verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let absent = if verdict == Verdict::Open {
            self.absent.len()
        } else {
            0
        };
        let came = |claimed: &&Claimed| claimed.verdict == verdict;
        absent + self.figures.iter().filter(came).count()
    }

    /// The number of figures and tables.
    pub fn all(&self) -> usize {
        self.figures.len() + self.absent.len()
    }

    /// The number for each verdict, in words.
    pub fn counts(&self) -> String {
        let count = |verdict: Verdict| format!("{} {}", self.count(verdict), plural(verdict));
        Verdict::ALL.map(count).join(", ")
    }
}

/// The verdict on several together.
fn plural(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "hold",
        Verdict::Partly => "hold partly",
        Verdict::DoesNot => "do not hold",
        Verdict::Open => "not measured",
    }
}

impl Claimed {
    pub fn of(figure: Figure, ran: &[&Ran], why: Vec<String>) -> Self {
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

/// A figure's claims in numbers, beside the results of one experiment.
pub fn compared(figure: &Figure, ran: &Ran) -> Vec<KeptCheck> {
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

impl Place {
    pub fn of(ran: &Ran) -> Self {
        Self {
            name: ran.folder.clone(),
            has_runs: ran.figures.is_some() || ran.shop.is_some(),
        }
    }
}

impl Absent {
    /// The figure and the experiment that would measure it, in words.
    pub fn words(&self) -> String {
        match self.needs {
            Some(needs) => format!("{} ({} needs {needs})", self.name, self.experiment),
            None => format!("{} ({})", self.name, self.experiment),
        }
    }
}

/// A folder's name as part of a link.
pub fn link(folder: &str) -> PercentEncode<'_> {
    const BESIDES_LETTERS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');
    utf8_percent_encode(folder, BESIDES_LETTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_names_any_folder() {
        assert_eq!(link("000-rtt_2.a").to_string(), "000-rtt_2.a");
        assert_eq!(link("a b/ü:").to_string(), "a%20b%2F%C3%BC%3A");
    }
}
