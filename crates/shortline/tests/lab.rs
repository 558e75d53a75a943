//! `shortline lab` is a program of its own, `shortline-lab`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::sync::Mutex;

use tempfile::TempDir;

/// A program that is still open for writing cannot be started, and a process that another test starts just then has
/// it open for a moment.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// `shortline lab run w1 --seeds 2` where `shortline` stands in a folder of its own, and beside it what is in `lab`.
fn run(lab: Option<(&str, u32)>) -> Output {
    let _turn = ONE_AT_A_TIME.lock().unwrap();
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("shortline");
    fs::copy(env!("CARGO_BIN_EXE_shortline"), &program).unwrap();
    if let Some((text, mode)) = lab {
        let lab = folder.path().join("shortline-lab");
        fs::write(&lab, text).unwrap();
        fs::set_permissions(&lab, fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = Command::new(program);
    command.args(["lab", "run", "w1", "--seeds", "2"]);
    command.env("PATH", "").output().unwrap()
}

#[test]
fn without_it_a_line_says_where_to_get_it() {
    let output = run(None);
    assert_eq!(output.status.code(), Some(1));
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(line.starts_with("shortline: lab: shortline-lab is neither beside"));
    assert!(line.contains("cargo build --release"), "{line}");
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn it_gets_the_words_and_its_exit_code_is_told() {
    let output = run(Some(("#!/bin/sh\necho \"$@\"\nexit 3\n", 0o755)));
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"run w1 --seeds 2\n");
}

#[test]
fn one_that_cannot_be_started_is_told_by_name() {
    let output = run(Some(("no program", 0o644)));
    assert_eq!(output.status.code(), Some(1));
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(line.contains("shortline-lab: "), "{line}");
}
