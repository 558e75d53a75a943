//! One line of PostgreSQL's jsonlog.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    /// Which other logs in JSON do not have.
    #[serde(rename = "error_severity")]
    _severity: IgnoredAny,
}

/// Its time and message.
pub(super) fn fields(line: &[u8]) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    Some((line.timestamp, line.message))
}
