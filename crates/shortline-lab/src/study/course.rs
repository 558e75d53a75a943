//! The course of a run: the changes at the narrow link while requests arrive. Its rate steps, as that of
//! a cell or a cable does, or another server sends through the same queue.
//!
//! Times are shares of the time in which requests arrive, and rates are factors of the point's rate. So a
//! shorter or faster run has the same course.

use serde::{Deserialize, Serialize};

/// The changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Changes of the narrow link's rate, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Another server that sends through the link, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
}

/// A change of the link's rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// When, as a share of the run.
    pub at: f64,
    /// The new rate, as a factor of the point's.
    pub factor: f64,
}

/// Another server before the same narrow link, on a machine of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbour {
    /// nginx, from which a number of clients fetch an endless file.
    Downloads {
        /// The number of clients.
        number: u32,
        /// When they begin, as a share of the run.
        from: f64,
        /// When they give up.
        to: f64,
    },
    /// A server of the same kind, with as many requests, at arrivals of its own.
    Twin,
}

impl Course {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for Course {
    /// The course in words, with a comma before each part.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for Step { at, factor } in &self.steps {
            write!(f, ", {factor} times the rate from {:.0} % on", at * 100.0)?;
        }
        match self.neighbour {
            None => Ok(()),
            Some(Neighbour::Twin) => write!(f, ", beside a second server of its kind"),
            Some(Neighbour::Downloads { number, from, to }) => write!(
                f,
                ", beside {number} downloads from another server from {:.0} to {:.0} %",
                from * 100.0,
                to * 100.0
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_told_in_words() {
        assert_eq!(Course::default().to_string(), "");
        let step = Step {
            at: 0.25,
            factor: 0.5,
        };
        let downloads = Neighbour::Downloads {
            number: 3,
            from: 0.4,
            to: 0.6,
        };
        let course = Course {
            steps: vec![step],
            neighbour: Some(downloads),
        };
        assert_eq!(
            course.to_string(),
            ", 0.5 times the rate from 25 % on, beside 3 downloads from another server from 40 to 60 %"
        );
    }
}
