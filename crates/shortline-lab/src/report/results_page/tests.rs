//! The entries and the pages made from them: the project's own, and small ones with an error.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{FOLDER, check, write};

const HEADLINE: &str = "\
readme = 'W1 took {w1-mean} ({w1-over:range}), {w1-mean/w1-over} times and {w1-over/w1-over}.'

[[headline]]
id = 'w1'
title = 'Under overload'
about = 'Measured.'
notebook = 'notebook/w1.md#why'
";

/// An entry. The keys in `other` replace those of the same name.
fn entry(other: &str) -> String {
    let mut text = String::from("\n[[result]]\n");
    for line in [
        "id = 'w1-over'",
        "headline = 'w1'",
        "claim = 'W1, mean over the optimum'",
        "value = 1.04",
        "range = [1.03, 1.05]",
        "at_most = 1.1",
        "bed = 'native'",
        "runs = '5 seeds'",
        "date = 2026-11-22",
        "commit = '327e5d3'",
        "command = 'lab run w1'",
    ] {
        let key = line.split('=').next().unwrap_or_default();
        if !other.contains(key) {
            text += &format!("{line}\n");
        }
    }
    text + other + "\n"
}

/// A second entry, of a mean.
fn mean() -> String {
    entry("id = 'w1-mean'\nvalue = 33.4\nrange = [33.4, 33.4]\nat_most = 30.0\nunit = 'ms'")
}

fn project(entries: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join(FOLDER);
    fs::create_dir_all(folder.join("w1")).unwrap();
    fs::create_dir_all(folder.join("notebook")).unwrap();
    fs::write(folder.join("results.toml"), entries).unwrap();
    fs::write(folder.join("w1/README.md"), "").unwrap();
    fs::write(folder.join("notebook/w1.md"), "").unwrap();
    let readme = "# It\n<!-- results:begin -->\nold\n<!-- results:end -->\nEnd.\n";
    fs::write(root.path().join("README.md"), readme).unwrap();
    root
}

fn read(root: &Path, name: &str) -> String {
    fs::read_to_string(root.join(name)).unwrap()
}

/// The error of `write` for these entries, without the folder.
fn complaint(entries: &str) -> String {
    let root = project(entries);
    let error = write(root.path()).unwrap_err().to_string();
    error.replace(&format!("{}/", root.path().display()), "")
}

#[test]
fn the_projects_page_is_what_its_entries_make() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    check(&root).unwrap();
}

#[test]
fn page_readme_and_drawing_are_written_once() {
    let root = project(&format!("{HEADLINE}{}{}", entry(""), mean()));
    let stale = check(root.path()).unwrap_err().to_string();
    assert!(
        stale.contains("README.md") && stale.contains("targets.svg"),
        "{stale}"
    );
    assert_eq!(write(root.path()).unwrap().len(), 3);
    check(root.path()).unwrap();
    assert!(write(root.path()).unwrap().is_empty());
    assert_eq!(
        read(root.path(), "README.md"),
        "# It\n<!-- results:begin -->\nW1 took 33.4 ms (1.03 to 1.05), 32 times and 1.0.\n<!-- results:end -->\nEnd.\n"
    );
    let page = read(root.path(), "docs/results/README.md");
    for said in [
        "Of 2 results 2 have a target: 1 met it in every run, 0 in the median, 1 missed it.",
        "- [Under overload](#under-overload)",
        "| <a id=\"w1-over\"></a>W1, mean over the optimum<br>`lab run w1` | **1.04** | 1.03 to 1.05 | \
         at most 1.1 | met | native | 5 seeds | 2026-11-22 | 327e5d3 |",
        "| **33.4 ms** | 33.4 to 33.4 ms | at most 30 ms | **missed** |",
    ] {
        assert!(page.contains(said), "{said}\n{page}");
    }
    let drawing = read(root.path(), "docs/results/w1/targets.svg");
    assert!(
        drawing.contains("W1, mean over the optimum: 1.04"),
        "{drawing}"
    );
}

#[test]
fn a_median_may_meet_what_a_run_misses() {
    let least = entry("range = [0.9, 1.2]\nat_least = 1.0").replace("at_most = 1.1\n", "");
    let root = project(&format!("{HEADLINE}{least}{}", mean()));
    write(root.path()).unwrap();
    let page = read(root.path(), "docs/results/README.md");
    assert!(
        page.contains("| at least 1 | met in the median |"),
        "{page}"
    );
}

