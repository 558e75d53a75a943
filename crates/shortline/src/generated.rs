//! Man pages and shell completions, made of the definition of the flags; a test holds them against the files in
//! `packaging`, and `SHORTLINE_WRITE=1 cargo test -p shortline generated` writes these anew.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::Cli;

/// Where they are, from this crate's folder.
const PACKAGING: &str = "../../packaging";

/// Everything that is generated, by its path below `packaging`.
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
    files
}

/// The page of a command and those of its commands, which are named as git's are.
fn man_pages(command: &clap::Command, name: &str, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let mut page = Vec::new();
    // The version would change each page with each release, and the date with each day.
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
fn man_pages_and_completions_are_those_of_the_flags() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(PACKAGING);
    let writes = std::env::var_os("SHORTLINE_WRITE").is_some();
    for (path, bytes) in generated() {
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(PACKAGING);
    let generated = generated();
    for folder in ["man", "completions"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = Path::new(folder).join(entry.unwrap().file_name());
            assert!(generated.contains_key(&path), "{}", path.display());
        }
    }
}
