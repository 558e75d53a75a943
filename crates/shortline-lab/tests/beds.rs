//! Experiments inside a user-mode kernel, as users run them: W1 in real and in virtual time.
//! They are slow, so only `make test-long` runs them. In virtual time the ratio to the optimum can be
//! tested, because the guest's clock stands still while anything computes.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

/// Runs W1 with SRPT on that bed. `None`, with a line that says why, if there is no kernel for it.
fn w1(bed: &str, seconds: u32, out: &Path) -> Option<f64> {
    let output = Command::new(env!("CARGO_BIN_EXE_shortline-lab"))
        .args(["run", "w1", "--servers", "srpt", "--seeds", "1"])
        .args(["--bed", bed, "--seconds", &seconds.to_string(), "--out"])
        .arg(out)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("shortline lab kernel build") || errors.contains("apt-get install") {
        eprintln!("skipped: {}", errors.trim());
        return None;
    }
    Some(ratio_to_optimum(&output, &errors))
}

/// The column after the mean in the row of `srpt`.
fn ratio_to_optimum(output: &Output, errors: &str) -> f64 {
    // A busy machine makes a run void, which is not a failure.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{errors}");
    let report = String::from_utf8_lossy(&output.stdout);
    let row = report
        .lines()
        .find(|line| line.starts_with("srpt "))
        .unwrap();
    let mut words = row.split_whitespace();
    words
        .nth(3)
        .unwrap()
        .parse()
        .unwrap_or_else(|_| panic!("no ratio in: {row}"))
}

#[test]
#[ignore = "takes a minute"]
fn w1_runs_in_a_user_mode_kernel() {
    let folder = tempfile::tempdir().unwrap();
    // The distance to the optimum is a timing here, because this kernel's clock runs.
    if let Some(ratio) = w1("uml", 10, folder.path()) {
        assert!(ratio.is_finite() && ratio > 0.0, "{ratio}");
        for kept in ["console.log", "report.html", "w1/seed-1/srpt.csv.zst"] {
            assert!(folder.path().join(kept).is_file(), "{kept}");
        }
    }
}

#[test]
#[ignore = "takes minutes"]
fn w1_is_near_the_optimum_in_virtual_time_and_twice_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let ratios: Vec<f64> = ["a", "b"]
        .into_iter()
        .filter_map(|run| w1("virtual", 100, &folder.path().join(run)))
        .collect();
    if let [first, second] = ratios[..] {
        assert!(first <= 1.15, "{first} times the optimum");
        assert!((first / second - 1.0).abs() <= 0.02, "{first} and {second}");
    }
}
