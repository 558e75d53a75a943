//! The page of all results as Markdown: a section for each headline, a row for each result.

use std::fmt::Write as _;

use super::DRAWING_FILE;
use super::entries::{Entries, Headline};
use super::outcome::{Outcome, Verdict};

/// Notes for the reader before the first table.
const HOW_TO_READ: &str = "\
Made by `shortline lab results` from [results.toml](results.toml): change a number there, and nowhere else.

The result is the median where there are several runs, and the range goes from the lowest to the highest. \
*x optimum* is the mean response time over that of the fluid SRPT optimum for the very same arrivals and wire \
bytes; a request that failed counts with the time until it did. The commit is the one that put the result on \
record. The command measures it again, and the results below it that have none; `lab` is short for `shortline lab`.

| bed | what it is |
|---|---|
| native | network namespaces of a virtual machine with 2 cores (Linux 6.18, Debian 12, nginx 1.22), cubic, HTB with a \
FIFO of 100 packets; server, generator and bottleneck share the cores |
| virtual | the same in a user-mode kernel (Linux 6.1) whose clock stands still while anything computes \
([beds](../lab/beds.md)) |
| loopback | the loopback interface of the same machine |
| database | PostgreSQL 15 or MariaDB 10.11 on one core, all else on the other |
| simulated | `shortline sim` and the models of the tests, no network |
| bench | one process, no network |

";

/// How to repeat the raw runs, and where the notebook is.
const FURTHER: &str = "\
## Runs and history

Raw runs are not in the tree. Each folder has a summary of them, a picture, and the command that makes them again. \
`lab run ID` writes to `lab-results/ID`, which git ignores; `scripts/bench BINARY` runs all experiments. \
`lab report FOLDER` makes tables and pages again from such a folder, wherever an archive of it was unpacked. The runs \
that were in the tree once are in git's history: `git log --diff-filter=D --name-only -- docs/results`.

[HISTORY.csv](HISTORY.csv) has how the headline figures moved from commit to commit. The \
[notebook](notebook/README.md) has what was learnt: tables in full, causes, dead ends.
";

/// The whole page.
pub fn render(entries: &Entries) -> String {
    let mut text = format!("# Results\n\n{HOW_TO_READ}{}", counts(entries));
    for headline in &entries.headlines {
        text += &section(headline, &entries.of(headline));
    }
    text + "\n" + FURTHER
}

fn counts(entries: &Entries) -> String {
    let verdicts: Vec<Verdict> = entries.all().filter_map(Outcome::verdict).collect();
    let count = |wanted: Verdict| {
        verdicts
            .iter()
            .filter(|verdict| **verdict == wanted)
            .count()
    };
    let mut text = format!(
        "Of {} results {} have a target: {} met it in every run, {} in the median, {} missed it. In full:\n\n",
        entries.all().count(),
        verdicts.len(),
        count(Verdict::Met),
        count(Verdict::MetInTheMedian),
        count(Verdict::Missed),
    );
    for headline in &entries.headlines {
        // Writing to a string cannot fail.
        writeln!(text, "- [{}](#{})", headline.title, anchor(&headline.title)).ok();
    }
    text
}

fn section(headline: &Headline, results: &[&Outcome]) -> String {
    let Headline {
        id,
        title,
        about,
        notebook,
    } = headline;
    let mut text = format!("\n## {title}\n\n{}\n", about.trim());
    let mut links =
        format!("\n[Summary and command]({id}/README.md), [what was learnt]({notebook})");
    if results.iter().any(|result| result.verdict().is_some()) {
        links += &format!(", [the targets drawn]({id}/{DRAWING_FILE})");
    }
    text += &format!("{links}.\n\n");
    text += "| what | result | range | target | | bed | runs | date | commit |\n|---|---|---|---|---|---|---|---|---|\n";
    let mut before = "";
    for result in results {
        text += &row(result, result.command != before);
        before = &result.command;
    }
    text
}

/// A result as a row of the table, with its command unless the row above has the same.
fn row(result: &Outcome, has_command: bool) -> String {
    let mut what = format!("<a id=\"{}\"></a>{}", result.id, result.claim);
    if let Some(note) = &result.note {
        what += &format!(" *{note}*");
    }
    if has_command {
        what += &format!("<br>`{}`", result.command);
    }
    let cells = [
        what,
        format!("**{}**", result.figure()),
        result.range_text().unwrap_or_default(),
        result.target_text().unwrap_or_default(),
        result
            .verdict()
            .map(Verdict::words)
            .unwrap_or_default()
            .into(),
        result.bed.to_string(),
        result.runs.clone(),
        result.date.to_string(),
        result.commit.clone(),
    ];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}

/// The anchor that GitHub gives a title.
fn anchor(title: &str) -> String {
    let kept = title.to_lowercase().replace(' ', "-");
    kept.chars()
        .filter(|c| c.is_alphanumeric() || *c == '-')
        .collect()
}
