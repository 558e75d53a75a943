//! The doors: nothing before the database, the gate with one of 002's orders (3.2) and a capacity, or a pool of
//! connections. The gate learns its estimates online, or has them from a run before (002, Fig. 6).

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ShopNameError;

/// The suffix of a name, before the capacity, if the estimates are from a run before.
const OFFLINE: &str = "-offline";
/// The prefix of a pool's name, before its size.
const POOL: &str = "pool-";
const PGBOUNCER: &str = "pgbouncer-";

/// Where the application's connections lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    /// To the database itself: 002's "original".
    None,
    /// The gate.
    Gate {
        /// Who goes first.
        order: Order,
        /// How much may run at once.
        capacity: Capacity,
        /// Where estimates come from.
        estimates: Estimates,
    },
    /// The gate with its defaults and a pool of connections to the database, lent for a transaction.
    Pool {
        /// How many.
        size: u32,
    },
    /// PgBouncer with a pool of connections, lent for a transaction.
    PgBouncer {
        /// How many.
        size: u32,
    },
}

/// Who goes first at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// First in, first out.
    Fifo,
    /// Shortest job first, but nobody waits longer than this many times the expected service.
    Aging(u32),
    /// Shortest job first.
    Sjf,
}

/// How much may run at once at the gate. A name such as `fifo` or `sjf-aging-3` means the capacity that
/// was found for the database, `fifo@auto` one that the gate finds, and `fifo@400ms` a fixed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capacity {
    /// Found beforehand for each database, as 002 does (3.1).
    Calibrated,
    /// The gate finds it.
    Auto,
    /// Fixed, in milliseconds of estimated service.
    Fixed(u32),
}

/// Where the gate's estimates come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Estimates {
    /// From the interactions so far (002, 3.1).
    Online,
    /// From a run with one visitor. They do not change.
    Offline,
}

impl Door {
    /// The gate, first in, first out.
    pub const FIFO: Self = Self::calibrated(Order::Fifo);
    /// The gate, shortest job first.
    pub const SJF: Self = Self::calibrated(Order::Sjf);
    /// The gate with its defaults, except first in, first out.
    pub const FIFO_AUTO: Self = Self::FIFO.at(Capacity::Auto);
    /// The gate with its defaults.
    pub const SJF_AUTO: Self = Self::SJF.at(Capacity::Auto);

    /// The gate, first in, first out, with estimates from a single visitor (002, Fig. 6).
    pub const FIFO_OFFLINE: Self = Self::Gate {
        order: Order::Fifo,
        capacity: Capacity::Calibrated,
        estimates: Estimates::Offline,
    };

    /// The gate with 002's bound of waiting.
    pub const fn aging(bound: u32) -> Self {
        Self::calibrated(Order::Aging(bound))
    }

    /// The same with another capacity. Without a gate, and with a pool, it stays the same.
    #[must_use]
    pub const fn at(self, capacity: Capacity) -> Self {
        match self {
            Self::None | Self::Pool { .. } | Self::PgBouncer { .. } => self,
            Self::Gate {
                order, estimates, ..
            } => Self::Gate {
                order,
                capacity,
                estimates,
            },
        }
    }

    const fn calibrated(order: Order) -> Self {
        Self::Gate {
            order,
            capacity: Capacity::Calibrated,
            estimates: Estimates::Online,
        }
    }

    /// The flags of a gate without a pool. `None` if there is no such gate. `calibrated_ms` is the capacity found for
    /// the database, in milliseconds of estimated service. `taken_alone` is the file of estimates from a single
    /// visitor, which this run writes if `takes_them`.
    pub fn gate_flags(
        self,
        calibrated_ms: u32,
        taken_alone: &Path,
        takes_them: bool,
    ) -> Option<Vec<String>> {
        let Self::Gate {
            order,
            capacity,
            estimates,
        } = self
        else {
            return None;
        };
        let is_of_002 = capacity != Capacity::Auto;
        let capacity = match capacity {
            Capacity::Calibrated => format!("{calibrated_ms}ms"),
            Capacity::Auto => "auto".to_owned(),
            Capacity::Fixed(ms) => format!("{ms}ms"),
        };
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
        // Today's defaults differ from 002's, whose estimates are means and whose SJF starves.
        if order == Order::Sjf && is_of_002 {
            flags.extend(["--oldest-share".to_owned(), "0".to_owned()]);
        }
        if is_of_002 {
            flags.extend(["--estimator".to_owned(), "moving-average".to_owned()]);
        }
        let is_offline = estimates == Estimates::Offline;
        if is_offline || takes_them {
            flags.extend(["--estimates".to_owned(), taken_alone.display().to_string()]);
        }
        if is_offline {
            flags.push("--estimates-fixed".to_owned());
        }
        Some(flags)
    }

