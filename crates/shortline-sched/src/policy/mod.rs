//! The policies: each gives a job a rank, and the smallest rank is served first.
//!
//! One file per policy holds its rank function and names its source. [`Policy`] is the
//! list of them; equal ranks go in the order of submission, whatever the policy.

mod fair;
mod fifo;
mod las;
mod psjf;
mod sjf;
mod srpt;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::job::Job;

/// Who is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Policy {
    /// Round robin, one quantum each.
    Fair,
    /// First in, first out.
    Fifo,
    /// Shortest job first, not preempting.
    Sjf,
    /// Shortest job first, preempting.
    Psjf,
    /// Shortest remaining processing time first.
    Srpt,
    /// Least attained service first.
    Las,
}

impl Policy {
    /// All policies, in the order in which they are documented.
    pub const ALL: [Policy; 6] = [
        Policy::Fair,
        Policy::Fifo,
        Policy::Sjf,
        Policy::Psjf,
        Policy::Srpt,
        Policy::Las,
    ];

    /// The name on the command line and in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Fair => "fair",
            Policy::Fifo => "fifo",
            Policy::Sjf => "sjf",
            Policy::Psjf => "psjf",
            Policy::Srpt => "srpt",
            Policy::Las => "las",
        }
    }

    /// The rank of a job as it stands; the smallest is served first.
    pub(crate) fn rank(self, job: &Job) -> u64 {
        match self {
            Policy::Fair => fair::rank(job),
            Policy::Fifo => fifo::rank(job),
            Policy::Sjf => sjf::rank(job),
            Policy::Psjf => psjf::rank(job),
            Policy::Srpt => srpt::rank(job),
            Policy::Las => las::rank(job),
        }
    }
}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy `{value}`: must be one of fair, fifo, sjf, psjf, srpt (or scf), las")]
pub struct PolicyError {
    value: String,
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(name: &str) -> Result<Self, PolicyError> {
        // Paper 001 calls SRPT over connections "shortest connection first".
        let name_known = if name == "scf" { "srpt" } else { name };
        Policy::ALL
            .into_iter()
            .find(|policy| policy.name() == name_known)
            .ok_or_else(|| PolicyError {
                value: crate::units::excerpt(name),
            })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl TryFrom<String> for Policy {
    type Error = PolicyError;

    fn try_from(name: String) -> Result<Self, PolicyError> {
        name.parse()
    }
}

impl From<Policy> for &'static str {
    fn from(policy: Policy) -> Self {
        policy.name()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
            let json = serde_json::to_string(&policy).unwrap();
            assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), policy);
        }
        assert_eq!("scf".parse(), Ok(Policy::Srpt));
    }

    #[test]
    fn an_unknown_name_is_told_with_those_that_exist() {
        let error = "sprt".parse::<Policy>().unwrap_err().to_string();
        assert!(error.contains("`sprt`"));
        for policy in Policy::ALL {
            assert!(error.contains(policy.name()), "{error}");
        }
    }
}
