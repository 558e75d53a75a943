//! What came of an experiment in a pass, as data.

use super::conditions::Conditions;
use super::design::Experiment;
use super::figures::Figures;
use super::kept_claims::KeptClaims;
use super::shop;

/// An experiment of a pass.
pub struct Ran {
    /// Its folder's name in the pass.
    pub folder: String,
    /// Which experiment.
    pub experiment: Experiment,
    /// What came out; nothing without an uplink.
    pub figures: Option<Figures>,
    /// What came out of runs with the bookstore.
    pub shop: Option<Vec<shop::Outcome>>,
    /// What the pass keeps of an experiment whose runs are elsewhere.
    pub kept: Option<KeptClaims>,
    /// How it was run.
    pub conditions: Conditions,
}
