//! Results by size as CSV: `policy,by,from,to,jobs,size_mean,sojourn_mean,slowdown_mean,
//! slowdown_max,stretch_mean`, `by` being `size` (bytes) or `percentile`; times in seconds.

use std::io::{BufWriter, Write};
use std::path::Path;

use shortline_sim::results::{PolicyResult, SizeGroup};

use crate::error::CommandError;

/// Writes the results to a file.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write(path: &Path, results: &[PolicyResult]) -> Result<(), CommandError> {
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::new(std::fs::File::create(path)?);
        writeln!(
            out,
            "policy,by,from,to,jobs,size_mean,sojourn_mean,slowdown_mean,slowdown_max,stretch_mean"
        )?;
        for result in results {
            // A policy with cutoffs has commas in its name.
            let policy = result.policy.to_string().replace(',', " ");
            for group in &result.by_size {
                line(&mut out, &policy, "size", group)?;
            }
            for group in &result.by_percentile {
                line(&mut out, &policy, "percentile", group)?;
            }
        }
        out.flush()
    };
    write().map_err(|error| CommandError::Failure(format!("{}: {error}", path.display())))
}

fn line(out: &mut impl Write, policy: &str, by: &str, group: &SizeGroup) -> std::io::Result<()> {
    let stretch = group
        .stretch_mean
        .map_or(String::new(), |mean| mean.to_string());
    writeln!(
        out,
        "{policy},{by},{},{},{},{},{},{},{},{stretch}",
        group.from,
        group.to,
        group.jobs,
        group.size_mean,
        group.sojourn_mean,
        group.slowdown_mean,
        group.slowdown_max
    )
}
