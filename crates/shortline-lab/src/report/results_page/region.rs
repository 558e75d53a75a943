//! The region of a Markdown file that is made from the entries: the text between two comment lines.

use std::path::Path;

use super::error::ResultsError;

/// The line above the region.
pub const BEGIN: &str = "<!-- results:begin -->";
/// The line below it.
pub const END: &str = "<!-- results:end -->";

/// The text of the file at `path` with `new` as its region.
///
/// # Errors
/// If there is no such region, or more than one.
pub fn replace(path: &Path, text: &str, new: &str) -> Result<String, ResultsError> {
    let parts: Option<(&str, &str)> = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        let is_only = !rest.contains(BEGIN) && !after.contains(END);
        is_only.then_some((before, after))
    });
    let (before, after) = parts.ok_or_else(|| ResultsError::Region {
        path: path.into(),
        begin: BEGIN,
        end: END,
    })?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", new.trim()))
}
