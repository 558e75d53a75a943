//! Sizes of jobs in `shortline sim`: a distribution by name, or those of a trace.

use std::path::PathBuf;
use std::str::FromStr;

use shortline_load::trace::name_of;
use shortline_sim::dist::Distribution;

use super::Args;
use super::source::trace_options;
use crate::trace;
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
        let wire = args.wire();
        let requests =
            trace::requests(path, &trace_options(None)).map_err(CommandError::failure)?;
        let mut failed = None;
        let sizes = requests.map_while(|request| match request {
            Ok(request) => Some(wire.wire_bytes(request.bytes) as f64),
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        let found = Distribution::empirical(sizes);
        match failed {
            Some(error) => Err(CommandError::failure(error)),
            None => found.map_err(|error| {
                CommandError::Failure(format!("{}: {error}", name_of(path).display()))
            }),
        }
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
