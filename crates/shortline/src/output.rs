//! What commands print and write: JSON `{"results":[...]}`, text on standard output, files.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use shortline_lab::drawing::is_page;

use crate::error::CommandError;

/// The results as pretty JSON with a final newline.
///
/// # Errors
/// [`CommandError::Failure`] if one of them cannot be written as JSON.
pub fn results_json<R: Serialize>(results: &[R]) -> Result<String, CommandError> {
    #[derive(Serialize)]
    struct Results<'a, R> {
        results: &'a [R],
    }
    let mut text = serde_json::to_string_pretty(&Results { results })
        .map_err(|error| CommandError::Failure(format!("results as JSON: {error}")))?;
    text.push('\n');
    Ok(text)
}

/// Prints text to standard output.
///
/// # Errors
/// [`CommandError::Failure`] if it is closed.
pub fn print(text: &str) -> Result<(), CommandError> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| CommandError::Failure(format!("standard output: {error}")))
}

/// Makes sure that a file can be written, by emptying it: a run of minutes must not end with
/// results that cannot be kept.
///
/// # Errors
/// [`CommandError::Failure`] that names the flag and the file.
pub fn check_writable(flag: &str, file: &Path) -> Result<(), CommandError> {
    std::fs::File::create(file)
        .map(drop)
        .map_err(|error| CommandError::Failure(format!("{flag} {}: {error}", file.display())))
}

/// Makes sure, before the work is done, that `--plot` names a file that can be drawn.
///
/// # Errors
/// Bad usage if it ends neither in `.svg` nor in `.html`, failure if it cannot be written.
pub fn check_plot_file(path: &Path) -> Result<(), CommandError> {
    if !is_page(path) && path.extension().is_none_or(|ending| ending != "svg") {
        return Err(CommandError::Usage(format!(
            "--plot {}: the file must end in .svg or .html",
            path.display()
        )));
    }
    check_writable("--plot", path)
}
