//! Values of PgBouncer's configuration, read, and texts of the gate's, written.

use std::fmt::Write as _;

use super::translate::{Entry, TranslateError};

/// A whole number.
///
/// # Errors
/// [`TranslateError::Value`]
pub fn number(place: &str, value: &str) -> Result<u64, TranslateError> {
    value.parse().map_err(|_| TranslateError::Value {
        place: place.to_owned(),
        value: value.to_owned(),
        what: "number",
    })
}

/// A time in seconds, as the gate reads it.
///
/// # Errors
/// [`TranslateError::Value`]
pub fn seconds(place: &str, value: &str) -> Result<String, TranslateError> {
    let seconds: f64 = value.parse().map_err(|_| TranslateError::Value {
        place: place.to_owned(),
        value: value.to_owned(),
        what: "time in seconds",
    })?;
    Ok(format!("{}ms", (seconds * 1000.0).round().max(0.0)))
}

/// A comment about an entry, without its value if that may have a password.
pub fn line_of(entry: &Entry, what: &str) -> String {
    let Entry {
        place,
        section,
        key,
        value,
    } = entry;
    let value = if value.contains("password") {
        "..."
    } else {
        value
    };
    let line = format!("# {place} [{section}] {key} = {value}  # {what}");
    line.replace(|c: char| c.is_control(), " ")
}

/// A string of TOML.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
