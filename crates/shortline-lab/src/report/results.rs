//! What a page reports on.

use std::path::Path;

use crate::study::design::Experiment;
use crate::study::figures::Figures;
use crate::study::plan::Plan;

/// What is reported on.
pub struct Results<'a> {
    /// Where it is kept.
    pub folder: &'a Path,
    /// Of which experiment.
    pub experiment: &'a Experiment,
    /// What the points differ in, with the unit; nothing if that is no number.
    pub axis: &'a str,
    /// What was asked for.
    pub plan: &'a Plan,
    /// What came out.
    pub figures: &'a Figures,
    /// How many runs of the plan are kept.
    pub whole: usize,
}
