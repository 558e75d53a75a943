//! The figures of the gate in a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The figures of the gate in a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GateSeen {
    /// By type: the waits of the requests admitted after the warm-up.
    pub waits: BTreeMap<String, Wait>,
    /// The capacity at each sample: seconds from the beginning, and seconds of estimated service.
    pub capacity: Vec<(f64, f64)>,
    /// By type: the seconds until the estimate had converged. `None` if it never did.
    pub converged_s: BTreeMap<String, Option<f64>>,
    /// By type: the estimate at the end, in seconds.
    pub estimates_s: BTreeMap<String, f64>,
}

/// The waits of a type in the gate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Wait {
    /// The number of requests admitted.
    pub admitted: u64,
    /// Their mean wait, in seconds.
    pub mean_s: f64,
}
