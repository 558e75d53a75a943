//! Table I of paper 000 (2.3): phases of low load and of overload in turn, the low phase first. The
//! paper alternates for 30 minutes; here the length is an argument.

use thiserror::Error;

/// Load over time: `low_s` seconds at `low_load`, then `high_s` at `high_load`, repeated.
/// Alternating overload has equal halves, intermittent overload short spikes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Its name in Table I, in lower case.
    pub name: &'static str,
    /// How long the low phase lasts, in seconds.
    pub low_s: f64,
    /// How long the overload lasts, in seconds.
    pub high_s: f64,
    /// Load in the low phase, 1 being the whole uplink.
    pub low_load: f64,
    /// Load in the overload.
    pub high_load: f64,
}

/// A name that Table I does not have.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("workload `{name}`: want one of w1 to w10 (Table I of paper 000)")]
pub struct UnknownSchedule {
    name: String,
}

impl Schedule {
    /// Table I of paper 000. W7 to W10 are intermittent, the others alternate.
    pub const TABLE: [Self; 10] = [
        Self::new("w1", 25.0, 25.0, 0.2, 1.2),
        Self::new("w2", 10.0, 10.0, 0.2, 1.2),
        Self::new("w3", 50.0, 50.0, 0.2, 1.6),
        Self::new("w4", 25.0, 25.0, 0.4, 1.4),
        Self::new("w5", 10.0, 10.0, 0.4, 1.4),
        Self::new("w6", 40.0, 40.0, 0.1, 1.7),
        Self::new("w7", 63.0, 6.0, 0.4, 5.0),
        Self::new("w8", 63.0, 10.0, 0.45, 3.0),
        Self::new("w9", 20.0, 3.0, 0.735, 2.0),
        Self::new("w10", 13.3, 2.0, 0.735, 2.0),
    ];

    const fn new(
        name: &'static str,
        low_s: f64,
        high_s: f64,
        low_load: f64,
        high_load: f64,
    ) -> Self {
        Self {
            name,
            low_s,
            high_s,
            low_load,
            high_load,
        }
    }

    /// The workload of this name, `w1` to `w10` in either case.
    ///
    /// # Errors
    /// [`UnknownSchedule`] for any other name.
    pub fn by_name(name: &str) -> Result<Self, UnknownSchedule> {
        let found = Self::TABLE
            .into_iter()
            .find(|schedule| schedule.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| UnknownSchedule { name: name.into() })
    }

    /// The load averaged over a whole period.
    pub fn mean_load(&self) -> f64 {
        (self.low_s * self.low_load + self.high_s * self.high_load) / (self.low_s + self.high_s)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn table_i_has_the_papers_mean_loads() {
        let want = [0.7, 0.7, 0.9, 0.9, 0.9, 0.9, 0.8, 0.8, 0.9, 0.9];
        for (schedule, mean) in Schedule::TABLE.iter().zip(want) {
            // The paper rounds to one place.
            assert!((schedule.mean_load() - mean).abs() < 0.051, "{schedule:?}");
        }
    }

    #[test]
    fn names_are_found_in_either_case() {
        assert_eq!(Schedule::by_name("W10").unwrap().low_s, 13.3);
        assert_eq!(
            Schedule::by_name("w11").unwrap_err().to_string(),
            "workload `w11`: want one of w1 to w10 (Table I of paper 000)"
        );
    }
}
