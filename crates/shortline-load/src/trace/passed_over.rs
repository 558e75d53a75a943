//! What of a trace did not become a request: lines that could not be read, and lines of a log that
//! asked for something other than a whole file.
//!
//! One bad line in a million costs that line and not the run. The report says how many there were,
//! and what was wrong with the first.

use std::collections::BTreeMap;
use std::fmt;

use super::TraceProblem;

/// Why a readable line of a log is not a request for a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// There was no request, or it was not HTTP.
    NoRequest,
    /// The time is before 1970 or after 2106.
    NoTime,
    /// A HEAD.
    Head,
    /// A POST.
    Post,
    /// Another method than GET.
    OtherMethod,
    /// A GET answered 206, a piece of the file.
    Piece,
    /// A GET answered 304, not modified.
    NotModified,
    /// A GET answered with another 3xx.
    Redirect,
    /// A GET answered 4xx.
    ClientError,
    /// A GET answered 5xx.
    ServerError,
    /// A GET answered with any other status but 200.
    OtherStatus,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRequest => "no request",
            Self::NoTime => "times before 1970",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::OtherMethod => "other methods",
            Self::Piece => "pieces (206)",
            Self::NotModified => "not modified (304)",
            Self::Redirect => "redirects (3xx)",
            Self::ClientError => "errors 4xx",
            Self::ServerError => "errors 5xx",
            Self::OtherStatus => "other statuses",
        })
    }
}

/// What has been passed over so far.
#[derive(Debug, Default)]
pub struct PassedOver {
    bad: usize,
    first_bad: Option<TraceProblem>,
    left_out: BTreeMap<LeftOut, usize>,
}

impl PassedOver {
    /// How many lines or records could not be read.
    pub fn bad(&self) -> usize {
        self.bad
    }

    /// How many lines of each kind in a log are not requests for a whole file.
    pub fn left_out(&self) -> &BTreeMap<LeftOut, usize> {
        &self.left_out
    }

    /// The report: a line on what could not be read, a line on what was left out.
    pub fn told(&self) -> Vec<String> {
        self.told_bad()
            .into_iter()
            .chain(self.told_kinds())
            .collect()
    }

    pub(super) fn add_bad(&mut self, problem: TraceProblem) {
        self.bad += 1;
        self.first_bad.get_or_insert(problem);
    }

    pub(super) fn add_left_out(&mut self, kind: LeftOut) {
        *self.left_out.entry(kind).or_default() += 1;
    }

    /// What was wrong with the first line that could not be read.
    pub(super) fn take_first_bad(&mut self) -> Option<TraceProblem> {
        self.first_bad.take()
    }

    fn told_bad(&self) -> Option<String> {
        let first = self.first_bad.as_ref()?;
        let what = match (first, self.bad) {
            (TraceProblem::Truncated { .. }, _) => "1 record".to_owned(),
            (_, 1) => "1 line".to_owned(),
            (_, count) => format!("{count} lines"),
        };
        Some(format!("{what} could not be read; the first: {first}"))
    }

    fn told_kinds(&self) -> Option<String> {
        let all: usize = self.left_out.values().sum();
        let kinds = self.left_out.iter();
        let kinds: Vec<String> = kinds
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let lines = if all == 1 { "line" } else { "lines" };
        (all > 0).then(|| {
            format!(
                "{all} {lines} left out that are no GET answered 200: {}",
                kinds.join(", ")
            )
        })
    }
}
