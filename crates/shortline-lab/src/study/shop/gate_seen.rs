//! What was seen of the gate in a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What was seen of a gate in a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GateSeen {
    /// By type: what was admitted after the warm-up.
    pub waits: BTreeMap<String, Wait>,
    /// The capacity at each look: seconds from the begin, seconds of estimated service.
    pub capacity: Vec<(f64, f64)>,
    /// By type: after how many seconds the estimate had converged; nothing if it never did.
    pub converged_s: BTreeMap<String, Option<f64>>,
    /// By type: the estimate at the end, in seconds.
    pub estimates_s: BTreeMap<String, f64>,
}

/// How long requests waited in the gate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Wait {
    /// How many were admitted.
    pub admitted: u64,
    /// How long they had waited, in the mean, in seconds.
    pub mean_s: f64,
}
