//! What is before the database: nothing, or the gate with one of 002's orders (3.2).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::LabError;

/// What the application's connections lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The database itself; 002's "original".
    None,
    /// The gate, first in, first out.
    Fifo,
    /// The gate, shortest job first.
    Sjf,
    /// The same, where nobody waits longer than so many times the expected service.
    SjfAging(u32),
}

impl Door {
    /// The gate's flags, if there is one.
    pub fn gate_flags(self) -> Option<Vec<String>> {
        let flags = |policy: &str, aging: Option<u32>| {
            let mut flags = vec!["--policy".to_owned(), policy.to_owned()];
            if let Some(aging) = aging {
                flags.extend(["--aging".to_owned(), aging.to_string()]);
            }
            Some(flags)
        };
        match self {
            Self::None => None,
            Self::Fifo => flags("fifo", None),
            Self::Sjf => flags("sjf", None),
            Self::SjfAging(bound) => flags("sjf", Some(bound)),
        }
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Fifo => f.write_str("fifo"),
            Self::Sjf => f.write_str("sjf"),
            Self::SjfAging(bound) => write!(f, "sjf-aging-{bound}"),
        }
    }
}

impl FromStr for Door {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        let aging = |name: &str| name.strip_prefix("sjf-aging-")?.parse().ok();
        match name {
            "none" => Ok(Self::None),
            "fifo" => Ok(Self::Fifo),
            "sjf" => Ok(Self::Sjf),
            _ => aging(name)
                .filter(|bound| *bound > 0)
                .map(Self::SjfAging)
                .ok_or_else(|| LabError::UnknownDoor(name.into())),
        }
    }
}

impl Serialize for Door {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Door {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn doors_have_names_and_flags() {
        for door in [Door::None, Door::Fifo, Door::Sjf, Door::SjfAging(3)] {
            assert_eq!(door.to_string().parse::<Door>().unwrap(), door);
        }
        assert!("sjf-aging-0".parse::<Door>().is_err());
        let flags = Door::SjfAging(5).gate_flags().unwrap();
        assert_eq!(flags, ["--policy", "sjf", "--aging", "5"]);
        assert_eq!(Door::None.gate_flags(), None);
    }
}
