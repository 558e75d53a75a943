//! The report on runs with the bookstore: a page with drawings and data beside it, and the same as text.

mod drawings;
mod page;
mod tables;

use std::path::Path;

use super::ReportError;
use crate::study::design::Experiment;
use crate::study::shop::{Outcome, outcome};

/// Writes the page on the results in `folder`, with its data beside it, and returns the same as text.
///
/// # Errors
/// If the results are missing or wrong, or the page cannot be written.
pub fn report(
    folder: &Path,
    experiment: &Experiment,
) -> Result<(String, Vec<Outcome>), ReportError> {
    let all = outcome::read(folder)?;
    let path = page::write(folder, experiment, &all)?;
    let text = tables::text(&all);
    Ok((format!("{text}\npage: {}\n", path.display()), all))
}
