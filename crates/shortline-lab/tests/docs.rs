//! The project's Markdown: every link to a file or a heading has a target, and the results stay small
//! enough for the repository.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// The most files and bytes of the results in the repository. Raw results belong in `lab-results`.
const RESULT_FILES_MAX: usize = 64;
const RESULT_BYTES_MAX: u64 = 1_500_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files in `folder` and below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all
}

/// The project's own Markdown: that in its root, in `docs` and beside the code.
fn pages() -> Vec<PathBuf> {
    let top = fs::read_dir(root()).unwrap();
    let mut all: Vec<PathBuf> = top.map(|entry| entry.unwrap().path()).collect();
    for folder in ["docs", "crates", "packaging", "scripts"] {
        all.extend(files(&root().join(folder)));
    }
    // What its tools install there is not the project's.
    all.push(root().join("python/README.md"));
    all.retain(|path| path.is_file() && path.extension().is_some_and(|end| end == "md"));
    all
}

/// The text without blocks of code, in which nothing is a link.
fn without_code(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("    "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The targets of a page's links and pictures inside the project: `[a](b)`, `[a]: b`, and HTML's.
fn links(text: &str) -> Vec<&str> {
    let until = |begin: &str, end: char| -> Vec<&str> {
        let rests = text.split(begin).skip(1);
        rests
            .filter_map(|rest| rest.split_once(end))
            .map(|(target, _)| target)
            .collect()
    };
    let mut all = [
        until("](", ')'),
        until("src=\"", '"'),
        until("href=\"", '"'),
    ]
    .concat();
    let definitions = text
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    all.extend(definitions.map(|(_, target)| target.trim()));
    let target = |link: &str| link.split(' ').next().unwrap_or_default().len();
    all.retain(|link| !link.contains("://") && !link.starts_with("mailto:"));
    all.into_iter().map(|link| &link[..target(link)]).collect()
}

#[test]
fn links_are_found_however_they_are_written() {
    let text = "[a](b.md#c \"d\") ![e](f.svg) <img src=\"g.png\"> <a href=\"https://h\">\n[i]: j.md\n[k](https://l)\n";
    let mut found = links(text);
    found.sort_unstable();
    assert_eq!(found, ["b.md#c", "f.svg", "g.png", "j.md"]);
}

/// The anchors of a page: its own, and those that GitHub gives its headings.
fn anchors(text: &str) -> Vec<String> {
    let set = text.split("<a id=\"").skip(1);
    let set = set.filter_map(|rest| rest.split_once('"').map(|(id, _)| id.to_owned()));
    let headings = text.lines().filter(|line| line.starts_with('#'));
    set.chain(headings.map(|line| {
        let title = line
            .trim_start_matches('#')
            .trim()
            .to_lowercase()
            .replace(' ', "-");
        title
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
            .collect()
    }))
    .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = without_code(&fs::read_to_string(&page).unwrap());
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                page.clone()
            } else {
                page.parent().unwrap().join(file)
            };
            let leads = target.exists()
                && (anchor.is_empty()
                    || anchors(&fs::read_to_string(&target).unwrap())
                        .iter()
                        .any(|own| own == anchor));
            if !leads {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_results_stay_small() {
    let all = files(&root().join("docs/results"));
    let kept = all
        .iter()
        .filter(|path| !path.ends_with("papers/claims.html"));
    let sizes: Vec<u64> = kept.map(|path| fs::metadata(path).unwrap().len()).collect();
    assert!(sizes.len() <= RESULT_FILES_MAX, "{} files", sizes.len());
    assert!(
        sizes.iter().sum::<u64>() <= RESULT_BYTES_MAX,
        "{} bytes",
        sizes.iter().sum::<u64>()
    );
}

/// The page of claims counts each paper's figures, and their clauses, by verdict. The results have the sums for ours.
#[test]
fn the_results_count_the_papers_claims_as_their_page_does() {
    let results = root().join("docs/results");
    let claims = fs::read_to_string(results.join("papers/claims.md")).unwrap();
    let text = fs::read_to_string(results.join("results.toml")).unwrap();
    let entries: toml::Table = text.parse().unwrap();
    let value = |id: &str| {
        let all = entries["result"].as_array().unwrap();
        let result = all.iter().find(|result| result["id"].as_str() == Some(id));
        result.unwrap()["value"].as_float().unwrap()
    };
    let papers = fs::read_to_string(root().join("docs/lab/papers.md")).unwrap();
    for row in claims
        .lines()
        .filter(|row| row.contains(" | ours | clauses | "))
    {
        let row = row.replace(" | ours | clauses", "");
        let is_there = papers.contains(row.as_str().trim_end_matches('|').trim_end());
        assert!(is_there, "docs/lab/papers.md lacks {row}");
    }
    let verdicts = ["hold", "exceed", "partly", "not", "open"];
    for (of, name) in [("figures", "papers"), ("clauses", "clauses")] {
        let mut sums = [0.0; 5];
        let begin = format!(" | ours | {of} | ");
        let rows = claims.lines().filter_map(|row| row.split_once(&begin));
        for (_, counts) in rows {
            let counts = counts
                .split('|')
                .filter_map(|cell| cell.trim().parse::<f64>().ok());
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        assert_eq!(
            sums,
            verdicts.map(|verdict| value(&format!("{name}-{verdict}")))
        );
        assert_eq!(sums.iter().sum::<f64>(), value(&format!("{name}-all")));
    }
}

/// A figure with a clause that does not hold as the paper says, with ours or with its own system, has a reason beside it.
#[test]
fn what_does_not_hold_has_a_reason() {
    let claims = root().join("docs/results/papers/claims.md");
    let text = fs::read_to_string(claims).unwrap();
    let figures: Vec<&str> = text.split("\n| **").skip(1).collect();
    assert!(!figures.is_empty(), "the page has no figures");
    let mut without = Vec::new();
    for figure in figures {
        let (head, rows) = figure.split_once('\n').unwrap();
        let cells: Vec<&str> = head.split(" | ").collect();
        let [name, _, ours, own, ..] = cells[..] else {
            panic!("a figure has its verdicts in {head}");
        };
        let falls_short = [ours, own]
            .iter()
            .any(|verdict| ["**holds partly**", "**does not hold**"].contains(verdict));
        if falls_short && !rows.contains("| *Why:* ") {
            without.push(name.trim_end_matches('*'));
        }
    }
    assert!(without.is_empty(), "no reason for {}", without.join(", "));
}
