//! The names in a study: its own, its points', and its traces'.

use std::path::Path;

/// Where the traces of a study are looked for.
#[derive(Clone, Copy, Debug)]
pub enum Traces<'a> {
    /// At their paths from this folder. They must exist.
    Beside(&'a Path),
    /// Nowhere, because nothing is to be run.
    AsWritten,
}

/// Whether a study or a point may have this name. Its results are in a folder of that name.
pub fn is_name(name: &str) -> bool {
    let good =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    !name.starts_with('.') && !name.is_empty() && name.len() <= 100 && name.bytes().all(good)
}
