//! Generates the man pages, the shell completions, the page of all flags, and the tables of flags in other pages,
//! from the definition of the flags. A test compares them with the files in `packaging` and `docs`.
//! `SHORTLINE_WRITE=1 cargo test -p shortline generated` writes the files anew.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod tables;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory};
use clap_complete::{Shell, generate};

use crate::Cli;

/// The folder of these files, relative to this crate's.
const PACKAGING: &str = "../../packaging";
/// The page of all flags, relative to that folder.
const FLAGS_PAGE: &str = "../docs/flags.md";

/// The pages of which only the tables are generated, relative to that folder.
const CONFIGURATION_PAGE: &str = "../docs/configuration.md";
const GATE_PAGE: &str = "../docs/gate.md";

/// The files that are generated as a whole, by their path below `packaging`.
fn generated() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut command = Cli::command();
    for (shell, name) in [
        (Shell::Bash, "shortline.bash"),
        (Shell::Fish, "shortline.fish"),
        (Shell::Zsh, "_shortline"),
    ] {
        let mut completions = Vec::new();
        generate(shell, &mut command, "shortline", &mut completions);
        files.insert(Path::new("completions").join(name), completions);
    }
    command.build();
    man_pages(&command, "shortline", &mut files);
    files.insert(FLAGS_PAGE.into(), flags_page(&command).into_bytes());
    files
}

/// The pages that people write, with their tables made anew.
fn filled_pages() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut command = Cli::command();
    command.build();
    [
        (CONFIGURATION_PAGE, tables::of_configuration(&command)),
        (GATE_PAGE, tables::of_gate(&command)),
    ]
    .into_iter()
    .map(|(path, tables)| {
        let page = fs::read_to_string(packaging().join(path)).unwrap();
        (path.into(), tables::filled(&page, &tables).into_bytes())
    })
    .collect()
}

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(PACKAGING)
}

/// Every flag of every command, as Markdown.
fn flags_page(command: &Command) -> String {
    let mut page = String::from(
        "# Every flag\n\n\
         <!-- Made from the program: SHORTLINE_WRITE=1 cargo test -p shortline generated -->\n\n\
         The keys of the configuration file for the flags of `serve` and `gate`, and more about each flag, are in\n\
         [configuration.md](configuration.md) and [gate.md](gate.md).\n",
    );
    flags_of(command, "shortline", &mut page);
    page
}

fn flags_of(command: &Command, name: &str, page: &mut String) {
    let shown: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version"))
        .collect();
    if !shown.is_empty() {
        let about = command.get_about().map(ToString::to_string);
        let _ = write!(page, "\n## `{name}`\n\n{}\n", about.unwrap_or_default());
    }
    let mut headings: Vec<&str> = Vec::new();
    for arg in &shown {
        let heading = arg.get_help_heading().unwrap_or_default();
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        let title = if heading.is_empty() { "Flags" } else { heading };
        let _ = write!(page, "\n| {title} | default | meaning |\n|---|---|---|\n");
        let of_heading = |arg: &&&Arg| arg.get_help_heading().unwrap_or_default() == heading;
        for arg in shown.iter().filter(of_heading) {
            let (meaning, default) = meaning_and_default(arg);
            let flag = cell(&flag_of(arg));
            let _ = writeln!(
                page,
                "| `{flag}` | {} | {} |",
                cell(&default),
                cell(&meaning)
            );
        }
    }
    let commands = command.get_subcommands();
    for inner in commands.filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
        flags_of(inner, &format!("{name} {}", inner.get_name()), page);
    }
}

/// The flag as it is typed, with the name of its value.
fn flag_of(arg: &Arg) -> String {
    let takes_value = arg.get_num_args().is_none_or(|count| count.takes_values());
    let value = arg.get_value_names().and_then(|names| names.first());
    match (arg.get_long(), value) {
        (Some(long), Some(value)) if takes_value => format!("--{long} {value}"),
        (Some(long), _) => format!("--{long}"),
        (None, Some(value)) => value.to_string(),
        (None, None) => arg.get_id().to_string(),
    }
}

/// The help of a flag, and its default, which may be part of the help's text.
fn meaning_and_default(arg: &Arg) -> (String, String) {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    match help.split_once("[default: ") {
        Some((meaning, default)) => (
            meaning.trim().to_owned(),
            default.trim_end().trim_end_matches(']').to_owned(),
        ),
        None => (help.trim().to_owned(), values.join(", ")),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The man page of a command, and those of its subcommands, which are named like git's.
fn man_pages(command: &clap::Command, name: &str, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let mut page = Vec::new();
    // The version would change every page with each release, and the date every day.
    let man = clap_mangen::Man::new(command.clone())
        .title(name)
        .date("")
        .source("Shortline")
        .manual("Shortline");
    man.render(&mut page).unwrap();
    files.insert(Path::new("man").join(format!("{name}.1")), page);
    let commands = command.get_subcommands();
    for inner in commands.filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
        man_pages(inner, &format!("{name}-{}", inner.get_name()), files);
    }
}

#[test]
fn pages_and_completions_are_those_of_the_flags() {
    let root = packaging();
    let writes = std::env::var_os("SHORTLINE_WRITE").is_some();
    for (path, bytes) in generated().into_iter().chain(filled_pages()) {
        let path = root.join(path);
        if writes {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let is_current = fs::read(&path).is_ok_and(|kept| kept == bytes);
        let path = path.display();
        assert!(
            is_current,
            "{path} is not what the flags say: SHORTLINE_WRITE=1 cargo test -p shortline generated"
        );
    }
}

#[test]
fn every_file_of_them_is_still_generated() {
    let root = packaging();
    let generated = generated();
    for folder in ["man", "completions"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = Path::new(folder).join(entry.unwrap().file_name());
            assert!(generated.contains_key(&path), "{}", path.display());
        }
    }
}
