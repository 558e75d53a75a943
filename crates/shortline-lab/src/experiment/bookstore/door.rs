//! What is before the database: nothing, or the gate with one of 002's orders (3.2) and a capacity.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::LabError;

/// What the application's connections lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    /// The database itself; 002's "original".
    None,
    /// The gate. A name like `fifo` or `sjf-aging-3` means a capacity of `auto`, `fifo@400ms` a fixed
    /// one.
    Gate {
        /// Who goes first.
        order: Order,
        /// How much may run at once, in milliseconds of estimated service; nothing is `auto`.
        capacity_ms: Option<u32>,
    },
}

/// Who goes first at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// First in, first out.
    Fifo,
    /// Shortest job first where nobody waits longer than so many times the expected service.
    Aging(u32),
    /// Shortest job first.
    Sjf,
}

impl Door {
    /// The gate, first in, first out.
    pub const FIFO: Self = Self::auto(Order::Fifo);
    /// The gate, shortest job first.
    pub const SJF: Self = Self::auto(Order::Sjf);

    /// The gate with 002's bound of waiting.
    pub const fn aging(bound: u32) -> Self {
        Self::auto(Order::Aging(bound))
    }

    /// The gate, first in, first out, with a fixed capacity.
    pub const fn fixed(capacity_ms: u32) -> Self {
        Self::Gate {
            order: Order::Fifo,
            capacity_ms: Some(capacity_ms),
        }
    }

    const fn auto(order: Order) -> Self {
        Self::Gate {
            order,
            capacity_ms: None,
        }
    }

    /// The gate's flags, if there is one.
    pub fn gate_flags(self) -> Option<Vec<String>> {
        let Self::Gate { order, capacity_ms } = self else {
            return None;
        };
        let capacity = capacity_ms.map_or("auto".to_owned(), |ms| format!("{ms}ms"));
        let policy = if order == Order::Fifo { "fifo" } else { "sjf" };
        let mut flags = vec![
            "--capacity".to_owned(),
            capacity,
            "--policy".to_owned(),
            policy.to_owned(),
        ];
        if let Order::Aging(bound) = order {
            flags.extend(["--aging".to_owned(), bound.to_string()]);
        }
        Some(flags)
    }

    /// The fixed capacity, in milliseconds of estimated service.
    pub fn capacity_ms(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Gate { capacity_ms, .. } => capacity_ms,
        }
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Gate { order, capacity_ms } = self else {
            return f.write_str("none");
        };
        match order {
            Order::Fifo => f.write_str("fifo")?,
            Order::Sjf => f.write_str("sjf")?,
            Order::Aging(bound) => write!(f, "sjf-aging-{bound}")?,
        }
        match capacity_ms {
            Some(ms) => write!(f, "@{ms}ms"),
            None => Ok(()),
        }
    }
}

impl FromStr for Door {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        parse(name).ok_or_else(|| LabError::UnknownDoor(name.into()))
    }
}

fn parse(name: &str) -> Option<Door> {
    if name == "none" {
        return Some(Door::None);
    }
    let (order, capacity) = match name.split_once('@') {
        Some((order, capacity)) => (order, Some(capacity)),
        None => (name, None),
    };
    let number = |digits: &str| digits.parse().ok().filter(|number| *number > 0);
    let order = match order {
        "fifo" => Order::Fifo,
        "sjf" => Order::Sjf,
        _ => Order::Aging(number(order.strip_prefix("sjf-aging-")?)?),
    };
    let capacity_ms = match capacity {
        Some(capacity) => Some(number(capacity.strip_suffix("ms")?)?),
        None => None,
    };
    Some(Door::Gate { order, capacity_ms })
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
        for door in [
            Door::None,
            Door::FIFO,
            Door::SJF,
            Door::aging(3),
            Door::fixed(40),
        ] {
            assert_eq!(door.to_string().parse::<Door>().unwrap(), door);
        }
        for wrong in ["sjf-aging-0", "fifo@", "fifo@0ms", "fifo@40", "none@4ms", "nginx"] {
            assert!(wrong.parse::<Door>().is_err(), "{wrong}");
        }
        let flags = Door::aging(5).gate_flags().unwrap().join(" ");
        assert_eq!(flags, "--capacity auto --policy sjf --aging 5");
        let flags = Door::fixed(40).gate_flags().unwrap().join(" ");
        assert_eq!(flags, "--capacity 40ms --policy fifo");
        assert_eq!(Door::None.gate_flags(), None);
    }
}
