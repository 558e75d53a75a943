//! The JSON that `sim` and `model` print: `{"results":[...]}`.

use serde::Serialize;

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
