//! What commands print and write: JSON `{"results":[...]}`, text on standard output, files.
//!
//! All output goes through here. A reader of standard output or error that stops early (`| head`)
//! is not an error: the rest is not written, and the exit code is that of the work. A file named
//! `-` is standard output. What else would be printed there then goes to standard error.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use serde::Serialize;
use shortline_plot::{self as drawing, Drawn, Panel, is_page};

use crate::error::CommandError;

/// The results as pretty JSON with a final newline.
///
/// # Errors
/// [`CommandError::Failure`] if one of them cannot be written as JSON.
pub fn results_json<R: Serialize>(
    results: &[R],
    warnings: &[String],
) -> Result<String, CommandError> {
    #[derive(Serialize)]
    struct Results<'a, R> {
        results: &'a [R],
        /// Why the results cannot be trusted.
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        warnings: &'a [String],
    }
    let mut text = serde_json::to_string_pretty(&Results { results, warnings })
        .map_err(|error| CommandError::Failure(format!("results as JSON: {error}")))?;
    text.push('\n');
    Ok(text)
}

/// Prints text to standard output.
///
/// # Errors
/// [`CommandError::Failure`] if it cannot be written although somebody reads it.
pub fn print(text: &str) -> Result<(), CommandError> {
    to_standard_output(|out| out.write_all(text.as_bytes()))
        .map_err(|error| CommandError::Failure(format!("standard output: {error}")))
}

/// Prints text beside these files: to standard error if one of them is standard output.
///
/// # Errors
/// As [`print()`].
pub fn print_beside(files: &[Option<&Path>], text: &str) -> Result<(), CommandError> {
    if files.iter().flatten().any(|file| is_standard_output(file)) {
        to_standard_error(text);
        return Ok(());
    }
    print(text)
}

/// Prints a refusal on standard error.
pub(crate) fn refuse(line: &str) {
    to_standard_error(&format!("shortline: {line}\n"));
}

/// Writes a file, or standard output for `-`.
///
/// # Errors
/// [`CommandError::Failure`] that names the flag and the file.
pub fn write(
    flag: &str,
    file: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CommandError> {
    let written = if is_standard_output(file) {
        to_standard_output(write)
    } else {
        File::create(file).and_then(|file| {
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            out.flush()
        })
    };
    written.map_err(|error| CommandError::Failure(format!("{flag} {}: {error}", file.display())))
}

/// Draws to a file, `size` in pixels: a page if the name ends in `.html`, or SVG to standard output
/// for `-`.
///
/// # Errors
/// [`CommandError::Failure`] if it cannot be drawn or written.
pub fn draw(
    file: &Path,
    title: &str,
    size: (u32, u32),
    draw: impl FnOnce(&Panel<'_>) -> Drawn,
) -> Result<(), CommandError> {
    if !is_standard_output(file) {
        return drawing::write(file, title, size, draw).map_err(CommandError::failure);
    }
    let svg = drawing::svg(size, draw)
        .map_err(|error| CommandError::Failure(format!("--plot -: {error}")))?;
    write("--plot", file, |out| out.write_all(svg.as_bytes()))
}

/// Makes sure that a file can be written, by emptying it. A run of minutes must not end with
/// results that cannot be kept.
///
/// # Errors
/// [`CommandError::Failure`] that names the flag and the file.
pub fn check_writable(flag: &str, file: &Path) -> Result<(), CommandError> {
    if is_standard_output(file) {
        return Ok(());
    }
    File::create(file)
        .map(drop)
        .map_err(|error| CommandError::Failure(format!("{flag} {}: {error}", file.display())))
}

/// Makes sure, before the work is done, that `--plot` names a file that can be drawn.
///
/// # Errors
/// Bad usage if it ends neither in `.svg` nor in `.html`, failure if it cannot be written.
pub fn check_plot_file(path: &Path) -> Result<(), CommandError> {
    let drawable = is_standard_output(path)
        || is_page(path)
        || path.extension().is_some_and(|ending| ending == "svg");
    if !drawable {
        return Err(CommandError::Usage(format!(
            "--plot {}: the file must end in .svg or .html, or be - for standard output",
            path.display()
        )));
    }
    check_writable("--plot", path)
}

/// Makes sure that at most one result goes to standard output: JSON, or one of the flags' files.
///
/// # Errors
/// Bad usage that names the two.
pub fn check_one_on_standard_output(
    json: bool,
    files: &[(&str, Option<&Path>)],
) -> Result<(), CommandError> {
    let json = json.then(|| "--json".to_owned());
    let files = files
        .iter()
        .filter(|(_, file)| file.is_some_and(is_standard_output))
        .map(|(flag, _)| format!("{flag} -"));
    let there: Vec<String> = json.into_iter().chain(files).collect();
    match &there[..] {
        [first, second, ..] => Err(CommandError::Usage(format!(
            "{first} and {second}: both on standard output; want a file for one of them"
        ))),
        _ => Ok(()),
    }
}

fn is_standard_output(file: &Path) -> bool {
    file == Path::new("-")
}

fn to_standard_output(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// If it cannot be written, nobody is left to report it to.
fn to_standard_error(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
