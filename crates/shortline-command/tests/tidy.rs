//! Habits of this house that no compiler keeps: short files, short functions, a head on each file, a reason for each test
//! that is left out, and no clock in rooms that get their time as an argument.

use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;
/// Rooms in which time is an argument.
const TIMELESS: [&str; 5] = [
    "crates/shortline-sched/src/",
    "crates/shortline-sim/src/",
    "crates/shortline-link/src/queue",
    "crates/shortline-link/src/connections",
    "crates/shortline-link/src/regulator",
];
const CLOCKS: [&str; 3] = ["Instant::now", "SystemTime::now", "clock::now_ns"];

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
fn rooms_that_get_their_time_have_no_clock() {
    let sources = sources();
    let timeless = sources
        .iter()
        .filter(|source| TIMELESS.iter().any(|room| source.path.starts_with(room)));
    let asks = |line: &str| CLOCKS.iter().any(|clock| line.contains(clock));
    let clocks: Vec<_> = timeless
        .flat_map(|source| lines_where(source, asks))
        .collect();
    none("clocks where time is an argument", &clocks);
}
