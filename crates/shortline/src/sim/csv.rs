//! Results as CSV: `policy,by,from,to,jobs,size_mean,sojourn_mean,slowdown_mean,slowdown_max,
//! stretch_mean`, times in seconds and sizes in bytes. `by` says what a line is about: `all` jobs;
//! those of a `size`, of a `percentile` of size, or of a number of `nines` of it (2 is the 99th
//! percentile); or a `time`, where `jobs` is the mean number in the system. Fields that do not
//! apply are empty.

use std::io::Write;
use std::path::Path;

use shortline_sim::results::{PolicyResult, SizeGroup};

use shortline_command::CommandError;
use shortline_command::output;

/// Writes the results to a file, or to standard output for `-`.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(path: &Path, results: &[PolicyResult]) -> Result<(), CommandError> {
    output::write("--csv", path, |mut out| {
        writeln!(
            out,
            "policy,by,from,to,jobs,size_mean,sojourn_mean,slowdown_mean,slowdown_max,stretch_mean"
        )?;
        for result in results {
            write_policy(&mut out, result)?;
        }
        Ok(())
    })
}

fn write_policy(out: &mut impl Write, result: &PolicyResult) -> std::io::Result<()> {
    // The name of a policy with cutoffs contains commas.
    let policy = result.policy.to_string().replace(',', " ");
    writeln!(
        out,
        "{policy},all,,,{},,{},{},{},{}",
        result.requests,
        result.sojourn_mean,
        result.slowdown_mean,
        result.slowdown_max,
        or_empty(result.stretch.map(|stretch| stretch.mean))
    )?;
    for (by, groups) in [
        ("size", &result.by_size),
        ("percentile", &result.by_percentile),
        ("nines", &result.by_nines),
    ] {
        for group in groups {
            write_group(out, &policy, by, group)?;
        }
    }
    // The intervals start at 0 and are of equal length. A point is in the middle of one.
    let half_s = result.number_over_time.first().map_or(0.0, |first| first.0);
    for &(middle_s, jobs) in &result.number_over_time {
        let (from_s, to_s) = (middle_s - half_s, middle_s + half_s);
        writeln!(out, "{policy},time,{from_s},{to_s},{jobs},,,,,")?;
    }
    Ok(())
}

fn write_group(
    out: &mut impl Write,
    policy: &str,
    by: &str,
    group: &SizeGroup,
) -> std::io::Result<()> {
    writeln!(
        out,
        "{policy},{by},{},{},{},{},{},{},{},{}",
        group.from,
        group.to,
        group.jobs,
        group.size_mean,
        group.sojourn_mean,
        group.slowdown_mean,
        group.slowdown_max,
        or_empty(group.stretch_mean)
    )
}

fn or_empty(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
