//! Habits of this house that no compiler keeps: short files, functions and lines, a head on each file, a reason for
//! each test that is left out, one home for each name, the glossary's words, and no dependency that wants a newer Rust
//! than the workspace says.
//!
//! What clippy can keep it keeps: `Cargo.toml` and `clippy.toml` say what, such as no clock where time is an argument.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;
/// rustfmt breaks code at 100 but leaves comments and literals as they are.
const COLUMNS_MAX: usize = 140;
/// Names that docs/rooms.md has others for: a decision, a report, an observation, to admit, to pause, to drain.
const RENAMED: [&str; 6] = ["Asked", "Told", "Seen", "let_in", "mind_pause", "hear_out"];

/// The layers of the lab: each uses only those before it.
const LAB_LAYERS: [&str; 4] = ["study", "papers", "report", "run"];
/// Rooms that what serves does not link.
const BESIDE_PRODUCTION: [&str; 4] = [
    "shortline-testbed",
    "shortline-lab",
    "shortline-bookstore",
    "shortline-world",
];

struct Source {
    /// From the project's folder.
    path: String,
    text: String,
}

impl Source {
    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// The functions that are no tests, by their first line and how long they are. As rustfmt leaves it, a
    /// function ends where a brace stands as far in as it began.
    fn functions(&self) -> Vec<(usize, usize)> {
        let lines: Vec<_> = self.text.lines().collect();
        let tested = lines.iter().position(|line| *line == "#[cfg(test)]");
        let code = &lines[..tested.unwrap_or(lines.len())];
        let begins = code.iter().enumerate().filter_map(|(at, line)| {
            let text = line.trim_start();
            let end = format!("{}}}", &line[..line.len() - text.len()]);
            let is_function = text.split('(').next().is_some_and(|to| to.contains("fn "));
            let ends = || lines[at..].iter().position(|line| *line == end);
            let is_code = is_function && !text.starts_with("//");
            is_code
                .then(ends)
                .flatten()
                .map(|length| (at + 1, length + 1))
        });
        begins.collect()
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the project's folder");
    let mut found = Vec::new();
    walk(&root.join("crates"), &mut found);
    let sources = found.into_iter().map(|path| Source {
        text: fs::read_to_string(&path).expect("a source file"),
        path: path
            .strip_prefix(&root)
            .expect("it is below the root")
            .display()
            .to_string(),
    });
    sources.collect()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The lines of a source for which `is_so`, by their places.
fn lines_where(source: &Source, is_so: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = source.text.lines().enumerate();
    let places = lines.filter(|(_, line)| is_so(line));
    places
        .map(|(at, _)| format!("{}:{}", source.path, at + 1))
        .collect()
}

/// Fails with every place that is not as it should be.
fn none(what: &str, places: &[String]) {
    assert!(places.is_empty(), "{what}:\n{}", places.join("\n"));
}

#[test]
fn no_file_is_long() {
    let long = sources().into_iter().filter_map(|source| {
        let lines = source.text.lines().count();
        (lines > LINES_MAX).then(|| format!("{}: {lines} lines", source.path))
    });
    none("files of more than 500 lines", &long.collect::<Vec<_>>());
}

#[test]
fn each_file_opens_with_what_it_is_for() {
    let headless = sources().into_iter();
    let headless = headless.filter(|source| !source.text.starts_with("//!"));
    let paths: Vec<_> = headless.map(|source| source.path).collect();
    none("files without a head", &paths);
}

#[test]
fn each_test_that_is_left_out_says_why() {
    let mute = |source| lines_where(source, |line| line.trim() == "#[ignore]");
    let mute: Vec<_> = sources().iter().flat_map(mute).collect();
    none("tests ignored without a reason", &mute);
}

#[test]
fn no_function_is_long() {
    let mut long = Vec::new();
    for source in sources() {
        if source.is_test() {
            continue;
        }
        let functions = source.functions().into_iter();
        let functions = functions.filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
        long.extend(functions.map(|(at, lines)| format!("{}:{at}: {lines} lines", source.path)));
    }
    none("functions of more than 70 lines", &long);
}

#[test]
fn no_line_is_long() {
    // A row of a table has to be one line.
    let is_row = |line: &str| {
        let text = line.trim_start();
        text.starts_with("//! |") || text.starts_with("/// |")
    };
    let is_long = |line: &str| line.chars().count() > COLUMNS_MAX && !is_row(line);
    let sources = sources();
    let long: Vec<_> = sources
        .iter()
        .flat_map(|source| lines_where(source, is_long))
        .collect();
    none("lines of more than 140 columns", &long);
}

/// What a re-export names, the module's children have, or another room: a cousin's names would have two homes.
#[test]
fn no_name_has_two_homes() {
    let is_cousins = |line: &str| {
        let path = line.trim_start().strip_prefix("pub use ");
        path.is_some_and(|path| path.starts_with("crate::") || path.starts_with("super::"))
    };
    let twice = |source| lines_where(source, is_cousins);
    let twice: Vec<_> = sources().iter().flat_map(twice).collect();
    none("re-exports of what is at home elsewhere", &twice);
}

#[test]
fn names_are_those_of_the_glossary() {
    let is_old = |line: &str| {
        // A comment may use the word in a sentence.
        let code = line.split("//").next().unwrap_or_default();
        let mut names = code.split(|letter: char| letter != '_' && !letter.is_alphanumeric());
        names.any(|name| RENAMED.contains(&name))
    };
    let others = sources().into_iter();
    let others = others.filter(|source| !source.path.ends_with("/tidy.rs"));
    let old: Vec<_> = others
        .flat_map(|source| lines_where(&source, is_old))
        .collect();
    none("names that were given up (docs/rooms.md)", &old);
}

/// `rust-version` is a promise about all that is compiled. A second toolchain would test it and cannot always be had.
#[test]
fn no_dependency_wants_a_newer_rust() {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .arg("--filter-platform=x86_64-unknown-linux-gnu")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let problem = String::from_utf8_lossy(&metadata.stderr);
    assert!(metadata.status.success(), "{problem}");
    let metadata: Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list");
    let promised = version(env!("CARGO_PKG_RUST_VERSION"));
    let newer: Vec<_> = packages
        .iter()
        .filter_map(|package| Some((&package["name"], package["rust_version"].as_str()?)))
        .filter(|(_, wanted)| version(wanted) > promised)
        .map(|(name, wanted)| format!("{name} {wanted}"))
        .collect();
    none("dependencies that want a newer Rust", &newer);
}

/// `1.88` and `1.88.0` are the same.
fn version(text: &str) -> [u32; 3] {
    let mut numbers = text
        .split('.')
        .map(|number| number.parse().expect("a number"));
    [(); 3].map(|()| numbers.next().unwrap_or(0))
}

/// The lines of a source before its tests.
fn code(source: &Source) -> impl Iterator<Item = &str> {
    source
        .text
        .lines()
        .take_while(|line| *line != "#[cfg(test)]")
}

#[test]
fn layers_of_the_lab_use_only_those_before_them() {
    let mut upward = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        let in_lab = source.path.strip_prefix("crates/shortline-lab/src/");
        let layer = in_lab.and_then(|path| path.split(['/', '.']).next());
        let place = LAB_LAYERS.iter().position(|known| layer == Some(*known));
        let Some(place) = place.filter(|_| !source.path.ends_with("_tests.rs")) else {
            continue;
        };
        for later in &LAB_LAYERS[place + 1..] {
            let uses = |line: &str| line.contains(&format!("crate::{later}::"));
            let line = code(source).find(|line| uses(line));
            upward.extend(line.map(|line| format!("{}: {}", source.path, line.trim())));
        }
    }
    none("uses of a later layer", &upward);
}

/// The rooms that a room links, from its manifest.
fn linked(room: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = fs::read_to_string(root.join(room).join("Cargo.toml")).expect("a manifest");
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    let names = dependencies
        .lines()
        .filter_map(|line| line.split(['.', ' ']).next());
    let rooms = names.filter(|name| name.starts_with("shortline-"));
    rooms.map(str::to_owned).collect()
}

#[test]
fn what_serves_links_no_test_bed_and_no_lab() {
    let mut rooms = vec!["shortline".to_owned()];
    let mut at = 0;
    while let Some(room) = rooms.get(at) {
        let more = linked(room);
        let more: Vec<_> = more
            .into_iter()
            .filter(|room| !rooms.contains(room))
            .collect();
        rooms.extend(more);
        at += 1;
    }
    assert!(rooms.len() > 5, "{rooms:?}");
    rooms.retain(|room| BESIDE_PRODUCTION.contains(&room.as_str()));
    none("rooms that what serves links", &rooms);
}
