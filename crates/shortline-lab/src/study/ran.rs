//! The results of an experiment in a pass, as data.

use super::conditions::Conditions;
use super::design::Experiment;
use super::figures::Figures;
use super::kept_claims::KeptClaims;
use super::shop;

/// An experiment of a pass.
pub struct Ran {
    /// Its folder's name in the pass.
    pub folder: String,
    /// The experiment.
    pub experiment: Experiment,
    /// The figures of runs over an uplink. `None` for other experiments.
    pub figures: Option<Figures>,
    /// The runs with the bookstore, if it is such an experiment.
    pub shop: Option<Vec<shop::Outcome>>,
    /// The kept claims of an experiment whose runs are elsewhere.
    pub kept: Option<KeptClaims>,
    /// The conditions of its runs.
    pub conditions: Conditions,
}
