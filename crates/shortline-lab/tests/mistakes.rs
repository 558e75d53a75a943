//! What somebody types who does not know `shortline lab` yet, and what it answers: one line that says what to write.
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// What is typed, and what the answer must contain.
const MISTAKES: [(&[&str], &[&str]); 4] = [
    (&["demo"], &["'demo'", "shortline lab run demo"]),
    (&["run", "nothing"], &["`nothing`", "shortline lab list"]),
    (&["run"], &["<EXPERIMENT>", "shortline lab list"]),
    (
        &["run", "auto-hop", "--servers", "auto,nginx-fq"],
        &["`auto-hop` cannot run `nginx-fq`", "one hop away"],
    ),
];

#[test]
fn a_mistake_is_answered_with_what_to_write() {
    for (typed, says) in MISTAKES {
        let output = Command::new(env!("CARGO_BIN_EXE_shortline-lab"))
            .args(typed)
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.starts_with("shortline: "), "{stderr}");
        for part in says {
            assert!(stderr.contains(part), "{typed:?}: no `{part}` in {stderr}");
        }
    }
}
