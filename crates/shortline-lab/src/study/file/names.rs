//! What a study may name: itself, its points, and traces.

use std::path::Path;

/// Where the traces of a study are looked for.
#[derive(Clone, Copy, Debug)]
pub enum Traces<'a> {
    /// By their paths from this folder; they must be there.
    Beside(&'a Path),
    /// Not at all: nothing is to be run.
    AsWritten,
}

/// Whether a study or a point may be called so: its results are in a folder of that name.
pub fn is_name(name: &str) -> bool {
    let good =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    !name.starts_with('.') && !name.is_empty() && name.len() <= 100 && name.bytes().all(good)
}
