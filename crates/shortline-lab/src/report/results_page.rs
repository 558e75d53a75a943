//! The results for people: one page, the README's figures and a drawing for each headline, all made
//! from `docs/results/results.toml`, so that a number is typed in one place.
//!
//! [`write()`] makes them. [`check`] says which of them are stale.

mod drawing;
mod entries;
mod error;
mod outcome;
mod page;
mod region;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use self::entries::Entries;
pub use self::error::ResultsError;

/// The folder of the results, below the project's root.
const FOLDER: &str = "docs/results";
/// The entries, in that folder.
const ENTRIES_FILE: &str = "results.toml";
/// The page, in that folder.
const PAGE_FILE: &str = "README.md";
/// The file with a region for the headline figures, in the project's root.
const README_FILE: &str = "README.md";
/// The drawing of a headline, in its folder.
const DRAWING_FILE: &str = "targets.svg";

/// A file and the text it should have.
struct Made {
    path: PathBuf,
    text: String,
}

/// Writes the page, the README's region and the drawings. Returns the files that changed.
///
/// # Errors
/// If an entry is wrong, or a file cannot be read or written.
pub fn write(root: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let mut changed = Vec::new();
    for Made { path, text } in stale(root)? {
        fs::write(&path, text).map_err(ResultsError::file(&path))?;
        changed.push(path);
    }
    Ok(changed)
}

/// Checks that the page, the README's region and the drawings are what the entries make.
///
/// # Errors
/// Names the files that are stale; otherwise as [`write()`].
pub fn check(root: &Path) -> Result<(), ResultsError> {
    let stale: Vec<PathBuf> = stale(root)?.into_iter().map(|made| made.path).collect();
    if stale.is_empty() {
        return Ok(());
    }
    Err(ResultsError::Stale(stale))
}

/// The files whose text is stale.
fn stale(root: &Path) -> Result<Vec<Made>, ResultsError> {
    let folder = root.join(FOLDER);
    let entries = Entries::read(&folder.join(ENTRIES_FILE))?;
    let readme = root.join(README_FILE);
    let readme_now = fs::read_to_string(&readme).map_err(ResultsError::file(&readme))?;
    let mut readme_text =
        region::replace(&readme, &readme_now, "results", &entries.readme_text()?)?;
    for (name, part) in entries.readme_parts()? {
        let region = format!("results {name}");
        readme_text = region::replace(&readme, &readme_text, &region, &part)?;
    }
    let mut all = vec![
        Made {
            text: readme_text,
            path: readme,
        },
        Made {
            text: page::render(&entries),
            path: folder.join(PAGE_FILE),
        },
    ];
    for headline in &entries.headlines {
        let results = entries.of(headline);
        if let Some(text) = drawing::render(&headline.title, &results) {
            let path = folder.join(&headline.id).join(DRAWING_FILE);
            all.push(Made { path, text });
        }
    }
    all.retain(|made| fs::read_to_string(&made.path).ok().as_ref() != Some(&made.text));
    Ok(all)
}
