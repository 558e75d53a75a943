//! The results that a page reports on.

use std::path::Path;

use crate::study::design::Experiment;
use crate::study::figures::Figures;
use crate::study::plan::Plan;

/// The results of an experiment.
pub struct Results<'a> {
    /// The folder that keeps them.
    pub folder: &'a Path,
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The quantity in which the points differ, with its unit. `None` if it is not a number.
    pub axis: &'a str,
    /// What was asked for.
    pub plan: &'a Plan,
    /// What came out.
    pub figures: &'a Figures,
    /// How many runs of the plan are kept.
    pub whole: usize,
}
