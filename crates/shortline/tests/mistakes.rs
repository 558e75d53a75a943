//! What somebody types or writes who comes from nginx, Caddy, HAProxy, PgBouncer or a load generator, and what the
//! program answers: one line on standard error that names the value and says what to write, and the documented exit
//! code. The mistakes are data, in tests/mistakes.
//!
//! `typed` is the command line, `file` what is in a.toml, `line` where the answer says the mistake is, `code` the exit
//! code (2), and `says` what the answer must contain.

#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

/// How long a refusal may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    mistake: Vec<Mistake>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistake {
    typed: String,
    file: Option<String>,
    line: Option<usize>,
    code: Option<i32>,
    says: Vec<String>,
}

struct Answer {
    code: Option<i32>,
    stderr: String,
}

/// Files that the mistakes name.
fn fill(folder: &Path) {
    let files = [
        ("site/index.html", "<p>index\n"),
        ("hello.txt", "hello\n"),
        ("empty.log", ""),
        (
            "error.log",
            "2026/11/26 10:00:00 [error] 12#12: *1 open() failed\n",
        ),
        (
            "nginx.conf",
            "worker_processes auto;\nhttp {\n  server {\n    listen 80;\n  }\n}\n",
        ),
        (
            "Caddyfile",
            "example.org {\n\troot * /srv/www\n\tfile_server\n}\n",
        ),
        (
            "haproxy.cfg",
            "global\n  daemon\nfrontend www\n  bind *:80\n",
        ),
        ("caddy.json", "{\"apps\": {\"http\": {\"servers\": {}}}}\n"),
        ("shortline.yaml", "site:\n  root: /srv/www\n"),
        (
            "pgbouncer.ini",
            "[databases]\napp = host=127.0.0.1\n[pgbouncer]\nlisten_port = 6432\n",
        ),
    ];
    std::fs::create_dir(folder.join("site")).unwrap();
    for (name, content) in files {
        std::fs::write(folder.join(name), content).unwrap();
    }
}

/// The words of a command line; single quotes hold one together.
fn words(typed: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in typed.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

fn answer(mistake: &Mistake, folder: &Path) -> Answer {
    let config = folder.join("a.toml");
    match &mistake.file {
        Some(text) => std::fs::write(&config, text).unwrap(),
        None => drop(std::fs::remove_file(&config)),
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_shortline"))
        .args(words(&mistake.typed))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if Instant::now() > until => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    Answer {
        code: status.and_then(|status| status.code()),
        stderr,
    }
}

/// What is not as it should be in an answer.
fn faults(mistake: &Mistake, answer: &Answer) -> Vec<String> {
    let mut faults = Vec::new();
    let expected = mistake.code.unwrap_or(2);
    if answer.code != Some(expected) {
        faults.push(format!("exit code {:?}, not {expected}", answer.code));
    }
    if answer.stderr.lines().count() != 1 {
        faults.push("more or less than one line".to_owned());
    }
    if !answer.stderr.starts_with("shortline: ") {
        faults.push("does not begin with `shortline: `".to_owned());
    }
    let place = mistake.line.map(|line| format!("a.toml:{line}: "));
    for part in mistake.says.iter().chain(&place) {
        if !answer.stderr.contains(part.as_str()) {
            faults.push(format!("does not say {part}"));
        }
    }
    // What only somebody who wrote the program understands.
    for inside in [
        "panicked",
        "Some(",
        "None",
        "Error {",
        "Err(",
        "ErrorKind",
        "expected struct",
        "invalid type",
    ] {
        if answer.stderr.contains(inside) {
            faults.push(format!("says {inside}"));
        }
    }
    faults
}

fn check(text: &str) {
    let table: Table = toml::from_str(text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let mut wrong = Vec::new();
    for mistake in &table.mistake {
        let answer = answer(mistake, folder.path());
        let faults = faults(mistake, &answer);
        if !faults.is_empty() {
            let file = mistake.file.as_deref().unwrap_or_default();
            wrong.push(format!(
                "{} {file:?}\n  {}\n  {}",
                mistake.typed,
                answer.stderr.trim(),
                faults.join("\n  ")
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        table.mistake.len(),
        wrong.join("\n")
    );
}

#[test]
fn on_the_command_line_of_serve() {
    check(include_str!("mistakes/serve.toml"));
}

#[test]
fn in_the_configuration_file() {
    check(include_str!("mistakes/file.toml"));
}

#[test]
fn with_the_gate() {
    check(include_str!("mistakes/gate.toml"));
}

#[test]
fn with_the_other_commands() {
    check(include_str!("mistakes/tools.toml"));
}
