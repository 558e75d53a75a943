//! The claims as Markdown with GitHub's tables: a row for each figure, below it one for each
//! clause, for each comparison and for why.

use std::fmt::Write as _;

use super::claimed::{Claimed, HOW_TO_READ, Paper, Place, SYSTEMS, TITLE, link};
use crate::report::table::ours;
use crate::study::claim::{Judged, System};
use crate::study::ran::Ran;
use crate::study::verdict::Verdict;

/// The whole text.
pub fn render(papers: &[Paper], pass: &[Ran]) -> String {
    let mut text = format!("# {TITLE}\n\n{HOW_TO_READ}\n\n{}", summary(papers));
    for paper in papers {
        text += &section(paper);
    }
    text + &experiments(pass)
}

fn summary(papers: &[Paper]) -> String {
    let words = Verdict::ALL.map(|verdict| verdict.word().to_owned());
    let first = ["paper", "system", "of"].map(String::from);
    let mut text = head(first.into_iter().chain(words));
    for paper in papers {
        for (system, of, counts) in paper.rows() {
            let first = [paper.number, system, of].map(String::from);
            let counts = counts.map(|count| count.to_string());
            text += &row(first.into_iter().chain(counts));
        }
    }
    text
}

fn section(paper: &Paper) -> String {
    let (number, title, all) = (paper.number, paper.title, paper.all());
    let [ours, own] = SYSTEMS.map(|(system, _)| paper.counts(system));
    let mut text = format!(
        "\n## {number}: {title}\n\nOf {all} figures and tables {ours}. With the paper's own system {own}.\n"
    );
    if !paper.figures.is_empty() {
        text.push('\n');
        text += &head([
            "figure or table",
            "claim, and what is compared",
            "verdict",
            "its own system",
            "paper",
            "wanted",
            "came out",
            "results",
        ]);
        text.extend(paper.figures.iter().map(claim));
    }
    if !paper.absent.is_empty() {
        text += "\nNot measured:\n\n";
        for absent in &paper.absent {
            // Writing to a string cannot fail.
            writeln!(text, "- {}", absent.words()).ok();
        }
    }
    text
}

fn claim(claimed: &Claimed) -> String {
    let Claimed { figure, judged, .. } = claimed;
    let folders: Vec<String> = claimed.folders.iter().map(results).collect();
    let [ours, own] = SYSTEMS.map(|(system, _)| format!("**{}**", judged.verdict(system).word()));
    let mut text = row([
        format!("**{}**", figure.name),
        claimed.clauses(),
        ours,
        own,
        String::new(),
        String::new(),
        String::new(),
        folders.join(" "),
    ]);
    for clause in &judged.clauses {
        let [ours, own] = SYSTEMS.map(|(system, _)| clause.verdict(system).word());
        text += &row(["", &format!("*{}*", clause.says), ours, own, "", "", "", ""]);
        text.extend(clause.checks.iter().map(comparison));
    }
    text.extend(judged.aims.iter().map(comparison));
    if !claimed.why.is_empty() {
        let why = format!("*Why:* {}", claimed.why.join("<br>"));
        text += &row(["", &why, "", "", "", "", "", ""]);
    }
    text
}

fn comparison(judged: &Judged) -> String {
    let word = judged.verdict.word();
    let (first, second) = match judged.system {
        System::Ours => (word, ""),
        System::Papers => ("", word),
        System::Both => (word, word),
    };
    let came = ours(judged);
    row([
        "",
        &judged.what,
        first,
        second,
        &judged.paper,
        &judged.wanted,
        &came,
        "",
    ])
}

fn experiments(pass: &[Ran]) -> String {
    let mut text = String::from("\n## What was run\n\n");
    text += &head([
        "results",
        "experiment",
        "bed",
        "kernel",
        "SYN backoff",
        "commit",
        "seconds",
        "seeds",
        "records (SHA-256)",
        "",
    ]);
    for ran in pass {
        let conditions = &ran.conditions;
        text += &row([
            results(&Place::of(ran)).as_str(),
            &ran.experiment.id,
            &conditions.bed,
            &conditions.kernel,
            &conditions.syn_backoff,
            &conditions.commits,
            &conditions.seconds,
            &conditions.seeds,
            &conditions.records,
            conditions.cut_short.as_deref().unwrap_or_default(),
        ]);
    }
    text
}

/// An experiment's folder, with a link if its runs are there.
fn results(place: &Place) -> String {
    let name = &place.name;
    if place.has_runs {
        format!("[{name}]({}/)", link(name))
    } else {
        name.clone()
    }
}

fn head<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let cells: Vec<T> = cells.into_iter().collect();
    let rule = vec!["---"; cells.len()].join("|");
    format!("{}|{rule}|\n", row(cells))
}

/// A row of a table, whose cells can hold neither a bare `|` nor a line's end.
fn row<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let cell = |cell: T| cell.as_ref().replace('|', "\\|").replace('\n', " ");
    let cells: Vec<String> = cells.into_iter().map(cell).collect();
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_ends_neither_its_row_nor_its_table() {
        assert_eq!(row(["a|b", "c\nd"]), "| a\\|b | c d |\n");
        assert_eq!(head(["a", "b"]), "| a | b |\n|---|---|\n");
    }
}
