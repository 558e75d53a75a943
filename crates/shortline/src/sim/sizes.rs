//! Sizes of jobs in `shortline sim`: a distribution by name, or those of a trace.

use std::path::PathBuf;
use std::str::FromStr;

use shortline_scenario::sizes_of_trace;
use shortline_sim::dist::Distribution;

use super::Args;
use shortline_command::CommandError;

/// Sizes by name, or those of a trace.
#[derive(Clone, Debug)]
pub(super) enum Sizes {
    Named(Distribution),
    Trace(PathBuf),
}

impl Sizes {
    /// The distribution. For a trace, this reads it.
    pub(super) fn distribution(&self, args: &Args) -> Result<Distribution, CommandError> {
        let path = match self {
            Sizes::Named(sizes) => return Ok(sizes.clone()),
            Sizes::Trace(path) => path,
        };
        let (sizes, left_out) =
            sizes_of_trace(path, &args.wire()).map_err(CommandError::failure)?;
        for line in &left_out {
            tracing::warn!("{line}");
        }
        Ok(sizes)
    }
}

impl FromStr for Sizes {
    type Err = shortline_sim::dist::DistError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("trace:") {
            Some(path) => Ok(Sizes::Trace(path.into())),
            None => text.parse().map(Sizes::Named),
        }
    }
}
