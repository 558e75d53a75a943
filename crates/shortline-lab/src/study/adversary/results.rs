//! The kept results of an `adversary` experiment: its runs, and what was left out.

use serde::{Deserialize, Serialize};

use super::surface::Surface;
use shortline_testbed::attacker::AttackReport;

/// The users' load. 1 is the whole uplink.
pub const LOAD: f64 = 0.6;
/// The number of the users' addresses.
pub const USERS: usize = 20;
/// The file with all runs.
pub const RESULTS: &str = "adversary.json";

/// All results, as kept in `adversary.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The surface that users and attacker met.
    #[serde(default)]
    pub surface: Surface,
    /// How long users arrived, in seconds.
    pub seconds: u64,
    pub runs: Vec<Measured>,
    pub left_out: Vec<LeftOut>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub server: String,
    pub version: String,
    pub attack: String,
    pub seed: u64,
    /// The users' requests.
    pub requests: usize,
    /// The number of these that failed.
    pub failed: usize,
    /// Their response times. A failed request counts with the time until it failed.
    pub mean_s: f64,
    pub median_s: f64,
    /// Why the run is void. `None` if it counts.
    pub void: Option<String>,
    /// The attacker's report. `None` without an attacker.
    pub attacker: Option<AttackReport>,
}

/// Runs that were left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub server: String,
    /// The attack. `None`: all of them.
    pub attack: Option<String>,
    pub why: String,
}

impl Results {
    /// Whether the server was left out under every attack.
    pub fn leaves_out_all_of(&self, server: &str) -> bool {
        let is_it = |left_out: &LeftOut| left_out.server == server && left_out.attack.is_none();
        self.left_out.iter().any(is_it)
    }

    /// Notes what was left out, once.
    pub fn leave_out(&mut self, server: &str, attack: Option<&str>, why: &str) {
        let left_out = LeftOut {
            server: server.into(),
            attack: attack.map(Into::into),
            why: why.into(),
        };
        if !self.left_out.contains(&left_out) {
            self.left_out.push(left_out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said_once() {
        let mut results = Results::default();
        for _ in 0..2 {
            results.leave_out("nginx-fq_codel", None, "no such queue");
        }
        assert_eq!(results.left_out.len(), 1);
        assert!(results.leaves_out_all_of("nginx-fq_codel"));
        assert!(!results.leaves_out_all_of("nginx"));
    }
}
