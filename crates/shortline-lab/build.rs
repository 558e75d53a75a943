//! Tells the lab which commit it is built from, so that each result can name it: `SHORTLINE_COMMIT`, with `-dirty`
//! behind it if files differed from the commit. `unknown` where there is no repository.

use std::process::Command;

fn main() {
    let commit = git(&[
        "describe",
        "--always",
        "--dirty",
        "--abbrev=7",
        "--exclude=*",
    ]);
    let commit = commit.unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=SHORTLINE_COMMIT={commit}");
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    for changed in ["build.rs", "src", "studies"] {
        println!("cargo:rerun-if-changed={changed}");
    }
}

/// What git says. `None` without git, or outside a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let is_told = output.status.success() && !text.trim().is_empty();
    is_told.then(|| text.trim().to_owned())
}
