//! The regions of a Markdown file that are made from the entries: the text between two comment lines each.

use std::path::Path;

use super::error::ResultsError;

/// The text of the file at `path` with `new` as its region of that name.
///
/// # Errors
/// If there is no such region, or more than one.
pub fn replace(path: &Path, text: &str, name: &str, new: &str) -> Result<String, ResultsError> {
    let [begin, end] = ["begin", "end"].map(|which| format!("<!-- {name}:{which} -->"));
    let parts: Option<(&str, &str)> = text.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        let is_only = !rest.contains(&begin) && !after.contains(&end);
        is_only.then_some((before, after))
    });
    let (before, after) = parts.ok_or_else(|| ResultsError::Region {
        path: path.into(),
        begin: begin.clone(),
        end: end.clone(),
    })?;
    Ok(format!("{before}{begin}\n{}\n{end}{after}", new.trim()))
}
