//! Why a distribution of sizes cannot exist.

/// How distributions are written.
pub(super) const FORMS: &str = "exp:MEAN, bp:LOW,HIGH,ALPHA (Bounded Pareto), det:SIZE, \
    weibull:SHAPE,MEAN, uniform:LOW,HIGH, lognormal-pareto:MU,SIGMA,CUT,HIGH,ALPHA, \
    surge-001 (paper 001, Table 1), world-cup (paper 000, 2.1)";

/// A distribution that cannot exist; the text is one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DistError {
    /// The text begins with no known name.
    #[error("distribution `{text}`: unknown; want one of {}", FORMS)]
    Unknown {
        /// What was given.
        text: String,
    },
    /// A name with too few or too many numbers behind it.
    #[error("distribution `{text}`: {found} numbers where {form} has {wanted}")]
    Count {
        /// What was given.
        text: String,
        /// How it should look.
        form: &'static str,
        /// How many numbers it has.
        found: usize,
        /// How many it should have.
        wanted: usize,
    },
    /// Something that should be a number and is not.
    #[error("distribution `{text}`: `{value}` is no number; want {form}")]
    NoNumber {
        /// What was given.
        text: String,
        /// The part of it.
        value: String,
        /// How it should look.
        form: &'static str,
    },
    /// A parameter out of its range.
    #[error("{parameter} {value} of a distribution: want {wanted}")]
    Parameter {
        /// Its name in the distribution's form.
        parameter: &'static str,
        /// What was given.
        value: f64,
        /// What would be right.
        wanted: String,
    },
    /// A size in a list that is no size.
    #[error("size {size} at place {} of the list: want a size above 0, from 1e-90 to 1e90", .index + 1)]
    Entry {
        /// Where in the list, from 0.
        index: usize,
        /// What was there.
        size: f64,
    },
    /// An empty list.
    #[error("a list of no sizes has no distribution: want at least one size")]
    Empty,
}

impl DistError {
    pub(super) fn unless_within(
        parameter: &'static str,
        value: f64,
        low: f64,
        high: f64,
    ) -> Result<f64, Self> {
        if (low..=high).contains(&value) {
            return Ok(value);
        }
        let wanted = if high == f64::MAX {
            format!("a finite number of at least {low}")
        } else {
            format!("{low} to {high}")
        };
        Err(Self::Parameter {
            parameter,
            value,
            wanted,
        })
    }

    pub(super) fn unless_above(
        parameter: &'static str,
        value: f64,
        than: &str,
        bound: f64,
    ) -> Result<(), Self> {
        if value > bound {
            return Ok(());
        }
        Err(Self::Parameter {
            parameter,
            value,
            wanted: format!("more than {than}, {bound}"),
        })
    }

    pub(super) fn nothing_on_one_side(cut: f64) -> Self {
        Self::Parameter {
            parameter: "CUT",
            value: cut,
            wanted: "a size with jobs on both sides of it".into(),
        }
    }
}

/// Sizes and parameters stay small enough that their squares and cubes are numbers.
const NUMBERS: std::ops::RangeInclusive<f64> = 1e-90..=1e90;

pub(super) fn positive(parameter: &'static str, value: f64) -> Result<f64, DistError> {
    if NUMBERS.contains(&value) {
        return Ok(value);
    }
    Err(DistError::Parameter {
        parameter,
        value,
        wanted: "a number above 0, from 1e-90 to 1e90".into(),
    })
}

pub(super) fn positive_or_infinite(parameter: &'static str, value: f64) -> Result<f64, DistError> {
    if value == f64::INFINITY {
        return Ok(value);
    }
    positive(parameter, value).map_err(|_| DistError::Parameter {
        parameter,
        value,
        wanted: "a number above 0, from 1e-90 to 1e90, or inf".into(),
    })
}
