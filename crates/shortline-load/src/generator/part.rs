//! One of several processes that together make a run's requests.
//!
//! Part `K/N` makes every N-th request of the open loop, or is every N-th user of the closed one;
//! the first part begins with the first. So the parts' requests together are those of one process,
//! each at its time, in its order and from its source. Nothing else is shared: each process counts
//! time from its own start, keeps its own connections and stays within its own limits.

use std::str::FromStr;

use thiserror::Error;

/// More processes than a machine can use.
const PARTS_MAX: u64 = 1000;

/// A share of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 1 to `of`.
    number: u64,
    of: u64,
}

/// A text that names no part.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}`: want K/N such as 1/2, K from 1 to N and N at most {PARTS_MAX}")]
pub struct PartError(String);

impl Part {
    /// The whole run.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Whether request or user number `index`, from 0, belongs to this part.
    pub fn has(self, index: u64) -> bool {
        index % self.of == self.number - 1
    }
}

impl FromStr for Part {
    type Err = PartError;

    fn from_str(text: &str) -> Result<Self, PartError> {
        let wrong = || PartError(text.chars().take(60).collect());
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let part = Self {
            number: number.parse().map_err(|_| wrong())?,
            of: of.parse().map_err(|_| wrong())?,
        };
        if (1..=part.of).contains(&part.number) && part.of <= PARTS_MAX {
            Ok(part)
        } else {
            Err(wrong())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_index_is_in_one_part() {
        let parts: Vec<Part> = ["1/3", "2/3", "3/3"]
            .map(|text| text.parse().unwrap())
            .into();
        for index in 0..100 {
            assert_eq!(parts.iter().filter(|part| part.has(index)).count(), 1);
            assert!(Part::WHOLE.has(index));
        }
        assert!(parts[0].has(0) && parts[2].has(5));
    }

    #[test]
    fn what_is_no_part_is_refused() {
        for wrong in ["", "1", "0/2", "3/2", "1/0", "1/1001", "-1/2", "a/b"] {
            let error = wrong.parse::<Part>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{wrong}`: want K/N")),
                "{error}"
            );
        }
    }
}