#[test]
fn a_wrong_entry_is_told_with_line_key_and_what_would_be_right() {
    for (other, said) in [
        (
            "id = 'W1'",
            "20: id: `W1`: want small letters, digits and hyphens",
        ),
        (
            "headline = 'w2'",
            "20: headline: `w2`: want the id of a [[headline]]",
        ),
        (
            "range = [1.2, 1.3]",
            "20: range: 1.04 is not within 1.2 to 1.3: want",
        ),
        (
            "at_least = 1.0",
            "21: at_least: at_most is there, too: want one target",
        ),
        (
            "runs = 'five'",
            "20: runs: `five`: want a number and what of",
        ),
        (
            "date = 12:00:00",
            "20: date: 12:00:00: want a day, such as 2026-11-22",
        ),
        (
            "commit = 'HEAD'",
            "20: commit: `HEAD`: want seven hexadecimal digits",
        ),
        (
            "bed = 'cloud'",
            "20: unknown variant `cloud`, expected one of `native`",
        ),
        (
            "speed = 3",
            "21: unknown field `speed`, expected one of `id`",
        ),
    ] {
        let line = complaint(&format!("{HEADLINE}{}", entry(other)));
        assert!(
            line.starts_with(&format!("docs/results/results.toml:{said}")),
            "{line}"
        );
    }
    let without = entry("").replace("bed = 'native'\n", "");
    let line = complaint(&format!("{HEADLINE}{without}"));
    assert!(
        line.starts_with("docs/results/results.toml:9: missing field `bed`"),
        "{line}"
    );
}

#[test]
fn what_does_not_fit_together_is_told() {
    let twice = complaint(&format!("{HEADLINE}{}{}", entry(""), entry("")));
    assert!(
        twice.contains(":24: id: `w1-over` for the second time"),
        "{twice}"
    );
    let placeholder = complaint(&format!("{HEADLINE}{}", entry("")));
    assert!(
        placeholder.contains(":1: readme: `{w1-mean}` names no figure: want {ID}"),
        "{placeholder}"
    );
    let nowhere = HEADLINE.replace("notebook/w1", "notebook/w2");
    let nowhere = complaint(&format!("{nowhere}{}{}", entry(""), mean()));
    assert!(
        nowhere.contains(":7: notebook: there is no notebook/w2.md: want"),
        "{nowhere}"
    );
    let root = project(&format!("{HEADLINE}{}{}", entry(""), mean()));
    fs::write(
        root.path().join("README.md"),
        "# It\n<!-- results:begin -->\n",
    )
    .unwrap();
    let region = write(root.path()).unwrap_err().to_string();
    assert!(
        region.contains("README.md: want one line `<!-- results:begin -->`"),
        "{region}"
    );
}

#[test]
fn parts_of_the_readme_have_regions_of_their_own() {
    let first = format!(
        "[readme_part]\nfirst = 'In short {{w1-mean}}.'\n\n{}",
        "[[headline]]"
    );
    let entries = format!("{HEADLINE}{}{}", entry(""), mean()).replacen("[[headline]]", &first, 1);
    let root = project(&entries);
    let lacks = write(root.path()).unwrap_err().to_string();
    assert!(
        lacks.contains("want one line `<!-- results first:begin -->`"),
        "{lacks}"
    );
    let readme = root.path().join("README.md");
    let regions = "<!-- results first:begin -->\n<!-- results first:end -->\n<!-- results:begin -->\n<!-- results:end -->\n";
    fs::write(&readme, regions).unwrap();
    write(root.path()).unwrap();
    let text = read(root.path(), "README.md");
    assert!(
        text.starts_with(
            "<!-- results first:begin -->\nIn short 33.4 ms.\n<!-- results first:end -->\n"
        ),
        "{text}"
    );
    let unknown = complaint(&entries.replace("{w1-mean}.'\n\n", "{w2}.'\n\n"));
    assert!(
        unknown.contains("readme_part: `{w2}` names no figure"),
        "{unknown}"
    );
}
