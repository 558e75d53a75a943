//! Policies as text: a name, with a parameter after a colon if need be, and lists of them. Case does not matter.
//!
//! Each policy prints as text that reads back as itself.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Cutoffs, CutoffsError, Policy};
use crate::units::{Size, UnitError, excerpt};

/// A text that is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy `{value}`: {problem}")]
pub struct PolicyError {
    value: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("{}must be one of {}", hint(*.0), names())]
    Unknown(Option<&'static str>),
    #[error("{name} takes no parameter; leave out `:` and what follows")]
    NoParameter { name: &'static str },
    #[error("{0}; write it like bands:1KB,2KB,5KB,50KB or, for 6 learnt bands, bands:6")]
    Cutoffs(#[from] CutoffsError),
    #[error(transparent)]
    Size(#[from] UnitError),
    #[error("the size must be above 0, such as quickfix:2KB")]
    ZeroSize,
}

fn hint(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("did you mean {near}? It "))
}

fn names() -> String {
    let names = Policy::ALL.map(|policy| match policy {
        Policy::Fair => "fair (or ps)",
        Policy::Fifo => "fifo (or fcfs)",
        // Paper 001 calls SRPT over connections "shortest connection first".
        Policy::Srpt => "srpt (or scf)",
        other => other.name(),
    });
    names.join(", ")
}

impl Policy {
    /// Reads several policies separated by commas. A comma between cutoffs differs by what follows
    /// it: no policy's name begins with a digit.
    ///
    /// # Errors
    /// [`PolicyError`] for the first text that names no policy.
    pub fn list(text: &str) -> Result<Vec<Self>, PolicyError> {
        let mut policies = Vec::new();
        let mut start = 0;
        for (comma, _) in text.match_indices(',') {
            if !text[comma + 1..].starts_with(|next: char| next.is_ascii_digit()) {
                policies.push(text[start..comma].parse()?);
                start = comma + 1;
            }
        }
        policies.push(text[start..].parse()?);
        Ok(policies)
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        parse(text).map_err(|problem| PolicyError {
            value: excerpt(text),
            problem,
        })
    }
}

fn parse(text: &str) -> Result<Policy, Problem> {
    let (name, parameter) = match text.split_once(':') {
        Some((name, parameter)) => (name, Some(parameter)),
        None => (text, None),
    };
    let name = name.trim().to_ascii_lowercase();
    let policy = by_name(&name).ok_or_else(|| Problem::Unknown(nearest(&name)))?;
    match (policy, parameter) {
        (policy, None) => Ok(policy),
        (Policy::Bands(_), Some(cutoffs)) => Ok(Policy::Bands(cutoffs.parse()?)),
        (Policy::QuickFix { .. }, Some(size)) => match size.parse::<Size>()? {
            size if size.bytes() == 0 => Err(Problem::ZeroSize),
            size => Ok(Policy::QuickFix {
                small_max: Some(size),
            }),
        },
        (policy, Some(_)) => Err(Problem::NoParameter {
            name: policy.name(),
        }),
    }
}

fn by_name(name: &str) -> Option<Policy> {
    let name = match name {
        "ps" => "fair",
        "fcfs" => "fifo",
        "scf" => "srpt",
        name => name,
    };
    Policy::ALL.into_iter().find(|policy| policy.name() == name)
}

/// The policy whose name differs by a letter or two, or is begun or gone beyond.
fn nearest(name: &str) -> Option<&'static str> {
    let is_near = |known: &&'static str| {
        let is_begun = name.len() >= 3 && (known.starts_with(name) || name.starts_with(known));
        is_begun || (name.len() >= 3 && strsim::osa_distance(name, known) <= 1)
    };
    let mut names = Policy::ALL.into_iter().map(Policy::name);
    names.find(is_near)
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Bands(cutoffs) if *cutoffs != Cutoffs::USUAL => {
                f.pad(&format!("bands:{cutoffs}"))
            }
            Policy::QuickFix {
                small_max: Some(size),
            } => f.pad(&format!("quickfix:{size}")),
            _ => f.pad(self.name()),
        }
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<Policy>().unwrap_err().to_string()
    }

    #[test]
    fn every_name_reads_back() {
        let others = [
            "bands:6",
            "bands:1kB,3kB",
            "bands:512B",
            "quickfix:2kB",
            "quickfix:1B",
        ];
        let others = others.map(|text| text.parse().unwrap());
        for policy in Policy::ALL.into_iter().chain(others) {
            assert_eq!(policy.to_string().parse(), Ok(policy));
            let json = serde_json::to_string(&policy).unwrap();
            assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), policy);
        }
        assert_eq!("scf".parse(), Ok(Policy::Srpt));
        assert_eq!("ps".parse(), Ok(Policy::Fair));
        assert_eq!("fcfs".parse(), Ok(Policy::Fifo));
        assert_eq!("SRPT".parse(), Ok(Policy::Srpt));
        assert_eq!(" Shares".parse(), Ok(Policy::Shares));
    }

    #[test]
    fn the_usual_cutoffs_need_no_words() {
        let bands: Policy = "bands:1KB,2KB,5KB,50KB".parse().unwrap();
        assert_eq!(bands.to_string(), "bands");
    }

    #[test]
    fn an_unknown_name_is_told_with_those_that_exist() {
        let error = refused("sprt");
        assert!(error.contains("`sprt`: did you mean srpt?"), "{error}");
        for policy in Policy::ALL {
            assert!(error.contains(policy.name()), "{error}");
        }
    }

    #[test]
    fn a_parameter_that_does_not_fit_is_told() {
        assert!(refused("srpt:3").contains("srpt takes no parameter"));
        assert!(refused("bands:").contains("write it like bands:"));
        assert!(refused("bands:2KB,1KB").contains("1kB follows 2kB"));
        assert!(refused("bands:40").contains("40 bands: must be from 2 to 16"));
        assert!(refused("quickfix:soon").contains("size `soon`"));
        assert!(refused("quickfix:0").contains("above 0"));
    }

    #[test]
    fn lists_tell_commas_of_cutoffs_apart() {
        let policies = Policy::list("srpt,bands:1KB,2KB,fair,bands:3,ps").unwrap();
        let expected = ["srpt", "bands:1KB,2KB", "fair", "bands:3", "fair"];
        assert_eq!(policies, expected.map(|text| text.parse().unwrap()));
        for text in ["", "srpt,", ",srpt", "srpt,,fair", "srpt,1KB"] {
            assert!(Policy::list(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in "(bands:|quickfix:|srpt)?\\PC{0,60}") {
            if let Err(error) = Policy::list(&text) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
