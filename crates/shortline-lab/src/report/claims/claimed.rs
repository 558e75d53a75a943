//! The verdicts on the claims of a paper, as both pages show them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use super::why::Why;
use crate::papers::claims_of;
use crate::study::claim::{Figure, JudgedFigure, Runs, System};
use crate::study::ran::Ran;
use crate::study::verdict::Verdict;

/// The title of both pages.
pub const TITLE: &str = "What the papers claim, and what came out";
/// Notes on the verdicts for the reader.
pub const HOW_TO_READ: &str = "Each clause of a claim is compared with what the paper found. It holds if it came out so at \
each point, and exceeds if it holds and something is beyond the paper's range on the better side. It holds partly if \
some points or clauses are so and others are not, or have no value. What was not run, or for too short a time, is not \
measured. The verdict is on the median over the seeds; beside it stands their range. What is within 30 % of its \
threshold with fewer than three seeds says so. A figure has two verdicts: on ours beside nginx, and on the paper's own \
system (the kernel's bands beside Apache). What is our own aim and no paper's claim is shown and does not count.";

/// The systems, with their names on the page.
pub const SYSTEMS: [(System, &str); 2] = [(System::Ours, "ours"), (System::Papers, "its own")];

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
    /// Its clauses beside our results.
    pub judged: JudgedFigure,
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

/// A figure or table without runs.
pub struct Absent {
    pub name: String,
    pub experiment: String,
    /// How many clauses its claim has.
    pub clauses: usize,
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
                    clauses: figure.clauses.len(),
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

    /// The number of figures and tables with that verdict on a system.
    pub fn count(&self, system: System, verdict: Verdict) -> usize {
        let absent = if verdict == Verdict::Open {
            self.absent.len()
        } else {
            0
        };
        let came = |claimed: &&Claimed| claimed.judged.verdict(system) == verdict;
        absent + self.figures.iter().filter(came).count()
    }

    /// The number of clauses with that verdict on a system.
    pub fn clauses(&self, system: System, verdict: Verdict) -> usize {
        let absent = match verdict {
            Verdict::Open => self.absent.iter().map(|absent| absent.clauses).sum(),
            _ => 0,
        };
        let clauses = self
            .figures
            .iter()
            .flat_map(|claimed| &claimed.judged.clauses);
        absent
            + clauses
                .filter(|clause| clause.verdict(system) == verdict)
                .count()
    }

    /// The rows of the summary (figures are figures and tables): a system, what is counted, and the number for each verdict.
    pub fn rows(&self) -> Vec<(&'static str, &'static str, [usize; 5])> {
        let of = |(system, name)| {
            let figures = Verdict::ALL.map(|verdict| self.count(system, verdict));
            let clauses = Verdict::ALL.map(|verdict| self.clauses(system, verdict));
            [(name, "figures", figures), (name, "clauses", clauses)]
        };
        SYSTEMS.into_iter().flat_map(of).collect()
    }

    /// The number of figures and tables.
    pub fn all(&self) -> usize {
        self.figures.len() + self.absent.len()
    }

    /// The number for each verdict on a system, in words.
    pub fn counts(&self, system: System) -> String {
        let count = |verdict: Verdict| {
            let number = self.count(system, verdict);
            format!("{number} {}", words(verdict, number))
        };
        Verdict::ALL.map(count).join(", ")
    }
}

/// The verdict on so many.
fn words(verdict: Verdict, number: usize) -> &'static str {
    match (verdict, number) {
        (_, 1) | (Verdict::Open, _) => verdict.word(),
        (Verdict::Holds, _) => "hold",
        (Verdict::Exceeds, _) => "exceed",
        (Verdict::Partly, _) => "hold partly",
        (Verdict::DoesNot, _) => "do not hold",
    }
}

impl Claimed {
    /// How many of its clauses have which verdict on ours, in words.
    pub fn clauses(&self) -> String {
        let clauses = &self.judged.clauses;
        let verdicts = clauses.iter().map(|clause| clause.verdict(System::Ours));
        let verdicts: Vec<Verdict> = verdicts.collect();
        let count = |verdict: Verdict| {
            let number = verdicts.iter().filter(|own| **own == verdict).count();
            (number > 0).then(|| format!("{number} {}", words(verdict, number)))
        };
        let counts: Vec<String> = Verdict::ALL.into_iter().filter_map(count).collect();
        let clauses = if clauses.len() == 1 {
            "clause"
        } else {
            "clauses"
        };
        format!("{} {clauses}: {}", verdicts.len(), counts.join(", "))
    }

    pub fn of(figure: Figure, ran: &[&Ran], why: Vec<String>) -> Self {
        let mut whole = JudgedFigure::default();
        for one in ran {
            let mut of_one = judged(&figure, one);
            if ran.len() > 1 {
                of_one.name(&one.folder);
            }
            whole.add(of_one);
        }
        Self {
            judged: whole,
            folders: ran.iter().map(|one| Place::of(one)).collect(),
            why,
            figure,
        }
    }
}

/// A figure beside the results of one experiment.
pub fn judged(figure: &Figure, ran: &Ran) -> JudgedFigure {
    match (&ran.figures, &ran.shop, &ran.kept) {
        (Some(figures), _, _) => figure.judge(Runs::Link(figures)),
        (None, Some(all), _) => figure.judge(Runs::Shop(all)),
        (None, None, Some(kept)) => figure.judge(Runs::Kept(kept)),
        (None, None, None) => JudgedFigure::default(),
    }
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