    /// Whether its estimates are from a run before.
    pub fn is_offline(self) -> bool {
        matches!(
            self,
            Self::Gate {
                estimates: Estimates::Offline,
                ..
            }
        )
    }

    /// The capacity, if it is fixed, in milliseconds of estimated service.
    pub fn fixed_ms(self) -> Option<u32> {
        match self {
            Self::Gate {
                capacity: Capacity::Fixed(ms),
                ..
            } => Some(ms),
            _ => None,
        }
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (order, capacity, estimates) = match self {
            Self::None => return f.write_str("none"),
            Self::Pool { size } => return write!(f, "{POOL}{size}"),
            Self::PgBouncer { size } => return write!(f, "{PGBOUNCER}{size}"),
            Self::Gate {
                order,
                capacity,
                estimates,
            } => (order, capacity, estimates),
        };
        match order {
            Order::Fifo => f.write_str("fifo")?,
            Order::Sjf => f.write_str("sjf")?,
            Order::Aging(bound) => write!(f, "sjf-aging-{bound}")?,
        }
        if *estimates == Estimates::Offline {
            f.write_str(OFFLINE)?;
        }
        match capacity {
            Capacity::Calibrated => Ok(()),
            Capacity::Auto => f.write_str("@auto"),
            Capacity::Fixed(ms) => write!(f, "@{ms}ms"),
        }
    }
}

impl FromStr for Door {
    type Err = ShopNameError;

    fn from_str(name: &str) -> Result<Self, ShopNameError> {
        parse(name).ok_or_else(|| ShopNameError::Door(name.into()))
    }
}

fn parse(name: &str) -> Option<Door> {
    if name == "none" {
        return Some(Door::None);
    }
    let number = |digits: &str| digits.parse().ok().filter(|number| *number > 0);
    if let Some(size) = name.strip_prefix(POOL) {
        return number(size).map(|size| Door::Pool { size });
    }
    if let Some(size) = name.strip_prefix(PGBOUNCER) {
        return number(size).map(|size| Door::PgBouncer { size });
    }
    let (order, capacity) = match name.split_once('@') {
        None => (name, Capacity::Calibrated),
        Some((order, "auto")) => (order, Capacity::Auto),
        Some((order, ms)) => (order, Capacity::Fixed(number(ms.strip_suffix("ms")?)?)),
    };
    let (order, estimates) = match order.strip_suffix(OFFLINE) {
        Some(order) => (order, Estimates::Offline),
        None => (order, Estimates::Online),
    };
    let order = match order {
        "fifo" => Order::Fifo,
        "sjf" => Order::Sjf,
        _ => Order::Aging(number(order.strip_prefix("sjf-aging-")?)?),
    };
    Some(Door::Gate {
        order,
        capacity,
        estimates,
    })
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
            Door::SJF_AUTO,
            Door::aging(3),
            Door::FIFO.at(Capacity::Fixed(40)),
            Door::FIFO_OFFLINE,
            Door::Pool { size: 8 },
            Door::PgBouncer { size: 20 },
        ] {
            assert_eq!(door.to_string().parse::<Door>().unwrap(), door);
        }
        let wrong = [
            "sjf-aging-0",
            "fifo@",
            "fifo@0ms",
            "fifo@40",
            "fifo@auto-offline",
            "none@4ms",
            "pool-0",
            "pgbouncer",
            "nginx",
        ];
        for name in wrong {
            assert!(name.parse::<Door>().is_err(), "{name}");
        }
        let file = Path::new("alone.json");
        let flags = |door: Door| door.gate_flags(80, file, false).unwrap().join(" ");
        let offline = "--capacity 80ms --policy fifo --estimator moving-average \
                       --estimates alone.json --estimates-fixed";
        assert_eq!(flags(Door::FIFO_OFFLINE), offline);
        let taking = Door::FIFO.gate_flags(80, file, true).unwrap();
        assert_eq!(taking[6..], ["--estimates", "alone.json"]);
        assert_eq!(
            flags(Door::aging(5)),
            "--capacity 80ms --policy sjf --aging 5 --estimator moving-average"
        );
        assert_eq!(
            flags(Door::SJF),
            "--capacity 80ms --policy sjf --oldest-share 0 --estimator moving-average"
        );
        assert_eq!(flags(Door::SJF_AUTO), "--capacity auto --policy sjf");
        let fixed = Door::FIFO.at(Capacity::Fixed(40));
        assert_eq!(
            flags(fixed),
            "--capacity 40ms --policy fifo --estimator moving-average"
        );
        assert_eq!(Door::None.gate_flags(80, file, true), None);
    }
}
